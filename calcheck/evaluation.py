"""Evaluation of metrics on predictions: values, intervals, verdicts, and results of rows."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.core import __version__
from calcheck.dependence.clusters import Clusters, find_clusters, noticed_dependence, order_warnings
from calcheck.distributions import Predictive
from calcheck.errors import DataError, Message, NumericalError, OptionError, RefusedError, absent_value
from calcheck.execution.run import RandomStream, Run, run_settings
from calcheck.inference import metric_protocol, null_distribution, p_values_and_verdicts
from calcheck.inference.bootstrap import null_statistic_of, statistic_of
from calcheck.inference.curve_bands import CurveBands, curves_at_inputs
from calcheck.inference.intervals import infer
from calcheck.inference.null_distribution import NullSimulator
from calcheck.inference.p_values_and_verdicts import pointwise_p_values
from calcheck.metrics import METRICS, base
from calcheck.metrics.base import Metric
from calcheck.options import TOLERANCE
from calcheck.predictions import InMemory, Predictions, Source, group_by_input
from calcheck.reports import Inference, Report, Result, Skipped
from calcheck.reports.conclusion import Power, WorstRegion
from calcheck.typing import Mask, Values

if TYPE_CHECKING:
    from calcheck.conclusion import Key

Sink = Callable[[Metric[Any], Predictions, metric_protocol.RowResults], None]
Referred = Callable[[Metric[Any], metric_protocol.RowResults], bool]
PLACE = "worst_region"
"""Name of the results of rows that say which are in the worst region."""
PlaceSink = Callable[[Predictions, Mask], None]
Fitted = metric_protocol.FittedMetric[Metric[Any]]
Known = tuple[Fitted, dict[str, list[dict[str, Any]]]]
Behind = Sequence[Fitted | Skipped]


ANSWERED = ("width-factor", "standardized-bias", "zms", "nll", "local-scale", "local-bias")
"""Metrics behind the answer."""
POWER_SETS = 100  # Simulated data sets with each fault
OTHER_LEVELS = (0.5, 0.99)  # Levels of the width factor beside that of the answer


def evaluate(  # noqa: PLR0913 - independent parts of a report
    source: Source,
    metrics: Sequence[Metric[Any]],
    *,
    at: Source | None = None,
    subsample: int | None = None,
    run: Run | None = None,
    worst: int = 0,
    best: int = 0,
    sink: Sink | None = None,
    referred: Referred | None = None,
    places: PlaceSink | None = None,
    answer: "Answer | None" = None,
) -> Report:
    """Return a report of metrics on predictions, with the answer if one is asked for."""
    run = replace(run or Run(), keep_rows=bool(sink or worst or best))
    request = ReportRequest(run, at, subsample, worst, best, sink, referred, places, answer)
    return request.concluded(request.evaluate(source, metrics))


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Metrics that were evaluated on the same rows."""

    report: Report  # Without a conclusion
    behind: Behind
    source: Source
    simulation: NullSimulator
    clusters: Clusters | None
    errors: Sequence[str]  # Columns that may hold measurement errors
    inside: Mask | None  # Which rows are in the worst region of the inputs


