"""Whether a report of other rows is worse: distances from a right model, tested, and compared with a tolerance."""

import math
from dataclasses import replace

import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from calcheck.models.report_difference import worsenings
from calcheck.reports import Conclusion, Input, Report, Result
from calcheck.reports.conclusion import Effect

INPUT = Input(files=(), n=400, dropped=0, predictive="gaussian", columns={})


def report(*effects, results=(), **settings):
    conclusion = Conclusion(answer="not-shown", tolerance=0.2, effects=effects)
    settings = {"confidence": 0.95, "tolerance": 0.2} | settings
    return Report(calcheck="0", input=INPUT, settings=settings, results=results, conclusion=conclusion)


def size(value, half):
    """Return the effect of the size, with limits at a factor of ``exp(half)``."""
    return Effect(topic="size", value=value, low=value * math.exp(-half), high=value * math.exp(half), text="")


def score(value, expected, half, metric="crps"):
    limits = {"low": value - half, "high": value + half}
    return Result(metric=metric, summary="", options={}, unit="y", value=value, reference=expected, **limits)


def test_the_p_value_of_a_factor_is_that_of_the_difference_of_its_absolute_logarithms():
    """Half widths of 90 % intervals are 1.645 standard errors."""
    (found,) = worsenings(report(size(1.1, 0.1)), report(size(1.5, 0.2)))
    change, error = math.log(1.5 / 1.1), math.hypot(0.1, 0.2) / norm.ppf(0.95)
    assert_allclose([found.worsening, found.p_value], [change, norm.sf(change / error)])
    assert_allclose(found.high, change + norm.ppf(0.95) * error)
    assert (found.name, found.outcome) == ("effects.size", "worse")
    assert found.text == "1.5 (1.23–1.83), before 1.1 (0.995–1.22): worse (p 0.011)"


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (1.0, 1.5, "worse"),
        (1.0, 1 / 1.5, "worse"),
        (1.5, 1.0, "not-worse"),
        (1.5, 1 / 1.5, "not-worse"),
        (1.0, 1.02, "not-worse"),
        (1.0, 1.1, "not-shown"),
    ],
)
def test_a_factor_is_worse_if_it_is_farther_from_one_on_either_side(before, after, outcome):
    (found,) = worsenings(report(size(before, 0.08)), report(size(after, 0.08)))
    assert found.outcome == outcome


def test_a_difference_within_the_tolerance_is_not_worse_however_significant():
    (found,) = worsenings(report(size(1.0, 0.001)), report(size(1.1, 0.001)))
    assert found.p_value < 1e-9
    assert found.outcome == "not-worse"
    (found,) = worsenings(report(size(1.0, 0.001)), report(size(1.1, 0.001), tolerance=0.05))
    assert found.outcome == "worse"


def test_scores_are_relative_to_those_of_a_perfect_model_on_the_same_rows():
    """Rows that are harder to predict have larger scores of a right model too."""
    old, harder = (report(results=(score(each, each, 0.1 * each),)) for each in (1.0, 3.0))
    (found,) = worsenings(old, harder)
    assert (found.name, found.old, found.new) == ("crps", 0, 0)
    (found,) = worsenings(old, report(results=(score(4.5, 3.0, 0.3),)))
    error = math.hypot(0.1, 0.1) / norm.ppf(0.975)
    assert_allclose([found.worsening, found.p_value], [0.5, norm.sf(0.5 / error)])
    assert found.outcome == "worse"


def test_the_tolerance_of_a_likelihood_is_its_loss_by_errors_that_are_larger_by_the_tolerance():
    """E z² / 2 of errors 1.2 times as large is 0.72 instead of 0.5; likelihoods may be negative."""
    old = report(results=(score(-1.0, -1.0, 0.001, "nll"),))
    for loss, outcome in ((0.21, "not-worse"), (0.23, "worse")):
        (found,) = worsenings(old, report(results=(score(-1.0 + loss, -1.0, 0.001, "nll"),)))
        assert found.outcome == outcome


def test_p_values_are_adjusted_for_their_number():
    """The smaller of two is doubled, unless the larger one is smaller than that; the larger one is as it is."""
    old = report(size(1.0, 0.1), results=(score(1.0, 1.0, 0.1),))
    error = math.hypot(0.1, 0.1)
    p_size, p_score = norm.sf(math.log(1.3) / (error / norm.ppf(0.95))), norm.sf(0.05 / (error / norm.ppf(0.975)))
    assert 2 * p_size < p_score
    found = worsenings(old, report(size(1.3, 0.1), results=(score(1.05, 1.0, 0.1),)))
    assert_allclose([each.p_value for each in found], [2 * p_size, p_score])
    found = worsenings(old, report(size(1.05, 0.1), results=(score(1.05, 1.0, 0.1),)))
    larger = max(norm.sf(math.log(1.05) / (error / norm.ppf(0.95))), p_score)
    assert_allclose([each.p_value for each in found], [larger, larger])


def test_the_size_has_half_of_the_weights_of_all_tests():
    """Of zms and two scores, zms has the weight 3/2 and each score 3/4: 3/1 times p of zms is divided by 3/2.

    The logarithm of the root of 1.69 is log 1.3; scores that do not change have p-values of 1.
    """
    scores = (score(1.0, 1.0, 0.1), score(1.0, 1.0, 0.1, "mae"))
    half = 2 * 0.1
    old, new = (
        replace(score(value, 1.0, 0.1, "zms"), low=value * math.exp(-half), high=value * math.exp(half))
        for value in (1.0, 1.69)
    )
    found = {each.name: each for each in worsenings(report(results=(old, *scores)), report(results=(new, *scores)))}
    error = math.hypot(0.1, 0.1) / norm.ppf(0.975)
    assert_allclose(found["zms"].worsening, math.log(1.3))
    assert_allclose(found["zms"].p_value, 2 * norm.sf(math.log(1.3) / error))
    assert found["zms"].text.startswith("1.69 (1.38–2.06), before 1 (0.819–1.22): worse")
    assert found["crps"].p_value > 0.5


def test_local_errors_are_compared_as_variances():
    """The standard error of .2² is (.2² − .1²) / 1.645; a negative estimate counts as 0."""
    old, new = (
        report(Effect(topic="inputs", kind="scale", value=v, low=low, text="")) for v, low in ((-0.1, -0.2), (0.2, 0.1))
    )
    (found,) = worsenings(old, new)
    error = math.hypot(0.04 - 0.01, 0.04 - 0.01) / norm.ppf(0.95)
    assert_allclose([found.worsening, found.p_value], [0.04, norm.sf(0.04 / error)])


def test_what_only_one_report_knows_is_not_compared():
    unknown = replace(size(1.2, 0.1), high=None)
    assert worsenings(report(size(1.0, 0.1)), report(unknown)) == []
    assert worsenings(report(), report(results=(score(1.0, None, 0.1), score(1.0, 1.0, 0.1, "ece")))) == []
