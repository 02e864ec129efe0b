"""Binary files: Arrow and Parquet, and arrays of NumPy, safetensors and NetCDF."""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BufferedIOBase
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

from calcheck.core.validation import require_different
from calcheck.errors import DataError, OptionError, named_some
from calcheck.execution.run import available_memory
from calcheck.io.arrays import common_length, rows_first
from calcheck.io.arrow_arrays import MemoryTable, plain_schema

if TYPE_CHECKING:
    from calcheck.io.files import File
    from calcheck.typing import AnyArray

ARROW_MAGIC, FEATHER = b"ARROW1", b"FEA1"  # of Arrow IPC files and Feather files of version 2; of version 1
FEATHER_START = FEATHER + bytes(4)
APPENDED = "other bytes precede the file that its footer describes. Were files appended? Pass them as two files"
TRAILER = 4 + len(ARROW_MAGIC)  # Bytes at the end of a file: length of the footer, and the magic number
CONTINUATION = b"\xff\xff\xff\xff"
IN_FOOTER, IN_MESSAGE = 1, 2  # Field index of the schema in a footer, and in a message
BLOCKS = 2, 3  # Field indices of the places of dictionaries and of batches in a footer
BLOCK = struct.Struct("<qi4xq")  # Offset, and lengths of the header and of the body
END_MARK = 8  # Bytes between the last batch and the footer
ENDIANNESS = 0  # Field index of the byte order in the schema


def arrow_table(file: File) -> MemoryTable:
    """Open a Feather file, or an Arrow IPC file or stream."""
    if _is_big_endian(file):
        msg = "the file is in big-endian byte order. Save it as Parquet, or on another machine"
        raise DataError(msg)
    if file.content_starts(FEATHER):
        if file.content().find(FEATHER_START, 1) > 0:
            raise DataError(APPENDED)
        return MemoryTable(feather.read_table(file.stream()))
    if not file.content_starts(ARROW_MAGIC):
        return MemoryTable(_streamed(file.content()))
    _require_whole(file)
    return MemoryTable(feather.read_table(file.stream()))


def _streamed(content: bytes) -> pa.Table:
    """Return the rows of a stream, or of several streams with the same columns, one after the other."""
    source, tables = pa.BufferReader(content), list[pa.Table]()
    while source.tell() < len(content):
        stream = pa.ipc.open_stream(source)
        batches, before = [], source.tell()
        with suppress(StopIteration):
            while True:
                batches.append(stream.read_next_batch())
                before = source.tell()
        if source.tell() == before:
            msg = f"the stream is truncated: it ends after {sum(map(len, batches)):,} rows without an end mark"
            raise DataError(msg)
        tables.append(pa.Table.from_batches(batches, stream.schema))
        if not tables[-1].schema.equals(tables[0].schema):
            msg = "the file holds two Arrow streams that differ in their columns. Pass them as two files"
            raise DataError(msg)
    return pa.concat_tables(tables)


def _require_whole(file: File) -> None:
    """Raise unless the batches that the footer lists reach up to the footer.

    Otherwise the file was cut, or is one of several in a row: the last footer then lists batches in the first file.
    """
    with file.open() as stream:
        end = stream.seek(0, 2)
        stream.seek(max(0, end - TRAILER))
        trailer = stream.read()
    if trailer[-len(ARROW_MAGIC) :] != ARROW_MAGIC:
        msg = "the end of the file is missing, or other bytes follow it. Is it truncated, or were files appended?"
        raise DataError(msg)
    metadata, _ = _schema_buffer(file)
    try:
        footer = _reference(metadata, 0)
        ends = [stop for place in BLOCKS for stop in _block_ends(metadata, _field(metadata, footer, place))]
    except struct.error:  # damaged; pyarrow refuses it
        return
    start = end - TRAILER - len(metadata)
    if ends and not 0 <= start - max(ends) <= END_MARK:
        raise DataError(APPENDED)


def _block_ends(metadata: bytes, vector: int | None) -> list[int]:
    """Return where each of the blocks in a vector of a footer ends in the file."""
    if vector is None:
        return []
    start = _reference(metadata, vector)
    (count,) = struct.unpack_from("<I", metadata, start)
    blocks = (BLOCK.unpack_from(metadata, start + 4 + BLOCK.size * place) for place in range(count))
    return [offset + header + body for offset, header, body in blocks]


def _is_big_endian(file: File) -> bool:
    """Return whether the schema declares big-endian; False for damaged files, which pyarrow refuses later."""
    try:
        metadata, place = _schema_buffer(file)
        schema = _field(metadata, _reference(metadata, 0), place)
        order = None if schema is None else _field(metadata, _reference(metadata, schema), ENDIANNESS)
        return order is not None and struct.unpack_from("<h", metadata, order)[0] != 0
    except struct.error:
        return False


