"""The context of a run: what a computation uses besides data and options, the memory available, batches and threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import cache
from itertools import repeat, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from calcheck.errors import DataError, OptionError
from calcheck.options import option, options_of, require_share_option
from calcheck.typing import Precision

if TYPE_CHECKING:
    from numpy.random import Generator

    from calcheck.execution.backend import Backend
    from calcheck.predictions import Predictions, Source

ItemT = TypeVar("ItemT")
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Limits:
    """Sizes at which a computation samples rows or gets cheaper; no options, so that a file has one result."""

    # Maximum multiply-adds for an exact solver of cce. The default is 40,000 rows of 512 columns: one to two minutes.
    max_exact_flops: float = 2e13
    # Maximum rows over which cce on landmarks is averaged; the relative standard error is then below one percent
    evaluated_rows: int = 1 << 15
    # Up to this many rows, all are validation rows, and the mean of cce on landmarks is exact
    full_validation_rows: int = 1 << 12
    validation_rows: int = 1 << 10  # Minimum validation rows otherwise, on which the Nyström error is estimated
    # Rows of the pilot sample that determines the number of landmarks before all rows are read
    pilot_rows: int = 1 << 13
    min_landmarks: int = 1 << 8  # Minimum number of landmarks
    block_rows: int = 4096  # Rows whose kernel values with landmarks are computed at a time, which takes tens of MB
    cholesky_rows: int = 2048  # Maximum rows for Cholesky by default: under half a second, and dof is exact
    factor_rows: int = 6000  # Maximum rows for Cholesky if several regressions share a lambda: about a second
    # Numbers of landmarks of low-rank approximations, tried in order
    nystroem_ranks: tuple[int, ...] = (256, 512, 1024, 2048)
    smoother_bytes: int = 1 << 26  # Bytes per block of the matrix that smooths
    # reach_rank, reach_signs: landmarks of a low-rank approximation of squared weights, and random sign vectors that
    # estimate the rest, for more than `cholesky_rows` rows
    reach_rank: int = 512
    reach_signs: int = 32
    # Minimum rows for ABC limits, which need no resamples; their error is then below 0.4 % of the width of the interval
    abc_rows: int = 20_000
    # From these numbers of rows on, metrics start with 59 replicates, for time; more follow for open verdicts. The
    # first is for metrics that are computed on one replicate after the other, jmmd and cmmd, the second for all.
    several_rows: int = 100_000
    many_rows: int = 1_000_000
    block_targets: int = 1 << 22  # Targets of replicates that are drawn at a time; the default takes 32 MiB
    block_swaps: int = 1 << 21  # Rows that a permutation test swaps at a time. The random numbers depend on it.

    def n_validation(self, n: int, n_landmarks: int) -> int:
        """Return the number of validation rows: n if n is small, otherwise at least the number of landmarks."""
        return n if n <= self.full_validation_rows else max(self.validation_rows, n_landmarks)


class Accumulator(Protocol):
    """A sum over batches, which can be added in any order."""

    def add(self, other: Self) -> None:
        """Add the sum over other batches, in place."""


SumT = TypeVar("SumT", bound=Accumulator)


class Executor(Protocol):
    """Workers that reduce partitions of sources."""

    def reduce(
        self, parts: Sequence[Source], work: Callable[[Predictions], SumT], progress: Callable[[float], None]
    ) -> SumT | None:
        """Return the sum of ``work(batch)`` over the batches of all partitions; None without rows."""


class Checkpoint(Protocol):
    """Stores partial sums of a run."""

    def load(self, stage: str, work: Callable[[Predictions], Any]) -> tuple[int | None, Any]:
        """Return the number of completed batches of a stage (None for all) and their sum; 0 and None if new."""

    def save(self, stage: str, batches: int | None, total: Any) -> None:
        """Save the sum of all batches of a stage (None), or of the first ones, if the last save is old enough."""


@dataclass(frozen=True)
class RowDependence:
    """Options that state which rows depend on each other; by default none do."""

    cluster: str | None = option(
        "Column of rows that depend on each other, such as those of one patient. Intervals and p-values then resample"
        " whole clusters.",
        metavar="COLUMN",
    )
    block: int | None = option(
        "Rows are a series: number of consecutive rows that are resampled together, or of times with --time.",
        metavar="LENGTH",
    )
    time: str | None = option(
        "Column of times: rows are a series, and rows of one time stay together. The length of the blocks is chosen"
        " from the data, unless --block is given.",
        metavar="COLUMN",
        common=True,
    )

    def __post_init__(self) -> None:
        if self.block is not None and self.block < 1:
            raise OptionError(f"--block must be at least 1, got {self.block}")
        other = "--time" if self.time is not None else "--block"
        if self.cluster is not None and (self.time is not None or self.block is not None):
            raise OptionError(f"--cluster and {other} contradict each other: pass only one of them")

    @property
    def is_stated(self) -> bool:
        """Whether rows depend on each other."""
        return self != RowDependence()

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        return tuple(name for name in (self.cluster, self.time) if name is not None)


MAX_AXES = 2  # Maximum number of columns along which a picture shows rows
GIB, SMALL_BYTES = 1 << 30, 1 << 26
MIN_RESAMPLES = 100  # Fewer resamples do not represent the tails
MIN_REPLICATES = 19  # Fewer replicates cannot reject at 5 %
MAX_RESAMPLES, MAX_REPLICATES = 10_000_000, 1_000_000  # More would not improve the precision


class RandomStream(IntEnum):
    """The random streams; each has its own generator (:meth:`Run.rng`)."""

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
    DATA_SETS = 12
    MULTIPLIERS = 13
    KMEANS = 14
    PERMUTATIONS = 20
    RANDOMIZATION = 21


SUFFIXES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": GIB}


def parse_memory(text: str) -> int:
    """Return an amount of memory in bytes.

    >>> parse_memory("1.5 GiB"), parse_memory("1.5GB"), parse_memory("64 kB"), parse_memory("64MiB")
    (1610612736, 1500000000, 64000, 67108864)
    """
    trimmed = text.strip()
    number = trimmed.rstrip("BbKkMmGgIi ")
    factor = SUFFIXES.get(trimmed[len(number) :].strip().upper() or "B")
    try:
        size = float(number) * (factor or 0)
    except ValueError:
        size = 0.0
    if not 0 < size < float("inf"):
        raise OptionError(f"--memory must be an amount such as 800MB or 1.5GiB, got {text!r}")
    return int(size)


def default_memory() -> int:
    """Return the default memory limit in bytes: 4 GiB, or half of the machine's memory if that is less."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # Not available on every system
        return 4 * GIB
    return min(4 * GIB, machine // 2)


def silent(stage: str, share: float) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class SeedOptions:
    """Options for the random number generator."""

    seed: int = option("Seed of the random number generator.", 0)


@dataclass(frozen=True)
class EngineOptions:
    """Options for the execution of kernel computations. They change results by rounding only."""

    device: str | None = option(
        "Compute with torch, of the extra torch, on this device: cpu, cuda, mps. Default: numpy on the CPU.",
        metavar="DEVICE",
    )
    precision: Precision = option("Floating-point precision of kernel computations.", "float64")
    memory: str | int | None = option(
        "Memory limit for large arrays, e.g. 800MB or 2GiB. Default: 4GiB, or half of the machine's memory if that is "
        "less.",
        metavar="SIZE",
    )


@dataclass(frozen=True)
class ConfidenceOptions:
    """Option for intervals and verdicts."""

    confidence: float = option("Confidence level of intervals and verdicts.", 0.95)


@dataclass(frozen=True)
class BootstrapOptions:
    """Options for bootstrap intervals."""

    resamples: int | None = option(
        "Number of bootstrap resamples. Default: 10000, or 1000 for metrics that resample many columns; more while a "
        "verdict is undecided.",
        off=("no_bootstrap", "Compute no bootstrap intervals."),
    )


@dataclass(frozen=True)
class NullOptions:
    """Options for the null distribution: the scores of a perfect model."""

    replicates: int | None = option(
        "Number of replicates of the null distribution. Each draws the targets from the predictions, which shows what a"
        " perfect model scores on these rows. Default: 199 (slices: 399; compare: 0, unless models are ranked by it),"
        " and up to 9999 while a verdict is undecided; 39 for distributions that do not fit in memory and for"
        " streaming; initially 59 from 100,000 rows on (cce and permutation tests: from a million rows on).",
        off=("no_null", "Do not simulate the null distribution. Verdicts then use zeta, where that is valid."),
    )


@dataclass(frozen=True)
class SignificanceOptions:
    """Options for the tests at single inputs."""

    fdr: float = option(
        "False discovery rate: allowed fraction of false positives among the rejected neighborhoods of inputs.", 0.05
    )


@dataclass(frozen=True)
class RunOptions(SignificanceOptions, NullOptions, BootstrapOptions, ConfidenceOptions, EngineOptions, SeedOptions):
    """The options of a computation; each is declared here only."""

    def __post_init__(self) -> None:
        require_share_option("confidence", self.confidence)
        require_share_option("fdr", self.fdr)
        for option_, (least, most) in BOUNDS.items():
            count = getattr(self, option_.field)
            if count not in (None, 0) and not least <= count <= most:
                msg = f"{option_.flag} must be at least {least} and at most {most:,}, got {count}."
                raise OptionError(f"{msg} To turn it off, use {option_.off.flag}" if option_.off else msg)
        if self.seed < 0:
            raise OptionError(f"--seed must be >= 0, got {self.seed}")

    def settings(self) -> dict[str, Any]:
        """Return the options by name, with the memory limit in bytes."""
        given = {declared.name: getattr(self, declared.name) for declared in fields(RunOptions)}
        if self.memory is None:
            return given | {"memory": default_memory()}
        return given | {"memory": parse_memory(self.memory) if isinstance(self.memory, str) else self.memory}


BOUNDS = {
    **dict.fromkeys(options_of(BootstrapOptions), (MIN_RESAMPLES, MAX_RESAMPLES)),
    **dict.fromkeys(options_of(NullOptions), (MIN_REPLICATES, MAX_REPLICATES)),
}  # Minimum and maximum of the options that count something


@dataclass(frozen=True)
class Run(RunOptions):
    """The context of a computation: seed, device, memory, inference settings and progress."""

    memory: int = field(default_factory=default_memory)  # The memory limit of large arrays together, in bytes
    progress: Progress = silent  # Called with the name of a stage and its completed share, in [0, 1]
    keep_rows: bool = False  # Whether to return the results of each row, besides the value
    curves: bool = False  # Whether to return the curves of pictures
    curves_of: frozenset[str] | None = None  # The metrics whose curves are returned; by default all
    # Columns along which curves show rows, in place of the predicted standard deviation
    curves_by: tuple[str, ...] = ()
    executor: Executor | None = None  # Workers that reduce batches, in place of this process
    checkpoint: Checkpoint | None = None  # Stores partial sums, from which an interrupted run can resume
    part: str = ""  # What these sums are about, of several parts of a run
    dependence: RowDependence = field(default_factory=RowDependence)  # Which rows depend on each other
    limits: Limits = field(default_factory=Limits)  # Sizes at which rows are sampled, or a cheaper method is used

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.curves_by) > MAX_AXES:
            raise OptionError(f"--plot-by takes one or two columns, got {', '.join(self.curves_by)}")

    def require_room(self, needed: int, what: str) -> None:
        """Raise if an array would exceed the memory limit; arrays up to 64 MiB are always allowed."""
        if needed > max(self.memory, SMALL_BYTES):
            amounts = f"{needed / GIB:,.1f} GiB, and --memory allows {self.memory / GIB:,.1f} GiB"
            raise OptionError(f"{what} takes {amounts}: use fewer, or increase --memory")

    def needs_curves(self, metric: str) -> bool:
        """Return whether the curves of a metric are returned."""
        return self.curves and (self.curves_of is None or metric in self.curves_of)

    def quiet(self) -> Run:
        """Return the run without progress."""
        return replace(self, progress=silent)

    def track(self, stage: str, items: Iterable[ItemT], total: int) -> Iterator[ItemT]:
        """Yield items one after the other, and report the share of them that is done."""
        for done, item in enumerate(items):
            self.progress(stage, done / total)
            yield item
        self.progress(stage, 1.0)

    def prefixed(self, name: str) -> Run:
        """Return the run with a name before each stage of progress, such as that of a metric."""
        progress = self.progress
        return replace(self, progress=lambda stage, share: progress(f"{name}: {stage}", share))

    def for_worker(self) -> Run:
        """Return the run in a form that can be sent to another process."""
        return replace(self, progress=silent, executor=None, checkpoint=None)

    def rng(self, stream: RandomStream, *number: int) -> Generator:
        """Return the generator of a random stream, independent of all other streams."""
        from numpy.random import default_rng

        return default_rng([self.seed, stream, *(number or (0,))])

    def backend(self) -> Backend:
        """Return the array backend of this run."""
        from calcheck.execution.backend import backend

        return backend(self.device, self.precision)


