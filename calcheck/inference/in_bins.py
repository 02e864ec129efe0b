"""Calibration bin by bin: in how many bins an interval holds the reference."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calcheck.errors import DataError
from calcheck.execution.ahead import one_blas_thread
from calcheck.execution.run import Stream
from calcheck.inference.bootstrap import Replicates, Statistic
from calcheck.inference.intervals import acceleration, accelerations, bca, bca_limits
from calcheck.inference.verdicts import RESAMPLES, usable
from calcheck.metric import Inference, Rows, Simulated
from calcheck.statistics.bins import FEW_ROWS
from calcheck.statistics.groups import Term, resampled_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.random import Generator
    from numpy.typing import NDArray

    from calcheck.execution.run import Run
    from calcheck.statistics.bins import Bins

ItemT = TypeVar("ItemT")

RESAMPLES_OF_REPLICATES = 1_000  # their intervals are counted, never shown
BLOCK_VALUES = 1 << 22  # numbers of one kind at a time, 32 MiB
FIRST_STREAM = 2  # 0 and 1 resample all rows


def share_of_valid_bins(
    bins: Bins,
    columns: Mapping[str, NDArray[np.float64]],
    function: Callable[[Mapping[str, NDArray[np.float64]]], NDArray[np.float64]],
    reference: float,
    run: Run,
    *,
    stage: str,
) -> Rows:
    r"""Judge a function of means in each bin, and count the bins whose interval holds the reference.

    The share of valid bins f_v is compared with the confidence c of the intervals: of N bins, as many are valid as a
    binomial variable with probability c says. The p-value is P(Bin(N, c) <= N f_v), the interval of f_v is Clopper and
    Pearson's.

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
        told = _bin(share[inside], {name: column[inside] for name, column in columns.items()}, function, run, place)
        valid = None if told["low"] is None else told["low"] <= reference <= told["high"]
        found.append({"from": low, "to": high, "rows": float(share.sum()), **told, "valid": valid})
        run.progress(stage, (place + 1) / len(bins.low))
    judged = np.array([each["valid"] for each in found if each["valid"] is not None], dtype=np.float64)
    if not len(judged):
        msg = "no bin has an interval: its rows are too few, too equal or too large"
        raise DataError(msg)
    return Rows(
        {**columns, "bin": bins.number()},
        fixed={"valid": judged},
        details={"bins": found},
        reference=run.confidence,
        inference=_against_the_confidence(judged, run.confidence, _why_no_verdict(bins, found)),
    )


