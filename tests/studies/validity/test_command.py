"""`calcheck validity`: how often intervals contain the value of a right model."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calcheck.execution.run import RandomStream, Run
from calcheck.metrics import METRICS
from calcheck.studies.validity.options import ValidityOptions
from calcheck.studies.validity.study import ROWS, DataSets, tails_of, validity
from tests.helpers.files import write
from tests.helpers.schemas import validate

ZMS_RCE = [METRICS[name]() for name in ("zms", "rce")]
QUICK = ("--sets", 30, "--rows", 200, "--resamples", 200)


@pytest.fixture
def report(calcheck):
    """Run the command, and return its report."""

    def run(*arguments):
        ended = calcheck("validity", *arguments, "--format", "json")
        assert (ended.code, ended.err) == (0, "")
        found = json.loads(ended.out)
        validate(found)
        return found

    return run


def test_without_options_the_study_takes_seconds():
    """10^8 draws of rows take about a second."""
    options = ValidityOptions()
    assert options.sets * ROWS * options.resamples <= 1e8


@pytest.mark.parametrize("error_dist", ["normal", "t6"])
def test_the_share_is_that_of_scipy(error_dist):
    """BCa intervals of scipy for the same data sets: a limit near the value of a right model may differ."""
    (tails,), run, sets = tails_of([4.0], None), Run(seed=3, resamples=2_000), 12
    found = validity(ZMS_RCE, [tails], DataSets(150, sets, error_dist), run=run)
    valid = np.zeros(2)
    for number in range(sets):
        rows = DataSets(150, sets, error_dist).draw(tails, run.rng(RandomStream.DATA_SETS, number))
        error, std = rows.y, rows.predictive.scale

        def rce(error, std, axis=-1):
            return 1 - np.sqrt(np.mean(error**2, axis=axis) / np.mean(std**2, axis=axis))

        data = {1.0: (((error / std) ** 2,), np.mean), 0.0: ((error, std), rce)}
        for place, (truth, (columns, statistic)) in enumerate(data.items()):
            limits = stats.bootstrap(
                columns, statistic, paired=True, vectorized=True, n_resamples=2_000, method="BCa", rng=number
            ).confidence_interval
            valid[place] += limits.low <= truth <= limits.high
    assert_allclose([result.value * sets for result in found.results], valid, atol=1)


def test_data_sets_have_the_tails_that_are_stated():
    """u^2 is nu over a chi-squared variable with nu degrees of freedom, and t6 errors have variance 1."""
    rng = np.random.default_rng(0)
    (tails,) = tails_of([5.0], None)
    rows = DataSets(20_000, 1, "t6").draw(tails, rng)
    assert stats.kstest(5 / rows.predictive.scale**2, stats.chi2(5).cdf).pvalue > 0.01
    z = rows.y / rows.predictive.scale
    assert stats.kstest(z * np.sqrt(6 / 4), stats.t(6).cdf).pvalue > 0.01


def test_each_metric_has_a_line_for_each_distribution(report):
    found = report("--nu", "2..4,20", *QUICK)["results"]
    assert [(each["metric"], each["slice"]["nu"]) for each in found] == [
        (metric, nu) for metric in ("zms", "rce") for nu in ("2", "3", "4", "20")
    ]
    for each in found:
        limits = stats.binomtest(round(30 * each["value"]), 30).proportion_ci(0.95)
        assert_allclose([each["low"], each["high"]], [limits.low, limits.high], atol=1e-7)
        assert each["verdict"] == ("fail" if each["high"] < 0.95 else "pass")


def test_heavy_tails_make_intervals_of_rce_invalid(report):
    results = report("--nu", "1,20", "--sets", 100, "--rows", 200, "--resamples", 300)["results"]
    verdicts = {(each["metric"], each["slice"]["nu"]): each["verdict"] for each in results}
    assert verdicts["rce", "1"] == "fail"
    assert verdicts["zms", "1"] == verdicts["zms", "20"] == "pass"


def test_the_uncertainties_of_a_file_are_drawn(report, tmp_path):
    """Of two standard deviations, 1 and 1000, only few rows have the larger one: RCE depends on these."""
    std = np.where(np.arange(100) < 2, 1000.0, 1.0)
    path = write(tmp_path / "preds.parquet", {"y": np.zeros(100), "mean": np.zeros(100), "std": std})
    found = report(path, "--sets", 40, "--resamples", 200)
    assert found["settings"]["rows"] == found["input"]["n"] == 100
    assert [each["slice"] for each in found["results"]] == [{"uncertainties": "of the file"}] * 2
    zms, rce = found["results"]
    assert rce["value"] < 0.85 < zms["value"]


def test_the_picture_and_the_table_show_the_shares(calcheck, tmp_path):
    plot = tmp_path / "valid.svg"
    ended = calcheck("validity", "--nu", "2,20", *QUICK, "--plot", plot)
    assert ended.out.splitlines()[2].split() == ["metric", "nu", "valid", "limits", "expected", "verdict"]
    assert "degrees of freedom" in plot.read_text()
    assert calcheck("validity", "--nu", "2,20", *QUICK, "--plot", plot).out == ended.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metrics", "ece"), "--metrics takes metrics with an interval and a known value of right models: zms, rce"),
        (("--nu", "0"), "--nu must be positive numbers, got 0"),
        (("--nu", "4..2"), "--nu takes a list of numbers, got '4..2'"),
        (("--rows", 1), "--rows must be at least 2: a single row cannot be resampled"),
        (("--sets", 0), "--sets must be at least 1 and at most 1,000,000, got 0"),
        (("--nu", "2..4,3"), "--nu must differ, got 3 twice"),
        (("missing.csv",), "missing.csv"),
    ],
)
def test_what_cannot_be_simulated_is_refused(calcheck, arguments, message):
    assert message in calcheck("validity", *arguments).refused()


def test_tails_and_a_picture_beside_a_file_are_refused(calcheck, preds, tmp_path):
    line = calcheck("validity", preds, *QUICK, "--nu", "3").refused()
    assert "--nu and FILE contradict each other" in line
    line = calcheck("validity", preds, *QUICK, "--plot", tmp_path / "valid.svg").refused()
    assert "--plot draws validity by --nu" in line
    page = tmp_path / "valid.html"
    assert calcheck("validity", preds, *QUICK, "-o", page).code == 0
    assert "<svg" not in page.read_text()
