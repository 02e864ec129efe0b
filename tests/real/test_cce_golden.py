"""CCE equals the code of the authors, row by row: probcal in float64 on saved samples (data/README.md)."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from calcheck import read
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics.cce import Cce

GOLDEN = {"probcal_a_n1000": {"gamma_x": 0.5}, "probcal_b_n1000_polygamma1": {}}


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize(
    ("solver", "run"),
    [
        pytest.param("cholesky", Run(replicates=0), id="cholesky"),
        pytest.param("cholesky", Run(device="cpu", replicates=0), id="cholesky, torch", marks=pytest.mark.slow),
        pytest.param("cg", Run(replicates=0), id="cg"),
        pytest.param("cg", Run(memory=1 << 20, replicates=0), id="cg, little memory", marks=pytest.mark.slow),
        pytest.param("cg", Run(device="cpu", replicates=0), id="cg, torch", marks=pytest.mark.slow),
    ],
)
def test_every_row_equals_the_value_of_the_authors(data, name, solver, run):
    """gamma_x = 0.5 on one input (their 4.1), and (x.x' + 1)^3 on unit-norm embeddings; their gamma is float32."""
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
    assert np.abs(found["cce"] - expected).max() < 1e-8  # the remainder is their rounding of gamma


@pytest.mark.slow
def test_float32_agrees_on_the_authors_data(data):
    for name, options in GOLDEN.items():
        source = read(str(data / "golden" / f"{name}.parquet"))
        double, single = (
            evaluate(source, [Cce(**options)], run=Run(precision=precision, replicates=0)).results[0].value
            for precision in ("float64", "float32")
        )
        assert_allclose(single, double, rtol=1e-4)
