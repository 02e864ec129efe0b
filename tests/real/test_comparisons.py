"""Published models, compared on the same rows."""

import json

import pytest
from numpy.testing import assert_allclose

QUICK = ("--resamples", 300, "--permutations", 199, "--format", "json")


@pytest.fixture
def compared(calcheck, data):
    def run(files, *arguments):
        ended = calcheck("compare", *(data / file for file in files), *arguments, *QUICK)
        assert ended.code == 0, ended.err
        return json.loads(ended.out)["results"]

    return run


@pytest.mark.slow
def test_isotonic_recalibration_improves_zms_and_crps_with_equal_means(compared):
    """ZMS as in data/README.md: 0.324 before, 0.972 after; the means are the same, so errors are equal."""
    files = ("predictions/qm9_e_uncalibrated_test.csv", "predictions/qm9_e_isotonic_test.csv")
    roles = ("--target", "E_", "--mean", "prediction", "--var", "uncertainty_total", "--id", "index")
    before, after, difference = (
        [each for each in compared(files, *roles, "--metrics", "zms,rmse,crps") if each["metric"] == metric]
        for metric in ("zms", "rmse", "crps")
    )
    assert_allclose([each["value"] for each in before[:2]], [0.324, 0.972], atol=5e-4)
    assert before[1]["details"]["rank"] == 1
    assert before[2]["p_value"] < 0.01
    assert after[2]["value"] == 0
    assert difference[2]["high"] < 0


def test_files_of_the_same_errors_are_compared_without_ids(compared):
    files = ("predictions/diffusion_rf_uncal.csv", "predictions/diffusion_rf_cal.csv")
    results = compared(files, "--error", "E", "--std", "uE", "--metrics", "zms,rmse")
    assert results[-1]["value"] == 0


def test_files_with_different_targets_are_refused(calcheck, data):
    folder = data / "text_case"
    line = calcheck("compare", folder / "test.parquet", folder / "test_count.parquet").refused()
    assert "targets" in line or "--dist" in line
