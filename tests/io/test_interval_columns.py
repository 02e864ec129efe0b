"""Files of prediction intervals: columns found by name, levels that are never guessed, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import calcheck
from calcheck import METRICS, write
from calcheck.errors import DataError, OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.io.column_names import ColumnOptions
from calcheck.streaming.state import accumulate, report_from_state
from tests.helpers.files import write as save
from tests.io.test_long_layouts import read, refused

Y = {"y": [0.5, 2.0, 3.0]}
LOW, HIGH = [0.0, 0, 0], [1.0, 1, 4]
RUN = Run(replicates=19, resamples=0)


def file(tmp_path, columns, name="preds.parquet"):
    return save(tmp_path / name, pa.table(columns))


def pair(lower, upper, **others):
    return Y | {lower: LOW, upper: HIGH} | others


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ("lower", "upper"),
        ("lo", "hi"),
        ("y_lower", "y_upper"),
        ("y_lo", "y_hi"),
        ("pi_lower", "pi_upper"),
        ("Lower", "Upper"),
    ],
)
def test_pairs_of_limits_are_found_by_name_and_need_their_level(tmp_path, lower, upper):
    path = file(tmp_path, pair(lower, upper))
    message = refused(path)
    assert f"columns '{lower}' and '{upper}' hold 67 % (9 to 99 %) of 3 targets; their level is not given" in message
    assert "Pass the level that was promised, as in" in message
    predictive = read(path, level=(0.9,)).predictions().predictive
    assert_array_equal(predictive.levels, [0.9])
    assert_array_equal(np.concatenate([predictive.lower, predictive.upper], axis=1), np.transpose([LOW, HIGH]))


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ("lower_90", "upper_90"),
        ("lower_0.9", "upper_0.9"),
        ("lo-90", "hi-90"),
        ("pi_lower_90.0", "pi_upper_90.0"),
        ("pi_lower_90%", "pi_upper_90%"),
        ("lower90", "upper90"),
    ],
)
def test_levels_in_column_names_are_read(tmp_path, lower, upper):
    path = file(tmp_path, pair(lower, upper))
    assert_array_equal(read(path).predictions().predictive.levels, [0.9])
    assert_array_equal(read(path, lower=lower, upper=upper).predictions().predictive.levels, [0.9])
    assert "there is no such interval (levels in the column names: 0.9)" in refused(path, level=(0.8,))


def test_a_version_in_a_column_name_is_not_a_level(tmp_path):
    path = file(tmp_path, pair("lo_v12", "hi_v12"))
    source = read(path, lower="lo_v12", upper="hi_v12", level=(0.9,))
    assert_array_equal(source.predictions().predictive.levels, [0.9])


def test_several_intervals_are_ordered_by_level_and_level_selects_among_them(tmp_path):
    columns = {
        f"{side}_{level}": [sign * level] * 3 for side, sign in (("lower", -1), ("upper", 1)) for level in (95, 50)
    }
    path = file(tmp_path, Y | columns)
    predictive = read(path).predictions().predictive
    assert_array_equal(predictive.levels, [0.5, 0.95])
    assert_array_equal(predictive.upper[0], [50, 95])
    assert_array_equal(read(path, level=(0.95,)).predictions().predictive.upper[0], [95])


@pytest.mark.parametrize("ending", ["conformal.npz", "preds.parquet"])
def test_arrays_of_limits_have_all_lower_limits_first(tmp_path, ending):
    """MAPIE: y_pred (n,) and y_pis (n, 2, k), as a matrix (n, 2 k) or as nested lists."""
    y_pis = np.stack([[LOW, np.subtract(LOW, 1)], [HIGH, np.add(HIGH, 1)]]).transpose(2, 0, 1)
    path = str(tmp_path / ending)
    if ending.endswith("npz"):
        np.savez(path, y_true=Y["y"], y_pred=np.ones(3), y_pis=y_pis)
    else:
        file(tmp_path, {"y_true": Y["y"], "y_pred": np.ones(3), "y_pis": y_pis.tolist()})
    predictive = read(path, level=(0.9, 0.95)).predictions().predictive
    assert_array_equal(predictive.lower, y_pis[:, 0])
    assert_array_equal(predictive.upper, y_pis[:, 1])
    assert_array_equal(predictive.point, np.ones(3))
    assert "column 'y_pis' has 4 limits per row, and --level names 1" in refused(path, level=(0.9,))
    assert "'y_pis' holds prediction intervals, but not their levels" in refused(path)
    assert "Are the levels in the order of the intervals?" in refused(path, level=(0.95, 0.9))


def test_complete_distributions_take_precedence_over_intervals(tmp_path):
    columns = pair("lower", "upper", mean=[0.0] * 3, std=[1.0] * 3)
    path = file(tmp_path, columns)
    assert read(path).predictions().predictive.family == "gaussian"
    assert read(path, lower="lower", upper="upper", level=(0.9,)).predictions().predictive.family == "intervals"


def test_limits_of_the_mean_are_not_prediction_intervals(tmp_path):
    """statsmodels writes mean_ci_lower for the mean, and obs_ci_lower for an observation."""
    others = {"mean": [1.0] * 3, "mean_se": [0.1] * 3, "mean_ci_lower": [9.0] * 3, "mean_ci_upper": [9.0] * 3}
    path = file(tmp_path, pair("obs_ci_lower", "obs_ci_upper", **others))
    predictive = read(path, level=(0.95,)).predictions().predictive
    assert_array_equal(predictive.lower[:, 0], LOW)
    assert_array_equal(predictive.point, [1, 1, 1])
    assert "0.95 is that which statsmodels writes unless told otherwise" in read(path).warnings()[0].text
    assert "'mean_se' may be the uncertainty of the mean alone" in refused(file(tmp_path, Y | others))


def test_two_sets_of_intervals_are_ambiguous(tmp_path):
    path = file(tmp_path, pair("lower", "upper") | {"y_lo": LOW, "y_hi": HIGH})
    assert "two sets of intervals: 'lower' with 'upper', and 'y_lo' with 'y_hi'" in refused(path, level=(0.9,))


def test_two_columns_for_one_limit_are_ambiguous(tmp_path):
    path = file(tmp_path, pair("lower_90", "upper_90") | {"lower_0.9": LOW})
    assert "two columns hold the lower limit: 'lower_90' and 'lower_0.9'" in refused(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lower": "lower", "upper": "upper"}, "the level of 'lower' is not known, and no --level is given"),
        ({"lower": "lower,lower", "upper": "upper"}, "--lower names 2 columns and --upper 1"),
        ({"lower": "upper", "upper": "lower", "level": (0.9,)}, "must not be above the upper limit"),
        ({"lower": "lower", "upper": "none", "level": (0.9,)}, "no column matches 'none' for the upper"),
        ({"intervals": "lower"}, "column 'lower' does not state the levels of its intervals"),
        ({"intervals": "lower", "level": (0.9,)}, "column 'lower' has 1 limits per row, and --level names 1"),
    ],
)
def test_unclear_intervals_are_refused(tmp_path, options, message):
    assert message in refused(file(tmp_path, pair("lower", "upper")), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": (90.0,)}, "--level must lie strictly between 0 and 1, got 90: did you mean 0.9?"),
        ({"level": (0.9, 0.9)}, "--level names a level twice: 0.9, 0.9"),
        ({"lower": "a"}, "--lower names one side of the intervals. Pass --upper too"),
        ({"lower": "a", "upper": "b", "quantiles": "q"}, "--quantiles and --lower and --upper both describe"),
        ({"lower": "a", "upper": "b", "min_std": 1.0}, "--min-std raises standard deviations, but --lower and --upper"),
    ],
)
def test_contradicting_options_are_refused(options, message):
    with pytest.raises(OptionError) as raised:
        ColumnOptions(**options)
    assert message in str(raised.value)


def test_missing_limits_are_refused_or_omitted_and_infinite_ones_are_limits(tmp_path):
    path = file(tmp_path, Y | {"lower": [None, -np.inf, 0.0], "upper": [1.0, np.inf, 4]})
    assert "lower must be numbers, but 1 of 3 rows" in refused(path, level=(0.9,))
    source = read(path, level=(0.9,), nan_policy="omit")
    assert_array_equal(source.predictions().predictive.lower[:, 0], [-np.inf, 0])
    assert source.reading.n_dropped == 1


def test_converted_intervals_are_read_without_options(tmp_path):
    original = read(file(tmp_path, pair("lo", "hi", pred=[1.0] * 3)), level=(0.9,))
    for ending in ("csv", "parquet"):
        write(original, str(tmp_path / f"out.{ending}"))
        found, expected = read(str(tmp_path / f"out.{ending}")).predictions(), original.predictions()
        assert found.predictive.equals(expected.predictive).all()
        assert_array_equal(found.predictive.point, expected.predictive.point)
        assert_array_equal(found.y, expected.y)


def test_explicit_options_say_what_was_found(tmp_path):
    path = file(tmp_path, pair("pi_lower_90", "pi_upper_90", yhat=[1.0] * 3))
    explicit = read(path).explicit()
    assert explicit[2:] == "--lower pi_lower_90 --upper pi_upper_90 --level 0.9 --mean yhat".split()  # noqa: SIM905
    assert read(path).input_info().predictive == "intervals at 0.9"


def test_arrays_of_limits_are_keywords_in_python():
    report = calcheck.evaluate(y=Y["y"], lower=LOW, upper=HIGH, level=0.9, metrics="coverage")
    assert [(found.value, found.options["level"]) for found in report.results] == [(2 / 3, 0.9)]
    both = np.stack([LOW, HIGH], axis=1)
    (found,) = calcheck.evaluate(y=Y["y"], intervals=both, level=[0.9], metrics="coverage").results
    assert found.value == 2 / 3
    with pytest.raises(OptionError, match="level takes a list of numbers"):
        calcheck.evaluate(y=Y["y"], lower=LOW, upper=HIGH, level="high", metrics="coverage")


def test_the_level_of_distributions_is_that_of_metrics_of_intervals():
    normal = {"y": [0.0, 1.0, 3.0], "mean": [0.0] * 3, "std": [1.0] * 3}
    report = calcheck.evaluate(**normal, level=0.5, metrics=["coverage", calcheck.metric("width", level=0.8)])
    assert [found.options["level"] for found in report.results] == [0.5, 0.8]


def test_metrics_use_the_level_in_the_file_that_is_nearest_to_90_percent(tmp_path):
    columns = {f"{side}_{level}": [sign * level] * 3 for side, sign in (("lo", -1), ("hi", 1)) for level in (50, 80)}
    source = read(file(tmp_path, Y | columns))
    report = evaluate(source, [METRICS["coverage"](), METRICS["width"](level=0.95)], run=RUN)
    assert report.results[0].options["level"] == 0.8
    assert report.results[0].details["at_other_levels"] == [{"level": 0.5, "coverage": 1.0, "expected": 0.5}]
    assert report.skipped[0].reason == "there is no interval at the level 0.95 (levels: 0.5, 0.8)"


def test_batches_give_the_same_metrics_and_refuse_cce(tmp_path):
    rng = np.random.default_rng(0)
    columns = {
        "y": rng.normal(size=60),
        "lower": np.full(60, -1.5),
        "upper": rng.uniform(1, 2, 60),
        "x": rng.normal(size=60),
    }
    source = read(file(tmp_path, columns), level=(0.9,), inputs="x")
    names = ["coverage", "stratified-coverage", "interval-score", "width", "cce"]
    metrics = [METRICS[name](**({"bins": 3} if name == "stratified-coverage" else {})) for name in names]
    streamed = report_from_state(accumulate(source, metrics, RUN), RUN)
    whole = evaluate(source, metrics[:-1], run=RUN)
    assert [found.metric for found in streamed.results] == names[:-1]
    for one, other in zip(streamed.results, whole.results, strict=True):
        np.testing.assert_allclose(one.value, other.value, rtol=1e-12)
        assert (one.p_value, one.verdict) == (other.p_value, other.verdict)
    assert streamed.skipped[0].reason.startswith("cannot be computed in batches for prediction intervals")


def test_intervals_at_different_levels_cannot_be_joined(tmp_path):
    first, second = (read(file(tmp_path, pair("lo", "hi")), level=(level,)).predictions() for level in (0.8, 0.9))
    with pytest.raises(DataError, match=r"intervals at 0\.8 and intervals at 0\.9 cannot be joined"):
        first.predictive.join([second.predictive])


def test_models_with_different_levels_or_outcomes_are_not_compared(tmp_path):
    normal = {"y": [0.5, 2.0, 3.0], "mean": [0.0] * 3, "std": [1.0] * 3, "x": [0.0, 1, 2]}
    models = {
        "intervals": read(file(tmp_path, pair("lower_80", "upper_80", x=[0.0, 1, 2])), inputs="x"),
        "normal": read(file(tmp_path, normal, "normal.parquet"), inputs="x"),
    }
    report = calcheck.compare(models, ["coverage", "cce", calcheck.metric("width", level=0.8)])
    assert {found.metric for found in report.results} == {"width"}
    assert {each.metric: each.reason for each in report.skipped} == {
        "coverage": "has intervals at different levels for the models (0.8, 0.9): pass --level",
        "cce": "compares distributions of some models, and the coverage of intervals of others",
    }
    with pytest.raises(DataError, match=r"coverage has intervals at different levels for the models \(0\.8, 0\.9\)"):
        calcheck.sweep(models, "coverage", {"subsample": [0.9]})


def test_levels_may_be_varied_in_a_sweep(tmp_path):
    columns = {
        f"{side}_{level}": [sign * level / 50] * 3 for side, sign in (("lo", -1), ("hi", 1)) for level in (50, 80)
    }
    report = calcheck.sweep(read(file(tmp_path, Y | columns)), "coverage", {"level": [0.5, 0.8]})
    assert [found.value for found in report.results[1:]] == [1 / 3, 1 / 3]
