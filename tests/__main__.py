"""Every check of the project: format, lint, names, types, layers, docs, tests. `python -m tests`."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = {name: value for name, value in os.environ.items() if not name.startswith("CALCHECK_")} | {
    "CALCHECK_NO_CONFIG": "1"
}
ALONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Products of matrices take one thread each: tests run on every core already, and more would spin."""
CHECKS = (
    "ruff format --check .",
    "ruff check .",
    "python -m tests.names",
    "mypy",
    "lint-imports",
    "python -m tests.reference --check",
    "cog --check README.md calcheck/guides/*.md",
    'pytest -n auto -m "not slow"',
)


def main() -> int:
    """Run the checks in order; stop at the first that fails."""
    for check in CHECKS:
        sys.stdout.write(f"· {check}\n")
        sys.stdout.flush()
        program, *arguments = (word for part in shlex.split(check) for word in _expand(part))
        code = subprocess.call([Path(sys.executable).with_name(program), *arguments], cwd=ROOT, env=OURS | ALONE)
        if code:
            sys.stdout.write(f"failed: {check}\n")
            return code
    return 0


def _expand(word: str) -> list[str]:
    """Return the files that a pattern matches; other words as they are."""
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(word)) if word.endswith("*.md") else [word]


if __name__ == "__main__":
    sys.exit(main())
