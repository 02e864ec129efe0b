"""Options that commands share: how results are shown, and how computations run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calcheck.errors import OptionError
from calcheck.options import option

FORMAT_NAMES = Literal["table", "json"]
INPUT_FORMATS = Literal["parquet", "csv", "tsv", "arrow", "npy", "npz"]


@dataclass(frozen=True)
class InputOptions:
    """What a command reads besides its columns."""

    input_format: INPUT_FORMATS | None = option(
        None, "Format of FILE where its name does not tell; needed for standard input."
    )


@dataclass(frozen=True)
class RowOptions:
    """Which rows a metric uses, and where."""

    subsample: int | None = option(None, "Use so many rows of FILE, chosen at random.")
    at: str | None = option(
        None,
        "Evaluate at the inputs of another file, no targets needed: FILE[:COLUMN], .npy or .npz.",
        metavar="FILE",
    )


@dataclass(frozen=True)
class OutputOptions:
    """What is shown and written."""

    format: FORMAT_NAMES = option("table", "Format of the report.")
    output: str | None = option(
        None, "Write the report to a file in place of standard output.", metavar="PATH", short="-o"
    )
    pointwise: str | None = option(
        None, "Write the value at each row with the row's other columns, as .parquet or .csv.", metavar="PATH"
    )
    worst: int = option(0, "List so many rows with the largest values.")
    best: int = option(0, "List so many rows with the smallest values.")

    def __post_init__(self) -> None:
        for name in ("worst", "best"):
            if getattr(self, name) < 0:
                msg = f"--{name} must be >= 0, got {getattr(self, name)}"
                raise OptionError(msg)


@dataclass(frozen=True)
class SeedOptions:
    """What makes random choices repeatable."""

    seed: int = option(0, "Seed of all random choices.")


@dataclass(frozen=True)
class EngineOptions:
    """How kernel computations run; none of it changes results beyond rounding."""

    device: str | None = option(
        None, "Compute with torch on a device: cpu, cuda, cuda:1, mps. Default: numpy.", metavar="DEVICE"
    )
    precision: Literal["float64", "float32"] = option("float64", "Precision of kernel computations.")
    memory: str | None = option(
        None, "Memory for large arrays, as 800MB or 2GiB. Default: 4GiB, or half of the machine's.", metavar="SIZE"
    )
