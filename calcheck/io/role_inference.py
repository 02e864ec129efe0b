"""The roles of columns, inferred from their names."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from shlex import quote
from string import digits
from typing import Literal

import pyarrow as pa

from calcheck.errors import DataError, OptionError, listed_columns, named_some, with_suggestion
from calcheck.io import column_roles, interval_columns, naming_schemes, parameter_columns
from calcheck.io.arrow_columns import is_date, is_number, is_scalar, is_text, is_vector
from calcheck.io.column_names import ERROR, MEANS, SPREADS, STDS, TARGETS, VARIANCES, ColumnOptions
from calcheck.io.column_roles import Distributions
from calcheck.io.filters import require_one
from calcheck.io.naming_schemes import ColumnIndex
from calcheck.options import flag_of
from calcheck.typing import AnyArray

Grouping = Literal["time", "cluster"]

TIMES = frozenset(
    (
        *("date", "datetime", "time", "timestamp", "ds", "day", "week", "month", "year", "hour"),
        *("valid_time", "target_time", "target_date", "target_end_date"),
        *("forecast_date", "reference_date", "origin_date", "init_time", "issue_time"),
    )
)  # Names of columns of times
KEY_COLUMNS = frozenset(
    (
        *("patient", "subject", "person", "participant", "user", "customer", "household"),
        *("location", "station", "site", "region", "county", "state", "country"),
        *("series", "item", "store", "sensor", "device", "machine", "engine", "unit"),
        *("group", "cluster", "batch", "scene", "scan", "image", "molecule", "scaffold"),
    )
)  # Names of columns of keys, also with _id, _name or _number at the end
NO_DRAWS = {"", "x", "feat", "feature", "input", "emb", "embedding", "dim", "pc"}  # Names of numbered columns
FEWEST_DRAWS = 3  # Minimum number of numbered columns that may be draws
ENDS = ("_id", "_name", "_number", "id")
OBSERVED = ("target", "obs", "observed", "observation", "measured", "measurement")
UNCERTAIN = ("err", "error", "unc", "uncertainty", "sigma", "std", "sd", "stderr", "noise")


def grouping_columns(schema: pa.Schema) -> list[str]:
    """Return the columns of a file whose rows may depend on each other: of times, and of keys that may repeat."""
    kinds = {each.name: (is_date(each.type), is_text(each.type) or pa.types.is_integer(each.type)) for each in schema}
    return [name for name, (dates, keys) in kinds.items() if grouping_of(name, is_date=dates, is_key=keys) is not None]


def grouping_of(name: str, *, is_date: bool, is_key: bool) -> Grouping | None:
    """Return whether a column holds times or keys, by its type and its name; None if neither.

    >>> grouping_of("Patient_ID", is_date=False, is_key=True), grouping_of("age", is_date=False, is_key=True)
    ('cluster', None)
    """
    word = name.lower()
    if is_date or (is_key and word in TIMES):
        return "time"
    stems = {word, *(word.removesuffix(end) for end in ENDS)}
    return "cluster" if is_key and stems & KEY_COLUMNS else None


def only_increases(values: AnyArray) -> bool:
    """Return whether values are numbers that never fall from row to row, and rise at some.

    >>> import numpy as np
    >>> only_increases(np.array([1, 1, 2])), only_increases(np.array([1, 1])), only_increases(np.array([1, 3, 2]))
    (True, False, False)
    """
    is_number = values.dtype.kind in "iuf" and values.ndim == 1 and len(values) > 0
    return bool(is_number and values[0] < values[-1] and (values[:-1] <= values[1:]).all())


EMBEDDING = r"emb_\d+"
INPUTS = r"input_\d+"
UNCLEAR_PAIRS = {
    ("0", "1"): "may be means and standard deviations, variances, logs of either, or limits. Pass --mean 0 with"
    " --std 1, --var 1, --log-std 1 or --log-var 1. crepes writes limits: calcheck {file} --lower 0 --upper 1 --level"
    " 0.9; CatBoost variances: calcheck {file} --mean 0 --var 1",
    ("loc", "scale"): "have a different meaning in each family. Pass --dist (--dist gaussian, …): NGBoost writes them"
    " for its default, the normal distribution, as in calcheck {file} --dist gaussian",
    ("knowledge_uncertainty", "data_uncertainty"): "are variances of CatBoost, whose sum is that of targets: add a"
    " column with it, total, as in calcheck {file} --var total",
}  # Ambiguous pairs of columns, with the message about them
RATES = ("mu", "rate", "lam", "lambda")
STANDARD_ERRORS = ("se.fit", "se", "mean_se", "variance.estimates", "Est.Error", "std.error", ".std_error", "stderr")
RESIDUAL_STD = "residual.scale"  # As ``predict(se.fit = TRUE)`` of R writes it
KEYS = {  # Columns that identify rows, by tool
    "Nixtla": ("unique_id", "ds", "cutoff"),
    "AutoGluon": ("item_id", "timestamp", "target_name"),
}


def find_roles(
    columns: ColumnIndex, options: ColumnOptions, *, external: bool = False, dependence: Sequence[str] = ()
) -> column_roles.Roles:
    """Return the roles of the columns of a table."""
    finder = _Finder(columns, options)
    predictive, tool = finder.predictive()
    x, embedded = finder.inputs(external=external, predictive=predictive)
    error = getattr(predictive, "error", None)
    target = (error,) if error else finder.target(dependence, predictive)
    _require_different(columns, target, predictive)
    wide = set(x) if embedded and len(x) > 1 else set()
    wide |= {name for form in finder.forms for name in column_roles.columns_of(form.role)}
    wide |= set(column_roles.columns_of(predictive)) if column_roles.is_wide(predictive) else set()
    narrow = _shown(columns.schema, x, wide, (*target, *column_roles.columns_of(predictive)))
    keys = tuple(name for name in KEYS.get(tool, ()) if name in columns.names)
    observed = finder.observed(has_location=not error and not isinstance(predictive, column_roles.ResidualRole))
    inferred = isinstance(predictive, column_roles.GaussianRole) and not (options.names_form or options.target or tool)
    unusual = inferred and not {*target, *column_roles.columns_of(predictive)} <= {*TARGETS, *MEANS, *STDS}
    return column_roles.Roles(target, predictive, x, embedded, finder.id(), narrow, tool, keys, unusual, observed)


def find_input_roles(
    columns: ColumnIndex, options: ColumnOptions, *, external: bool, targets: bool
) -> column_roles.Roles:
    """Return the roles of inputs and keys, and of targets of a sample; predictions are not checked."""
    finder = _Finder(columns, options)
    target = finder.sample() if targets else ()
    if targets and not target:
        raise DataError(columns.missing("target"))
    x, embedded = finder.inputs(external=external)
    narrow = _shown(columns.schema, x, set(x) if embedded and len(x) > 1 else set())
    return column_roles.Roles(target, None, x, embedded, finder.id() if external or not targets else None, narrow)


def _shown(schema: pa.Schema, x: tuple[str, ...], wide: set[str], first: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the scalar columns to show beside results, with ``first`` and the inputs before the others."""
    shown = [
        column.name
        for column in schema
        if column.name and column.name not in wide and is_scalar(column.type)
        if not (column.name in x and is_text(column.type))  # vectors written as text
    ]
    return tuple(dict.fromkeys([*(name for name in (*first, *x) if name in shown), *shown]))


