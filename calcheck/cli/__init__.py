"""The command-line interface."""

import os
import sys
import threading


def main() -> None:
    """Run the program; an interrupt ends it without a traceback, also during imports."""
    try:
        from calcheck.cli.app import run

        code = run()
    except KeyboardInterrupt:
        code = 130
    except SystemExit as ended:  # by a signal
        code = ended.code if isinstance(ended.code, int) else 1
    _end_without_waiting(code)
    sys.exit(code)


def _end_without_waiting(code: int) -> None:
    """End at once if an object store has not answered yet: at the exit, pyarrow waits for it."""
    if "calcheck.io.object_store" not in sys.modules:
        return
    from calcheck.io.object_store import WAITING

    if any(thread.name == WAITING for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
