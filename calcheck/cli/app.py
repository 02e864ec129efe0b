"""The command-line program: its commands, error messages and exit codes."""

from __future__ import annotations

import inspect
import io
import os
import signal
import sys
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from calcheck.cli.command_group import CommandGroup, LazyCommand
from calcheck.cli.guide import describe_versions
from calcheck.cli.typer_bridge import (
    PREFIX,
    completion_parameters,
    convert_options,
    drop_excluded,
    is_completing,
    parameters,
    with_signature,
)
from calcheck.cli.usage_errors import describe, explain
from calcheck.errors import CalcheckError
from calcheck.execution.machine import address_space_limit
from calcheck.options import option, options_of

HALF_WORD = 100  # maximum characters shown from each end of a word in a message; column names may be longer
EXIT_MISTAKE, EXIT_INTERRUPTED, EXIT_TERMINATED = 2, 130, 143
OUT_OF_MEMORY = "out of memory: use fewer rows (--subsample), or pass a smaller --replicates or --resamples"
LIMITED = "(there is a limit on memory: ulimit -v)"

HELP = """Check whether the uncertainties of a regression model can be trusted, from a file of saved predictions.

"calcheck FILE" is short for "calcheck evaluate FILE".
"""
SETTINGS = (
    "Options can also be set by environment variables, one for each command and option (CALCHECK_ZMS_SEED=1), and in"
    " calcheck.toml or pyproject.toml."
)


@dataclass(frozen=True)
class SettingsOptions:
    """Options that choose the settings file."""

    exclusive: ClassVar = ((frozenset({"config"}), frozenset({"no_config"})),)

    config: str | None = option(
        None,
        "Settings file to use instead of the nearest calcheck.toml. Variable: CALCHECK_CONFIG.",
        metavar="FILE",
    )
    no_config: bool = option(default=False, text="Read no settings file. Variable: CALCHECK_NO_CONFIG=1.")


def make_program() -> TyperGroup:
    """Return the program with all its commands."""
    app = typer.Typer(
        name="calcheck",
        cls=CommandGroup,
        help=HELP,
        epilog=SETTINGS,
        no_args_is_help=True,
        add_completion=is_completing(),
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": PREFIX},
    )
    app.callback()(with_signature(_start, [VERSION, *parameters(SettingsOptions, "Options"), *completion_parameters()]))
    program = typer.main.get_command(app)
    if not isinstance(program, CommandGroup):  # pragma: no cover - for type checkers
        raise TypeError(type(program))
    convert_options(program, options_of(SettingsOptions))
    return program


def _start(context: typer.Context, **_: Any) -> None:
    """Attach the settings to the context."""
    from calcheck.cli.settings import Settings

    drop_excluded(context, options_of(SettingsOptions))
    commands: dict[str, LazyCommand] = context.command.commands  # type: ignore[attr-defined]
    context.obj = Settings(context, {name: command.options for name, command in commands.items()})


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - Typer's callback
    if wanted:
        sys.stdout.write(describe_versions())
        raise typer.Exit


VERSION = inspect.Parameter(
    "version",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the versions of calcheck and its dependencies.",
            allow_from_autoenv=False,
        ),
    ],
)


def run() -> int:
    """Run the command line and return the exit code; a user error is one line on standard error."""
    _open_outputs()
    _make_outputs_forgiving()
    _end_as_if_interrupted()
    try:
        code = make_program()(prog_name="calcheck", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _complain(explain(error, sys.argv[1:]), error.exit_code)
    except CalcheckError as error:
        return _complain(describe(error, sys.argv[1:]), error.exit_code)
    except typer.Abort:
        return EXIT_INTERRUPTED
    except (MemoryError, ImportError, SystemError) as error:  # of libraries, the last two only within a limit
        limited = address_space_limit() is not None
        if not limited and not isinstance(error, MemoryError):
            raise
        said = [OUT_OF_MEMORY, *([f"({error})"] if str(error) else []), *([LIMITED] if limited else [])]
        return _complain(" ".join(said), EXIT_MISTAKE)
    except OSError as error:
        if error.filename is not None:
            raise
        problem = f"cannot write to standard output: {error.strerror}"
        if isinstance(error, FileNotFoundError):
            problem = "the current folder was deleted. Change to another one"
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the rest of the buffer cannot be written either
        return _complain(problem, EXIT_MISTAKE)
    return code if isinstance(code, int) else 0


def _open_outputs() -> None:
    """Open the standard streams that the parent process has closed.

    Writing to the reopened standard output is an error; text written to the reopened standard error is discarded. If a
    descriptor stayed closed, the first file that the program opens would get its number.
    """
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # the system assigns the lowest free number, which is this descriptor
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - stays open until exit


def _make_outputs_forgiving() -> None:
    """Avoid errors when a terminal lacks a character or a reader closes the pipe early."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ζ shows ? instead
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # exit silently when a reader closes the pipe


def _end_as_if_interrupted() -> None:
    """Clean up temporary files on SIGTERM, as on an interrupt."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))


def _complain(message: str, code: int) -> int:
    """Write a message as one line to standard error, and return the exit code."""
    if message:
        words = (
            word if len(word) <= 2 * HALF_WORD else f"{word[:HALF_WORD]}…{word[-HALF_WORD:]}"
            for word in message.split()
        )
        from calcheck.core.text import strip_control

        sys.stderr.write(f"calcheck: {strip_control(' '.join(words))}\n")
    return code
