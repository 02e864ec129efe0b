"""Log-likelihoods of targets, and targets that are impossible: those with probability 0 under their predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError
from calcheck.statistics.log_masses import log_masses
from calcheck.statistics.moments import targets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions


def log_likelihoods(rows: Predictions, *, discretised: bool = False) -> NDArray[np.float64]:
    """Return the log density or log mass of each row, (n,).

    Raises
    ------
    DataError
        The distributions have no density; or several targets have no masses.
    """
    predictive = rows.distributions()
    if predictive.targets == 1:
        return log_masses(predictive, targets(rows)) if discretised else predictive.log_prob(targets(rows))
    if discretised:
        msg = f"masses of whole numbers are for one target, and there are {predictive.targets}: omit --discretise"
        raise DataError(msg)
    return predictive.joint_log_prob(rows.targets())


def are_impossible(rows: Predictions) -> NDArray[np.bool_]:
    """Return whether each target has probability 0, (n,); of distributions without a density none is known to be."""
    try:
        with np.errstate(all="ignore"):
            return np.isneginf(log_likelihoods(rows))
    except DataError:
        return np.zeros(len(rows), dtype=np.bool_)


def describe_impossible(count: int) -> str:
    """Return how many targets are impossible, as a clause.

    Examples
    --------
    >>> describe_impossible(1), describe_impossible(1200)
    ('1 target has probability 0 under the predictions', '1,200 targets have probability 0 under the predictions')
    """
    return f"{'1 target has' if count == 1 else f'{count:,} targets have'} probability 0 under the predictions"
