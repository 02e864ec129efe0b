"""Commands and options of Typer, made from declared options, with completion and environment variables."""

from __future__ import annotations

import gc
import inspect
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from calcheck.errors import OptionError
from calcheck.io.object_store import limit_waiting
from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS
from calcheck.options import Option, choices_of, is_excluded, options_of
from calcheck.render import FORMATS, formats_of

if TYPE_CHECKING:
    from calcheck.metrics.base import Metric
    from calcheck.options import Group
    from calcheck.studies import Study

LEVELS = ("COMMANDLINE", "ENVIRONMENT", "DEFAULT_MAP")
"""Sources of option values, the one with the highest priority first."""

DOCUMENTS = frozenset({".xlsx", ".xls", ".ods", ".pdf", ".docx"})
"""Extensions of files that other programs open and that reports are often wanted in."""


def drop_excluded(context: Any, options: Sequence[Option]) -> None:
    """Drop the values of options that an option from a source with higher priority excludes."""
    higher: set[str] = set()
    for level in LEVELS:
        found = {each.field for each in options if source_of(context, each) == level and context.params[each.field]}
        dropped = {field for field in found if level != LEVELS[0] and is_excluded(field, higher, options)}
        context.params.update(dict.fromkeys(dropped))
        higher |= found - dropped


def select_format(context: Any, options: Sequence[Option]) -> None:
    """Set the format of the report to that of the output file's suffix, in place of a configured format."""
    declared = {each.field: each for each in options}
    output = context.params.get("output")
    if "format" not in declared or not output:
        return
    given = context.params["format"] if source_of(context, declared["format"]) == LEVELS[0] else None
    if not (suffixed := formats_of(output)):
        suffix = PurePath(output).suffix.lower()
        if given is None and suffix in DOCUMENTS:
            known = ", ".join(dict.fromkeys(each.suffixes[0] for each in FORMATS.values()))
            msg = f"--output {output}: no format has the extension {suffix}. Use one of {known}, or pass --format too"
            raise OptionError(msg)
        return
    if given is not None and given not in suffixed:
        raise OptionError(
            f"--format {given} and --output {output} contradict each other: its extension selects {suffixed[0]}. Omit"
            " --format, or use another extension"
        )
    available = choices_of(declared["format"].hint)
    if suffixed[0] not in available:
        raise OptionError(
            f"--output {output} selects the format {suffixed[0]}, which {context.command_path} does not have. Its"
            f" formats: {', '.join(available)}"
        )
    context.params["format"] = given or suffixed[0]


def source_of(context: Any, option: Option) -> str:
    """Return the source of an option's value: a member of ``LEVELS``, or ``"DEFAULT"``."""
    source = context.get_parameter_source(option.field)
    return source.name if source is not None else "DEFAULT"


VARIABLE = "_CALCHECK_COMPLETE"  # Environment variable by which a shell asks for completions


def is_completing() -> bool:
    """Return whether a shell asks for completions; the program is then not run."""
    return VARIABLE in os.environ


def completion_parameters() -> list[inspect.Parameter]:
    """Return the options that install and show the completion; Typer adds its own when a shell asks for completions."""
    if is_completing():
        return []
    return [
        flag("install_completion", "Install shell completion.", _complete),
        flag("show_completion", "Show its script.", _complete),
    ]


def complete_values(option: Option) -> Callable[[str], list[str]] | None:
    """Return a function that completes the value of an option; None if any value is possible."""
    names = list(METRICS) if option.field in ("metric", "metrics") else list(choices_of(option.hint))
    if not names:
        return None

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if option.listed else ("", "", incomplete)
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return complete


def flag(name: str, text: str, callback: Callable[..., Any]) -> inspect.Parameter:
    """Return a flag of the program that ends it."""
    flag = "--" + name.replace("_", "-")
    declared = typer.Option(flag, callback=callback, is_eager=True, help=text, allow_from_autoenv=False)
    annotation = Annotated[bool, declared]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)


def _complete(context: typer.Context, parameter: typer.CallbackParam, wanted: bool) -> None:  # noqa: FBT001 - Typer's callback
    if wanted:
        from typer import completion

        called = completion.show_callback if parameter.name == "show_completion" else completion.install_callback
        called(context, parameter, wanted)


