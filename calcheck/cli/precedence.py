"""Which source of an option's value counts: the command line, a variable, the settings file; what each excludes."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from calcheck.errors import OptionError
from calcheck.options import choices_of
from calcheck.render import FORMATS, formats_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.options import Option

LEVELS = ("COMMANDLINE", "ENVIRONMENT", "DEFAULT_MAP")
"""Sources of option values, the one with the highest priority first."""

DOCUMENTS = frozenset({".xlsx", ".xls", ".ods", ".pdf", ".docx"})
"""Extensions of files that other programs open and that reports are often wanted in."""

_SPREAD = frozenset({"std", "var", "log_std", "log_var"})
EXCLUSIVE: tuple[tuple[frozenset[str], ...], ...] = (
    (
        _SPREAD | {"mean", "min_std", "error_dist"},
        frozenset({"dist", "param"}),
        frozenset({"samples"}),
        frozenset({"quantiles"}),
    ),
    *(
        (frozenset({"lower", "upper", "intervals"}), frozenset({other}))
        for other in (*sorted(_SPREAD), "min_std", "error_dist", "dist", "param", "samples", "quantiles")
    ),
    (frozenset({"lower", "upper"}), frozenset({"intervals"})),
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


def drop_excluded(context: Any, options: Sequence[Option]) -> None:
    """Drop the values of options that an option from a source with higher priority excludes."""
    higher: set[str] = set()
    for level in LEVELS:
        found = {each.field for each in options if source_of(context, each) == level and context.params[each.field]}
        dropped = {field for field in found if level != LEVELS[0] and is_excluded(field, higher)}
        context.params.update(dict.fromkeys(dropped))
        higher |= found - dropped


def select_format(context: Any, options: Sequence[Option]) -> None:
    """Set the format of the report to that of the output file's suffix, in place of a configured format.

    Raises
    ------
    OptionError
        The suffix contradicts ``--format``, or the command has no such format.
    """
    declared = {each.field: each for each in options}
    output = context.params.get("output")
    if "format" not in declared or not output:
        return
    given = context.params["format"] if source_of(context, declared["format"]) == LEVELS[0] else None
    if not (suffixed := formats_of(output)):
        _require_format(output, given)
        return
    if given is not None and given not in suffixed:
        msg = (
            f"--format {given} and --output {output} contradict each other: its extension selects {suffixed[0]}. Omit"
            " --format, or use another extension"
        )
        raise OptionError(msg)
    available = choices_of(declared["format"].hint)
    if suffixed[0] not in available:
        msg = (
            f"--output {output} selects the format {suffixed[0]}, which {context.command_path} does not have. Its"
            f" formats: {', '.join(available)}"
        )
        raise OptionError(msg)
    context.params["format"] = given or suffixed[0]


def _require_format(output: str, given: str | None) -> None:
    """Raise if the suffix of an output file promises a document that no format is, and the format is not given either.

    Raises
    ------
    OptionError
        The suffix is one of ``DOCUMENTS``.
    """
    suffix = PurePath(output).suffix.lower()
    if given is None and suffix in DOCUMENTS:
        known = ", ".join(dict.fromkeys(each.suffixes[0] for each in FORMATS.values()))
        msg = f"--output {output}: no format has the extension {suffix}. Use one of {known}, or pass --format too"
        raise OptionError(msg)


def source_of(context: Any, option: Option) -> str:
    """Return the source of an option's value: a member of ``LEVELS``, or ``"DEFAULT"``."""
    source = context.get_parameter_source(option.field)
    return source.name if source is not None else "DEFAULT"


def is_excluded(field: str, higher: set[str]) -> bool:
    """Return whether an option that excludes this one was set with higher priority."""
    return any(
        field in part and any(other & higher for other in parts if other is not part)
        for parts in EXCLUSIVE
        for part in parts
    )