def _schema_buffer(file: File) -> tuple[bytes, int]:
    """Return the flatbuffer that holds the schema, and the field index of the schema."""
    with file.open() as stream:
        start = stream.read(8)
        if start.startswith(ARROW_MAGIC):
            end = stream.seek(0, 2)
            stream.seek(max(0, end - TRAILER))
            (length,) = struct.unpack_from("<I", stream.read(4))
            stream.seek(max(0, end - TRAILER - length))
            return stream.read(length), IN_FOOTER
        (length,) = struct.unpack_from("<I", start, 4 if start.startswith(CONTINUATION) else 0)
        stream.seek(8 if start.startswith(CONTINUATION) else 4)
        return stream.read(length), IN_MESSAGE


def _reference(metadata: bytes, at: int) -> int:
    """Return the position that an offset in a flatbuffer refers to."""
    return at + int(struct.unpack_from("<I", metadata, at)[0])


def _field(metadata: bytes, table: int, place: int) -> int | None:
    """Return the position of a field of a flatbuffer table, None if it is absent."""
    offsets = table - struct.unpack_from("<i", metadata, table)[0]
    (size,) = struct.unpack_from("<H", metadata, offsets)
    at = 4 + 2 * place
    offset = struct.unpack_from("<H", metadata, offsets + at)[0] if at < size else 0
    return table + offset if offset else None


WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8, "FIXED_LEN_BYTE_ARRAY": 4}
"""Bytes per value of each physical type in memory; half precision becomes single precision."""
TEXT_WIDTH = 16  # Minimum bytes per text value: repeated values are stored once in the file
READ_BYTES = 1 << 16  # Read buffer per column, for local files larger than a batch
REMOTE_BYTES = 1 << 23  # Read buffer per column for object stores, where each request has a high latency
PARQUET_END = b"PARE", b"PAR1"  # Last bytes of a file with an encrypted footer, and of other files
FOOTER_SIGNATURE = 28  # Bytes of the signature after a plain footer with encrypted columns
SECOND_FILE = re.compile(
    PARQUET_END[1] + rb"\x15[\x00\x04\x06]\x15"
)  # start of a file, and of the header of its first page
ENCRYPTED = "the file is encrypted, and calcheck has no keys. Decrypt it first"