PREFIX = "CALCHECK"  # Prefix of environment variables: `CALCHECK_CRPS_ESTIMATOR` sets `--estimator` of `calcheck crps`
MARKUP = re.compile(r"\[(?=[a-z#/@])")
"""Brackets that rich would take for markup: ``[gates]``."""


class Command(TyperCommand):
    """A command whose options are set on the command line, else by its variables, else by the settings file."""

    options: tuple[Option, ...] = ()

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context with the parsed options; the settings file is read when an option is not given."""
        if not extra.get("resilient_parsing"):  # a shell that asks for completions has no settings
            read = partial(parent.obj.from_file, str(info_name))
            extra["default_map"] = {each.field: partial(read, each.field) for each in self.options}
        return super().make_context(info_name, args, parent, **extra)

    def get_help_option(self, ctx: Any) -> Any:
        """Return ``--help``."""
        return with_default(super().get_help_option(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write all options in panels, or, for ``-h``, those that matter."""
        if ctx.meta.get(SHORT):
            formatter.write(short_help(self, ctx.command_path))
        else:
            super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options; options with a higher priority replace the configured ones that they exclude."""
        ctx.meta[SHORT] = "-h" in args and "--help" not in args
        words = {word.partition("=")[0] for word in args}
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return rest
        for each in self.options:
            if each.hint is not bool and each.short and words.issuperset(each.flags):
                raise OptionError(f"{' and '.join(each.flags)} are the same option: pass only one of them")
        drop_excluded(ctx, self.options)
        ctx.obj.record(ctx, self.options)
        select_format(ctx, self.options)
        return rest


SHORT = "calcheck.short_help"  # Whether the help is that of `-h`
FEWEST, MOST, WIDTH = 8, 12, 80  # Options of the short help, and its columns
COLUMNS = "Columns"  # The last panel of the help


def short_help(command: Command, path: str) -> str:
    """Return what a command does, the options that matter, and two examples, in at most 24 lines."""
    shown = [each for each in command.params if getattr(each, "metavar", None) or each.param_type_name == "option"]
    options = [each for each in shown if each.param_type_name == "option"]
    common = {each.flag for each in command.options if each.common}
    chosen = [each for each in options if common & set(each.opts)][:MOST]
    rest = [each for each in options if each not in chosen][: max(FEWEST - len(chosen), 0)]
    arguments = [each for each in shown if each not in options]
    lines = [(_left(each), str(getattr(each, "help", None) or "")) for each in (*arguments, *chosen, *rest)]
    width = max((len(left) for left, _ in lines), default=0) + 2
    summary = textwrap.wrap(str(command.help or "").split("\n")[0], WIDTH)
    examples = _examples(command)
    every = [f"All {len(options) + 1} options: {path} --help", ""] if options else [""]
    usage = " ".join([f"Usage: {path} [OPTIONS]", *(str(each.metavar) for each in arguments)])
    texts = [f"  {left:{width}}{_cut(text, WIDTH - width - 2)}" for left, text in lines]
    return "\n".join([usage, "", *summary, "", *texts, "", *examples, *every])


def _left(parameter: Any) -> str:
    """Return the flags of an option with its placeholder, or the placeholder of an argument."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    metavar = str(parameter.metavar or "")
    value = [metavar if len(metavar) <= len("COLUMNS") else "VALUE"] if metavar else []
    return " ".join([", ".join(reversed(parameter.opts)), *value])


def _cut(text: str, width: int) -> str:
    """Return the first sentence of a help text, cut to a width."""
    first = re.split(r"(?<=[^.]\.)(?<!e\.g\.) ", text.replace("\\[", "["))[0]
    return first if len(first) <= width else f"{first[: width - 1].rsplit(' ', 1)[0]} …"


FURTHER = {
    "embedding_clusters": "--columns age,sex",
    "inputs": "--inputs age,dose",
    "format": "--format json",
}  # Second example of a command by an option that it has, the first of these


def _examples(command: Command) -> list[str]:
    """Return the example of a command, and the same with the inputs or a format."""
    example = str(command.epilog or "").removeprefix("Example: ").replace("\\[", "[")
    if not example:
        return []
    names = {each.field for each in command.options}
    further = next((text for field, text in FURTHER.items() if field in names), "")
    plain = " ".join(takewhile(lambda word: not word.startswith("-"), example.split()))
    return [f"  {each}" for each in (example, f"{plain} {further}") if further or each == example]


