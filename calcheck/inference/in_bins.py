"""Calibration bin by bin: in how many bins an interval holds the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError
from calcheck.inference.bootstrap import Replicates, Statistic
from calcheck.inference.intervals import acceleration, bca
from calcheck.inference.verdicts import RESAMPLES, usable
from calcheck.metric import Inference, Rows
from calcheck.statistics.bins import FEW_ROWS
from calcheck.statistics.groups import Term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from calcheck.execution.run import Run
    from calcheck.statistics.bins import Bins

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
        inside = np.flatnonzero(share)
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
        return Inference(warnings=(f"no interval and no verdict: {unfit}",))
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