@dataclass(frozen=True, eq=False)
class ReportRequest:
    """What a report is to contain: the arguments of :func:`evaluate`."""

    run: Run
    at: Source | None = None
    subsample: int | None = None
    worst: int = 0
    best: int = 0
    sink: Sink | None = None
    is_referred: Referred | None = None
    # places: If given, the worst region of the inputs is searched, and its rows are given to it
    places: PlaceSink | None = None
    answer: "Answer | None" = None

    def evaluate(self, source: Source, metrics: Sequence[Metric[Any]]) -> Evaluated:
        """Return the metrics, with a report that has no conclusion."""
        run, answer, at = self.run, self.answer, self.at
        names, errors = source.input_names(), source.measurement_errors()
        source = group_by_input(source, map(type, metrics))
        info = source.input_info()
        noticed = noticed_dependence(source, run)
        warnings = data_warnings(source, source.predictions().predictive) + order_warnings(source, run, noticed)
        if self.subsample is not None:
            source = InMemory(subsample_rows(source.predictions(), self.subsample, run))
            info = replace(info, n=self.subsample)
        if at is not None:
            other = at.input_info()
            info = replace(info, files=(*info.files, *other.files), dropped=info.dropped + other.dropped)
        clusters = find_clusters(source.predictions(), run.dependence)
        warnings += () if clusters is None else clusters.messages
        simulation = NullSimulator(source.predictions(), run)
        found, skipped = self._fitted(source, metrics, simulation)
        known = [each for each, _ in found]
        behind = [] if answer is None else answer.fitted(source, known, simulation, run, judged=noticed is None)
        fitted = dict.fromkeys([*known, *(each for each in behind if not isinstance(each, Skipped))])
        _simulate([each for each in fitted if _is_simulated(each, self.is_referred)], simulation, clusters, run)
        searched = bool(self.places) and not (at or noticed) and _is_searched(simulation, run, answer or Answer())
        worst = _worst_region(names, simulation, run, self.places, answer or Answer()) if searched else (None, None)
        report = Report(
            calcheck=__version__,
            input=info,
            settings={
                **({} if noticed is None else noticed.settings),
                **({} if clusters is None else {"dependence": clusters.details}),
                **run_settings(run, subsample=self.subsample),
                **({"region_searched": True} if searched else {}),
            },
            results=make_results(found, run, warnings, clusters, unjudged="" if noticed is None else noticed.reason),
            skipped=tuple(skipped),
            overall=p_values_and_verdicts.overall_verdict(known, run.confidence, judged=noticed is None),
            region=worst[0],
        )
        return Evaluated(report, behind, source, simulation, clusters, errors, worst[1])

    def _fitted(
        self, source: Source, metrics: Sequence[Metric[Any]], simulation: NullSimulator
    ) -> tuple[list[Known], list[Skipped]]:
        """Return the evaluated metrics with their extreme rows, and those that were skipped."""
        run, found, skipped = self.run, list[Known](), list[Skipped]()
        shown = (self.at or source).predictions()
        for done, metric in enumerate(metrics):
            if len(metrics) > 1:
                run.progress("metrics", (done + 1) / len(metrics))
            computed = self.fitted(metric, source, simulation)
            if isinstance(computed, Skipped):
                skipped.append(computed)
                continue
            metric = computed.metric
            if self.sink is not None:
                self.sink(metric, shown, computed.rows)
            extremes = metric_protocol.extremes(computed.rows, shown, self.worst, self.best, pointwise=bool(self.sink))
            if run.needs_curves(metric.info.name) and metric.info.conditional and computed.rows.columns:
                computed.bands = _curves_at_inputs(computed, shown, run)
            computed.rows = _kept(computed, run)
            found.append((computed, extremes))
        return found, skipped

    def fitted(self, metric: Metric[Any], source: Source, simulation: NullSimulator) -> Fitted | Skipped:
        """Return a metric evaluated on the data, or why it is not."""
        metric, own = adapt_metric(metric, source)
        if reason := base.inapplicable_reason(type(metric), own.predictions()):
            return Skipped(metric=metric.info.name, code="inapplicable", reason=reason)
        try:
            data_sets = simulation if own is source else NullSimulator(own.predictions(), self.run)
            computed = self._computed(metric, own, data_sets, self.run.prefixed(metric.info.name))
            computed.shares_replicates = own is source
        except RefusedError:
            raise
        except DataError as error:
            return Skipped(metric=metric.info.name, code="error", reason=str(error))
        return computed

    def _computed(self, metric: Metric[Any], source: Source, simulation: NullSimulator, run: Run) -> Fitted:
        """Return a computed metric, with its null distribution if the metric simulates that itself."""
        stated = p_values_and_verdicts.StatedShape.from_predictive(source.predictions().predictive)
        # metrics raise errors for values that are not finite
        with _refusal(metric), source.error_context(), np.errstate(all="ignore"):
            fit = metric.fit(source, run)
            if self.at is not None and isinstance(metric, base.Conditional):
                fit = metric.at_inputs(fit, self.at)
            rows = metric.evaluate(fit, source, run)
            replicates = bool(len(simulation)) and (self.is_referred is None or self.is_referred(metric, rows))
            basis = p_values_and_verdicts.basis_of(metric, stated, rows, replicates=replicates)
            if basis.kind == "interval" and len(simulation) and not replicates:
                basis = replace(basis, reason="")  # here models are compared with each other, not with a perfect model
            computed = fitted_metric(metric, rows, basis, fit)
            if isinstance(metric, metric_protocol.HasNullStatistic):
                computed.tested = null_statistic_of(metric, rows).estimate()
            if run.needs_curves(metric.info.name) and isinstance(metric, metric_protocol.HasCurves):
                data = metric_protocol.CurveData(fit, source, run, rows)
                computed.bands = CurveBands(metric.curves(data), len(simulation))
            is_allowed = metric.info.allows_dependence or not run.dependence.is_stated
            if replicates and is_allowed and _is_simulated(computed):
                _simulate_alone(computed, simulation, run)
        return computed

    def concluded(self, found: Evaluated, p_values: "Mapping[Key, float] | None" = None, outputs: int = 1) -> Report:
        """Return the report with its conclusion, if an answer is asked for; see :meth:`Answer.concluded`."""
        answer, run, rows = self.answer, self.run, found.source.predictions()
        if answer is None:
            return found.report
        from calcheck.causes.search import with_causes
        from calcheck.conclusion.answer import with_hint
        from calcheck.distributions.noise_clip_rounding import observation_hint

        hint = observation_hint(rows.y, rows.distributions(), found.errors)
        report = with_hint(answer.concluded(found.report, found.behind, run, found.clusters, p_values, outputs), hint)
        report = with_causes(report, rows, found.inside, run.dependence, found.source)
        return answer.with_power(report, found.behind, found.source, found.simulation, run) if answer.power else report


