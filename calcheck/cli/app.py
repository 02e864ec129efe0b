"""The command-line program: its commands, loaded when they are used, and exit codes."""

import io
import os
import signal
import sys
import textwrap
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from calcheck.cli import typer_options
from calcheck.cli.error_messages import describe, explain
from calcheck.errors import CalcheckError
from calcheck.execution.run import address_space_limit, require_address_space
from calcheck.metrics import ALIASES, METRICS
from calcheck.options import Option, option, options_of
from calcheck.studies import STUDIES


def metric_name(name: str) -> str:
    """Return the name of a metric; for an alias, also write to standard error which metric it stands for."""
    if name not in ALIASES:
        return name
    alias = ALIASES[name]
    sys.stderr.write(f"calcheck: {name} ({alias.meaning}) is {alias}\n")
    return alias.metric


SUMMARIES = Path(__file__).with_name("summaries.txt")
"""Name and summary of each command; generated from the commands by ``python -m tests.reference``."""

OLD_NAMES = {"prune": "study_commands", "trend": "study_commands", "merge": "states", "convert": "inspect"}
"""Commands that the help does not list: reject --refit, compare --positions, evaluate of states, inspect -o."""

MAIN_STUDIES = ("slices", "recalibrate", "compare")

PANELS: dict[str, dict[str, str]] = {
    "Commands": {
        "evaluate": "evaluate",
        **dict.fromkeys(MAIN_STUDIES, "study_commands"),
        "check": "evaluate",
        "monitor": "study_commands",
        "report": "evaluate",
        "inspect": "inspect",
        "guide": "guide",
    },
    "Metrics": dict.fromkeys(METRICS, "metric_commands"),
    "For method papers": dict.fromkeys(STUDIES.without(*MAIN_STUDIES, "monitor", "diff", *OLD_NAMES), "study_commands"),
    "Tools": {"metrics": "guide", "diff": "study_commands", "schema": "guide"},
}  # The commands in the order of the help: by panel, the module of each; other studies are for method papers

COMMANDS = tuple(name for modules in PANELS.values() for name in modules)


