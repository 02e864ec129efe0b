"""Option values from environment variables and the settings file, for options not given on the command line."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calcheck.cli.config_file import GATES, Config, find_config, read_config
from calcheck.cli.typer_bridge import build
from calcheck.errors import CalcheckError, FileError, OptionError
from calcheck.metrics import METRICS
from calcheck.options import TRUTHS, Option, options_of
from calcheck.render.console import strip_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from calcheck.metrics.base import Metric

    Parts = tuple[frozenset[str], ...]

PREFIX = "CALCHECK_"
FILE, NO_FILE = "CALCHECK_CONFIG", "CALCHECK_NO_CONFIG"

_SPREAD = frozenset({"std", "var", "log_std", "log_var"})
EXCLUSIVE: tuple[Parts, ...] = (
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
)
"""Mutually exclusive options: giving one drops the configured values of the others."""


@dataclass(frozen=True)
class Setting:
    """A configured option value and its origin: ``"CALCHECK_SEED"``, ``"seed in calcheck.toml"``."""

    option: Option
    value: Any
    where: str


class Settings:
    """Configured option values for all commands, from environment variables and the settings file.

    Parameters
    ----------
    config : Config
        Content of the settings file.
    environment : mapping
        Environment variables.
    commands : mapping
        Options of each command, by the command's name.

    Raises
    ------
    FileError, OptionError
        The file sets an unknown option, an option that is not allowed in files, or an invalid value.
    """

    def __init__(
        self, config: Config, environment: Mapping[str, str], commands: Mapping[str, Sequence[Option]]
    ) -> None:
        self.config = config
        self.used: list[Setting] = []
        """The settings used so far."""
        self._variables = {name: text for name, text in environment.items() if name.startswith(PREFIX) and text}
        self._commands = commands
        self._shared = self._known(config.settings, [each for own in commands.values() for each in own], "")
        self._own: dict[str, dict[str, tuple[str, Any]]] = {}
        for table in config.commands:
            self._take(table)

    def resolve(
        self, command: str, options: Sequence[Option], given: Mapping[str, Any], *, one_of_many: bool = False
    ) -> dict[str, Any]:
        """Return the given options of a command, completed with configured values.

        Variables come first, then the command's own table in the settings file, then the settings for all commands.
        With ``one_of_many``, a value that is valid only for the same option of other metrics is ignored:
        ``CALCHECK_ESTIMATOR=fair`` is for crps.
        """
        said = {name for name, value in given.items() if value is not None and value is not False and value != []}
        held: dict[str, Setting] = {}
        for level in (self._from_variables, self._from_table(command), self._from_file):
            higher = said | set(held)
            free = [each for each in options if each.field not in higher and not _replaced(each.field, higher)]
            held |= {
                each.field: found
                for each in free
                if not (one_of_many and _is_for_others(each, level)) and (found := level(each)) is not None
            }
        self.used += held.values()
        return {**given, **{name: setting.value for name, setting in held.items()}}

    def metric(self, name: str, said: Mapping[str, Any] | None = None) -> Metric[Any]:
        """Return a metric with the options given on the command line, and else with the configured ones."""
        told = self.resolve(name, options_of(METRICS[name]), said or {}, one_of_many=said is None)
        metric: Metric[Any] = build(METRICS[name], told)
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

    def unknown_variables(self) -> Iterator[str]:
        """Yield a warning for each variable that starts with ``CALCHECK_`` but does not set an option."""
        names = {_variable(each) for own in self._commands.values() for each in own} | {FILE, NO_FILE}
        for name in sorted(set(self._variables) - names):
            yield f"the environment variable {name} does not set any option and is ignored.{_near(name, names)}"

    def _from_variables(self, option: Option) -> Setting | None:
        name = _variable(option)
        if (text := self._variables.get(name)) is None:
            return None
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return Setting(option, lines if option.repeated else option.parse(text, name), name)

    def _from_file(self, option: Option, table: str = "") -> Setting | None:
        told = self._own.get(table, {}) if table else self._shared
        if (found := told.get(option.name)) is None:
            return None
        where = self._where(found[0], table)
        return Setting(option, option.take(found[1], where), where)

    def _from_table(self, command: str) -> Any:
        return lambda option: self._from_file(option, command)

    def _where(self, key: str, table: str) -> str:
        return f"{key} in [{table}] of {self.config.path}" if table else f"{key} in {self.config.path}"

    def _take(self, table: str) -> None:
        """Validate the table of a command."""
        name = table.replace("_", "-")
        if name not in self._commands:
            known = [*self._commands, GATES]
            msg = (
                f"{self.config.path}: [{table}] is not a command, a metric or {GATES}."
                f"{_near(name, known) or _there(known)}"
            )
            raise FileError(msg)
        if name in self._own:
            msg = f"{self.config.path}: [{table}] is given twice, once with - and once with _"
            raise FileError(msg)
        self._own[name] = self._known(self.config.commands[table], self._commands[name], name)

    def _known(self, told: Mapping[str, Any], options: Sequence[Option], table: str) -> dict[str, tuple[str, Any]]:
        """Validate a table; return the keys as spelled in the file and the values, by option name."""
        found: dict[str, tuple[str, Any]] = {}
        for key, value in told.items():
            name, where = key.replace("-", "_"), self._where(key, table)
            meant = [option for option in options if option.name == name]
            if not meant:
                known = [option.flag.removeprefix("--") for option in options]
                msg = f"{where} is not an option.{_near(key, known) or _there(known)}"
                raise FileError(msg)
            if name in found:
                msg = f"{where} is set twice: also as {found[name][0]}"
                raise FileError(msg)
            if by_hand := next((option.by_hand for option in meant if option.by_hand), ""):
                msg = (
                    f"{where} is not allowed: {by_hand} cannot be set in a file. Pass {meant[0].flag} on the command"
                    f" line, or set {_variable(meant[0])}"
                )
                raise FileError(msg)
            _require_one(meant, value, where)
            found[name] = (key, value)
        return found


def _is_for_others(option: Option, level: Callable[[Option], Any]) -> bool:
    """Return whether a configured value is invalid for this option but valid for another metric's option."""
    others = (each for metric in METRICS.values() for each in options_of(metric) if each.name == option.name)
    return not _admits(option, level) and any(_admits(each, level) for each in others)


