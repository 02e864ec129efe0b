"""The commands of the program, loaded when they are used."""

from __future__ import annotations

import sys
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup

from calcheck.cli.typer_bridge import Command, with_default
from calcheck.execution.machine import require_address_space
from calcheck.metrics import ALIASES, METRICS

if TYPE_CHECKING:
    from calcheck.options import Option


def metric_name(name: str) -> str:
    """Return the name of a metric; for an alias, also write to standard error which metric it stands for."""
    if name not in ALIASES:
        return name
    alias = ALIASES[name]
    sys.stderr.write(f"calcheck: {name} ({alias.meaning}) is {alias}\n")
    return alias.metric


SUMMARIES = Path(__file__).with_name("summaries.txt")
"""Name and summary of each command; generated from the commands by ``python -m tests.reference``."""

MAIN_METRICS = ("coverage", "zms", "ece", "crps", "cce")
"""The metrics that the help shows first: one for each question that most users have."""

PANELS: dict[str, dict[str, str]] = {
    "Reports": {
        "evaluate": "evaluate",
        "report": "report",
        "check": "check",
        "compare": "compare",
        "slices": "slices",
        "monitor": "monitor",
        "recalibrate": "recalibrate",
        "reject": "reject",
        "sweep": "sweep",
        "validity": "validity",
        "diff": "compare",
    },
    "Metrics": dict.fromkeys(MAIN_METRICS, "metric_commands"),
    "More metrics": {
        **{name: "metric_commands" for name in METRICS if name not in MAIN_METRICS},
        "mcmd": "mcmd",
        "mmd": "mcmd",
    },
    "Help with files": {"inspect": "inspect"},
    "Reference": {"guide": "guide", "metrics": "guide", "schema": "guide"},
}
"""The commands in the order of the help: by panel, the module of each."""

OLD_NAMES = {"prune": "reject", "trend": "compare", "merge": "streaming", "convert": "inspect"}
"""Commands that the help does not list: reject --refit, compare --positions, evaluate of states, inspect -o."""

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
    def loaded(self) -> Command:
        """The command itself."""
        module = import_module(f"calcheck.cli.{self._module}")
        if self._name in METRICS:
            return module.metric_command(METRICS[self._name])  # type: ignore[no-any-return]
        return getattr(module, f"{self._name}_command")  # type: ignore[no-any-return]

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
        self.commands: dict[str, Any] = _lazy_commands()

    def get_help_option(self, ctx: Any) -> Any:
        """Return ``--help``."""
        return with_default(super().get_help_option(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of a command, the command, and its arguments.

        An alias of a metric is its command; a file without the name of a command is evaluated.
        """
        name = metric_name(args[0])
        evaluated = name not in self.commands and is_file_name(name)
        return super().resolve_command(ctx, ["evaluate", *args] if evaluated else [name, *args[1:]])


def is_file_name(text: str) -> bool:
    """Return whether a text is the name of a file rather than a misspelt command."""
    return (
        not text.startswith("-") and (any(sign in text for sign in "./\\*?:") or Path(text).exists())
    ) or text == "-"


def _lazy_commands() -> dict[str, LazyCommand]:
    """Return all commands by name, in the order of the help."""
    lines = SUMMARIES.read_text(encoding="utf-8").splitlines()
    summaries = dict(line.split(": ", 1) for line in lines)
    return {
        name: LazyCommand(name, module, panel, summaries.get(name))
        for panel, modules in (*PANELS.items(), (None, OLD_NAMES))
        for name, module in modules.items()
    }
