"""Conversion between option dataclasses and the parameters of Typer commands."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from calcheck.errors import OptionError
from calcheck.options import Option, options_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from calcheck.metrics.base import Metric


def parameters(owner: type[Any], panel: str) -> list[inspect.Parameter]:
    """Return command parameters for the options of a dataclass.

    Parameters
    ----------
    owner : type
        The dataclass.
    panel : str
        Help panel of the options.
    """
    return [_parameter(option, panel) for option in options_of(owner)]


def metric_parameters(metrics: Iterable[type[Metric[Any]]], panel: str) -> list[inspect.Parameter]:
    """Return command parameters for the options of metrics, as text that :func:`parse_given` parses.

    They do not count as options of the command: configured values are looked up under the metric's name.
    """
    declared: dict[str, dict[str, Option]] = {}
    for metric in metrics:
        for option in options_of(metric):
            declared.setdefault(option.field, {})[metric.info.name] = option
    return [_shared_parameter(of, panel) for of in declared.values()]


def parse_given(metric: type[Metric[Any]], given: dict[str, Any]) -> dict[str, Any]:
    """Return the given options of a metric, parsed."""
    texts = {option: given.get(option.field) for option in options_of(metric)}
    return {
        option.field: text if isinstance(text, bool) else option.parse(text)
        for option, text in texts.items()
        if text not in (None, False)
    }


def build(owner: type[Any], given: dict[str, Any]) -> Any:
    """Return the dataclass with the given options; the others keep their defaults."""
    named = {option.field: given.get(option.field) for option in options_of(owner)}
    return owner(**{name: value for name, value in named.items() if value not in (None, [])})


class Resolver(Protocol):
    """Completes the options of a command from environment variables and the settings file."""

    def with_provenance(self) -> AbstractContextManager[None]: ...

    def resolve(self, command: str, options: Sequence[Option], given: Mapping[str, Any]) -> dict[str, Any]: ...


def with_signature(function: Callable[..., None], declared: Sequence[inspect.Parameter]) -> Callable[..., None]:
    """Return a command: a function with the signature for Typer, called with the given and the configured options.

    The function also receives the settings, as ``settings``.
    """

    def command(context: typer.Context, **given: Any) -> None:
        settings: Resolver = context.obj()
        with settings.with_provenance():
            function(**settings.resolve(context.info_name or "", options_of_command(command), given), settings=settings)

    parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context), *declared]
    parameters.sort(key=lambda parameter: parameter.kind)
    command.__doc__ = function.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def options_of_command(command: Callable[..., Any]) -> tuple[Option, ...]:
    """Return the options of a command."""
    annotations = (parameter.annotation for parameter in inspect.signature(command).parameters.values())
    told = (getattr(annotation, "__metadata__", ()) for annotation in annotations)
    return tuple(each for metadata in told for each in metadata if isinstance(each, Option))


def _plain(default: Any) -> str:
    """Return a default as the user would type it."""
    return f"{default:g}" if isinstance(default, float) else str(default)


def _parameter(option: Option, panel: str) -> inspect.Parameter:
    if option.hint is bool:
        flag = typer.Option(*option.flags, help=option.help, show_default=False, rich_help_panel=panel)
        return inspect.Parameter(
            option.field, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, flag, option]
        )
    default = "" if option.default in (None, ()) else f" Default: {_plain(option.default)}."
    declared = typer.Option(
        *option.flags,
        help=option.help + default,
        metavar=option.metavar,
        show_default=False,
        rich_help_panel=panel,
        parser=None if option.repeated else _parser(option),
    )
    hint = list[str] | None if option.repeated else str | None
    return inspect.Parameter(
        option.field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[hint, declared, option]
    )


def _shared_parameter(options: dict[str, Option], panel: str) -> inspect.Parameter:
    """Return the parameter of an option that one or several metrics have, possibly with different meanings."""
    first, *others = options.values()
    whose = f" ({', '.join(options)})" if others else ""
    default = "" if others or first.default in (None, False) else f" Default: {_plain(first.default)}."
    flag = first.hint is bool
    declared = typer.Option(
        first.flag,
        help=f"{first.help}{default}{whose}",
        metavar=None if flag else "VALUE" if others else first.metavar,
        show_default=False,
        rich_help_panel=panel,
    )
    hint = bool if flag else str | None
    return inspect.Parameter(
        first.field,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if flag else None,
        annotation=Annotated[hint, declared],
    )


def _parser(option: Option) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        if not text:
            msg = f"{option.flag} needs a value, got none"
            raise OptionError(msg)
        return option.parse(text)

    return parse
