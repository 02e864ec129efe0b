"""What a report suggests to do next: commands for a shell, which are calls of functions in Python."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from calcheck.errors import DataError
from calcheck.execution.run import RowDependence
from calcheck.io.column_names import INPUTS, MEANS, OTHER_NAMES, STDS, TARGETS, ColumnOptions
from calcheck.metrics import METRICS
from calcheck.options import Option, options_of
from calcheck.reports.conclusion import MOST_ROWS

if TYPE_CHECKING:
    from calcheck.io.file_source import FileSource
    from calcheck.reports import Conclusion, Report
    from calcheck.reports.conclusion import Effect, Topic

BY_TOPIC: dict[Topic, tuple[str, ...]] = {
    "size": ("lzms", "stratified-coverage", "coverage"),
    "shape": ("pit", "ece"),
    "ranking": ("confidence-curve", "stratified-coverage"),
    "bias": ("bias",),
}  # The metrics that show more about a fault, by topic; the first that the report has is suggested
OUTPUT = re.compile(
    r"(?i)err|resid|uncert|uct|std|sigma|var|pred|lower|upper|quantile|prob|count|rate|^(lo|hi|q)[\W_\d]*$"
    r"|(?<![a-z])(true|truth|target|observed|obs|actual|mean|sd)(?![a-z])"
)  # Names of columns that are rather targets or outputs of a model than its inputs
HINT = re.compile(r"pass (--(?:target-std|clip|rounded)) ([^\s;]+)")  # How targets were observed, in a notice
CORRECTED = {"noise-left-out", "one-group", "one-region", "one-input", "heavy-tails", "constant-std", "uneven-std"}
# Causes after which a correction is right; others are to be undone
SPREADS = ("std", "var", "log_std", "log_var", "y_std")  # Keywords of which one states the uncertainties
OF_ANSWERS = {"at", "best", "groups", "label", "plot_by", "power", "subsample", "worst"}
REFUSED = {
    "recalibrate": OF_ANSWERS | {"tolerance", "weights"},
    "slices": OF_ANSWERS | {"on"},
    "monitor": OF_ANSWERS | {"on", "weights"},
}
# Keywords of evaluate that other functions do not take
OF_ROWS = {"--filter", "--id", "--nan-policy"}  # Options that are about the rows of one file
SIGNIFICANT = 0.05  # maximum p-value of an effect that is shown
MOST = 3  # maximum number of commands
LABELS, TENS = 50, 10  # minimum number of new rows to suggest for labels, and what it is a multiple of
FEWEST_ROWS, FEWEST_WEIGHTED = 30, 50  # minimum number of rows to suggest a recalibration, and that count at new inputs
FEWEST_SEARCHED, MOST_SEARCHED = 100, 38  # minimum number of rows, and maximum number of columns, to suggest a search
MOST_INPUTS = 12  # maximum number of columns to suggest as inputs: with more, the choice is the user's


def suggestions(report: Report, source: FileSource, on: str) -> Iterator[tuple[str, list[str]]]:
    """Yield names of commands with further options, the most helpful first; ``on`` names new inputs, if any."""
    conclusion = report.conclusion
    if conclusion is None:
        return
    if noticed := report.settings.get("dependence_noticed"):
        yield from (("evaluate", each) for each in remedies(noticed, source.options.inputs or ""))
        return
    if report.outputs:
        yield from _output_suggestions(report, source)
        return
    new = [] if conclusion.on is None else ["--on", on]
    yield from _labels(report, new)
    computed = {result.metric for result in report.results}
    lzms = [result for result in report.results if result.metric == "lzms"]
    tied = {each.metric for each in lzms if any(message.code == "no-verdict" for message in each.warnings)}
    effects = {each.topic: each for each in conclusion.effects if each.kind != "bias"}
    wrong = {each.topic for each in conclusion.effects if each.within is False}
    if "at-level" in conclusion.qualifiers:
        wrong.add("shape")
    faults, inputs_effect = [topic for topic in BY_TOPIC if topic in wrong], effects.get("inputs")
    there = _mended_there(report, new)
    is_fault = bool(faults or there) or "inputs" in wrong
    is_mended = is_fault and not _is_undone(conclusion) and _shows_a_scale(report, source)
    yield from [("recalibrate", there)] if there and is_mended else []
    yield from _observations(conclusion.effects)
    has_shape = all(message.code != "unknown-shape" for result in report.results for message in result.warnings)
    yield from [] if has_shape else [("evaluate", ["--error-dist", "normal"])]
    searched = has_shape and _is_searchable(report, source)
    if any(_is_shown(each) for each in conclusion.effects if each.topic == "inputs"):
        worst = [("cce", ["--worst", "5"])] if "cce" in computed else []
        yield from [("slices", list[str]())] if searched else worst
    yield from _when(conclusion)
    if inputs_effect is not None and inputs_effect.value is None and not source.layout.layout:
        inputs = _inputs(source)
        yield from [("evaluate", inputs)] if inputs else [("slices", list[str]())] if searched else []
    yield from [("recalibrate", list[str]())] if is_mended and not there else []
    known = [name for topic in faults[:1] for name in BY_TOPIC[topic] if name in computed - tied]
    yield from ((name, []) for name in known[:1])
    yield from _time_suggestions(report, source)
    is_yes = conclusion.answer == "yes"
    if is_yes and not (conclusion.on and conclusion.on.answer == "no"):  # which fails the check
        yield "check", new
    elif conclusion.answer == "not-shown" and "time" in effects:
        yield "monitor", []


def _when(conclusion: Conclusion) -> Iterator[tuple[str, list[str]]]:
    """Yield the command that says when errors changed, if a change over time is shown."""
    if any(_is_shown(each) for each in conclusion.effects if each.topic == "time"):
        yield "monitor", []


def _labels(report: Report, new: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the command that says which targets would show the answer at new inputs, if there are as many rows."""
    on = None if report.conclusion is None else report.conclusion.on
    if on is None or on.answer != "not-shown" or on.label or on.effective_rows is None:
        return
    more = FEWEST_ROWS - on.effective_rows  # where nothing is stated; not where weights do not suffice
    if on.rows_needed is not None:  # a target there has as much weight as a tested row that counts
        known = on.labelled + (0 if on.contradicted else report.input.n)
        more = on.effective_rows * (on.rows_needed / min(known, MOST_ROWS) - 1)
    count = max(LABELS, TENS * math.ceil(more / TENS))
    if more > 0 and count <= on.rows - on.beyond.rows - on.labelled:
        yield "evaluate", [*new, "--label", str(count), "--pointwise", "rows.csv"]


