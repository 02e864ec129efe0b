"""Change of a metric, and of the ranking of models by it, with its settings and the number of rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np

from calcheck.core import __version__
from calcheck.core.lazy_inputs import same_inputs
from calcheck.errors import DataError, FileError, Message, NumericalError, OptionError, RefusedError, with_suggestion
from calcheck.execution.run import RandomStream, Run, run_settings
from calcheck.inference.bootstrap import statistic_of
from calcheck.inference.metric_protocol import RowResults
from calcheck.io.column_names import ColumnOptions
from calcheck.io.evaluation_points import grid_of, require_grid
from calcheck.metrics import TWO_SAMPLE_METRICS
from calcheck.metrics.base import Conditional, Metric, SharesFit, inapplicable_reason
from calcheck.models.alignment import Model, align_models, comparison_input, incomparable_reason
from calcheck.models.comparison import kendall, ranks, score
from calcheck.models.two_samples import GRID, PooledSamples, metric_of_samples
from calcheck.options import Option, options_of
from calcheck.predictions import InMemory, Predictions, Source, group_by_input
from calcheck.reports import Inference, Report, Result
from calcheck.result_details import Details, select_details
from calcheck.studies import Request
from calcheck.studies.options import SAMPLES
from calcheck.studies.sweep.document import require_few_panels
from calcheck.studies.sweep.options import SweepOptions

AnyMetric = Metric[Any]
Evaluated = tuple[AnyMetric, int, float, RowResults | Message]
Ranking = list[int | None]

REPEATS = 5  # default number of random subsets per size
SAMPLES_HINT = "If the files are two samples, pass --two-samples"
MOST_NAMED = 5  # maximum points with a changed ranking that a warning lists
SUBSAMPLE = "subsample"
TIE = "+"  # Joins the names of options that are varied together
POINTS, MOST_POINTS = 7, 1000  # default number of values in a range, and maximum number of points in a sweep
PERCENT = 100
DIGITS = 4  # significant digits of the values in a range
RANGE = re.compile(r"(?P<low>[^.:].*?)\.\.(?P<high>[^:]+)(?::(?P<count>\d+))?")


@dataclass
class SweepCell:
    """A metric of one model at one point of the sweep, for one or several random subsets of the rows."""

    values: list[float] = field(default_factory=list)
    reference: float | None = None
    trial_deviation: float | None = None
    notes: dict[Message, None] = field(default_factory=dict)

    def add(self, value: float, rows: RowResults | Message) -> None:
        """Add the value for a subset, with its results of rows, or with the reason that it has no value."""
        self.values.append(value)
        if isinstance(rows, Message):
            self.notes |= {rows: None}
            return
        self.reference = rows.reference
        self.trial_deviation = select_details(rows.details, Details).get("deviation")
        self.notes |= dict.fromkeys(rows.warnings)

    @property
    def value(self) -> float | None:
        """The mean over subsets; None if a subset has no value."""
        mean = float(np.mean(self.values)) if self.values else np.nan
        return mean if np.isfinite(mean) else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation over subsets, or for a single subset over trials; None without either."""
        if self.value is None or len(self.values) == 1:
            return self.trial_deviation
        return float(np.std(self.values, ddof=1))


def run(request: Request) -> Report:
    """Return the report of a metric of models, or of two samples, over its settings."""
    options = request.options(SweepOptions)
    metric = request.metric(request.data("metric") or options.metric)
    varied = varied_settings(request.data("vary"), type(metric))
    compares_samples = options.two_samples or metric.info.name in TWO_SAMPLE_METRICS
    of_samples = metric_of_samples(metric) if compares_samples else None
    if options.grid is not None and not (of_samples and of_samples.info.conditional):
        raise OptionError("--grid sets the evaluation points of two samples: pass --metric mcmd")
    samples, files = None, request.data("files") or ()
    may_be_samples = of_samples is None and hasattr(metric, "of_samples") and len(files) == 2  # noqa: PLR2004
    if of_samples is None:
        models = request.models([metric], _require_predictions if may_be_samples else None)[""]
    else:
        if len(files) != 2 or options.names is not None:  # noqa: PLR2004
            asked = "--two-samples" if options.two_samples else f"--metric {of_samples.info.name}"
            raise OptionError(f"{asked} compares two samples: pass two files, without --names")
        request.refuse((ColumnOptions,), "two samples", "remove it", SAMPLES.only)
        samples = PooledSamples(*request.open_samples(*files))
        models = [Model("samples", samples)]
    request.require_outputs()
    combined = options.all_combinations
    if request.draws:
        require_few_panels({each.name: each.description for each in varied}, all_combinations=combined)
    with request.run() as run, _samples_hint() if may_be_samples else nullcontext():
        at = None if samples is None else _grid(samples, options.grid, conditional=metric.info.conditional)
        subsets = options.subsets
        return sweep(models, of_samples or metric, varied, all_combinations=combined, subsets=subsets, at=at, run=run)


