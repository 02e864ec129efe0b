"""Recalibration judged on rows that were not used to fit it: the choice of a method, before and after."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from calcheck.core.text import count_of
from calcheck.errors import DataError, FileError, Message, OptionError
from calcheck.evaluation import Answer as RowsAnswer
from calcheck.evaluation import data_warnings, evaluate
from calcheck.execution.run import Run, run_settings
from calcheck.io.file_source import FileSource
from calcheck.metrics import METRICS
from calcheck.metrics._weights import weighted_forms
from calcheck.metrics.base import Metric
from calcheck.options import TOLERANCE
from calcheck.outputs import correlation, require_other_file, with_new_files
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.recalibration import cross_validation
from calcheck.recalibration import methods as corrections
from calcheck.recalibration.features import PREDICTED, require_single_target, usable_columns
from calcheck.regions.partition import predicted_columns
from calcheck.reports import Conclusion, Inference, Report, Result, Skipped
from calcheck.storage.atomic_write import write_text
from calcheck.storage.exported_corrections import exported
from calcheck.storage.prediction_files import suffix_of, write_canonical
from calcheck.storage.report_json import read_map, write_map
from calcheck.studies import Answer, Request
from calcheck.studies.recalibrate.options import CorrectionOptions, RecalibrationOptions
from calcheck.studies.recalibrate.places import FACTOR, Places, WrongPlace, foretold_results, weighted_rows

SourceT = TypeVar("SourceT", bound=Source)
BEFORE, AFTER = "before", "after"
OUT_OF_FOLD, OTHER = "out of fold", "other rows"
JUDGES = ("zms", "width-factor", "ence", "cv", "ece", "coverage", "nll", "crps", "cce", "sharpness")
"""The metrics before and after."""
OPTIONS = {"crps": {"ensemble": "biased"}}  # Scaled draws are no draws of a distribution: see score_rows
OF_DEPENDENCE = ("dependent-rows", "ordered-rows")  # Codes of warnings that name a column and a size
NORMAL_LIMIT = 1.959963984540054  # Limit of a 95 % interval in standard errors


def run(request: Request) -> Answer:
    """Return the report of a correction that is fitted, or of a stored one; write what was asked for."""
    files = request.options(CorrectionOptions)
    if request.targets > 1:  # The corrections of all targets are written together
        if files.corrected is not None and files.map is None and request.data("to") is None:
            raise OptionError("-o without --to corrects one target: pass --only TARGET, or --to FILE")
        files = replace(files, corrected=None, export=None)
    if files.map is not None:
        found = read_map(files.map).of_target(request.target or request.data("only") or "")
        file = request.data("file")
        source = request.open_other(file, None, found.columns, judges())
        _require_outputs(request, files, source)
        judged = _with_targets(source)
        if judged is None and files.corrected is None:
            raise FileError(f"{source.name}: {source.missing()[0]}")
        report = None
        if judged is not None:
            with request.run(source) as run:
                report = judge_map(source, found, run=run)
        if files.corrected is not None:
            _write(request, file, found, files.corrected)
        return Answer(None if report is None else request.with_commands(report), (found,), source)
    options = request.options(RecalibrationOptions)
    metrics, to = request.metrics(judges()), request.data("to")
    source = request.open(request.data("file"), metrics, narrow=options.by is None, also=options.columns)
    source, new = _with_new_inputs(request, source)
    other = None if to is None else request.open_other(to, source, options.columns, metrics)
    _require_outputs(request, files, source, other)
    mended: list[Predictions] = []
    with request.run(source) as run:
        sink = None if files.corrected is None or to is not None else mended.append
        judged = _with_targets(other)
        report, found = recalibrate(source, options=options, other=judged, metrics=metrics, run=run, sink=sink, new=new)
    if files.export is not None:
        _export(report, found, source, files.export)
    if files.corrected is not None and to is not None:
        _write(request, to, found, files.corrected)
    for rows in mended:
        like = unobserved(request.one_target(request.open(request.data("file"), None, narrow=True)))
        whole = like.predictions()
        write_canonical(files.corrected or "", [whole.with_targets(whole.targets(), rows.distributions())], like)
        how = f"each corrected by a fit to the other folds of {options.folds}, so that they can be judged"
        request.tell(f"{files.corrected}: {count_of(len(rows), 'row')}, {how if found.steps else 'left as they are'}")
        request.tell("note for new predictions: --to NEW -o MENDED, or --export")
    return Answer(request.with_commands(report), (found,), source)


def _with_new_inputs(request: Request, source: SourceT) -> tuple[SourceT, Source | None]:
    """Return a source, with its inputs if a correction is for new ones, and the source of these."""
    on = request.data("on")
    if on is None:
        return source, None
    own = replace(source, inputs=True) if isinstance(source, FileSource) else source
    new = request.open_new(on, own).source
    require_other_file(new.input_info().files, own.input_info().files)
    return own, new


def _export(report: Report, found: corrections.RecalibrationMap, source: Source, path: str) -> None:
    """Write a correction: as a map, or as a function that says by how much 90 % intervals are then off."""
    if path.endswith(".json"):
        write_map(found, path)
        return
    rows = source.predictions()
    times = [name for name, values in rows.columns.items() if np.asarray(values).dtype.kind == "M"]
    roles, suffix = source.input_info().columns, Path(path).suffix
    names = source.table.schema.names if isinstance(source, FileSource) else [*rows.columns]
    write_text(path, exported(found, suffix, roles=roles, times=times, judgement=_judgement(report), names=names))


def _judgement(report: Report) -> str:
    """Return by how much 90 % intervals of rows that were corrected by fits to the other folds are off, in words."""
    judged = [each for each in report.results if each.slice.get("rows") == OUT_OF_FOLD and "group" not in each.slice]
    found = {each.slice["stage"]: each for each in judged if each.metric == FACTOR}
    factor = found.get(AFTER, found.get(BEFORE))
    if factor is None or factor.value is None or factor.low is None or factor.high is None:
        return ""
    limits = f"{factor.value:.3g} ({factor.low:.3g} to {factor.high:.3g})"
    within = factor.low >= 1 / (1 + TOLERANCE) and factor.high <= 1 + TOLERANCE
    told = "within" if within else "not shown to be within"
    among = ", with weights as among the new inputs" if "effective_rows" in report.settings else ""
    return f"Out of fold{among}, 90 % intervals would have to be {limits} times as wide: {told} {100 * TOLERANCE:g} %."


def mend_together(request: Request, parts: Mapping[str, Answer], answer: Answer) -> Answer:
    """Return the answer about all targets with how they depend on each other; write what was asked for."""
    files, source = request.options(CorrectionOptions), request.open(request.data("file"), None)
    found = corrections.joined_map({name: each.extras[0] for name, each in parts.items()})
    if files.export is not None:
        if not files.export.endswith(".json"):
            raise OptionError("--export writes a function of one target: pass --only TARGET, or a path with .json")
        write_map(found, files.export)
    if files.corrected is not None:
        _write(request, request.data("file" if files.map is not None else "to"), found, files.corrected)
    if answer.report is None:
        return answer
    with request.run(source) as run:
        effect = correlation(source, run)
    conclusion = Conclusion(answer="not-shown", effects=(effect,))
    return Answer(request.with_commands(replace(answer.report, conclusion=conclusion)), (found,), source)


def unobserved(source: SourceT) -> SourceT:
    """Return a source with the distributions of targets before these were observed, which are what is corrected."""
    return replace(source, observed=False) if isinstance(source, FileSource) else source


def _with_targets(source: Source | None) -> Source | None:
    """Return a source; None for a file without targets."""
    return None if isinstance(source, FileSource) and source.contents == "new" and source.missing() else source


def _require_outputs(request: Request, files: CorrectionOptions, *sources: Source | None) -> None:
    """Raise, before computing, if the predictions are of no kind that is corrected, or an output cannot be written."""
    for source in sources:
        if isinstance(source, FileSource) and source.contents == "new" and source.roles.predictive is None:
            raise FileError(f"{source.name}: {source.missing()[0]}")
    if files.corrected is not None:
        suffix_of(files.corrected)
    request.require_outputs(reads=[] if files.map is None else [files.map])


def _write(request: Request, file: Any, found: corrections.RecalibrationMap, path: str) -> None:
    """Write the corrected predictions of a file with all their other columns, in batches."""
    source = unobserved(replace(request.open(file, None, narrow=True, also=found.columns), contents="new"))
    counts = {"rows": 0, "outside": 0}

    def corrected() -> Iterator[Predictions]:
        for batch in source.batches():
            rows, outside = found.apply_counted(batch)
            counts["rows"] += len(rows)
            counts["outside"] += outside
            yield rows

    with source.error_names():
        write_canonical(path, corrected(), source)
    steps = "; ".join(found.texts) or "left as they are"
    request.tell(f"{path}: {count_of(counts['rows'], 'row')}, {steps}")
    if counts["outside"]:
        request.tell(f"note {outside_message(counts['outside'], counts['rows']).text}")


def recalibrate(
    source: Source,
    *,
    options: RecalibrationOptions | None = None,
    other: Source | None = None,
    metrics: Sequence[Metric[Any]] | None = None,
    run: Run | None = None,
    sink: Callable[[Predictions], None] | None = None,
    new: Source | None = None,  # New inputs, for which it is fitted and chosen
) -> tuple[Report, corrections.RecalibrationMap]:
    """Return which correction helps, what it changes on rows that were not used to fit it, and the correction."""
    source, other = unobserved(source), None if other is None else unobserved(other)
    study = _Study(source, options or RecalibrationOptions(), run or Run(), new)
    chosen = study.chosen
    metrics = judges() if metrics is None else metrics
    own, without = (metrics, []) if new is None else weighted_forms(metrics, cross_validation.WEIGHTS, "--on")
    judged = list(study.judged(own))
    found = study.fitted
    if sink is not None:
        sink(study.out_of_fold(chosen.method))
    warnings = data_warnings(source, study.rows.predictive)
    if other is not None:
        if isinstance(other, FileSource):
            other = replace(other, also=tuple(dict.fromkeys((*other.also, *found.columns))))
        cross_validation.require_other_rows(study.rows, other.predictions())
        second = judge_map(other, found, metrics=metrics, run=study.run)
        judged.append(second)
        warnings += tuple(each for each in second.results[0].warnings if each.code == "outside-range")
    dependent = dependent_rows(judged[0].results)
    results = [*study.score_results(dependent), *(result for report in judged for result in report.results)]
    results += [*study.place_results(), *study.new_results()]
    info = source.input_info()
    if new is not None:
        info = with_new_files(info, new.input_info().files)
    if other is not None:
        files = (replace(file, role="evaluation_points") for file in other.input_info().files)
        info = replace(info, files=(*info.files, *files))
    report = Report(
        calcheck=found.calcheck,
        input=info,
        settings={
            **run_settings(study.run),
            "asked": study.options.method,
            "columns": list(study.fits.by),
            "method": chosen.method.name,
            "steps": list(found.texts),
            "folds": study.options.folds,
            "score": study.options.score,
            **study.searched,
            **study.change,
            **({} if study.effective_rows is None else {"effective_rows": study.effective_rows}),
        },
        results=_with_warnings(results, warnings),
        skipped=(*dict.fromkeys([*(each for one in judged for each in one.skipped), *without]), *study.inapplicable),
        conclusion=None if new is not None and other is None else judged[-1].conclusion,  # not about new inputs
    )
    return report, found


def judges() -> list[Metric[Any]]:
    """Return the metrics before and after."""
    return [METRICS[name](**OPTIONS.get(name, {})) for name in JUDGES]


def tried_columns(source: Source, cluster: str | None) -> tuple[str, ...]:
    """Return the columns of a source on which errors may depend: its inputs and those without a role."""
    rows = source.predictions()
    named = source.options.input_names if isinstance(source, FileSource) and not rows.has_embedding else ()
    known = source.feature_columns() if isinstance(source, FileSource) else rows.columns
    return usable_columns(rows, [name for name in (named or known) if name != cluster])


def _fitted_files(source: Source) -> tuple[corrections.FittedFile, ...]:
    return tuple(corrections.FittedFile(path=each.path, sha256=each.sha256) for each in source.input_info().files)


class _Study:
    """Cross-validation of the methods, and the fit of the chosen one to all rows."""

    def __init__(self, source: Source, options: RecalibrationOptions, run: Run, new: Source | None = None) -> None:
        self.source, self.new_source, self.options, self.run = source, new, options, run
        self.rows, self.new = source.predictions(), None if new is None else new.predictions()
        missing = [name for name in options.columns if name not in self.rows.columns]
        if missing:
            raise DataError(f"there is no column {missing[0]!r} with one value per row")
        require_single_target(self.rows.distributions(), self.rows.targets())
        self.tried = () if options.by is not None else tried_columns(source, options.dependence.cluster)
        self.fits = options.fit_options(run.seed, self.tried)
        named = (name for name in self.fits.by if name not in PREDICTED)
        searched = (*predicted_columns(self.rows.distributions()), *named)
        self.dependent_run = replace(run, dependence=options.dependence)
        self.places = Places(source, searched if new is None else (), self.dependent_run)
        self.effective_rows: float | None = None
        if self.new is not None:
            self.rows, self.effective_rows = weighted_rows(self.rows, self.new, self.dependent_run)
        self._left: dict[str, WrongPlace | None] = {}

    @cached_property
    def _validated(self) -> tuple[cross_validation.CrossValidation, list[cross_validation.Candidate]]:
        predictive = self.rows.distributions().load()
        asked = self.options.method
        methods = (
            corrections.candidates(predictive, observed=self.rows.observation is not None)
            if asked == corrections.AUTO
            else (corrections.Method(corrections.NONE), corrections.Method.parse(asked))
        )
        lean = self.rows.without(*(part for part in ("x", "id") if getattr(self.rows, part) is not None))
        return cross_validation.cross_validate(
            replace(lean, predictive=predictive),
            list(dict.fromkeys(methods)),
            self.fits,
            folds=self.options.folds,
            score=self.options.score,
            dependence=self.options.dependence,
            progress=self.run.progress,
        )

    @cached_property
    def chosen(self) -> cross_validation.Candidate:
        """The method to use: the one that was asked for, or the best; one that leaves no wrong region comes first."""
        validation, found = self._validated
        if self.options.method != corrections.AUTO:
            asked = found[-1]
            if asked.reason:
                raise DataError(f"--method {asked.method.name} does not apply: {asked.reason}")
            return asked
        best = validation.choose(found, self.options.form)
        if self.left(best.method) is None:
            return best
        others = [
            each for each in found if not (each is best or each.reason) and not validation.is_clearly_better(best, each)
        ]
        others = [each for each in others if each.method.keeps_form or not best.method.keeps_form]
        searched = (each for each in others if self.places.are_searchable(self.out_of_fold(each.method)))
        everywhere = (each for each in searched if self.left(each.method) is None)
        return next(everywhere, None) or min((best, *others), key=lambda each: each.mean)

    def left(self, method: corrections.Method) -> WrongPlace | None:
        """Return the region where rows corrected by fits to other folds differ most, if its p-value is small."""
        if method.name not in self._left:
            rows = self.out_of_fold(method)
            self._left[method.name] = self.places.wrong(rows) if self.places.are_searchable(rows) else None
        return self._left[method.name]

    def out_of_fold(self, method: corrections.Method) -> Predictions:
        """Return the rows, each corrected by a fit to the other folds."""
        if method.name == corrections.NONE:
            return self.rows
        return self.rows.with_targets(self.rows.targets(), self._validated[0].corrected(method).distributions())

    def new_results(self) -> Iterator[Result]:
        """Yield by how much intervals and means are off at new inputs, before and after the correction."""
        if self.new is not None:
            method = self.chosen.method
            after = {} if method.name == corrections.NONE else {AFTER: self.out_of_fold(method)}
            yield from foretold_results({BEFORE: self.rows} | after, self.new, self.dependent_run)

    def place_results(self) -> Iterator[Result]:
        """Yield the factors and mean errors of regions and groups before and after the chosen correction."""
        method = self.chosen.method
        if method.name == corrections.NONE or not self.places.are_searchable(self.rows):
            return
        features = [each for step in self.fitted.steps for each in getattr(step, "features", ())]
        before = self.left(corrections.Method(corrections.NONE))
        wrong = self.places.at_step(before, features[0] if len(features) == 1 else None)
        places = self.places.groups(wrong, self.left(method))
        for stage, rows in ((BEFORE, self.rows), (AFTER, self.out_of_fold(method))):
            yield from self.places.results(rows, places, {"rows": OUT_OF_FOLD, "stage": stage})

    @property
    def searched(self) -> dict[str, Any]:
        """What the report says about the search for regions where corrected rows are wrong."""
        if not self.places.are_searchable(self.out_of_fold(self.chosen.method)):
            return {}
        left = self.left(self.chosen.method)
        found = None if left is None else {"group": left.place.label, "filter": left.place.filter, "rows": left.rows}
        told = (
            None if left is None or found is None else {**found, "direction": left.direction, "p_value": left.p_value}
        )
        return {"searched": list(self.places.columns), "left": told}

    @property
    def change(self) -> dict[str, Any]:
        """The change of the score by the chosen method, in percent of that without a correction, and its limits."""
        paired, unchanged = self._paired(self.chosen), self._validated[1][0].mean
        if paired is None or not unchanged:
            return {}
        reach = NORMAL_LIMIT * paired.error
        limits = (paired.value, paired.value - reach, paired.value + reach)
        names = ("percent", "percent_low", "percent_high")
        helps = "no" if paired.value >= 0 else "yes" if limits[2] < 0 else "not-shown"
        shares = {name: 100 * each / abs(unchanged) for name, each in zip(names, limits, strict=True)}
        return {"change": {"helps": helps, **shares}}

    @property
    def inapplicable(self) -> list[Skipped]:
        """Methods that do not apply, with the reasons."""
        reasons = {each.method.name: each.reason for each in self._validated[1] if each.reason}
        return [Skipped(metric=name, code="inapplicable", reason=reason) for name, reason in reasons.items()]

    @cached_property
    def fitted(self) -> corrections.RecalibrationMap:
        """The chosen method, fitted to all rows."""
        method = self.chosen.method
        steps = method.fit(cross_validation.fitted_rows(self.rows), self.fits)
        table = []
        for each in self._validated[1]:
            score = {"reason": each.reason} if each.reason else {"value": each.mean}
            if (paired := self._paired(each)) is not None:
                score |= {"difference": paired.value, "p_value": paired.p_below}
            table.append(corrections.MethodScore(method=each.method.name, **score))
        choice = corrections.Choice(score=self.options.score, folds=self.options.folds, table=tuple(table))
        found = corrections.fitted_map(method.name, steps, self.rows, choice, _fitted_files(self.source))
        if self.new_source is None:
            return found
        return replace(found, new_inputs=_fitted_files(self.new_source), effective_rows=self.effective_rows)

    def _paired(self, candidate: cross_validation.Candidate) -> Any:
        """Return the comparison of a method with no change; None for no change itself."""
        validation, found = self._validated
        unchanged = found[0].scores
        if (
            candidate.scores is None
            or candidate.reason
            or unchanged is None
            or candidate.method.name == corrections.NONE
        ):
            return None
        return validation.compare(candidate.scores, unchanged)

    def score_results(self, warnings: tuple[Message, ...]) -> Iterator[Result]:
        """Yield the mean score of each method, and its difference from no change, with the warnings about rows."""
        validation, found = self._validated
        name = validation.row_score.metric
        metric = METRICS[name](**OPTIONS.get(name, {}))
        for each in found:
            if each.reason:
                continue
            subset = {"method": each.method.name}
            yield metric.result(each.mean, subset)
            paired = self._paired(each)
            if paired is not None:
                reach = NORMAL_LIMIT * paired.error
                low, high = paired.value - reach, paired.value + reach
                inference = Inference(low=low, high=high, interval="normal", p_value=paired.p_below, warnings=warnings)
                yield metric.result(paired.value, {**subset, "minus": corrections.NONE}, inference)

    def judged(self, metrics: Sequence[Metric[Any]]) -> Iterator[Report]:
        """Yield the reports of the rows before and after, each row corrected by a fit to the other folds."""
        yield from _judged(OUT_OF_FOLD, self.rows, self.out_of_fold(self.chosen.method), metrics, self.run)


def _judged(
    which: str, before: Predictions, after: Predictions, metrics: Sequence[Metric[Any]], run: Run
) -> Iterator[Report]:
    """Yield the reports of rows before and after a correction; only one if nothing changed."""
    stages = {BEFORE: before, AFTER: after} if after is not before else {BEFORE: before}
    noticed: tuple[Message, ...] = ()
    for stage, rows in stages.items():
        answer = RowsAnswer() if rows is after else None
        report = evaluate(InMemory(rows.observed()), metrics, run=run.prefixed(stage), answer=answer)
        subset: dict[str, Any] = {"rows": which, "stage": stage}
        noticed = noticed or dependent_rows(report.results)  # The first, in place of those of each result
        results = []
        for result in report.results:
            others = (each for each in result.warnings if each.code not in OF_DEPENDENCE)
            results.append(replace(result, slice=subset, warnings=(*noticed, *others)))
        yield replace(report, results=tuple(results))


def dependent_rows(results: Sequence[Result]) -> tuple[Message, ...]:
    """Return the warnings that rows depend on each other."""
    found = (each for result in results for each in result.warnings if each.code in OF_DEPENDENCE)
    return tuple(dict.fromkeys(found))


def _with_warnings(results: Sequence[Result], warnings: tuple[Message, ...]) -> tuple[Result, ...]:
    """Return results with the warnings that apply to all of them."""
    return tuple(
        replace(each, warnings=(*(one for one in warnings if one not in each.warnings), *each.warnings))
        for each in results
    )


def judge_map(
    source: Source,
    found: corrections.RecalibrationMap,
    *,
    metrics: Sequence[Metric[Any]] | None = None,
    run: Run | None = None,
) -> Report:
    """Return metrics of predictions before and after a correction that was fitted to other rows."""
    run, source = run or Run(), unobserved(source)
    info, rows = source.input_info(), source.predictions()
    known = {file.sha256 for file in found.fitted_on}
    if same := [file.path for file in info.files if file.sha256 in known]:
        raise DataError(f"the map was fitted to {same[0]}. Judge it on other rows")
    corrected, outside = found.apply_counted(rows)
    metrics = judges() if metrics is None else metrics
    reports = list(_judged(OTHER, rows, corrected if found.steps else rows, metrics, run))
    warnings = (*data_warnings(source, rows.predictive), *([outside_message(outside, len(rows))] if outside else []))
    return replace(
        reports[-1],
        input=info,
        settings={**reports[0].settings, "method": found.method, "steps": list(found.texts)},
        results=_with_warnings([result for report in reports for result in report.results], warnings),
        skipped=tuple(dict.fromkeys(each for report in reports for each in report.skipped)),
    )


def outside_message(outside: int, rows: int) -> Message:
    """Return the warning about rows outside the range of the fitted rows."""
    text = (
        f"{outside:,} of {rows:,} rows {'is' if outside == 1 else 'are'} outside the range of the fitted rows, and"
        " treated as its nearest point"
    )
    return Message("outside-range", text)