class ParquetTable:
    """Table in a Parquet file; only the requested columns are read, in batches if they are large."""

    def __init__(self, file: File) -> None:
        self._file = file
        footer, magic = _ending(file)
        if magic == PARQUET_END[0]:
            raise DataError(ENCRYPTED)
        with pq.ParquetFile(file.stream()) as opened:  # closed again: there may be thousands of files
            self.metadata, self.schema = opened.metadata, plain_schema(opened.schema_arrow)
        if footer == self.metadata.serialized_size + FOOTER_SIGNATURE:
            raise DataError(ENCRYPTED)  # pyarrow crashes when it reads encrypted columns
        _require_one_parquet_file(file, self.metadata, footer)
        self.groups = list(range(self.metadata.num_row_groups) if file.groups is None else file.groups)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.metadata.row_group(group).num_rows for group in self.groups)

    def group(self, place: int) -> tuple[int, int]:
        """Return the rows and bytes of a row group."""
        found = self.metadata.row_group(place)
        return int(found.num_rows), int(found.total_byte_size)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield batches of rows of some columns."""
        size, limits = self.nbytes(columns), self._file.limits
        if size <= limits.batch_bytes:
            yield self._opened().read_row_groups(self.groups, columns=list(columns))
            return
        rows = max(limits.batch_rows, limits.batch_bytes * self.rows // size)
        opened = self._opened(buffer_size=REMOTE_BYTES if self._file.place else READ_BYTES, pre_buffer=False)
        for batch in opened.iter_batches(rows, row_groups=self.groups, columns=list(columns)):
            yield pa.Table.from_batches([batch])

    def nbytes(self, columns: Sequence[str]) -> int:
        """Return the approximate bytes of some columns, from the metadata of the file."""
        metadata, wanted = self.metadata, set(columns)
        total = 0
        for place in range(metadata.num_columns):
            leaf = metadata.schema.column(place)
            parts = leaf.path.split(".")  # a column of lists is embedding.list.element; names may contain dots
            if any(".".join(parts[:count]) in wanted for count in range(1, len(parts) + 1)):
                chunks = [metadata.row_group(group).column(place) for group in self.groups]
                width = WIDTHS.get(leaf.physical_type, TEXT_WIDTH)
                written = 0 if leaf.physical_type in WIDTHS else sum(chunk.total_uncompressed_size for chunk in chunks)
                total += max(written, width * sum(chunk.num_values for chunk in chunks))
        return int(total)

    def _opened(self, **reading: Any) -> pq.ParquetFile:
        return pq.ParquetFile(self._file.stream(), metadata=self.metadata, **reading)


def _ending(file: File) -> tuple[int, bytes]:
    """Return the declared length of the footer, and the magic number at the end."""
    with file.open() as stream:
        stream.seek(max(0, stream.seek(0, 2) - 2 * len(PARQUET_END[0])))
        trailer = stream.read()
    return int.from_bytes(trailer[: -len(PARQUET_END[0])], "little"), trailer[-len(PARQUET_END[0]) :]


def _require_one_parquet_file(file: File, metadata: pq.FileMetaData, footer: int) -> None:
    """Raise if the file is the last of several in a row: its footer counts bytes from the start of the last one.

    As many bytes as the other files have, or more, then lie between the last column and the footer. In a single file,
    only indices and filters do.
    """
    last = metadata.num_row_groups - 1
    chunks = [metadata.row_group(last).column(place) for place in range(metadata.num_columns if last >= 0 else 0)]
    ends = [max(0, _start_of(chunk)) + chunk.total_compressed_size for chunk in chunks]
    with file.open() as stream:
        between = stream.seek(0, 2) - 2 * len(PARQUET_END[1]) - footer - max(ends, default=len(PARQUET_END[1]))
        stream.seek(0)
        start = stream.read(len(PARQUET_END[1]))
        before = stream.read(between + FOOTER_SIGNATURE) if between > 0 else b""
    if start != PARQUET_END[1] or SECOND_FILE.search(before) or between < 0:
        raise DataError(APPENDED)


def _start_of(chunk: pq.ColumnChunkMetaData) -> int:
    """Return where a column of a row group starts: at its dictionary, if it has one."""
    first = chunk.dictionary_page_offset
    return int(chunk.data_page_offset if first is None else min(first, chunk.data_page_offset))


NPY_MAGIC, SUFFIX = b"\x93NUMPY", ".npy"
ZIP, ZIP_END, ZIP_END_BYTES = b"PK\x03\x04", b"PK\x05\x06", 22  # Starts of an archive and of its end; size of the end
VECTORS_OF_DRAWS = 3  # Number of axes: rows, draws, targets


class ArrayTable:
    """Table of named arrays with rows along the first axis; higher dimensions become fixed-size lists."""

    def __init__(
        self,
        arrays: dict[str, AnyArray],  # The arrays, (n, …) each. Arrays with rows along the second axis are swapped.
        rows: int | None = None,  # The number of rows, n; by default, the length of the one-dimensional arrays
    ) -> None:
        given = {name: _numeric(values) for name, values in arrays.items() if values.ndim}
        if not given:
            msg = "there is no array with rows"
            raise DataError(msg)
        rows = common_length(given.values()) if rows is None else rows
        found = {name: rows_first(name, values, rows) for name, values in given.items()}
        self._arrays = {name: values for name, (values, _) in found.items()}
        self.notes = tuple(note for _, note in found.values() if note)  # The arrays that were swapped
        self.schema = pa.schema([(name, _column(values[:0]).type) for name, values in self._arrays.items()])

    def with_rows(self, rows: int) -> ArrayTable:
        """Return the table of arrays with a given number of rows, which may be along the second axis."""
        return self if self.rows == rows else ArrayTable(self._arrays, rows)

    def split(self, names: Sequence[str]) -> ArrayTable:
        """Return the columns of the only array under these names; itself if there are more or fewer."""
        values, *others = self._arrays.values()
        matrix = values[:, None] if values.ndim == 1 else values
        if others or matrix.ndim != 2 or matrix.shape[1] != len(names):  # noqa: PLR2004 - a matrix
            return self
        return ArrayTable({name: matrix[:, place] for place, name in enumerate(names)})

    @property
    def rows(self) -> int:
        """The number of rows of the first array."""
        return len(next(iter(self._arrays.values())))

    def nbytes(self, columns: Sequence[str]) -> int:
        """Return the bytes of some columns."""
        return sum(self._arrays[name].nbytes for name in columns)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield batches of rows of some columns."""
        yield from MemoryTable(pa.table({name: _column(self._arrays[name]) for name in columns})).batches(columns)


def npy_table(file: File) -> ArrayTable:
    """Open a .npy file; its array is the column ``embedding``."""
    return ArrayTable({"embedding": _loaded(file)})