def _grid(samples: PooledSamples, points: int | None, *, conditional: bool) -> Source | None:
    """Return the evaluation points of a conditional metric of two samples; None for their own inputs."""
    if points is not None:
        require_grid(points, at=False)
    x = samples.predictions().x
    single = conditional and x is not None and x.shape[1] == 1
    name = samples.first.input_info().columns.get("x", "x")
    return grid_of(samples, points or GRID, name) if single or points is not None else None


def _require_predictions(source: Any) -> None:
    """Raise if a file has no predictions, which two samples do not need."""
    source = replace(source, contents="any")
    if source.roles.predictive is None:
        raise FileError(f"{source.name}: {source.missing()[0]}. {SAMPLES_HINT}")


@contextmanager
def _samples_hint() -> Iterator[None]:
    """Add to errors about different rows of two files how to compare two samples."""
    try:
        yield
    except FileError:
        raise
    except DataError as error:
        error.args = (f"{error}. {SAMPLES_HINT}",)
        raise


def varied_settings(vary: Any, metric: type[AnyMetric]) -> list[SweptSetting]:
    """Return the settings that are varied: texts of the command line, or values by name."""
    if isinstance(vary, Mapping):
        return [from_values(name, values, metric) for name, values in vary.items()]
    if not vary:
        raise OptionError(
            "sweep needs a setting to vary: pass --vary lambda=0.001..1, --vary draws=1,2,5 or --vary subsample=25%,50%"
        )
    return [parse(text, metric) for text in vary]


def sweep(
    models: Sequence[Model],
    metric: AnyMetric,
    varied: Sequence[SweptSetting],
    *,
    all_combinations: bool = False,
    subsets: int = REPEATS,
    at: Source | None = None,
    run: Run | None = None,
) -> Report:
    """Return a metric with one setting varied at a time, or with all combinations of settings [CCE C.3, Fig. 6]."""
    run = run or Run()
    models = [replace(model, source=group_by_input(model.source, [type(metric)])) for model in models]
    sources = align_models(models) if len(models) > 1 else [models[0].source]
    for model, source in zip(models, sources, strict=True):
        if reason := inapplicable_reason(type(metric), source.predictions()):
            with model.source.error_names():
                raise DataError(f"{metric.info.name} {reason}")
    if reason := incomparable_reason(metric, sources):
        raise DataError(f"{metric.info.name} {reason}")
    rows = [source.predictions() for source in sources]
    places = points(metric.with_defaults(rows[0]), varied, all_combinations=all_combinations)
    found = _computed(rows, places, subsets, at, replace(run, replicates=0))
    names = [model.name for model in models]
    results, rankings = _results(names, places, found)
    notes = tuple(dict.fromkeys(note for source in sources for note in source.warnings()))
    first = replace(
        results[0],
        warnings=(*notes, *_changes(varied, places, rankings, all_combinations=all_combinations), *results[0].warnings),
    )
    return Report(
        calcheck=__version__,
        input=comparison_input(names, [source.input_info() for source in sources]),
        settings={
            **run_settings(replace(run, replicates=0)),
            **({"models": names} if len(names) > 1 else {}),
            "vary": {each.name: list(each.description) for each in varied},
            "all_combinations": all_combinations,
            "subsets": subsets,
        },
        results=(first, *results[1:]),
    )


def _computed(
    models: Sequence[Predictions], places: Sequence[SweepPoint], subsets: int, at: Source | None, run: Run
) -> dict[tuple[int, AnyMetric, int], SweepCell]:
    """Return the cells of the sweep by number of rows, metric and model; equal points are computed once."""
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
    for size, (metric, model, value, rows) in run.track("settings", _evaluated(models, parts, at, run), total):
        found.setdefault((size, metric, model), SweepCell()).add(value, rows)
    return found


