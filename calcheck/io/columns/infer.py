"""Which column plays which role: what the user says first, then names that are known, never a guess."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.errors import DataError, OptionError, named_some
from calcheck.io.arrow_arrays import is_number, is_scalar, is_text
from calcheck.io.columns.index import ambiguous_scale, unclear_spreads
from calcheck.io.columns.naming_schemes import NamedForm, forms_of, level_of, quantiles_role
from calcheck.io.columns.options import ERROR, MEANS, SPREADS, STDS, TARGETS, ColumnOptions
from calcheck.io.columns.parameters import find_parameters, possible_conventions
from calcheck.io.columns.roles import (
    GaussianRole,
    QuantilesRole,
    ResidualRole,
    Roles,
    SamplesRole,
    columns_of,
    is_wide,
    list_names,
    pattern_of,
)
from calcheck.io.filters import require_one

if TYPE_CHECKING:
    import pyarrow as pa

    from calcheck.io.columns.index import ColumnIndex
    from calcheck.io.columns.roles import Distributions, Spread

EMBEDDING = r"emb_\d+"
UNCLEAR_PAIRS = {  # and what to do about them
    (
        "0",
        "1",
    ): "may be means and standard deviations, variances, or logs of either. Pass --mean 0 with --std 1, --var 1,"
    " --log-std 1 or --log-var 1",
    ("loc", "scale"): "mean something else in every family. Pass --dist (--dist gaussian, …)",
}
KEYS = {  # by which a tool tells rows apart
    "Nixtla": ("unique_id", "ds", "cutoff"),
    "AutoGluon": ("item_id", "timestamp", "target_name"),
}


def find_roles(columns: ColumnIndex, said: ColumnOptions, *, external: bool = False) -> Roles:
    """Find the roles of a table's columns.

    Parameters
    ----------
    columns : ColumnIndex
        Names and types.
    said : ColumnOptions
        What the user says; it switches off the detection of what it replaces.
    external : bool
        Whether ``said.embedding`` is another file.

    Raises
    ------
    DataError
        A named column is absent, or a role has two candidates.
    OptionError
        Options do not fit each other or the file.
    """
    finder = _Finder(columns, said)
    predictive, tool = finder.predictive()
    x, embedded = finder.inputs(external=external)
    error = getattr(predictive, "error", None)
    target = (error,) if error else finder.target()
    wide = set(x) if embedded and len(x) > 1 else set()
    wide |= {name for form in finder.forms for name in columns_of(form.role)}
    wide |= set(columns_of(predictive)) if is_wide(predictive) else set()
    narrow = _shown(columns.schema, x, wide)
    first = [name for name in (*target, *columns_of(predictive)) if name in narrow]
    narrow = tuple(dict.fromkeys([*first, *narrow]))
    keys = tuple(name for name in KEYS.get(tool, ()) if name in columns.names)
    return Roles(target, predictive, x, embedded, finder.id(), narrow, tool, keys)


def find_input_roles(columns: ColumnIndex, said: ColumnOptions, *, external: bool = False) -> Roles:
    """Find inputs and keys only; other columns need not be sound.

    Raises
    ------
    DataError
        A named column is absent, or the inputs have two candidates.
    """
    finder = _Finder(columns, said)
    x, embedded = finder.inputs(external=external)
    narrow = _shown(columns.schema, x, set(x) if embedded and len(x) > 1 else set())
    return Roles((), None, x, embedded, finder.id(), narrow)


def find_sample_roles(columns: ColumnIndex, said: ColumnOptions, *, external: bool = False) -> Roles:
    """Find targets and inputs only, and keys where an embedding is joined by them; predictions need not be sound.

    Raises
    ------
    DataError
        A named column is absent, or targets or inputs have two candidates, or there are no targets.
    """
    finder = _Finder(columns, said)
    target = finder.target()
    if not target:
        raise DataError(columns.missing("target"))
    x, embedded = finder.inputs(external=external)
    narrow = _shown(columns.schema, x, set(x) if embedded and len(x) > 1 else set())
    return Roles(target, None, x, embedded, finder.id() if external else None, narrow)


OTHER_ROLES = {"sample": find_sample_roles, "inputs": find_input_roles}
"""What is found of files that are read for something else than predictions."""


def _shown(schema: pa.Schema, x: tuple[str, ...], wide: set[str]) -> tuple[str, ...]:
    """List the columns of one value a row that are worth showing."""
    return tuple(
        column.name
        for column in schema
        if column.name and column.name not in wide and is_scalar(column.type) and not _holds_vectors(column, x)
    )


class _Finder:
    def __init__(self, columns: ColumnIndex, said: ColumnOptions) -> None:
        self.columns = columns
        self.said = said
        self.forms = forms_of(columns.free)

    def target(self) -> tuple[str, ...]:
        if self.said.truth:
            return ()
        if self.said.target:
            return self.columns.listed("target", self.said.target)
        found = self.columns.one_of("target", TARGETS)
        return (found,) if found else ()

    def id(self) -> str | None:
        if self.said.id:
            return self.columns.existing("id", self.said.id)
        return "id" if "id" in self.columns.names else None

    def predictive(self) -> tuple[Distributions | None, str]:
        """Return the predictive distributions, and who names columns so."""
        said, columns = self.said, self.columns
        if said.dist:
            return find_parameters(columns, said), ""
        if said.samples:
            return SamplesRole(tuple(columns.group("samples", part) for part in said.samples.split(","))), ""
        if said.quantiles:
            return self.quantiles(columns.group("quantiles", said.quantiles)), ""
        if said.error or self._has_errors_only():
            return self.residuals(), ""
        if said.mean or any(getattr(said, kind) for kind in SPREADS):
            return self.gaussian(), ""
        return self.by_names()

    def by_names(self) -> tuple[Distributions | None, str]:
        """Find the one form of predictions that column names tell."""
        found = [*self._chosen_forms()]
        if self.columns.is_vector("samples"):
            found.append(NamedForm("", "", SamplesRole((("samples",),))))
        mean, std = self.columns.one_of("mean", MEANS), self.columns.one_of("std", STDS)
        gaussian = GaussianRole((mean,), (std,), "std", self.said.error_dist) if mean and std else None
        options = [(f"mean {mean!r} with std {std!r}", f"--mean {mean} --std {std}")] if gaussian else []
        options += [self._option(form) for form in found]
        if len(options) > 1:
            (first, one), (second, other) = options[:2]
            msg = f"two forms of predictions: {first}, and {second}. Pass {one}, or {other}"
            raise DataError(msg)
        if gaussian or not found:
            return gaussian, ""
        return found[0].role, found[0].tool

    def _chosen_forms(self) -> list[NamedForm]:
        """List what column names tell of one model: the one that was named, or the only one there is."""
        forms, model = self.forms, self.said.model
        whose = list(dict.fromkeys(form.match for form in forms))
        if model is None:
            require_one(whose, "models or targets", "--model {!r}")
            return forms
        chosen = [form for form in forms if form.match == model]
        if not chosen:
            known = named_some(filter(None, whose))
            told = f"but {known}" if known else "nor any column of models, or columns named after one"
            msg = f"--model: there is no model {model!r}, {told}"
            raise DataError(msg)
        return chosen

    def _option(self, form: NamedForm) -> tuple[str, str]:
        """Name a form, and the option that chooses it."""
        what = "samples" if isinstance(form.role, SamplesRole) else "quantiles"
        names = columns_of(form.role)
        return f"{what} {list_names(names)!r}", f"--{what} {pattern_of(names, self.columns.names) or ','.join(names)!r}"

    def quantiles(self, columns: tuple[str, ...]) -> QuantilesRole:
        """Read the levels of columns in their names."""
        levels = {level_of(name): name for name in columns}
        known = {level: name for level, name in levels.items() if level is not None}
        if len(known) < len(columns):
            odd = next((name for name in columns if level_of(name) is None), columns[0])
            msg = (
                f"--quantiles: the name of column {odd!r} does not tell its level, or two tell the same (q_0.05, 0.05)"
            )
            raise OptionError(msg)
        return quantiles_role(known)

    def _has_errors_only(self) -> bool:
        """Tell whether there is a column of errors, and neither targets nor predictions."""
        said = self.said
        if said.target or said.truth or said.mean or ERROR not in self.columns.free:
            return False
        found = {*TARGETS, *MEANS, "samples"} & set(self.columns.free)
        spread = any(getattr(said, kind) for kind in SPREADS) or self.columns.one_of("std", STDS)
        return bool(spread) and not found and not self.forms

    def residuals(self) -> ResidualRole:
        """Complete what was said of errors and spreads."""
        kind, spread = self.spread()
        if len(spread) > 1:
            msg = f"--error names one column and --{kind.replace('_', '-')} {len(spread)}: give one each"
            raise OptionError(msg)
        return ResidualRole(
            self.columns.existing("error", self.said.error or ERROR), spread[0], kind, self.said.error_dist
        )

    def spread(self) -> tuple[Spread, tuple[str, ...]]:
        """Find the columns of standard deviations, or of what was said to be there in their place."""
        kinds: tuple[Spread, ...] = ("std", "var", "log_std", "log_var")
        for kind in kinds:
            if named := getattr(self.said, kind):
                return kind, self.columns.listed(kind, named)
        return "std", self.columns.existing_of("std", STDS)

    def gaussian(self) -> GaussianRole:
        """Complete what was said of means and spreads."""
        said, columns = self.said, self.columns
        mean = columns.listed("mean", said.mean) if said.mean else columns.existing_of("mean", MEANS)
        kind, spread = self.spread()
        if len(mean) != len(spread):
            msg = (
                f"--mean names {len(mean)} columns and --{kind.replace('_', '-')} {len(spread)}: give one a target each"
            )
            raise OptionError(msg)
        return GaussianRole(mean, spread, kind, said.error_dist)

    def inputs(self, *, external: bool) -> tuple[tuple[str, ...], bool]:
        """Find the embedding or inputs, and say which of them they are."""
        said, columns = self.said, self.columns
        if said.inputs:
            return columns.listed("inputs", said.inputs), False
        if external:
            return (), True
        if said.embedding:
            return columns.group("embedding", said.embedding), True
        wide = tuple(columns.matching(EMBEDDING))
        if wide and "embedding" in columns.names:
            msg = f"two columns may be the embedding: 'embedding' and {list_names(wide)!r}. Pass --embedding"
            raise DataError(msg)
        return ("embedding",) if "embedding" in columns.names else wide, True


def missing_target(columns: ColumnIndex) -> str:
    """Say that no column holds targets."""
    return (
        "no column is known to hold the target. Pass --target COLUMN, or --truth FILE if another file has them"
        f" (columns: {columns.listed_names()})"
    )


def missing_predictions(columns: ColumnIndex, said: ColumnOptions) -> str:
    """Say that no column holds predictive distributions, and what to do about it."""
    if (mean := columns.one_of("mean", MEANS)) is not None:
        only = "" if unclear_spreads(columns.free) else f"there are point forecasts only, {mean!r}: "
        return only + columns.missing("std")
    for pair, told in UNCLEAR_PAIRS.items():
        if set(pair) <= set(columns.free):
            return f"columns {pair[0]!r} and {pair[1]!r} {told}"
    if columns.one_of("std", STDS):
        return f"{columns.missing('mean')}; errors y - mean will do: --error COLUMN"
    if not said.names_form and (possible := possible_conventions(columns)):
        return f"the columns may be parameters of distributions. Pass --dist with one of {', '.join(possible)}"
    if not said.names_form and (unclear := unclear_spreads(columns.free)):
        return f"{ambiguous_scale(unclear)}; and --mean COLUMN (columns: {columns.listed_names()})"
    return (
        "no columns are known to hold predictions. Pass --mean and --std, --samples, --quantiles, or --dist"
        f" (columns: {columns.listed_names()})"
    )


def _holds_vectors(column: pa.Field, x: tuple[str, ...]) -> bool:
    """Tell whether a column of text is the embedding, written as text."""
    return column.name in x and is_text(column.type) and not is_number(column.type)
