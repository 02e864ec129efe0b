"""Completion of commands, options and values in the shell."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calcheck.metrics import METRICS
from calcheck.options import choices_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from calcheck.options import Option

VARIABLE = "_CALCHECK_COMPLETE"
"""Environment variable by which a shell asks for completions."""


def is_completing() -> bool:
    """Return whether a shell asks for completions; the program is then not run."""
    return VARIABLE in os.environ


def completion_parameters() -> list[inspect.Parameter]:
    """Return the options that install and show the completion; Typer adds its own when a shell asks for completions."""
    if is_completing():
        return []
    return [
        _flag("install_completion", "Install shell completion.", _install),
        _flag("show_completion", "Show its script.", _show),
    ]


def complete_values(option: Option) -> Callable[[str], list[str]] | None:
    """Return a function that completes the value of an option; None if any value is possible."""
    names = list(METRICS) if option.field in ("metric", "metrics") else list(choices_of(option.hint))
    if not names:
        return None

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if option.listed else ("", "", incomplete)
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return complete


def _flag(name: str, text: str, callback: Callable[..., Any]) -> inspect.Parameter:
    """Return a flag of the program that ends it."""
    flag = "--" + name.replace("_", "-")
    declared = typer.Option(flag, callback=callback, is_eager=True, help=text, allow_from_autoenv=False)
    annotation = Annotated[bool, declared]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)


def _install(context: typer.Context, parameter: typer.CallbackParam, wanted: bool) -> None:  # noqa: FBT001 - Typer's callback
    if wanted:
        from typer.completion import install_callback

        install_callback(context, parameter, wanted)


def _show(context: typer.Context, parameter: typer.CallbackParam, wanted: bool) -> None:  # noqa: FBT001 - Typer's callback
    if wanted:
        from typer.completion import show_callback

        show_callback(context, parameter, wanted)
