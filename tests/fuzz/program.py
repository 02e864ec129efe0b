"""The program, run in this process as a user runs it, and what may come of it."""

import json
import sys
import traceback
from pathlib import Path

import calcheck
from calcheck.cli import main

READ, REFUSED = "read", "refused"
LONGEST = 2000
PACKAGE = Path(calcheck.__file__).parent


def ended(command, captured):
    """Run a command; return what came of it in a few words, and the whole story.

    Parameters
    ----------
    command : tuple of str
        Name and arguments.
    captured : callable
        Returns what was written to standard output and error since it was last called.
    """
    sys.argv = ["calcheck", *command]
    captured()
    try:
        main()
    except SystemExit as end:
        out, err = captured()
        return judged(end.code, out, err, "json" in command), err
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        captured()
        return f"{type(error).__name__} at {_line(error)}", traceback.format_exc()


def judged(code, out, err, is_json):
    """Say what came of a command that ended by itself."""
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
            json.loads(out, parse_constant=int)  # an int is neither NaN nor infinite
    except ValueError as error:
        return f"no number or no JSON: {error}"
    return READ


def _line(error):
    """Name the last line of calcheck on the way to an error."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if PACKAGE in Path(frame.filename).parents]
    return f"{Path(frames[-1].filename).relative_to(PACKAGE.parent)}:{frames[-1].lineno}" if frames else "the test"
