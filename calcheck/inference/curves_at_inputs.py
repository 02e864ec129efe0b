"""Curves and maps of metrics that have a value at each input."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from calcheck.inference.curve_bands import CurveBands
from calcheck.linalg.gram import principal_components
from calcheck.statistics.bins import NUMBERS, sort_keys
from calcheck.statistics.curves import CurveBins, bins_along, bins_along_values, cells_along, curve_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.predictions import Predictions
    from calcheck.report import Curve

    Values = NDArray[np.float64]

ROWS_PER_CELL = 5  # Values at inputs vary smoothly, so few are averaged
WORST = 5  # Marked inputs


def curves_at_inputs(shown: Predictions, values: Values, at_inputs: Values | None, by: Sequence[str]) -> CurveBands:
    """Return the mean values in bins of inputs, with those of replicates, and the inputs with the largest values.

    The bins are along the given columns; by default along the inputs, if these have one or two columns, or along their
    first two principal components.

    Parameters
    ----------
    shown : Predictions
        The m inputs.
    values : (m,)
        Values at the inputs.
    at_inputs : (1 + R, m), optional
        Values at the inputs of the data and of R replicates, which are compared.
    by : sequence of str
        At most two columns.
    """
    bins, places = _bins_by_columns(shown, by) if by else _bins_of_inputs(shown)
    own, *replicates = [values] if at_inputs is None else at_inputs
    worst = _worst(places, values, bins.position)
    bands = CurveBands((bins.curve(bins.means(own)), worst), len(replicates), "greater")
    for each in replicates:
        bands.add((bins.curve(bins.means(each)),))
    return bands


def _bins_by_columns(shown: Predictions, by: Sequence[str]) -> tuple[CurveBins, Values | None]:
    """Return bins along columns, and the positions of the inputs, (m, 1 or 2); None for categories and dates."""
    keys = [sort_keys(shown, name) for name in by]
    numeric = all(key.dtype.kind in NUMBERS for key in keys)
    places = np.stack(keys, axis=1).astype(np.float64) if numeric else None
    if len(by) == 1:
        return bins_along_values(keys[0], by[0], ROWS_PER_CELL), places
    if places is None:
        return bins_along(shown, by), places
    return cells_along(places[:, 0], places[:, 1], tuple(by), ROWS_PER_CELL), places


def _bins_of_inputs(shown: Predictions) -> tuple[CurveBins, Values]:
    """Return bins of the inputs, or of their first two principal components, and their positions, (m, 1 or 2)."""
    if shown.width > 2:  # noqa: PLR2004 - a map has two axes
        places, shares = principal_components(shown.lazy_inputs(), 2)
        names = tuple(f"principal component {number}, {share:.0%}" for number, share in enumerate(shares, 1))
        return cells_along(places[:, 0], places[:, 1], names, ROWS_PER_CELL), places
    places = shown.inputs().astype(np.float64)
    if shown.width == 1:
        return bins_along_values(places[:, 0], "", ROWS_PER_CELL), places
    return cells_along(places[:, 0], places[:, 1], ("", ""), ROWS_PER_CELL), places


def _worst(places: Values | None, values: Values, position: Curve) -> Curve:
    """Return the inputs with the largest values as a curve."""
    order = np.argsort(-values, kind="stable")[: 0 if places is None else WORST]
    x = np.empty((0, 1)) if places is None else places[order]
    found = curve_of("worst", x[:, 0], values[order], x_name=position.x_name)
    return found if x.shape[1] == 1 else replace(found, x2=tuple(x[:, 1].tolist()), x2_name=position.x2_name)
