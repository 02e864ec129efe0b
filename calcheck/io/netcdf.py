"""NetCDF files of posterior predictions, as ArviZ writes them; needs the extra ``netcdf``."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError, OptionError
from calcheck.io.numpy_files import ArrayTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.io.files import File

PREDICTED, OBSERVED = "posterior_predictive", "observed_data"
DRAW_AXES = ("chain", "draw")


def netcdf_table(file: File) -> ArrayTable:
    """Open the draws of a posterior predictive distribution, all chains together, and the data they predict.

    Raises
    ------
    OptionError
        h5netcdf is not installed.
    DataError
        There are no such draws, or they are of several variables.
    """
    try:
        import h5netcdf
        import h5py
    except ImportError as error:
        msg = "NetCDF files need h5netcdf. Install it: pip install 'calcheck[netcdf]'"
        raise OptionError(msg) from error
    content = io.BytesIO(file.content())
    with h5py.File(content, "r") as damaged_or_not:  # h5netcdf cannot close what it could not open
        damaged_or_not.visititems(lambda *_: None)
    with h5netcdf.File(content, "r") as archive:
        if PREDICTED not in archive.groups:
            told = ", ".join(sorted(archive.groups)) or "none"
            msg = f"there is no group {PREDICTED!r} of draws as ArviZ writes them (groups: {told})"
            raise DataError(msg)
        drawn = _variables(archive.groups[PREDICTED])
        observed = _variables(archive.groups[OBSERVED]) if OBSERVED in archive.groups else {}
    draws = {name: values for name, (axes, values) in drawn.items() if axes[:2] == DRAW_AXES}
    if len(draws) != 1:
        msg = f"the draws must be of one variable, but are of {len(draws)}: {', '.join(map(repr, draws))}"
        raise DataError(msg)
    ((name, values),) = draws.items()
    arrays = {"samples": values.reshape(values.shape[0] * values.shape[1], -1).T}
    targets = {"y": observed[name][1].reshape(-1)} if name in observed else {}
    return ArrayTable({**arrays, **targets})


def _variables(group: Any) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
    """Return the variables of a group that are no coordinates: the names of their axes, and their values."""
    return {
        name: (tuple(variable.dimensions), np.asarray(variable[...]))
        for name, variable in group.variables.items()
        if name not in variable.dimensions
    }
