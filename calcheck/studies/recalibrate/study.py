"""Recalibration judged on rows that were not used to fit it: the choice of a method, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from calcheck.errors import DataError, Message, OptionError
from calcheck.evaluation import data_warnings, evaluate, run_settings
from calcheck.execution.run import RowDependence, Run
from calcheck.metrics import METRICS
from calcheck.options import option
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.recalibration.choice import (
    Candidate,
    CrossValidation,
    Score,
    cross_validate,
    require_other_rows,
)
from calcheck.recalibration.features import STD, require_single_target
from calcheck.recalibration.methods import (
    AUTO,
    NONE,
    STEPS,
    Choice,
    FitOptions,
    FittedFile,
    Method,
    MethodScore,
    RecalibrationMap,
    candidates,
    fitted_map,
)
from calcheck.report import Inference, Report, Result, Skipped

if TYPE_CHECKING:
    from calcheck.metrics.base import Metric

BEFORE, AFTER = "before", "after"
OUT_OF_FOLD, OTHER = "out of fold", "other rows"
JUDGES = ("zms", "ence", "cv", "ece", "coverage", "nll", "crps", "cce", "sharpness")
"""The metrics before and after."""
OPTIONS = {"crps": {"ensemble": "biased"}}  # Scaled draws are no draws of a distribution: see score_rows
MIN_FOLDS, MOST_FOLDS = 2, 100
OF_DEPENDENCE = ("dependent-rows", "ordered-rows")  # Codes of warnings that name a column and a size
NORMAL_LIMIT = 1.959963984540054  # Limit of a 95 % interval in standard errors


@dataclass(frozen=True)
class RecalibrationOptions:
    """Options of a recalibration study."""

    method: str = option(
        AUTO,
        f"Method: {', '.join((AUTO, NONE, *STEPS))}, or steps in order, joined by +, such as bias+local+pit. auto "
        "chooses by cross-validation.",
        metavar="NAME",
    )
    by: tuple[str, ...] = option(
        (STD,),
        "What bias and local depend on: columns of the file, and std for the predicted uncertainty. Text is a group; "
        "numbers have a spline. With --inputs, also these by default.",
        metavar="COLUMNS",
    )
    folds: int = option(5, "Number of folds of the cross-validation.")
    cluster: str | None = option(None, "Column whose groups stay in one fold, such as patients.", metavar="COLUMN")
    block: int | None = option(
        None,
        "Rows are a series: number of consecutive rows that depend on each other, or of times with --time. Folds are"
        " blocks of rows in their order.",
        metavar="LENGTH",
    )
    time: str | None = option(None, "Column of times: folds are blocks of time.", metavar="COLUMN")
    score: Score = option("crps", "Score by which methods are compared.")
    bins: int = option(20, "Number of bins of bvs.")
    levels: tuple[float, ...] = option(
        (0.5, 0.8, 0.9, 0.95), "Levels of the intervals that conformal makes of distributions.", metavar="SHARES"
    )
    relative: bool = option(
        default=False, text="Move the limits of conformal intervals by shares of their widths, not by one amount."
    )

    def __post_init__(self) -> None:
        if not MIN_FOLDS <= self.folds <= MOST_FOLDS:
            msg = f"--folds must be between {MIN_FOLDS} and {MOST_FOLDS}, got {self.folds}"
            raise OptionError(msg)
        self.dependence  # noqa: B018 - raises
        if self.bins < 1:
            msg = f"--bins must be at least 1, got {self.bins}"
            raise OptionError(msg)
        if not self.by:
            msg = "--by needs at least one column"
            raise OptionError(msg)
        if not self.levels or not all(0 < level < 1 for level in self.levels):
            msg = "--levels must lie strictly between 0 and 1"
            raise OptionError(msg)
        if self.method != AUTO:
            Method.parse(self.method)

    @property
    def dependence(self) -> RowDependence:
        """Which rows depend on each other."""
        return RowDependence(cluster=self.cluster, block=self.block, time=self.time)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read, besides targets and predictions."""
        return tuple(dict.fromkeys((*(name for name in self.by if name != STD), *self.dependence.columns)))

    def fit_options(self, seed: int) -> FitOptions:
        """Return the options of the fits."""
        return FitOptions(by=self.by, bins=self.bins, levels=self.levels, relative=self.relative, seed=seed)


