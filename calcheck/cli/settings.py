"""Option values from the settings file and environment variables, for options not given on the command line."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calcheck.cli.config_file import GATES, Config, find_config, read_config
from calcheck.cli.typer_bridge import PREFIX, build, make_command, parameters, source_of, variable
from calcheck.errors import CalcheckError, FileError, OptionError
from calcheck.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from calcheck.metrics.base import Metric
    from calcheck.options import Option

FILE, NO_FILE = f"{PREFIX}_CONFIG", f"{PREFIX}_NO_CONFIG"

_SPREAD = frozenset({"std", "var", "log_std", "log_var"})
EXCLUSIVE: tuple[tuple[frozenset[str], ...], ...] = (
    (
        _SPREAD | {"mean", "min_std", "error_dist"},
        frozenset({"dist", "param"}),
        frozenset({"samples"}),
        frozenset({"quantiles"}),
    ),
    tuple(frozenset({name}) for name in _SPREAD),
    (frozenset({"error"}), frozenset({"target", "mean", "truth", "join_on"})),
    (frozenset({"target"}), frozenset({"truth", "join_on"})),
    (frozenset({"embedding"}), frozenset({"inputs"})),
    (frozenset({"resamples"}), frozenset({"no_bootstrap"})),
    (frozenset({"replicates", "permutations"}), frozenset({"no_null"})),
    (frozenset({"rtol", "atol"}), frozenset({"within_interval"})),
    (frozenset({"config"}), frozenset({"no_config"})),
)
"""Mutually exclusive options: giving one drops the configured values of the others."""


@dataclass(frozen=True)
class Setting:
    """A configured option value and its origin: ``"CALCHECK_ZMS_SEED"``, ``"seed in calcheck.toml"``."""

    option: Option
    value: Any
    where: str


class Settings:
    """The settings of one run of the program.

    Parameters
    ----------
    context : typer.Context
        Context of the program, with the values of ``--config`` and ``--no-config``.
    options : mapping
        By the name of each command, a function that returns its options.
    """

    def __init__(self, context: Any, options: Mapping[str, Callable[[], Sequence[Option]]]) -> None:
        self._context = context
        self._options = options
        self._of_commands: dict[str, dict[str, Setting]] = {}
        self.used: list[Setting] = []
        """The settings used so far."""

    @cached_property
    def config(self) -> Config:
        """Content of the settings file, whose names and types are validated.

        Raises
        ------
        FileError, OptionError
            The file sets an unknown option, an option that is not allowed in files, or an invalid value.
        """
        return _config(**{name: self._context.params.get(name) for name in ("config", "no_config")})

    def from_file(self, command: str, field: str) -> Any:
        """Return the value of an option in the settings file: in the command's table, else for all commands."""
        if command not in self._of_commands:
            self._of_commands[command] = self._resolve(command)
        setting = self._of_commands[command].get(field)
        return None if setting is None else setting.value

    def record(self, context: Any, options: Iterable[Option]) -> None:
        """Add the configured values of a command to the used settings."""
        command = context.info_name
        for option in options:
            value, source = context.params.get(option.field), source_of(context, option)
            if value is None or value is False:
                continue
            if source == "ENVIRONMENT":
                self.used.append(Setting(option, value, variable(command, option)))
            elif source == "DEFAULT_MAP":
                self.used.append(self._of_commands[command][option.field])

    def metric(self, name: str, given: Mapping[str, Any] | None = None) -> Metric[Any, Any]:
        """Return a metric with the given options, else with those configured for its own command."""
        command = make_command(name, _unused, parameters(METRICS[name], "Metric"))
        context = command.make_context(name, [], parent=self._context)
        metric: Metric[Any, Any] = build(METRICS[name], {**context.params, **(given or {})})
        return metric

    @contextmanager
    def with_provenance(self) -> Iterator[None]:
        """Add the origin of configured options to errors about them."""
        try:
            yield
        except CalcheckError as error:
            for setting in self.used:
                quoted = isinstance(setting.value, str) and repr(setting.value) in str(error)
                if quoted or re.search(rf"{setting.option.flag}(?![\w-])", str(error)):
                    error.add_note(f"({setting.option.flag} is set by {setting.where})")
            raise

    def warn_of_unknown_variables(self) -> None:
        """Warn about each variable that starts with ``CALCHECK_`` but does not set an option."""
        from calcheck.render.console import strip_control

        for name, text in sorted(os.environ.items()):
            if name.startswith(f"{PREFIX}_") and text and name not in (FILE, NO_FILE) and not self._is_variable(name):
                told = f"the environment variable {name} does not set any option and is ignored.{self._similar(name)}"
                sys.stderr.write(f"calcheck: {strip_control(told)}\n")

    def _is_variable(self, name: str) -> bool:
        return any(name in self._variables(command) for command in self._commands_in(name))

    def _commands_in(self, name: str) -> list[str]:
        """Return the commands whose name a variable begins with."""
        return [each for each in self._options if name.startswith(f"{PREFIX}_{each.replace('-', '_').upper()}_")]

    def _variables(self, command: str) -> dict[str, str]:
        """Return the variables of a command, and the names of their options."""
        return {variable(command, option): option.name.upper() for option in self._options[command]()}

    def _similar(self, name: str) -> str:
        """Return a suggestion: of a similar variable of the same command, else of the same option of a command."""
        if commands := self._commands_in(name):
            return _near(name, [each for command in commands for each in self._variables(command)])
        known: dict[str, str] = {}
        for command in self._ordered():
            known = {option: each for each, option in self._variables(command).items()} | known
        option = _nearest(name.removeprefix(f"{PREFIX}_"), known)
        return f" Variables are per command. Did you mean {known[option]}?" if option else ""

    def _ordered(self) -> list[str]:
        """Return the names of the commands, first that of the command in use."""
        now = self._context.invoked_subcommand
        return [*([now] if now in self._options else []), *(name for name in self._options if name != now)]

    def _resolve(self, command: str) -> dict[str, Setting]:
        """Return the settings of a command in the file, by the field of the option.

        A value for all commands that only other metrics take is ignored for the metrics that a command computes.
        """
        if not self.config.settings and not self.config.commands:
            return {}
        own = {option.name: option for option in self._options[command]()}
        table = self._tables.get(command, {})
        found = {own[name].field: setting for name, setting in table.items()}
        higher = set(found)
        for name, setting in self._shared.items():
            option = own.get(name)
            if option is None or option.field in higher or is_excluded(option.field, higher):
                continue
            if command == self._context.invoked_subcommand or _takes(option, setting):
                found[option.field] = Setting(option, option.take(setting.value, setting.where), setting.where)
        return found

    @cached_property
    def _shared(self) -> dict[str, Setting]:
        """The settings for all commands, by the name of the option; the values are as in the file."""
        found: dict[str, Setting] = {}
        for key, value in self.config.settings.items():
            name, where = _name(key), f"{key} in {self.config.path}"
            command, first = next(self._meant(name), ("", None))
            option = _require_allowed(command, first, key, where, self._keys)
            if name in found:
                raise FileError(_twice(where, found[name]))
            found[name] = Setting(option, value, where)
            if not any(_takes(each, found[name]) for _, each in self._meant(name)):
                option.take(value, where)  # raises
        return found

    @cached_property
    def _tables(self) -> dict[str, dict[str, Setting]]:
        """The settings of single commands, by the name of the command and that of the option."""
        found: dict[str, dict[str, Setting]] = {}
        for table, values in self.config.commands.items():
            command = table.replace("_", "-")
            if command not in self._options:
                known = [*self._options, GATES]
                msg = (
                    f"{self.config.path}: [{table}] is not a command, a metric or {GATES}."
                    f"{_near(table, known) or _there(known)}"
                )
                raise FileError(msg)
            if command in found:
                msg = f"{self.config.path}: [{table}] is given twice, once with - and once with _"
                raise FileError(msg)
            found[command] = self._table(command, table, values)
        return found

    def _table(self, command: str, table: str, values: Mapping[str, Any]) -> dict[str, Setting]:
        own = {option.name: option for option in self._options[command]()}
        found: dict[str, Setting] = {}
        for key, value in values.items():
            name, where = _name(key), f"{key} in [{table}] of {self.config.path}"
            option = _require_allowed(command, own.get(name), key, where, lambda: map(_key, own.values()))
            if name in found:
                raise FileError(_twice(where, found[name]))
            found[name] = Setting(option, option.take(value, where), where)
        return found

    def _meant(self, name: str) -> Iterator[tuple[str, Option]]:
        """Yield the commands that have an option, with the option, first the command in use."""
        for command in self._ordered():
            yield from ((command, option) for option in self._options[command]() if option.name == name)

    def _keys(self) -> Iterator[str]:
        """Yield the names of all options as in the file."""
        return (_key(option) for command in self._options for option in self._options[command]())


