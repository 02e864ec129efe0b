"""Which source of an option's value counts: the command line, a variable, the settings file; and what they exclude."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.options import Option

LEVELS = ("COMMANDLINE", "ENVIRONMENT", "DEFAULT_MAP")
"""Sources of option values, the one with the highest priority first."""

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


def drop_excluded(context: Any, options: Sequence[Option]) -> None:
    """Drop the values of options that an option from a source with higher priority excludes."""
    higher: set[str] = set()
    for level in LEVELS:
        found = {each.field for each in options if source_of(context, each) == level and context.params[each.field]}
        dropped = {field for field in found if level != LEVELS[0] and is_excluded(field, higher)}
        context.params.update(dict.fromkeys(dropped))
        higher |= found - dropped


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