def _require_different(columns: ColumnIndex, target: tuple[str, ...], predictive: Distributions | None) -> None:
    """Raise if a column has two roles."""
    by_option = column_roles.columns_by_option(predictive)
    found: dict[str, str] = {}
    for role, names in (by_option if "error" in by_option else {"target": target, **by_option}).items():
        for name in names:
            if (other := found.setdefault(name, role)) != role:
                remedy = f"Pass {flag_of(other)} and {flag_of(role)} with different columns"
                msg = f"column {name!r} is both the {other} and the {role}. {remedy} {listed_columns(columns.names)}"
                raise DataError(msg)


class _Finder:
    def __init__(self, columns: ColumnIndex, options: ColumnOptions) -> None:
        self.columns = columns
        self.options = options
        self.forms = naming_schemes.forms_of(columns.free)

    def target(self, dependence: Sequence[str] = (), predictive: Distributions | None = None) -> tuple[str, ...]:
        """Return the columns of targets: as stated, with a known name, or those whose names the predictions have."""
        if self.options.truth or self.options.target == "":
            return ()
        if self.options.target:
            return self.columns.parse_list("target", self.options.target)
        found = self.columns.one_of("target", [name for name in TARGETS if name not in dependence])
        if found and not (len(self._by_target) > 1 and predictive == self._moments_by_target()):
            return (found,)
        if predictive is not None and predictive == self._moments_by_target():
            return tuple(self._by_target)
        if not isinstance(predictive, column_roles.ParametersRole):
            return ()
        numbered = naming_schemes.numbered_targets(self.columns.free)
        return numbered if len(numbered) == len(predictive.columns.get("loc", ())) else ()

    def sample(self) -> tuple[str, ...]:
        """Return the columns of targets of a sample, which needs no predictions."""
        known = self.target() or tuple(self._by_target) or naming_schemes.numbered_targets(self.columns.free)
        return () if self.options.target == "" else known

    def id(self) -> str | None:
        if self.options.id:
            return self.columns.existing("id", self.options.id)
        return "id" if "id" in self.columns.names else None

    def observed(self, *, has_location: bool) -> column_roles.ObservationRole | None:
        """Return the columns or numbers that say how targets were observed; None if nothing says it."""
        options = self.options
        if not (options.target_std or options.clip or options.rounded):
            return None
        if not has_location and (options.clip or options.rounded):
            raise DataError("--clip and --rounded need targets, and there are errors y - mean. Pass targets and means")
        limits = (options.clip or ",").split(",")
        return column_roles.ObservationRole(
            self._given_list("target_std", options.target_std),
            tuple(self._given("clip", each) for each in limits[::2]),
            tuple(self._given("clip", each) for each in limits[1::2]),
            self._given_list("rounded", options.rounded),
        )

    def _given_list(self, role: str, text: str | None) -> tuple[column_roles.Given, ...]:
        """Return the columns or numbers of one or several targets."""
        whole = text is None or text in self.columns.names
        return tuple(self._given(role, each) for each in ([text or ""] if whole else str(text).split(",")))

    def _given(self, role: str, text: str) -> column_roles.Given:
        """Return a column or a number; None for an empty text."""
        text = text.strip()
        if not text:
            return None
        try:
            return text if text in self.columns.names else float(text)
        except ValueError:
            return self.columns.existing(flag_of(role), text)

    def predictive(self) -> tuple[Distributions | None, str]:
        """Return the role of the predictive distributions, and the tool with such column names."""
        options, columns = self.options, self.columns
        if options.dist:
            return parameter_columns.find_parameters(columns, options), ""
        if options.samples:
            return column_roles.SamplesRole(
                tuple(columns.group("samples", part) for part in options.samples.split(","))
            ), ""
        if options.quantiles:
            return self.quantiles(columns.group("quantiles", options.quantiles)), ""
        if options.error or self._has_errors_only():
            return self.residuals(), ""
        return self.moments_or_intervals() or self.by_names()

    def moments_or_intervals(self) -> tuple[Distributions | None, str] | None:
        """Return the role of means and spreads, or of intervals, if an option names one of their columns."""
        options, columns = self.options, self.columns
        if options.lower or options.intervals:
            return interval_columns.find_intervals(columns, options), ""
        spread = any(getattr(options, kind) for kind in SPREADS)
        if not spread and not options.mean:
            return None
        only_point = not spread and columns.one_of("std", STDS) is None
        return (interval_columns.find_intervals(columns, options) if only_point else None) or self.gaussian(), ""

    def by_names(self) -> tuple[Distributions | None, str]:
        """Return the role of the predictions by known column names, and the tool that uses them."""
        found = [*self._chosen_forms()]
        if self.columns.is_vector("samples"):
            found.append(naming_schemes.NamedForm("", "", column_roles.SamplesRole((("samples",),))))
        mean, std = self.columns.one_of("mean", MEANS), self.columns.one_of("std", STDS)
        gaussian = column_roles.GaussianRole((mean,), (std,), "std", self.options.error_dist) if mean and std else None
        choices = [(f"mean {mean!r} with std {std!r}", f"--mean {mean} --std {std}")] if gaussian else []
        for form in found:
            ((what, names),) = column_roles.columns_by_option(form.role).items()
            pattern = column_roles.pattern_of(names, self.columns.names) or ",".join(names)
            choices.append((f"{what} {column_roles.list_names(names)!r}", f"--{what} {pattern!r}"))
        if len(choices) > 1:
            (first, one), (second, other) = choices[:2]
            raise DataError(f"there are two forms of predictions: {first}, and {second}. Pass {one}, or {other}")
        if gaussian and len(self._by_target) > 1 and (mean, std) in self._by_target.values():
            return self._moments_by_target(), ""
        if gaussian:  # intervals state less than means with standard deviations
            return gaussian, ""
        if found:
            return found[0].role, found[0].tool
        return (
            interval_columns.find_intervals(self.columns, self.options)
            or naming_schemes.percent_quantiles(self.columns.free)
            or self._moments_by_target()
            or (self.gaussian() if mean and self._variance() else None)
        ), ""

    @cached_property
    def _by_target(self) -> dict[str, tuple[str, str]]:
        """The columns of means and standard deviations by the target in their names: those of the known targets."""
        found = naming_schemes.moments_by_target(self.columns.free)
        if not found:
            return {}
        target = self.options.target
        named = self.columns.parse_list("target", target) if target else ()
        one = None if named or self.options.truth else self.columns.one_of("target", TARGETS)
        wanted = named or (naming_schemes.spelled_like(one, found) if one else tuple(found))
        return {name: found[name] for name in wanted if name in found} if set(wanted) <= set(found) else {}

    def _moments_by_target(self) -> column_roles.GaussianRole | None:
        """Return the role of means and standard deviations with the name of a target in theirs; None without them."""
        if not self._by_target:
            return None
        means, spreads = zip(*self._by_target.values(), strict=True)
        return column_roles.GaussianRole(means, spreads, "std", self.options.error_dist)

    def _chosen_forms(self) -> list[naming_schemes.NamedForm]:
        """Return the recognized predictions of one model: the one given, or the only one."""
        forms, model = self.forms, self.options.model
        models = list(dict.fromkeys(form.match for form in forms))
        if model is None:
            require_one(models, "models or targets", "--model {!r}, or compare them with calcheck compare")
            return forms
        chosen = [form for form in forms if form.match == model]
        if not chosen:
            known = named_some(filter(None, models))
            hint = f"models: {known}" if known else "and no column of models or column names with a model"
            msg = with_suggestion(f"--model: there is no model {model!r} ({hint})", model, filter(None, models))
            raise DataError(msg)
        return chosen

    def quantiles(self, columns: tuple[str, ...]) -> column_roles.QuantilesRole:
        """Return the role of quantile columns, with the levels in their names."""
        levels = naming_schemes.levels_of(columns)
        known = {level: name for name, level in levels.items() if level is not None}
        if len(known) < len(columns):
            odd = next((name for name, level in levels.items() if level is None), columns[0])
            msg = f"--quantiles: column name {odd!r} has no level (as in q_0.05), or two names have the same level"
            raise OptionError(msg)
        return naming_schemes.quantiles_role(known)

    def _has_errors_only(self) -> bool:
        """Return whether there are errors with spreads, but neither targets nor predictions."""
        options = self.options
        if options.target or options.truth or options.mean or ERROR not in self.columns.free:
            return False
        found = {*TARGETS, *MEANS, "samples"} & set(self.columns.free)
        spread = any(getattr(options, kind) for kind in SPREADS) or self.columns.one_of("std", STDS)
        return bool(spread) and not found and not self.forms

    def residuals(self) -> column_roles.ResidualRole:
        """Return the role of errors and spreads, given by options or known names."""
        kind, spread = self.spread()
        if len(spread) > 1:
            msg = f"--error names 1 column and --{kind.replace('_', '-')} {len(spread)}. Name one column for each"
            raise OptionError(msg)
        return column_roles.ResidualRole(
            self.columns.existing("error", self.options.error or ERROR), spread[0], kind, self.options.error_dist
        )

    def spread(self) -> tuple[column_roles.Spread, tuple[str, ...]]:
        """Return the kind and columns of spreads: by option, else the known column of standard deviations."""
        kinds: tuple[column_roles.Spread, ...] = ("std", "var", "log_std", "log_var")
        for kind in kinds:
            if named := getattr(self.options, kind):
                return kind, self.columns.parse_list(kind, named)
        if self.columns.one_of("std", STDS) is None and (variance := self._variance()):
            return "var", (variance,)
        return "std", self.columns.require_one_of("std", STDS)

    def _variance(self) -> str | None:
        """Return the only column of numbers that is named a variance, if no other may be a spread or a limit."""
        free, schema = self.columns.free, self.columns.schema
        found = [name for name in VARIANCES if name in free and is_number(schema.field(name).type)]
        others = {*naming_schemes.possible_spreads(free), *interval_columns.named_pairs(free)} - set(found)
        return found[0] if len(found) == 1 and not others else None

    def gaussian(self) -> column_roles.GaussianRole:
        """Return the role of means and spreads, given by options or known names."""
        options, columns = self.options, self.columns
        mean = columns.parse_list("mean", options.mean) if options.mean else columns.require_one_of("mean", MEANS)
        kind, spread = self.spread()
        if len(mean) != len(spread):
            names = f"--mean names {len(mean)} columns and --{kind.replace('_', '-')} {len(spread)}"
            raise OptionError(f"{names}. Name one column per target for each")
        return column_roles.GaussianRole(mean, spread, kind, options.error_dist)

    def inputs(self, *, external: bool, predictive: Distributions | None = None) -> tuple[tuple[str, ...], bool]:
        """Return the columns of the inputs, and whether they are an embedding, which no described distribution is."""
        options, columns = self.options, self.columns
        if options.inputs:
            return columns.parse_list("inputs", options.inputs), False
        if external:
            return (), True
        if options.embedding:
            return columns.group("embedding", options.embedding), True
        described = column_roles.columns_of(predictive)
        if described == ("embedding",):  # an array of draws, whose name in a .npy file means nothing
            return (), True
        wide, inputs = (tuple(columns.matching(names)) for names in (EMBEDDING, INPUTS))
        embedding = ("embedding",) if "embedding" in columns.names else wide
        if wide and embedding != wide:
            names = column_roles.list_names(wide)
            raise DataError(f"two columns may hold the embedding: 'embedding' and {names!r}. Pass --embedding")
        if embedding and inputs:
            names = f"{column_roles.list_names(embedding)!r} and {column_roles.list_names(inputs)!r}"
            raise DataError(f"there are an embedding and inputs, {names}. Pass --embedding or --inputs")
        return (inputs, False) if inputs else (embedding, True)


