"""Reference values from papers and other packages: ../shared/data/golden."""

import csv
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calcheck
from calcheck.distributions import Gaussian, Samples
from calcheck.evaluation import Answer, evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from tests.helpers.shorthand import texts
from tests.helpers.simulations import slow

SETS = {
    "1": "set1_Diffusion_RF",
    "2": "set2_Perovskite_RF",
    "4": "set4_Perovskite_LR",
    "7": "set7_QM9_E",
}


def lines_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def evaluated(source, *metrics, **settings):
    report = evaluate(source, metrics, run=Run(**{"replicates": 0, **settings}))
    assert not report.skipped
    return report.results if len(metrics) > 1 else report.results[0]


@pytest.fixture(scope="module")
def gaussian(data):
    columns = np.genfromtxt(data / "golden" / "golden_gaussian.csv", delimiter=",", names=True)
    return InMemory(Predictions(y=columns["y"], predictive=Gaussian(columns["mean"], columns["std"])))


@pytest.fixture(scope="module")
def peers(data):
    values = json.loads((data / "golden" / "golden_values.json").read_text())["values"]
    return {(entry["package"].split()[0], entry["metric"]): entry["value"] for entry in values}


@pytest.mark.parametrize("name", ["1", slow("2"), slow("4"), slow("7")])
def test_zms_and_rce_equal_table_2_of_the_zms_paper(data, name):
    """Estimates to 1e-12; limits and zeta within four Monte Carlo standard deviations of the converged ones."""
    expected = {line["stat"]: line for line in lines_of(data / "golden" / "pernot_table2.csv") if line["set"] == name}
    source = calcheck.read(str(data / "pernot" / f"{SETS[name]}.csv"))
    for result in evaluated(source, METRICS["zms"](), METRICS["rce"]()):
        line = {key: float(value) for key, value in expected[result.metric.upper()].items() if key != "stat"}
        assert_allclose(result.value, line["est"], rtol=1e-12)
        assert abs(result.low - line["lo_conv"]) <= 4 * line["lo_sd"]
        assert abs(result.high - line["hi_conv"]) <= 4 * line["hi_sd"]
        assert abs(result.zeta - line["zeta_mean"]) <= 4 * line["zeta_sd"]
        assert_allclose(result.details["bootstrap"]["acceleration"], line["acc"], rtol=1e-8)


def test_set_8_of_the_zms_paper_is_that_of_logp(data):
    """Table II has ZMS 0.926, zeta -1.14 and RCE 0.0459, zeta 1.24; zeta moves by about 2 % from seed to seed."""
    path = data / "predictions" / "logp_10k_a_ls_gcn_test.csv"
    zms, rce = evaluated(calcheck.read(str(path), error="error", std="uq"), METRICS["zms"](), METRICS["rce"]())
    assert (round(zms.value, 3), round(rce.value, 4)) == (0.926, 0.0459)
    assert_allclose([zms.zeta, rce.zeta], [-1.14, 1.24], rtol=0.08)


@pytest.mark.parametrize(("name", "zeta", "effective"), [slow(("7", -1.005, 3.5)), ("4", 0.981, 6.3)])
def test_intervals_that_depend_on_few_rows_give_no_verdict(data, name, zeta, effective):
    """Table II rejects the RCE of both sets by zeta; a few large uncertainties make it unreliable."""
    result = evaluated(calcheck.read(str(data / "pernot" / f"{SETS[name]}.csv")), METRICS["rce"]())
    assert abs(result.zeta - zeta) < 4 * result.zeta_mc_error
    assert_allclose(result.details["bootstrap"]["effective_rows"], effective, rtol=0.02)
    assert result.verdict == "none"
    assert "effective rows" in texts(result.warnings)[-1]


@pytest.mark.slow
def test_resamples_are_added_while_the_verdict_is_open(data):
    """ZMS of set 2: zeta is -1.02, four standard errors from -1 with 80,000 resamples."""
    result = evaluated(calcheck.read(str(data / "pernot" / f"{SETS['2']}.csv")), METRICS["zms"]())
    assert result.details["bootstrap"]["resamples"] > 10_000
    assert abs(abs(result.zeta) - 1) >= 3 * result.zeta_mc_error
    assert result.verdict == "fail"