def make_command(
    name: str, function: Callable[..., None], declared: Sequence[inspect.Parameter] | None = None, *, example: str = ""
) -> Command:
    """Return a command that calls a function with its options."""
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    declared = declared and sorted(declared, key=lambda each: _panel(each) == COLUMNS)
    called = function if declared is None else with_signature(partial(_run, function), declared)
    epilog = f"Example: {_without_markup(example)}" if example else None
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(part.split()) for part in paragraphs)  # Typer keeps line breaks
    app.command(name, cls=Command, epilog=epilog, help=_without_markup(text))(called)
    command = typer.main.get_command(app)
    if not isinstance(command, Command):  # pragma: no cover - for type checkers
        raise TypeError(type(command))
    annotations = (getattr(parameter.annotation, "__metadata__", ()) for parameter in (declared or ()))
    command.options = tuple(each for metadata in annotations for each in metadata if isinstance(each, Option))
    convert_options(command, command.options)
    return command


def _panel(parameter: inspect.Parameter) -> str | None:
    return next((getattr(each, "rich_help_panel", None) for each in parameter.annotation.__metadata__), None)


def with_signature(function: Callable[..., None], declared: Sequence[inspect.Parameter]) -> Callable[..., None]:
    """Return a function of a context and the declared parameters, with their signature for Typer."""

    def signed(context: typer.Context, **given: Any) -> None:
        function(context, **given)

    first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    every = [first, *sorted(declared, key=lambda parameter: parameter.kind)]
    signed.__doc__ = function.__doc__
    signed.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    signed.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return signed


def argument(
    name: str, metavar: str, text: str, hint: Any = str, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    """Return a positional parameter of a command; it is required unless it has a default."""
    declared = typer.Argument(metavar=metavar, help=_without_markup(text), show_default=False)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, annotation=Annotated[hint, declared], default=default)


def parameters(owner: type[Any], panel: str) -> list[inspect.Parameter]:
    """Return command parameters for the options of a dataclass."""
    found = []
    for option in (each for declared in options_of(owner) for each in (declared, declared.off) if each is not None):
        silent = option.hint is bool or option.default in (None, (), "")
        default = "" if silent else f" Default: {option.text(option.default)}."
        found.append(_declared(option, option.help + default, option.placeholder, panel, option))
    return found


def parameters_of(groups: Iterable[Group]) -> list[inspect.Parameter]:
    """Return command parameters for groups of options, in their order."""
    found: list[inspect.Parameter] = []
    for group in groups:
        own = [parameter for owner in group.owners for parameter in parameters(owner, group.panel)]
        declared: dict[str, dict[str, Option]] = {}
        for metric in map((METRICS | TWO_SAMPLE_METRICS).__getitem__, group.metrics):
            for option in options_of(metric):
                declared.setdefault(option.field, {})[metric.info.name] = option
        shared = [_shared_parameter(of, group.panel) for of in declared.values()]
        found += [parameter for parameter in (*own, *shared) if group.has(parameter.name)]
    return found


def parse_given(metric: type[Metric[Any]], given: dict[str, Any]) -> dict[str, Any]:
    """Return the given options of a metric, parsed."""
    texts = {option: given.get(option.field) for option in options_of(metric)}
    return {
        option.field: option.parse(text) if isinstance(text, str) else _fitted(option, text)
        for option, text in texts.items()
        if text not in (None, False, ())
    }


def build(owner: type[Any], given: Mapping[str, Any]) -> Any:
    """Return the dataclass with the given options, made once of the same values; the others keep their defaults."""
    values = {option.field: _given(option, given) for option in options_of(owner)}
    hashable: Any = owner
    return _made(hashable, **{name: value for name, value in values.items() if value not in (None, ())})


@lru_cache(maxsize=None, typed=True)
def _made(owner: type[Any], **values: Any) -> Any:
    return owner(**values)


def _given(option: Option, given: Mapping[str, Any]) -> Any:
    """Return the given value of an option; 0 if the flag is given that turns it off."""
    value = _fitted(option, given.get(option.field))
    if option.off is None or not given.get(option.off.field):
        return value
    if value is not None:
        raise OptionError(f"{option.flag} and {option.off.flag} contradict each other: pass only one of them")
    return 0


def _fitted(option: Option, value: Any) -> Any:
    """Return a value as an option takes it: a list as a tuple, or its first item, as the level of a metric."""
    if isinstance(value, (list, tuple)) and value and not option.listed and not option.repeated:
        return value[0]
    return tuple(value) if isinstance(value, list) else value


