"""Files that are cut at every border of their structure, or appended to each other: `python -m tests.fuzz.joining`.

Each is refused in one line, or the rows that are read are those that it holds: the lines of a text that is cut, and the
rows of both files if they are appended.
"""

import argparse
import bz2
import csv
import gzip
import io
import json
import lzma
import re
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

from calcheck import read
from calcheck.errors import CalcheckError
from tests.fuzz.seeds import WRITERS, lines, to_bytes_by
from tests.helpers.files import columns, table, wide

N, OTHER, GROUP = 24, 17, 5  # rows of a file and of the one that is appended; rows of a batch or row group
REFUSED, RIGHT = "refused", "right"


def rows_of(n, seed):
    """Return columns with names of rows that differ between seeds, and texts with line breaks and quotes."""
    made = columns(n=n, seed=seed)
    return made | {"id": made["id"] + 1000 * seed, "note": np.array([NOTES[row % len(NOTES)] for row in range(n)])}


NOTES = ("a", 'two\nlines, and a "quote"', "é", "b")


def parquet(**options):
    return to_bytes_by(lambda made, sink: pq.write_table(made, sink, row_group_size=GROUP, **options))


def ipc_file(**options):
    return to_bytes_by(lambda made, sink: feather.write_feather(made, sink, **options))


def first_feather(made):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # this version is deprecated
        return ipc_file(version=1)(made.drop(["embedding"]))


def stream(made):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, made.schema) as opened:
        opened.write_table(made, max_chunksize=GROUP)
    return sink.getvalue()


def records(made, indent=None):
    return json.dumps([json.loads(line) for line in lines(made).splitlines()], indent=indent).encode()


def safetensors(made):
    """Write the columns of numbers; targets and predictions come first."""
    return WRITERS["safetensors"](made.select(["y", "mean", "std"]))


def draws(made):
    y = made["y"].to_numpy()
    drawn = np.random.default_rng(0).normal(size=(len(y), 4))
    return WRITERS["nc"](table({"posterior_predictive/y": drawn, "observed_data/y": y}))


def compressed(compress, write):
    return lambda made: compress(write(made))


@dataclass(frozen=True)
class Format:
    """A way to write a file, and the bytes that its borders begin with."""

    ending: str
    write: object
    marks: bytes = b""
    wide: bool = False

    def content(self, n, seed):
        parts = rows_of(n, seed)
        return self.write(table(wide(parts) if self.wide else parts))


def zstd(content):
    return pa.compress(content, "zstd", asbytes=True)


PAGES = rb"PAR1|\x15[\x00\x04\x06]\x15"
IPC = rb"\xff\xff\xff\xff|ARROW1|FEA1"
FORMATS = {
    "csv": Format("csv", WRITERS["csv"], rb'[\n,"]', wide=True),
    "tsv": Format("tsv", WRITERS["tsv"], rb'[\n\t"]', wide=True),
    "jsonl": Format("jsonl", lines, rb'[{}\n\[\]]|, "'),
    "json": Format("json", records, rb'[{}\[\]]|, "'),
    "json, indented": Format("json", lambda made: records(made, indent=1), rb"[{}\[\]\n]"),
    "parquet": Format("parquet", parquet(), PAGES),
    "parquet, indexed": Format("parquet", parquet(write_page_index=True, use_dictionary=False), PAGES),
    "parquet, filters": Format("parquet", parquet(bloom_filter_options={"y": {}}, compression="zstd"), PAGES),
    "arrow file": Format("arrow", ipc_file(compression="uncompressed", chunksize=GROUP), IPC),
    "feather, lz4": Format("feather", ipc_file(compression="lz4"), IPC),
    "feather, version 1": Format("feather", first_feather, IPC),
    "arrow stream": Format("arrow", stream, IPC),
    "npz": Format("npz", lambda made: WRITERS["npz"](made.drop(["note"])), rb"PK..|\x93NUMPY"),
    "safetensors": Format("safetensors", safetensors, rb"[{}\[\]]"),
    "netcdf": Format("nc", draws, rb"TREE|HEAP|SNOD|OHDR|\x89HDF"),
    "csv.gz": Format("csv.gz", compressed(gzip.compress, WRITERS["csv"]), wide=True),
    "csv.bz2": Format("csv.bz2", compressed(bz2.compress, WRITERS["csv"]), wide=True),
    "csv.xz": Format("csv.xz", compressed(lzma.compress, WRITERS["csv"]), wide=True),
    "csv.zst": Format("csv.zst", compressed(zstd, WRITERS["csv"]), wide=True),
    "jsonl.gz": Format("jsonl.gz", compressed(gzip.compress, lines)),
    "jsonl.bz2": Format("jsonl.bz2", compressed(bz2.compress, lines)),
    "jsonl.xz": Format("jsonl.xz", compressed(lzma.compress, lines)),
    "jsonl.zst": Format("jsonl.zst", compressed(zstd, lines)),
    "parquet.gz": Format("parquet.gz", compressed(gzip.compress, parquet())),
}