def _evaluated(
    models: Sequence[Predictions], parts: Sequence[tuple[int, int, list[AnyMetric]]], at: Source | None, run: Run
) -> Iterator[tuple[int, Evaluated]]:
    """Yield the number of rows and what is found, for each part of the rows, metric and model."""
    n = len(models[0])
    for size, repeat, metrics in parts:
        chosen = np.sort(run.rng(RandomStream.SUBSAMPLE, repeat).permutation(n)[:size])
        sources = [InMemory(rows if size == n else rows.take(chosen)) for rows in models]
        groups: dict[Any, list[AnyMetric]] = {}
        for metric in metrics:
            key = (type(metric), metric.fit_key) if isinstance(metric, SharesFit) else metric
            groups.setdefault(key, []).append(metric)
        for sharing in groups.values():
            named = run.prefixed(sharing[0].info.name)
            for alike in _alike(sources, shared=isinstance(sharing[0], SharesFit)):
                yield from ((size, found) for found in _values(sources, sharing, alike, at, named))


def _alike(sources: Sequence[InMemory], *, shared: bool) -> list[list[int]]:
    """Return groups of models with the same inputs; single models if fits cannot be shared."""
    groups: list[list[int]] = []
    for place, source in enumerate(sources):
        rows = source.rows
        for group in groups if shared else ():
            first = sources[group[0]].rows
            if first.has_embedding == rows.has_embedding and same_inputs(first.x, rows.x):
                group.append(place)
                break
        else:
            groups.append([place])
    return groups


def _values(
    sources: Sequence[InMemory], metrics: Sequence[AnyMetric], alike: Sequence[int], at: Source | None, run: Run
) -> Iterator[Evaluated]:
    """Yield metric, model, value and results of rows, or the reason for no value, for metrics that share a fit."""
    fit = None
    for metric in metrics:
        for model in alike:
            source = sources[model]
            try:
                with source.error_context(), np.errstate(all="ignore"):  # values that are not finite become warnings
                    if fit is not None and isinstance(metric, SharesFit):
                        fit = metric.refit(fit, source, run)
                    else:
                        fit = metric.fit(source, run)
                        if isinstance(metric, SharesFit):
                            metric.plan(fit, metrics, len(alike))
                    placed = fit if at is None or not isinstance(metric, Conditional) else metric.at_inputs(fit, at)
                    rows = metric.evaluate(placed, source, run)
                    yield metric, model, statistic_of(metric, rows).estimate(), rows
            except RefusedError:
                raise
            except (DataError, NumericalError) as error:
                yield metric, model, np.nan, Message("no-value", str(error))


def _results(
    names: Sequence[str], places: Sequence[SweepPoint], found: dict[tuple[int, AnyMetric, int], SweepCell]
) -> tuple[list[Result], list[Ranking]]:
    """Return the result of each model at each point, and the ranks of the models at each point."""
    n = max(size for size, *_ in found)
    results, rankings, first = list[Result](), list[list[int | None]](), list[float | None]()
    for place in places:
        own = [found[place.rows(n), place.metric, model] for model in range(len(names))]
        scores = [score(place.metric.info.orientation, each.value, each.reference) for each in own]
        first = first or scores
        where = ", ".join(f"{name} {value}" for name, value in place.description.items())
        rankings.append(ranks(scores))
        for name, each, rank in zip(names, own, rankings[-1], strict=True):
            ranked = {"rank": rank, "tau": kendall(first, scores)} if len(names) > 1 else {}
            subsets = {"subsets": len(each.values)} if len(each.values) > 1 else {}
            spread = {**subsets, "deviation": each.deviation} if each.deviation is not None else {}
            rows = {**({"model": name} if len(names) > 1 else {}), **place.description}
            warnings = tuple(note.prefixed(f"at {where}: ") if where else note for note in each.notes)
            inference = Inference(details={**ranked, **spread}, warnings=warnings)
            results.append(place.metric.result(each.value, rows, inference))
    return results, rankings


def _changes(
    varied: Sequence[SweptSetting], places: Sequence[SweepPoint], rankings: Sequence[Ranking], *, all_combinations: bool
) -> list[Message]:
    """Return warnings about points where the ranking of the models differs from the first."""
    first, *others = rankings
    if len(first) == 1:
        return []
    changed = [
        place.description
        for place, found in zip(places[1:], others, strict=True)
        if found != first and None not in found
    ]
    if all_combinations:
        by = {"": [", ".join(f"{name} {value}" for name, value in subset.items()) for subset in changed]}
    else:
        by = {f"{each.name} ": [subset[each.name] for subset in changed if each.name in subset] for each in varied}
    found = []
    for name, where in by.items():
        listed = "; ".join(where[:MOST_NAMED]) + ("; …" if len(where) > MOST_NAMED else "")
        if where:
            found.append(Message("ranking-changes", f"the ranking of the models changes at {name}{listed}"))
    return found


