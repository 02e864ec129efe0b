"""Calibration bin by bin: in how many bins an interval holds the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError
from calcheck.inference.bootstrap import Replicates, Statistic
from calcheck.inference.intervals import acceleration, bca
from calcheck.inference.verdicts import RESAMPLES
from calcheck.metric import Inference, Rows
from calcheck.statistics.bins import few_rows
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
        The columns with the bin of each row; each bin under ``details``; f_v as ``fixed["valid"]``, (k,) of 0 and 1.

    Raises
    ------
    DataError
        Resampling is switched off.
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
        valid = told["low"] is not None and told["low"] <= reference <= told["high"]
        found.append({"from": low, "to": high, "rows": float(share.sum()), **told, "valid": valid})
        run.progress(stage, (place + 1) / len(bins.low))
    valid = np.array([each["valid"] for each in found], dtype=np.float64)
    return Rows(
        {**columns, "bin": bins.number()},
        fixed={"valid": valid},
        details={"bins": found},
        reference=run.confidence,
        warnings=(*few_rows(bins), *_without_interval(found)),
        inference=_against_the_confidence(int(valid.sum()), len(valid), run.confidence),
    )


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
    values = replicates.values[0]
    values = values[np.isfinite(values)]
    if not len(values):
        return told
    limits = bca(values, estimate, acceleration(statistic.leave_one_out()), run.confidence)
    return told | {"low": limits.low, "high": limits.high} if np.isfinite([limits.low, limits.high]).all() else told


def _without_interval(found: list[dict[str, Any]]) -> tuple[str, ...]:
    count = sum(each["low"] is None for each in found)
    return (
        (f"{count} bins have no interval, their rows are too few or too equal: counted as not valid",) if count else ()
    )


def _against_the_confidence(valid: int, bins: int, confidence: float) -> Inference:
    """Compare the share of valid bins with the confidence, exactly."""
    from scipy.special import bdtr, betaincinv

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