@dataclass(frozen=True)
class Answer:
    """How the answer is found: by which metrics of all rows, and within which tolerance."""

    tolerance: float = TOLERANCE
    level: float | None = None  # Level of the intervals; by default that of coverage
    weights: str | None = None  # Column of sampling weights
    power: bool = False  # Whether faults are simulated
    local: bool = True  # Whether local errors are measured
    groups: str | None = None  # Column along which errors are looked for, too
    optional: bool = False  # Whether errors along that column are left out if they cannot vary

    def along(self, names: Sequence[str]) -> list[Metric[Any]]:
        """Return the local errors along the size of the uncertainties, the inputs, the times, or a column."""
        make: Mapping[str, Any] = METRICS
        return [make[name](along=each) for each in names for name in ("local-scale", "local-bias")]

    def metrics(self, source: Source, run: Run) -> list[Metric[Any]]:
        """Return the metrics behind the answer to a source: factors of its levels, bias, and local errors."""
        rows = source.predictions()
        main = self.level_of(rows)
        stated = base.stated_levels(rows.predictive)
        levels = [main, *(each for each in OTHER_LEVELS if not stated or each in stated)]
        make: Mapping[str, Any] = METRICS
        found: list[Metric[Any]] = [make["width-factor"](level=each) for each in dict.fromkeys(levels)]
        found += [make[name]() for name in ("standardized-bias", "zms", "nll")]
        known = {"inputs": rows.x is not None, "time": run.dependence.time is not None}
        along = ["std", *(name for name, given in known.items() if given), *([self.groups] if self.groups else [])]
        found += self.along(along) if self.local else []
        found = [metric.with_defaults(rows) for metric in found]
        if self.weights is None:
            return found

        from calcheck.metrics._weights import weighted_forms

        return weighted_forms(found, self.weights)[0]

    def level_of(self, rows: Predictions) -> float:
        """Return the level of the intervals that the answer is about."""
        return base.LevelOption(self.level).level_of(rows.predictive)

    def fitted(
        self, source: Source, known: Sequence[Fitted], simulation: NullSimulator, run: Run, *, judged: bool
    ) -> Behind:
        """Return the metrics behind the answer evaluated on the data; those that are known already are reused."""
        others, request = {each.metric: each for each in known}, ReportRequest(replace(run, curves=False))
        named = None if self.optional else self.groups
        # targets are impossible however rows depend on each other, so the likelihood is always judged
        metrics = [each for each in self.metrics(source, run) if judged or each.info.name == "nll"]
        found = [others.get(each) or request.fitted(each, source, simulation) for each in metrics]
        for metric, each in zip(metrics, found, strict=True):
            if isinstance(each, Skipped) and named and metric.options().get("along") == named:
                raise DataError(f"--groups {named}: {each.metric} {each.reason}")
        return found if self.weights is None else [*found, *self._without(source)]

    def _without(self, source: Source) -> list[Skipped]:
        """Return the local errors, which have no weighted form."""
        from calcheck.metrics._weights import weighted_forms

        if self.groups:
            raise OptionError("--groups has no weighted form: omit it, or --weights")
        along = "std" if source.predictions().x is None else "inputs"
        return weighted_forms(self.along([along]), str(self.weights))[1]

    def concluded(
        self,
        report: Report,
        behind: Behind,
        run: Run,
        clusters: Clusters | None = None,
        p_values: "Mapping[Key, float] | None" = None,
        outputs: int = 1,
    ) -> Report:
        """Return a report with the conclusion from the metrics behind it, given p-values of several targets, if any."""
        from calcheck.conclusion import conclude
        from calcheck.conclusion.answer import WIDTH
        from calcheck.inference.power import expected_power

        computed = [each for each in behind if not isinstance(each, Skipped)]
        skipped = [each for each in behind if isinstance(each, Skipped)]
        topics = topics_of(behind)
        told: list[Known] = [(each, {}) for each in computed if each.metric.info.name not in ("zms", "nll")]
        results = make_results(told, run, (), clusters)
        level = next((float(each.options["level"]) for each in results if each.metric == WIDTH), base.LEVEL)
        p_values = dict(p_values_and_verdicts.topic_p_values(topics) if p_values is None else p_values)
        p_values |= _without_replicates(results, p_values, outputs)
        found = conclude(
            report,
            results,
            p_values,
            tolerance=self.tolerance,
            level=level,
            skipped=skipped,
            impossible_text=_impossible_text(computed),
        )
        size = next((each for each in results if each.metric == WIDTH), None)
        at_limits = size is None or size.low == size.high or any("excess" in each.rows.columns for each in computed)
        if found.conclusion is None or at_limits:  # targets are equal to stated limits, or these are clipped
            return found
        power = expected_power(
            [factors for each in topics.get(("size", None), []) if len(factors := _factors(each, level))],
            [each.null.values for each in topics.get(("bias", None), []) if each.null],
            self.tolerance,
            run.confidence,
        )
        return replace(found, conclusion=replace(found.conclusion, power=power))

    def with_power(self, report: Report, behind: Behind, source: Source, simulation: NullSimulator, run: Run) -> Report:
        """Return a report with the share of simulated data sets with a fault in which the answer is no."""
        from calcheck.inference.power import FAULTS, planted

        if report.conclusion is None:
            return report
        if run.dependence.is_stated or simulation.rows.distributions().interval_levels is not None:
            stated = "rows depend on each other" if run.dependence.is_stated else "the file states intervals only"
            msg = f"--power simulates independent rows with distributions of one target, but {stated}: omit --power"
            raise OptionError(msg)
        computed = [each for each in behind if not isinstance(each, Skipped)]
        fits = [each.fit if each.fit is not None else each.metric.fit(source, run) for each in computed]
        silent, plain, power = run.quiet(), replace(report, results=(), overall=None), []
        faults = [each for each in FAULTS if not each.of_inputs or simulation.rows.x is not None]
        own = simulation.rows.distributions()
        for fault in run.track("power", faults, len(faults)):
            rng, count = np.random.default_rng(run.seed), 0
            for rows in simulation.beyond(POWER_SETS):
                data = planted(fault, rows, rng)
                if own.quantile_levels is not None:  # what replicates know between them is unknown
                    data = data.with_targets(data.targets(), own)
                found = [_refitted(each, fit, InMemory(data), silent) for each, fit in zip(computed, fits, strict=True)]
                conclusion = self.concluded(plain, found, silent).conclusion
                count += conclusion is not None and conclusion.answer == "no"
            power.append(Power(fault=fault.name, text=fault.text, share=count / POWER_SETS, sets=POWER_SETS))
        return replace(report, conclusion=replace(report.conclusion, power=tuple(power)))