@dataclass(frozen=True)
class Case:
    """Bytes of a file, and the numbers of rows that may be read from it."""

    made: str
    content: bytes
    rows: set[int]


def cases(name):
    """Return all cuts of a file, and all files in a row."""
    chosen = FORMATS[name]
    first, second = chosen.content(N, 1), chosen.content(OTHER, 2)
    return [*_cuts(chosen, first), *_joined(chosen, first, second)]


def _cuts(chosen, content):
    """Yield the file cut at, before and after each border."""
    borders = [found.span() for found in re.finditer(chosen.marks, content, re.DOTALL)] if chosen.marks else []
    near_end, parts = range(len(content) - 32, len(content)), range(0, len(content), len(content) // 64)
    places = {place + near for place in (*chain(*borders), *near_end, *parts) for near in (-1, 0, 1)}
    for place in sorted(place for place in places if 0 < place < len(content)):
        yield Case(f"cut at {place}", content[:place], _rows_that_are_there(chosen, content[:place]))


def _rows_that_are_there(chosen, content):
    """Return how many rows a text holds that was cut, the last perhaps in its last cell; other files hold none."""
    if chosen.ending == "jsonl":
        return {content.count(b"{")}
    if chosen.ending not in ("csv", "tsv"):
        return set()
    text = io.StringIO(content.decode(errors="replace"), newline="")
    return {len(list(csv.reader(text, delimiter="," if chosen.ending == "csv" else "\t"))) - 1}


def _joined(chosen, first, second):
    """Yield files in a row, and a file with other bytes before or after it; no row of any may be lost."""
    for made, parts, rows in (
        ("to itself", (first, first), 2 * N),
        ("to another", (first, second), N + OTHER),
        ("to another, reversed", (second, first), N + OTHER),
        ("without its last byte, to another", (first[:-1], second), N + OTHER),
        ("three", (first, second, first), 2 * N + OTHER),
        ("after zeros", (bytes(16), first), N),
        ("before zeros", (first, bytes(16)), N),
        ("before text", (first, b"the end"), N),
    ):
        yield Case(made, b"".join(parts), {rows})
    for part in range(1, 8):
        place = len(first) * part // 8
        there = {rows + OTHER for rows in _rows_that_are_there(chosen, first[:place])}
        yield Case(f"cut at {place}, to another", first[:place] + second, there)


def outcome(name, case, folder):
    """Return what happens to a file: that it is refused in one line, that its rows are right, or what is wrong."""
    path = Path(folder, f"preds.{FORMATS[name].ending}")
    path.write_bytes(case.content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rows = len(read(str(path)).predictions())
    except CalcheckError as error:
        return REFUSED if "\n" not in str(error) else "refused in more than a line"
    except Exception as error:  # noqa: BLE001 - these are the findings
        return f"{type(error).__name__}: {error}"
    return RIGHT if rows in case.rows else f"{rows} rows, not {sorted(case.rows)}"


def main():
    """Run all files, and print the outcomes of each format."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.joining", description=__doc__.splitlines()[0])
    parser.add_argument("formats", nargs="*", default=list(FORMATS))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in parser.parse_args().formats:
            found = [(case.made, outcome(name, case, folder)) for case in cases(name)]
            counts = Counter(what if what in (REFUSED, RIGHT) else "wrong" for _, what in found)
            print(f"{name:20} {counts[REFUSED]:6,} refused {counts[RIGHT]:6,} right {counts['wrong']:6,} wrong")
            for made, what in found:
                if what not in (REFUSED, RIGHT):
                    print(f"    {made}: {what}"[:200])
            wrong += counts["wrong"]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
