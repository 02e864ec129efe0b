"""Paired differences of losses: whether a second model is worse than a first one on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.inference.paired import ModelPair, compare_pairs
from calcheck.models.comparison import Evaluated, evaluate_models, shared_clusters, targets
from calcheck.report import Inference, Report, loss

if TYPE_CHECKING:
    from calcheck.dependence.clusters import Clusters
    from calcheck.execution.run import Run
    from calcheck.metrics.base import Metric
    from calcheck.models.alignment import Model


def loss_differences(
    models: tuple[Model, Model], metrics: Sequence[Metric[Any]], run: Run
) -> tuple[Report, dict[str, Inference]]:
    """Return the report of the first model, and by metric the paired inference of the second loss minus the first.

    The loss of a metric whose ideal value is its reference or 0 is the distance from that value
    (:func:`calcheck.report.loss`); references are held fixed. A metric without an interval of the difference has a
    p-value if a paired test of it is known.
    """
    few = replace(run, replicates=0 if run.replicates == 0 else None)
    reports, evaluated = evaluate_models(models, metrics, few)
    clusters = shared_clusters([model.name for model in models], evaluated, run).get(models[1].name)
    pairs = [pair for metric in metrics if (pair := _pair(metric, models, reports, evaluated, clusters)) is not None]
    plain, others = ([pair for pair in pairs if pair.plain is wanted] for wanted in (True, False))
    inferred = [*compare_pairs(plain, run, swaps=0), *compare_pairs(others, run)]
    names = [pair.metric.info.name for pair in (*plain, *others)]
    return reports[0], dict(zip(names, inferred, strict=True))


def _pair(
    metric: Metric[Any],
    models: tuple[Model, Model],
    reports: Sequence[Report],
    evaluated: Evaluated,
    clusters: Clusters | None,
) -> ModelPair[Metric[Any]] | None:
    """Return the losses of both models as a pair; None if a model has none."""
    name = metric.info.name
    results = [result for report in reports for result in report.results if result.metric == name]
    losses = [loss(result.orientation, result.value, result.reference, result.alternative) for result in results]
    if None in losses or len(losses) < len(models):
        return None
    (first, first_rows), (second, second_rows) = (evaluated[name, model.name] for model in models)
    return ModelPair(metric, (first, second), (first_rows, second_rows), targets(*results), clusters)
