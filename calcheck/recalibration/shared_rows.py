"""Rows that two files share: a correction must not be judged on the rows to which it was fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions.row_random import hash_rows
from calcheck.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Words
    from calcheck.predictions import Predictions

BY_CHANCE = 0.5  # Maximum share of rows with equal contents that happens by chance, for targets that are counts


def require_other_rows(fitted: Predictions, others: Predictions) -> None:
    """Raise if rows are among those to which a correction was fitted.

    Rows are the same if their keys and targets are equal or, without keys, their targets and predictions. Rows whose
    contents occur twice in one file are not compared, and for counts, which are often equal by chance, less than half
    of the rows may be.

    Raises
    ------
    DataError
        Some rows are in both files.
    """
    with_keys = fitted.id is not None and others.id is not None
    first, second = (_contents(rows, with_keys=with_keys) for rows in (fitted, others))
    shared = np.isin(second, first)
    count = int(shared.sum())
    by_chance = not with_keys and others.distributions().is_discrete
    if count > (BY_CHANCE * len(second) if by_chance else 0):
        row = int(others.row_numbers()[_place(others, second[shared][0], with_keys=with_keys)])
        how = "key and target" if with_keys else "target and prediction"
        msg = (
            f"{count:,} rows are also among those to which the correction is fitted (the same {how}; the first is row"
            f" {row:,}). Judge it on other rows"
        )
        raise DataError(msg)


def _contents(rows: Predictions, *, with_keys: bool) -> Words:
    """Return the hashes of the contents that occur once."""
    different, counts = np.unique(_hashes(rows, with_keys=with_keys), return_counts=True)
    return np.asarray(different[counts == 1])


def _place(rows: Predictions, content: np.uint64, *, with_keys: bool) -> int:
    return int(np.argmax(_hashes(rows, with_keys=with_keys) == content))


def _hashes(rows: Predictions, *, with_keys: bool) -> Words:
    y = rows.targets().reshape(len(rows), -1)
    if not with_keys:
        return hash_rows([y, rows.distributions().hashes(0)], 0)
    return hash_rows([y, _words(rows.id)], 0)


def _words(keys: NDArray[np.generic] | None) -> Words:
    """Return hashes of keys, which may be texts."""
    from hashlib import blake2b

    texts = (str(key).encode() for key in np.asarray(keys).tolist())
    return np.array([int.from_bytes(blake2b(text, digest_size=8).digest()) for text in texts], dtype=np.uint64)