def measurement_errors(names: Iterable[str], target: tuple[str, ...]) -> list[str]:
    """Return the names that are those of the standard deviations of measurement errors.

    >>> measurement_errors(["y_err", "age", "sigma_temp", "model_std"], ("temp",))
    ['y_err', 'sigma_temp']
    """
    stems = {*OBSERVED, *TARGETS, *target}
    known = {word for stem in stems for end in UNCERTAIN for word in (f"{stem}_{end}", f"{end}_{stem}", f"{stem}{end}")}
    return [name for name in names if name.lower() in {word.lower() for word in known}]


def missing_predictions(
    columns: ColumnIndex, options: ColumnOptions, file: str, held: tuple[int, int] | None = None
) -> str:
    """Return the message that no predictive distributions were found in a file, and what to do."""
    stated = options.names_form or naming_schemes.unclear_spreads(columns.free)
    special = "" if stated else interval_columns.missing_level(columns, file, held) or _mixture_columns(columns)
    errors = [] if stated or special else [each for each in STANDARD_ERRORS if each in columns.free]
    if not errors:
        limits = "" if stated else interval_columns.possible_limits(columns, file)
        return special or limits or _unrecognized(columns, options, file)
    return _of_mean_alone(errors[0], columns, file)


def _of_mean_alone(name: str, columns: ColumnIndex, file: str) -> str:
    """Return the message that a standard error may lack the noise of the targets, and how to add it."""
    command = f"calcheck {quote(file)} --{'var' if name.startswith('var') else 'std'} {name!r}"
    linear, other = (repr(RESIDUAL_STD), "that of a linear model"), ("STD", "with standard deviation STD")
    noise, described = linear if RESIDUAL_STD in columns.free else other
    return (
        f"{name!r} may be the uncertainty of the mean alone, without the noise of the targets: if it is that of new"
        f" targets, {command}; else with the noise, {described}, {command} --target-std {noise}"
    )


