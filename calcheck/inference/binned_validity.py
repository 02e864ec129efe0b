"""Calibration bin by bin: in how many bins an interval holds the reference."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError
from calcheck.inference.abc_intervals import Moments, abc, abc_limits
from calcheck.inference.bootstrap import Replicates, Statistic
from calcheck.inference.intervals import acceleration, bca, effective_rows
from calcheck.inference.p_values import rejects
from calcheck.inference.verdicts import (
    FEWEST_EFFECTIVE,
    RESAMPLES,
    SMALL_ACCELERATION,
    check_replicates,
    too_few_effective_rows,
)
from calcheck.results import Inference, RowResults
from calcheck.statistics.cache import cached
from calcheck.statistics.groups import MeanTerm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.statistics.bins import Bins

    Function = Callable[[Mapping[str, NDArray[np.float64]]], NDArray[np.float64]]

MANY_ROWS = 500  # of a bin, from which ABC limits are within 0.6 % of the width of those by resampling without end
FIRST_STREAM = 2  # 0 and 1 resample all rows


def share_of_valid_bins(
    bins: Bins,
    columns: Mapping[str, NDArray[np.float64]],
    function: Function,
    reference: float,
    run: Run,
    *,
    stage: str,
) -> RowResults:
    r"""Judge a function of means in each bin, and count the bins whose interval holds the reference.

    The interval of the share of valid bins f_v is Clopper and Pearson's. Where no replicates say how often intervals
    hold the reference, f_v is compared with their confidence c: the p-value is P(Bin(N, c) <= N f_v). That is fit where
    intervals rest on enough rows.

    Parameters
    ----------
    bins : Bins
        The bins of n rows; a row may belong to several by shares.
    columns : mapping
        What the function takes means of, (n,) each, by name.
    function : callable
        Takes the means in a bin.
    reference : float
        What it is where calibration is right.
    run : Run
        Seed, confidence, resamples, progress.
    stage : str
        What progress calls the work.

    Returns
    -------
    RowResults
        The columns with the bin of each row; each bin under ``details``; f_v is the mean of ``fixed["valid"]``, 0 or 1
        for each bin that has an interval.

    Raises
    ------
    DataError
        Resampling is switched off, or no bin has an interval.
    """
    if run.resamples == 0:
        msg = "needs the bootstrap, which is switched off (--no-bootstrap)"
        raise DataError(msg)
    shares = np.eye(bins.classes) if bins.shares is None else bins.shares  # (c, k)
    found = []
    for place, (low, high) in enumerate(zip(bins.low.tolist(), bins.high.tolist(), strict=True)):
        share = shares[bins.label, place]
        inside = _in_order(np.flatnonzero(share), {"share": share, **columns})
        part = replace(run, progress=partial(_told_of_all, run, place, len(bins.low)))
        told = _bin(
            share[inside], {name: column[inside] for name, column in columns.items()}, function, part, place, stage
        )
        valid = None if told["low"] is None else told["low"] <= reference <= told["high"]
        found.append({"from": low, "to": high, "rows": float(share.sum()), **told, "valid": valid})
    judged = np.array([each["valid"] for each in found if each["valid"] is not None], dtype=np.float64)
    if not len(judged):
        msg = "no bin has an interval: its rows are too few, too equal or too large"
        raise DataError(msg)
    return RowResults(
        {**columns, "bin": bins.number()},
        fixed={"valid": judged},
        details={"bins": found},
        reference=run.confidence,
        inference=_against_the_confidence(bins, found, run),
    )


def share_by_abc(
    bins: Bins,
    columns: Mapping[str, NDArray[np.float64]],
    function: Function,
    reference: float,
    confidence: float,
) -> float:
    """Return the share of valid bins by ABC intervals, which take no resamples; NaN where no bin has an interval.

    Parameters
    ----------
    bins, columns, function, reference
        As for :func:`share_of_valid_bins`.
    confidence : float
        Of the intervals.
    """
    rows, share, ends = _members(bins)
    names, of_means = list(columns), function
    values = np.stack([columns[name][rows] for name in names])
    if (share != 1).any():

        def of_means(means: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
            return function({name: means[name] / means["share"] for name in columns})

        names, values = [*names, "share"], np.concatenate([values * share, share[None]])
    parts = [Moments.from_values(values[:, start:end]) for start, end in pairwise(ends.tolist()) if end > start]
    low, high, *_ = abc_limits(Moments.stack(parts), names, of_means, confidence)
    judged = np.isfinite(low) & np.isfinite(high)
    return float(np.mean((low <= reference) & (reference <= high), where=judged)) if judged.any() else np.nan


@cached
def _members(bins: Bins) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.intp]]:
    """Return the rows of all bins, one bin after the other, how much of each belongs to it, and where bins end."""
    shares = np.eye(bins.classes) if bins.shares is None else bins.shares  # (c, k)
    label = np.asarray(bins.label)
    each = [np.flatnonzero(share[label]) for share in shares.T]
    share = np.concatenate([own[label[rows]] for own, rows in zip(shares.T, each, strict=True)])
    return np.concatenate(each), share, np.cumsum([0, *map(len, each)])


def _told_of_all(run: Run, place: int, bins: int, stage: str, share: float) -> None:
    """Tell the progress in a bin as that in all of them."""
    run.progress(stage, (place + share) / bins)


def _in_order(rows: NDArray[np.intp], columns: Mapping[str, NDArray[np.float64]]) -> NDArray[np.intp]:
    """Order rows by what is said of them, so that their order in the file matters to no resample."""
    return rows[np.lexsort([column[rows] for column in columns.values()])]


def _why_no_interval(bins: Bins, found: list[dict[str, Any]]) -> str:
    """Say why bins are no independent trials; nothing if they are."""
    without = sum(each["valid"] is None for each in found)
    if without:
        return f"{without} of {len(found)} bins have no interval, as their rows are too few, too equal or too large"
    if bins.has_shared_rows():
        return "rows that tie are shared by several bins, which are not independent then: take fewer --bins"
    return ""


def _why_no_verdict(found: list[dict[str, Any]]) -> str:
    """Say why intervals of bins hold the truth less often than they say; nothing if they do not."""
    least = min(found, key=lambda each: float(each["effective_rows"]))
    if least["effective_rows"] >= FEWEST_EFFECTIVE:
        return ""
    return f"in a bin, {too_few_effective_rows(least['effective_rows'], least['rows'])}, or fewer --bins"


def _bin(
    share: NDArray[np.float64],
    columns: Mapping[str, NDArray[np.float64]],
    function: Function,
    run: Run,
    place: int,
    stage: str,
) -> dict[str, Any]:
    """Return a bin's value and its BCa interval, None where there is none."""

    def of_means(means: Mapping[str, NDArray[np.float64]], n: int) -> NDArray[np.float64]:  # noqa: ARG001 - as any statistic
        return function({name: means[name] / means["share"] for name in columns})

    if not len(share):  # of a later day, by edges of an earlier one
        return {"value": None, "low": None, "high": None, "effective_rows": None}
    terms = {"share": MeanTerm(share), **{name: MeanTerm(share * column) for name, column in columns.items()}}
    statistic = Statistic.from_terms(terms, len(share), of_means)
    estimate = statistic.estimate()
    told = {"value": estimate, "low": None, "high": None, "effective_rows": None}
    if len(share) == 1:
        return told
    left = statistic.leave_one_out()
    told["effective_rows"], bent = effective_rows(left), acceleration(left)
    if run.resamples is None and len(share) >= MANY_ROWS and abs(bent) <= SMALL_ACCELERATION:
        limits = abc(statistic, run.confidence)
        return told | {"low": limits.low, "high": limits.high}
    replicates = Replicates([statistic], run, number=FIRST_STREAM + place, stage=stage)
    replicates.draw(run.resamples or RESAMPLES)
    values, _, reason = check_replicates(replicates.values[0], estimate)
    if reason:
        return told
    limits = bca(values, estimate, bent, run.confidence)
    return told | {"low": limits.low, "high": limits.high} if np.isfinite([limits.low, limits.high]).all() else told


def _against_the_confidence(bins: Bins, found: list[dict[str, Any]], run: Run) -> Inference:
    """Compare the share of valid bins with the confidence by the binomial test, unless that is unfit."""
    from scipy.special import bdtr, betaincinv

    if reason := _why_no_interval(bins, found):
        return Inference(warnings=(f"no interval: {reason}",), no_verdict=reason)
    valid, count = sum(each["valid"] for each in found), len(found)
    tail = (1 - run.confidence) / 2
    low = float(betaincinv(valid, count - valid + 1, tail)) if valid else 0.0
    high = float(betaincinv(valid + 1, count - valid, 1 - tail)) if valid < count else 1.0
    inferred = Inference(low=low, high=high, interval="clopper-pearson")
    if unfit := _why_no_verdict(found):
        return replace(inferred, no_verdict=unfit)
    p_value = float(bdtr(valid, count, run.confidence))
    return replace(inferred, p_value=p_value, verdict="fail" if rejects(p_value, run.confidence) else "pass")
