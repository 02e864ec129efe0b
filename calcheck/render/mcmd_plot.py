"""Plot of the MCMD of two samples at each input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calcheck.render.plot import Curve, Panel, Plot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

BAND = ("reference_q05", "reference_q95")


def discrepancy_plot(x: NDArray[Any], columns: Mapping[str, NDArray[Any]], called: str = "x", title: str = "") -> Plot:
    """Return a plot of MCMD over one-dimensional inputs, with its values for equal distributions.

    Parameters
    ----------
    x : (m,)
        Inputs.
    columns : mapping
        Per-input results of the metric, (m,) each, with the mean and quantiles of the reference if it was simulated.
    called : str
        Name of the inputs.
    title : str
        Title of the plot.
    """
    order = x.argsort(kind="stable")
    ordered = {name: values[order].tolist() for name, values in columns.items()}
    places = x[order].tolist()
    curves = [Curve("MCMD", places, ordered["mcmd"])]
    if "reference_mean" in ordered:
        low, high = (ordered[name] for name in BAND)
        curves.append(Curve("equal distributions, 90 %", places, ordered["reference_mean"], low, high, style="dashed"))
    return Plot((Panel(tuple(curves), title=title, x_label=called, y_label="MCMD"),))
