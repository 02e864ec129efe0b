"""Option values from the settings file and from environment variables."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calcheck.cli.typer_options import PREFIX, build, make_command, parameters, source_of, variable
from calcheck.errors import CalcheckError, FileError, OptionError, nearest_word, suggestion
from calcheck.metrics import METRICS, canonical_name
from calcheck.options import Option, is_excluded

if TYPE_CHECKING:
    from calcheck.metrics.base import Metric

Table = dict[str, tuple[Any, str]]

OWN, SHARED, TABLE = "calcheck.toml", "pyproject.toml", "tool.calcheck"
GATES = "gates"
RENAMED = {"tolerance": "landmark-error"}  # Options of metrics that had another name, by that name
LARGEST_BYTES = 1 << 20
FILE, NO_FILE = f"{PREFIX}_CONFIG", f"{PREFIX}_NO_CONFIG"


@dataclass(frozen=True)
class Config:
    """The content of a settings file, not yet validated against the options."""

    path: str | None = None  # Path of the file as shown in messages; None without a file
    # Option values for every command, by the option names as spelled in the file
    settings: Mapping[str, Any] = field(default_factory=dict)
    # Option values for single commands and metrics, by their names
    commands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gates: Mapping[str, Any] = field(default_factory=dict)  # Rules of `calcheck check`


def find_config(start: Path) -> Config:
    """Return the nearest settings file in a folder or its parents; ``calcheck.toml`` has priority in each folder."""
    for folder in (start.absolute(), *start.absolute().parents):
        for name in (OWN, SHARED):
            if _is_file(folder / name) and (found := _read(folder / name)) is not None:
                return found
    return Config()


def read_config(path: Path) -> Config:
    """Return the settings of one file; of a ``pyproject.toml``, those in ``[tool.calcheck]``."""
    found = _read(path)
    if found is None:
        raise FileError(f"{_called(path)} has no table [{TABLE}]")
    return found


def _read(path: Path) -> Config | None:
    """Return the settings of a file; None for a ``pyproject.toml`` without ``[tool.calcheck]``."""
    shared = path.name == SHARED
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            msg = f"{_called(path)} is larger than {LARGEST_BYTES >> 20} MiB, the maximum size of a settings file"
            raise FileError(msg)
        text = content.decode("utf-8")
    except OSError as error:
        raise FileError(f"cannot read the settings in {_called(path)}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{_called(path)} is not valid TOML: it is not encoded in UTF-8") from error
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also raised for very long numbers and deeply nested lists
        if shared and TABLE not in text:
            return None
        msg = f"{_called(path)} is not valid TOML: {error}. To ignore settings files, pass --no-config"
        raise FileError(msg) from error
    if shared:
        tools = document.get("tool")
        if not isinstance(tools, dict) or "calcheck" not in tools:
            return None
        document = _table(path, TABLE, tools["calcheck"])
    tables = {name: value for name, value in document.items() if isinstance(value, dict)}
    return Config(
        path=_called(path),
        settings={name: value for name, value in document.items() if name not in tables and name != GATES},
        commands={name: value for name, value in tables.items() if name != GATES},
        gates=_table(path, GATES, document.get(GATES, {})),
    )


def _table(path: Path, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FileError(f"{_called(path)}: {name} must be a table [{name}], got {value!r}")
    return value


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a parent folder without read permission
        return False


def _called(path: Path) -> str:
    """Return the path of a file, relative to the working directory if that is shorter."""
    try:
        return min(os.path.relpath(path), str(path), key=len)
    except (OSError, ValueError):  # the working directory was deleted or is on another drive
        return str(path)


@dataclass(frozen=True)
class Setting:
    """A configured option value and its origin: ``"CALCHECK_ZMS_SEED"``, ``"seed in calcheck.toml"``."""

    option: Option
    value: Any
    where: str


class Settings:
    """The settings of one run of the program."""

    def __init__(
        self,
        context: Any,  # Context of the program, with the values of `--config` and `--no-config`
        # By the name of each command, a function that returns its options
        options: Mapping[str, Callable[[], Sequence[Option]]],
    ) -> None:
        self._context = context
        self._options = options
        self._of_commands: dict[str, dict[str, Setting]] = {}
        self.used: list[Setting] = []
        """The settings used so far."""

    @cached_property
    def config(self) -> Config:
        """Content of the settings file that ``--config`` and ``--no-config`` choose, else of the nearest one."""
        path, no_config = (self._context.params.get(name) for name in ("config", "no_config"))
        if path is not None and no_config:
            msg = "--config and --no-config contradict each other: use only one of them, also as environment variables"
            raise OptionError(msg)
        if path is not None:
            return read_config(Path(path))
        try:
            return Config() if no_config else find_config(Path.cwd())
        except OSError:  # the working directory was deleted
            return Config()

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

    def metric(self, name: str, given: Mapping[str, Any] | None = None) -> Metric[Any]:
        """Return a metric with the given options, else with those configured for its own command."""
        own = f"{PREFIX}_{name}_".replace("-", "_").upper()
        if self.config.path is None and not any(each.startswith(own) for each in os.environ):  # a command takes 2 ms
            return build(METRICS[name], given or {})  # type: ignore[no-any-return]
        command = make_command(name, _unused, parameters(METRICS[name], "Metric"))
        context = command.make_context(name, [], parent=self._context)
        metric: Metric[Any] = build(METRICS[name], {**context.params, **(given or {})})
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
        from calcheck.core.text import strip_control

        for name, text in sorted(os.environ.items()):
            if not name.startswith(f"{PREFIX}_") or not text or name in (FILE, NO_FILE):
                continue
            if (hint := self._variable_hint(name)) is not None:
                message = f"the environment variable {name} does not set any option and is ignored.{hint}"
                sys.stderr.write(f"calcheck: {strip_control(message)}\n")

    def _variable_hint(self, name: str) -> str | None:
        """Return a suggestion of a similar variable, by command and option; None if the variable sets an option."""
        own = [each for each in self._options if name.startswith(f"{PREFIX}_{each}_".replace("-", "_").upper())]
        known = [
            (variable(each, option), option) for each in own or self._ordered() for option in self._options[each]()
        ]
        if any(name == each for each, _ in known):
            return None
        if own:
            near = nearest_word(name, [each for each, _ in known])
            return f" Did you mean {near}?" if near else ""
        options = {option.name.upper(): each for each, option in reversed(known)}
        near = nearest_word(name.removeprefix(f"{PREFIX}_"), options)
        return f" Variables are per command. Did you mean {options[near]}?" if near else ""

    def _ordered(self) -> list[str]:
        """Return the names of the commands, first that of the command in use."""
        now = self._context.invoked_subcommand
        return [*([now] if now in self._options else []), *(name for name in self._options if name != now)]

    def _resolve(self, command: str) -> dict[str, Setting]:
        """Return the settings of a command in the file by field, without values that only other metrics take."""
        found: dict[str, Setting] = {}
        own = {} if self.config.path is None else {option.name: option for option in self._options[command]()}
        for level in (self._tables.get(command, {}), self._shared):
            higher = set(found)
            for name in own.keys() & level.keys():
                option, (value, where) = own[name], level[name]
                free = option.field not in higher and not is_excluded(option.field, higher, own.values())
                if free and (command == self._context.invoked_subcommand or _takes(option, value)):
                    found[option.field] = Setting(option, option.take(value, where), where)
        return found

    @cached_property
    def _shared(self) -> Table:
        """The settings for all commands."""
        return self._validated(self.config.settings, str(self.config.path), self._ordered())

    @cached_property
    def _tables(self) -> dict[str, Table]:
        """The settings of single commands, by the name of the command."""
        found: dict[str, Table] = {}
        for table, values in self.config.commands.items():
            command, known = canonical_name(table.replace("_", "-")), [*self._options, GATES]
            if command not in self._options:
                msg = f"{self.config.path}: [{table}] is not a command, a metric or {GATES}.{_similar(table, known)}"
                raise FileError(msg)
            if command in found:
                msg = f"{self.config.path}: [{table}] is given twice, under two spellings or names of {command}"
                raise FileError(msg)
            found[command] = self._validated(values, f"[{table}] of {self.config.path}", [command])
        return found

    def _validated(self, values: Mapping[str, Any], place: str, commands: Sequence[str]) -> Table:
        """Return the values of a table and their origins, by the names of the options."""
        found: Table = {}
        for key, value in values.items():
            name, where = key.replace("-", "_"), f"{key} in {place}"
            _, option = next(self._meant(name, commands), ("", None))
            if option is None:
                known = [option.flag.removeprefix("--") for each in commands for option in self._options[each]()]
                raise FileError(f"{where} is not an option.{_similar(key, known)}")
            if name in found:
                raise FileError(f"{where} is set twice: also as {found[name][1].partition(' ')[0]}")
            found[name] = (value, where)
            command, option = next(self._meant(name, commands))
            if option.by_hand:
                raise FileError(
                    f"{where} is not allowed: {option.by_hand} cannot be set in a file. Pass {option.flag} on the"
                    f" command line, or set {variable(command, option)}"
                )
            if not any(_takes(each, value) for _, each in self._meant(name, commands)):
                option.take(value, where)
        return found

    def _meant(self, name: str, commands: Sequence[str]) -> Iterator[tuple[str, Option]]:
        """Yield the commands that have an option, and the option of each."""
        for command in commands:
            yield from ((command, option) for option in self._options[command]() if option.name == name)


def _unused(**_: Any) -> None:
    """Stand for the command of a metric whose options are read."""


def _takes(option: Option, value: Any) -> bool:
    try:
        option.take(value, "")
    except OptionError:
        return False
    return True


def _similar(name: str, known: Sequence[str]) -> str:
    """Return the name that an option has now, a suggestion of a similar name, or else all names."""
    if (now := RENAMED.get(name)) in known:
        return f" Its name is {now!r} now."
    if question := suggestion(name, known):
        return f" {question}"
    return f" Available: {', '.join(dict.fromkeys(known))}." if known else " None are available."
