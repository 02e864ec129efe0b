"""Files written by tools of the field are read correctly: units, family, and values taken from the file by hand."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from calcheck.errors import CalcheckError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.io.column_names import ColumnOptions
from calcheck.io.file_source import FileSource
from calcheck.io.files import File
from calcheck.metrics import METRICS
from calcheck.metrics.coverage import Coverage
from calcheck.metrics.scores import Wis
from calcheck.metrics.spread import Zms
from tests.helpers.shorthand import rows_of, texts

# file, options, units, family, and values of the first unit: its target, or None, and a number of its prediction
EMBEDDED = (20, "gaussian", 0.08905603873921995, lambda one: one.std(), 1.080532978717757)
FIRST_DRAW = ("samples", lambda one: one.draws[:, 0])
FILES = {
    "formats/arviz_posterior_predictive.nc": ({}, 108, "samples", 4.41, lambda one: one.draws[:, 0], 5.126170715528371),
    "formats/arviz_xarray_long_head.csv": (
        {"nan_policy": "omit"},
        56,
        "samples",
        None,
        lambda one: one.draws[:, 0],
        5.126170715528371,
    ),
    "formats/catboost_rawformulaval_mean_logstd.csv": (
        {"mean": "0", "log_std": "1"},
        108,
        "gaussian",
        4.41,
        lambda one: np.log(one.std()),
        -1.0200059482176247,
    ),
    "formats/catboost_rmsewithuncertainty_mean_var.csv": (
        {},
        108,
        "gaussian",
        4.41,
        lambda one: one.std() ** 2,
        0.1300271640094875,
    ),
    "formats/emb_fixedsize_nostoreschema.parquet": ({}, *EMBEDDED),
    "formats/emb_numpy_repr.csv": ({}, *EMBEDDED),
    "formats/emb_pandas_list.parquet": ({}, *EMBEDDED),
    "formats/emb_pyarrow_fixedsize.parquet": ({}, *EMBEDDED),
    "formats/emb_stringified_list.csv": ({}, *EMBEDDED),
    "formats/emb_wide.csv": ({}, *EMBEDDED),
    "formats/polars_array.parquet": ({}, *EMBEDDED),
    "formats/polars_list.parquet": ({}, *EMBEDDED),
    "formats/gluonts_serve.jsonl": ({}, 20, "samples", None, lambda one: one.draws[:, 0], 5.754595398866876),
    "formats/ngboost_lognormal_s_scale.csv": (
        {"dist": "lognormal"},
        108,
        "lognormal",
        4.41,
        lambda one: one.median(),
        4.616754015868112,
    ),
    "formats/ngboost_normal_loc_scale.csv": (
        {"dist": "gaussian"},
        108,
        "gaussian",
        4.41,
        lambda one: one.std(),
        7.39500755693963,
    ),
    "formats/sklearn_gp_return_std.csv": ({}, 108, "gaussian", 4.41, lambda one: one.std(), 0.8891037915007926),
    "formats/sklearn_gp_return_std.npz": ({}, 108, "gaussian", 4.41, lambda one: one.std(), 0.8891037915007926),
    "formats/skpro_pred_interval.csv": (
        {"truth": "formats/skpro_y_true.csv"},
        108,
        "quantiles",
        4.41,
        lambda one: one.quantile(0.05),
        4.107060329852835,
    ),
    "formats/skpro_pred_quantiles.csv": (
        {"truth": "formats/skpro_y_true.csv"},
        108,
        "quantiles",
        4.41,
        lambda one: one.quantile(0.5),
        16.007878483066754,
    ),
    "formats/skpro_pred_quantiles.parquet": (
        {"truth": "formats/skpro_y_true.csv"},
        108,
        "quantiles",
        4.41,
        lambda one: one.quantile(0.95),
        27.908696636280666,
    ),
    "formats/statsforecast_cv_levels.csv": (
        {"model": "AutoETS"},
        36,
        "quantiles",
        340.0,
        lambda one: one.quantile(0.05),
        316.0519158629332,
    ),
    "formats/statsforecast_cv_levels.parquet": (
        {"model": "SeasonalNaive"},
        36,
        "quantiles",
        340.0,
        lambda one: one.quantile(0.25),
        292.1015738040651,
    ),
    "forecasts/2025-12-06-UMass-trends_ensemble.parquet": (
        {"filter": ("output_type=quantile",)},
        212,
        "quantiles",
        None,
        lambda one: one.quantile(0.025),
        32.5,
    ),
    "forecasts/2026-01-24-UMass-trends_ensemble.parquet": (
        {"filter": ("output_type=sample",)},
        212,
        "samples",
        None,
        lambda one: one.draws.shape[1],
        100,
    ),
    "forecasts/flusight_baseline_2026-01-24_mixed_types.csv": (
        {"filter": ("output_type=quantile", "target=wk inc flu hosp")},
        15,
        "quantiles",
        None,
        lambda one: one.quantile(0.01),
        1250,
    ),
    "forecasts/flusight_baseline_sample_h1.csv": (
        {"truth": "forecasts/flusight_truth_hospital_admissions.csv"},
        159,
        "samples",
        86.0,
        lambda one: one.draws[:, :3],
        [[6, 9, 18]],
    ),
    "forecasts/flusight_ensemble_quantile.csv": (
        {"truth": "forecasts/flusight_truth_hospital_admissions.csv"},
        1272,
        "quantiles",
        67.0,
        lambda one: one.quantile(0.025),
        21,
    ),
    "forecasts/legacy_2022-11-14-PSI-DICE.csv": (
        {"truth": "forecasts/example_complex_time_series.csv", "nan_policy": "omit"},
        212,
        "quantiles",
        None,
        lambda one: one.quantile(0.01),
        7156.01771980155,
    ),
    "forecasts/scoringutils_example_quantile.csv": (
        {"model": "EuroCOVIDhub-ensemble", "filter": ("target_type=Cases",)},
        128,
        "quantiles",
        106987.0,
        lambda one: one.quantile(0.01),
        82466,
    ),
}
# file, options, and a part of the error: these contain no predictions, or ambiguous ones
REFUSED = {
    "formats/arviz_xarray_long_head.csv": ({}, "52 of 108 units lack some of the 19 draws"),
    "formats/autogluon_tabular_quantile_floatcols.parquet": ({}, "must not cross, but those of 5 of 5 rows do"),
    "formats/emb_numpy_repr_truncated.csv": ({}, "values were lost"),
    "formats/ngboost_normal_loc_scale.csv": ({}, "Pass --dist"),
    "formats/skpro_pred_var.csv": ({}, "no columns were recognized as predictions"),
    "formats/skpro_y_true.csv": ({}, "no columns were recognized as predictions"),
    "formats/statsforecast_cv_levels.csv": ({}, "'AutoETS', 'SeasonalNaive'. Pass --model"),
    "forecasts/2025-12-06-UMass-trends_ensemble.parquet": ({}, "'quantile', 'sample', 'pmf'. Pass --filter"),
    "forecasts/example_complex_time_series.csv": ({}, "two columns may hold the target: 'target' and 'observation'"),
    "forecasts/flusight_baseline_2026-01-24_mixed_types.csv": ({}, "several output types: 'quantile', 'sample'"),
    "forecasts/flusight_truth_hospital_admissions.csv": ({}, "no columns were recognized as predictions"),
    "forecasts/legacy_2022-11-14-PSI-DICE.csv": (
        {"truth": "forecasts/example_complex_time_series.csv"},
        "4 of 216 rows are not in",
    ),
    "forecasts/scoringutils_example_quantile.csv": ({}, "'UMass-MechBayes'. Pass --model"),
}
INPUTS_ONLY = (
    "emb.npy",
    "emb.safetensors",
    "emb_fixed_shape_tensor.parquet",
    "hf_array2d.parquet",
    "hf_list_default.parquet",
    "hf_sequence_len8.parquet",
)


@pytest.fixture
def opened(data):
    def open_(name, **options):
        options |= {"truth": str(data / options["truth"])} if "truth" in options else {}
        return FileSource(File(str(data / name)), ColumnOptions(**options), contents="any")

    return open_


def refusal(source):
    """Return why a file cannot be read, or what is missing in it."""
    try:
        source.predictions()
    except CalcheckError as error:
        return str(error)
    return " ".join(source.missing())


def test_every_file_has_a_test(data):
    there = {f"{folder}/{path.name}" for folder in ("formats", "forecasts") for path in (data / folder).iterdir()}
    assert there == {*FILES, *REFUSED, *(f"formats/{name}" for name in INPUTS_ONLY)}


@pytest.mark.parametrize("name", FILES)
def test_files_of_tools_are_read_correctly(opened, name):
    options, units, family, y, read_off, expected = FILES[name]
    rows = opened(name, **options).predictions()
    assert len(rows) == units
    assert rows.predictive.family == family
    assert_allclose(read_off(rows.predictive.take(slice(0, 1))), expected, rtol=1e-12)
    if y is None:
        assert rows.y is None or options.get("truth")
    else:
        assert rows.y[0] == y


@pytest.mark.parametrize("name", REFUSED)
def test_ambiguous_files_are_refused_with_the_reason(opened, name):
    options, message = REFUSED[name]
    assert message in refusal(opened(name, **options))


@pytest.mark.parametrize("name", INPUTS_ONLY)
def test_files_of_embeddings_alone_are_inputs(opened, data, name):
    rows = opened(f"formats/{name}").predictions()
    assert_allclose(rows.x, np.load(data / "formats" / "emb.npy"), rtol=1e-5)


def test_flusight_is_joined_automatically_and_has_the_known_coverage(opened):
    """1,272 units; the hub's central intervals contain 0.726 and 0.366 of the observations (data/README.md)."""
    source = opened(
        "forecasts/flusight_ensemble_quantile.csv", truth="forecasts/flusight_truth_hospital_admissions.csv"
    )
    rows = source.predictions()
    assert source.input_info().options[-2:] == ("--join-on", "location,target_end_date=date")
    for level, expected in ((0.9, 0.726), (0.5, 0.366)):
        found = rows_of(Coverage(level=level), rows, run=Run(resamples=0, replicates=0)).columns["covered"]
        assert_allclose(found.mean(), expected, atol=5e-4)


