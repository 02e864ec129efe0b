"""An embedding in another file than the predictions, and how its rows are found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calcheck.checks import concatenated
from calcheck.errors import DataError, FileError
from calcheck.io.files import SUFFIXES, File
from calcheck.io.tables import open_table, read_batches
from calcheck.io.values import keys, vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

REMEDY = "Give both the same rows, or an id column by which to join them"


@dataclass(frozen=True, eq=False)
class ExternalEmbedding:
    """An embedding from another file, and the keys of its rows if it has them."""

    file: File
    values: NDArray[np.floating[Any]]
    keys: NDArray[Any] | None

    @classmethod
    def read(cls, name: str, id_column: str | None) -> Self:
        """Read ``FILE`` or ``FILE:COLUMN``.

        Raises
        ------
        DataError
            There is no such file or column, its rows are no vectors, or a key comes twice.
        """
        path, column = split_column(name)
        file = File(path)
        table = open_table(file)
        names = table.schema.names
        key = id_column if id_column in names and id_column != column else None
        others = [name for name in names if name != key]
        column = column or (others[0] if len(others) == 1 else "embedding")
        if column not in others:
            msg = f"{path} has no column {column!r}. Name one as {path}:COLUMN ({', '.join(names[:12])})"
            raise FileError(msg)
        batches = [batch for batch in read_batches(file, table, [column, *([key] if key else [])]) if len(batch)]
        if not batches:
            msg = f"{path} has no rows"
            raise FileError(msg)
        try:
            values = concatenated([vectors(batch[column], column) for batch in batches], column)
            found = np.concatenate([keys(batch[key], key) for batch in batches]) if key else None
            if found is not None:
                require_unique(found, key or "")
        except DataError as error:
            msg = f"{path}: {error}"
            raise FileError(msg) from error
        return cls(file, values, found)

    def rows(self, keys: NDArray[Any] | None, start: int, count: int) -> NDArray[np.floating[Any]]:
        """Return the vectors of some rows: by key where both files have keys, else by place.

        Parameters
        ----------
        keys : (count,), optional
            The keys of the rows.
        start, count : int
            Their places.

        Raises
        ------
        DataError
            Some rows have no vector.
        """
        if keys is None or self.keys is None:
            if start + count > len(self.values):
                msg = f"there are more rows than the {len(self.values):,} of {self.file.name}. {REMEDY}"
                raise DataError(msg)
            return self.values[start : start + count]
        text = keys.dtype.kind in "OUS" or self.keys.dtype.kind in "OUS"
        known, wanted = (values.astype(str) if text else values for values in (self.keys, keys))
        places = {key: place for place, key in enumerate(known.tolist())}
        missing = [key for key in wanted.tolist() if key not in places]
        if missing:
            msg = (
                f"{len(missing):,} of {count:,} ids are not in {self.file.name}, as {missing[0]!r}"
                f" (its ids look like {known[0]!s})"
            )
            raise DataError(msg)
        return self.values[[places[key] for key in wanted.tolist()]]

    def require_all_used(self, count: int) -> None:
        """Raise if rows were joined by place and this file has more than ``count`` of them.

        Raises
        ------
        DataError
            It has.
        """
        if self.keys is None and count != len(self.values):
            msg = f"there are {count:,} rows, but {len(self.values):,} in {self.file.name}. {REMEDY}"
            raise DataError(msg)


def split_column(name: str) -> tuple[str, str | None]:
    """Take ``FILE[:COLUMN]`` apart.

    Examples
    --------
    >>> split_column("no/such/file.parquet:vector")
    ('no/such/file.parquet', 'vector')
    """
    path, colon, column = name.rpartition(":")
    return (path, column) if colon and not _exists(name) else (name, None)


def names_a_file(name: str) -> bool:
    """Tell whether a value of ``--embedding`` names a file."""
    path, _ = split_column(name)
    return Path(path).suffix.lower() in SUFFIXES or _exists(path)


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # a name too long to be one
        return False


def require_unique(keys: NDArray[Any], name: str, places: NDArray[np.intp] | None = None) -> None:
    """Raise unless every key (n,) is there once; the rows are told by their places (n,), if given.

    Raises
    ------
    DataError
        A key comes again.
    """
    text = keys.astype(str)
    values, counts = np.unique(text, return_counts=True)
    if len(values) == len(keys):
        return
    repeated = values[np.argmax(counts)]
    first, second = (np.arange(len(keys)) if places is None else places)[text == repeated][:2]
    msg = (
        f"{int((counts > 1).sum()):,} values of {name!r} come more than once, as {str(repeated)!r} in rows {first} and"
        f" {second}. Were rows appended on a rerun? Leave one of each, or name another key with --id"
    )
    raise DataError(msg)
