"""The program: its commands, and how it ends."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from calcheck import __version__
from calcheck.cli.inspect import inspect_command
from calcheck.cli.listings import list_metrics, print_schema
from calcheck.cli.metric_commands import metric_command
from calcheck.errors import CalcheckError
from calcheck.metrics import METRICS
from calcheck.render.console import visible

EXIT_INTERRUPTED = 130

HELP = """Tell whether the uncertainties of a regression model can be trusted, from a file of saved predictions."""

app = typer.Typer(
    name="calcheck",
    help=HELP,
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
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Tell whether the uncertainties of a regression model can be trusted, from a file of saved predictions."""


for _name, _metric in METRICS.items():
    app.command(_name, rich_help_panel="Metrics")(metric_command(_metric))
app.command("inspect", rich_help_panel="Help with files")(inspect_command)
app.command("metrics", rich_help_panel="Reference")(list_metrics)
app.command("schema", rich_help_panel="Reference")(print_schema)


def main() -> None:
    """Run the command line; errors of the user are one line on standard error and exit code 2."""
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        _complain(error.format_message())
        code = error.exit_code
    except CalcheckError as error:
        _complain(str(error))
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads: the interpreter's flush too
        code = 0
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> None:
    """Say in one line what is wrong."""
    sys.stderr.write(f"calcheck: {visible(' '.join(message.split()))}\n")
