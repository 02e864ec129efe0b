"""Intact files to damage, in every format and layout that calcheck reads."""

import csv
import io
import itertools
import json
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

from calcheck.metrics import METRICS
from tests.helpers.files import columns, table, wide

N, LEVELS = 30, (0.1, 0.5, 0.9)
DAMAGED, WHOLE = "DAMAGED", "whole.parquet"  # in arguments: the damaged file, and an intact second one
ROW_METRICS = ("evaluate", *(name for name, metric in METRICS.items() if not metric.info.conditional))


@dataclass(frozen=True)
class Seed:
    """A file, and the arguments that it is read with."""

    name: str
    ending: str
    table: pa.Table = field(repr=False)
    arguments: str = DAMAGED
    metrics: tuple[str, ...] = field(default=ROW_METRICS, repr=False)
    metric_options: str = ""  # options of the metric only
    beside: pa.Table | None = field(default=None, repr=False)


def cells(column):
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):  # Python has neither nanoseconds nor years above 9999
        return column.cast(pa.string()).to_pylist()


def arrays(made):
    return {name: array(cells(made[place])) for place, name in enumerate(made.column_names)}


def array(values):
    try:
        return np.asarray(values)
    except (ValueError, OverflowError):  # ragged, or without a common type
        return np.fromiter(values, object, len(values))


def parquet(made, sink):
    try:
        pq.write_table(made, sink)
    except pa.ArrowException:  # Parquet has neither intervals of months nor very large times
        feather.write_feather(made, sink)


def stream(made, sink):
    with pa.ipc.new_stream(sink, made.schema) as opened:
        opened.write_table(made)


def npy(made, sink):
    np.save(sink, next(iter(arrays(made).values()), np.empty(0)))


def npz(made, sink):
    np.savez(sink, **arrays(made))


def netcdf(made, sink):
    """Write draws as ArviZ does, by chain, draw and row; without h5py only the first bytes."""
    if not find_spec("h5py"):
        sink.write(b"\x89HDF\r\n\x1a\n")
        return
    import h5py

    with h5py.File(sink, "w") as file:
        for name, values in arrays(made).items():
            group, _, variable = name.partition("/")
            if values.dtype.kind in "fiu" and values.size and variable and group not in file:
                shaped = values.T[None] if values.ndim == 2 else values
                inside = file.create_group(group)
                inside[variable] = shaped
                axes = zip(("chain", "draw") if values.ndim == 2 else (), shaped.shape, strict=False)
                for axis, size in axes:
                    inside[axis] = np.arange(size)


def to_bytes_by(write):
    """Return a function from a table to bytes, given one that writes to a file."""

    def to_bytes(made):
        sink = io.BytesIO()
        write(made, sink)
        return sink.getvalue()

    return to_bytes


def to_csv(made, delimiter=","):
    """Return delimited text; names that contain | are split over several header lines."""
    names = itertools.zip_longest(*(name.split("|") for name in made.column_names), fillvalue="")
    sink = io.StringIO()
    csv.writer(sink, delimiter=delimiter, lineterminator="\n").writerows(
        [*names, *zip(*map(cells, made.columns), strict=True)]
    )
    return sink.getvalue().encode()


def lines(made):
    records = (dict(zip(made.column_names, row, strict=True)) for row in zip(*map(cells, made.columns), strict=True))
    return "".join(json.dumps(record, default=str) + "\n" for record in records).encode()


def safetensors(made):
    header, body = {}, b""
    for name, values in arrays(made).items():
        stored = values if values.dtype == float else np.frombuffer(str(values.tolist()).encode(), "u1")
        place = [len(body), len(body) + stored.nbytes]
        kind = "F64" if stored is values else "U8"
        header[name] = {"dtype": kind, "shape": stored.shape, "data_offsets": place}
        body += stored.tobytes()
    start = json.dumps(header).encode()
    return len(start).to_bytes(8, "little") + start + body


WRITERS = {
    "parquet": to_bytes_by(parquet),
    "csv": to_csv,
    "tsv": lambda made: to_csv(made, "\t"),
    "feather": to_bytes_by(feather.write_feather),
    "arrow": to_bytes_by(stream),
    "jsonl": lines,
    "npy": to_bytes_by(npy),
    "npz": to_bytes_by(npz),
    "safetensors": safetensors,
    "nc": to_bytes_by(netcdf),
}
TEXT = ("csv", "tsv", "jsonl")