def _admits(option: Option, level: Callable[[Option], Any]) -> bool:
    try:
        level(option)
    except OptionError:
        return False
    return True


def load_settings(
    environment: Mapping[str, str], commands: Mapping[str, Sequence[Option]], *, path: str | None, without: bool
) -> Settings:
    """Return the settings that apply in the working directory, and warn about unknown variables.

    Parameters
    ----------
    environment, commands : mapping
        As in :class:`Settings`.
    path, without : str or None, bool
        Values of ``--config`` and ``--no-config``.
    """
    settings = Settings(_config(environment, path=path, without=without), environment, commands)
    for told in settings.unknown_variables():
        sys.stderr.write(f"calcheck: {strip_control(told)}\n")
    return settings


def _config(environment: Mapping[str, str], *, path: str | None, without: bool) -> Config:
    if path == "":
        msg = "--config needs a file name. To ignore settings files, pass --no-config"
        raise OptionError(msg)
    never = environment.get(NO_FILE, "").lower()
    if never and never not in TRUTHS:
        msg = f"{NO_FILE} takes true or false, got {never!r}"
        raise OptionError(msg)
    for named, none, told in (
        (path, without, "--config and --no-config"),
        (environment.get(FILE), TRUTHS.get(never, False), f"{FILE} and {NO_FILE}"),
    ):
        if named and none:
            msg = f"{told} contradict each other: use only one of them"
            raise OptionError(msg)
        if none:
            return Config()
        if named:
            return read_config(Path(named))
    try:
        here = Path.cwd()
    except OSError:  # the working directory was deleted
        return Config()
    return find_config(here)


def _variable(option: Option) -> str:
    return PREFIX + option.name.upper()


def _replaced(field: str, higher: set[str]) -> bool:
    """Return whether an option that excludes this one was set with higher priority."""
    return any(
        field in part and any(other & higher for other in parts if other is not part)
        for parts in EXCLUSIVE
        for part in parts
    )


def _require_one(options: Sequence[Option], value: Any, where: str) -> None:
    """Raise unless a value is valid for at least one option of a name; each command validates its own when it runs."""
    problems = []
    for option in options:
        try:
            option.take(value, where)
        except OptionError as error:
            problems.append(error)
        else:
            return
    raise problems[0]


def _near(name: str, known: Iterator[str] | Sequence[str] | set[str]) -> str:
    """Return a suggestion of a similar name, or an empty string."""
    from difflib import get_close_matches

    found = get_close_matches(name, sorted(set(known)), n=1)
    return f" Did you mean {found[0]}?" if found else ""


def _there(known: Sequence[str]) -> str:
    return f" Available: {', '.join(dict.fromkeys(known))}." if known else " None are available."
