"""Calibration bin by bin: in how many bins an interval holds the reference."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calcheck.errors import DataError
from calcheck.inference.abc_intervals import abc, abc_limits
from calcheck.inference.bootstrap import Replicates, Statistic
from calcheck.inference.intervals import acceleration, bca, effective_rows
from calcheck.inference.p_values import rejects
from calcheck.inference.verdicts import FEWEST_EFFECTIVE, RESAMPLES, SMALL_ACCELERATION, too_few_effective, usable
from calcheck.metric import Inference, Rows, Simulated
from calcheck.statistics.groups import Term

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from calcheck.execution.run import Run
    from calcheck.statistics.bins import Bins

    Function = Callable[[Mapping[str, NDArray[np.float64]]], NDArray[np.float64]]

ItemT = TypeVar("ItemT")

MANY_ROWS = 2_000  # of a bin, from which ABC limits are had without resampling
BLOCK_VALUES = 1 << 22  # numbers of one kind at a time, 32 MiB
FIRST_STREAM = 2  # 0 and 1 resample all rows


def share_of_valid_bins(
    bins: Bins,
    columns: Mapping[str, NDArray[np.float64]],
    function: Function,
    reference: float,
    run: Run,
    *,
    stage: str,
) -> Rows:
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
    Rows
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
    return Rows(
        {**columns, "bin": bins.number()},
        fixed={"valid": judged},
        details={"bins": found},
        reference=run.confidence,
        inference=_against_the_confidence(bins, found, run),
    )


def simulated_shares(
    bins: Bins,
    own: Mapping[str, NDArray[np.float64]],
    replicates: Iterable[Mapping[str, NDArray[np.float64]]],
    function: Function,
    reference: float,
    run: Run,
    *,
    count: int,
    stage: str,
) -> Simulated:
    """Count the valid bins of data and of replicates of the targets, by ABC intervals of all of them.

    Parameters
    ----------
    bins, function, reference, run, stage
        As for :func:`share_of_valid_bins`.
    own : mapping
        What the function takes means of, (n,) each, of the data.
    replicates : iterable of mapping
        The same of each replicate.
    count : int
        How many data sets there are, the data counted: for progress.
    """
    shares = np.eye(bins.classes) if bins.shares is None else bins.shares  # (c, k)
    found: list[NDArray[np.float64]] = []
    for block in _blocks(chain([own], replicates), max(1, BLOCK_VALUES // len(bins.number()))):
        together = {name: np.stack([each[name] for each in block], axis=1) for name in block[0]}  # (n, b)
        valid, judged = np.zeros(len(block)), np.zeros(len(block))
        for place in range(shares.shape[1]):
            share = shares[bins.label, place]
            inside = np.flatnonzero(share)
            columns = {name: column[inside] for name, column in together.items()}
            low, high = _limits(share[inside, None], columns, function, run.confidence)
            judged += np.isfinite(low) & np.isfinite(high)
            valid += (low <= reference) & (reference <= high)
        found.append(np.divide(valid, judged, out=np.full(len(block), np.nan), where=judged > 0))
        run.progress(f"simulating {stage}", min(1.0, sum(map(len, found)) / count))
    values = np.concatenate(found)
    return Simulated(values[1:], own=float(values[0]), details={"intervals": "abc"})


def _told_of_all(run: Run, place: int, bins: int, stage: str, share: float) -> None:
    """Tell the progress in a bin as that in all of them."""
    run.progress(stage, (place + share) / bins)


def _in_order(rows: NDArray[np.intp], columns: Mapping[str, NDArray[np.float64]]) -> NDArray[np.intp]:
    """Order rows by what is said of them, so that their order in the file matters to no resample."""
    return rows[np.lexsort([column[rows] for column in columns.values()])]


def _limits(
    share: NDArray[np.float64], columns: Mapping[str, NDArray[np.float64]], function: Function, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ABC limits of a bin in several data sets, (b,) each, from columns (n, b); NaN where there are none."""
    if (share == 1).all():
        low, high, *_ = abc_limits(columns, function, confidence)
        return low, high
    weighted = {name: share * column for name, column in columns.items()}
    shared = np.broadcast_to(share, next(iter(weighted.values())).shape)

    def of_shares(means: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        return function({name: means[name] / means["share"] for name in weighted})

    low, high, *_ = abc_limits({**weighted, "share": shared}, of_shares, confidence)
    return low, high


def _blocks(items: Iterable[ItemT], size: int) -> Iterator[list[ItemT]]:
    """Yield so many items at a time."""
    items = iter(items)
    while block := list(islice(items, size)):
        yield block


def _why_no_interval(bins: Bins, found: list[dict[str, Any]]) -> str:
    """Say why bins are no independent trials; nothing if they are."""
    without = sum(each["valid"] is None for each in found)
    if without:
        return f"{without} of {len(found)} bins have no interval, as their rows are too few, too equal or too large"
    if bins.shared():
        return "rows that tie are shared by several bins, which are not independent then: take fewer --bins"
    return ""


def _why_no_verdict(found: list[dict[str, Any]]) -> str:
    """Say why intervals of bins hold the truth less often than they say; nothing if they do not."""
    least = min(found, key=lambda each: float(each["effective_rows"]))
    if least["effective_rows"] >= FEWEST_EFFECTIVE:
        return ""
    return f"in a bin, {too_few_effective(least['effective_rows'], least['rows'])}, or fewer --bins"


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
    terms = {"share": Term(share), **{name: Term(share * column) for name, column in columns.items()}}
    statistic = Statistic.of(terms, len(share), of_means)
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
    replicates.grow(run.resamples or RESAMPLES)
    values, _, reason = usable(replicates.values[0], estimate)
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