def topics_of(behind: Behind) -> "dict[Key, list[Fitted]]":
    """Return the metrics behind an answer by topic; the likelihood is about none."""
    from calcheck.conclusion import key_of

    found: dict[Key, list[Fitted]] = {}
    for each in behind:
        if not isinstance(each, Skipped) and each.metric.info.name != "nll":
            found.setdefault(key_of(each.metric.info.name, each.metric.options()), []).append(each)
    return found


def _factors(each: Fitted, level: float) -> Values:
    """Return the factors of right models by a metric of the size: at the level, or by squared errors; else none."""
    if each.null is None or each.metric.options().get("level", level) != level:
        return np.empty(0)
    values = np.maximum(each.null.values, 0)
    return np.sqrt(values) if each.metric.info.name == "zms" else values


def _refitted(each: Fitted, fit: Any, data: Source, run: Run) -> Fitted:
    """Return a metric evaluated on a data set with the same predictions, with the same null distribution."""
    own = each.metric
    fit = own.refit(fit, data, run) if isinstance(own, metric_protocol.RefitsReplicates) else own.fit(data, run)
    rows = own.evaluate(fit, data, run)
    found = fitted_metric(own, rows, each.basis, fit)
    quick = own.quick_statistic(fit, data, run) if isinstance(own, metric_protocol.HasQuickStatistic) else None
    found.null = each.null and replace(each.null, data_value=quick)
    found.shares_replicates = each.shares_replicates
    if isinstance(own, metric_protocol.HasNullStatistic):
        found.tested = null_statistic_of(own, rows).estimate()
    return found