RNG = np.random.default_rng(0)
PLAIN = columns(n=N)
WIDE = table(wide(PLAIN) | {"group": np.array(["a", "é", "c"] * (N // 3))})
DRAWS = RNG.normal(size=(N, 5))
QUANTILES = np.sort(RNG.normal(size=(N, len(LEVELS))), axis=1)
COUNTS = {"y": RNG.poisson(3, N), "rate": RNG.uniform(1, 5, N), "alpha": RNG.uniform(1, 2, N)}
KEYS = {
    "location": np.array([f"{place:02d}" for place in range(N // 3) for _ in range(3)]),
    "horizon": np.arange(N) % 3,
    "target_end_date": np.array([np.datetime64("2024-01-06") + 7 * (row % 3) for row in range(N)]),
}


def without(*names):
    return {name: values for name, values in PLAIN.items() if name not in names}


def long(named, level, value):
    """Spread quantiles over rows."""
    rows = {name: np.repeat(values, len(LEVELS)) for name, values in named.items()}
    return rows | {level: np.tile(LEVELS, N), value: QUANTILES.ravel()}


def hub(level):
    made = long(KEYS, "output_type_id", "value")
    kinds = {
        "output_type": np.full(N * len(LEVELS), "quantile"),
        "output_type_id": made["output_type_id"].astype(level),
    }
    return table(made | kinds)


EMBEDDED = ("cce", "cce", *ROW_METRICS)
PARAMETERS = {  # of each family, made extreme by damage
    "gaussian": ("loc", "scale"),
    "laplace": ("loc", "scale"),
    "student-t": ("df", "loc", "scale"),
    "nig": ("gamma", "v", "alpha", "beta"),
    "cauchy": ("loc", "scale"),
    "lognormal:scipy": ("s", "scale"),
    "gamma:scipy": ("a", "scale"),
    "weibull:scipy": ("c", "scale"),
    "poisson": ("rate",),
    "nbinom:pymc": ("mu", "alpha"),
    "double-poisson": ("mu", "phi"),
}


def family_table(names):
    """Return a table of targets, inputs and parameters that all families allow."""
    parameters = {name: RNG.uniform(1.1, 2, N) for name in names}
    return table({"y": RNG.poisson(2, N) + 1.0, **parameters, "embedding": PLAIN["embedding"]})


APART = {
    "arguments": f"{WHOLE} --embedding {DAMAGED}",
    "metrics": ("cce", "evaluate"),
    "beside": table(without("embedding")),
}
AT = {"arguments": WHOLE, "metrics": ("cce",), "metric_options": f"--at {DAMAGED}", "beside": table(PLAIN)}
TRUTH = {"arguments": f"{WHOLE} --truth {DAMAGED} --join-on location,horizon", "beside": hub("U4")}
HUB = {
    "arguments": f"{DAMAGED} --truth {WHOLE} --join-on location,horizon",
    "beside": table(KEYS | {"observation": PLAIN["y"]}),
}
SERVED = {"arguments": f"{DAMAGED} --truth {WHOLE}", "beside": table({"y": QUANTILES.ravel()})}
VECTORS = table({"embedding": PLAIN["embedding"]})
NIXTLA = {"y": PLAIN["y"], "M": QUANTILES[:, 1], "M-lo-80": QUANTILES[:, 0], "M-hi-80": QUANTILES[:, 2]}
GLUON = {
    "mean": QUANTILES,
    "quantiles": [{str(level): row.tolist() for level in LEVELS} for row in QUANTILES],
    "samples": pa.array([[row.tolist()] * 2 for row in QUANTILES]),
}
INTERVALS = {"y": PLAIN["y"], "mean": PLAIN["mean"], "lower_80": QUANTILES[:, 0], "upper_80": QUANTILES[:, 2]}
DICTIONARY = table(PLAIN).append_column("group", pa.array(["a", "é", "c"] * (N // 3)).dictionary_encode())
SKPRO = {"|": np.arange(N), **{f"y|{level}": QUANTILES[:, place] for place, level in enumerate(LEVELS)}}
LEGACY = {"type": np.full(N * len(LEVELS), "quantile")}
SCORING = {**KEYS, "observed": PLAIN["y"], "model": np.full(N, "M")}
SEEDS = (
    *(Seed("gaussian", ending, table(PLAIN), metrics=EMBEDDED) for ending in ("parquet", "feather", "arrow", "npz")),
    *(Seed("gaussian, wide", ending, WIDE, metrics=EMBEDDED) for ending in ("csv", "tsv")),
    Seed("lists as text", "csv", table(PLAIN), metrics=EMBEDDED),
    Seed("residuals", "csv", table({"error": PLAIN["y"], "v": PLAIN["std"]}), f"{DAMAGED} --var v"),
    Seed("logs", "parquet", table(without("id")), f"{DAMAGED} --log-std std --nan-policy omit"),
    Seed("least spread", "csv", WIDE, f"{DAMAGED} --std std --min-std 0.1 --nan-policy omit"),
    Seed("two targets", "csv", WIDE, f"{DAMAGED} --target y,mean --mean emb_0,emb_1 --std std,std"),
    Seed("inputs", "csv", WIDE, f"{DAMAGED} --inputs emb_0,emb_1", ("cce", "evaluate")),
    Seed("counts", "csv", table(COUNTS), f"{DAMAGED} --dist poisson"),
    Seed("counts", "parquet", table(COUNTS), f"{DAMAGED} --dist nbinom:pymc --param mu=rate"),
    Seed("draws", "csv", table({"y": PLAIN["y"], **{f"sample_{s}": DRAWS[:, s] for s in range(5)}})),
    Seed("draws", "parquet", table({"y": PLAIN["y"], "samples": DRAWS})),
    Seed("embedding", "npy", VECTORS, **APART),
    Seed("embedding", "npz", table({"id": PLAIN["id"], "embedding": PLAIN["embedding"]}), **APART),
    Seed("embedding", "parquet", table({"id": PLAIN["id"][::-1], "embedding": PLAIN["embedding"]}), **APART),
    Seed("embedding", "safetensors", VECTORS, **APART),
    Seed("at", "parquet", table(PLAIN), **AT),
    Seed("at", "csv", WIDE, **AT),
    Seed("at", "npy", VECTORS, **AT),
    Seed("hubverse", "csv", hub("f8"), **HUB),
    Seed("hubverse", "parquet", hub("U4"), **HUB),
    Seed("legacy hub", "csv", table(LEGACY | long(KEYS, "quantile", "value")), **HUB),
    Seed("scoringutils", "csv", table(long(SCORING, "quantile_level", "predicted"))),
    Seed("skpro", "csv", table(SKPRO), f"{DAMAGED} --truth {WHOLE}", beside=table({"y": PLAIN["y"]})),
    Seed("nixtla", "csv", table(NIXTLA)),
    Seed("levels", "csv", table({"y": PLAIN["y"], **dict(zip(map(str, LEVELS), QUANTILES.T, strict=True))})),
    Seed("gluonts", "jsonl", table(GLUON), **SERVED),
    Seed("flat", "jsonl", table(PLAIN)),
    Seed("truth", "csv", table(KEYS | {"observation": PLAIN["y"]}), **TRUTH),
    Seed("truth", "parquet", table(KEYS | {"oracle_value": PLAIN["y"]}), **TRUTH),
    Seed("intervals", "csv", table(INTERVALS), metrics=("evaluate", "coverage", "interval-score")),
    Seed("dictionary", "arrow", DICTIONARY, f"{DAMAGED} --embedding embedding", metrics=EMBEDDED),
    Seed("arviz", "nc", table({"posterior_predictive/y": DRAWS, "observed_data/y": PLAIN["y"]})),
)
MIXTURE = {"y": PLAIN["y"], "loc": DRAWS, "scale": np.exp(DRAWS), "weight": np.full(DRAWS.shape, 1 / 5)}
JOINT = {"y": DRAWS[:, :2], "loc": DRAWS[:, 2:4], "cholesky": np.tile([1.0, 0.5, 0.9], (N, 1))}
SINGLE = {name: values.astype("f4") if name in ("y", "mean", "std") else values for name, values in PLAIN.items()}
FAMILIES = tuple(
    Seed(f"{name}, with inputs", "parquet", made, f"{DAMAGED} --dist {family}", ("evaluate", *METRICS))
    for name, family, made in (
        *((family, family, family_table(names)) for family, names in PARAMETERS.items()),
        ("mixture", "mixture", table(MIXTURE | {"embedding": PLAIN["embedding"]})),
        ("joint normal", "joint-gaussian", table(JOINT | {"embedding": PLAIN["embedding"]})),
        ("single precision", "gaussian", table(SINGLE)),
    )
)
"""Files on which every metric is computed, which takes long."""
