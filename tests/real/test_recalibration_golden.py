"""Recalibration of real predictions: numbers of other implementations on the same files."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calcheck
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory
from calcheck.recalibration.methods import FitOptions, Method, apply_steps


def qm9(data, name):
    path = data / "predictions" / f"qm9_e_{name}.csv"
    return calcheck.read(str(path), target="E_", mean="prediction", var="uncertainty_total").predictions()


@pytest.fixture(scope="module")
def molecules(data):
    """Return the validation and the test rows of QM9."""
    return qm9(data, "uncalibrated_validation"), qm9(data, "uncalibrated_test")


@pytest.fixture(scope="module")
def essays(data):
    """Return the validation and the test rows of the readability scores."""
    return [calcheck.read(str(data / "text_case" / f"{name}.parquet")).predictions() for name in ("val", "test")]


def corrected(rows, method):
    fitted, others = rows
    return apply_steps(Method.parse(method).fit(fitted, FitOptions()), others)


def judged(rows, *names):
    report = evaluate(InMemory(rows), [METRICS[name]() for name in names], run=Run(resamples=0, replicates=0))
    return [result.value for result in report.results]


def test_scaling_of_molecules(molecules):
    (step,) = Method.parse("scale").fit(molecules[0], FitOptions())
    assert_allclose(step.factor, 0.5584595279153627, rtol=1e-14)
    assert_allclose(judged(molecules[1], "ence", "nll", "zms", "cv"), [0.5786, -2.7535, 0.3236, 0.4422], atol=5e-5)
    after = judged(corrected(molecules, "scale"), "ence", "nll", "zms", "cv")
    assert_allclose(after, [0.4120, -2.9790, 1.0377, 0.4422], atol=5e-5)


def test_isotonic_variances_of_molecules_are_those_of_the_published_file(molecules, data):
    after = corrected(molecules, "isotonic-variance")
    published = qm9(data, "isotonic_test").predictive.std() ** 2
    assert_allclose(after.predictive.std() ** 2, published, rtol=1e-12)
    assert_allclose(judged(after, "nll", "zms", "cv"), [-3.0759, 0.9720, 1.7294], atol=5e-5)


def test_the_map_of_probabilities_mends_the_quantiles_of_molecules(molecules):
    assert_allclose(judged(molecules[1], "ece"), 0.1149, atol=5e-5)
    assert_allclose(judged(corrected(molecules, "pit"), "ece"), 0.0057, atol=5e-5)


def test_scaling_of_readability_scores(essays):
    (step,) = Method.parse("scale").fit(essays[0], FitOptions())
    assert_allclose(step.factor, 1.1414, atol=5e-5)
    assert_allclose(judged(essays[1], "ence", "nll", "coverage", "ece"), [0.1428, 1.0516, 0.8535, 0.0164], atol=6e-5)
    after = judged(corrected(essays, "scale"), "ence", "nll", "coverage", "ece")
    assert_allclose(after, [0.0702, 1.0308, 0.9001, 0.0065], atol=6e-5)


def test_the_map_of_probabilities_of_readability_scores(essays):
    # 0.0055 with all 1,181 knots; 200 of them give 0.0054
    assert_allclose(judged(corrected(essays, "pit"), "ece"), 0.0055, atol=1.5e-4)


def test_every_molecule_is_judged_out_of_fold(molecules):
    fitted, others = molecules
    found = calcheck.recalibrate(fitted, "local", to=others, metrics=["ence", "nll"], resamples=0, replicates=0)
    values = {
        tuple(each.slice.values()): each.value
        for each in found.results
        if each.metric == "nll" and "rows" in each.slice
    }
    assert values["out of fold", "after"] < values["out of fold", "before"] - 0.25
    assert values["other rows", "after"] < -3.07
    assert np.isfinite(list(values.values())).all()