KIB = 1 << 10
NEEDED_BYTES = 1_900_000 * KIB  # of addresses, for libraries and their threads; most of it is never used
CGROUPS = (  # Control group files (v2 and v1), as in containers: the memory limit and the current usage
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_memory() -> int:
    """Return the bytes that this process can still allocate; they decide whether work starts, not its result."""
    page = os.sysconf("SC_PAGE_SIZE")
    left = [page * os.sysconf("SC_PHYS_PAGES")]
    left += [int(line.split()[1]) * KIB for line in _lines_of("/proc/meminfo") if line.startswith("MemAvailable:")]
    for limit, used in CGROUPS:
        values = [*_lines_of(limit), *_lines_of(used)]
        if len(values) == 2 and values[0].isdigit():  # noqa: PLR2004 - both files exist; "max" means no limit
            left.append(int(values[0]) - int(values[1]))
    if (most := address_space_limit()) is not None:
        left.append(most - page * sum(int(line.split()[0]) for line in _lines_of("/proc/self/statm")))
    return max(0, min(left))


def address_space_limit() -> int | None:
    """Return the limit on the memory of this process in bytes, as set by ``ulimit -v``; None if there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if most == resource.RLIM_INFINITY else most


def require_address_space() -> None:
    """Raise if libraries cannot be loaded within the limit on memory: they would crash, or wait for ever."""
    most = address_space_limit()
    if most is not None and most < NEEDED_BYTES:
        msg = f"the limit on memory (ulimit -v {most // KIB}) is too low: at least {NEEDED_BYTES // KIB} are needed"
        raise OptionError(msg)


def _lines_of(path: str) -> list[str]:
    """Return the lines of a system file; none if it does not exist."""
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def replicate_seed(run: Run) -> int:
    """Return the seed of the random numbers of replicates."""
    return int(run.rng(RandomStream.REPLICATES).integers(1 << 63))


def hash_key(run: Run) -> int:
    """Return the hash seed of a run."""
    return int(run.rng(RandomStream.LANDMARKS).integers(1 << 63, dtype="uint64"))


ResultT = TypeVar("ResultT")


def map_ahead(work: Callable[[ItemT], ResultT], items: Iterable[ItemT]) -> Iterator[ResultT]:
    """Yield ``work(item)`` for each item, in order, computed one item ahead by one thread.

    >>> list(map_ahead(lambda number: number**2, [1, 2, 3]))
    [1, 4, 9]
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        waiting = None
        for item in items:
            following = pool.submit(work, item)
            if waiting is not None:
                yield waiting.result()
            waiting = following
        if waiting is not None:
            yield waiting.result()


def prefetch(items: Iterable[ItemT]) -> Iterator[ItemT]:
    """Yield items, and compute the next one in a background thread meanwhile; used for reading files.

    >>> list(prefetch(number**2 for number in [1, 2, 3]))
    [1, 4, 9]
    """
    remaining, end = iter(items), object()
    ahead = map_ahead(lambda _: next(remaining, end), repeat(None))
    return takewhile(lambda item: item is not end, ahead)  # type: ignore[arg-type]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: other threads would spin between products, and slow down the prefetching thread."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> Any:
    """Return the controller of BLAS libraries; cached, because the search takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def reduce_batches(
    source: Source, work: Callable[[Predictions], SumT], run: Run, *, stage: str, rows: int | None = None
) -> SumT:
    """Return the sum of ``work(batch)`` over the batches of a source."""
    run.progress(stage, 0.0)
    if run.executor is not None:
        total = run.executor.reduce(source.parts(), work, lambda share: run.progress(stage, share))
    else:
        total = reduce_locally(source, work, run, stage=stage, rows=rows)
    if total is None:
        raise DataError("there are no rows")
    run.progress(stage, 1.0)
    return total


def reduce_locally(
    source: Source,
    work: Callable[[Predictions], SumT],
    run: Run | None = None,
    *,
    stage: str = "",
    rows: int | None = None,
) -> SumT | None:
    """Return the sum over the batches of a source in order, resumed from the last checkpoint; None without rows."""
    checkpoint = None if run is None or run.checkpoint is None else run.checkpoint
    stored = stage if run is None else f"{run.part}{stage}"
    done, total = (0, None) if checkpoint is None else checkpoint.load(stored, work)
    if done is None:
        return total
    read = 0
    for number, batch in enumerate(prefetch(source.batches()), 1):
        read += len(batch)
        if number <= done:
            continue
        part = work(batch)
        if total is None:
            total = part
        else:
            total.add(part)
        if checkpoint is not None:
            checkpoint.save(stored, number, total)
        if run is not None and rows is not None:
            run.progress(stage, read / rows)
    if checkpoint is not None:
        checkpoint.save(stored, None, total)
    return total


def run_settings(run: Run, *, subsample: int | None = None) -> dict[str, Any]:
    """Return the settings of a run for the report."""
    options = {each.name: getattr(run, each.field) for each in options_of(RunOptions)}
    libraries = ["numpy", "scipy", "pyarrow", "scoringrules", *([] if run.device is None else ["torch"])]
    return {
        "seed": options.pop("seed"),
        "subsample": subsample,
        **options,
        "versions": {library: _version(library) for library in libraries},
    }


@cache
def _version(library: str) -> str:
    """Return the version of an installed library, by the name of its metadata: importlib.metadata loads for longer."""
    for folder in sys.path:
        for found in Path(folder).glob(f"{library}-*.dist-info"):
            return found.stem.removeprefix(f"{library}-")

    from importlib.metadata import version

    return version(library)