def simulated_shares(
    bins: Bins,
    own: Mapping[str, NDArray[np.float64]],
    replicates: Iterable[Mapping[str, NDArray[np.float64]]],
    function: Callable[[Mapping[str, NDArray[np.float64]]], NDArray[np.float64]],
    reference: float,
    run: Run,
    *,
    count: int,
    stage: str,
) -> Simulated:
    """Count the valid bins of data and of replicates of the targets, all under the same resamples.

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
    resamples = run.resamples or RESAMPLES_OF_REPLICATES
    found: list[NDArray[np.float64]] = []
    for block in _blocks(chain([own], replicates), max(1, BLOCK_VALUES // len(bins.number()))):
        together = {name: np.stack([each[name] for each in block], axis=1) for name in block[0]}  # (n, b)
        valid, judged = np.zeros(len(block)), np.zeros(len(block))
        for place in range(shares.shape[1]):
            share = shares[bins.label, place]
            inside = np.flatnonzero(share)
            columns = {name: column[inside] for name, column in together.items()}
            rng = run.rng(Stream.RESAMPLES, FIRST_STREAM + place)
            low, high = _limits(share[inside], columns, function, resamples, rng, run.confidence)
            judged += np.isfinite(low) & np.isfinite(high)
            valid += (low <= reference) & (reference <= high)
        found.append(np.divide(valid, judged, out=np.full(len(block), np.nan), where=judged > 0))
        run.progress(f"simulating {stage}", min(1.0, sum(map(len, found)) / count))
    values = np.concatenate(found)
    return Simulated(values[1:], own=float(values[0]), details={"resamples": resamples})


def _in_order(rows: NDArray[np.intp], columns: Mapping[str, NDArray[np.float64]]) -> NDArray[np.intp]:
    """Order rows by what is said of them, so that their order in the file matters to no resample."""
    return rows[np.lexsort([column[rows] for column in columns.values()])]


def _limits(
    share: NDArray[np.float64],
    columns: Mapping[str, NDArray[np.float64]],
    function: Callable[[Mapping[str, NDArray[np.float64]]], NDArray[np.float64]],
    resamples: int,
    rng: Generator,
    confidence: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the BCa limits of a bin in several data sets, (b,) each, from columns (n, b); NaN where there are none."""
    n = len(share)
    totals = {name: share @ column for name, column in columns.items()}
    estimates = function({name: total / share.sum() for name, total in totals.items()})
    if n == 1:
        return np.full_like(estimates, np.nan), np.full_like(estimates, np.nan)
    without = (share.sum() - share)[:, None]
    left = {name: (totals[name] - share[:, None] * column) / without for name, column in columns.items()}
    size = max(1, BLOCK_VALUES // n)
    parts = []
    with one_blas_thread():
        for start in range(0, resamples, size):
            weights = resampled_weights(n, min(size, resamples - start), rng) * share
            parts.append(
                function({name: weights @ column / weights.sum(axis=1)[:, None] for name, column in columns.items()})
            )
    low, high, _ = bca_limits(np.concatenate(parts), estimates, accelerations(function(left)), confidence)
    return low, high


def _blocks(items: Iterable[ItemT], size: int) -> Iterator[list[ItemT]]:
    """Yield so many items at a time."""
    items = iter(items)
    while block := list(islice(items, size)):
        yield block


def _why_no_verdict(bins: Bins, found: list[dict[str, Any]]) -> str:
    """Say why the binomial test of valid bins would not be honest; nothing if it is."""
    without = sum(each["valid"] is None for each in found)
    if without:
        return f"{without} of {len(found)} bins have no interval, as their rows are too few, too equal or too large"
    least = min(each["rows"] for each in found)
    if least < FEW_ROWS:
        return f"intervals of {least:.4g} rows a bin hold the truth less often than they say: take fewer --bins"
    if bins.shared():
        return "rows that tie are shared by several bins, which are not independent then: take fewer --bins"
    return ""


def _bin(
    share: NDArray[np.float64],
    columns: Mapping[str, NDArray[np.float64]],
    function: Callable[[Mapping[str, NDArray[np.float64]]], NDArray[np.float64]],
    run: Run,
    place: int,
) -> dict[str, Any]:
    """Return a bin's value and its BCa interval, None where there is none."""

    def of_means(means: Mapping[str, NDArray[np.float64]], n: int) -> NDArray[np.float64]:  # noqa: ARG001 - as any statistic
        return function({name: means[name] / means["share"] for name in columns})

    if not len(share):  # of a later day, by edges of an earlier one
        return {"value": None, "low": None, "high": None}
    terms = {"share": Term(share), **{name: Term(share * column) for name, column in columns.items()}}
    statistic = Statistic.of(terms, len(share), of_means)
    estimate = statistic.estimate()
    told = {"value": estimate, "low": None, "high": None}
    if len(share) == 1:
        return told
    replicates = Replicates([statistic], run.silenced(), number=FIRST_STREAM + place)
    replicates.grow(run.resamples or RESAMPLES)
    values, _, reason = usable(replicates.values[0], estimate)
    if reason:
        return told
    limits = bca(values, estimate, acceleration(statistic.leave_one_out()), run.confidence)
    return told | {"low": limits.low, "high": limits.high} if np.isfinite([limits.low, limits.high]).all() else told


def _against_the_confidence(judged: NDArray[np.float64], confidence: float, unfit: str) -> Inference:
    """Compare the share of valid bins with the confidence, exactly; not if that is unfit for some reason."""
    from scipy.special import bdtr, betaincinv

    if unfit:
        return Inference(warnings=(f"no interval: {unfit}",), no_verdict=unfit)
    valid, bins = int(judged.sum()), len(judged)
    tail = (1 - confidence) / 2
    low = float(betaincinv(valid, bins - valid + 1, tail)) if valid else 0.0
    high = float(betaincinv(valid + 1, bins - valid, 1 - tail)) if valid < bins else 1.0
    p_value = float(bdtr(valid, bins, confidence))
    return Inference(
        low=low,
        high=high,
        interval="clopper-pearson",
        p_value=p_value,
        verdict="fail" if p_value <= 1 - confidence else "pass",
    )