def is_excluded(field: str, higher: set[str]) -> bool:
    """Return whether an option that excludes this one was set with higher priority."""
    return any(
        field in part and any(other & higher for other in parts if other is not part)
        for parts in EXCLUSIVE
        for part in parts
    )


def _unused(**_: Any) -> None:
    """Stand for the command of a metric whose options are read."""


def _config(config: str | None, *, no_config: bool) -> Config:
    """Return the content of the settings file that ``--config`` and ``--no-config`` choose."""
    if config is not None and no_config:
        msg = "--config and --no-config contradict each other: use only one of them, also as environment variables"
        raise OptionError(msg)
    if no_config:
        return Config()
    if config is not None:
        return read_config(Path(config))
    try:
        here = Path.cwd()
    except OSError:  # the working directory was deleted
        return Config()
    return find_config(here)


def _name(key: str) -> str:
    return key.replace("-", "_")


def _key(option: Option) -> str:
    return option.flag.removeprefix("--")


def _require_allowed(
    command: str, option: Option | None, key: str, where: str, known: Callable[[], Iterable[str]]
) -> Option:
    """Return the option that a key of the settings file means.

    Raises
    ------
    FileError
        There is no such option, or it must not be set in a file.
    """
    if option is None:
        msg = f"{where} is not an option.{_near(key, known()) or _there(known())}"
        raise FileError(msg)
    if option.by_hand:
        msg = (
            f"{where} is not allowed: {option.by_hand} cannot be set in a file. Pass {option.flag} on the command"
            f" line, or set {variable(command, option)}"
        )
        raise FileError(msg)
    return option


def _twice(where: str, other: Setting) -> str:
    return f"{where} is set twice: also as {other.where.partition(' ')[0]}"


def _takes(option: Option, setting: Setting) -> bool:
    try:
        option.take(setting.value, setting.where)
    except OptionError:
        return False
    return True


def _near(name: str, known: Iterable[str]) -> str:
    """Return a suggestion of a similar name, or an empty string."""
    found = _nearest(name, known)
    return f" Did you mean {found}?" if found else ""


def _nearest(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    return "".join(get_close_matches(name, sorted(set(known)), n=1))


def _there(known: Iterable[str]) -> str:
    listed = ", ".join(dict.fromkeys(known))
    return f" Available: {listed}." if listed else " None are available."
