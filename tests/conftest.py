"""A neutral environment: no forced color, 80 columns, no settings; and `--all`, for full simulations and slow tests."""

import os

from tests import simulations

for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "NO_COLOR", "TERMINAL_WIDTH"):
    os.environ.pop(name, None)
for name in [name for name in os.environ if name.startswith("CALCHECK_")]:
    os.environ.pop(name)
os.environ["CALCHECK_NO_CONFIG"] = "1"  # ignore configuration files above this folder
os.environ["COLUMNS"] = "80"


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="draw all data sets of simulations, and run slow tests")


def pytest_configure(config):
    simulations.full = config.getoption("--all")


def pytest_collection_modifyitems(config, items):
    """Leave slow tests out, unless all are asked for."""
    slow = [] if config.getoption("--all") else [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in set(slow)]
