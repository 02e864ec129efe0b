"""The command line: options in, one call, print."""

import sys


def main() -> None:
    """Run the program; an interrupt ends it silently from its first moment on."""
    try:
        from calcheck.cli.app import run

        sys.exit(run())
    except KeyboardInterrupt:
        sys.exit(130)
