"""The nearest configuration file is found and read."""

from pathlib import Path

import pytest

from calcheck.cli.settings import Config, find_config, read_config
from calcheck.errors import FileError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder two levels below the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calcheck.toml").write_text("")  # so that no file above is found
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    return inner


def test_settings_commands_and_gates_are_distinguished(folder):
    text = 'seed = 1\nno-bootstrap = true\n[cce]\nlambda = 0.01\n[gates]\nfail-on = ["ece > 0.05"]\n'
    (folder / "calcheck.toml").write_text(text)
    assert find_config(folder) == Config(
        path=str(Path("a") / "b" / "calcheck.toml"),
        settings={"seed": 1, "no-bootstrap": True},
        commands={"cce": {"lambda": 0.01}},
        gates={"fail-on": ["ece > 0.05"]},
    )


def test_only_the_nearest_file_is_used(folder):
    (folder.parent / "calcheck.toml").write_text("seed = 1\nconfidence = 0.9")
    assert find_config(folder).settings == {"seed": 1, "confidence": 0.9}
    (folder / "pyproject.toml").write_text("[tool.calcheck]\nseed = 2")
    assert find_config(folder).settings == {"seed": 2}
    (folder / "calcheck.toml").write_text("seed = 3")
    assert find_config(folder).settings == {"seed": 3}


@pytest.mark.parametrize("text", ["", "[tool.ruff]\nline-length = 9", "tool = 3", "[broken"])
def test_a_pyproject_without_our_table_is_skipped(folder, text):
    (folder.parent / "calcheck.toml").write_text("seed = 1")
    (folder / "pyproject.toml").write_text(text)
    assert find_config(folder).settings == {"seed": 1}


def test_a_folder_with_the_name_of_the_file_is_ignored(folder):
    (folder / "calcheck.toml").mkdir()
    assert find_config(folder).path == "calcheck.toml"


def test_a_pyproject_table_is_read_as_settings(folder):
    (folder.parents[1] / "calcheck.toml").unlink()
    (folder.parents[1] / "pyproject.toml").write_text("[tool.calcheck.cce]\nlambda = 1")
    assert find_config(folder) == Config(path="pyproject.toml", commands={"cce": {"lambda": 1}})
    assert Config() == Config(path=None, settings={}, commands={}, gates={})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("calcheck.toml", b"seed = ", "calcheck.toml is not valid TOML: Invalid value"),
        ("calcheck.toml", b"a = " + b"[" * 100_000, "calcheck.toml is not valid TOML"),
        ("calcheck.toml", b"a = " + b"9" * 10_000, "calcheck.toml is not valid TOML"),
        ("calcheck.toml", b"\xff", "calcheck.toml is not valid TOML: it is not encoded in UTF-8"),
        ("calcheck.toml", b"gates = 3", r"calcheck.toml: gates must be a table \[gates\], got 3"),
        ("pyproject.toml", b"[tool.calcheck]\nseed =", "pyproject.toml is not valid TOML"),
        ("pyproject.toml", b"[tool]\ncalcheck = 3", r"must be a table \[tool.calcheck\], got 3"),
    ],
)
def test_invalid_files_are_refused(folder, name, content, message):
    (folder / name).write_bytes(content)
    with pytest.raises(FileError, match=message):
        find_config(folder)


def test_a_named_file_must_exist_and_contain_settings(folder):
    with pytest.raises(FileError, match=r"cannot read the settings in .*x\.toml: No such file"):
        read_config(folder / "x.toml")
    (folder / "pyproject.toml").write_text("[tool.ruff]")
    with pytest.raises(FileError, match=r"pyproject.toml has no table \[tool.calcheck\]"):
        read_config(folder / "pyproject.toml")
    (folder / "any.toml").write_text("seed = 4")
    assert read_config(folder / "any.toml").settings == {"seed": 4}