def recalibrate(
    source: Source,
    *,
    options: RecalibrationOptions | None = None,
    other: Source | None = None,
    metrics: Sequence[Metric[Any]] | None = None,
    run: Run | None = None,
) -> tuple[Report, RecalibrationMap]:
    """Return which correction helps, what it changes on rows that were not used to fit it, and the correction."""
    study = _Study(source, options or RecalibrationOptions(), run or Run())
    chosen = study.chosen
    metrics = judges() if metrics is None else metrics
    judged = list(study.judged(metrics))
    found = study.fitted
    warnings = data_warnings(source, study.rows.predictive)
    if other is not None:
        require_other_rows(study.rows, other.predictions())
        second = judge_map(other, found, metrics=metrics, run=study.run)
        judged.append(second)
        warnings += tuple(each for each in second.results[0].warnings if each.code == "outside-range")
    dependent = dependent_rows(judged[0].results)
    results = [*study.score_results(dependent), *(result for report in judged for result in report.results)]
    info = source.input_info()
    if other is not None:
        files = (replace(file, role="evaluation_points") for file in other.input_info().files)
        info = replace(info, files=(*info.files, *files))
    report = Report(
        calcheck=found.calcheck,
        input=info,
        settings={
            **run_settings(study.run),
            "asked": study.options.method,
            "method": chosen.method.name,
            "steps": list(found.texts),
            "folds": study.options.folds,
            "score": study.options.score,
        },
        results=_with_warnings(results, warnings),
        skipped=tuple(dict.fromkeys(each for report in judged for each in report.skipped)) + study.inapplicable,
    )
    return report, found


def judges() -> list[Metric[Any]]:
    """Return the metrics before and after."""
    return [_judge(name) for name in JUDGES]


def _judge(name: str) -> Metric[Any]:
    return METRICS[name](**OPTIONS.get(name, {}))


class _Study:
    """Cross-validation of the methods, and the fit of the chosen one to all rows."""

    def __init__(self, source: Source, options: RecalibrationOptions, run: Run) -> None:
        self.source, self.options, self.run = source, options, run
        self.rows = source.predictions()
        missing = [name for name in options.columns if name not in self.rows.columns]
        if missing:
            msg = f"there is no column {missing[0]!r} with one value per row"
            raise DataError(msg)
        require_single_target(self.rows.distributions(), self.rows.targets())

    @cached_property
    def _validated(self) -> tuple[CrossValidation, list[Candidate]]:
        predictive = self.rows.distributions().load()
        asked = self.options.method
        methods = candidates(predictive, self.options.by) if asked == AUTO else (Method(NONE), Method.parse(asked))
        lean = self.rows.without(*(part for part in ("x", "id") if getattr(self.rows, part) is not None))
        return cross_validate(
            replace(lean, predictive=predictive),
            list(dict.fromkeys(methods)),
            self.options.fit_options(self.run.seed),
            folds=self.options.folds,
            score=self.options.score,
            dependence=self.options.dependence,
            progress=self.run.progress,
        )

    @cached_property
    def chosen(self) -> Candidate:
        """The method to use: the best, or the one that was asked for."""
        validation, found = self._validated
        if self.options.method == AUTO:
            return validation.choose(found)
        asked = found[-1]
        if asked.reason:
            msg = f"--method {asked.method.name} does not apply: {asked.reason}"
            raise DataError(msg)
        return asked

    @property
    def inapplicable(self) -> tuple[Skipped, ...]:
        """Methods that do not apply, with the reasons."""
        found = self._validated[1]
        return tuple(
            Skipped(metric=each.method.name, code="inapplicable", reason=each.reason) for each in found if each.reason
        )

    @cached_property
    def fitted(self) -> RecalibrationMap:
        """The chosen method, fitted to all rows."""
        method = self.chosen.method
        steps = method.fit(self.rows, self.options.fit_options(self.run.seed))
        files = [FittedFile(path=file.path, sha256=file.sha256) for file in self.source.input_info().files]
        choice = Choice(score=self.options.score, folds=self.options.folds, table=tuple(self._table()))
        return fitted_map(method.name, steps, self.rows, choice, files)

    def _table(self) -> Iterator[MethodScore]:
        for each in self._validated[1]:
            if each.scores is None:
                yield MethodScore(method=each.method.name, reason=each.reason)
                continue
            paired = self._paired(each)
            yield MethodScore(
                method=each.method.name,
                value=each.mean,
                difference=None if paired is None else paired.difference,
                p_value=None if paired is None else paired.p_value,
            )

    def _paired(self, candidate: Candidate) -> Any:
        """Return the comparison of a method with no change; None for no change itself."""
        validation, found = self._validated
        unchanged = found[0].scores
        if candidate.scores is None or unchanged is None or candidate.method.name == NONE:
            return None
        return validation.compare(candidate.scores, unchanged)

    def score_results(self, warnings: tuple[Message, ...]) -> Iterator[Result]:
        """Yield the mean score of each method, and its difference from no change, with the warnings about rows."""
        validation, found = self._validated
        metric = _judge(validation.row_score.metric)
        for each in found:
            if each.scores is None:
                continue
            subset = {"method": each.method.name}
            yield Result.from_inference(metric.result(each.mean, subset), Inference())
            paired = self._paired(each)
            if paired is not None:
                reach = NORMAL_LIMIT * paired.error
                difference = Inference(
                    low=paired.difference - reach,
                    high=paired.difference + reach,
                    interval="normal",
                    p_value=paired.p_value,
                    warnings=warnings,
                )
                yield Result.from_inference(metric.result(paired.difference, {**subset, "minus": NONE}), difference)

    def judged(self, metrics: Sequence[Metric[Any]]) -> Iterator[Report]:
        """Yield the reports of the rows before and after, each row corrected by a fit to the other folds."""
        validation, _ = self._validated
        corrected = self.rows
        if self.chosen.method.name != NONE:
            found = validation.corrected(self.chosen.method)
            corrected = self.rows.with_targets(self.rows.targets(), found.distributions())
        yield from _judged(OUT_OF_FOLD, self.rows, corrected, metrics, self.run)


