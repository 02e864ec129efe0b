"""The rules of `calcheck check`: from its options, else from the settings file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calcheck.cli.metric_names import metric_name
from calcheck.errors import FileError, OptionError
from calcheck.metrics import ALIASES, METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.cli.config_file import Config
    from calcheck.cli.options import RuleOptions
    from calcheck.gate.rules import Rule
    from calcheck.report import Level, Report

    Rules = list[tuple[Rule, Level]]

EXIT_VIOLATED, EXIT_UNJUDGED = 1, 3
TABLES: dict[str, Level] = {"fail-on": "fail", "warn-on": "warn"}


def rules_of(options: RuleOptions, config: Config) -> Rules:
    """Return the rules with their levels; options replace the settings of the same level.

    Raises
    ------
    OptionError, FileError
        A rule is invalid, or names a field that no report has.
    """
    configured = _configured(config)
    found: Rules = []
    for texts, (table, level) in zip((options.fail_on, options.warn_on), TABLES.items(), strict=True):
        try:
            found += [(_rule(text), level) for text in texts or configured[table]]
        except OptionError as error:
            if texts:
                raise
            msg = f"{config.path}, [gates] {table}: {error}"
            raise FileError(msg) from error
    _explain_aliases(found)
    return found


def exit_code(reports: Sequence[Report]) -> int:
    """Return the exit code for gates: 1 if one is violated, else 3 if one cannot be judged, else 0."""
    if any(report.violated("fail") for report in reports):
        return EXIT_VIOLATED
    return EXIT_UNJUDGED if any(report.unjudged("fail") for report in reports) else 0


def parse_rules(fail_on: Sequence[str], warn_on: Sequence[str]) -> Rules:
    """Return the rules in texts, with their levels.

    Raises
    ------
    OptionError
        A rule is invalid, or names a field that no report has.
    """
    found: Rules = [*((_rule(text), "fail") for text in fail_on), *((_rule(text), "warn") for text in warn_on)]
    _explain_aliases(found)
    return found


def _rule(text: str) -> Rule:
    from calcheck.gate.resolution import resolve_rule
    from calcheck.gate.rules import parse

    known = {name: metric.info.result_fields() for name, metric in METRICS.items()}
    for name, metric in METRICS.items():
        if metric.info.alternative == "none":
            known[name].pop("verdict")  # it is always none
    return resolve_rule(parse(text), known, {name: alias.metric for name, alias in ALIASES.items()})


def _explain_aliases(rules: Rules) -> None:
    """Say which metrics the aliases in rules stand for, each once."""
    from calcheck.gate.rules import parse

    for name in dict.fromkeys(name for rule, _ in rules for name in parse(rule.text).metrics()):
        metric_name(name)


def _configured(config: Config) -> dict[str, list[str]]:
    """Return the rules in the settings file as text; a single rule may be given without a list."""
    if unknown := [name for name in config.gates if name not in TABLES]:
        msg = f"{config.path}, [gates]: unknown key {unknown[0]!r}. Available keys: {', '.join(TABLES)}"
        raise FileError(msg)
    return {table: _texts(config.gates.get(table, []), f"{config.path}, [gates] {table}") for table in TABLES}


def _texts(value: Any, where: str) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        msg = f"{where} must be a rule, e.g. 'ece > 0.05', or a list of rules, got {value!r}"
        raise FileError(msg)
    return texts
