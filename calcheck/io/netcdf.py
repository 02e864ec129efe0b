"""NetCDF files of posterior predictions, as ArviZ writes them; needs the extra ``netcdf``."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError, OptionError
from calcheck.io.numpy_files import ArrayTable

if TYPE_CHECKING:
    from calcheck.io.files import File

PREDICTED, OBSERVED = "posterior_predictive", "observed_data"
DRAW_AXES = ("chain", "draw")


def netcdf_table(file: File) -> ArrayTable:
    """Open the draws of a posterior predictive distribution, all chains together, and the data they predict.

    Raises
    ------
    OptionError
        h5py is not installed.
    DataError
        There are no such draws, or they are of several variables.
    """
    try:
        import h5py
    except ImportError as error:
        msg = "NetCDF files need h5py. Install it: pip install 'calcheck[netcdf]'"
        raise OptionError(msg) from error
    with h5py.File(io.BytesIO(file.content()), "r") as archive:
        if PREDICTED not in archive:
            told = ", ".join(map(repr, archive)) or "none"
            msg = f"there is no group {PREDICTED!r} of draws as ArviZ writes them (groups: {told})"
            raise DataError(msg)
        drawn, observed = archive[PREDICTED], archive.get(OBSERVED, {})
        axes = tuple(len(drawn[axis]) for axis in DRAW_AXES if axis in drawn)
        # what HDF5 says of axes is not asked for: in damaged files it may search them for ever
        names = [name for name, values in drawn.items() if len(values.shape) >= len(DRAW_AXES) == len(axes)]
        names = [name for name in names if drawn[name].shape[: len(axes)] == axes]
        if len(names) != 1:
            msg = f"the draws must be of one variable, but are of {len(names)}: {', '.join(map(repr, names)) or 'none'}"
            raise DataError(msg)
        values = np.asarray(drawn[names[0]])
        samples = values.reshape(values.shape[0] * values.shape[1], -1).T
        targets = {"y": np.asarray(observed[names[0]]).reshape(-1)} if names[0] in observed else {}
    return ArrayTable({"samples": samples, **targets})
