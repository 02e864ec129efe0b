"""A reader who follows one column from the file to the predictions opens few modules."""

import inspect
import subprocess
import sys
from pathlib import Path

import calcheck
import calcheck.io

MOST = 12  # modules of io between a file and its predictions
ROOM = Path(calcheck.io.__file__).parent
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "diabetes.parquet")


def modules_run(action):
    """Return the modules of io whose functions an action runs; what an import runs does not count."""
    codes = set()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: codes.add(frame.f_code) if event == "call" else None)
    try:
        action()
    finally:
        sys.setprofile(before)
    functions = [code for code in codes if code.co_flags & inspect.CO_OPTIMIZED]  # no bodies of modules and classes
    return {code.co_filename for code in functions if Path(code.co_filename).is_relative_to(ROOM)}


def test_a_parquet_column_becomes_an_array_within_12_modules_of_io():
    calcheck.read(EXAMPLE).predictions()  # imports what is imported on first use
    modules = modules_run(lambda: calcheck.read(EXAMPLE).predictions())
    assert str(ROOM / "columnar.py") in modules
    assert len(modules) <= MOST, sorted(modules)


def test_a_file_with_one_row_per_unit_is_read_without_pandas():
    """pyarrow imports pandas for most conversions to NumPy; that takes longer than reading a small file."""
    code = f"import sys, calcheck; calcheck.read({EXAMPLE!r}).predictions(); sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