def _mended_there(report: Report, new: list[str]) -> list[str]:
    """Return the options of a correction for new inputs where the answer is no; nothing if it cannot be fitted."""
    on = None if report.conclusion is None else report.conclusion.on
    if on is None or on.answer != "no" or (on.effective_rows or 0.0) < FEWEST_WEIGHTED:
        return []
    if on.contradicted or (on.labelled and not on.foretold):  # tested rows alone cannot stand for these
        return []
    from calcheck.storage.prediction_files import corrected_name

    files = [each.path for each in report.input.files if each.role == "new_inputs"]
    read = [each.path for each in report.input.files]
    to = files[0] if files and on.width is not None else ""
    return [*new, *(["--to", to, "-o", corrected_name(to, *read)] if to else [])]


def _observations(effects: Sequence[Effect]) -> Iterator[tuple[str, list[str]]]:
    """Yield the command with the options that notices name for how targets were observed."""
    found: dict[str, str] = {}
    for each in effects:
        for flag, value in HINT.findall(each.text) if each.topic == "targets" else ():
            found[flag] = f"{found[flag].strip(',')}{value}" if flag in found else value  # 0, and then ,5
    if found:
        yield "evaluate", [word for each in found.items() for word in each]


def _output_suggestions(report: Report, source: FileSource) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands about several targets: as observed, the first that is wrong, the inputs, and the check."""
    outputs = () if report.conclusion is None else report.conclusion.outputs
    yield from _observations(() if report.conclusion is None else report.conclusion.effects)
    yield from (("evaluate", ["--only", each.name]) for each in [each for each in outputs if each.answer == "no"][:1])
    untested = any(each.topic == "inputs" and each.value is None for output in outputs for each in output.effects)
    if any(each.answer == "no" for each in outputs) and report.input.n >= FEWEST_ROWS:
        yield "recalibrate", []
    if untested and not source.layout.layout and (inputs := _inputs(source)):
        yield "evaluate", inputs
    if report.conclusion is not None and report.conclusion.answer == "yes":
        yield "check", []


def _time_suggestions(report: Report, source: FileSource) -> Iterator[tuple[str, list[str]]]:
    """Yield the command that follows calibration over time, if there is a column of dates and no other dependence."""
    rows, is_told = source.rows_in_memory(), report.settings.get("dependence") or source.layout.layout
    if report.input.n < FEWEST_SEARCHED or is_told or source.states_intervals_only:
        return
    if rows is not None and rows.observation is not None:
        return
    for date in source.without_gaps(source.date_columns()[:1]):
        yield "monitor", ["--time", date]


def _is_searchable(report: Report, source: FileSource) -> bool:
    """Return whether `slices` searches regions: rows are many and independent, and have columns without a role."""
    enough = (
        report.input.n >= FEWEST_SEARCHED and not report.settings.get("dependence") and not source.states_intervals_only
    )
    return enough and 0 < len(source.feature_columns()) <= MOST_SEARCHED


def _shows_a_scale(report: Report, source: FileSource) -> bool:
    """Return whether there are enough rows of one target for a correction, with different errors."""
    if not source.has_one_target or report.input.n < FEWEST_ROWS:
        return False
    from calcheck.statistics.zscores import require_different_errors

    rows = source.rows_in_memory()
    try:
        if rows is not None:
            require_different_errors(rows)
    except DataError:
        return False
    return True


def _is_undone(conclusion: Conclusion) -> bool:
    """Return whether the most likely cause is to be undone before predictions are corrected."""
    return any(  # A correction mends a std of which no command makes the true one
        each.cause not in CORRECTED and (each.command or "std" not in each.cause) for each in conclusion.causes[:1]
    )


def _is_shown(effect: Effect) -> bool:
    """Return whether an effect makes the answer no, or limits a yes."""
    return effect.within is False or (effect.p is not None and effect.p <= SIGNIFICANT)


def _inputs(source: FileSource) -> list[str]:
    """Return the option that names the inputs, if the columns without a role are a plausible choice."""
    columns = source.unused_columns()
    numbers, vectors = ([name for name in names if not OUTPUT.search(name)] for names in columns)
    if len(vectors) == 1:
        return ["--embedding", vectors[0]]
    numbers = _without_targets(source.without_gaps(numbers), source) if len(numbers) <= MOST_INPUTS else []
    return ["--inputs", ",".join(numbers)] if 0 < len(numbers) <= MOST_INPUTS else []


def _without_targets(names: list[str], source: FileSource) -> list[str]:
    """Return the names of columns that are not computed from targets, as far as their rows are in memory."""
    rows, columns = source.rows_in_memory(), source.free_columns()
    known = {name: columns[name] for name in names if name in columns}
    if rows is None or not known:
        return names
    from calcheck.statistics.zscores import without_targets

    y = rows.targets()
    try:
        kept = without_targets(known, y, rows.distributions().mean())
    except DataError:  # Distributions without a mean, such as intervals
        kept = without_targets(known, y, y)
    return [name for name in names if name in kept or name not in known]


def remedies(noticed: dict[str, Any], inputs: str) -> Iterator[list[str]]:
    """Yield the options that state why rows depend on each other; inputs are those that were named."""
    yield shlex.split(noticed["option"])
    if "alternative" in noticed:
        yield ["--inputs", ",".join(filter(None, (inputs, noticed["column"])))]


def question_for_level(source: FileSource, next_step: str) -> Report | None:
    """Return the report of intervals whose level is not known: how many targets they hold, and what to do."""
    from calcheck.io.interval_columns import held_text, without_level  # help does without NumPy

    held, pair = source.coverage_without_level(), without_level(source.columns, source.options)
    if held is None or pair is None:
        return None
    from calcheck.core import __version__
    from calcheck.reports import Conclusion, Report
    from calcheck.reports.conclusion import Effect

    with source.error_names():
        told = Effect(topic="size", text=f"not judged: {held_text(pair, held)}")
        answer = Conclusion(answer="not-shown", effects=(told,), next=(next_step,))
        read = source.at_level(0.9).input_info()
        columns = {role: name for role, name in read.columns.items() if role != "levels"}
        info = replace(read, predictive="intervals", columns=columns, options=())
    return Report(calcheck=__version__, input=info, settings={}, results=(), conclusion=answer)


def next_commands(report: Report, file: str, source: FileSource, given: dict[str, Any]) -> tuple[str, ...]:
    """Return the commands that show more about the effects, as they can be pasted into a shell."""
    if file == "-":
        return ()
    found = (
        shlex.join(["calcheck", name, file, *given_options(name, given, further), *further])
        for name, further in suggestions(report, source, str(given.get("on")))
    )
    return (*_of_new_targets(report, source, given), *found)[:MOST]


def _of_new_targets(report: Report, source: FileSource, given: dict[str, Any]) -> Iterator[str]:
    """Yield the command that corrects new predictions by their own targets, if only these count and are not right."""
    conclusion = report.conclusion
    on = None if conclusion is None else conclusion.on
    if conclusion is None or on is None or not on.contradicted or on.answer != "no" or _is_undone(conclusion):
        return
    from calcheck.io.join import split_column  # help does without NumPy

    files = {each.role: each.path for each in report.input.files}
    is_plain = not source.layout.layout and not split_column(given["on"])[1] and source.has_one_target
    if not is_plain or files.keys() != {"predictions", "new_inputs"} or on.labelled < FEWEST_ROWS:
        return
    roles = _values(report.input.options).items()
    words = [word for flag, values in roles if flag not in OF_ROWS for each in values for word in (flag, each)]
    dependence = {**given, **dict.fromkeys(each.field for each in options_of(ColumnOptions))}
    words += [*given_options("recalibrate", dependence), *["--nan-policy", "omit"] * (on.labelled < on.rows)]
    yield without_known_names(shlex.join(["calcheck", "recalibrate", files["new_inputs"], *words]), given)


def without_known_names(command: str, given: dict[str, Any]) -> str:
    """Return a command without the options that were not given and name columns that are found without them."""
    if not command.startswith("calcheck "):
        return command
    words = shlex.split(command)
    known = {"target": TARGETS, "mean": MEANS, "std": STDS, "samples": None, "quantiles": None}
    for name, names in known.items():
        place = words.index(f"--{name}") if f"--{name}" in words and not given.get(name) else 0
        if place and (names is None or words[place + 1] in {*names, *OTHER_NAMES[name]}):
            del words[place : place + 2]
    return shlex.join(words)


def evaluation_of(file: str, given: dict[str, Any], further: Sequence[str]) -> str:
    """Return the command that says whether a model can be trusted, with further options about it."""
    return shlex.join(["calcheck", "evaluate", file, *given_options("evaluate", given, further), *further])


def given_options(
    command: str, given: dict[str, Any], further: Sequence[str] = (), also: Sequence[Option] = ()
) -> Iterator[str]:
    """Yield the given options about columns and dependent rows, and others, of a command, except the further ones."""
    configured = {setting.option.field for setting in given["settings"].used}
    without = () if command not in METRICS or METRICS[command].info.takes_inputs else INPUTS
    dependence = options_of(RowDependence) if "cluster" in given and command != "slices" else []
    for option in {each.field: each for each in (*options_of(ColumnOptions), *dependence, *also)}.values():
        value = given.get(option.field)
        if value in (None, (), False, option.default) or option.field in configured or option.field in without:
            continue
        if option.flag in further:
            continue
        for text in value if option.repeated else [value]:
            yield from (option.flag,) if text is True else (option.flag, option.text(text))


def with_calls(report: Report, source: FileSource, given: Mapping[str, Any]) -> Report:
    """Return a report that suggests calls, where ``...`` stands for the other arguments of that with given keywords."""
    if (conclusion := report.conclusion) is None:
        return report
    has_array = hasattr(given.get("inputs"), "shape")  # beside which no column can be named
    found = tuple(
        _call(name, further, ["on"] if name == "recalibrate" and conclusion.on and not further else (), given)
        for name, further in list(suggestions(report, source, "on"))[:MOST]
        if not (has_array and "--inputs" in further)
    )
    options = report.input.options
    causes = tuple(replace(each, command=_undo(each.command, options, given)) for each in conclusion.causes)
    return replace(report, conclusion=replace(conclusion, next=found, causes=causes))


def _undo(command: str, read: Sequence[str], given: Mapping[str, Any]) -> str:
    """Return a command that undoes a cause as a call, or as Python; empty if arrays are to have another role.

    >>> read = ["--target", "y", "--std", "std"]
    >>> _undo("calcheck evaluate a.csv --target y --var std", read, {}), _undo("python -c 'import numpy'", read, {})
    ("calcheck.evaluate(..., var='std')", 'import numpy')
    >>> _undo("calcheck evaluate a.csv --target y --var std", read, {"std": "std"})
    "calcheck.evaluate(..., std=None, var='std')"
    """
    if not command.startswith("calcheck "):
        return shlex.split(command)[-1] if command else ""
    words = shlex.split(command)
    stated, wanted = _values(read), _values(words)
    further = {
        flag: values
        for flag, values in wanted.items()
        if values not in (stated.get(flag), [str(given.get(_keyword(flag)))])
    }
    former = [name for name in SPREADS if given.get(name) is not None] if {*map(_keyword, further)} & {*SPREADS} else []
    if any(not isinstance(given[name], str) for name in former):
        return ""
    options = [word for flag, values in further.items() for each in values for word in (flag, each)]
    return _call(words[1], options, former, given)


def _values(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of options by flag."""
    found: dict[str, list[str]] = {}
    for flag, value in pairwise(words):
        if flag.startswith("--"):
            found.setdefault(flag, []).append(value)
    return found


