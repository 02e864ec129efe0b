"""The command-line program: its commands, error messages and exit codes."""

from __future__ import annotations

import io
import os
import signal
import sys
from functools import partial
from typing import Annotated

import typer

from calcheck.cli.check import check_command
from calcheck.cli.compare import compare_command
from calcheck.cli.convert import convert_command
from calcheck.cli.diff import diff_command
from calcheck.cli.evaluate import evaluate_command, prune_command
from calcheck.cli.guide import show_guide
from calcheck.cli.inspect import inspect_command
from calcheck.cli.mcmd import mcmd_command
from calcheck.cli.metric_commands import metric_command
from calcheck.cli.reference import list_metrics, print_schema
from calcheck.cli.reject import reject_command
from calcheck.cli.settings import load_settings
from calcheck.cli.streaming import merge_command
from calcheck.cli.sweep import sweep_command
from calcheck.cli.typer_bridge import options_of_command
from calcheck.errors import CalcheckError
from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS
from calcheck.render.console import strip_control
from calcheck.version import __version__

COMMANDS = (
    "evaluate",
    "check",
    "compare",
    "prune",
    "reject",
    "sweep",
    "diff",
    "merge",
    *METRICS,
    *TWO_SAMPLE_METRICS,
    "inspect",
    "convert",
    "guide",
    "metrics",
    "schema",
)
HALF_WORD = 100  # maximum characters shown from each end of a word in a message; column names may be longer
EXIT_MISTAKE, EXIT_INTERRUPTED, EXIT_TERMINATED = 2, 130, 143
OUT_OF_MEMORY = "out of memory: use fewer rows (--subsample), or pass a smaller --replicates or --resamples"

HELP = """Check whether the uncertainties of a regression model can be trusted, from a file of saved predictions."""
SETTINGS = "Options can also be set by environment variables (CALCHECK_SEED=1), and in calcheck.toml or pyproject.toml."

app = typer.Typer(
    name="calcheck",
    help=HELP,
    epilog=SETTINGS,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - Typer's callback
    if wanted:
        sys.stdout.write(f"calcheck {__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            show_default=False,
            help="Settings file to use instead of the nearest calcheck.toml. Variable: CALCHECK_CONFIG.",
        ),
    ] = None,
    no_config: Annotated[
        bool,
        typer.Option("--no-config", show_default=False, help="Read no settings file. Variable: CALCHECK_NO_CONFIG=1."),
    ] = False,
) -> None:
    """Check whether the uncertainties of a regression model can be trusted, from a file of saved predictions."""
    commands = {str(each.name): options_of_command(each.callback) for each in app.registered_commands if each.callback}
    context.obj = partial(load_settings, os.environ, commands, path=config, without=no_config)


app.command("evaluate", rich_help_panel="Reports", epilog="Example: calcheck evaluate preds.parquet")(evaluate_command)
app.command(
    "check", rich_help_panel="Reports", epilog="Example: calcheck check preds.parquet --fail-on 'zms.p_value < 0.05'"
)(check_command)
app.command(
    "compare", rich_help_panel="Reports", epilog="Example: calcheck compare a.parquet b.parquet --metrics crps,zms"
)(compare_command)
app.command("prune", rich_help_panel="Reports", epilog="Example: calcheck prune preds.parquet --metrics zms,rce")(
    prune_command
)
app.command(
    "reject", rich_help_panel="Reports", epilog="Example: calcheck reject val.parquet --new test.parquet --coverage 0.9"
)(reject_command)
app.command(
    "sweep", rich_help_panel="Reports", epilog="Example: calcheck sweep a.parquet b.parquet --vary lambda=0.001..1"
)(sweep_command)
app.command("diff", rich_help_panel="Reports", epilog="Example: calcheck diff old.json new.json")(diff_command)
app.command("merge", rich_help_panel="Reports", epilog="Example: calcheck merge monday.state tuesday.state")(
    merge_command
)
for _name, _metric in METRICS.items():
    _conditional = " --embedding embedding" if _metric.info.conditional else ""
    _epilog = f"Example: calcheck {_name} preds.parquet{_conditional} --worst 5"
    app.command(_name, rich_help_panel="Metrics", epilog=_epilog)(metric_command(_metric))
app.command("mcmd", rich_help_panel="Metrics", epilog="Example: calcheck mcmd a.parquet b.parquet --inputs x")(
    mcmd_command
)
app.command("inspect", rich_help_panel="Help with files")(inspect_command)
app.command(
    "convert",
    rich_help_panel="Help with files",
    epilog="Example: calcheck convert hub.csv --truth truth.csv -o preds.parquet",
)(convert_command)
app.command("guide", rich_help_panel="Reference")(show_guide)
app.command("metrics", rich_help_panel="Reference")(list_metrics)
app.command("schema", rich_help_panel="Reference")(print_schema)


def run() -> int:
    """Run the command line and return the exit code; a user error is one line on standard error."""
    _open_outputs()
    _make_outputs_forgiving()
    _end_as_if_interrupted()
    try:
        code = app(prog_name="calcheck", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _complain(error.format_message(), error.exit_code)
    except CalcheckError as error:
        return _complain(" ".join([str(error), *getattr(error, "__notes__", ())]), error.exit_code)
    except typer.Abort:
        return EXIT_INTERRUPTED
    except MemoryError as error:
        return _complain(f"{OUT_OF_MEMORY} ({error})" if str(error) else OUT_OF_MEMORY, EXIT_MISTAKE)
    except OSError as error:
        if error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the rest of the buffer cannot be written either
        return _complain(f"cannot write to standard output: {error.strerror}", EXIT_MISTAKE)
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
        if message.startswith("No such command"):
            message += f" Available commands: {', '.join(COMMANDS)}."
        if message.startswith(("No such option: --config", "No such option: --no-config")):
            message += " Put this option before the command, e.g. calcheck --config FILE evaluate …"
        if message.startswith("Got unexpected extra argument"):
            message += ". To read several files as one FILE, pass a folder or a quoted pattern: 'preds/*.parquet'"
        words = (
            word if len(word) <= 2 * HALF_WORD else f"{word[:HALF_WORD]}…{word[-HALF_WORD:]}"
            for word in message.split()
        )
        sys.stderr.write(f"calcheck: {strip_control(' '.join(words))}\n")
    return code
