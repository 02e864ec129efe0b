"""Run the commands and scripts whose output is shown in README.md and in the guides; cog calls these functions."""

import contextlib
import functools
import hashlib
import io
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[1]
GUIDES = ROOT / "calcheck" / "guides"
OVERRIDES = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERMINAL_WIDTH")
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name not in OVERRIDES and not name.startswith("CALCHECK_")
} | {"COLUMNS": "80", "CALCHECK_NO_CONFIG": "1", "PYTHONPATH": str(ROOT)}
"""The environment of the commands: no colors, 80 columns, no settings from files or variables."""


@functools.cache
def console(*commands: str, exit_code: int = 0) -> str:
    """Return a console block: each command and its output. The last command must end with the given exit code.

    The commands run one after another in a temporary folder that links to ``examples``.
    """
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "examples").symlink_to(ROOT / "examples")
        for number, command in enumerate(commands, start=1):
            expected = exit_code if number == len(commands) else 0
            lines += [""] * (number > 1)
            lines += [f"$ {command}", *_output(shlex.split(command), Path(folder), expected)]
    if exit_code:
        lines += ["", "$ echo $?", str(exit_code)]
    return _block("console", lines)


@functools.cache
def picture(command: str, name: str, text: str, shown_in: str = "pictures") -> str:
    """Return the block of a command that draws a picture, and the picture, which is stored beside the guides.

    The folder of pictures is as seen from the page.

    The hash in a comment shows ``cog --check`` that the stored picture is the one that the command draws.
    """
    path = GUIDES / "pictures" / f"{name}.svg"
    shown = f"{command} --plot {path.name}"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "examples").symlink_to(ROOT / "examples")
        _output(shlex.split(shown), Path(folder), 0)
        drawn = Path(folder, path.name).read_bytes()
    if not path.exists() or path.read_bytes() != drawn:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(drawn)
    digest = hashlib.sha256(drawn).hexdigest()
    return f"{_block('console', [f'$ {shown}'])}\n![{text}]({shown_in}/{path.name})<!-- sha256 {digest} -->\n"


@functools.cache
def script(path: str, language: str = "text") -> str:
    """Return a block with what a script of the repository prints."""
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, cwd=ROOT, env=ENVIRONMENT)
    return _block(language, run.stdout.strip().splitlines())


def _output(command: list[str], folder: Path, exit_code: int) -> list[str]:
    """Run a command of calcheck in this process and return the lines that it prints; its exit code must be as expected.

    A process of its own would import the program again for each command.
    """
    from calcheck.cli import main

    shown, said, code = io.StringIO(), io.StringIO(), None
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, ENVIRONMENT, clear=True),
        mock.patch.object(sys, "argv", command),
        contextlib.redirect_stdout(shown),
        contextlib.redirect_stderr(said),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    if code != exit_code:
        raise RuntimeError(f"exit code {code} of {shlex.join(command)}, not {exit_code}: {said.getvalue()}")
    return shown.getvalue().strip().splitlines()


def _block(language: str, lines: list[str]) -> str:
    """Return a fenced block of Markdown; lines carry no spaces at their ends."""
    return "\n".join([f"```{language}", *(line.rstrip() for line in lines), "```", ""])
