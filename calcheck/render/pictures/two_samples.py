"""Picture of the MCMD of two samples at each input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calcheck.charts.picture import Axis, Mark, Panel, Picture
from calcheck.render.pictures.parts import curve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

MAX_POINTS = 1_000  # maximum number of inputs that are drawn one by one; of more, means of neighbors are drawn
BAND = ("reference_q05", "reference_q95")


def discrepancy_picture(
    x: NDArray[Any], columns: Mapping[str, NDArray[Any]], called: str = "x", title: str = "MCMD of two samples"
) -> Picture:
    """Return a picture of MCMD over one-dimensional inputs, with its values for equal distributions.

    Parameters
    ----------
    x : (m,)
        Inputs.
    columns : mapping
        Per-input results of the metric, (m,) each, with the mean and quantiles of the reference if it was simulated.
    called : str
        Name of the inputs.
    title : str
        Title of the picture.
    """
    shown = _sorted_means(x, columns)
    places = shown.pop("x")
    marks: list[Mark] = []
    if "reference_mean" in shown:
        low, high = (shown[name] for name in BAND)
        name = "equal distributions, 90 %"
        marks += curve(name, places, shown["reference_mean"], (low, high), dashed=True)
    marks += curve("MCMD", places, shown["mcmd"])
    return Picture(
        (Panel(tuple(marks), Axis(called), Axis("MCMD")),),
        title,
        "Equal distributions: the line stays in the band.",
        f"Distance between the conditional distributions of two samples, against {called}.",
    )


def _sorted_means(x: NDArray[Any], columns: Mapping[str, NDArray[Any]]) -> dict[str, list[float]]:
    """Return inputs and columns in the order of the inputs; of many, the means of groups of neighbors."""
    import numpy as np

    order = x.argsort(kind="stable")
    starts = np.linspace(0, len(x), min(len(x), MAX_POINTS), endpoint=False).astype(np.intp)
    sizes = np.diff(starts, append=len(x))
    return {
        name: (np.add.reduceat(values[order], starts) / sizes).tolist()
        for name, values in {"x": x, **columns}.items()
        if values.dtype.kind == "f"
    }
