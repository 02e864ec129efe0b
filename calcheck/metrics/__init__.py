"""The metrics, one a file; an entry here gives a metric its command, help, schema and common tests."""

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

METRICS: dict[str, type[Metric[Any, Any]]] = {
    metric.name: metric
    for metric in (
        *(Zms, Rce, Lzms, Lrce),  # is the spread right? on average, and along it
        *(Ece, Pit, Coverage, Ence, Uce),  # are the distributions?
        *(Cce, Jmmd, Ammd, Cmmd, Fid),  # are they at each input?
        *(Nll, Crps, IntervalScore),  # how good are the predictions altogether?
        *(Mae, Rmse, Bias, ConfidenceCurve),
        *(Sharpness, Width, Cv),  # what they are like
    )
}
"""Every metric by its name, in the order in which reports list them."""

TWO_SAMPLE_METRICS: dict[str, type[Metric[Any, Any]]] = {Mcmd.name: Mcmd}
"""Metrics of two samples, in files of their own, in place of predictions and targets."""
