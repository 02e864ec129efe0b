"""Previews of the first rows: labels, distributions, and z-scores or PIT values of targets."""

import numpy as np
import pytest

from calcheck.cli.inspect import first_rows
from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.continuous import Cauchy
from calcheck.distributions.count_families import Poisson
from calcheck.predictions import Predictions

Y = np.array([3.0, 0.0, 1.0, 9.0])


def previews(predictive, **more):
    """Return the preview of each row by its label."""
    return dict(first_rows(Predictions(y=Y, predictive=predictive, **more)))


def test_three_rows_are_labeled_by_row_number_or_key():
    rows = previews(Gaussian(np.ones(4), np.full(4, 2.0)), row=np.array([4, 6, 7, 9]))
    assert list(rows) == ["row 4", "row 6", "row 7"]
    assert [words.split("observed ")[1] for words in rows.values()] == ["3: z = 1.00", "0: z = -0.50", "1: z = 0.00"]
    named = previews(Gaussian(np.ones(4), np.ones(4)), id=np.array(["a", "b", "c", "d"]), id_name="key")
    assert list(named) == ["key a", "key b", "key c"]


@pytest.mark.parametrize(
    ("predictive", "share"),
    [
        (Poisson(np.ones(4)), np.exp(-1) * (1 + 1 + 1 / 2 + 1 / 6)),
        (Samples(np.tile([0.0, 3.0, 3.0, 5.0], (4, 1))), 0.8),  # four draws at or below, of five gaps
        (Quantiles(np.array([0.05, 0.5, 0.95]), np.tile([0.0, 3.0, 4.0], (4, 1))), 0.5),
        (Cauchy(np.full(4, 2.0), np.ones(4)), 0.75),
    ],
)
def test_distributions_without_a_z_score_show_the_pit(predictive, share):
    """Counts, draws, interpolated quantiles, and distributions without a mean."""
    assert previews(predictive)["row 0"].endswith(f"observed 3: P(Y ≤ y) = {share:.2g}")
