"""Metrics on predictions: prepare, fit, rows, value, and the report of it.

The module is not called ``evaluate``: the package exports a function of that name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.errors import OptionError
from calcheck.execution.run import Run, Stream
from calcheck.metric import missing_needs
from calcheck.predictions import InMemory
from calcheck.report import Report, Result, Skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from calcheck.metric import Metric, Rows
    from calcheck.predictions import Predictions, Source

    Sink = Callable[[Metric[Any, Any], Predictions, Rows], None]


def evaluate(
    source: Source,
    metrics: Sequence[Metric[Any, Any]],
    *,
    at: Source | None = None,
    subsample: int | None = None,
    run: Run | None = None,
    worst: int = 0,
    best: int = 0,
    sink: Sink | None = None,
) -> Report:
    """Compute metrics.

    Parameters
    ----------
    source : Source
        Predictions with their targets.
    metrics : sequence of Metric
        What to compute.
    at : Source, optional
        Inputs, with or without targets, at which conditional metrics are evaluated in place of the rows' own.
    subsample : int, optional
        Use so many rows, chosen at random.
    run : Run, optional
        Seed, device, precision, memory and progress.
    worst, best : int
        List so many rows with the largest and the smallest value of each metric's first column under ``details``.
    sink : callable, optional
        Is handed each metric's rows, with the predictions that they belong to.

    Returns
    -------
    Report
        One result a metric; a metric that needs what the predictions lack is listed as skipped, with the reason.

    Raises
    ------
    DataError, OptionError, NumericalError
        The data or options do not allow the computation.
    """
    from calcheck import __version__

    run = run or Run()
    told, warnings = source.described(), source.warnings()
    if subsample is not None:
        source = InMemory(_subsample(source.predictions(), subsample, run))
        told = replace(told, n=subsample)
    if at is not None:
        other = at.described()
        told = replace(told, files=(*told.files, *other.files), dropped=told.dropped + other.dropped)
    results, skipped = [], []
    for metric in metrics:
        if missing := missing_needs(type(metric), source.predictions()):
            skipped.append(Skipped(metric=metric.name, reason=_lacking(missing)))
            continue
        rows = _rows(metric, source, at, run)
        shown = (at or source).predictions()
        extremes = {"worst": _ranked(rows, shown, -worst), "best": _ranked(rows, shown, best)}
        results.append(_result(metric, rows, extremes, warnings))
        if sink is not None:
            sink(metric, shown, rows)
    return Report(
        calcheck=__version__,
        input=told,
        settings={
            "seed": run.seed,
            "subsample": subsample,
            "device": run.device,
            "precision": run.precision,
            "memory": run.memory,
            "versions": _versions(run),
        },
        results=tuple(results),
        skipped=tuple(skipped),
    )


def _versions(run: Run) -> dict[str, str]:
    """Name the versions of what computes."""
    from importlib.metadata import version

    libraries = ["numpy", "scipy", "pyarrow", *([] if run.device is None else ["torch"])]
    return {library: version(library) for library in libraries}


def _subsample(rows: Predictions, size: int, run: Run) -> Predictions:
    """Choose rows at random, in their order."""
    if not 1 <= size <= len(rows):
        msg = f"--subsample must be between 1 and the {len(rows):,} rows there are, got {size}"
        raise OptionError(msg)
    chosen = run.rng(Stream.SUBSAMPLE).choice(len(rows), size, replace=False)
    chosen.sort()
    return rows.take(chosen)


def _lacking(missing: list[str]) -> str:
    remedies = {
        "y": "targets (--target)",
        "predictive": "predictive distributions (--mean and --std, --samples, or --dist)",
        "x": "inputs to condition on (--embedding or --inputs)",
    }
    return "needs " + " and ".join(remedies[need] for need in missing)


def _rows(metric: Metric[Any, Any], source: Source, at: Source | None, run: Run) -> Rows:
    import numpy as np

    with source.named(), np.errstate(all="ignore"):  # metrics refuse numbers that are not finite, in words
        settings = metric.prepare(source, run)
        state = metric.fit(settings, source, run)
        return metric.rows(settings, state, source, at, run)


def _ranked(rows: Rows, shown: Predictions, count: int) -> list[dict[str, Any]]:
    """Describe the rows with the smallest values of the first column, or with the largest if count < 0."""
    name, values = next(iter(rows.columns.items()))
    order = values.argsort(kind="stable")
    chosen = order[::-1][:-count] if count < 0 else order[:count]
    keys = {} if shown.id is None else {shown.id_name: shown.id}
    columns = {"row": shown.places(), **keys, name: values, **_without(shown.columns, {"row", shown.id_name, name})}
    return [{label: _plain(column[row]) for label, column in columns.items()} for row in chosen]


def _without(columns: Mapping[str, NDArray[Any]], names: set[str]) -> dict[str, NDArray[Any]]:
    return {name: values for name, values in columns.items() if name not in names}


def _plain(value: Any) -> Any:
    """Turn a cell into a plain number or text."""
    if getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M"):
        return None if value != value else str(value)  # noqa: PLR0124 - not a time
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, (int, float, str)) or value is None else str(value)


def _result(
    metric: Metric[Any, Any],
    rows: Rows,
    extremes: dict[str, list[dict[str, Any]]],
    warnings: tuple[str, ...],
) -> Result:
    count = len(next(iter(rows.columns.values())))
    means = {name: float(column.mean()) for name, column in rows.columns.items()}
    absent = [f"no interval: {metric.no_interval}"] if metric.no_interval else []
    return Result(
        metric=metric.name,
        summary=f"{metric.summary()} {metric.reading}",
        options=metric.options(),
        unit=metric.unit,
        value=metric.value(means, count),
        details={**rows.details, **{name: found for name, found in extremes.items() if found}},
        warnings=(*warnings, *rows.warnings, *absent, "no verdict: what a perfect model scores is not simulated"),
    )
