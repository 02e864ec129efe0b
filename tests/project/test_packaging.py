"""The wheel and the sdist: their contents, and that builds of the same files are equal."""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import calcheck
from tests.helpers.files import columns, write

ROOT = Path(__file__).parents[2]
wheels = pytest.importorskip("hatchling.builders.wheel", reason="hatchling, of the extra dev, builds the packages")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return the path of a built wheel."""
    return build(tmp_path_factory.mktemp("wheel"))


def build(folder):
    (path,) = wheels.WheelBuilder(str(ROOT)).build(directory=str(folder))
    return Path(path)


def installed_files(suffix):
    return {path.relative_to(ROOT).as_posix() for path in Path(calcheck.__file__).parent.rglob(f"*{suffix}")}


def test_the_wheel_has_modules_guides_assets_of_pages_summaries_and_the_marker_of_types(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    own = {name for name in names if not name.startswith("calcheck-")}
    assert own == {name for suffix in (".py", ".md", ".svg", ".css", ".js") for name in installed_files(suffix)} | {
        "calcheck/cli/summaries.txt",
        "calcheck/py.typed",
    }
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_same_files_make_the_same_wheel(wheel, tmp_path, monkeypatch):
    """The wheel has no times of files: all are SOURCE_DATE_EPOCH, here 2023-11-14 22:13:20."""
    assert build(tmp_path).read_bytes() == wheel.read_bytes()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    dated = zipfile.ZipFile(build(tmp_path))
    assert {each.date_time for each in dated.infolist()} == {(2023, 11, 14, 22, 13, 20)}


def test_the_sdist_has_what_its_tests_need(tmp_path):
    from hatchling.builders.sdist import SdistBuilder

    (path,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = ("tests", ".ci", ".github", "examples")
    expected = {f"{folder}/{each}" for folder in needed for each in files(ROOT / folder)}
    assert expected | {".pre-commit-hooks.yaml", "calcheck/py.typed", "README.md", "pyproject.toml"} <= names


def files(folder):
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return [path.as_posix() for path in found if not any(part.startswith("__pycache__") for part in path.parts)]


HIDDEN = "import sys; sys.modules['torch'] = None; from calcheck.cli import main; main()"


def without_torch(*arguments):
    """Run the program where torch cannot be imported."""
    command = [sys.executable, "-c", HIDDEN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_without_torch_the_program_works_and_names_the_extra_of_a_device(tmp_path):
    file = write(tmp_path / "preds.parquet", columns(n=40))
    quick = ("--no-null", "--no-bootstrap", "--metrics", "zms,cce,jmmd,cmmd,fid,crps")
    evaluated = without_torch("evaluate", file, *quick, "--format", "json")
    assert (evaluated.returncode, evaluated.stderr) == (0, "")
    assert len(json.loads(evaluated.stdout)["results"]) == 6
    refused = without_torch("cce", file, "--device", "cuda")
    assert refused.returncode == 2
    expected = "calcheck: --device needs torch, which is not installed: pip install 'calcheck[torch]'\n"
    assert refused.stderr == expected
