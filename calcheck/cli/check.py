"""What reports are checked against: rules, verdicts and baselines; and the states of monitored models."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from calcheck.cli import inputs_and_outputs
from calcheck.cli.app import metric_name
from calcheck.cli.typer_options import build
from calcheck.errors import CalcheckError, DataError, FileError, MissingFileError, OptionError
from calcheck.execution.run import Run
from calcheck.metrics import DEFAULT_METRICS, METRICS, TWO_SAMPLE_METRICS
from calcheck.reports import Gate, Inference, Level, Report, Result
from calcheck.studies.gate import rules as gate_rules
from calcheck.studies.gate.name_resolution import read_rule
from calcheck.studies.gate.rules import Rule, parse
from calcheck.studies.options import AgainstOptions, RefitOptions, RowOptions, RuleOptions, ToleranceOptions

if TYPE_CHECKING:
    from calcheck.cli.settings import Config, Settings
    from calcheck.io.file_source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.regions.partition import Cut
    from calcheck.studies.gate.baseline import Allowed

ROUNDING = 1e-6  # relative difference of a value that was computed again, possibly on another machine
SUBSAMPLED = "--subsample draws other rows"


@dataclass(frozen=True)
class Base:
    """The baseline: its results, their metrics, and what is allowed; empty without ``--against``."""

    name: str = ""  # The file; empty without a baseline
    results: tuple[Result, ...] = ()  # Stored results; empty if the baseline is a file of predictions
    metrics: tuple[Metric[Any], ...] = ()  # The metrics that are compared
    allowed: Allowed | None = None  # Allowed changes
    no_worse: bool = False  # Whether improvements are allowed, and paired differences are used where they are known
    predictions: FileSource | None = None  # The predictions of the baseline, for paired differences
    unpaired: str = ""  # Why the predictions of a stored report are not available
    report: Report | None = None  # The stored report
    is_tolerant: bool = False  # Whether a tolerance of values is stated

    @property
    def is_answered(self) -> bool:
        """Whether answers are compared, if the rows are not the same."""
        return self.no_worse and not self.is_tolerant

    @property
    def is_predictions(self) -> bool:
        """Whether the baseline is a file of predictions."""
        return self.predictions is not None and not self.results

    def reads(self) -> list[str]:
        """Return the names of the files, which no output may overwrite."""
        return [*([self.name] if self.name else []), *(self.predictions.reads() if self.predictions else [])]

    def gates(
        self, report: Report, source: FileSource, run: Run, evaluated: Callable[[FileSource], Report], *, strict: bool
    ) -> tuple[Gate, ...]:
        """Return a gate for each result of the baseline, compared with that of the report of a source."""
        if self.allowed is None:
            return ()
        from calcheck.studies.gate.baseline import NotWorse, Tolerance, compare_other_rows, compare_with_baseline

        results, allowed = self.results, self.allowed
        if self.no_worse and isinstance(allowed, Tolerance):
            results, differences, unpaired = self._paired(source, run)
            if not differences and self.is_answered:
                stored = evaluated(self.predictions) if self.report is None and self.predictions else self.report
                if stored is not None:
                    why = re.split(r"\. (?=[A-Z])| \(row ", unpaired)[0]
                    sys.stderr.write(f"calcheck: other rows, so answers and scores are compared: {why}\n")
                    return compare_other_rows(report, stored, self.name, unpaired, strict=strict)
            allowed = NotWorse(allowed, run.confidence, differences, unpaired)
        present = {result.metric for result in report.results}
        reasons = {skipped.metric: skipped.reason for skipped in report.skipped}
        for metric in (result.metric for result in results):
            if metric not in present:
                raise FileError(
                    f"{source.name} has no {metric} to compare with the baseline: {reasons.get(metric, 'not computed')}"
                )
        return compare_with_baseline(report, results, allowed)

    def _paired(self, source: FileSource, run: Run) -> tuple[tuple[Result, ...], Mapping[str, Inference], str]:
        """Return the results of the baseline, the paired differences by metric, and why there are none."""
        from calcheck.models.alignment import Model
        from calcheck.studies.gate.baseline import loss_differences

        if self.predictions is None:
            return self.results, {}, self.unpaired
        base = Model.from_source(f"the baseline {self.predictions.name}", self.predictions)
        try:
            report, differences = loss_differences((base, Model.from_source(source.name, source)), self.metrics, run)
        except DataError as error:
            return self.results, {}, str(error)
        now = {result.metric: result.value for result in report.results}
        if not all(_is_same(result.value, now.get(result.metric)) for result in self.results):
            return self.results, {}, f"{self.predictions.name} has other values with these options"
        return self.results or report.results, differences, "a model has no value"


def read_base(options: AgainstOptions, named: Sequence[str] | None, settings: Settings, given: dict[str, Any]) -> Base:
    """Return the baseline."""
    if options.against is None:
        return Base()
    from calcheck.io.files import SUFFIXES, suffix_of
    from calcheck.studies.gate.baseline import StoredInterval, Tolerance

    allowed = StoredInterval() if options.within_interval else Tolerance.from_options(options.rtol, options.atol)
    if suffix_of(options.against) not in SUFFIXES.keys() - {".json"}:  # JSON is a report, not records
        return _report_base(options, allowed, given)
    for flag, refused in {
        "--subsample": build(RowOptions, given).subsample is not None,
        "--within-interval": options.within_interval,
    }.items():
        if refused:
            raise OptionError(f"--against {options.against}: predictions can be a baseline only without {flag}")
    metrics = inputs_and_outputs.select_metrics(named, settings, given[inputs_and_outputs.LEVEL])
    source = inputs_and_outputs.open_source(options.against, given, metrics, narrow=False)
    return Base(
        options.against, (), tuple(metrics), allowed, no_worse=True, predictions=source, is_tolerant=options.is_tolerant
    )


def _report_base(options: AgainstOptions, allowed: Allowed, given: dict[str, Any]) -> Base:
    """Return the baseline of a stored report, with the predictions that it was computed from if they are needed."""
    from calcheck.storage.report_json import read_report

    name = str(options.against)
    report = read_report(name)
    names = [result.metric for result in report.results]
    problems = {
        "it has no results": not names,
        "its results are for subsets of the rows": any(result.slice for result in report.results),
        "it has several results for one metric": len(set(names)) < len(names),
        "its results are evaluated at the inputs of another file": any(
            file.role == "evaluation_points" for file in report.input.files
        ),
    }
    if problem := next((problem for problem, found in problems.items() if found), ""):
        remedy = "Use a report from calcheck evaluate FILE --format json"
        raise FileError(f"{name} cannot be used as a baseline: {problem}. {remedy}")
    try:
        metrics = tuple(_metric(stored) for stored in report.results)
    except OptionError as error:
        raise FileError(f"{name} cannot be used as a baseline: {error}") from error
    predictions, unpaired = _predictions(report, metrics, given) if options.no_worse else (None, "")
    return Base(
        name, report.results, metrics, allowed, options.no_worse, predictions, unpaired, report, options.is_tolerant
    )


def _predictions(
    report: Report, metrics: Sequence[Metric[Any]], given: dict[str, Any]
) -> tuple[FileSource | None, str]:
    """Return the predictions of a stored report if they are still there, and the reason if they are not."""
    file = next((file for file in report.input.files if file.role == "predictions"), None)
    if file is None or file.path == inputs_and_outputs.STDIN:
        return None, "the report names no file of predictions"
    if build(RowOptions, given).subsample is not None:
        return None, SUBSAMPLED
    try:
        source = inputs_and_outputs.open_source(file.path, given, metrics, narrow=False)
        unchanged, missing = source.file.sha256 == file.sha256, source.missing()
    except CalcheckError as error:
        return None, f"{file.path} cannot be read like this file: {error}"
    if missing:
        return None, f"{file.path} cannot be read like this file: {missing[0]}"
    return (source, "") if unchanged else (None, f"{file.path} has changed since")


def _is_same(stored: float | None, now: float | None) -> bool:
    """Return whether two values are equal up to rounding, or both are absent."""
    return stored == now or (stored is not None and now is not None and math.isclose(stored, now, rel_tol=ROUNDING))


def _metric(stored: Result) -> Metric[Any]:
    """Return the metric of a stored result, with the stored options."""
    if stored.metric in TWO_SAMPLE_METRICS:
        msg = f"{stored.metric} compares two files, but check reads one. To compare stored reports, use calcheck diff"
        raise OptionError(msg)
    return METRICS.named(stored.metric).from_options(stored.options)


Rules = list[tuple[Rule, Level]]

EXIT_VIOLATED, EXIT_UNJUDGED = 1, 3
TABLES: dict[str, Level] = {"fail-on": "fail", "warn-on": "warn"}


def rules_of(options: RuleOptions, config: Config) -> Rules:
    """Return the rules with their levels; options replace the settings of the same level."""
    if unknown := [name for name in config.gates if name not in TABLES]:
        raise FileError(f"{config.path}, [gates]: unknown key {unknown[0]!r}. Available keys: {', '.join(TABLES)}")
    configured = {table: _texts(config.gates.get(table, []), f"{config.path}, [gates] {table}") for table in TABLES}
    found: Rules = []
    for texts, (table, level) in zip((options.fail_on, options.warn_on), TABLES.items(), strict=True):
        try:
            found += [(read_rule(text), level) for text in texts or configured[table]]
        except OptionError as error:
            if texts:
                raise
            raise FileError(f"{config.path}, [gates] {table}: {error}") from error
    _explain_aliases(found)
    return found


def with_gates(report: Report, rules: Rules) -> Report:
    """Return a report with the outcomes of rules."""
    from calcheck.studies.gate.evaluate import evaluate_rule

    return replace(report, gates=tuple(evaluate_rule(rule, report, level=level) for rule, level in rules))


def exit_code(reports: Sequence[Report]) -> int:
    """Return the exit code for gates: 1 if one is violated, else 3 if one cannot be judged, else 0."""
    if any(report.violated("fail") for report in reports):
        return EXIT_VIOLATED
    return EXIT_UNJUDGED if any(report.unjudged("fail") for report in reports) else 0


def parse_rules(fail_on: Sequence[str], warn_on: Sequence[str]) -> Rules:
    """Return the rules in texts, with their levels."""
    found: Rules = [*((read_rule(text), "fail") for text in fail_on), *((read_rule(text), "warn") for text in warn_on)]
    _explain_aliases(found)
    return found


def _explain_aliases(rules: Rules) -> None:
    """Say which metrics the aliases in rules stand for, each once."""
    for name in dict.fromkeys(name for rule, _ in rules for name in parse(rule.text).metrics()):
        metric_name(name)


def _texts(value: Any, where: str) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise FileError(f"{where} must be a rule, e.g. 'ece > 0.05', or a list of rules, got {value!r}")
    return texts


def monitored_states(files: Sequence[str], rules: Rules, base: Base) -> list[str]:
    """Return the files if they are states of monitored models; none if they are predictions."""
    from calcheck.io.files import File, kind_of, resolve
    from calcheck.storage.archives import is_monitor_state

    states = [file for file in files if is_monitor_state(file)]
    if not states and any(rule.refers_to(gate_rules.MONITOR) for rule, _ in rules):
        for file in files:
            if file != inputs_and_outputs.STDIN and isinstance(resolve(file), File) and kind_of(file) == "nothing":
                raise MissingFileError(file)
        msg = "rules on monitor.… need a state: calcheck monitor FILE --time COLUMN --save-state FILE writes it"
        raise OptionError(msg)
    if states and len(states) < len(files):
        msg = f"{states[0]} is a state of a monitored model, and other files are not: check them separately"
        raise OptionError(msg)
    if states and base.name:
        msg = "--against compares predictions with a baseline, and a state of a monitored model has none: omit it"
        raise OptionError(msg)
    return states


def state_report(file: str, rules: Rules, given: dict[str, Any]) -> Report:
    """Return the report of a state with its gates; without rules, the answer must not be no."""
    from calcheck.studies.gate.evaluate import answer_gates
    from calcheck.studies.monitor.options import MonitorOptions
    from calcheck.studies.monitor.state import read_monitor_state
    from calcheck.studies.monitor.study import monitor_report

    report = monitor_report(
        read_monitor_state(file),
        level=MonitorOptions().level,
        run=inputs_and_outputs.make_run(given),
        tolerance=build(ToleranceOptions, given).tolerance,
    )
    return with_gates(report, rules) if rules else replace(report, gates=answer_gates(report))


NO_VERDICT = "no metric has a verdict, so nothing would be checked. Pass a rule, e.g. --fail-on 'mae > 1'"


@dataclass(frozen=True)
class SlicePlan:
    """Metrics to compute for groups of the rows, or for the regions of a search if no columns form groups."""

    metrics: tuple[Metric[Any], ...]
    cuts: tuple[Cut, ...]
    groups: RefitOptions | None = None

    @property
    def column(self) -> str | None:
        """The column that forms all groups; None if it is cut, predicted, or one of several."""
        from calcheck.studies.slices.groups import file_columns

        names = file_columns([cut.text for cut in self.cuts])
        return names[0] if len(self.cuts) == len(names) == 1 and ":" not in names[0] else None

    def weighed(self, given: dict[str, Any]) -> SlicePlan:
        """Return the same with sampling weights, and refitted, if these are asked for."""
        from calcheck.studies.slices.study import require_weighable

        require_weighable(given.get("weights"), self.cuts)
        metrics = tuple(inputs_and_outputs.weigh(self.metrics, given)[0])
        return replace(self, metrics=metrics, groups=build(RefitOptions, given))

    def added(self, report: Report, source: FileSource, run: Run) -> Report:
        """Return a report with the results of groups or regions, whose conclusion is about these."""
        from calcheck.studies.slices.study import slice_source

        found = slice_source(source, self.metrics, self.cuts, run, groups=self.groups)
        inputs_and_outputs.require_nothing_skipped(found, source)
        return replace(report, results=(*report.results, *found.results))


@dataclass(frozen=True)
class Requirements:
    """What a file is checked against: rules and a baseline; its verdicts if there are neither."""

    rules: Rules
    base: Base = field(default_factory=Base)
    checked: bool = False  # Whether the file is checked: only what the rules need is computed, without rules the answer
    strict: bool = False  # Whether a qualified yes is not enough

    @property
    def are_verdicts(self) -> bool:
        """Whether the answer, and the verdicts of groups, are checked, as there are no rules."""
        return self.checked and not self.rules and not self.base.name

    @property
    def are_answered(self) -> bool:
        """Whether the answer is checked."""
        named = any(rule.refers_to(*gate_rules.ANSWERED) for rule, _ in self.rules)
        return self.are_verdicts or self.strict or self.base.is_answered or named

    @property
    def are_overall(self) -> bool:
        """Whether a rule refers to the overall verdict, which all metrics have a part in."""
        return any(rule.refers_to(gate_rules.OVERALL) for rule, _ in self.rules)

    def take_all(self, named: Sequence[str] | None) -> bool:
        """Return whether every metric that applies is computed."""
        checked = self.are_verdicts or self.are_overall or self.base.is_predictions
        return not named and (checked or not self.checked)

    def metrics(
        self, named: Sequence[str] | None, settings: Settings, levels: Sequence[float] | None
    ) -> list[Metric[Any]]:
        """Return the metrics to compute: those of rules, of the baseline with its options, and named ones."""
        if not self.checked:
            chosen = inputs_and_outputs.select_metrics(named, settings, levels)
            for rule, _ in self.rules:
                if rule.is_sliced or rule.refers_to(gate_rules.MONITOR):
                    what, command = ("groups", "check --by") if rule.is_sliced else ("a monitored model", "monitor")
                    raise OptionError(f"rule {rule.text!r} is about {what}: use calcheck {command}")
            known = {metric.info.name for metric in chosen}
            wanted = [name for rule, _ in self.rules for name in rule.metrics() if name not in known]
            return [*chosen, *(inputs_and_outputs.select_metrics(wanted, settings) if wanted else [])]
        if self.are_verdicts:
            return inputs_and_outputs.select_metrics(named, settings, levels)
        wanted = [name for rule, _ in self.rules for name in rule.metrics()]
        wanted += [] if self.base.is_predictions else named or (DEFAULT_METRICS if self.are_overall else [])
        metrics = {metric.info.name: metric for metric in inputs_and_outputs.select_metrics(wanted, settings, levels)}
        metrics |= {metric.info.name: metric for metric in self.base.metrics}
        return [metrics[name] for name in METRICS if name in metrics]

    def slices(
        self, by: Sequence[str] | None, named: Sequence[str] | None, settings: Settings, levels: Sequence[float] | None
    ) -> SlicePlan | None:
        """Return what to compute for groups, or for the regions of a search; None if neither is needed."""
        if not by and not any(rule.is_sliced for rule, _ in self.rules):
            return None
        from calcheck.studies.slices.groups import GROUP_METRICS
        from calcheck.studies.slices.study import cuts_of

        for rule, _ in self.rules:
            if rule.names_groups and not by:
                msg = f"rule {rule.text!r} names a group: also pass the columns that form the groups, e.g. --by sex"
                raise OptionError(msg)
        of_rules = [name for rule, _ in self.rules for name in rule.metrics(grouped=True)]
        metrics = inputs_and_outputs.select_metrics([*(named or GROUP_METRICS), *of_rules], settings, levels)
        return SlicePlan(tuple(metrics), tuple(cuts_of(by)))

    def judge(
        self, report: Report, source: FileSource | None, run: Run, evaluated: Callable[[FileSource], Report] | None
    ) -> Report:
        """Return the report of a source, or of saved states, with the outcomes; a baseline may be ``evaluated``."""
        gates = with_gates(report, self.rules).gates if self.rules else ()
        if self.are_verdicts or self.strict:
            from calcheck.studies.gate.evaluate import answer_gates, group_gates

            gates = (*answer_gates(report, strict=self.strict), *(group_gates(report) if self.are_verdicts else gates))
        elif self.checked and not any(rule.refers_to(gate_rules.ON) for rule, level in self.rules if level == "fail"):
            from calcheck.studies.gate.evaluate import answer_gates

            gates = (*gates, *answer_gates(report)[1:])  # the answer at new inputs
        compared: tuple[Gate, ...] = ()
        if source is not None and evaluated is not None:
            compared = self.base.gates(report, source, run, evaluated, strict=self.strict)
        report = replace(report, gates=(*gates, *compared))
        if self.checked and not report.gates:
            raise FileError(f"{source.name if source else report.input.files[0].path}: {NO_VERDICT}")
        return report
