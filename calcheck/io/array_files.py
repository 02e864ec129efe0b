"""Files of arrays: NumPy (.npy, .npz), tensors (safetensors), NetCDF of ArviZ; and tables of named arrays."""

import io
import json
import math
import zipfile
from collections.abc import Iterator, Sequence
from io import BufferedIOBase
from typing import IO, Any

import numpy as np
import pyarrow as pa

from calcheck.core.validation import require_different
from calcheck.errors import DataError, OptionError, named_some
from calcheck.execution.run import available_memory
from calcheck.io.arrow_columns import MemoryTable
from calcheck.io.column_names import TARGETS
from calcheck.io.dataframes import common_length, list_column, rows_first
from calcheck.io.files import File
from calcheck.typing import AnyArray

NPY_MAGIC, SUFFIX = b"\x93NUMPY", ".npy"
ZIP, ZIP_END, ZIP_END_BYTES = b"PK\x03\x04", b"PK\x05\x06", 22  # Starts of an archive and of its end; size of the end
VECTORS_OF_DRAWS = 3  # Number of axes: rows, draws, targets
LENGTH_BYTES = 8  # Size of the header length, little-endian
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "?"}  # bfloat16: the upper half of a float32
TYPES |= {"I8": "<i1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "U8": "<u1", "U16": "<u2", "U32": "<u4", "U64": "<u8"}
PREDICTED, OBSERVED = "posterior_predictive", "observed_data"
DRAW_AXES = ("chain", "draw")
HDF5_SIGNATURE = 8  # Bytes before the version of the superblock
END_PLACES = {0: 40, 1: 44, 2: 28, 3: 28}  # of the length of the file, with 8 bytes, by version of the superblock
SIZE_PLACES = {0: 13, 1: 13, 2: 9, 3: 9}  # of the number of bytes of an address


class ArrayTable:
    """Table of named arrays with rows along the first axis; higher dimensions become fixed-size lists."""

    def __init__(
        self,
        arrays: dict[str, AnyArray],  # The arrays, (n, …) each. Arrays with rows along the second axis are swapped.
        rows: int | None = None,  # The number of rows, n; by default, the length of the one-dimensional arrays
    ) -> None:
        given = {name: values for name, values in arrays.items() if values.ndim}
        for name, values in given.items():
            if values.dtype.kind not in "fiub":
                raise DataError(f"an array of type {values.dtype} does not hold real numbers")
            given[name] = values.astype(values.dtype.newbyteorder("="), copy=False)
        if not given:
            raise DataError("there is no array with rows")
        named = next((len(given[name]) for name in TARGETS if name in given), None)
        rows = (named or common_length(given.values())) if rows is None else rows
        found = {name: rows_first(name, values, rows) for name, values in given.items()}
        draws = {len(given[name]) for name, (_, note) in found.items() if note}
        others = [name for name, (values, _) in found.items() if len(values) != rows and len(values) in draws]
        self._arrays = {name: values for name, (values, _) in found.items() if name not in others}
        # The arrays that were swapped, and those of draws of parameters
        self.notes = tuple(note for _, note in found.values() if note)
        self.notes += (f"not read, as draws without rows: {', '.join(others)}",) if others else ()
        self.schema = pa.schema([(name, _column(values[:0]).type) for name, values in self._arrays.items()])

    def with_rows(self, rows: int) -> "ArrayTable":
        """Return the table of arrays with a given number of rows, which may be along the second axis."""
        return self if self.rows == rows else ArrayTable(self._arrays, rows)

    def split(self, names: Sequence[str]) -> "ArrayTable":
        """Return the columns of the only array under these names; itself if there are more or fewer."""
        values, *others = self._arrays.values()
        matrix = values[:, None] if values.ndim == 1 else values
        if others or matrix.ndim != 2 or matrix.shape[1] != len(names):  # noqa: PLR2004 - a matrix
            return self
        return ArrayTable({name: matrix[:, place] for place, name in enumerate(names)})

    @property
    def rows(self) -> int:
        return len(next(iter(self._arrays.values())))

    def nbytes(self, columns: Sequence[str]) -> int:
        return sum(self._arrays[name].nbytes for name in columns)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        yield from MemoryTable(pa.table({name: _column(self._arrays[name]) for name in columns})).batches(columns)


def npy_table(file: File) -> ArrayTable:
    """Open a .npy file; its array is the column ``embedding``."""
    if file.content_starts(ZIP):
        raise DataError("the file is an archive of arrays. Name it .npz, or pass --input-format npz")
    with file.open() as stream:
        return ArrayTable({"embedding": _array(stream, "the file")})


def npz_table(file: File) -> ArrayTable:
    """Open a .npz file; its named arrays are the columns."""
    with file.open() as stream, zipfile.ZipFile(stream) as archive:
        listed = archive.infolist()
        places = [member.header_offset for member in listed]
        stream.seek(-ZIP_END_BYTES - len(archive.comment), 2)  # zipfile reads only the last of several archives
        if stream.read(len(ZIP_END)) != ZIP_END or min(places, default=0):
            raise DataError("other bytes precede or follow the archive. Were files appended? Pass them as two files")
        members, unpacked = [member.filename for member in listed], sum(member.file_size for member in listed)
        if any(member.endswith(".pkl") for member in members):
            raise DataError("the archive holds a pickle, unsafe to load: it can run any code. Export to Parquet")
        if not members or not all(member.endswith(SUFFIX) for member in members):
            raise DataError("the archive holds other files than arrays")
        if unpacked > (room := available_memory()):
            raise DataError(f"the archive unpacks to {unpacked:,} bytes, and {room:,} are free. Use fewer rows")
        require_different(members, "the archive")
        arrays = {}
        for member in members:
            with archive.open(member) as packed:
                arrays[member.removesuffix(SUFFIX)] = _array(packed, f"its member {member!r}")
    return ArrayTable(arrays)


def _array(stream: BufferedIOBase | IO[bytes], name: str) -> AnyArray:
    """Return the only array of a stream of bytes."""
    if stream.read(len(NPY_MAGIC)) != NPY_MAGIC:
        raise DataError(f"{name} is no NumPy array. Was its writer interrupted? Write it again")
    stream.seek(0)
    values: AnyArray = np.load(stream, allow_pickle=False)
    if stream.read(1):
        msg = f"other bytes follow the array of {name}. Were arrays appended? Save them as .npz, or as two files"
        raise DataError(msg)
    return values


def _column(values: AnyArray) -> pa.Array:
    """Return an array (n,) or (n, ...) as an Arrow column; draws of several targets, (n, m, t), are lists of lists."""
    if values.ndim > VECTORS_OF_DRAWS:
        values = values.reshape(len(values), math.prod(values.shape[1:]))
    return list_column(values)


def safetensors_table(file: File) -> ArrayTable:
    """Open a file of tensors as columns, with rows along the first axis; a single tensor is the embedding."""
    content = file.content()
    length = int.from_bytes(content[:LENGTH_BYTES], "little")
    body = content[LENGTH_BYTES + length :]
    header = json.loads(content[LENGTH_BYTES : LENGTH_BYTES + length])
    if not isinstance(header, dict):
        raise DataError("the header is not a JSON object")
    header.pop("__metadata__", None)
    tensors = {name: _tensor(name, details, body) for name, details in header.items()}
    if len(body) != (listed := max((details["data_offsets"][1] for details in header.values()), default=0)):
        raise DataError(f"it has {len(body):,} bytes of data, its header lists {listed:,}. Were files appended?")
    return ArrayTable({"embedding": next(iter(tensors.values()))} if len(tensors) == 1 else tensors)


def _tensor(name: str, details: Any, body: bytes) -> AnyArray:
    """Return one array from the data section."""
    try:
        kind, shape, (start, stop) = details["dtype"], [int(size) for size in details["shape"]], details["data_offsets"]
        values = np.frombuffer(body[start:stop], dtype=TYPES[kind]).reshape(shape)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"tensor {name!r} does not match its header ({error})") from error
    if kind == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values


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
