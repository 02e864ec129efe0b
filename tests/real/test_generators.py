"""The generators of the example score better than a model without inputs, on real data."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.tables import generator_table

EXAMPLE = Path(__file__).parents[2] / "examples" / "generators.py"


@pytest.mark.slow  # tests/project/test_examples.py trains on few simulated rows
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--datasets", "boston", "--epochs", "60"], id="little training"),
        pytest.param([], id="as it is"),
        pytest.param(["--datasets", "kin8nm,ccpp", "--epochs", "150", "--seed", "1"], id="more"),
    ],
)
def test_generators_score_better_than_a_model_without_inputs(data, options):
    command = [sys.executable, EXAMPLE, "--data", data / "uci", *options]
    table = generator_table(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert len(table) >= 3
    for values in table.values():
        assert max(values[:3]) < values[3]