def command_of(study: Study, run: Callable[..., None]) -> Command:
    """Return a command with the arguments and options of a study, which calls a function with what was given."""
    arguments = [
        argument(each.name, each.metavar, each.text, *([each.hint | None, None] if each.optional else [each.hint]))
        for each in study.arguments
    ]

    def command(**given: Any) -> None:
        run(**given)

    command.__doc__ = study.help
    return make_command(study.name, command, [*arguments, *parameters_of(study.groups)], example=study.example)


def variable(command: str, option: Option) -> str:
    """Return the environment variable that sets an option of a command."""
    return f"{PREFIX}_{command}_{option.name}".replace("-", "_").upper()


def convert_options(command: Command | TyperGroup, options: Sequence[Option]) -> None:
    """Convert the values of options by their own rule, instead of by Typer's, which takes 0.07 s to import pydantic."""
    declared = {option.field: option for option in options}
    for parameter in command.params:
        option = declared.get(parameter.name)
        if option is None:
            _set(parameter, process_value=partial(_plain_value, parameter, parameter.process_value))
            continue
        name = variable(str(command.name or ""), option) if isinstance(command, Command) else None
        _set(parameter, process_value=partial(_converted, option, name), envvar_list_splitter="\n")
        if option.field != option.name:  # Typer's own name of the variable would end with an underscore
            parameter.envvar = name


def with_default(help_option: Any) -> Any:
    """Return the option ``--help`` with False as its default: Typer would convert None by pydantic."""
    help_option.default = False
    return help_option


def _run(function: Callable[..., None], context: typer.Context, **given: Any) -> None:
    """Call the function of a command; add the origin of configured options to its errors."""
    if not gc.isenabled():  # objects of imports are not looked at again
        gc.freeze()
        gc.enable()
    settings = context.obj
    settings.warn_of_unknown_variables()
    with settings.with_provenance():
        if (timeout := given.get("timeout")) is not None:
            limit_waiting(timeout)
        function(**given, settings=settings)


def _set(parameter: Any, **attributes: Any) -> None:
    for name, value in attributes.items():
        setattr(parameter, name, value)


def _plain_value(parameter: Any, convert: Callable[..., Any], context: Any, value: Any) -> Any:
    """Return the value of a text or a flag as it is; Typer reports a missing one."""
    if parameter.callback is not None or (parameter.required and not value):
        return convert(context, value)
    return value


def _converted(option: Option, name: str | None, context: Any, value: Any) -> Any:
    """Return the value of an option from its text; values of the settings file are converted already."""
    if value is None:
        return False if option.hint is bool else None
    source = source_of(context, option)
    if source == "DEFAULT_MAP" or isinstance(value, bool):
        return value
    called = (name or f"{PREFIX}_{option.name.upper()}") if source == "ENVIRONMENT" else option.flag
    if option.repeated:
        return tuple(value) if source == "COMMANDLINE" else tuple(text.strip() for text in value if text.strip())
    if not value:
        raise OptionError(f"{called} needs a value, got none")
    return option.parse(value, called)


def _shared_parameter(options: dict[str, Option], panel: str) -> inspect.Parameter:
    """Return the parameter of an option that one or several metrics have, possibly with different meanings."""
    first, *others = options.values()
    whose = f" ({', '.join(options)})" if others else ""
    default = "" if others or first.default in (None, False) else f" Default: {first.text(first.default)}."
    return _declared(first, f"{first.help}{default}{whose}", "VALUE" if others else first.placeholder, panel)


def _without_markup(text: str) -> str:
    """Return a text of which rich shows the brackets."""
    return MARKUP.sub(r"\\[", text)


def _declared(option: Option, text: str, placeholder: str, panel: str, *own: Option) -> inspect.Parameter:
    """Return a parameter for Typer; one without an ``own`` option has no variable."""
    flag = option.hint is bool
    declared = typer.Option(
        *option.flags,
        help=_without_markup(text),
        metavar=None if flag else placeholder,
        show_default=False,
        show_envvar=False,
        rich_help_panel=panel,
        allow_from_autoenv=bool(own),
        autocompletion=complete_values(option),
    )
    hint = bool if flag else list[str] | None if option.repeated else str | None
    kind, default = inspect.Parameter.KEYWORD_ONLY, False if flag else None
    return inspect.Parameter(option.field, kind, default=default, annotation=Annotated[(hint, declared, *own)])