def _unrecognized(columns: ColumnIndex, options: ColumnOptions, file: str) -> str:
    """Return the message that no columns of distributions were recognized, and what may be meant."""
    if unclear_names := _unclear_names(columns, file):
        return unclear_names
    limits = "" if options.names_form else interval_columns.possible_limits(columns, file)
    mean = None if limits else columns.one_of("mean", MEANS)
    if limits or mean is not None:
        only = "" if naming_schemes.unclear_spreads(columns.free) else f"there are only point forecasts, {mean!r}: "
        is_rate = not options.names_form and mean in RATES
        rate = f"; if it is the rate of counts, calcheck {quote(file)} --dist poisson" if is_rate else ""
        return limits or f"{only}{columns.missing('std')}{rate}"
    if columns.one_of("std", STDS):
        return columns.missing("mean", ", or pass errors y - mean as --error COLUMN")
    if not options.names_form and (possible := parameter_columns.possible_conventions(columns)):
        meant = f" with one of {', '.join(possible)}" if len(possible) > 1 else ""
        command = f"as in calcheck {quote(file)} --dist {possible[0]}"
        return f"the columns may be parameters of distributions. Pass --dist{meant}, {command}"
    if not options.names_form and (unclear := naming_schemes.unclear_spreads(columns.free)):
        return f"{naming_schemes.ambiguous_scale(unclear)}; and --mean COLUMN (columns: {columns.listed_names()})"
    draws = [field.name for field in columns.schema if field.name in columns.free and is_vector(field.type)]
    stems = Counter(name.rstrip(digits) for name in columns.free if name[-1:].isdigit())
    drawn_stems = (stem for stem, count in stems.items() if count >= FEWEST_DRAWS)
    draws += [f"{stem}*" for stem in drawn_stems if stem.rstrip("_.") not in NO_DRAWS]
    drawn = f"--samples {quote(draws[0])}" if len(draws) == 1 else ""
    command = f"calcheck {quote(file)} {drawn}" if options == ColumnOptions() else f"pass {drawn}"
    draw_hint = f" If {draws[0]!r} holds draws of y, {command}" if drawn else ""
    return (
        "no columns were recognized as predictions. Pass --mean and --std, --samples, --quantiles, or --dist"
        f" (columns: {columns.listed_names()}).{draw_hint}"
    ).removesuffix(".") + ("" if draw_hint else columns.perhaps())


