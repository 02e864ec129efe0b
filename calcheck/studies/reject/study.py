"""Withheld predictions: risk-coverage curves of criteria, and metrics without the most uncertain rows."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from calcheck.core.text import percent
from calcheck.core.validation import require_finite
from calcheck.dependence.clusters import dependence_warnings
from calcheck.errors import DataError, Message, OptionError, absent_value, listed_columns
from calcheck.evaluation import evaluate, evaluate_each
from calcheck.execution.run import NullOptions, RandomStream, RowDependence, Run, SignificanceOptions
from calcheck.inference.bootstrap import BLOCK_DRAWS_IN_GROUPS, check_replicates, statistic_of
from calcheck.inference.curve_bands import curve_limits
from calcheck.inference.intervals import FEW_ROWS, NO_BOOTSTRAP, PERCENTILE_RESAMPLES, SINGLE_ROW, few_rows, percentile
from calcheck.inference.metric_protocol import InferableMetric, RowResults
from calcheck.inference.p_values_and_verdicts import p_value
from calcheck.metrics.base import Metric, inapplicable_reason
from calcheck.metrics.cce import Cce
from calcheck.options import share_suggestion
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.reports import Inference, Input, Report, Result, results_of, with_changes
from calcheck.statistics.groups import Averages, Means, MeanTerm, TieGroups, cumulative_at
from calcheck.statistics.zscores import spreads
from calcheck.studies import Request
from calcheck.studies.reject.options import PruneOptions, RejectOptions
from calcheck.typing import Indices, Values

MetricRows = tuple[InferableMetric, RowResults]
Curves = dict[tuple[str, str], Values]
AREA = "area"
PERCENT, ROUNDING = 100, 1e-9
MOST_STEPS = 1000  # maximum number of steps


@dataclass(frozen=True, eq=False)
class RejectionCurves:
    """Metrics of the retained rows when the rows with the largest values of a criterion are rejected.

    Tied rows are rejected in equal parts: the means are expectations over random orders of ties, and a metric is a
    function of these means. A constant criterion corresponds to random rejection.
    """

    row_results: Sequence[MetricRows]  # Metrics that are functions of column means, with their results for the n rows
    criteria: Mapping[str, Values]  # The criteria, (n,) each, by name
    shares: Values  # (s,), the rejected shares of the rows, in ascending order
    run: Run

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(next(iter(self.criteria.values())))

    @cached_property
    def retained(self) -> Indices:
        """Number of retained rows at each step, (s,)."""
        return self.n - np.floor(self.n * self.shares * (1 + ROUNDING)).astype(np.intp)

    @property
    def resamples(self) -> int:
        """Number of resamples, and of random orders."""
        count = PERCENTILE_RESAMPLES if self.run.resamples is None else self.run.resamples
        return count if self.n > 1 else 0

    @cached_property
    def _averages(self) -> Averages:
        terms = {}
        for criterion, values in self.criteria.items():
            groups = TieGroups(values)
            terms[f"{criterion}/"] = MeanTerm(groups=groups)
            for metric, rows in self.row_results:
                terms |= {
                    f"{criterion}/{metric.info.name}/{name}": MeanTerm(column, groups)
                    for name, column in rows.columns.items()
                }
        return Averages(terms, self.n)

    @cached_property
    def curves(self) -> Curves:
        """The curve of each metric and criterion, (s,)."""
        return self._curves(self._averages.means())

    @cached_property
    def resampled(self) -> Curves:
        """The curves of resampled rows, with their criteria, (resamples, s)."""
        parts = [
            self._curves(self._averages.resampled(count, rng))
            for count, rng in self._blocks("resamples", RandomStream.RESAMPLES, self.n)
        ]
        return {pair: np.concatenate([part[pair] for part in parts]) for pair in parts[0]} if parts else {}

    @cached_property
    def random_orders(self) -> dict[str, Values]:
        """The curves of each metric when rows are rejected in random orders, (orders, s)."""
        columns = np.concatenate(
            [np.stack(list(rows.columns.values()), axis=1) for _, rows in self.row_results], axis=1
        )
        parts = []
        for count, rng in self._blocks("random orders", RandomStream.PERMUTATIONS, columns.size):
            order = rng.permuted(np.tile(np.arange(self.n), (count, 1)), axis=1)
            parts.append(np.cumsum(columns[order], axis=1)[:, self.retained - 1] / self.retained[:, None])
        means = iter(np.moveaxis(np.concatenate(parts), 2, 0)) if parts else iter(())  # (orders, s) each
        return {metric.info.name: self._value(metric, rows, means) for metric, rows in self.row_results if parts}

    def _blocks(self, stage: str, stream: RandomStream, numbers: int) -> Iterator[tuple[int, Generator]]:
        """Yield the sizes and generators of blocks of resamples that have so many numbers each."""
        size = max(1, BLOCK_DRAWS_IN_GROUPS // numbers)
        for block, start in enumerate(range(0, self.resamples, size)):
            yield min(size, self.resamples - start), self.run.rng(stream, block)
            self.run.progress(stage, min(1.0, (start + size) / self.resamples))

    def _curves(self, means: Mapping[str, Values]) -> Curves:
        shares, found = self.retained / self.n, {}
        for criterion in self.criteria:
            counts = means[f"{criterion}/"]
            for metric, rows in self.row_results:
                sums = (means[f"{criterion}/{metric.info.name}/{name}"] for name in rows.columns)
                kept = (cumulative_at(shares, counts, each) / shares for each in sums)
                found[metric.info.name, criterion] = self._value(metric, rows, kept)
        return found

    def _value(self, metric: InferableMetric, rows: RowResults, means: Iterator[Values]) -> Values:
        """Return the metric at the means of its columns; consume these means from the iterator, in column order."""
        named = {name: next(means) for name in rows.columns}
        return np.asarray(metric.value(Means({**named, **rows.fixed}, self.n)))

    @property
    def warnings(self) -> tuple[Message, ...]:
        """Warnings about all intervals."""
        if self.run.resamples == 0:
            return (NO_BOOTSTRAP,)
        if self.n == 1:
            return (SINGLE_ROW,)
        return (few_rows(self.n),) if self.n < FEW_ROWS else ()

    def results(self, metric: Metric[Any], criterion: str, coverage: float | None) -> Iterator[Result]:
        """Yield a metric at each step of a criterion, its area, the difference from random, and at the threshold."""
        name = metric.info.name
        values = self.curves[name, criterion]
        replicates = self.random_orders.get(name) if criterion == RANDOM else self.resampled.get((name, criterion))
        limits = None if replicates is None else np.stack(curve_limits(replicates, self.run.confidence), axis=1)
        for step, (share, rows) in enumerate(zip(self.shares, self.retained, strict=True)):
            subset = {"by": criterion, "rejected": percent(share), "rows": int(rows)}
            result = self._result(metric, subset, values[step], None if replicates is None else replicates[:, step])
            if limits is not None and result.interval is not None:  # Those of the whole curve
                result = replace(result, low=float(limits[step, 0]), high=float(limits[step, 1]))
            yield result
        subset = {"by": criterion, "rejected": AREA}
        areas = None if replicates is None else area(self.shares, replicates)
        yield self._result(metric, subset, area(self.shares, values), areas)
        if criterion != RANDOM:
            yield self._gain(metric, criterion)
            if coverage is not None:
                yield self._at_threshold(metric, criterion, coverage)

    def _gain(self, metric: Metric[Any], criterion: str) -> Result:
        """Return the difference of the area from random rejection, with an interval and a p-value."""
        pairs = [(metric.info.name, criterion), (metric.info.name, RANDOM)]
        own, chance = (area(self.shares, self.curves[pair]) for pair in pairs)
        replicates = None
        if self.resampled:
            by_criterion, at_random = (area(self.shares, self.resampled[pair]) for pair in pairs)
            replicates = by_criterion - at_random
        subset = {"by": criterion, "rejected": AREA, "minus": RANDOM}
        result = self._result(metric, subset, own - chance, replicates)
        if metric.info.orientation != "smaller" or not self.random_orders or not np.isfinite(own):
            return result
        orders = area(self.shares, self.random_orders[metric.info.name])
        return replace(result, p_value=p_value(orders, float(own), "less"))

    def _at_threshold(self, metric: Metric[Any], criterion: str, coverage: float) -> Result:
        """Return the metric of the rows up to the smallest sufficient threshold, including rows equal to it."""
        values = self.criteria[criterion]
        threshold = np.sort(values)[max(1, int(np.ceil(len(values) * coverage * (1 - ROUNDING)))) - 1]
        inside = values <= threshold
        (rows,) = (rows for each, rows in self.row_results if each is metric)
        retained = replace(rows, columns={name: column[inside] for name, column in rows.columns.items()})
        subset = {"by": criterion, "rejected": f"{PERCENT * (1 - inside.mean()):.3g} %", "rows": int(inside.sum())}
        return self._result(
            metric, {**subset, "threshold": float(threshold)}, statistic_of(metric, retained).estimate(), None
        )

    def _result(
        self, metric: Metric[Any], subset: dict[str, Any], value: float | Values, replicates: Values | None
    ) -> Result:
        """Return a result with the central interval of its replicates."""
        number = float(value)
        if not np.isfinite(number):
            return metric.result(None, subset, Inference(warnings=(absent_value(number),)))
        if replicates is None:
            return metric.result(number, subset)
        finite, bootstrap, reason = check_replicates(replicates, number)
        result = metric.result(number, subset, Inference(details={"bootstrap": bootstrap}))
        if reason:
            return result
        low, high = percentile(finite, self.run.confidence)
        return replace(result, low=low, high=high, interval="random orders" if subset["by"] == RANDOM else "percentile")


def area(rejected: Values, curves: Values) -> Values:
    """Return the areas under curves (..., s) over the rejected shares (s,), by the trapezoidal rule."""
    return np.asarray(np.trapezoid(curves, rejected, axis=-1))


CCE, STD, RANDOM = "cce", "std", "random"
ERROR_METRICS = ("mae", "rmse", "nll")  # default metrics of retained predictions
WORDS = (CCE, STD, RANDOM)
HINDSIGHT = Message(
    "in-hindsight",
    "cce is evaluated at the rows it was fitted on and includes their own errors, so the gain from rejecting by it is"
    " optimistic. To avoid this, fit cce on other rows, and pass the rows to reject with --new",
)


@dataclass(frozen=True, eq=False)
class Criteria:
    """Values of the criteria for rejecting rows."""

    values: dict[str, Values]  # Values of each criterion, (n,), by name
    notes: dict[str, tuple[Message, ...]]  # Warnings about each criterion, by name
    missing: tuple[Message, ...] = ()  # Why a default criterion is absent


def columns_of(by: Sequence[str] | None) -> tuple[str, ...]:
    """Return the criteria that are columns of the file."""
    return tuple(name for name in by or () if name not in WORDS)


def compute_criteria(
    source: Source, at: Source | None, by: Sequence[str] | None, cce: Metric[Any], run: Run
) -> Criteria:
    """Return the criteria of the rows of ``at``, or of ``source`` if that is None."""
    place, names = at or source, list(dict.fromkeys(WORDS if by is None else by))
    found = Criteria({}, {})
    if by is None and (reason := inapplicable_reason(type(cce), source.predictions())):
        names.remove(CCE)
        found = replace(found, missing=(Message("criterion-missing", f"cce is not used as a criterion: it {reason}"),))
    for name in names:
        if name == CCE:
            rows = _cce(source, at, cce, run)
            found.values[name] = next(iter(rows.columns.values()))
            found.notes[name] = (*rows.warnings, *(() if at else (HINDSIGHT,)))
        else:
            with place.error_names():
                found.values[name] = _column(place.predictions(), name)
    return found


def _cce(source: Source, at: Source | None, cce: Metric[Any], run: Run) -> RowResults:
    """Return the per-row results of cce at the rows of another source, or at its own."""
    results = list[Any]()
    report = evaluate(source, [cce], at=at, run=run, sink=lambda _metric, _shown, rows: results.append(rows))
    with source.error_names():
        for skipped in report.skipped:
            raise DataError(f"cce {skipped.reason}" if skipped.code == "inapplicable" else skipped.reason)
    rows: RowResults = results[0]
    return rows


def _column(rows: Predictions, name: str) -> Values:
    """Return a criterion that is read from the rows, (n,)."""
    if name == RANDOM:
        return np.zeros(len(rows))
    if name == STD:
        return spreads(rows.distributions())
    if name not in rows.columns:
        available = f"Available criteria: {', '.join(WORDS)}, and numeric columns {listed_columns(rows.columns, name)}"
        raise DataError(f"there is no column {name!r} to reject by. {available}")
    column, values = rows.columns[name], None
    if column.dtype.kind in "biufO":
        with suppress(ValueError):  # Files of text store numbers with leading zeros as text
            values = column.astype(np.float64)
    if values is None:
        raise DataError(f"column {name!r} is not numeric, so it cannot be a criterion. Use a numeric column")
    require_finite(name, values)
    return values


@dataclass(frozen=True)
class RejectionGrid:
    """The rejected fractions of the rows."""

    # step, max_percent: step size and maximum, in percent of the rows. At most this many rows are rejected; rows with
    # equal values are rejected in equal parts.
    step: float = 10.0
    max_percent: float = 90.0
    coverage: float | None = None  # Fraction of rows to retain, for which the thresholds of the criteria are computed

    def __post_init__(self) -> None:
        if not 0 < self.max_percent < PERCENT:
            raise OptionError(f"--max-percent must be a percentage above 0 and below 100, got {self.max_percent:g}")
        if not 0 < self.step <= self.max_percent:
            msg = f"--step must be above 0 and at most --max-percent ({self.max_percent:g}), got {self.step:g}"
            raise OptionError(msg)
        if self.max_percent / self.step > MOST_STEPS:
            raise OptionError(f"--step {self.step:g} gives more than {MOST_STEPS:,} steps: pass a larger --step")
        if self.coverage is not None and not 0 < self.coverage <= 1:
            hint = share_suggestion(self.coverage)
            msg = f"--coverage must be a fraction of the rows, above 0 and at most 1, got {self.coverage:g}{hint}"
            raise OptionError(msg)

    def shares(self) -> Values:
        """Return the rejected fractions, starting with 0, (s,)."""
        return self.percentages() / PERCENT

    def percentages(self) -> Values:
        """Return the rejected percentages, starting with 0, (s,)."""
        return np.append(np.arange(0.0, self.max_percent * (1 - ROUNDING), self.step), self.max_percent)


def run(request: Request) -> Report:
    """Return the report of a rejection by the criteria that were asked for."""
    request.refuse(
        (NullOptions, SignificanceOptions, RowDependence), "means over the remaining rows", "remove it, or pass --refit"
    )
    options, new = request.options(RejectOptions), request.data("new")
    by, steps = options.criteria, RejectionGrid(**_grid(options), coverage=options.coverage)
    metrics, cce = request.metrics(ERROR_METRICS), request.metric(request.data("cce") or CCE)
    needed = [*metrics, *([cce] if by is None or CCE in by else [])]
    source = request.open(request.data("file"), needed, also=() if new is not None else columns_of(by))
    at = None if new is None else request.open_other(new, source, columns_of(by))
    with request.run(source) as run:
        report = reject(source, metrics, by=by, cce=cce, at=at, steps=steps, run=run)
    return request.require_results(report, at or source)


def run_prune(request: Request) -> Report:
    """Return the report of metrics of the remaining rows."""
    metrics = request.metrics(METRICS_OF_ALL)
    source = request.open(request.data("file"), metrics)
    with request.run(source) as run:
        report = prune(source, metrics, run=run, **_grid(request.options(PruneOptions)))
    return request.require_results(report, source, every=True)


def _grid(options: RejectOptions | PruneOptions) -> dict[str, float]:
    """Return the step size and the maximum that were given."""
    return {name: value for name in ("step", "max_percent") if (value := getattr(options, name)) is not None}


def reject(
    source: Source,
    metrics: Sequence[Metric[Any]],
    *,
    by: Sequence[str] | None = None,
    cce: Metric[Any] | None = None,
    at: Source | None = None,
    steps: RejectionGrid | None = None,
    run: Run | None = None,
) -> Report:
    """Return metrics after rejecting the rows with the largest values of criteria, in steps [CCE C.1, Fig. 7]."""
    steps, cce = steps or RejectionGrid(), cce or Cce()
    for metric in metrics:
        if metric.info.interval != "bca" or "y" not in metric.info.needs:
            raise OptionError(
                "--metrics must be means of errors over rows, e.g. mae, rmse, nll or crps, got"
                f" {metric.info.name}, which is not"
            )
    run, place, found = run or Run(), at or source, list[Any]()
    bare = replace(run.quiet(), resamples=0, replicates=0)
    report = evaluate(place, metrics, run=bare, sink=lambda metric, _, rows: found.append((metric, rows)))
    criteria = compute_criteria(source, at, by, cce, bare)
    settings = {"by": list(criteria.values), **asdict(steps), "cce": cce.options()}
    results: list[Result] = []
    noticed = () if run.resamples == 0 else dependence_warnings(place.predictions(), without_option="reject")
    every = {RANDOM: np.zeros(len(next(iter(criteria.values.values())))), **criteria.values}
    study = RejectionCurves(found, every, steps.shares(), run)
    for metric, rows in found:
        for criterion in criteria.values:
            with np.errstate(all="ignore"):  # values that are not finite become warnings
                first, *others = study.results(metric, criterion, steps.coverage)
            own = (*rows.warnings, *criteria.notes.get(criterion, ()))
            notes = (*place.warnings(), *noticed, *own, *criteria.missing, *study.warnings)
            results += [replace(first, warnings=(*notes, *first.warnings)), *others]
    return replace(
        report,
        input=_input(source, at),
        settings={**report.settings, **settings, "resamples": run.resamples},
        results=tuple(results),
    )


def _input(source: Source, at: Source | None) -> Input:
    """Return the input of the study; its row count is that of the rows that can be rejected."""
    info = source.input_info()
    if at is None:
        return info
    other = at.input_info()
    files = (replace(file, role="evaluation_points") if file.role == "predictions" else file for file in other.files)
    return replace(info, files=(*info.files, *files), n=other.n, dropped=info.dropped + other.dropped)


METRICS_OF_ALL = ("zms", "rce")  # Metrics of the remaining rows by default
TIED = Message(
    "tied-uncertainties",
    "rows with equal uncertainties are removed together, so steps that would remove no further row are omitted",
)


def prune(
    source: Source,
    metrics: Sequence[Metric[Any]],
    *,
    max_percent: float = 10.0,
    step: float = 1.0,
    run: Run | None = None,
) -> Report:
    """Return metrics after removing the rows with the largest uncertainties, in steps [ZMS Fig. 2]."""
    shares = RejectionGrid(step, max_percent).percentages()
    run = run or Run()
    rows = source.predictions()
    with source.error_context():
        kept = list(_kept(spreads(rows.distributions()), shares))
    remaining = (InMemory(rows.take(left)) for left in kept)
    reports = evaluate_each(remaining, metrics, run=run, stage="removed rows", total=len(kept))
    whole = reports[0]
    notes = (*source.warnings(), *((TIED,) if len(kept) < len(shares) else ()))
    results = []
    for each in whole.results:
        first, *others = _noted(each, reports)
        results += [replace(first, warnings=(*first.warnings, *notes)), *others]
    return replace(
        whole,
        input=source.input_info(),
        results=tuple(results),
        settings={**whole.settings, "max_percent": max_percent, "step": step},
        overall=None,
    )


def _kept(std: Values, shares: Values) -> Iterator[Indices]:
    """Yield the remaining rows at each step that removes further rows."""
    largest, before = np.sort(std)[::-1], 0
    for share in shares:
        removable = int(np.floor(len(std) * share / PERCENT * (1 + ROUNDING)))
        left = np.flatnonzero(std <= largest[removable])
        if len(left) != before:
            yield left
        before = len(left)
    if before == len(std):
        raise DataError(
            f"rows with equal uncertainties are removed together, and {shares[-1]:g} % is too little to remove any."
            " Pass a larger --max-percent"
        )


def _noted(first: Result, reports: Sequence[Report]) -> list[Result]:
    """Return one metric's results over the steps, with notes about leaving the interval of all rows and about gaps."""
    n = reports[0].input.n
    steps = [{"removed": f"{PERCENT * (1 - each.input.n / n):.3g} %", "rows": each.input.n} for each in reports]
    found = with_changes(results_of(reports, steps, first.metric, first.options), first.value)
    computed = [each.slice for each in found]
    notes = [
        Message("not-computed", f"not computed when {step['removed']} of the rows are removed: {skipped.reason}")
        for report, step in zip(reports, steps, strict=True)
        for skipped in report.skipped
        if skipped.metric == first.metric and step not in computed
    ]
    outside = [each.slice["removed"] for each in found if _outside(each.value, first)]
    if outside and not _outside(first.value, first):
        limits = f"[{first.low:.3g}, {first.high:.3g}]"
        text = f"leaves its interval for all rows, {limits}, when {outside[0]} of the rows are removed"
        notes.insert(0, Message("outside-interval", text))
    return [replace(found[0], warnings=(*found[0].warnings, *notes[:2])), *found[1:]]


def _outside(value: float | None, whole: Result) -> bool:
    """Return whether a value is outside the interval of all rows; False without an interval."""
    if value is None or whole.low is None or whole.high is None:
        return False
    return not whole.low <= value <= whole.high
