"""The command-line interface."""

import sys


def main() -> None:
    """Run the program; an interrupt ends it without a traceback, also during imports."""
    try:
        from calcheck.cli.app import run

        sys.exit(run())
    except KeyboardInterrupt:
        sys.exit(130)
