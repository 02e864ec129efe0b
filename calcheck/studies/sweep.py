"""How a metric, and the ranking of models by it, move with its settings and with the number of rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError, FileError, NumericalError
from calcheck.evaluation import run_settings
from calcheck.execution.context import RandomStream, Run
from calcheck.inference.verdicts import statistic_of
from calcheck.lazy_inputs import same_inputs
from calcheck.metrics.base import inapplicable_reason
from calcheck.predictions import InMemory
from calcheck.report import Report, Result
from calcheck.statistics.repeated_targets import group_by_input
from calcheck.studies.align import align_models
from calcheck.studies.compare import comparison_input
from calcheck.studies.ranking import kendall, ranks, score
from calcheck.studies.sweep_settings import points
from calcheck.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.metrics.base import Metric
    from calcheck.predictions import Predictions
    from calcheck.studies.align import Model
    from calcheck.studies.sweep_settings import SweepPoint, SweptSetting

    AnyMetric = Metric[Any, Any]

REPEATS = 5
MOST_NAMED = 5  # points at which the ranking changes


@dataclass
class SweepCell:
    """A metric of one model at one point, of one or several random subsets of the rows."""

    values: list[float] = field(default_factory=list)
    reference: float | None = None
    notes: dict[str, None] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        """The mean; None where a subset has no value."""
        mean = float(np.mean(self.values)) if self.values else np.nan
        return mean if np.isfinite(mean) else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation over subsets; None for one."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 and self.value is not None else None


def sweep(
    models: Sequence[Model],
    metric: AnyMetric,
    varied: Sequence[SweptSetting],
    *,
    all_combinations: bool = False,
    subsets: int = REPEATS,
    run: Run | None = None,
) -> Report:
    """Compute a metric with one setting varied at a time, or with all of their combinations [CCE C.3, Fig. 6].

    What a metric fits to inputs is shared by all settings, and by all models, for which it is the same.

    Parameters
    ----------
    models : sequence of Model
        One, or several on the same rows.
    metric : Metric
        What to compute, with the options that hold where they are not varied.
    varied : sequence of SweptSetting
        What is varied.
    all_combinations : bool
        Whether values are combined.
    subsets : int
        Random subsets for each number of rows below all; the smaller ones are parts of the larger.
    run : Run, optional
        Seed, device, precision, memory and progress.

    Returns
    -------
    Report
        First a result for each model as the metric is, then at each point; ``subset`` tells the model, if there are
        several, and what is varied. ``details`` has the standard deviation over subsets, and the model's rank with
        Kendall's tau of the ranking to the first.

    Raises
    ------
    DataError, FileError
        The metric does not apply to a model, or the models' rows are not the same.
    OptionError
        A setting cannot have a value.
    """
    run, places = run or Run(), points(metric, varied, all_combinations=all_combinations)
    models = [replace(model, source=group_by_input(model.source, [type(metric)])) for model in models]
    sources = align_models(models) if len(models) > 1 else [models[0].source]
    for model, source in zip(models, sources, strict=True):
        if reason := inapplicable_reason(type(metric), source.predictions()):
            with model.source.error_names():
                msg = f"{metric.name} {reason}"
                raise DataError(msg)
    rows = [source.predictions() for source in sources]
    found = _computed(rows, places, subsets, replace(run, replicates=0))
    names = [model.name for model in models]
    results = _results(names, places, found)
    notes = tuple(dict.fromkeys(note for source in sources for note in source.warnings()))
    first = replace(
        results[0],
        warnings=(*notes, *_changes(varied, names, results, all_combinations=all_combinations), *results[0].warnings),
    )
    return Report(
        calcheck=__version__,
        input=comparison_input(names, [source.input_info() for source in sources]),
        settings={
            **run_settings(run, subsample=None, replicates=0),
            **({"models": names} if len(names) > 1 else {}),
            "vary": {each.name: list(each.description) for each in varied},
            "all_combinations": all_combinations,
            "subsets": subsets,
        },
        results=(first, *results[1:]),
    )


def _computed(
    models: Sequence[Predictions], places: Sequence[SweepPoint], subsets: int, run: Run
) -> dict[tuple[int, AnyMetric, int], SweepCell]:
    """Compute each metric of so many rows of each model, once for points that are the same."""
    n = len(models[0])
    wanted: dict[int, dict[AnyMetric, None]] = {}
    for place in places:
        wanted.setdefault(place.rows(n), {})[place.metric] = None
    parts = [
        (size, repeat, list(metrics))
        for size, metrics in wanted.items()
        for repeat in range(subsets if size < n else 1)
    ]
    total = len(models) * sum(len(metrics) for *_, metrics in parts)
    found: dict[tuple[int, AnyMetric, int], SweepCell] = {}
    done = 0
    for size, repeat, metrics in parts:
        chosen = np.sort(run.rng(RandomStream.SUBSAMPLE, repeat).permutation(n)[:size])
        sources = [InMemory(rows if size == n else rows.take(chosen)) for rows in models]
        for sharing in _sharing(metrics):
            for alike in _alike(sources, shared=sharing[0].fit_key is not None):
                for metric, model, value, reference, notes in _values(sources, sharing, alike, run.quiet()):
                    each = found.setdefault((size, metric, model), SweepCell())
                    each.values.append(value)
                    each.reference = reference
                    each.notes |= dict.fromkeys(notes)
                    done += 1
                    run.progress("settings", done / total)
    return found


def _sharing(metrics: Sequence[AnyMetric]) -> list[list[AnyMetric]]:
    """Gather metrics that fit the same to inputs."""
    groups: dict[Any, list[AnyMetric]] = {}
    for metric in metrics:
        key = metric if metric.fit_key is None else tuple(getattr(metric, name) for name in metric.fit_key)
        groups.setdefault(key, []).append(metric)
    return list(groups.values())


def _alike(sources: Sequence[InMemory], *, shared: bool) -> list[list[int]]:
    """Gather models with the same inputs, if they may share what is fitted to them."""
    groups: list[list[int]] = []
    for place, source in enumerate(sources):
        for group in groups if shared else ():
            if _same_inputs(sources[group[0]].rows, source.rows):
                group.append(place)
                break
        else:
            groups.append([place])
    return groups


def _same_inputs(first: Predictions, second: Predictions) -> bool:
    return first.has_embedding == second.has_embedding and same_inputs(first.x, second.x)


def _values(
    sources: Sequence[InMemory], metrics: Sequence[AnyMetric], alike: Sequence[int], run: Run
) -> Iterator[tuple[AnyMetric, int, float, float | None, tuple[str, ...]]]:
    """Yield metric, model, value, exact reference and notes, of metrics and models that share what is fitted."""
    state, fitted = None, False
    for metric in metrics:
        for model in alike:
            source = sources[model]
            try:
                with source.error_context(), np.errstate(all="ignore"):  # what is not finite is told in words
                    settings = metric.prepare(source, run)
                    if not fitted:
                        state, fitted = metric.fit(settings, source, run), True
                        metric.prepare_shared(state, metrics, len(alike))
                    rows = metric.rows(settings, state, source, None, run)
                    yield metric, model, statistic_of(metric, rows).estimate(), rows.reference, rows.warnings
            except FileError:
                raise
            except (DataError, NumericalError) as error:
                yield metric, model, np.nan, None, (str(error),)


def _results(
    names: Sequence[str], places: Sequence[SweepPoint], found: dict[tuple[int, AnyMetric, int], SweepCell]
) -> list[Result]:
    """Tell each model at each point, with its rank."""
    n = max(size for size, *_ in found)
    results, first = list[Result](), list[float | None]()
    for place in places:
        own = [found[place.rows(n), place.metric, model] for model in range(len(names))]
        scores = [score(place.metric.name, each.value, each.reference) for each in own]
        first = first or scores
        where = ", ".join(f"{name} {told}" for name, told in place.description.items())
        for name, each, rank in zip(names, own, ranks(scores), strict=True):
            ranked = {"rank": rank, "tau": kendall(first, scores)} if len(names) > 1 else {}
            spread = {"subsets": len(each.values), "deviation": each.deviation} if each.deviation is not None else {}
            results.append(
                Result(
                    metric=place.metric.name,
                    summary=place.metric.description(),
                    options=place.metric.options(),
                    slice={**({"model": name} if len(names) > 1 else {}), **place.description},
                    unit=place.metric.unit,
                    value=each.value,
                    details={**ranked, **spread},
                    warnings=tuple(f"at {where}: {note}" if where else note for note in each.notes),
                )
            )
    return results


def _changes(
    varied: Sequence[SweptSetting], names: Sequence[str], results: Sequence[Result], *, all_combinations: bool
) -> list[str]:
    """Say where the ranking of the models is not what it is at first."""
    if len(names) == 1:
        return []
    at = [results[start : start + len(names)] for start in range(0, len(results), len(names))]
    first, *others = [[each.details["rank"] for each in group] for group in at]
    changed = [
        {name: value for name, value in group[0].slice.items() if name != "model"}
        for group, found in zip(at[1:], others, strict=True)
        if found != first and None not in found
    ]
    if all_combinations:
        told = [", ".join(f"{name} {value}" for name, value in subset.items()) for subset in changed]
        return [f"the ranking of the models changes at {_some(told)}"] if told else []
    by = {each.name: [subset[each.name] for subset in changed if each.name in subset] for each in varied}
    return [f"the ranking of the models changes at {name} {_some(values)}" for name, values in by.items() if values]


def _some(told: Sequence[str]) -> str:
    return "; ".join(told[:MOST_NAMED]) + ("; …" if len(told) > MOST_NAMED else "")
