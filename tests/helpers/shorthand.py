"""Shorthand for tests: compute one metric on predictions in memory."""

import numpy as np

from calcheck.distributions import Gaussian, Samples
from calcheck.execution.run import Run
from calcheck.inference.paired_comparison import ModelPair, compare_pairs
from calcheck.metrics.cce import Cce
from calcheck.predictions import InMemory, Predictions


def rows_of(metric, predictions, *, at=None, run=None):
    """Return the per-row results of a metric."""
    run = run or Run()
    source = InMemory(predictions)
    fit = metric.fit(source, run)
    if at is not None:
        fit = metric.at_inputs(fit, InMemory(at))
    return metric.evaluate(fit, source, run)


def cce(x, y, predictive, *, at=None, run=None, has_embedding=True, **options):
    """Return CCE at each row."""
    predictions = Predictions(y=y, predictive=predictive, x=x, has_embedding=has_embedding)
    points = None if at is None else Predictions(x=at, has_embedding=has_embedding)
    return rows_of(Cce(**options), predictions, at=points, run=run).columns["cce"]


def gaussian_case(rng, n, d, *, spread=1.0):
    """Return inputs, targets and approximately calibrated Gaussian predictions."""
    x = rng.normal(size=(n, d))
    mean = np.sin(x @ rng.normal(size=d)) + rng.normal(size=n) * 0.1
    std = rng.uniform(0.3, 0.8, n)
    return x, mean + std * rng.normal(size=n), Gaussian(mean, spread * std)


def as_samples(rng, predictive, size):
    """Return samples from distributions."""
    return Samples(predictive.sample(rng, size))


def compare_models(metric, first, second, *, run=None, swaps=None):
    """Return the comparison of two models' predictions of the same rows, by the distances from exact ideal values."""
    rows = rows_of(metric, first, run=run), rows_of(metric, second, run=run)
    ideal = (0.0, 0.0) if metric.info.orientation == "zero" else tuple(each.reference for each in rows)
    pair = ModelPair(metric, (first, second), rows, None if None in ideal else ideal)
    (found,) = compare_pairs([pair], run or Run(), swaps=swaps)
    return found


def texts(messages):
    """Return the texts of messages, of reports in Python or in JSON."""
    return tuple(each["text"] if isinstance(each, dict) else each.text for each in messages)
