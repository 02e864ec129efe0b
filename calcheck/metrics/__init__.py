"""The metrics, one per file; registering a metric here creates its command, help, schema and common tests."""

from typing import Any

from calcheck.metrics.ammd import Ammd
from calcheck.metrics.base import Metric
from calcheck.metrics.bias import Bias
from calcheck.metrics.cce import Cce
from calcheck.metrics.cmmd import Cmmd
from calcheck.metrics.confidence_curve import ConfidenceCurve
from calcheck.metrics.coverage import Coverage
from calcheck.metrics.crps import Crps
from calcheck.metrics.cv import Cv
from calcheck.metrics.ece import Ece
from calcheck.metrics.ence import Ence
from calcheck.metrics.fid import Fid
from calcheck.metrics.interval_score import IntervalScore
from calcheck.metrics.jmmd import Jmmd
from calcheck.metrics.lrce import Lrce
from calcheck.metrics.lzms import Lzms
from calcheck.metrics.mae import Mae
from calcheck.metrics.mcmd import Mcmd
from calcheck.metrics.nll import Nll
from calcheck.metrics.pit import Pit
from calcheck.metrics.rce import Rce
from calcheck.metrics.rmse import Rmse
from calcheck.metrics.sharpness import Sharpness
from calcheck.metrics.uce import Uce
from calcheck.metrics.width import Width
from calcheck.metrics.zms import Zms

__all__ = ["METRICS", "TWO_SAMPLE_METRICS"]

METRICS: dict[str, type[Metric[Any]]] = {
    metric.info.name: metric
    for metric in (
        *(Zms, Rce, Lzms, Lrce),  # spread: on average, and by bins
        *(Ece, Pit, Coverage, Ence, Uce),  # marginal calibration
        *(Cce, Jmmd, Ammd, Cmmd, Fid),  # conditional calibration
        *(Nll, Crps, IntervalScore),  # proper scores
        *(Mae, Rmse, Bias, ConfidenceCurve),  # accuracy
        *(Sharpness, Width, Cv),  # properties of the predictions
    )
}
"""All metrics by name, in the order of reports."""

TWO_SAMPLE_METRICS: dict[str, type[Metric[Any]]] = {Mcmd.info.name: Mcmd}
"""Metrics that compare two samples from separate files instead of predictions and targets."""
