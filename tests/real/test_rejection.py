"""Withholding real predictions by CCE."""

from calcheck import METRICS, read
from calcheck.execution.run import Run
from calcheck.studies.reject.study import reject


def test_cce_of_validation_data_beats_random_rejection_of_10_to_50_percent_of_test_data(data):
    """Readability scores: cce is fitted on 1,181 texts, and rejects predictions of 1,181 others."""
    labeled, new = (read(str(data / "text_case" / f"{name}.parquet")) for name in ("val", "test"))
    metrics = [METRICS[name]() for name in ("mae", "rmse", "nll")]
    report = reject(labeled, metrics, at=new, run=Run(resamples=200))
    found = {}
    for each in report.results:
        found.setdefault((each.metric, each.slice["by"]), []).append(each)
    for metric in ("mae", "rmse", "nll"):
        pairs = list(zip(found[metric, "cce"], found[metric, "random"], strict=False))
        assert all(by_cce.value < at_random.value for by_cce, at_random in pairs[1:6])
        assert found[metric, "cce"][-1].slice["minus"] == "random"
        assert found[metric, "cce"][-1].value < 0
        assert found[metric, "cce"][-1].p_value < 0.1
