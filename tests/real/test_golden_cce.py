"""The authors' own numbers, row by row: probcal in float64 on saved samples (data/README.md)."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from calcheck import evaluate, read
from calcheck.execution.run import Run
from calcheck.metrics.cce import Cce

GOLDEN = {"probcal_a_n1000": {"gamma_x": 0.5}, "probcal_b_n1000_polygamma1": {}}


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize(
    "run", [Run(), Run(memory=1 << 20), Run(device="cpu")], ids=["numpy", "little memory", "torch"]
)
def test_every_row_is_the_authors(data, name, solver, run):
    """gamma_x = 0.5 on one input (their 4.1), and (x.x' + 1)^3 on unit-norm embeddings; their gamma is float32."""
    if solver == "cholesky" and run.memory < 1 << 24:
        pytest.skip("a factorisation does not fit")
    path = data / "golden" / f"{name}.parquet"
    found = {}
    evaluate(
        read(str(path)),
        [Cce(solver=solver, **GOLDEN[name])],
        run=run,
        sink=lambda *handed: found.update(handed[-1].columns),
    )
    expected = pq.read_table(path, columns=["cce_expected"])["cce_expected"].to_numpy()
    assert_allclose(found["cce"], expected, rtol=0, atol=1e-6)
    assert np.abs(found["cce"] - expected).max() < 1e-8  # what is left is their rounding of gamma


def test_float32_agrees_on_the_authors_data(data):
    for name, options in GOLDEN.items():
        source = read(str(data / "golden" / f"{name}.parquet"))
        double, single = (
            evaluate(source, [Cce(**options)], run=Run(precision=precision)).results[0].value
            for precision in ("float64", "float32")
        )
        assert_allclose(single, double, rtol=1e-4)
