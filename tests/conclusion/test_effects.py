"""The effects and their sentences, from results made by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from calcheck.conclusion import conclude, key_of
from calcheck.conclusion.answer import error_exponent
from calcheck.reports import Input, Overall, Report, Result, Skipped
from calcheck.reports.conclusion import WorstRegion

UNIFORM = [100.0] * 20
CURVE = [{"removed": 0.0, "error": 0.8, "oracle": 0.8}, {"removed": 0.2, "error": 0.7, "oracle": 0.5}]


def result(metric, value, low=None, high=None, **fields):
    options, given = fields.pop("options", {}), {"verdict": "none", "details": {}} | fields
    return Result(metric=metric, summary="", options=options, unit="1", value=value, low=low, high=high, **given)


def factor(level, value, low, high):
    return result("width-factor", value, low, high, options={"level": level})


def local(along, value, low, metric="local-scale"):
    return result(metric, value, low, options={"along": along})


RIGHT = (factor(0.9, 0.981, 0.914, 1.078), factor(0.5, 0.994, 0.897, 1.127), factor(0.99, 0.961, 0.891, 1.187))
CENTERED = result("standardized-bias", 0.0065, -0.0714, 0.0844)
P_VALUES = {("size", None): 0.7, ("bias", None): 0.9}


def concluded(*results, p=P_VALUES, others=(), settings=(), n=442, **given):
    read = Input(files=(), n=n, dropped=0, predictive="gaussian", columns={})
    report = Report(
        calcheck="0",
        input=read,
        settings=dict(settings),
        results=tuple(others),
        overall=given.pop("overall", None),
        region=given.pop("region", None),
    )
    return conclude(report, results, p, **{"tolerance": 0.2, "level": 0.9} | given)


@pytest.mark.parametrize(
    ("limits", "level", "qualifiers"),
    [
        ((1.1, 1.9), 0.9, ("as-tested",)),
        ((1.21, 1.9), 0.9, ("on-average", "as-tested")),
        ((0.5, 0.83), 0.9, ("on-average", "as-tested")),
        ((0.21, 0.4), None, ("on-average", "as-tested")),
        ((0.1, 0.4), None, ("as-tested",)),
    ],
)
def test_a_yes_holds_on_average_if_a_region_is_shown_to_be_beyond_the_tolerance(limits, level, qualifiers):
    low, high = limits
    region = WorstRegion(
        where="a>1",
        filter="",
        rows=50,
        direction="too-narrow",
        value=(low + high) / 2,
        low=low,
        high=high,
        other_value=1.0,
        level=level,
        p_value=0.01,
        text="",
    )
    found = concluded(*RIGHT, CENTERED, region=region).conclusion
    assert (found.answer, found.qualifiers) == ("yes", qualifiers)


def texts(*results, **given):
    found = concluded(*results, **given).conclusion
    return {(each.topic, each.kind): each.text for each in found.effects}


def test_a_right_model_is_within_the_tolerance_as_far_as_tested():
    report = concluded(*RIGHT, CENTERED)
    found = report.conclusion
    assert (found.answer, found.qualifiers, found.tolerance, found.level) == ("yes", ("as-tested",), 0.2, 0.9)
    assert report.settings["tolerance"] == 0.2
    assert [(each.topic, each.within, each.p) for each in found.effects] == [
        ("size", True, 0.7),
        ("shape", True, None),
        ("bias", True, 0.9),
        ("inputs", None, None),
    ]
    assert [each.text for each in found.effects] == [
        "90 % intervals would have to be 0.98 (0.91–1.08) times as wide: right within 9.4 %",
        "50 % intervals 0.99 (0.90–1.13) and 99 % intervals 0.96 (0.89–1.19) times as wide",
        "targets are between 0.071 predicted standard deviations below and 0.084 above the predictions on average",
        "not tested: pass --inputs or --embedding",
    ]


def test_the_sentence_about_the_size_has_the_share_by_which_intervals_are_too_narrow():
    """Test values of the standard text data: 1.138 (1.084, 1.192)."""
    narrow = factor(0.9, 1.138, 1.084, 1.192)
    text = texts(narrow, CENTERED)["size", None]
    assert text == "14 % too narrow: 90 % intervals would have to be 1.14 (1.08–1.19) times as wide"
    told = texts(narrow, CENTERED, p=P_VALUES | {("size", None): 0.005})["size", None]
    assert told == f"{text}; differs from a perfect model (p < 0.01), by less than the tolerance"


@pytest.mark.parametrize(
    ("factor_of", "text"),
    [
        ((0.8, 0.75, 0.85), "25 % too wide: 90 % intervals would have to be 0.80 (0.75–0.85) times as wide"),
        ((1.0, 0.7, 1.3), "90 % intervals would have to be 1.00 (0.70–1.30) times as wide: right within 43 %"),
        ((1.0, 0.0, None), "90 % intervals would have to be 1.00 (0.00–∞) times as wide"),
        ((25.0, 20.0, 30.0), "too narrow: 90 % intervals would have to be 25 (20–30) times as wide"),
    ],
)
def test_the_sentence_about_the_size_has_both_sides(factor_of, text):
    assert texts(factor(0.9, *factor_of), CENTERED)["size", None] == text


def test_a_significant_size_that_may_be_beyond_the_tolerance_is_a_no():
    found = concluded(factor(0.9, 1.25, 1.1, 1.4), CENTERED, p=P_VALUES | {("size", None): 0.01}).conclusion
    assert (found.answer, found.effects[0].within) == ("no", False)
    assert found.effects[0].text.endswith("times as wide (p 0.01)")


@pytest.mark.parametrize(("value", "side"), [(0.3, "above"), (-0.3, "below")])
def test_a_bias_has_its_direction(value, side):
    ends = sorted((value - 0.1, value + 0.1))
    text = texts(*RIGHT, result("standardized-bias", value, *ends))["bias", None]
    assert text == f"targets are 0.3 (0.2–0.4) predicted standard deviations {side} the predictions on average"


def test_wide_in_the_middle_and_narrow_in_the_tails_are_heavier_tails():
    """Test values of QM9: .793 (.779, .810), .941 (.926, .957), 1.252 (1.205, 1.297)."""
    levels = (factor(0.9, 0.941, 0.926, 0.957), factor(0.5, 0.793, 0.779, 0.810), factor(0.99, 1.252, 1.205, 1.297))
    found = concluded(*levels, CENTERED, p=P_VALUES | {("size", None): 0.005}).conclusion
    assert (found.answer, found.qualifiers) == ("yes", ("at-level", "as-tested"))
    shape = found.effects[1]
    assert shape.text.endswith("1.25 (1.21–1.30) times as wide: heavier tails than predicted")
    assert shape.value == pytest.approx(1.252 / 0.941)
    assert (shape.low > 1.2, shape.high < 1.45, shape.within) == (True, True, None)


def test_narrow_in_the_middle_and_wide_in_the_tails_are_lighter_tails():
    levels = (factor(0.9, 1.0, 0.98, 1.02), factor(0.5, 1.2, 1.18, 1.22), factor(0.99, 0.8, 0.79, 0.81))
    assert texts(*levels, CENTERED)["shape", None].endswith("lighter tails than predicted")


def test_the_interval_of_a_relative_factor_is_that_of_correlated_quantiles():
    """Bootstrap resamples of normal ratios: the logarithm of f_.5 / f_.9 has the same standard error."""
    rng = np.random.default_rng(0)
    n, levels = 4000, (0.9, 0.5)
    ratios = [np.abs(rng.normal(size=n)) for _ in range(400)]
    logs = np.array(
        [[np.log(np.quantile(each, level) / stats.norm.ppf((1 + level) / 2)) for level in levels] for each in ratios]
    )
    error = 1.645 * np.std(logs[:, 1] - logs[:, 0])
    limits = [1.645 * np.std(logs[:, place]) for place in (0, 1)]
    found = [factor(level, 1.0, math.exp(-each), math.exp(each)) for level, each in zip(levels, limits, strict=True)]
    shape = concluded(*found, CENTERED).conclusion.effects[1]
    assert math.log(shape.high) == pytest.approx(error, rel=0.12)
    assert math.log(shape.low) == pytest.approx(-error, rel=0.12)


def test_unequal_tails_are_skewness_unless_there_is_a_bias():
    details = {"histogram": [40.0, *UNIFORM[2:], 160.0]}
    histogram = result("pit", 1e-4, verdict="fail", details=details)
    text = texts(*RIGHT, CENTERED, others=[histogram])["shape", None]
    assert "2 % of targets are below the 5 % quantile, 8 % above the 95 % quantile: more skewed to the right" in text
    biased = P_VALUES | {("bias", None): 0.01}
    assert "skewed" not in texts(*RIGHT, CENTERED, others=[histogram], p=biased)["shape", None]
    passed = result("pit", 1e-4, verdict="pass", details=details)
    assert "skewed" not in texts(*RIGHT, CENTERED, others=[passed])["shape", None]


def test_ranks_of_several_targets_are_no_quantiles_of_a_target():
    details = {"histogram": [40.0, *UNIFORM[2:], 160.0]}
    ranks = result("pit", 1e-4, verdict="fail", details=details, options={"pre_rank": "variogram"})
    assert "quantile" not in texts(*RIGHT, CENTERED, others=[ranks])["shape", None]


def test_a_factor_between_equal_limits_is_known_up_to_ties():
    text = texts(factor(0.9, 1.0, 1.0, 1.0), CENTERED)["size", None]
    assert text.endswith("times as wide, as far as targets that are equal to limits show")


def test_local_errors_limit_the_answer_and_say_at_least_by_how_much():
    """The value of the diabetes data: .234, at least .173."""
    p = P_VALUES | {("inputs", "scale"): 0.005}
    found = concluded(*RIGHT, CENTERED, local("inputs", 0.234, 0.173), local("std", -0.02, -0.08), p=p).conclusion
    assert (found.answer, found.qualifiers) == ("yes", ("on-average",))
    told = {(each.topic, each.kind): each for each in found.effects}
    assert told["inputs", "scale"].text == (
        "uncertainties are off by at least 17 % along the inputs, typically 23 % (p < 0.01)"
    )
    assert (told["inputs", "scale"].high, told["inputs", "scale"].within) == (None, None)
    assert told["ranking", "scale"].text == "no error of the uncertainties by their size is shown"


def test_a_local_error_whose_p_value_is_unknown_is_not_judged():
    """Errors of an unknown shape have a limit above 0, and nothing that shows it."""
    found = concluded(*RIGHT, CENTERED, local("std", 0.12, 0.095)).conclusion
    told = next(each.text for each in found.effects if each.topic == "ranking")
    assert told == "an error of the uncertainties by their size is not judged: it has no p-value"


def test_a_local_bias_is_one_of_the_predictions():
    p = P_VALUES | {("time", "bias"): 0.01}
    found = concluded(*RIGHT, CENTERED, local("time", 0.4, 0.25, "local-bias"), p=p).conclusion
    effect = next(each for each in found.effects if each.topic == "time")
    assert (found.answer, effect.kind, effect.within) == ("no", "bias", False)
    assert effect.text == "predictions are off by at least 0.25 std over time, typically 0.4 std (p 0.01)"


def test_topics_follow_from_metrics_and_what_they_are_along():
    assert key_of("width-factor", {"level": 0.9}) == ("size", None)
    assert key_of("zms", {}) == ("size", None)
    assert key_of("standardized-bias", {}) == ("bias", None)
    found = [key_of(name, {"along": each}) for name in ("local-scale", "local-bias") for each in ("std", "site")]
    assert found == [("ranking", "scale"), ("groups", "scale"), ("ranking", "bias"), ("groups", "bias")]


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([(1, 1.0), (2, 1.1), (4, 1.2)], "; larger uncertainties do not mean larger errors"),
        ([(1, 1.0), (2, 1.5), (4, 2.2)], "; they are too large where they are large, too small where they are small"),
        ([(1, 1.0), (2, 2.8), (4, 8.0)], "; they are too small where they are large, too large where they are small"),
        ([(1, 1.0), (1.01, 2.0)], ""),
    ],
)
def test_the_sentence_about_a_wrong_ranking_has_the_growth_of_errors(pairs, words):
    bins = result("ence", 0.1, details={"bins": [{"rmv": x, "rmse": y} for x, y in pairs]})
    p = P_VALUES | {("ranking", "scale"): 0.01}
    text = texts(*RIGHT, CENTERED, local("std", 0.1, 0.05), p=p, others=[bins])["ranking", "scale"]
    assert text.endswith(f"typically 10 % (p 0.01){words}")


def test_the_sentence_about_the_ranking_has_the_error_without_the_largest_uncertainties():
    curve = result("confidence-curve", 0.1, details={"curve": CURVE}, options={"score": "mae"})
    text = texts(*RIGHT, CENTERED, local("std", 0.0, -0.1), others=[curve])["ranking", "scale"]
    assert text.endswith("is shown (without the largest 20 %: mae 0.8 → 0.7)")


def test_the_exponent_of_errors_is_that_of_least_squares():
    rmv, rmse = [1.0, 2.0, 4.0, 8.0, 16.0], [1.0, 2.2, 3.7, 8.4, 15.0]
    expected = stats.linregress(np.log(rmv), np.log(rmse)).slope
    bins = [{"rmv": x, "rmse": y} for x, y in zip(rmv, rmse, strict=True)]
    assert error_exponent(bins) == pytest.approx(expected)
    assert error_exponent([]) is None


def test_dependence_that_was_only_noticed_leaves_the_answer_open():
    noticed = {"dependence_noticed": {"reason": "neighbouring rows have similar errors"}}
    found = concluded(*RIGHT, CENTERED, settings=noticed).conclusion
    assert (found.answer, [each.topic for each in found.effects]) == ("not-shown", ["dependence"])


def test_impossible_targets_are_a_no_however_rows_depend_on_each_other():
    found = concluded(*RIGHT, CENTERED, impossible_text="3 targets have probability 0").conclusion
    assert (found.answer, found.qualifiers, found.effects[-1].text) == ("no", (), "3 targets have probability 0")
    noticed = {"dependence_noticed": {"reason": "neighbouring rows have similar errors"}}
    found = concluded(*RIGHT, CENTERED, impossible_text="3 targets have probability 0", settings=noticed).conclusion
    assert (found.answer, [each.within for each in found.effects]) == ("no", [False, None])


@pytest.mark.parametrize(("verdict", "answer"), [("pass", "not-shown"), ("fail", "no")])
def test_where_the_size_is_unknown_all_metrics_together_can_only_say_no(verdict, answer):
    together = Overall(
        verdict=verdict,
        p_value=0.01,
        method="maximum relative to limits",
        replicates=199,
        metrics=("crps", "cce"),
        leading="cce",
    )
    skipped = [Skipped(metric="width-factor", code="error", reason="one draw per row has no spread")]
    found = concluded(overall=together, skipped=skipped, p={}).conclusion
    words = {"fail": "fail, led by cce", "pass": "do not differ from those of a perfect model"}[verdict]
    assert (found.answer, found.rows_needed) == (answer, None)
    assert [each.text for each in found.effects] == [
        "not tested: pass --inputs or --embedding",
        "not tested: one draw per row has no spread",
        f"2 metrics together {words} (p 0.01)",
    ]


def test_without_anything_to_judge_there_is_no_conclusion():
    assert concluded(p={}).conclusion is None
