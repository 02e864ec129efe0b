"""Which rows depend on each other, as the user states it."""

from __future__ import annotations

from dataclasses import dataclass

from calcheck.errors import OptionError
from calcheck.options import option


@dataclass(frozen=True)
class RowDependence:
    """Options that state which rows depend on each other; by default none do.

    Parameters
    ----------
    cluster : str, optional
        Column whose equal values are one cluster; other rows are independent of it.
    block : int, optional
        Number of consecutive times of a series that are resampled together, or of rows without a column of times.
    time : str, optional
        Column of times. Rows are a series, and those of one time stay together.

    Raises
    ------
    OptionError
        The block is empty, or clusters are combined with a series.
    """

    cluster: str | None = option(
        None,
        "Column of rows that depend on each other, such as those of one patient. Intervals and p-values then resample"
        " whole clusters.",
        metavar="COLUMN",
    )
    block: int | None = option(
        None,
        "Rows are a series: number of consecutive rows that are resampled together, or of times with --time.",
        metavar="LENGTH",
    )
    time: str | None = option(
        None,
        "Column of times: rows are a series, and rows of one time stay together. The length of the blocks is chosen"
        " from the data, unless --block is given.",
        metavar="COLUMN",
    )

    def __post_init__(self) -> None:
        if self.block is not None and self.block < 1:
            msg = f"--block must be at least 1, got {self.block}"
            raise OptionError(msg)
        other = "--time" if self.time is not None else "--block"
        if self.cluster is not None and (self.time is not None or self.block is not None):
            msg = f"--cluster and {other} contradict each other: pass only one of them"
            raise OptionError(msg)

    @property
    def is_stated(self) -> bool:
        """Whether rows depend on each other."""
        return self != RowDependence()

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        return tuple(name for name in (self.cluster, self.time) if name is not None)