def _impossible_text(computed: Sequence[Fitted]) -> str:
    """Return that targets have probability 0, which makes the answer no; empty if none has, or replicates have too."""
    nll = next((each for each in computed if each.metric.info.name == "nll"), None)
    if nll is None or not p_values_and_verdicts.is_impossible(nll):
        return ""
    texts = (message.text for message in nll.rows.warnings if message.code == "impossible-targets")
    return next(texts, "some targets have probability 0 under the predictions, so the log-likelihood is infinite")


def _without_replicates(results: Sequence[Result], known: "Mapping[Key, float]", outputs: int) -> "dict[Key, float]":
    """Return the p-values of other topics by tests without replicates, adjusted for their number in all targets."""
    from calcheck.conclusion import key_of

    found: dict[Key, list[float]] = {}
    for each in results:
        key = key_of(each.metric, each.options)
        if each.p_value is not None and each.verdict != "none" and key not in known:
            found.setdefault(key, []).append(each.p_value)
    count = outputs * sum(map(len, found.values()))
    return {key: min(1.0, count * min(values)) for key, values in found.items()}


def _is_searched(simulation: NullSimulator, run: Run, answer: Answer) -> bool:
    """Return whether the worst region of the inputs is searched: rows must be independent and have equal weights."""
    if simulation.rows.x is None or run.dependence.is_stated or answer.weights or not len(simulation):
        return False
    from calcheck.regions.worst import is_searchable

    return is_searchable(simulation.rows)


def _worst_region(
    names: Sequence[str], simulation: NullSimulator, run: Run, places: PlaceSink | None, answer: Answer
) -> tuple[WorstRegion | None, Mask | None]:
    """Return the region of the inputs whose rows differ most, and which these are; None if none does significantly."""
    rows = simulation.rows
    from calcheck.regions.worst import describe_region, worst_region

    names = names if len(names) == rows.width else [f"input {number + 1}" for number in range(rows.width)]
    found = worst_region(rows, simulation, names, run.confidence)
    if found is None:
        return None, None
    inside = found.place.inside
    if places is not None:
        places(rows, inside)
    make: Mapping[str, Any] = METRICS
    is_scale = found.direction in ("too-narrow", "too-wide")
    metric = make["width-factor"](level=answer.level) if is_scale else make["standardized-bias"]()
    plain = replace(run.quiet(), replicates=0, resamples=0)
    there, elsewhere = (
        next(iter(evaluate(InMemory(rows.take(np.flatnonzero(part))), [metric], run=plain).results), None)
        for part in (inside, ~inside)
    )
    limits = {name: getattr(there, name, None) for name in ("value", "low", "high")}
    region = WorstRegion(
        where=found.place.text,
        filter=found.place.filter,
        rows=int(inside.sum()),
        direction=found.direction,
        **limits,
        **{f"other_{name}": getattr(elsewhere, name, None) for name in limits},
        level=None if there is None else there.options.get("level"),
        p_value=found.p_value,
        text="",
    )
    return replace(region, text=describe_region(region, len(rows))), inside


