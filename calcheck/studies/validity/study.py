"""Validity of intervals: how often the interval of a metric contains the value of a right model [ZMS Fig. 3]."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from calcheck.core import __version__
from calcheck.distributions import Gaussian
from calcheck.errors import OptionError
from calcheck.execution.run import RandomStream, Run, run_settings, silent
from calcheck.inference.bootstrap import Replicates, statistic_of
from calcheck.inference.intervals import acceleration, bca, clopper_pearson
from calcheck.metrics.base import Metric
from calcheck.options import require_count_option
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.reports import Inference, Input, Report, Result
from calcheck.studies import Request
from calcheck.studies.validity.options import ValidityOptions
from calcheck.typing import Mask, Values

ROWS, MOST_ROWS = 1_000, 10_000_000  # Default and maximum number of rows of a data set
NU = (2.0, 3.0, 4.0, 6.0, 10.0, 20.0)  # Default degrees of freedom of the uncertainties
SETS, MOST_SETS = 1_000, 1_000_000  # Default and maximum number of data sets
RESAMPLES = 1_500
SUMMARY = "Share of data sets of a right model whose interval contains the value of a right model."
T6_SCALE = (4 / 6) ** 0.5  # Student-t errors with 6 degrees of freedom then have variance 1


@dataclass(frozen=True)
class Tails:
    """Distribution of the predicted standard deviations of simulated data sets."""

    label: dict[str, Any]  # Description, as the slice of results
    nu: float | None = None  # Degrees of freedom: u^2 follows an inverse gamma distribution with shape and scale nu / 2
    observed: Values | None = None  # (n,), standard deviations that are drawn with replacement

    def draw(self, rng: Generator, rows: int) -> Values:
        """Return standard deviations, (rows,)."""
        if self.observed is not None:
            return rng.choice(self.observed, rows)
        half = float(self.nu or 0) / 2
        return np.asarray(np.sqrt(half / rng.gamma(half, size=rows)))


def tails_of(nu: Sequence[float] | None, source: Source | None) -> list[Tails]:
    """Return the tails of simulated data sets: those of a file, or else one for each number of degrees of freedom."""
    from calcheck.core.validation import require
    from calcheck.statistics.zscores import spreads

    if source is not None and nu is not None:
        raise OptionError("--nu and FILE contradict each other: the uncertainties are simulated, or those of the file")
    if source is not None:
        with source.error_context():
            observed = spreads(source.predictions().distributions())
            require("std", observed > 0, "must be positive")
            return [Tails({"uncertainties": "of the file"}, observed=observed)]
    nu = NU if nu is None else nu
    for each in nu:
        if not 0 < each < np.inf:
            raise OptionError(f"--nu must be positive numbers, got {each:g}")
        if nu.count(each) > 1:
            raise OptionError(f"--nu must differ, got {each:g} twice")
    return [Tails({"nu": f"{each:g}"}, nu=each) for each in nu]


@dataclass(frozen=True)
class DataSets:
    """Simulated data sets of right models."""

    # rows, sets: number of rows of a data set, and number of data sets
    rows: int = ROWS
    sets: int = SETS
    # Distribution of the errors relative to the standard deviations: normal, or Student-t with 6 degrees of freedom
    error_dist: Literal["normal", "t6"] = "normal"

    def __post_init__(self) -> None:
        require_count_option("sets", self.sets, MOST_SETS)
        require_count_option("rows", self.rows, MOST_ROWS)
        if self.rows == 1:
            raise OptionError("--rows must be at least 2: a single row cannot be resampled")

    def draw(self, tails: Tails, rng: Generator) -> Predictions:
        """Return a data set: errors with mean 0, and their standard deviations as predictions."""
        std = tails.draw(rng, self.rows)
        normal = self.error_dist == "normal"
        z = rng.normal(size=self.rows) if normal else T6_SCALE * rng.standard_t(6, size=self.rows)
        return Predictions(y=std * z, predictive=Gaussian(np.zeros(self.rows), std))


def run(request: Request) -> Report:
    """Return the report of data sets with given tails, or with those of a file."""
    options, file = request.options(ValidityOptions), request.data("file")
    if file is not None and request.data("plot"):
        msg = "--plot draws validity by --nu, and the uncertainties are those of FILE. Remove --plot or FILE"
        raise OptionError(msg)
    metrics = request.metrics(options.metrics)
    source = None if file is None else request.open(file, metrics)
    with request.run(source) as run:
        rows = options.rows or (ROWS if source is None else len(source.predictions()))
        data_sets = DataSets(rows, options.sets, options.error_dist)
        read = None if source is None else source.input_info()
        return validity(metrics, tails_of(options.nu, source), data_sets, read=read, run=run)


def validity(
    metrics: Sequence[Metric[Any]],
    tails: Sequence[Tails],
    data_sets: DataSets,
    *,
    read: Input | None = None,
    run: Run | None = None,
) -> Report:
    """Return how often BCa intervals contain the value of a right model, on simulated data sets of right models."""
    for metric in metrics:
        if not metric.info.distribution_free or metric.info.interval != "bca":
            rule = "takes metrics with an interval and a known value of right models: zms, rce"
            raise OptionError(f"--metrics {rule}, got {metric.info.name}")
    run = run or Run()
    run = replace(run, resamples=run.resamples or RESAMPLES)
    sets, valid = data_sets.sets, np.zeros((len(tails), len(metrics)), np.intp)
    for number in run.track("data sets", range(valid.shape[0] * sets), valid.shape[0] * sets):
        rows = data_sets.draw(tails[number // sets], run.rng(RandomStream.DATA_SETS, number))
        valid[number // sets] += _contained(metrics, rows, run, number)
    simulated = f"simulated, {data_sets.error_dist} errors"
    return Report(
        calcheck=__version__,
        input=replace(
            read or Input(files=(), n=0, dropped=0, predictive=None, columns={}), n=data_sets.rows, predictive=simulated
        ),
        settings={**run_settings(replace(run, replicates=0)), **asdict(data_sets)},
        results=tuple(
            _result(metric, each, int(count), sets, run)
            for metric, counts in zip(metrics, valid.T, strict=True)
            for each, count in zip(tails, counts, strict=True)
        ),
    )


def _contained(metrics: Sequence[Metric[Any]], rows: Predictions, run: Run, number: int) -> Mask:
    """Return whether the interval of each metric contains the value of a right model."""
    source = InMemory(rows)
    found = [metric.evaluate(metric.fit(source, run), source, run) for metric in metrics]
    statistics = [statistic_of(metric, each) for metric, each in zip(metrics, found, strict=True)]
    replicates = Replicates(statistics, replace(run, progress=silent), number=number)
    replicates.draw(run.resamples or RESAMPLES)
    contained = []
    for each, statistic, values in zip(found, statistics, replicates.values, strict=True):
        limits = bca(values, statistic.estimate(), acceleration(statistic.leave_one_out()), run.confidence)
        contained.append(each.reference is not None and limits.low <= each.reference <= limits.high)
    return np.array(contained)


def _result(metric: Metric[Any], tails: Tails, valid: int, sets: int, run: Run) -> Result:
    """Return the share of valid intervals of a metric."""
    low, high = clopper_pearson(valid, sets, run.confidence)
    inference = Inference(
        low=low,
        high=high,
        interval="clopper-pearson",
        reference=run.confidence,
        reference_kind="exact",
        verdict="fail" if high < run.confidence else "pass",
    )
    found = metric.result(valid / sets, tails.label, inference)
    return replace(
        found, summary=f"{SUMMARY} {metric.summary()}", unit="1", orientation="reference", alternative="less"
    )