def _unclear_names(columns: ColumnIndex, file: str) -> str:
    """Return the message about columns whose names have several meanings; empty if there are none."""
    if {"schema_version", "calcheck", "results"} <= {*columns.free}:
        return "this is a report of calcheck, not a file of predictions. To compare two reports: calcheck diff OLD NEW"
    numbered = [name for name in columns.free if name.isdecimal()]
    if {"0", "1", "2"} <= set(numbered):
        last = numbered[-1]
        return (
            f"columns '0' … {last!r} may be draws or quantiles: if draws, calcheck {quote(file)} --samples '[0-9]*'; if"
            f" '0' and {last!r} are quantiles at 0.05 and 0.95, calcheck {quote(file)} --lower 0 --upper {last} --level"
            " 0.9, or name all by their levels, as q_0.05"
        )
    for pair, meaning in UNCLEAR_PAIRS.items():
        if set(pair) <= set(columns.free):
            return f"columns {pair[0]!r} and {pair[1]!r} {meaning.format(file=quote(file))}"
    return ""


def _mixture_columns(columns: ColumnIndex) -> str:
    """Return the message that two columns hold several means and standard deviations per row; empty if none do."""
    spread = columns.one_of("std", STDS)
    vectors = [field.name for field in columns.schema if field.name in columns.free and is_vector(field.type)]
    if spread not in vectors or len(vectors) != 2:  # noqa: PLR2004 - a pair
        return ""
    mean = next(name for name in vectors if name != spread)
    return (
        f"columns {mean!r} and {spread!r} hold several numbers per row. For an ensemble or a mixture of normal"
        f" distributions, pass --dist mixture --param loc={mean} --param scale={spread}"
    )