class LazyCommand(TyperCommand):
    """A command of which only the name and the summary are known until it is loaded."""

    def __init__(
        self,
        name: str,  # Name of the command
        module: str,
        panel: str | None,  # Panel of the help; None for a command that the help does not list
        summary: str | None,  # First line of its help; None to load it
    ) -> None:
        self._module = module
        self._name = name
        help_ = self.loaded.help if summary is None else summary
        super().__init__(name, help=help_, rich_help_panel=panel, rich_markup_mode="rich", hidden=panel is None)

    @cached_property
    def loaded(self) -> typer_options.Command:
        """The command itself."""
        module = import_module(f"calcheck.cli.{self._module}")
        if self._name in METRICS:
            return module.metric_command(METRICS[self._name])  # type: ignore[no-any-return]
        if self._name in STUDIES:
            return module.study_command(STUDIES[self._name])  # type: ignore[no-any-return]
        found: Any = getattr(module, f"{self._name}_command")
        return found if isinstance(found, typer_options.Command) else found()

    def options(self) -> tuple[Option, ...]:
        """Return the options of the command."""
        return self.loaded.options

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Load the command, and return its context."""
        require_address_space()
        return self.loaded.make_context(info_name, args, parent, **extra)


class CommandGroup(TyperGroup):
    """All commands of the program, not loaded."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        lines = SUMMARIES.read_text(encoding="utf-8").splitlines()
        summaries = dict(line.split(": ", 1) for line in lines)
        self.commands: dict[str, Any] = {
            name: LazyCommand(name, module, panel, summaries.get(name))
            for panel, modules in (*PANELS.items(), (None, OLD_NAMES))
            for name, module in modules.items()
        }

    def get_help_option(self, ctx: Any) -> Any:
        """Return ``--help``."""
        return typer_options.with_default(super().get_help_option(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options; without arguments, show the help."""
        if not args and not ctx.resilient_parsing:
            sys.stdout.write(f"{ctx.get_help()}\n")
            raise typer.Exit(EXIT_MISTAKE)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the options are the same everywhere
        """Write the commands that people need, and one line for each of the other panels."""
        first, *others = PANELS
        lines = {name: str(self.commands[name].help).split("\n")[0] for name in PANELS[first]}
        texts = [line for name, text in lines.items() for line in _item(name, text)]
        rest = [line for panel in others for line in _item(panel, _listed(panel))]
        options = [line for item in OPTIONS for line in _item(*item)]
        formatter.write("\n".join([HELP, *texts, "", *rest, "", *options, "", *textwrap.wrap(SETTINGS, WIDTH)]) + "\n")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command and its arguments: of an alias the metric, of a file `evaluate`."""
        name = metric_name(args[0])
        is_file = name == "-" or (
            not name.startswith("-") and (any(sign in name for sign in "./\\*?:") or Path(name).exists())
        )
        evaluated = name not in self.commands and is_file
        return super().resolve_command(ctx, ["evaluate", *args] if evaluated else [name, *args[1:]])


HALF_WORD = 100  # maximum characters shown from each end of a word in a message; column names may be longer
EXIT_MISTAKE, EXIT_INTERRUPTED, EXIT_TERMINATED = 2, 130, 143
OUT_OF_MEMORY = "out of memory: use fewer rows (--subsample), or pass a smaller --replicates or --resamples"
LIMITED = "(there is a limit on memory: ulimit -v)"

HELP = """Usage: calcheck FILE [OPTIONS], or calcheck COMMAND [OPTIONS] …

Check whether the uncertainties of a regression model can be trusted, from a
file of saved predictions. "calcheck FILE" is "calcheck evaluate FILE".
"""
WIDTH, LEFT = 80, 20  # Columns of the help, and of names in it
OPTIONS = (
    ("-h, --help", "Show this message; after a command, -h shows the main options, --help all."),
    ("--version", "Print the versions of calcheck and its dependencies."),
    ("--config FILE", "Settings file to use instead of the nearest calcheck.toml."),
    ("--no-config", "Read no settings file."),
    ("--install-completion", "Install shell completion (or --show-completion)."),
)


def _item(name: str, text: str) -> list[str]:
    """Return the lines of a name with its explanation."""
    first, *rest = textwrap.wrap(text, WIDTH - LEFT - 3)
    return [f"  {name:<{LEFT}} {first}", *(" " * (LEFT + 3) + line for line in rest)]


def _listed(panel: str) -> str:
    """Return the commands of a panel in a line; of many the first, and their number."""
    names = list(PANELS[panel])
    return ", ".join(names) if len(names) < 10 else f"{len(names)}, each a command; calcheck metrics lists them"  # noqa: PLR2004


SETTINGS = (
    "Options can also be set by environment variables, one for each command and option (CALCHECK_ZMS_SEED=1), and in"
    " calcheck.toml or pyproject.toml."
)


@dataclass(frozen=True)
class SettingsOptions:
    """Options that choose the settings file."""

    exclusive: ClassVar = ((frozenset({"config"}), frozenset({"no_config"})),)

    config: str | None = option(
        "Settings file to use instead of the nearest calcheck.toml. Variable: CALCHECK_CONFIG.", metavar="FILE"
    )
    no_config: bool = option("Read no settings file. Variable: CALCHECK_NO_CONFIG=1.", default=False)


def make_program() -> TyperGroup:
    """Return the program with all its commands."""
    app = typer.Typer(
        name="calcheck",
        cls=CommandGroup,
        help=HELP,
        no_args_is_help=True,
        add_completion=typer_options.is_completing(),
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": typer_options.PREFIX},
    )
    version = typer_options.flag("version", "Print the versions of calcheck and its dependencies.", _print_version)
    settings = typer_options.parameters(SettingsOptions, "Options")
    declared = [version, *settings, *typer_options.completion_parameters()]
    app.callback()(typer_options.with_signature(_start, declared))
    program = typer.main.get_command(app)
    if not isinstance(program, CommandGroup):  # pragma: no cover - for type checkers
        raise TypeError(type(program))
    typer_options.convert_options(program, options_of(SettingsOptions))
    return program


def _start(context: typer.Context, **_: Any) -> None:
    """Attach the settings to the context."""
    from calcheck.cli.settings import Settings

    typer_options.drop_excluded(context, options_of(SettingsOptions))
    commands: dict[str, LazyCommand] = context.command.commands  # type: ignore[attr-defined]
    context.obj = Settings(context, {name: command.options for name, command in commands.items()})


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - Typer's callback
    if wanted:
        from calcheck.cli.guide import describe_versions

        sys.stdout.write(describe_versions())
        raise typer.Exit


def run() -> int:
    """Run the command line and return the exit code; a user error is one line on standard error."""
    _open_outputs()
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    try:
        code = make_program()(prog_name="calcheck", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _complain(explain(error, sys.argv[1:], COMMANDS), error.exit_code)
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
    """Open the standard streams that the parent process has closed, and make them take any text."""
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # the system assigns the lowest free number, which is this descriptor
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - stays open until exit
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ζ shows ? instead
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # exit silently when a reader closes the pipe


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
