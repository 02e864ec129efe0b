"""Which of several models would be best at new inputs, and the answer for each of them there."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calcheck.core.lazy_inputs import same_inputs
from calcheck.errors import DataError, OptionError
from calcheck.evaluation import Answer
from calcheck.execution.run import Run, one_blas_thread
from calcheck.inference.metric_protocol import RowResults
from calcheck.metrics.base import Metric
from calcheck.models.best_model import SCORES, best_model
from calcheck.new_inputs.transfer import MeansAtNew, Placement, Terms, locate, means_at_new, transfer_located
from calcheck.options import TOLERANCE
from calcheck.predictions import Predictions
from calcheck.reports import Inference, Result
from calcheck.reports.conclusion import BestModel, ModelsAtNewInputs, NewInputs

MEANS = tuple(name for name in SCORES if name != "rmse")  # Scores that are means over rows


@one_blas_thread()
def models_at_new_inputs(
    models: Mapping[str, Predictions],
    metrics: Sequence[Metric[Any]],
    scores: Mapping[tuple[str, str], RowResults],
    new: Predictions,
    *,
    names: Sequence[str] = (),
    run: Run,
) -> ModelsAtNewInputs:
    """Return which model would be best at new inputs, by scores of rows by metric and model, and all answers there.

    ``names`` are those of the inputs, none for an embedding.
    """
    first = next(iter(models.values()))
    for name, each in models.items():
        if each.x is None:
            raise OptionError("--on compares inputs: also pass --inputs or --embedding, with the columns of all files")
        if first.x is None or not same_inputs(first.x, each.x):
            raise DataError(
                f"{next(iter(models))} and {name} have different inputs: --on needs the same for all models"
            )
    located = locate(first, new, run=run, names=names)
    answers = {name: _answer(each, new, located, run) for name, each in models.items()}
    known = {each.info.name: each for each in metrics if _are_finite(each, scores)}
    metric = next((known[name] for name in MEANS if name in known), None)
    if metric is None:
        return ModelsAtNewInputs(best=None, reason=f"it needs one of the scores {', '.join(MEANS)}", models=answers)
    own = np.stack([_values(scores[metric.info.name, name]) for name in models], axis=1)
    found = means_at_new(first, own, new, located, run)
    best = None if found.population is None else _best(metric, list(models), found, run)
    reason = found.reason or ("" if best else "all models have the same scores")
    return ModelsAtNewInputs(best=best, reason=reason, models=answers)


def _answer(rows: Predictions, new: Predictions, located: Placement, run: Run) -> NewInputs:
    """Return the answer for a model at new inputs."""
    terms = Terms(Answer().level_of(rows), TOLERANCE, 1 - run.confidence)
    return transfer_located(rows, new, replace(located, tested=rows), terms, run).conclusion


def _values(rows: RowResults) -> Any:
    """Return the scores of rows, (n,)."""
    return np.asarray(next(iter(rows.columns.values())), dtype=np.float64)


def _are_finite(metric: Metric[Any], scores: Mapping[tuple[str, str], RowResults]) -> bool:
    """Return whether the scores of the rows of all models are finite."""
    found = [each for (name, _), each in scores.items() if name == metric.info.name]
    return metric.info.name in MEANS and all(np.isfinite(_values(each)).all() for each in found)


def _best(metric: Metric[Any], names: Sequence[str], found: MeansAtNew, run: Run) -> BestModel | None:
    """Return the model with the smallest weighted mean score, and the differences of the others from it."""
    population, values = found.population, dict(zip(names, found.values.T, strict=True))
    if population is None:
        return None

    def differences(order: Sequence[str]) -> list[Result]:
        first, *others = order
        results = []
        for name in others:
            mean = population.mean(values[name] - values[first])
            low, high = mean.limits((1 - run.confidence) / 2)
            inference = Inference(low=low, high=high, interval="normal", p_value=mean.p_value(0.0))
            results.append(metric.result(mean.value, {"model": name, "minus": first}, inference))
        return results

    means = {name: population.mean(each).value for name, each in values.items()}
    return best_model(metric.info.name, means, differences, run.confidence)