@pytest.mark.parametrize(
    ("name", "bins"), [("1", 10), ("1", 20), ("1", 50), ("4", 10), ("4", 20), ("4", 50), ("2", 10), ("2", 50)]
)
def test_ence_and_uce_equal_those_of_errviewlib(data, name, bins):
    """Pernot's own R code, where no rows are tied across an edge."""
    (line,) = (
        line
        for line in lines_of(data / "golden" / "errviewlib_binned.csv")
        if line["set"] == SETS[name] and int(line["nBin"]) == bins
    )
    source = calcheck.read(str(data / "pernot" / f"{SETS[name]}.csv"))
    ence, uce = evaluated(
        source, METRICS["ence"](bins=bins), METRICS["uce"](bins=bins, bin_weights="uniform"), resamples=0
    )
    assert_allclose(ence.value, float(line["ENCE"]), rtol=1e-12)
    assert_allclose(uce.value, float(line["UCE"]), rtol=1e-12)


def test_scores_equal_those_of_peer_libraries(gaussian, peers):
    """nll, crps, coverage, width, interval score, sharpness, zms, rce, ence with the settings of the peers, to 1e-9."""
    expected = {
        METRICS["nll"](): ("netcal", "NLL"),
        METRICS["crps"](): ("scoringrules", "crps_normal"),
        METRICS["coverage"](level=0.9): ("netcal", "PICP[0.9]"),
        METRICS["width"](level=0.9): ("netcal", "MPIW[0.9]"),
        METRICS["interval-score"](level=0.9): ("scoringrules", "interval_score[0.1]"),
        METRICS["sharpness"](): ("uncertainty-toolbox", "sharpness"),
        METRICS["zms"](): ("reference", "ZMS"),
        METRICS["rce"](): ("reference", "RCE"),
        METRICS["ence"](bins=10): ("reference", "ENCE[10 equal-count]"),
        METRICS["ence"](bins=20): ("reference", "ENCE[20 equal-count]"),
        METRICS["ece"](): ("reference", "ECE_quantile L1 (99 levels)"),
    }
    for metric, key in expected.items():
        assert_allclose(evaluated(gaussian, metric, resamples=0).value, peers[key], rtol=1e-9, err_msg=str(key))


def test_quantile_calibration_equals_that_of_peer_libraries(gaussian, peers):
    """uncertainty-toolbox averages over 100 levels, of which 0 and 1 add nothing: 98 of 100 remain.

    Its residual is mean - y: the curve is mirrored, the scalar is not. Kuleshov's sum has weights 1 instead of 1/q.
    """
    mace = evaluated(gaussian, METRICS["ece"](n_levels=98), resamples=0).value * 98 / 100
    assert_allclose(mace, peers["uncertainty-toolbox", "mace[quantile]"], rtol=1e-9)
    squares = evaluated(gaussian, METRICS["ece"](n_levels=98, alpha=2), resamples=0).value * 98 / 100
    assert_allclose(np.sqrt(squares), peers["uncertainty-toolbox", "rmsce[quantile]"], rtol=1e-9)
    kuleshov = evaluated(gaussian, METRICS["ece"](n_levels=9, alpha=2), resamples=0).value * 9
    assert_allclose(kuleshov, peers["reference", "ECE Kuleshov sum-of-squares (9 levels .1...9)"], rtol=1e-9)


def test_values_equal_corrected_ones_of_peers_that_are_wrong(gaussian, peers):
    """skpro's AUCalibration is 0.324; its documented formula, the mean distance of sorted PIT from i/N, gives 0.019955.

    netcal's ENCE has bins of equal width (0.1063); with equal counts it is 0.1181.
    """
    pit = METRICS["pit"]()
    rows = pit.compute(gaussian.predictions())
    ordered = np.sort(rows.columns["pit_high"])
    documented = np.abs(ordered - np.arange(1, len(ordered) + 1) / len(ordered)).mean()
    assert_allclose(documented, 0.019955, atol=1e-6)
    assert peers["skpro", "AUCalibration"] > 0.3
    fine = evaluated(gaussian, METRICS["ece"](n_levels=9999), resamples=0).value
    assert_allclose(fine, documented, rtol=0.01)  # the same area, integrated over the other axis
    ence = evaluated(gaussian, METRICS["ence"](bins=10), resamples=0).value
    assert_allclose(ence, 0.1181, atol=5e-5)
    assert_allclose(peers["netcal", "ENCE[10]"], 0.1063, atol=5e-5)


def test_the_pit_statistic_equals_that_of_scipy(gaussian, peers):
    value = evaluated(gaussian, METRICS["pit"](), resamples=0).value
    assert_allclose(2000 * value, peers["reference", "CvM PIT stat,p"][0], rtol=1e-9)


def test_the_zms_interval_agrees_with_that_of_scipy(gaussian, peers):
    """scipy's BCa with 9,999 resamples: within Monte Carlo error."""
    found = evaluated(gaussian, METRICS["zms"]())
    assert_allclose([found.low, found.high], peers["reference", "ZMS BCa 95% CI"], rtol=0.01)
    assert_allclose(found.zeta, peers["reference", "ZMS zeta"], rtol=0.05)


