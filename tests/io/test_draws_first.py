"""Arrays with draws along the first axis are recognized by the number of rows, and reported."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import calcheck
from calcheck.errors import CalcheckError
from tests.helpers.shorthand import texts

N, M = 12, 5
RNG = np.random.default_rng(0)
Y, DRAWS = RNG.normal(size=N), RNG.normal(size=(M, N))
SWAPPED = "the array samples has shape (5, 12), and there are 12 rows: its first two axes are swapped"


def draws_of(source):
    return source.predictions().predictive.draws


@pytest.mark.parametrize("names", [("y", "samples"), ("samples", "y")])
def test_archives_of_draws_by_rows_are_read(tmp_path, names):
    np.savez(tmp_path / "preds.npz", **{name: {"y": Y, "samples": DRAWS}[name] for name in names})
    source = calcheck.read(str(tmp_path / "preds.npz"))
    assert_array_equal(draws_of(source), DRAWS.T)
    assert texts(source.warnings()) == (SWAPPED,)


def test_an_array_of_draws_has_as_many_rows_as_the_targets_in_another_file(tmp_path):
    np.save(tmp_path / "draws.npy", DRAWS)
    np.savez(tmp_path / "truth.npz", y=Y)
    source = calcheck.read(str(tmp_path / "draws.npy"), samples="embedding", truth=str(tmp_path / "truth.npz"))
    assert_array_equal(draws_of(source), DRAWS.T)
    assert any("its first two axes are swapped" in text for text in texts(source.warnings()))


def test_several_archives_are_reported_once(tmp_path):
    for name in "ab":
        np.savez(tmp_path / f"{name}.npz", y=Y + ord(name), samples=DRAWS)
    source = calcheck.read(str(tmp_path))
    assert_array_equal(draws_of(source), np.concatenate([DRAWS.T, DRAWS.T]))
    (text,) = texts(source.warnings())
    assert text.endswith(f"a.npz: {SWAPPED} (2 such files)")


@pytest.mark.parametrize("draws", [DRAWS, DRAWS.tolist()])
def test_arrays_of_draws_by_rows_are_accepted_by_keyword(draws):
    for given in ({"y": Y}, {"data": pd.DataFrame({"y": Y})}, {"data": {"y": Y}}, {"y": pd.Series(Y)}):
        source = calcheck.read(samples=draws, **given)
        assert_array_equal(draws_of(source), DRAWS.T)
        assert texts(source.warnings()) == (SWAPPED,)
    assert_array_equal(draws_of(calcheck.read({"y": Y, "samples": draws})), DRAWS.T)


def test_draws_of_several_targets_keep_their_last_axis():
    draws = RNG.normal(size=(M, N, 2))
    source = calcheck.read(y=np.stack([Y, Y], axis=1), id=np.arange(N), samples=draws)
    assert_array_equal(draws_of(source), draws.swapaxes(0, 1))


def test_archives_have_draws_of_several_targets(tmp_path):
    """The axes of draws are rows, draws and targets, as scoringrules has them, or draws first."""
    draws, y = RNG.normal(size=(N, M, 2)), np.stack([Y, Y + 1], axis=1)
    for name, values in {"rows.npz": draws, "draws.npz": draws.swapaxes(0, 1)}.items():
        np.savez(tmp_path / name, y=y, samples=values, x=Y)
        assert_array_equal(draws_of(calcheck.read(str(tmp_path / name))), draws)


def test_square_arrays_have_rows_first():
    draws = RNG.normal(size=(N, N))
    source = calcheck.read(y=Y, samples=draws)
    assert_array_equal(draws_of(source), draws)
    assert source.warnings() == ()


def test_arrays_of_another_length_are_refused(tmp_path):
    with pytest.raises(CalcheckError, match="row counts differ: y has 12, samples has 5"):
        calcheck.read(y=Y, samples=DRAWS[:, 1:])
    np.savez(tmp_path / "preds.npz", y=Y, samples=DRAWS[:, 1:])
    with pytest.raises(CalcheckError, match="expected length 12 but got length 5"):
        calcheck.read(str(tmp_path / "preds.npz")).predictions()
