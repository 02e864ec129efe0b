"""Models on the same rows: their ranks, and differences with p-values."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

from calcheck.core.lazy_inputs import same_inputs
from calcheck.dependence.clusters import Clusters, find_clusters
from calcheck.errors import Message, OptionError, message_prefix
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.inference.bootstrap import EQUAL
from calcheck.inference.metric_protocol import RowResults
from calcheck.inference.paired_comparison import ModelPair, compare_pairs
from calcheck.metrics._weights import require_same_weights
from calcheck.metrics.base import Metric
from calcheck.models.alignment import Model, align_models, comparison_input, incomparable_reason
from calcheck.models.best_model import SCORES, best_model
from calcheck.predictions import Predictions, group_by_input
from calcheck.reports import Inference, Orientation, Report, Result, Skipped, loss
from calcheck.reports.conclusion import BestModel, ModelsAtNewInputs

Evaluated = dict[tuple[str, str], tuple[Predictions, RowResults]]
DIGITS = 4  # significant digits of shown values; values that look equal count as ties


def score(better: Orientation, value: float | None, reference: float | None) -> float | None:
    """Return a score that is smaller for a better model, rounded to the shown digits; None if no value is better."""
    shown, ideal = (None if each is None else _shown(each) for each in (value, reference))
    found = loss(better, shown, ideal)
    return None if found is None else _shown(found)


def ranks(scores: Sequence[float | None]) -> list[int | None]:
    """Return the rank of each score, 1 for the smallest; ties share a rank.

    >>> ranks([0.2, 0.1, None, 0.2])
    [2, 1, None, 2]
    """
    known = sorted(each for each in scores if each is not None)
    return [None if each is None else known.index(each) + 1 for each in scores]


def kendall(first: Sequence[float | None], second: Sequence[float | None]) -> float | None:
    """Return Kendall's tau-b of two rankings, from -1 to 1; None if all scores in one of them are equal.

    >>> kendall([1, 2, 3, 4], [1, 2, 4, 3])
    0.6666666666666666
    """
    # scipy's kendalltau loads in 0.4 s, and can be 1 - 1e-16 for equal rankings
    known = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    pairs = [(_sign(c - a), _sign(d - b)) for (a, b), (c, d) in combinations(known, 2)]
    apart = [sum(pair[side] != 0 for pair in pairs) for side in (0, 1)]
    if not all(apart):
        return None
    return sum(a * b for a, b in pairs) / math.sqrt(apart[0] * apart[1])


def _shown(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


MOST_SWAPS = 10_000_000  # maximum number of permutations
ELSEWHERE = Message(
    "different-inputs", "the models are conditioned on different inputs, so their values refer to different regions"
)
TRUSTED = Message(
    "matched-without-targets",
    "the files have errors instead of targets, so the rows are matched by their ids without a check of the targets",
)
VALUES = Message(
    "values-compared", "the ideal value is not known, so the difference is that of the values: none of them is better"
)
DISTANCES = "distances from the ideal value"


def compare(
    models: Sequence[Model],
    metrics: Sequence[Metric[Any]],
    *,
    swaps: int | None = None,
    run: Run | None = None,
    new: Predictions | None = None,
    inputs: Sequence[str] = (),
) -> Report:
    """Return a report with the metrics of several models on the same rows, and the differences from the first model.

    ``new`` has new inputs with their names, for which the report also says which model would be best.
    """
    names = [model.name for model in models]
    if len(names) < 2 or len(set(names)) < len(names):  # noqa: PLR2004 - a comparison needs two
        raise OptionError(f"a comparison needs at least two models with different names, got {', '.join(names)}")
    if swaps is not None and not 0 <= swaps <= MOST_SWAPS:
        raise OptionError(f"--permutations must be >= 0 and at most {MOST_SWAPS:,}, got {swaps}")
    run = run or Run()
    reports, evaluated = evaluate_models(models, metrics, run)
    skipped = _skipped(names, reports)
    skipped_names = {each.metric for each in skipped}
    valid = [metric for metric in metrics if metric.info.name not in skipped_names]
    found = {
        (result.metric, name): replace(result, slice={"model": name})
        for name, report in zip(names, reports, strict=True)
        for result in report.results
    }
    values = [_ranked([found[metric.info.name, name] for name in names]) for metric in valid]
    by_id = any(shown.id is not None for shown, _ in evaluated.values())
    trusted = (TRUSTED,) if by_id and any(model.has_errors for model in models) else ()

    def differences(chosen: Sequence[Metric[Any]], order: Sequence[str]) -> list[Result]:
        """Return the differences of models from the first of them."""
        first, *others = order
        clusters = shared_clusters(order, evaluated, run)
        pairs = []
        for metric, name in product(chosen, others):
            own, own_rows = evaluated[metric.info.name, first]
            theirs, their_rows = evaluated[metric.info.name, name]
            ideal = targets(*(found[metric.info.name, each] for each in (first, name)))
            pairs.append(ModelPair(metric, (own, theirs), (own_rows, their_rows), ideal, clusters[name]))
        compared = zip(pairs, others * len(chosen), compare_pairs(pairs, run, swaps=swaps), strict=True)
        return [_difference(found, (first, name), pair, inferred, trusted) for pair, name, inferred in compared]

    pairs = differences(valid, names)
    best = _best(valid, names, found, pairs, differences, run.confidence)
    return replace(
        reports[0],
        input=comparison_input(names, [report.input for report in reports]),
        settings={**reports[0].settings, "models": names, "permutations": swaps},
        results=(*(result for group in values for result in group), *pairs),
        skipped=tuple(skipped),
        best=() if best is None else (best,),
        on=None if new is None else _at_new_inputs(models, valid, evaluated, new, inputs, run),
    )


def _at_new_inputs(
    models: Sequence[Model],
    metrics: Sequence[Metric[Any]],
    evaluated: Evaluated,
    new: Predictions,
    inputs: Sequence[str],
    run: Run,
) -> ModelsAtNewInputs:
    """Return which model would be best at new inputs, and the answer for each of them there."""
    from calcheck.models.new_inputs import models_at_new_inputs

    aligned = {model.name: each.predictions() for model, each in zip(models, align_models(models), strict=True)}
    scores = {key: rows for key, (_, rows) in evaluated.items()}
    return models_at_new_inputs(aligned, metrics, scores, new, names=inputs, run=run)


def _best(
    metrics: Sequence[Metric[Any]],
    names: Sequence[str],
    found: Mapping[tuple[str, str], Result],
    pairs: Sequence[Result],  # The differences from the first model
    differences: Callable[[Sequence[Metric[Any]], Sequence[str]], list[Result]],
    confidence: float,
) -> BestModel | None:
    """Return which model is best by the first score that is known; None without one, or if all models are equal."""
    metric = next((each for name in SCORES for each in metrics if each.info.name == name), None)
    if metric is None:
        return None

    def from_first(order: Sequence[str]) -> list[Result]:
        if order[0] != names[0]:
            return differences([metric], order)
        known = {str(each.slice["model"]): each for each in pairs if each.metric == metric.info.name}
        return [known[name] for name in order[1:]]

    scores = {name: each.value for name in names if (each := found[metric.info.name, name]).value is not None}
    return best_model(metric.info.name, scores, from_first, confidence)


def compare_datasets(
    datasets: Mapping[str, Sequence[Model]],
    metrics: Sequence[Metric[Any]],
    *,
    swaps: int | None = None,
    run: Run | None = None,
) -> Report:
    """Return a report with the comparisons of the same models on several data sets."""
    run = run or Run()
    names = [model.name for model in next(iter(datasets.values()))]
    ordered = {dataset: _in_order(models, names, dataset) for dataset, models in datasets.items()}
    reports = {}
    for dataset, models in ordered.items():
        with message_prefix(dataset):
            reports[dataset] = compare(models, metrics, swaps=swaps, run=run.prefixed(dataset))
    first, inputs = next(iter(reports.values())), [report.input for report in reports.values()]
    return replace(
        first,
        input=replace(comparison_input(list(reports), inputs), n=sum(each.n for each in inputs)),
        settings={**first.settings, "datasets": list(reports)},
        results=tuple(
            replace(result, slice={"dataset": dataset, **result.slice})
            for dataset, report in reports.items()
            for result in report.results
        ),
        skipped=tuple(_skipped(list(reports), list(reports.values()))),
        best=tuple(replace(each, dataset=dataset) for dataset, report in reports.items() for each in report.best),
    )


def _in_order(models: Sequence[Model], names: Sequence[str], dataset: str) -> list[Model]:
    """Return the models of a data set in the order of the names."""
    by_name = {model.name: model for model in models}
    if set(by_name) != set(names):
        raise OptionError(
            f"the data sets need the same models: the first has {', '.join(names)}, and {dataset} has"
            f" {', '.join(by_name) or 'none'}"
        )
    return [by_name[name] for name in names]


def evaluate_models(
    models: Sequence[Model], metrics: Sequence[Metric[Any]], run: Run
) -> tuple[list[Report], Evaluated]:
    """Return the report of each model on the rows of the first, and row results of comparable metrics by model."""
    models = [replace(model, source=group_by_input(model.source, map(type, metrics))) for model in models]
    evaluated: Evaluated = {}
    reports, sources = [], align_models(models)
    aligned = {model.name: source.predictions() for model, source in zip(models, sources, strict=True)}
    require_same_weights(metrics, aligned)
    reasons = {metric.info.name: incomparable_reason(metric, sources) for metric in metrics}
    metrics = [metric for metric in metrics if not reasons[metric.info.name]]
    skipped = [Skipped(metric=name, code="inapplicable", reason=reason) for name, reason in reasons.items() if reason]
    for model, source in run.track("models", zip(models, sources, strict=True), len(models)):

        def keep(metric: Metric[Any], shown: Predictions, rows: RowResults, name: str = model.name) -> None:
            evaluated[metric.info.name, name] = (shown, rows)

        referred = _ranked_by_simulation if run.replicates is None else None
        report = evaluate(source, metrics, run=run.prefixed(model.name), sink=keep, referred=referred)
        reports.append(replace(report, skipped=(*skipped, *report.skipped)))
    return reports, evaluated


def _ranked_by_simulation(metric: Metric[Any], rows: RowResults) -> bool:
    """Return whether the metric ranks models by their distance from a reference that must be simulated."""
    return metric.info.orientation == "reference" and rows.reference is None


def _skipped(names: Sequence[str], reports: Sequence[Report]) -> list[Skipped]:
    """Return the skipped metrics: each metric once, with the reasons of the models unless they are all the same."""
    reasons: dict[str, dict[str, Skipped]] = {}
    for name, report in zip(names, reports, strict=True):
        for each in report.skipped:
            reasons.setdefault(each.metric, {})[name] = each
    found = []
    for metric, by_model in reasons.items():
        if len(by_model) == len(names) and len(set(by_model.values())) == 1:
            found.append(next(iter(by_model.values())))
        else:
            text = "; ".join(f"{name}: {each.reason}" for name, each in by_model.items())
            found.append(Skipped(metric=metric, code="error", reason=text))
    return found


def targets(first: Result, second: Result) -> tuple[float, float] | None:
    """Return the ideal values of a metric for two models; None if it has none, or they are not known."""
    if first.orientation == "zero":
        return 0.0, 0.0
    if first.orientation != "reference" or first.reference is None or second.reference is None:
        return None
    return first.reference, second.reference


def shared_clusters(names: Sequence[str], evaluated: Evaluated, run: Run) -> dict[str, Clusters | None]:
    """Return the clusters of rows by which each model is compared with the first; the fewest of both."""
    if not run.dependence.is_stated:
        return dict.fromkeys(names)
    rows = {name: shown for (_, name), (shown, _) in evaluated.items()}
    found = {name: find_clusters(each, run.dependence) for name, each in rows.items()}
    first = found.get(names[0])
    return {name: min((each for each in (first, found.get(name)) if each is not None), key=len) for name in found}


def _difference(
    results: Mapping[tuple[str, str], Result],
    names: tuple[str, str],
    pair: ModelPair[Metric[Any]],
    inferred: Inference,
    notes: tuple[Message, ...],
) -> Result:
    """Return the difference of two values, or of their distances from the ideal values if there are any."""
    first, second = (results[pair.metric.info.name, name] for name in names)
    x, other_x = (model.x for model in pair.models)
    if "x" in pair.metric.info.needs and x is not None and other_x is not None and not same_inputs(x, other_x):
        notes += (ELSEWHERE,)
    absent = [name for name, each in zip(names, (first, second), strict=True) if each.value is None]
    ideal = pair.targets
    if ideal is None and first.orientation == "reference":
        notes += (VALUES,)
    noted = (each for each in (*first.warnings, *second.warnings) if each.code in ("dependent-rows", "ordered-rows"))
    lacking = (Message("no-difference", f"no difference: {name} has no value") for name in absent)
    inferred = replace(
        inferred,
        details={**inferred.details, **({"ideal": list(ideal)} if ideal else {})},
        warnings=(*notes, *dict.fromkeys(noted), *lacking, *inferred.warnings),
    )
    return replace(
        first,
        summary=f"{names[1]} minus {names[0]}{', ' + DISTANCES if ideal else ''}. {first.summary}",
        slice={"model": names[1], "minus": names[0]},
        orientation="smaller" if ideal else first.orientation,
        alternative="two-sided",
        value=_subtracted(first.value, second.value, ideal),
        **vars(inferred),
    )


def _subtracted(first: float | None, second: float | None, ideal: tuple[float, float] | None) -> float | None:
    """Return the second value, or its distance from its ideal, minus the first; 0 for a difference by rounding."""
    if first is None or second is None:
        return None
    own, other = (first, second) if ideal is None else (abs(first - ideal[0]), abs(second - ideal[1]))
    size = max(map(abs, (first, second, *(ideal or ()))))
    return 0.0 if abs(other - own) <= EQUAL * size else other - own


def _ranked(results: Sequence[Result]) -> list[Result]:
    """Return results with ranks 1 and, for three or more models, 2; ties share a rank, and if all tie there is none."""
    scores = [score(result.orientation, result.value, result.reference) for result in results]
    if len({each for each in scores if each is not None}) <= 1:
        return list(results)
    most = 1 if len(results) == 2 else 2  # noqa: PLR2004 - with two models, the second is the last
    return [
        replace(result, details={**result.details, "rank": rank}) if rank is not None and rank <= most else result
        for result, rank in zip(results, ranks(scores), strict=True)
    ]