def test_crps_of_ensembles_equals_that_of_peer_libraries(data, gaussian, peers):
    """The default of scoringrules is the biased estimator, and that of calcheck is the fair one."""
    import pyarrow.parquet as pq

    table = pq.read_table(data / "golden" / "golden_ensemble.parquet")
    draws = np.stack([table[name].to_numpy() for name in table.column_names if name.startswith(("m", "s"))], axis=1)
    rows = gaussian.predictions()
    source = InMemory(Predictions(y=rows.y, predictive=Samples(draws)))
    fair, biased = (
        evaluated(source, METRICS["crps"](ensemble=estimator), resamples=0) for estimator in ("fair", "biased")
    )
    assert_allclose(fair.value, peers["scoringrules", "crps_ensemble[fair]"], rtol=1e-9)
    assert_allclose(biased.value, peers["scoringrules", "crps_ensemble[qd]"], rtol=1e-9)
    assert_allclose(biased.value, peers["properscoring", "crps_ensemble"], rtol=1e-9)


def test_the_rank_histogram_of_ensembles_equals_that_of_xskillscore(data, gaussian, peers):
    """51 ranks: the histogram of PIT with 51 bins counts them."""
    import pyarrow.parquet as pq

    table = pq.read_table(data / "golden" / "golden_ensemble.parquet")
    draws = np.stack([table[name].to_numpy() for name in table.column_names if name.startswith(("m", "s"))], axis=1)
    rows = gaussian.predictions()
    source = InMemory(Predictions(y=rows.y, predictive=Samples(draws)))
    found = evaluated(source, METRICS["pit"](bins=51), resamples=0)
    assert_allclose(found.details["histogram"], peers["xskillscore", "rank_histogram"], atol=1e-6)


def test_variances_give_the_known_zms(data):
    """QM9: ZMS 0.324 uncalibrated, 0.972 isotonic."""
    for name, expected in (("uncalibrated", 0.324), ("isotonic", 0.972)):
        source = calcheck.read(
            str(data / "predictions" / f"qm9_e_{name}_test.csv"),
            target="E_",
            mean="prediction",
            var="uncertainty_total",
        )
        assert_allclose(evaluated(source, METRICS["zms"](), resamples=0).value, expected, atol=5e-4)


QM9 = {"target": "E_", "mean": "prediction", "var": "uncertainty_total"}


@pytest.mark.parametrize(
    ("name", "columns", "expected"),
    [
        ("text_case/test.parquet", {}, {0.9: (1.138, 1.084, 1.192), 0.5: (1.098, 1.026, 1.143)}),
        ("predictions/qm9_e_isotonic_test.csv", QM9, {0.9: (0.941, 0.926, 0.957), 0.99: (1.252, 1.205, 1.297)}),
    ],
)
def test_intervals_have_the_published_factors(data, name, columns, expected):
    """Readability of texts: too narrow throughout. Molecules: 50 % intervals too wide, 99 % too narrow."""
    found = evaluated(calcheck.read(str(data / name), **columns), METRICS["width-factor"](), resamples=0)
    factors = {each["level"]: (each["factor"], each["low"], each["high"]) for each in found.details["factors"]}
    for level, numbers in expected.items():
        assert_allclose(factors[level], numbers, atol=6e-4)
    assert (factors[0.5][2] < 1 < factors[0.99][1]) == (name != "text_case/test.parquet")


@pytest.mark.slow
def test_isotonic_variances_of_molecules_are_right_at_90_percent_only(data):
    path, run = str(data / "predictions" / "qm9_e_isotonic_test.csv"), Run(replicates=59, resamples=0)
    found = evaluate(calcheck.read(path, **QM9), [], run=run, answer=Answer()).conclusion
    assert (found.answer, "at-level" in found.qualifiers) == ("yes", True)
    assert all(each.low > 1 / 1.1 and each.high < 1.1 for each in found.effects if each.topic == "size")


@pytest.mark.slow
def test_uncertainties_of_disease_progression_are_right_on_average_and_off_along_inputs():
    inputs = "age,sex,bmi,bp,s1,s2,s3,s4,s5,s6"
    found = calcheck.evaluate("examples/diabetes.parquet", "mae", inputs=inputs, replicates=59, seed=0).conclusion
    effects = {(each.topic, each.kind): each for each in found.effects}
    assert (found.answer, found.qualifiers) == ("yes", ("on-average",))
    assert effects["size", None].low > 1 / 1.1
    assert effects["size", None].high < 1.09
    assert effects["inputs", "scale"].low > 0.15
