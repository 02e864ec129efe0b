"""Errors of the command line: what they say, and hints at the option or file that was meant."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from shlex import quote
from typing import Any

import typer

from calcheck.errors import CalcheckError, MissingFileError, nearest_word

MOST_COMMANDS = 8  # That are named as those with an option
BEFORE_COMMAND = ("--config", "--no-config")
SYNONYMS = {
    "--reference": ("--against",),
    "--new": ("--to", "--on"),
    **dict.fromkeys(("--y", "--y-true", "--y_true"), ("--target",)),
    **dict.fromkeys(("--y-pred", "--y_pred"), ("--mean",)),
    **dict.fromkeys(("--y-std", "--y_std", "--sigma"), ("--std",)),
}  # Flags of other tools and commands, and arguments in Python
LISTS = frozenset(
    {
        *("--target", "--mean", "--std", "--var", "--log-std", "--log-var", "--samples", "--quantiles"),
        *("--lower", "--upper", "--level"),
        *("--embedding", "--inputs", "--join-on", "--metrics", "--names", "--criteria", "--levels"),
    }
)  # Options whose values are separated by commas


def explain(error: typer.TyperException, words: Sequence[str], commands: Sequence[str]) -> str:
    """Return the message of a usage error, with a hint."""
    from calcheck.cli.guide import read_guides  # which imports the metrics

    message: str = getattr(error, "message", "") or error.format_message()
    if hasattr(error, "possibilities"):  # only the error about an unknown option has them
        return f"{message}. {_option_hint(error)}"
    # Typer raises the next two with the same type and no fields, so that only the text tells them apart
    if message.startswith("No such command") and (name := message.split("'")[1]) in read_guides():
        return f"No such command {name!r}. There is a guide: calcheck guide {name}"
    if message.startswith("No such command") and "Did you mean" not in message:
        return f"{message} Available commands: {', '.join(commands)}."
    if message.startswith("Got unexpected extra argument"):
        return f"{message}. {list_hint(message.partition('(s) ')[2].count(' ') + 1, words)}"
    return error.format_message()


def describe(error: CalcheckError, words: Sequence[str]) -> str:
    """Return the message of an error with its notes, and with a hint if a file is missing."""
    hints = []
    if isinstance(error, MissingFileError):  # perhaps one of several values of an option
        lists = ((flag, values) for flag, values in _values_by_flag(words) if error.name in values[1:])
        hints = [_joined(flag, values[: values.index(error.name) + 1]) for flag, values in lists]
    message = f"{error}. {hints[0]}" if hints else str(error)
    return " ".join([message, *getattr(error, "__notes__", ())])


def _option_hint(error: Any) -> str:
    """Return which commands have an option, or a similar option, or where the options are listed."""
    if error.option_name in BEFORE_COMMAND:
        return "Put this option before the command, e.g. calcheck --config FILE evaluate …"
    flags_of = {
        name: {flag for option in command.options() for flag in option.flags}
        for name, command in error.ctx.find_root().command.commands.items()
    }
    flags = {flag.lstrip("-"): flag for parameter in error.ctx.command.params for flag in parameter.opts}
    if meant := next((flag for flag in SYNONYMS.get(error.option_name, ()) if flag in flags.values()), ""):
        return f"Did you mean {meant}?"
    given = error.option_name.lstrip("-")
    near = nearest_word(given, flags)
    commands = [name for name, flags in flags_of.items() if error.option_name in flags]
    if near and (not commands or near.startswith(given) or given.startswith(near)):
        return f"Did you mean {flags[near]}?"
    if commands:
        named = ", ".join(commands[:MOST_COMMANDS]) + f", … {len(commands)} in all" * (len(commands) > MOST_COMMANDS)
        return f"{error.ctx.command_path} does not take it; these commands do: {named}"
    return f"{error.ctx.command_path} --help lists the options"


def list_hint(strays: int, words: Sequence[str]) -> str:
    """Return how several values of an option, or several files, are given."""
    lists = (_joined(flag, values[: strays + 1]) for flag, values in _values_by_flag(words) if len(values) > strays)
    if hint := next(lists, ""):
        return hint
    files = [quote(word) for word in words if Path(word).is_file()]
    if strays == 1 and len(files) > 1 and "recalibrate" in words:
        return f"To correct the second: calcheck recalibrate {files[0]} --to {files[1]} -o MENDED.parquet"
    models = f"To compare models: calcheck compare {' '.join(files)}. " if len(files) == strays + 1 else ""
    return f"{models}To read several files as one FILE, pass a folder or a quoted pattern: 'preds/*.parquet'"


def _joined(flag: str, values: Sequence[str]) -> str:
    """Return how several values of an option are given."""
    return f"Several values are separated by commas: {flag} {','.join(values)}"


def _values_by_flag(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each option that takes a list, with the words up to the next option that are not files."""
    parts = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for place, part in enumerate(parts):
        if part in LISTS:
            following = parts[place + 1 :]
            yield part, list(takewhile(lambda word: not word.startswith("-") and not Path(word).exists(), following))