def test_the_weighted_interval_score_of_flusight_agrees_with_a_table_by_pandas(opened, data):
    """Twice the mean pinball loss of the 23 quantiles of a unit, from the long file as it is."""
    long = pd.read_csv(data / "forecasts" / "flusight_ensemble_quantile.csv", dtype={"location": str})
    truth = pd.read_csv(data / "forecasts" / "flusight_truth_hospital_admissions.csv", dtype={"location": str})
    joined = long.merge(truth, left_on=["location", "target_end_date"], right_on=["location", "date"])
    assert len(joined) == 1_272 * 23
    apart, level = joined["value_y"] - joined["value_x"], joined["output_type_id"].astype(float)
    source = opened(
        "forecasts/flusight_ensemble_quantile.csv", truth="forecasts/flusight_truth_hospital_admissions.csv"
    )
    found = rows_of(Wis(), source.predictions(), run=Run(resamples=0, replicates=0)).columns
    assert_allclose(found["wis"].mean(), 2 * np.maximum(level * apart, (level - 1) * apart).mean(), rtol=1e-12)
    under = (np.maximum(apart, 0) * np.where(level > 0.5, 1, np.where(level == 0.5, 0.5, 0))).sum() / 1_272 / 11.5
    assert_allclose(found["underprediction"].mean(), under, rtol=1e-12)