@dataclass(frozen=True)
class SweptSetting:
    """A setting and its values."""

    # "subsample", or an option as on the command line without leading dashes: "gamma-y"; several options with equal
    # values are joined: "gamma-x+gamma-y"
    name: str
    # Values of the setting; for subsample, a fraction of the rows (float) or their number (int)
    values: tuple[Any, ...]
    description: tuple[str, ...]  # Values as text


@dataclass(frozen=True)
class SweepPoint:
    """A point of a sweep: a metric with its options, and the number of rows."""

    description: dict[str, str]  # Values of the varied settings as text, by name; empty for the unchanged metric
    metric: Metric[Any]  # Metric with its options
    size: float | int | None = None  # Fraction of the rows, or their number; None for all rows

    def rows(self, n: int) -> int:
        """Return the number of rows at this point, out of n."""
        if self.size is None:
            return n
        rows = round(n * self.size) if isinstance(self.size, float) else self.size
        if not 1 <= rows <= n:
            raise OptionError(
                f"--vary {SUBSAMPLE}={self.description[SUBSAMPLE]} gives {rows:,} rows: expected between 1 and {n:,},"
                " the number of rows in the file"
            )
        return rows


def parse(text: str, metric: type[Metric[Any]]) -> SweptSetting:
    """Return the setting in a text: ``lambda=0.001..1:7``, ``subsample=25%,50%``, ``gamma-x+gamma-y=0.1,0.5``."""
    spelled, equals, listed = (part.strip() for part in text.partition("="))
    name = spelled.removeprefix("--").replace("_", "-").replace(" ", "")
    first, *tied = name.split(TIE)
    known = {option.flag.removeprefix("--"): option for option in options_of(metric)}
    unknown = [each for each in (first, *tied) if each not in (known if tied else (*known, SUBSAMPLE))]
    if not equals or not listed or unknown:
        there = ", ".join((*known, SUBSAMPLE))
        takes = "--vary takes NAME=VALUES, e.g. lambda=0.001..1 or draws=1,2,5"
        msg = with_suggestion(
            f"{takes}, got {text!r}. Names for {metric.info.name}: {there}",
            next(iter(unknown), ""),
            (*known, SUBSAMPLE),
        )
        raise OptionError(msg)
    options = [known[each] for each in (first, *tied)] if name != SUBSAMPLE else []
    whole = not options or not _is_fractional(options[0])
    separator = ";" if options and options[0].listed else ","
    items = [found for item in listed.split(separator) for found in _items(item.strip(), name, whole=whole)]
    values: dict[Any, None] = {}
    for item in items:
        parsed = [option.parse(item, f"--vary {name}") for option in options]  # All of them check the text
        values[parsed[0] if parsed else _size(item)] = None
    if len(values) > MOST_POINTS:
        raise OptionError(f"--vary {name} has {len(values):,} values: at most {MOST_POINTS:,} are allowed")
    return SweptSetting(name, tuple(values), tuple(_told(value, name) for value in values))


def from_values(name: str, values: Any, metric: type[Metric[Any]]) -> SweptSetting:
    """Return the setting with a list of values, or with the values in a text: ``("lambda_", [0.01, 0.1])``.

    For subsample, a fraction of the rows is a float from 0 to 1, and their number an int. Values of an option that is a
    list are lists: ``("levels", [[0.1, 0.9], [0.5]])``.
    """
    spelled = name.rstrip("_")
    named = {option.field: option for option in options_of(metric)}
    known = {SUBSAMPLE, *named, *(option.name for option in named.values())}
    parts = [part.strip().replace("-", "_") for part in name.split(TIE)]
    if unknown := [part for part in parts if part not in known or (part == SUBSAMPLE and len(parts) > 1)]:
        there = (*named, SUBSAMPLE)
        msg = f"{metric.info.name} has no setting {unknown[0]!r} to vary (settings: {', '.join(there)})"
        raise OptionError(with_suggestion(msg, unknown[0], [each for each in there if each != unknown[0]]))
    if isinstance(values, str) and values.strip():
        return parse(f"{spelled}={values}", metric)
    listed = list(values) if isinstance(values, Iterable) else []
    plain = [value.tolist() if hasattr(value, "tolist") else value for value in listed]
    if not plain:
        msg = f"{name} is varied over a list of values, or a range as text such as '0.001..1', got {values!r}"
        raise OptionError(msg)
    if name == SUBSAMPLE:
        for value in plain:
            if isinstance(value, str) or (isinstance(value, float) and 0 < value <= 1):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                msg = f"{SUBSAMPLE} takes fractions of the rows, such as 0.25, or whole numbers of rows, got {value!r}"
                raise OptionError(msg)
    separator = ";" if any(option.name == spelled and option.listed for option in options_of(metric)) else ","
    return parse(f"{spelled}={separator.join(_listed(value, spelled) for value in plain)}", metric)


