"""Write the reference guides from the program: `python -m tests.reference`, or `--check` that they are up to date.

`--function NAME` prints the function for Python of a study, to be put into `calcheck/api/functions.py`.
"""

import dataclasses
import inspect
import re
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import calcheck
from calcheck.api import arguments
from calcheck.api.arguments import OBJECTS
from calcheck.cli.app import OLD_NAMES, PANELS, SUMMARIES, make_program
from calcheck.core.metric_info import REMEDIES
from calcheck.distributions import CONVENTIONS
from calcheck.errors import Code
from calcheck.execution.run import RowDependence, Run, RunOptions, run_settings
from calcheck.io import naming_schemes
from calcheck.io.column_names import ERROR, MEANS, STDS, TARGETS
from calcheck.io.files import SUFFIXES
from calcheck.io.filters import MODELS
from calcheck.io.naming_schemes import LONG
from calcheck.io.python_arguments import ColumnArguments
from calcheck.io.role_inference import EMBEDDING, KEYS
from calcheck.metrics import ALIASES, METRICS, TWO_SAMPLE_METRICS
from calcheck.models.report_difference import Diff
from calcheck.options import flag_of, options_of
from calcheck.recalibration.corrections import AnyStep
from calcheck.recalibration.methods import RecalibrationMap
from calcheck.reports import Report, Result
from calcheck.storage.prediction_files import WRITERS
from calcheck.storage.schema import diff_schema, map_schema, report_schema
from calcheck.streaming.metric_accumulators import accumulator_of
from calcheck.studies import STUDIES
from calcheck.studies.monitor.options import MonitorOptions
from calcheck.studies.options import RefitOptions, ToleranceOptions, WeightOptions
from calcheck.studies.recalibrate.options import RecalibrationOptions
from calcheck.studies.slices.options import SearchOptions

PACKAGE = Path(__file__).parents[1] / "calcheck"
GUIDES, KEYWORDS = PACKAGE / "guides", PACKAGE / "api" / "keywords.py"
KEYWORDS_OF = {
    "RunKeywords": ("a run", RunOptions),
    "DependenceKeywords": ("rows that depend on each other", RowDependence),
    "WeightKeywords": ("sampling weights", WeightOptions),
    "RecalibrationKeywords": ("a recalibration", RecalibrationOptions),
    "SearchKeywords": ("a search of regions", SearchOptions, RefitOptions, ToleranceOptions),
    "MonitorKeywords": ("a monitored model", MonitorOptions, ToleranceOptions),
}
"""Options that the functions for Python take as keywords."""
POSITIONAL = {"RecalibrationKeywords": ("method",), "MonitorKeywords": ("time",)}
"""Those of them that have a position in the function."""
OTHERWISE = {
    "compare": {"names", "by_folder", "positions", "discretise"},  # Names and data sets are keys of models
    "monitor": {"fail_on", "warn_on", "exit_zero"},  # Rules are conditions in Python
    "recalibrate": {"corrected", "export", "map"},  # Methods of the result
    "reject": {"refit", "step", "max_percent", "cluster", "block", "time"},  # Of prune, or refused without it
    "sweep": {"names", "two_samples", "grid"},
}
"""Options of studies that their functions for Python do not have, or with another default."""
NO_OPTIONS = {*OBJECTS, "state", "save_state"}
"""Parameters of these functions that are no options: objects and paths."""
OPTION_HEAD = ("option", "value", "meaning", "default")
GENERATED = "It is generated from the program."
WIDTH = 120  # Maximum length of a line of text
SHARED = 3  # commands that take the same option, from which on it is described once for all of them
ALTERNATIVES = {
    "two-sided": "two-sided; values far above or far below the reference are evidence against the model",
    "greater": "one-sided; large values are evidence against the model",
    "less": "one-sided; small values are evidence against the model",
    "none": "no test; the value depends on the predictions alone",
}
ORIENTATIONS = {
    "smaller": "smaller",
    "larger": "larger",
    "reference": "nearer to the value of a perfect model",
    "zero": "nearer to 0",
    "none": "neither",
}
INTERVALS = {
    "bca": "bias-corrected and accelerated (BCa) bootstrap",
    "percentile": "percentile bootstrap",
    "one-sided": "two one-sided limits in closed form",
    "own": "exact (Clopper-Pearson)",
    "lower": "a one-sided lower limit, by the normal distribution",
    "none": "none",
}
PANEL_OF = {name: panel for panel, modules in PANELS.items() for name in modules}
FORMATS = {
    "parquet": "Apache Parquet",
    "csv": "comma-separated values",
    "tsv": "tab-separated values",
    "arrow": "Arrow IPC file or stream, Feather",
    "jsonl": "JSON, one object per line, or an array of objects (also `.json`)",
    "npy": "one NumPy array",
    "npz": "NumPy arrays by name",
    "safetensors": "tensors by name",
    "netcdf": "NetCDF 4 as ArviZ writes it; needs the extra `netcdf`",
    "excel": "the first sheet of a workbook; needs the extra `excel`",
}
QUANTILE_EXAMPLES = {
    "skpro": ("('y', 0.05)", "('y', 0.9, 'lower')"),
    "Nixtla": ("NHITS-lo-90", "NHITS-median", "NHITS-hi-90"),
    "Darts": ("q_0.05", "q0.05", "sales_quantile_0.05"),
    "AutoGluon": ("0.05", "0.5"),
}
SAMPLE_EXAMPLES = ("sample_0", "member_0", "draw_0", "y_sample_0", "y_s0")