def test_interpolated_means_and_deviations_of_flusight_have_no_verdict(opened):
    """Quantiles at 23 levels do not state a mean, so zms = 4.6 may be due to the interpolation."""
    source = opened(
        "forecasts/flusight_ensemble_quantile.csv", truth="forecasts/flusight_truth_hospital_admissions.csv"
    )
    report = evaluate(source, [METRICS[name]() for name in ("zms", "rce", "ence")], run=Run(resamples=200))
    for found in report.results:
        assert (found.verdict, found.p_value, found.zeta, found.reference) == ("none", None, None, None)
        assert "no-verdict" in {each.code for each in found.warnings}


@pytest.mark.parametrize(("name", "expected"), [("uncalibrated", 0.324), ("isotonic", 0.972)])
def test_qm9_is_refused_unless_its_uncertainties_are_declared_as_variances(opened, name, expected):
    path = f"predictions/qm9_e_{name}_test.csv"
    rows = opened(path, target="E_", var="uncertainty_total").predictions()
    assert_allclose(rows_of(Zms(), rows).columns["z2"].mean(), expected, atol=5e-4)
    hint = opened(path, target="E_").missing()[0]
    assert "may be a variance or a standard deviation" in hint
    assert f"uncertainty_total gives {expected:.3g} as a variance" in hint


def test_errors_of_random_forests_are_read(opened):
    """The first row: error -0.0427, std 0.2084."""
    rows = opened("predictions/diffusion_rf_cal.csv", error="E").predictions()
    assert len(rows) == 2040
    assert_allclose([rows.y[0], rows.predictive.std()[0]], [-0.0427146181546636, 0.208431161174261])


def test_evidential_parameters_give_a_student_t(opened):
    """v 0.4547, alpha 2.3902, beta 0.003878: df = 2 alpha, scale^2 = beta (1 + v) / (v alpha) (FORMATS.md)."""
    rows = opened("predictions/vertip_evidential_seed1.csv", error="error_sc", dist="nig").predictions()
    first = rows.predictive.take(slice(0, 1))
    v, alpha, beta = 0.45474952, 2.3901672, 0.003878188
    assert_allclose(first.df, 2 * alpha)
    assert_allclose(first.scale**2, beta * (1 + v) / (v * alpha))
    assert_allclose(rows.y[0], 0.1445253422506108)


def test_zero_standard_deviations_are_reported_with_their_rows(opened):
    with pytest.raises(CalcheckError, match=r"18 of 3,836 rows are not \(rows 13, 15, 280, …, counted from 0\)"):
        opened("predictions/perovskite_gpr_uncal.csv", error="E").predictions()
    raised = opened("predictions/perovskite_gpr_uncal.csv", error="E", min_std=1e-3)
    raised.predictions()
    assert texts(raised.warnings())[0].startswith("18 standard deviations were raised to 0.001")


def test_a_weather_ensemble_is_read_as_samples(opened):
    rows = opened("predictions/ensemblepp_temp.csv", target="temp", samples="tempfc.*").predictions()
    assert rows.predictive.draws.shape == (2749, 11)
    assert_allclose(rows.predictive.draws[0, [0, 10]], [-8.04136, -8.93632])