def _listed(value: Any, name: str) -> str:
    """Return a value as in a text of settings."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if name != SUBSAMPLE or not isinstance(value, float):
        return str(value)
    return f"{Decimal(str(value)) * PERCENT:f}%"


def points(metric: Metric[Any], varied: Sequence[SweptSetting], *, all_combinations: bool) -> list[SweepPoint]:
    """Return the points of a sweep: the unchanged metric, then each value alone or all combinations of values."""
    names = [name for each in varied for name in each.name.split(TIE)]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise OptionError(f"--vary {repeated} is given twice: list all its values in one --vary")
    counts = [len(each.values) for each in varied]
    count = math.prod(counts) if all_combinations else sum(counts)
    if count > MOST_POINTS:
        raise OptionError(f"--vary gives {count:,} points: at most {MOST_POINTS:,} are allowed")
    settings: list[list[tuple[str, Any, str]]] = [
        [(each.name, value, told) for value, told in zip(each.values, each.description, strict=True)] for each in varied
    ]
    alone = ((one,) for each in settings for one in each)
    combinations: Iterable[tuple[tuple[str, Any, str], ...]] = product(*settings) if all_combinations else alone
    fields = {option.flag.removeprefix("--"): option.field for option in options_of(type(metric))}
    found = [SweepPoint({}, metric)]
    for chosen in combinations:
        changed = {fields[each]: value for name, value, _ in chosen if name != SUBSAMPLE for each in name.split(TIE)}
        size = next((value for name, value, _ in chosen if name == SUBSAMPLE), None)
        found.append(SweepPoint({name: told for name, _, told in chosen}, replace(metric, **changed), size))
    return found


def _items(item: str, name: str, *, whole: bool) -> list[str]:
    """Return the log-spaced values of a range; any other text is a single value."""
    match = RANGE.fullmatch(item)
    if match is None:
        return [item]
    ends, percent = [match["low"].strip(), match["high"].strip()], ""
    if name == SUBSAMPLE and any(end.endswith("%") for end in ends):
        ends, percent = [end.removesuffix("%") for end in ends], "%"
    count = int(match["count"] or POINTS)
    try:
        low, high = map(float, ends)
    except ValueError:
        low = high = math.nan
    if not (0 < low < high < math.inf and 2 <= count <= MOST_POINTS):  # noqa: PLR2004 - the two ends
        msg = f"--vary {name} takes ranges of positive numbers, e.g. 0.001..1 or 0.001..1:7 for 7 values, got {item!r}"
        raise OptionError(msg)
    steps = (low * (high / low) ** (step / (count - 1)) for step in range(count))
    rounded = (round(value) if whole and not percent else value for value in steps)
    return [f"{value:.{DIGITS}g}{percent}" if isinstance(value, float) else str(value) for value in rounded]


def _is_fractional(option: Option) -> bool:
    """Return whether an option accepts numbers that are not integers."""
    try:
        option.parse("0.5")
    except OptionError:
        return False
    return True


def _size(text: str) -> float | int:
    """Return a number of rows, or a fraction given in percent."""
    share = text.endswith("%")
    try:
        size = float(text.removesuffix("%")) / PERCENT if share else int(text)
    except ValueError:
        size = math.nan
    if not (0 < size <= 1 if share else size >= 1):
        msg = f"--vary {SUBSAMPLE} takes percentages of the rows, e.g. 25%, or numbers of rows, got {text!r}"
        raise OptionError(msg)
    return size


def _told(value: Any, name: str) -> str:
    """Return a value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(_told(item, name) for item in value)
    if isinstance(value, float):
        return f"{PERCENT * value:.10g} %" if name == SUBSAMPLE else f"{value:.10g}"
    return str(value)
