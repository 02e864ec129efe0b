"""Rules as annotations of GitHub checks."""

from calcheck.core.escaping import strip_control
from calcheck.render.numbers_and_notes import describe_input, headline
from calcheck.report import Gate, Level, Report

MOST = 10  # maximum annotations of a kind that GitHub shows per step; it silently drops the rest
COMMANDS: dict[Level, str] = {"fail": "error", "warn": "warning"}


def render_github(report: Report) -> str:
    """Return the violated rules, and those without a verdict, as annotations, errors first; else the headline."""
    files, _ = describe_input(report.input)
    violated = [gate for level in COMMANDS for gate in (*report.violated(level), *report.unjudged(level))]
    shown = violated if len(violated) <= MOST else violated[: MOST - 1]
    lines = [_annotation(gate, files) for gate in shown]
    if left := len(violated) - len(shown):
        kind = COMMANDS[violated[len(shown)].level]
        lines.append(_command(kind, "calcheck", f"{left:,} more: {headline(report)}"))
    if not violated:
        lines.append(_command("notice", "calcheck", f"{headline(report)} by {', '.join(files)}"))
    return "".join(lines)


def _annotation(gate: Gate, files: list[str]) -> str:
    found = gate.message if gate.judged else f"cannot be judged: {gate.message}"
    return _command(COMMANDS[gate.level], f"calcheck: {gate.rule}", f"{found} in {', '.join(files)}")


def _command(kind: str, title: str, message: str) -> str:
    """Return a workflow command with its title and message escaped."""
    text = strip_control(message).replace("%", "%25")
    titled = strip_control(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={titled}::{text}\n"
