"""Calibration by bin: the share of bins whose interval contains the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calcheck.core import sc
from calcheck.core.cache import cached
from calcheck.core.text import count_of
from calcheck.errors import DataError
from calcheck.inference import intervals
from calcheck.inference.bootstrap import RESAMPLES, Replicates, Statistic, check_replicates
from calcheck.inference.metric_protocol import IntervalInference, RowResults
from calcheck.inference.p_values_and_verdicts import zeta
from calcheck.reports import rejects
from calcheck.statistics.groups import MeanTerm
from calcheck.typing import Indices, Mask, Values

if TYPE_CHECKING:
    from calcheck.execution.run import Run
    from calcheck.result_details import ValidBin, ValidBinsDetails
    from calcheck.statistics.binning import Binning

Function = Callable[[Mapping[str, Values]], Values]

MANY_ROWS = 500  # Minimum rows per bin for ABC limits: they differ from exact bootstrap limits by < 0.6 % of the width
MIN_BINS = 5  # Minimum number of different bins for a verdict: of one bin, the interval misses 1 at 5 %
SHARE = "share"  # Name of the column of shares of rows in bins
FIRST_STREAM = 2  # Random stream number of the first bin; 0 and 1 resample all rows


class BinInterval(NamedTuple):
    """The interval of a statistic in one bin; None where it is undefined."""

    rows: float  # Number of rows; tied rows are shared between bins
    value: float | None = None  # Statistic of the bin
    effective_rows: float | None = None  # Number of rows that determine the interval
    low: float | None = None  # Lower limit of the interval
    high: float | None = None  # Upper limit

    def contains(self, reference: float) -> bool | None:
        """Return whether the interval contains the reference; None if there is no interval."""
        return None if self.low is None or self.high is None else self.low <= reference <= self.high

    def zeta(self, reference: float) -> float | None:
        """Return the zeta score; None if there is no interval, or it does not contain the value."""
        if self.value is None or self.low is None or self.high is None:
            return None
        found = zeta(self.value, reference, self.low, self.high)
        return found if np.isfinite(found) else None


def share_of_valid_bins(
    bins: Binning,
    columns: Mapping[str, Values],
    function: Function,
    reference: float,
    run: Run,
    *,
    stage: str,
    variances: Sequence[float | None] | None = None,
) -> RowResults:
    """Return the share of bins whose interval contains the reference, with the binomial test of that share."""
    if run.resamples == 0:
        raise DataError("the intervals of bins need the bootstrap, which is turned off (--no-bootstrap)")
    shares = bins.membership()
    found: list[BinInterval] = []
    for place in range(len(bins.low)):
        share = shares[bins.label, place]
        inside = np.flatnonzero(share)  # sorted by values, so that resamples do not depend on the order of the file
        inside = inside[np.lexsort([column[inside] for column in (share, *columns.values())])]
        part = replace(run, progress=partial(_overall_progress, run, place, len(bins.low)))
        values = {name: column[inside] for name, column in columns.items()}
        found.append(_bin(share[inside], float(share.sum()), values, function, part, place, stage))
    valid = [each.contains(reference) for each in found]
    defined = np.array([each for each in valid if each is not None], dtype=np.float64)
    if not len(defined):
        msg = "no bin has an interval: the bins have too few rows, or their values are too similar or too large"
        raise DataError(msg)
    too_few = _too_few_bins_reason(bins, len(defined))
    return RowResults(
        {**columns, "bin": bins.number()},
        fixed={"valid": defined},
        details=_details(bins, found, reference, variances),
        reference=run.confidence,
        inference=_binomial_inference(bins, found, defined, run, too_few),
        no_verdict=too_few,
    )


def _details(
    bins: Binning, found: Sequence[BinInterval], reference: float, variances: Sequence[float | None] | None
) -> ValidBinsDetails:
    """Return the range, the interval and its comparison with the reference for each bin."""
    lines: list[ValidBin] = [
        {
            "from": low,
            "to": high,
            "rows": each.rows,
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "effective_rows": each.effective_rows,
            "zeta": each.zeta(reference),
            "valid": each.contains(reference),
        }
        for low, high, each in zip(bins.low.tolist(), bins.high.tolist(), found, strict=True)
    ]
    if variances is not None:
        for line, variance in zip(lines, variances, strict=True):
            line["variance"] = variance
    return {"bins": lines}


@dataclass(frozen=True, eq=False)
class BinMoments:
    """Moments of columns in each of k bins of a data set."""

    names: tuple[str, ...]
    moments: intervals.Moments  # Of the bins that have rows
    filled: Mask  # (k,), whether a bin has rows
    reference: float  # Statistic of a perfect model

    @classmethod
    def from_rows(cls, bins: Binning, columns: Mapping[str, Values], reference: float = np.nan) -> BinMoments:
        """Return the moments of columns in bins; if bins share rows, the shares are a column too."""
        rows, share, ends = _members(bins)
        names, values = tuple(columns), np.stack([column[rows] for column in columns.values()])
        if (share != 1).any():
            names, values = (*names, SHARE), np.concatenate([values * share, share[None]])
        filled = np.diff(ends) > 0
        return cls(names, intervals.Moments.from_parts(values, ends[np.append(True, filled)]), filled, reference)


def abc_limits_by_bin(data_sets: Sequence[BinMoments], function: Function, confidence: float) -> tuple[Values, Values]:
    """Return the limits of ABC intervals in each bin, (R, k), of R data sets; NaN where no two rows of a bin differ."""
    names, filled = data_sets[0].names, np.stack([each.filled for each in data_sets])
    of_means = partial(_of_weighted_means, function, names[:-1]) if SHARE in names else function
    limits = np.full((2, *filled.shape), np.nan)
    limits[:, filled] = intervals.abc_limits(
        intervals.Moments.stack([each.moments for each in data_sets]), names, of_means, confidence
    )[:2]
    return limits[0], limits[1]


def shares_by_abc(data_sets: Sequence[BinMoments | None], function: Function, confidence: float) -> Values:
    """Return the share of valid bins by ABC intervals in each of R data sets, (R,); NaN if no bin has an interval."""
    shares = np.full(len(data_sets), np.nan)
    for names in {each.names for each in data_sets if each}:
        places, alike = zip(
            *((n, each) for n, each in enumerate(data_sets) if each and each.names == names), strict=True
        )
        low, high = abc_limits_by_bin(alike, function, confidence)
        defined, reference = np.isfinite(low) & np.isfinite(high), np.array([[each.reference] for each in alike])
        valid = np.sum((low <= reference) & (reference <= high), axis=1, where=defined)
        with np.errstate(invalid="ignore"):
            shares[list(places)] = valid / defined.sum(axis=1)
    return shares


@cached
def _members(bins: Binning) -> tuple[Indices, Values, Indices]:
    """Return the row numbers of all bins, concatenated, the share of each row in its bin, and the offsets of bins."""
    shares = bins.membership()
    label = np.asarray(bins.label)
    each = [np.flatnonzero(share[label]) for share in shares.T]
    share = np.concatenate([weights[label[rows]] for weights, rows in zip(shares.T, each, strict=True)])
    return np.concatenate(each), share, np.cumsum([0, *map(len, each)])


def _overall_progress(run: Run, place: int, bins: int, stage: str, share: float) -> None:
    """Report the progress in one bin as progress over all bins."""
    run.progress(stage, (place + share) / bins)


def _too_few_bins_reason(bins: Binning, defined: int) -> str:
    """Return why the share of valid bins gives no verdict, given the number of bins that have an interval, or ""."""
    different = defined if bins.shares is None else min(defined, np.unique(bins.shares, axis=1).shape[1])
    if different >= MIN_BINS:
        return ""
    which = count_of(different, "different bin")
    return f"the share is of {which} with an interval, and a verdict needs {MIN_BINS} or more"


def _no_interval_reason(bins: Binning, found: Sequence[BinInterval]) -> str:
    """Return why the bins are not independent trials, or ""."""
    without = sum(each.low is None for each in found)
    if without:
        return (
            f"{without} of {len(found)} bins have no interval, because they have too few rows, or their values are too"
            " similar or too large"
        )
    if bins.has_shared_rows():
        return f"bins share tied rows and are therefore not independent: {bins.remedy}"
    return ""


def _no_verdict_reason(bins: Binning, found: Sequence[BinInterval]) -> str:
    """Return why the intervals of bins may undercover, or ""."""
    effective, rows = min(((each.effective_rows or 0.0, each.rows) for each in found), key=itemgetter(0))
    if effective >= intervals.MIN_EFFECTIVE_ROWS:
        return ""
    return f"in one bin, {intervals.too_few_effective_rows(effective, rows)}, or {bins.remedy}"


def _bin(
    share: Values, rows: float, columns: Mapping[str, Values], function: Function, run: Run, place: int, stage: str
) -> BinInterval:
    """Return the value and the BCa interval of a bin; None where they are undefined."""
    if not len(share):  # Bin edges from other data may leave a bin empty
        return BinInterval(rows)
    terms = {SHARE: MeanTerm(share), **{name: MeanTerm(share * column) for name, column in columns.items()}}
    statistic = Statistic(terms, len(share), partial(_of_weighted_means, function, list(columns)))
    estimate = statistic.estimate()
    if len(share) == 1:
        return BinInterval(rows, estimate)
    left = statistic.leave_one_out()
    found, accel = BinInterval(rows, estimate, intervals.effective_rows(left)), intervals.acceleration(left)
    if run.resamples is None and len(share) >= MANY_ROWS and abs(accel) <= intervals.SMALL_ACCELERATION:
        limits = intervals.abc(statistic, run.confidence)
    else:
        replicates = Replicates([statistic], run, number=FIRST_STREAM + place, stage=stage)
        replicates.draw(run.resamples or RESAMPLES)
        values, _, reason = check_replicates(replicates.values[0], estimate)
        if reason:
            return found
        limits = intervals.bca(values, estimate, accel, run.confidence)
    finite = np.isfinite([limits.low, limits.high]).all()
    return found._replace(low=limits.low, high=limits.high) if finite else found


def _of_weighted_means(function: Function, names: Sequence[str], means: Mapping[str, Values]) -> Values:
    """Return a function of the means of columns weighted by the share of each row in a bin."""
    return function({name: means[name] / means[SHARE] for name in names})


def _binomial_inference(
    bins: Binning, found: Sequence[BinInterval], defined: Values, run: Run, too_few: str
) -> IntervalInference:
    """Return the Clopper-Pearson interval of the share of valid bins, and its binomial test where this applies."""
    if reason := _no_interval_reason(bins, found):
        return IntervalInference(warnings=(intervals.no_interval(reason),), no_verdict=reason)
    valid, count = int(defined.sum()), len(found)
    low, high = intervals.clopper_pearson(valid, count, run.confidence)
    inferred = IntervalInference(low=low, high=high, interval="clopper-pearson")
    if unfit := too_few or _no_verdict_reason(bins, found):
        return replace(inferred, no_verdict=unfit)
    p_value = float(sc.bdtr(valid, count, run.confidence))
    return replace(inferred, p_value=p_value, verdict="fail" if rejects(p_value, run.confidence) else "pass")
