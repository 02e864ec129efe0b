"""Run the program in this process, as a user runs it, and classify the outcome."""

import json
import sys
import traceback
from pathlib import Path

import calcheck
from calcheck.cli import main

READ, REFUSED = "read", "refused"
LONGEST = 2000
PACKAGE = Path(calcheck.__file__).parent


def run_command(command, captured):
    """Return the outcome of a command, and its output.

    Parameters
    ----------
    command : tuple of str
        Name and arguments.
    captured : callable
        Returns the standard output and error since the last call.
    """
    sys.argv = ["calcheck", *command]
    captured()
    try:
        main()
    except SystemExit as end:
        out, err = captured()
        return classify(end.code, out, err, "json" in command), err
    except Exception as error:  # noqa: BLE001 - these are the findings
        captured()
        return f"{type(error).__name__} at {_line(error)}", traceback.format_exc()


def classify(code, out, err, is_json):
    """Return the outcome of a command that ended without an unexpected error."""
    if code == 2:
        if not err.startswith("calcheck: ") or err.count("\n") != 1 or not err.endswith("\n") or out:
            return "refused in more than a line"
        return REFUSED if len(err) < LONGEST else "refused at length"
    if code != 0:
        return f"exit code {code}"
    if err:
        return "read with noise"
    try:
        if is_json:
            json.loads(out, parse_constant=int)  # NaN and infinity raise
    except ValueError as error:
        return f"no number or no JSON: {error}"
    return READ


def _line(error):
    """Return the last line of calcheck in the traceback of an error."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if PACKAGE in Path(frame.filename).parents]
    return f"{Path(frames[-1].filename).relative_to(PACKAGE.parent)}:{frames[-1].lineno}" if frames else "the test"