def _keyword(flag: str) -> str:
    """Return the keyword of an option."""
    return flag.removeprefix("--").replace("-", "_")


def _call(name: str, further: Sequence[str], former: Sequence[str] = (), given: Iterable[str] = ()) -> str:
    """Return a suggestion as a call of a function, without former keywords, and those given that it does not take.

    >>> _call("evaluate", ["--inputs", "age,sex"]), _call("check", []), _call("lzms", [])
    ("calcheck.evaluate(..., inputs='age,sex')", 'calcheck.assert_calibrated(...)', "report.plot('lzms')")
    >>> _call("evaluate", ["--filter", "a>1", "--filter", "b!=0"]), _call("cce", ["--worst", "5"])
    ("calcheck.evaluate(..., filter=['a>1', 'b!=0'])", "calcheck.evaluate(..., metrics='cce', worst=5)")
    >>> _call("evaluate", ["--on", "new.csv", "--label", "50", "--pointwise", "rows.csv"])
    "calcheck.evaluate(..., label=50).rows('on')"
    >>> _call("recalibrate", [], given=["power", "seed"])
    'calcheck.recalibrate(...)  # without power'
    """
    if name in METRICS and not further:
        return f"report.plot({name!r})"
    metric = [f"metrics={name!r}"] if name in METRICS else []
    keywords = [
        f"{_keyword(flag)}={values if flag == '--filter' else values[0] if values[0].isdecimal() else repr(values[0])}"
        for flag, values in _values(further).items()
        if flag not in ("--on", "--pointwise", "--to", "-o")
    ]
    function = {"check": "assert_calibrated"}.get(name, "evaluate" if metric else name)
    called = f"calcheck.{function}({', '.join(['...', *metric, *(f'{each}=None' for each in former), *keywords])})"
    refused = [each for each in given if each in REFUSED.get(name, ())]
    called += f"  # without {', '.join(refused)}" if refused else ""
    return f"{called}.rows('on')" if "--label" in further else called