def evaluate_each(
    sources: Iterable[Source], metrics: Sequence[Metric[Any]], *, run: Run, stage: str, total: int
) -> list[Report]:
    """Return the reports of metrics on several sources, such as a series of files, or parts of the rows."""
    reports = []
    for source in run.track(stage, sources, total):
        with source.error_names():
            reports.append(evaluate(source, metrics, run=run.quiet()))
    return reports


def with_intervals(
    metrics: Sequence[Metric[Any]], source: Source, run: Run
) -> list[tuple[Fitted, metric_protocol.IntervalInference]]:
    """Return metrics of some rows with their intervals, without null distributions."""
    with np.errstate(all="ignore"):  # values that are not finite become warnings
        rows = [metric.evaluate(metric.fit(source, run), source, run) for metric in metrics]
        found = [fitted_metric(*each, metric_protocol.Basis("none")) for each in zip(metrics, rows, strict=True)]
        return list(zip(found, infer(found, run.quiet()), strict=True))


def make_results(
    found: Sequence[Known],
    run: Run,
    warnings: tuple[Message, ...],
    clusters: Clusters | None = None,
    *,
    unjudged: str = "",
) -> tuple[Result, ...]:
    """Return the results of computed metrics on the same rows, with intervals, references and verdicts."""
    results = []
    with np.errstate(all="ignore"):  # values that are not finite become warnings
        inferred = infer([each for each, _ in found], run, clusters)
        adjusted = p_values_and_verdicts.adjusted_p_values([each for each, _ in found])
        for (each, extremes), interval, p in zip(found, inferred, adjusted, strict=True):
            compared = p_values_and_verdicts.compare_with_null(each, interval, run)
            # however rows depend on each other
            told = each.metric.info.tests_independence or p_values_and_verdicts.is_impossible(each)
            if unjudged and compared.verdict != "none" and not told:
                compared = p_values_and_verdicts.without_verdict(compared, unjudged)
            inference = p_values_and_verdicts.with_adjusted(compared, p)
            if each.bands is not None:
                inference = replace(inference, curves=each.bands.with_bands(run.confidence))
            results.append(_result(each, inference, extremes, warnings))
    return tuple(results)


def data_warnings(source: Source, predictive: Predictive | None) -> tuple[Message, ...]:
    """Return the warnings about changed values, and about what the distributions leave open."""
    caveat = "" if predictive is None else predictive.caveat
    return (*source.warnings(), *([Message("interpolated-distributions", caveat)] if caveat else []))


def subsample_rows(rows: Predictions, size: int, run: Run) -> Predictions:
    """Return a random subset of the rows, in their original order."""
    if not 1 <= size <= len(rows):
        raise OptionError(f"--subsample must be between 1 and the number of rows, {len(rows):,}, got {size}")
    chosen = run.rng(RandomStream.SUBSAMPLE).choice(len(rows), size, replace=False)
    chosen.sort()
    return rows.take(chosen)


def _simulate(computed: Sequence[Fitted], simulation: NullSimulator, clusters: Clusters | None, run: Run) -> None:
    """Simulate the null distributions of metrics: for independent rows, or for rows that depend on each other."""
    if clusters is None:
        null_distribution.simulate_null(computed, simulation, run)
        return
    in_time = [each for each in computed if each.metric.info.tests_independence]
    null_distribution.simulate_null(in_time, simulation, run)
    for each in in_time:
        each.shares_replicates = False
    null_distribution.simulate_dependent_null(computed, simulation, clusters, run)


def adapt_metric(metric: Metric[Any], source: Source) -> tuple[Metric[Any], Source]:
    """Return a metric with its defaults for the predictions, and the source of what it compares."""
    metric = metric.with_defaults(source.predictions())
    return metric, metric.outcomes(source) if isinstance(metric, base.ComparesOutcomes) else source


