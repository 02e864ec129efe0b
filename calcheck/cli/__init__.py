"""The command-line interface."""

import gc
import os
import sys
import threading


def main() -> None:
    """Run the program; an interrupt ends it without a traceback, also during imports."""
    gc.disable()  # until a command starts: imports leave many objects and no garbage
    try:
        from calcheck.cli.app import run

        code = run()
    except KeyboardInterrupt:
        code = 130
    except SystemExit as ended:  # by a signal
        code = ended.code if isinstance(ended.code, int) else 1
    if "calcheck.io.object_store" in sys.modules:
        from calcheck.io.object_store import WAITING

        if any(thread.name == WAITING for thread in threading.enumerate()):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # at a usual exit, pyarrow waits for a store that has not answered yet
    sys.exit(code)
