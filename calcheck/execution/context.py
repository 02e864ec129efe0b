"""The settings of one run: everything that a computation may use besides its data and options."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from calcheck.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    from calcheck.execution.backend import Backend, Precision
    from calcheck.execution.checkpoint import Checkpoint
    from calcheck.execution.executor import Executor

    Progress = Callable[[str, float], None]

GIB, SMALL_BYTES = 1 << 30, 1 << 26
LEAST_RESAMPLES = 100  # fewer have no tails to speak of
LEAST_REPLICATES = 19  # fewer cannot reject at 5 %
MOST_RESAMPLES, MAX_REPLICATES = 10_000_000, 1_000_000  # more would tell nothing more


class RandomStream(IntEnum):
    """The uses of random numbers; each has a generator of its own (:meth:`Run.rng`)."""

    DOF = 1
    DRAWS = 2
    FEATURES = 3
    SUBSAMPLE = 5
    RESIDUAL = 6
    RESAMPLES = 7
    REPLICATES = 8
    LANDMARKS = 9
    NOISE = 10
    SIGNS = 11
    PERMUTATIONS = 20


SUFFIXES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": GIB}


def parse_memory(text: str) -> int:
    """Read an amount of memory.

    Parameters
    ----------
    text : str
        A number with an optional suffix: ``"800MB"``, ``"1.5 GiB"``; bytes without one.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    OptionError
        The text is no such amount.

    Examples
    --------
    >>> parse_memory("1.5GiB")
    1610612736
    """
    trimmed = text.strip()
    number = trimmed.rstrip("BbKkMmGgIi ")
    factor = SUFFIXES.get(trimmed[len(number) :].strip().upper() or "B")
    try:
        size = float(number) * (factor or 0)
    except ValueError:
        size = 0.0
    if not 0 < size < float("inf"):
        msg = f"--memory must be an amount such as 800MB or 1.5GiB, got {text!r}"
        raise OptionError(msg)
    return int(size)


def default_memory() -> int:
    """Return 4 GiB, or half of the machine's memory if that is less, in bytes."""
    import os

    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not every system tells
        return 4 * GIB
    return min(4 * GIB, machine // 2)


def silent(stage: str, share: float) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Run:
    """Where a computation runs and from which seed.

    Parameters
    ----------
    seed : int
        Root of all random numbers, >= 0.
    device : str or None
        A torch device; None for numpy.
    precision : str
        ``"float64"`` or ``"float32"``.
    memory : int
        Bytes that large arrays may take together.
    progress : callable
        Is told the name of a stage and the share of it that is done, in [0, 1].
    confidence : float
        Of intervals and verdicts, in (0, 1).
    resamples : int or None
        Of the bootstrap; 0 for no bootstrap. By default 10,000, or none, for functions of means of columns; 200 to
        1,000 for metrics of many columns.
    replicates : int or None
        Replicates of the targets, drawn from the predictions, that tell what a perfect model scores; 0 for none. By
        default 199; 1,999 for metrics that are tested at each input, up to 2,048 rows and inputs; and 39, the fewest
        that allow a test at 5 %, where the distributions do not fit in memory and are read again for each, and from a
        million rows on for metrics of all rows together.
    keep_rows : bool
        Whether what is said of each row is wanted, besides the value.
    fdr : float
        Share of the inputs called incongruent that may be so by chance, in (0, 1).
    executor : Executor, optional
        Workers that sum rows, in place of this process.
    checkpoint : Checkpoint, optional
        Keeps sums on the way, to continue from.

    Raises
    ------
    OptionError
        A setting is out of its range.
    """

    seed: int = 0
    device: str | None = None
    precision: Precision = "float64"
    memory: int = field(default_factory=default_memory)
    progress: Progress = silent
    confidence: float = 0.95
    resamples: int | None = None
    replicates: int | None = None
    fdr: float = 0.05
    keep_rows: bool = False
    executor: Executor | None = None
    checkpoint: Checkpoint | None = None

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            msg = f"--confidence must lie strictly between 0 and 1, got {self.confidence}"
            raise OptionError(msg)
        if not 0 < self.fdr < 1:
            msg = f"--fdr must lie strictly between 0 and 1, got {self.fdr}"
            raise OptionError(msg)
        self._require_count("resamples", self.resamples, LEAST_RESAMPLES, MOST_RESAMPLES, "--no-bootstrap")
        self._require_count("replicates", self.replicates, LEAST_REPLICATES, MAX_REPLICATES, "--no-null")
        if self.seed < 0:
            msg = f"--seed must be >= 0, got {self.seed}"
            raise OptionError(msg)

    @staticmethod
    def _require_count(name: str, count: int | None, least: int, most: int, without: str) -> None:
        """Raise unless a count is absent, 0, or within its limits."""
        if count not in (None, 0) and not least <= count <= most:
            msg = f"--{name} must be at least {least} and at most {most:,}, got {count}. To do without, {without}"
            raise OptionError(msg)

    def require_room(self, needed: int, what: str) -> None:
        """Raise if something takes more bytes than large arrays may; what is small is never refused.

        Raises
        ------
        OptionError
            It does.
        """
        if needed > max(self.memory, SMALL_BYTES):
            told = f"{needed / GIB:,.1f} GiB, and --memory allows {self.memory / GIB:,.1f} GiB"
            msg = f"{what} takes {told}: take fewer, or pass more memory"
            raise OptionError(msg)

    def quiet(self) -> Run:
        """Return the same run without progress."""
        return replace(self, progress=silent)

    def for_worker(self) -> Run:
        """Return the same run as it can be sent to another process."""
        return replace(self, progress=silent, executor=None, checkpoint=None)

    def rng(self, stream: RandomStream, *number: int) -> Generator:
        """Return the generator of one use of randomness, independent of all others.

        Parameters
        ----------
        stream : RandomStream
            The use.
        number : int
            Which of several of the kind: the trial, for draws; as many numbers as tell them apart.
        """
        import numpy as np

        return np.random.default_rng([self.seed, stream, *(number or (0,))])

    def backend(self) -> Backend:
        """Return the array library that this run computes with.

        Raises
        ------
        OptionError
            The device is not there.
        """
        from calcheck.execution.backend import backend

        return backend(self.device, self.precision)
