"""Several targets of one input: rows that share a key."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.distributions.row_random import RowRandom, mix
from calcheck.errors import DataError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.models.alignment import Model
from calcheck.models.comparison import compare
from calcheck.predictions import InMemory, Predictions, group_by_input, group_rows
from calcheck.studies.sweep.study import parse, sweep
from tests.helpers.shorthand import texts

PLAIN = Run(replicates=0, resamples=0)


def repeated(n=12, targets=3, seed=0):
    """Return rows in random order, r per key, with columns that are and are not constant within keys."""
    rng = np.random.default_rng(seed)
    key = rng.permutation(np.repeat(np.arange(n), targets))
    x, draws = rng.normal(size=(n, 2)), rng.normal(size=(n, 4))
    columns = {"age": np.arange(n)[key] * 2, "place": np.arange(n * targets)}
    return Predictions(y=rng.normal(size=len(key)), predictive=Samples(draws[key]), x=x[key], id=key, columns=columns)


def test_rows_with_the_same_key_are_grouped_with_all_their_targets():
    rows = repeated()
    made = group_rows(rows)
    assert made.repeated
    assert made.y.shape == (12, 3, 1)
    assert_array_equal(made.id, list(dict.fromkeys(rows.id.tolist())))
    for key, targets, x, draws in zip(made.id, made.y[:, :, 0], made.x, made.predictive.draws, strict=True):
        own = rows.id == key
        assert_array_equal(targets, np.sort(rows.y[own]))
        assert_array_equal(x, rows.x[own][0])
        assert_array_equal(draws, rows.predictive.draws[own][0])
    assert_array_equal(made.columns["age"], 2 * made.id)
    assert "place" not in made.columns
    assert_array_equal(rows.id[made.row_numbers()], made.id)


def test_rows_with_unique_keys_are_unchanged():
    rows = repeated(targets=1)
    assert group_rows(rows) is rows
    assert not rows.repeated


def test_vectors_of_targets_stay_together():
    rows = repeated()
    y = np.stack([rows.y, -rows.y], axis=1)
    made = group_rows(Predictions(y=y, x=rows.x, id=rows.id))
    assert made.y.shape == (12, 3, 2)
    assert_array_equal(made.y[:, :, 1], -made.y[:, :, 0])


@pytest.mark.parametrize("what", ["inputs", "predictions"])
def test_rows_with_the_same_key_must_agree_in_inputs_and_predictions(what):
    rows = repeated()
    x, draws = rows.x.copy(), rows.predictive.draws.copy()
    (x if what == "inputs" else draws)[7, 1] += 1e-9
    with pytest.raises(DataError, match=f"have the same id but different {what}"):
        group_rows(Predictions(y=rows.y, predictive=Samples(draws), x=x, id=rows.id))


def test_different_numbers_of_targets_are_refused():
    rows = repeated().take(np.arange(35))
    with pytest.raises(DataError, match=r"has 2 and .* has 3\. Remove some rows"):
        group_rows(rows)


def test_grouping_is_reported_and_only_for_metrics_that_support_it():
    source = InMemory(repeated())
    grouped = group_by_input(source, [METRICS["jmmd"], METRICS["ammd"]])
    assert grouped.input_info().n == len(grouped.predictions()) == 12
    assert texts(grouped.warnings()) == ("36 rows were grouped by id into 12 inputs with 3 targets each",)
    assert group_by_input(source, [METRICS["jmmd"], METRICS["crps"]]) is source
    (result,) = evaluate(source, [METRICS["ammd"]()], run=PLAIN).results
    assert "36 rows were grouped by id into 12 inputs with 3 targets each" in texts(result.warnings)


def test_every_study_groups_rows_the_same_way():
    first, second = repeated(), repeated()
    second = second.take(np.random.default_rng(1).permutation(36))
    (alone,) = evaluate(InMemory(first), [METRICS["jmmd"]()], run=PLAIN).results
    models = [Model("a", InMemory(first)), Model("b", InMemory(second))]
    both = compare(models, [METRICS["jmmd"]()], swaps=0, run=PLAIN)
    assert [result.value for result in both.results[:2]] == pytest.approx([alone.value] * 2, rel=1e-12)
    varied = sweep([models[0]], METRICS["jmmd"](), [parse("gamma-x=0.25,1", METRICS["jmmd"])], run=PLAIN)
    assert varied.results[0].value == pytest.approx(alone.value, rel=1e-12)


def test_metrics_of_single_targets_are_skipped_with_the_reason():
    rows = group_rows(repeated())
    report = evaluate(InMemory(rows), [METRICS["crps"]()], run=PLAIN)
    assert report.skipped[0].reason == "needs one target per input, but there are several"


@pytest.mark.parametrize("family", ["gaussian", "poisson", "samples"])
def test_replicates_keep_the_number_of_targets_per_input(family):
    n, targets, rng = 4000, 3, np.random.default_rng(0)
    mean = rng.uniform(1, 5, n)
    made = {"gaussian": Gaussian(mean, np.ones(n)), "poisson": Poisson(mean), "samples": None}[family]
    predictive = made or Samples(rng.normal(size=(n, 2)) + mean[:, None])
    y = (predictive if made else Gaussian(mean, np.ones(n))).sample(rng, targets)[:, :, None]
    (drawn, distributions), (again, _) = predictive.replicates(
        y, RowRandom(mix(np.arange(n, dtype=np.uint64))), range(2)
    )
    assert drawn.shape == again.shape == y.shape
    assert (drawn != again).any()
    assert abs((drawn[:, :, 0] - mean[:, None]).mean()) < 0.1
    if made is None:  # the same five values, exchanged
        values = np.concatenate([drawn[:, :, 0], distributions.draws], axis=1)
        assert_array_equal(np.sort(values), np.sort(np.concatenate([y[:, :, 0], predictive.draws], axis=1)))
        kept = np.mean([np.isin(row, old).sum() for row, old in zip(drawn[:, :, 0], y[:, :, 0], strict=True)])
        assert kept == pytest.approx(3 * 3 / 5, abs=0.05)
    else:
        assert distributions is predictive


def test_distributions_given_by_quantiles_are_compared_by_row():
    levels = np.array([0.1, 0.5, 0.9])
    values = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 3.0]])
    one = Quantiles(levels, values)
    assert one.equals(one).tolist() == [True, True]
    assert one.equals(Quantiles(levels, values[[0, 0]])).tolist() == [True, False]
    assert one.equals(Quantiles(levels + 0.01, values)).tolist() == [False, False]