def pages():
    """Return the text of each generated guide by its file name."""
    return {
        "reference-commands.md": _commands(),
        "reference-metrics.md": _metrics(),
        "reference-json.md": _json(),
        "reference-files.md": _files(),
    }


def written():
    """Return the text of each generated file by its path: guides, summaries of commands, and keywords for Python."""
    return {GUIDES / name: text for name, text in pages().items()} | {SUMMARIES: _summaries(), KEYWORDS: _keywords()}


def outdated():
    """Return the paths of the generated files that are not what the program would write now."""
    return [path for path, text in written().items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main(given):
    """Write the files, or with `--check` only name those that are not up to date."""
    if given[:1] == ["--function"]:
        sys.stdout.write(function_text(STUDIES[given[1]]))
        return 0
    paths, wrong = outdated(), mismatches()
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    if "--check" in given:
        sys.stdout.writelines(f"{path.name} is not up to date: run python -m tests.reference\n" for path in paths)
        return bool(paths or wrong)
    texts = written()
    GUIDES.mkdir(exist_ok=True)
    for path in paths:
        path.write_text(texts[path], encoding="utf-8")
        sys.stdout.write(f"wrote {path.name}\n")
    return 0


# Keywords for Python


def _keywords():
    head = [
        '"""Keywords of the functions for Python, with their types; generated by ``python -m tests.reference``."""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Sequence",
        "from typing import Literal, TypedDict",
    ]
    for name, (text, *owners) in KEYWORDS_OF.items():
        head += ["", "", f"class {name}(TypedDict, total=False):", f'    """Keywords for {text}."""', ""]
        declared = {keyword: option for owner in owners for keyword, option in _by_keyword(owner).items()}
        listed = {keyword: option for keyword, option in declared.items() if keyword not in POSITIONAL.get(name, ())}
        head += [f"    {keyword}: {_python_type(option.hint)}" for keyword, option in listed.items()]
    return "\n".join([*head, ""])


def mismatches():
    """Return how the function for Python of each study differs from the declaration of the study, in lines of text."""
    studies = [study for name, study in STUDIES.items() if name in calcheck.__all__]
    return [line for study in studies for line in signature_mismatches(study, getattr(calcheck, study.name))]


def signature_mismatches(study, function):
    """Yield how a function differs from the declaration of a study: its keywords, their types and their defaults."""
    declared, found = _declared_keywords(study), _keywords_of(function)
    for name in (declared.keys() | found.keys()) - OTHERWISE.get(study.name, set()) - NO_OPTIONS:
        if name not in found:
            yield f"{study.name}: calcheck.{study.name} has no keyword {name}: {' = '.join(declared[name])}"
        elif name in declared and found[name] not in (declared[name], declared[name][:1]):
            yield f"{study.name}: {name} is {' = '.join(found[name])} in Python, declared {' = '.join(declared[name])}"
        elif name not in declared and name not in _by_keyword(RunOptions):
            yield f"{study.name}: the study does not declare {name} of calcheck.{study.name}"


def _declared_keywords(study):
    """Return the types and defaults, as code, of the options of a study, but for those of files, columns and output."""
    owners = [
        (group, owner) for group in study.groups if group.panel not in ("Columns", "Output") for owner in group.owners
    ]
    return {
        keyword: (_python_type(option.hint), repr(option.default))
        for group, owner in owners
        for keyword, option in _by_keyword(owner).items()
        if group.has(option.field)
    }


def _keywords_of(function):
    """Return the types, as code, of the parameters and keywords of a function, with the defaults of parameters."""
    own, keywords = {}, {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            declared = getattr(arguments, re.search(r"(\w+)\]", parameter.annotation)[1]).__annotations__
            keywords = {name: (_code(hint.__forward_arg__),) for name, hint in declared.items()}
        else:
            own[name] = _code(parameter.annotation), repr(parameter.default)
    return {name: each for name, each in keywords.items() if name not in ColumnArguments.__annotations__} | own


def _code(annotation):
    """Return an annotation as it is written here."""
    return str(annotation).replace("'", '"')


OBJECT_TYPES = {"metrics": "arguments.Metrics | None", "metric": "str | arguments.AnyMetric"}
DESCRIBED = {"metrics": "str, Metric, or sequence of these, optional", "metric": "str or Metric"}


def function_text(study):
    """Return the function for Python of a study as code, from its declaration."""
    declared, folder = _declared_keywords(study), f"calcheck.studies.{STUDIES.modules[study.name]}."
    owners = [owner for group in study.groups for owner in group.owners if owner.__module__.startswith(folder)]
    own = {name: option for owner in owners for name, option in _by_keyword(owner).items() if name in declared}
    kind = "Weighted" if "weights" in declared else "Dependent" if "cluster" in declared else ""
    parameters, described = [], []
    for each in study.arguments:
        name = {"file": "data", "files": "models"}.get(each.name, each.name)
        parameters.append(f"{name}: arguments.Data{' = None' if name == 'data' else ''}")
        text = "Predictions with targets, as for :func:`evaluate`." if name == "data" else each.text
        described += [f"{name} : path, DataFrame, table, Source or Predictions", f"    {text}"]
    parameters += ["*"] if own else []
    for name, option in own.items():
        type_, default = declared[name]
        type_ = OBJECT_TYPES.get(name, "arguments.Data" if name in OBJECTS else type_)
        parameters.append(f"{name}: {type_} = {default}")
        described += [f"{name} : {DESCRIBED.get(name, type_)}", *textwrap.wrap(option.help, WIDTH - 4, **INDENT)]
    head = [*(f"    {each}," for each in parameters), f"    **options: Unpack[arguments.{kind}Options],"]
    text = [study.help, "", "Parameters", "----------", *described, "**options", f"    {OF_RUN}"]
    text += ["", "Returns", "-------", "InteractiveReport", "    The report of the study."]
    body = ['"""' + text[0], *text[1:], '"""', f'return report_of("{study.name}", locals(), arguments.{kind}Options)']
    start = ["", "", "@arguments.public", f"def {study.name}(", *head, ") -> InteractiveReport:"]
    return "\n".join([*start, *(f"    {line}".rstrip() for line in body), ""])


INDENT = {"initial_indent": "    ", "subsequent_indent": "    "}
OF_RUN = "Keywords of the run and of reading, as for :func:`evaluate`."


def _by_keyword(owner):
    """Return the options of a class by their keywords in Python."""
    return {getattr(owner, "keywords", {}).get(option.field, option.field): option for option in options_of(owner)}


def _python_type(hint):
    """Return the type of a keyword as code: a list is any sequence, or a single text."""
    if get_origin(hint) is Literal:
        values = ", ".join(f'"{value}"' for value in get_args(hint))
        return f"Literal[{values}]"
    if get_origin(hint) is tuple:
        return "str | Sequence[str]" if (item := get_args(hint)[0]) is str else f"Sequence[{item.__name__}]"
    if get_args(hint):
        return " | ".join(map(_python_type, get_args(hint)))
    return "None" if hint is type(None) else hint.__name__


# Commands


def commands():
    """Return the commands of the program by name, in the order of its help."""
    return {name: command.loaded for name, command in make_program().commands.items() if name not in OLD_NAMES}


def _summaries():
    every = {name: command.loaded for name, command in make_program().commands.items()}
    return "".join(f"{name}: {_summary(command)}\n" for name, command in every.items())


def _summary(command):
    return " ".join(command.help.partition("\n\n")[0].split())


def _commands():
    listed = commands()
    shared = _shared_options(listed.values())
    lines = [
        "# Commands and options",
        "",
        f"Every command of calcheck with its usage, its arguments and its options. {GENERATED}",
        "",
        "Options that several commands share are described once, under [Shared options](#shared-options).",
        "Settings files and environment variables set them too: see [Settings](settings.md).",
        "",
        *_table(
            ("command", "summary"),
            [
                _row(f"[`{name}`](#{_anchor(f'calcheck {name}')})", _cell(_summary(command)))
                for name, command in listed.items()
            ],
        ),
        "",
        "## Options before the command",
        "",
        *_option_table(make_program().params),
    ]
    panel = None
    for name, command in listed.items():
        if PANEL_OF[name] != panel:
            panel = PANEL_OF[name]
            lines += ["", f"## {panel}"]
        lines += ["", f"### calcheck {name}", "", *_command(name, command, shared)]
    lines += ["", "## Shared options", "", f"At least {SHARED} commands take each of these options."]
    for panel, parameters in _by_panel(shared.values()).items():
        lines += ["", f"### Shared options: {panel}", "", *_option_table(parameters)]
    return "\n".join(lines) + "\n"


def _command(name, command, shared):
    """Return the lines about one command: summary, usage, arguments and options by panel."""
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    usage = " ".join(["calcheck", name, "[OPTIONS]", *(_argument(argument) for argument in arguments)])
    help_lines = [line for text in _prose(command.help).split("\n") for line in textwrap.wrap(text, WIDTH) or [""]]
    lines = [*help_lines, "", "```text", usage, "```"]
    if command.epilog:
        lines += ["", _code_example(command.epilog)]
    if arguments:
        rows = [_row(f"`{_cell(_argument(argument))}`", _cell(argument.help)) for argument in arguments]
        lines += ["", *_table(("argument", "meaning"), rows)]
    links = []
    for panel, parameters in _by_panel(_options(command)).items():
        own = [parameter for parameter in parameters if _key(parameter) not in shared]
        others = [parameter for parameter in parameters if _key(parameter) in shared]
        if own:
            lines += ["", f"**{panel}**", "", *_option_table(own)]
        if others:
            flags = ", ".join(f"`{_flag(parameter)}`" for parameter in others)
            links.append(f"- [{panel}](#{_anchor(f'Shared options: {panel}')}): {flags}")
    return [*lines, "", "Shared options:", "", *links] if links else lines


def _options(command):
    return [parameter for parameter in command.params if parameter.param_type_name == "option" and not parameter.hidden]


def _argument(argument):
    name = argument.metavar
    return f"{name}..." if argument.nargs == -1 and " " not in name else name


def _code_example(epilog):
    label, _, example = epilog.partition(": ")
    return f"{label}: `{example}`"


def _key(parameter):
    return (tuple(parameter.opts), parameter.metavar, parameter.help, parameter.rich_help_panel)


def _shared_options(listed):
    """Return the options that several commands take with the same meaning, by what makes them the same."""
    found = {}
    counts = Counter()
    for command in listed:
        for parameter in _options(command):
            found.setdefault(_key(parameter), parameter)
            counts[_key(parameter)] += 1
    return {key: parameter for key, parameter in found.items() if counts[key] >= SHARED}


def _by_panel(parameters):
    panels = {}
    for parameter in parameters:
        panels.setdefault(parameter.rich_help_panel or "Options", []).append(parameter)
    return panels


def _option_table(parameters):
    lines = _table(OPTION_HEAD, [])
    for parameter in parameters:
        flags = ", ".join(f"`{flag}`" for flag in parameter.opts)
        value = "" if parameter.is_flag else f"`{_cell(parameter.metavar or 'TEXT')}`"
        meaning, default = _without_default((parameter.help or "").replace(r"\[", "["))
        lines.append(_row(flags, value, _cell(meaning), _cell(default)))
    return lines


def _without_default(text):
    """Split the help of an option into its meaning and its default, which it ends with."""
    match = re.fullmatch(r"(?P<meaning>.*?)\s*Default: (?P<default>.*?)\.?(?P<metrics> \([\w, -]+\))?", text, re.DOTALL)
    if match is None:
        return text, ""
    return match["meaning"] + (match["metrics"] or ""), match["default"]


def _flag(parameter):
    return max(parameter.opts, key=len)


# Metrics


def _metrics():
    every = METRICS | TWO_SAMPLE_METRICS
    overview = [
        _row(f"[`{name}`](#{_anchor(name)})", _cell(metric.summary()), metric.info.unit, ", ".join(metric.info.needs))
        for name, metric in every.items()
    ]
    lines = [
        "# Metrics",
        "",
        f"Every metric of calcheck: its formula, its range, its source, and how it is tested. {GENERATED}",
        "",
        *_table(("metric", "summary", "unit", "needs"), overview),
    ]
    for name, metric in every.items():
        lines += ["", f"## {name}", "", *_metric(metric)]
    return "\n".join(lines) + "\n"


def _metric(metric):
    """Return the lines about one metric: what its docstring says, its attributes, its options."""
    body, sections = _docstring(metric)
    interval = INTERVALS[metric.info.interval] + (f": {metric.info.no_interval}" if metric.info.no_interval else "")
    interval += f", given the {metric.info.conditional_on}" if metric.info.conditional_on else ""
    facts = {
        "Unit": f"`{metric.info.unit}`",
        "Needs": "; ".join(REMEDIES[need] for need in metric.info.needs),
        "Interpretation": metric.info.interpretation,
        **({"Exact reference": "for any shape of distribution"} if metric.info.distribution_free else {}),
        "Better": ORIENTATIONS[metric.info.orientation],
        "Alternative": ALTERNATIVES[metric.info.alternative],
        "Interval": interval,
        "In batches": _streaming(metric),
        "Source": metric.info.source,
        **_other_names(metric),
    }
    lines = [_prose(metric.summary()), *("" if not body else ["", *body]), ""]
    lines += [f"- {title}: {_prose(text)}" for title, text in facts.items()]
    for section in ("Value", "Notes", "References"):
        if section in sections:
            lines += ["", f"**{section}**", "", *_blocks(sections[section])]
    options = options_of(metric)
    if options:
        lines += ["", *_table(OPTION_HEAD, [])]
    for option in options:
        meaning, default = _without_default(option.help)
        default = default if option.default is None else _plain(option.default)
        value = "" if option.hint is bool else f"`{_cell(option.placeholder)}`"
        lines.append(_row(f"`{option.flag}`", value, _cell(meaning), _cell(default)))
    return lines


def _streaming(metric):
    """Return whether a metric can be computed from batches, and with which options it cannot."""
    if metric.info.name in TWO_SAMPLE_METRICS:
        return "no"
    return "yes (`--save-state`, `--dask`)" if accumulator_of(metric()) is not None else "no; it needs all rows at once"


def _plain(default):
    return f"{default:g}" if isinstance(default, float) else str(default)


def _other_names(metric):
    """Return the aliases of a metric, with their meanings and differences."""
    texts = [
        f"`{name}` ({alias.meaning}{f', {alias.difference}' if alias.difference else ''})"
        for name, alias in ALIASES.items()
        if alias.metric == metric.info.name
    ]
    return {"Also called": "; ".join(texts)} if texts else {}


def _docstring(owner):
    """Return the Markdown blocks between summary and sections of a docstring, and the text of each section."""
    lines = inspect.cleandoc(owner.__doc__).splitlines()
    heads = [number for number in range(len(lines) - 1) if lines[number] and re.fullmatch("-{3,}", lines[number + 1])]
    starts = [*heads, len(lines)]
    sections = {
        lines[start]: "\n".join(lines[start + 2 : end]).strip("\n")
        for start, end in zip(heads, starts[1:], strict=True)
    }
    return _blocks("\n".join(lines[1 : starts[0]]).strip("\n")), sections


def _blocks(text):
    """Return paragraphs in Markdown, lines each, with formulas as blocks of their own."""
    lines = []
    for block in re.split(r"\n\s*\n", text):
        if not block.strip():
            continue
        lines += [""] if lines else []
        if block.startswith(".. math::"):
            formula = " ".join(part.strip() for part in block.removeprefix(".. math::").splitlines())
            lines += ["```math", formula.strip(), "```"]
        else:
            lines += [_prose(line) for line in block.splitlines()]
    return lines


# JSON


def json_fields():
    """Return path, type and description of each field of reports, of changes between them and of stored maps."""
    report, changes = report_schema(), diff_schema()
    report["properties"]["results"]["items"] = report["properties"]["results"]["items"]["oneOf"][0]
    result = report["properties"]["results"]["items"]["properties"]
    result["metric"], result["options"], result["details"] = {"type": "string"}, {"type": "object"}, {"type": "object"}
    result["warnings"]["items"]["properties"]["code"] = {"type": "string"}
    return list(_fields(report, Report, "")), list(_fields(changes, Diff, "")), list(_map_fields())


def _map_fields():
    """Yield path, type and description of each field of maps; those of steps with the kinds that have them."""
    schema = map_schema()
    kinds = schema["properties"]["steps"]["items"]["anyOf"]
    schema["properties"]["steps"] = {"type": "array", "items": {"type": "object"}}
    yield from _fields(schema, RecalibrationMap, "")
    found = {}
    for owner, kind in zip(get_args(AnyStep), kinds, strict=True):
        for path, type_, text in _fields(kind, owner, "steps[]."):
            found.setdefault((path, type_, text), []).append(owner.kind)
    for (path, type_, text), methods in found.items():
        yield path, type_, f"{text} ({', '.join(methods)})" if path != "steps[].kind" else text


def _json():
    report, changes, maps = json_fields()
    lines = [
        "# JSON",
        "",
        f"Every field of the reports, differences and recalibration maps that calcheck writes as JSON. {GENERATED}",
        "",
        "`calcheck schema` prints the JSON Schema of reports, `calcheck schema diff` that of `calcheck diff`.",
        "`[]` after a name marks a list: the fields are those of each item.",
        "An absent number is `null`, and `warnings` says why.",
        "",
        "## Report",
        "",
        *_field_table(report),
        "",
        "## Settings of a report",
        "",
        "`settings` holds the values of options as they were used; studies add options of their own.",
        "",
        *_table(("field", "meaning"), _settings()),
        "",
        "Those that `calcheck recalibrate` adds:",
        "",
        *_table(("field", "meaning"), [_row(f"`settings.{name}`", text) for name, text in OF_CORRECTIONS.items()]),
        "",
        "## Options of a result",
        "",
        "`results[].options` holds every option of the metric; a metric that is not listed has none.",
        "",
        *_table(("metric", "field", "type", "meaning"), _metric_options()),
        "",
        "## Codes of warnings",
        "",
        "`results[].warnings[].code` is one of these. Texts may change between versions; codes do not.",
        "",
        ", ".join(f"`{code}`" for code in get_args(Code)),
        "",
        "## Details of a result",
        "",
        "`results[].details` holds settings and diagnostics; the data, the options and the command determine which.",
        "",
        *_table(("field", "type", "meaning", "metrics"), _details()),
        "",
        "## Fields that are always null",
        "",
        "Some fields of results are null for every value of a metric.",
        "",
        *_table(("metric", "fields"), _always_null()),
        "",
        "## Differences between two reports",
        "",
        *_field_table(changes),
        "",
        "## Recalibration map",
        "",
        "`calcheck recalibrate --export` writes it; `calcheck schema map` prints its JSON Schema.",
        "",
        *_field_table(maps),
    ]
    return "\n".join(lines) + "\n"


def _fields(schema, owner, prefix):
    """Yield path, type and description of each field of an object of the schema, and of the objects within."""
    described = _described(owner)
    hints = get_type_hints(owner)
    for name, part in schema["properties"].items():
        path = prefix + name
        text = described.get(name) or part.get("description") or _described(Result).get(name, "")
        yield path, _type(part), re.sub(r"\bNone\b", "null", text)
        part = next((kind for kind in part.get("anyOf", ()) if "properties" in kind), part)
        inner = part.get("items", part)
        if "properties" in inner:
            below = path + ("[]." if part.get("type") == "array" else ".")
            yield from _fields(inner, _dataclass_in(hints[name]), below)


def _dataclass_in(hint):
    """Return the dataclass that a type is, or is a tuple of."""
    return next(kind for kind in (hint, *get_args(hint)) if dataclasses.is_dataclass(kind))


FIELD = re.compile(r'    (\w+): (?:Literal\["([\w-]+)"\]|[^#]*)[^#]*(?:  # (.*))?')
TOGETHER = re.compile(r"(\w+(?:, \w+)+): (.*)")


def _commented(owner):
    """Return the descriptions of a dataclass's fields from the comments beside or before their lines."""
    found, before = {}, []
    for line in inspect.getsource(owner).splitlines():
        if field := FIELD.fullmatch(line):
            name, only, beside = field.groups()
            text = beside or " ".join(before) or (f'``"{only}"``' if only else "")
            shared = TOGETHER.fullmatch(text)
            names, text = (shared[1].split(", "), shared[2]) if shared else ([name], text)
            first = text[:1] if text.startswith("p-value") else text[:1].upper()
            found = {each: f"{first}{text[1:]}{'' if text[-1] == '…' else '.'}" for each in names if text} | found
        before = [*before, line[6:]] if line.startswith("    # ") else []
    return found


def _described(owner):
    """Return the descriptions of a dataclass's fields, from the comments of the class and of its base classes."""
    found = {}
    for base in owner.__mro__:
        if dataclasses.is_dataclass(base):
            found = _commented(base) | found
    return found


def _type(part):
    """Return a type of the schema in words."""
    if "const" in part:
        return f"`{part['const']}`"
    if "enum" in part:
        return " or ".join(f'`"{value}"`' for value in part["enum"])
    if "anyOf" in part:
        return " or ".join(_type(kind) for kind in part["anyOf"])
    if part.get("type") == "array":
        inner = _type(part["items"])
        return f"list of {inner}{'' if inner.startswith('`') else 's'}"
    return part.get("type", "any")


def _field_table(rows):
    return _table(("field", "type", "meaning"), [_row(f"`{path}`", kind, _cell(text)) for path, kind, text in rows])


OF_CORRECTIONS = {
    "asked": "`--method`, as it was stated.",
    "columns": "Columns that corrections may depend on.",
    "method": "The method that was stated or chosen.",
    "steps": "The correction in words, one text a step.",
    "folds": "`--folds`: Number of folds.",
    "score": "`--score`: Score that is compared out of fold.",
    "searched": "Columns whose groups and regions were searched for corrected rows that are wrong; absent if none.",
    "left": "Where corrected rows are wrong: `group`, `filter`, `rows`, `direction` and `p_value`; null if nowhere.",
    "change": "Change of the score by the correction, out of fold: `helps` (yes, no or not-shown), and in percent of"
    " that of the predictions `percent`, `percent_low` and `percent_high`; absent if they are left as they are.",
    "effective_rows": "Effective number of tested rows at the inputs of `--on`, if that is given.",
}  # What reports of corrections hold beside the settings of a run


def _settings():
    """Return a row for each setting of a run, described by the option that sets it."""
    options = {flag: option for option in _options(commands()["evaluate"]) for flag in option.opts}
    for name in run_settings(Run()):
        option = options.get(flag_of(name))
        text = "" if option is None else f"`{flag_of(name)}`: {_cell(_without_default(option.help)[0])}"
        yield _row(f"`settings.{name}`", text or "Versions of calcheck's numerical libraries.")


def _metric_options():
    for schema in report_schema()["properties"]["results"]["items"]["oneOf"]:
        properties = schema["properties"]
        for name, part in properties["options"]["properties"].items():
            meaning = _cell(part.get("description", ""))
            yield _row(f"`{properties['metric']['const']}`", f"`{name}`", _type(part), meaning)


def detail_fields():
    """Return the metrics of each field of details, by its path, type and description."""
    found = {}
    for schema in report_schema()["properties"]["results"]["items"]["oneOf"]:
        for field in _described_fields(schema["properties"]["details"], "details."):
            found.setdefault(field, []).append(schema["properties"]["metric"]["const"])
    return found


def _described_fields(schema, prefix):
    for name, part in schema["properties"].items():
        yield prefix + name, _type(part), part["description"]
        inner = part.get("items", part)
        if "properties" in inner:
            yield from _described_fields(inner, prefix + name + ("[]." if part.get("type") == "array" else "."))


def _details():
    every = [*METRICS, *TWO_SAMPLE_METRICS]
    for (path, kind, text), metrics in sorted(detail_fields().items()):
        names = "all" if metrics == every else ", ".join(f"`{name}`" for name in metrics)
        yield _row(f"`{path}`", kind, _cell(text), names)


def _always_null():
    for name, metric in (METRICS | TWO_SAMPLE_METRICS).items():
        absent = [field.name for field in dataclasses.fields(Result) if field.name not in metric.info.result_fields()]
        if absent:
            yield _row(f"`{name}`", ", ".join(f"`{field}`" for field in absent))


# Files


def _files():
    formats = [
        _row(f"`{name}`", ", ".join(f"`{end}`" for end, kind in SUFFIXES.items() if kind == name), _cell(text))
        for name, text in FORMATS.items()
    ]
    quantiles = [
        _row(tool, ", ".join(f"`{name}`" for name in QUANTILE_EXAMPLES[tool]), _names(KEYS.get(tool, ())))
        for tool in naming_schemes.QUANTILE_NAMES
    ]
    lines = [
        "# Files, columns and families",
        "",
        f"The file formats, column names and families of distributions that calcheck knows. {GENERATED}",
        "",
        "## Formats",
        "",
        "The format follows from the end of the name, else from the first bytes; `--input-format` sets it.",
        "Files compressed with gzip, bzip2, xz or zstd are read too (`preds.csv.gz`).",
        "",
        *_table(("`--input-format`", "endings", "format"), formats),
        "",
        f"`calcheck inspect -o` writes {_names(WRITERS)}.",
        "",
        "## Names of columns",
        "",
        "These names are recognized without an option. `calcheck inspect FILE` shows what was recognized.",
        "",
        *_table(("role", "names", "option"), _columns()),
        "",
        "## Names of quantile columns",
        "",
        *_table(("tool", "examples", "columns that tell rows apart"), quantiles),
        "",
        "## Files with a row for each quantile or draw",
        "",
        *_table(("layout", "columns", "values", "targets"), _layouts()),
        "",
        "A file of GluonTS forecasts has a column `samples` of nested lists, or a column `quantiles` of records.",
        "",
        "## Families of distributions",
        "",
        "The option `--dist` names a family. The columns of its parameters are found by the names in the table;",
        "`--param NAME=COLUMN` names another column. The name of a model or target may precede each name, as in",
        "`NHITS-loc`.",
        "",
        *_table(("`--dist`", "parameters", "meaning"), _families()),
    ]
    return "\n".join(lines) + "\n"


def _columns():
    """Return a row for each role that a column plays by its name."""
    pattern = EMBEDDING.replace(r"\d+", "0")
    yield _row("targets", _names(TARGETS), "`--target`")
    yield _row("errors y - mean, in place of targets and means", _names([ERROR]), "`--error`")
    yield _row("means", _names(MEANS), "`--mean`")
    yield _row("standard deviations", _names(STDS), "`--std`")
    yield _row("samples", f"{_names([*SAMPLE_EXAMPLES])}, …; `samples` with lists", "`--samples`")
    yield _row("quantiles", "see [Names of quantile columns](#names-of-quantile-columns)", "`--quantiles`")
    yield _row("embedding", f"`embedding` with lists, or {_names([pattern])}, …", "`--embedding`")
    yield _row("row keys", "`id`", "`--id`")
    yield _row("models", _names(MODELS), "`--model`")


def _layouts():
    for layout in LONG:
        name = f"{layout.name}, {layout.kind}s" if not layout.typed else layout.name
        columns = [*([layout.kind] if layout.typed else []), *layout.index]
        yield _row(
            name, _names(columns), f"`{layout.value}`" if layout.value else "the variable", _names([layout.observed])
        )


GROUPS = {False: " (a column for each component)", True: " (a column for each number, or one of lists)"}


def _families():
    for spelling, convention in CONVENTIONS.items():
        parameters = "; ".join(
            f"`{name}`"
            + (f" (or {_names(known[1:])})" if len(known) > 1 else "")
            + (", optional" if name in convention.optional else "")
            for name, known in convention.parameters.items()
        )
        parameters += GROUPS[convention.joint] if convention.grouped else ""
        yield _row(f"`{spelling}`", parameters, _cell(convention.meaning))


def _names(names):
    return ", ".join(f"`{_cell(name)}`" for name in names if name)


# Markdown


def _table(head, rows):
    return [_row(*head), _row(*["---"] * len(head)), *rows]


def _row(*cells):
    return f"| {' | '.join(cells)} |"


def _cell(text):
    """Return text for a cell of a table."""
    return _prose(" ".join(str(text).split())).replace("|", r"\|")


def _prose(text):
    """Return text of a docstring or a help text as Markdown."""
    text = re.sub(r":math:`([^`]*)`", r"$`\1`$", text)
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text).replace("``", "`")
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"(?<!\\)(\*|<(?=[\w/!?]))", r"\\\1", part) for part in parts
    )


def _anchor(title):
    """Return the anchor that code hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