def npz_table(file: File) -> ArrayTable:
    """Open a .npz file; its named arrays are the columns."""
    with file.open() as stream, zipfile.ZipFile(stream) as archive:
        listed = archive.infolist()
        _require_one_archive(stream, archive)
        members, unpacked = [member.filename for member in listed], sum(member.file_size for member in listed)
        if any(member.endswith(".pkl") for member in members):
            msg = "the archive holds a pickle, unsafe to load: it can run any code. Export to Parquet"
            raise DataError(msg)
        if not members or not all(member.endswith(SUFFIX) for member in members):
            msg = "the archive holds other files than arrays"
            raise DataError(msg)
        if unpacked > (room := available_memory()):
            msg = f"the archive unpacks to {unpacked:,} bytes, and {room:,} are free. Use fewer rows"
            raise DataError(msg)
        require_different(members, "the archive")
        arrays = {}
        for member in members:
            with archive.open(member) as packed:
                arrays[member.removesuffix(SUFFIX)] = _array(packed, f"its member {member!r}")
    return ArrayTable(arrays)


def _require_one_archive(stream: BufferedIOBase, archive: zipfile.ZipFile) -> None:
    """Raise if other bytes precede or follow the archive: only the last of several is read."""
    places = [member.header_offset for member in archive.infolist()]
    stream.seek(-ZIP_END_BYTES - len(archive.comment), 2)
    if stream.read(len(ZIP_END)) != ZIP_END or min(places, default=0):
        msg = "other bytes precede or follow the archive. Were files appended? Pass them as two files"
        raise DataError(msg)


def _loaded(file: File) -> AnyArray:
    """Return the array of a .npy file."""
    if file.content_starts(ZIP):
        msg = "the file is an archive of arrays. Name it .npz, or pass --input-format npz"
        raise DataError(msg)
    with file.open() as stream:
        return _array(stream, "the file")


def _array(stream: BufferedIOBase | IO[bytes], name: str) -> AnyArray:
    """Return the only array of a stream of bytes."""
    if stream.read(len(NPY_MAGIC)) != NPY_MAGIC:
        msg = f"{name} is no NumPy array. Was its writer interrupted? Write it again"
        raise DataError(msg)
    stream.seek(0)
    values: AnyArray = np.load(stream, allow_pickle=False)
    if stream.read(1):
        msg = f"other bytes follow the array of {name}. Were arrays appended? Save them as .npz, or as two files"
        raise DataError(msg)
    return values


def _numeric(values: AnyArray) -> AnyArray:
    """Return numbers in native byte order."""
    if values.dtype.kind not in "fiub":
        msg = f"an array of type {values.dtype} does not hold real numbers"
        raise DataError(msg)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _column(values: AnyArray) -> pa.Array:
    """Return an array (n,) or (n, ...) as an Arrow column; draws of several targets, (n, m, t), are lists of lists."""
    column = pa.array(np.ascontiguousarray(values).reshape(-1))
    inner = values.shape[1:] if values.ndim == VECTORS_OF_DRAWS else (math.prod(values.shape[1:]),)
    for length in reversed(inner if values.ndim > 1 else ()):
        column = pa.FixedSizeListArray.from_arrays(column, length)
    return column


LENGTH_BYTES = 8  # Size of the header length, little-endian
TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",  # bfloat16 is the upper half of a float32
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "<i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "<u1",
    "BOOL": "?",
}


def safetensors_table(file: File) -> ArrayTable:
    """Open a file of tensors as columns, with rows along the first axis; a single tensor is the embedding."""
    content = file.content()
    length = int.from_bytes(content[:LENGTH_BYTES], "little")
    body = content[LENGTH_BYTES + length :]
    header = json.loads(content[LENGTH_BYTES : LENGTH_BYTES + length])
    if not isinstance(header, dict):
        msg = "the header is not a JSON object"
        raise DataError(msg)
    header.pop("__metadata__", None)
    tensors = {name: _tensor(name, details, body) for name, details in header.items()}
    if len(body) != (listed := max((details["data_offsets"][1] for details in header.values()), default=0)):
        msg = f"it has {len(body):,} bytes of data, its header lists {listed:,}. Were files appended?"
        raise DataError(msg)
    return ArrayTable({"embedding": next(iter(tensors.values()))} if len(tensors) == 1 else tensors)


def _tensor(name: str, details: Any, body: bytes) -> AnyArray:
    """Return one array from the data section."""
    try:
        kind, shape, (start, stop) = details["dtype"], [int(size) for size in details["shape"]], details["data_offsets"]
        values = np.frombuffer(body[start:stop], dtype=TYPES[kind]).reshape(shape)
    except (KeyError, TypeError, ValueError) as error:
        msg = f"tensor {name!r} does not match its header ({error})"
        raise DataError(msg) from error
    if kind == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values


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
        msg = "NetCDF files need h5py. Install it: pip install 'calcheck[netcdf]'"
        raise OptionError(msg) from error
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
        msg = f"{len(content) - length:,} bytes follow its end. Were files appended? Pass them as two files"
        raise DataError(msg)