@contextmanager
def _refusal(metric: Metric[Any]) -> Iterator[None]:
    """Refuse the data if a metric fails numerically: it must not vanish beside the metrics that do not."""
    try:
        yield
    except NumericalError as error:
        raise RefusedError(f"{metric.info.name}: {error}") from error


def _curves_at_inputs(computed: Fitted, shown: Predictions, run: Run) -> CurveBands:
    """Return the curves of a metric that has a value at each input."""
    values, null, numbers = next(iter(computed.rows.columns.values())), computed.null, computed.rows.numbers
    at_inputs = None if null is None else null.at_inputs if null.at_sample is None else null.at_sample
    if at_inputs is not None and at_inputs.shape[1] != len(values):
        at_inputs = None  # rows were kept, and replicates evaluated at a sample of them
    return curves_at_inputs(shown if numbers is None else shown.take(numbers), values, at_inputs, run.curves_by)


def _simulate_alone(computed: Fitted, simulation: NullSimulator, run: Run) -> None:
    """Compute the null distribution by the metric's own method, if it has one, and drop the fit."""
    metric = computed.metric
    if not isinstance(metric, null_distribution.SimulatesNull):
        return

    def further(_: Sequence[Fitted], data_sets: NullSimulator) -> list[metric_protocol.NullDistribution]:
        found = metric.null_distribution(computed.fit, data_sets, run)
        return [] if found is None else [found]

    info = metric.info
    is_joint = info.uses_kernels and not (info.conditional or info.permutes_samples)
    first = simulation.start() if is_joint else simulation
    null = metric.null_distribution(computed.fit, first, run)
    if null is None:
        return
    computed.null = null
    if not run.dependence.is_stated:
        null_distribution.add_replicates([computed], first, run, further, costly=True)
        _add_curves(computed, simulation, run)
    columns, details = pointwise_p_values(null.at_inputs, null.floor, run.fdr)
    rows = computed.rows
    computed.rows = replace(rows, columns={**rows.columns, **columns}, details={**rows.details, **details})
    computed.fit = None


def _add_curves(computed: Fitted, simulation: NullSimulator, run: Run) -> None:
    """Add the curves of replicates to those of a metric that computes its null distribution itself."""
    metric, bands = computed.metric, computed.bands
    if bands is None or not isinstance(metric, metric_protocol.HasCurves):
        return
    for rows in simulation:
        with suppress(DataError, NumericalError):
            bands.add(metric.curves(metric_protocol.CurveData(computed.fit, InMemory(rows), run)))


def _is_simulated(computed: Fitted, referred: Referred | None = None) -> bool:
    """Return whether the null distribution of a metric is simulated; False if no result would depend on it."""
    basis = computed.basis
    if basis.kind != "p" and (computed.metric.info.interval == "own" or not basis.can_simulate):
        return False
    return referred is None or referred(computed.metric, computed.rows)


def fitted_metric(
    metric: Metric[Any], rows: metric_protocol.RowResults, basis: metric_protocol.Basis, fit: Any = None
) -> Fitted:
    """Return a metric with its value, which is a function of the means of its rows."""
    with np.errstate(all="ignore"):  # values that are not finite become warnings
        means = statistic_of(metric, rows).means().with_values(rows.fixed)
        return metric_protocol.FittedMetric(
            metric, fit, rows, float(metric.value(means)), basis, above=metric.direction_above(means)
        )


def _kept(computed: Fitted, run: Run) -> metric_protocol.RowResults:
    """Return row results without per-row arrays, which can take gigabytes, unless an interval needs them."""
    needed = run.resamples != 0 or run.dependence.is_stated or isinstance(computed.metric, metric_protocol.HasLimits)
    return computed.rows if needed else replace(computed.rows, columns={}, terms={}, fixed={})


def _result(
    computed: Fitted, inferred: Inference, extremes: dict[str, list[dict[str, Any]]], warnings: tuple[Message, ...]
) -> Result:
    metric, rows, value = computed.metric, computed.rows, computed.value
    finite = math.isfinite(value)
    missing = () if finite else (absent_value(value),)
    complete = replace(
        inferred,
        direction=computed.direction(inferred),
        details={**rows.details, **inferred.details, **extremes},
        warnings=(*warnings, *rows.warnings, *missing, *inferred.warnings),
    )
    return metric.result(value, inference=complete)
