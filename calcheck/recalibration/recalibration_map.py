"""A fitted correction with where it comes from: what is stored, and applied to other rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from calcheck.errors import DataError
from calcheck.recalibration.methods import NONE
from calcheck.recalibration.steps import AnyStep  # stored maps are read by the types of fields

if TYPE_CHECKING:
    from calcheck.predictions import Predictions
    from calcheck.typing import Mask

VERSION: Literal[1] = 1


@dataclass(frozen=True, kw_only=True)
class FittedFile:
    """A file to which a correction was fitted.

    Parameters
    ----------
    path : str
        Path as given.
    sha256 : str
        SHA-256 hash of the content.
    """

    path: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class MethodScore:
    """The score of a method by cross-validation.

    Parameters
    ----------
    method : str
        The method.
    value : float or None
        Mean score of rows that were not fitted; None if the method does not apply.
    difference, p_value : float or None
        Difference from no change, and the p-value that it is below 0.
    reason : str
        Why the method does not apply; empty if it does.
    """

    method: str
    value: float | None = None
    difference: float | None = None
    p_value: float | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How a method was chosen.

    Parameters
    ----------
    score : str
        The score that methods were compared by.
    folds : int
        Number of folds.
    table : tuple of MethodScore
        The methods with their scores.
    """

    score: str
    folds: int
    table: tuple[MethodScore, ...]


@dataclass(frozen=True, kw_only=True)
class RecalibrationMap:
    """A fitted correction.

    Parameters
    ----------
    calcheck_map : int
        Version of this format.
    method : str
        The method.
    steps : tuple of steps
        Steps in order; none for no change.
    family : str
        Family of the distributions to which it was fitted.
    rows : int
        Number of rows to which it was fitted.
    fitted_on : tuple of FittedFile
        Files of these rows; none for rows from memory.
    choice : Choice
        How the method was chosen.
    calcheck : str
        Version of calcheck that fitted it.
    """

    calcheck_map: Literal[1] = VERSION
    method: str
    steps: tuple[AnyStep, ...]
    family: str
    rows: int
    fitted_on: tuple[FittedFile, ...] = ()
    choice: Choice
    calcheck: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the steps use."""
        features = (feature for step in self.steps for feature in getattr(step, "features", ()))
        return tuple(dict.fromkeys(feature.column for feature in features if feature.kind != "deviation"))

    @property
    def texts(self) -> tuple[str, ...]:
        """The steps in words."""
        return tuple(step.describe() for step in self.steps)

    def apply(self, rows: Predictions) -> Predictions:
        """Return rows with corrected distributions.

        Raises
        ------
        DataError
            The rows are of another family, lack a column, or a step does not apply.
        """
        return self.apply_counted(rows)[0]

    def apply_counted(self, rows: Predictions) -> tuple[Predictions, int]:
        """Return rows with corrected distributions, and the number of rows outside the fitted range."""
        family = family_of(rows)
        if family != self.family:
            msg = f"the map was fitted to {self.family}, and these predictions are {family}"
            raise DataError(msg)
        outside: Mask = np.zeros(len(rows), np.bool_)
        for step in self.steps:
            outside |= step.outside(rows)
            rows = step.apply(rows)
        return rows, int(outside.sum())


def family_of(rows: Predictions) -> str:
    """Return the family of predictions, as a map names it; quantiles and intervals with their levels, draws without."""
    predictive = rows.distributions()
    if predictive.quantile_levels is not None:
        levels = ", ".join(f"{level:g}" for level in predictive.quantile_levels)
        return f"quantiles at {levels}"
    return predictive.display_name


def fitted_map(
    method: str, steps: Sequence[AnyStep], rows: Predictions, choice: Choice, files: Sequence[FittedFile] = ()
) -> RecalibrationMap:
    """Return the map of steps that were fitted to rows."""
    from calcheck.core.version import __version__

    return RecalibrationMap(
        method=method if steps else NONE,
        steps=tuple(steps),
        family=family_of(rows),
        rows=len(rows),
        fitted_on=tuple(files),
        choice=choice,
        calcheck=__version__,
    )
