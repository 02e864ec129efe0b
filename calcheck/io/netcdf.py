"""NetCDF files of ArviZ: draws of the posterior predictive distribution."""

import io

import numpy as np

from calcheck.errors import DataError, OptionError, named_some
from calcheck.io.files import File
from calcheck.io.numpy_files import ArrayTable

PREDICTED, OBSERVED = "posterior_predictive", "observed_data"
DRAW_AXES = ("chain", "draw")
HDF5_SIGNATURE = 8  # Bytes before the version of the superblock
END_PLACES = {0: 40, 1: 44, 2: 28, 3: 28}  # of the length of the file, with 8 bytes, by version of the superblock
SIZE_PLACES = {0: 13, 1: 13, 2: 9, 3: 9}  # of the number of bytes of an address


def netcdf_table(file: File) -> ArrayTable:
    """Open the posterior predictive draws of one variable, with all chains merged, and its observed data."""
    try:
        import h5py
    except ImportError as error:
        raise OptionError("NetCDF files need h5py. Install it: pip install 'calcheck[netcdf]'") from error
    content = file.content()
    _require_one_hdf5_file(content)
    with h5py.File(io.BytesIO(content), "r") as archive:
        drawn, observed = (
            {name: values for name, values in group.items() if isinstance(values, h5py.Dataset)}
            if isinstance(group := archive.get(name), h5py.Group)
            else {}
            for name in (PREDICTED, OBSERVED)
        )
        # HDF5 dimension scales are not used: in damaged files the search for them may never end
        axes = tuple(drawn[axis].size for axis in DRAW_AXES if axis in drawn)
        names = [name for name, values in drawn.items() if values.ndim > 1 and values.shape[: len(DRAW_AXES)] == axes]
        if len(names) != 1:
            found = named_some(names) or f"none in the group {PREDICTED!r}"
            msg = f"there must be draws of one variable, with axes chain and draw as in ArviZ, but found {found}"
            raise DataError(msg)
        values = np.asarray(drawn[names[0]])
        samples = values.reshape(values.shape[0] * values.shape[1], -1).T
        targets = {"y": np.asarray(observed[names[0]]).reshape(-1)} if names[0] in observed else {}
    return ArrayTable({"samples": samples, **targets})


def _require_one_hdf5_file(content: bytes) -> None:
    """Raise if bytes follow the end of the file that its superblock states; HDF5 itself refuses a file that is cut."""
    version = content[HDF5_SIGNATURE]
    if version not in END_PLACES or content[SIZE_PLACES[version]] != 8:  # noqa: PLR2004 - bytes of an address
        return
    length = int.from_bytes(content[END_PLACES[version] :][:8], "little")
    if len(content) > length:
        raise DataError(f"{len(content) - length:,} bytes follow its end. Were files appended? Pass them as two files")