def _judged(
    which: str, before: Predictions, after: Predictions, metrics: Sequence[Metric[Any]], run: Run
) -> Iterator[Report]:
    """Yield the reports of rows before and after a correction; only one if nothing changed."""
    stages = {BEFORE: before, AFTER: after} if after is not before else {BEFORE: before}
    noticed: tuple[Message, ...] = ()
    for stage, rows in stages.items():
        report = evaluate(InMemory(rows), metrics, run=run.prefixed(stage))
        subset: dict[str, Any] = {"rows": which, "stage": stage}
        noticed = noticed or dependent_rows(report.results)
        yield replace(report, results=tuple(_with_one_notice(each, noticed, subset) for each in report.results))


def dependent_rows(results: Sequence[Result]) -> tuple[Message, ...]:
    """Return the warnings that rows depend on each other."""
    found = (each for result in results for each in result.warnings if each.code in OF_DEPENDENCE)
    return tuple(dict.fromkeys(found))


def _with_one_notice(result: Result, noticed: tuple[Message, ...], subset: dict[str, Any]) -> Result:
    """Return a result of some rows, with the first warnings that these depend on each other in place of its own."""
    others = (each for each in result.warnings if each.code not in OF_DEPENDENCE)
    return replace(result, slice=subset, warnings=(*noticed, *others))


def _with_warnings(results: Sequence[Result], warnings: tuple[Message, ...]) -> tuple[Result, ...]:
    """Return results with the warnings that apply to all of them."""
    return tuple(
        replace(each, warnings=(*(one for one in warnings if one not in each.warnings), *each.warnings))
        for each in results
    )


def judge_map(
    source: Source, found: RecalibrationMap, *, metrics: Sequence[Metric[Any]] | None = None, run: Run | None = None
) -> Report:
    """Return metrics of predictions before and after a correction that was fitted to other rows."""
    run = run or Run()
    info, rows = source.input_info(), source.predictions()
    known = {file.sha256 for file in found.fitted_on}
    if same := [file.path for file in info.files if file.sha256 in known]:
        msg = f"the map was fitted to {same[0]}. Judge it on other rows"
        raise DataError(msg)
    corrected, outside = found.apply_counted(rows)
    metrics = judges() if metrics is None else metrics
    reports = list(_judged(OTHER, rows, corrected if found.steps else rows, metrics, run))
    warnings = (*data_warnings(source, rows.predictive), *([outside_message(outside, len(rows))] if outside else []))
    return replace(
        reports[0],
        input=info,
        settings={**reports[0].settings, "method": found.method, "steps": list(found.texts)},
        results=_with_warnings([result for report in reports for result in report.results], warnings),
        skipped=tuple(dict.fromkeys(each for report in reports for each in report.skipped)),
    )


def outside_message(outside: int, rows: int) -> Message:
    """Return the warning about rows outside the range of the fitted rows."""
    text = (
        f"{outside:,} of {rows:,} rows are outside the range of the fitted rows, and are treated as its nearest point"
    )
    return Message("outside-range", text)
