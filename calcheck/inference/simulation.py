"""What a perfect model scores on the same data: metrics of replicates of the targets, drawn from the predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError, NumericalError
from calcheck.execution.digest import digest_of_order
from calcheck.execution.run import Stream
from calcheck.inference.verdicts import statistic_of
from calcheck.metric import Inference, Simulated
from calcheck.predictions import InMemory
from calcheck.predictive.deferred import Deferred
from calcheck.statistics.shared import once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    from calcheck.execution.run import Run
    from calcheck.metric import Metric, Rows, Sided
    from calcheck.predictions import Predictions, Source
    from calcheck.predictive import Predictive
    from calcheck.report import Verdict

REPLICATES = 199
FEW_REPLICATES = 39  # enough for a test at 5 %: of distributions that are read again for each, and of many rows
MANY_ROWS = 1_000_000  # from which a replicate takes as long as all replicates of a few thousand rows
REPLICATES_AT_INPUTS = 1_999  # where a test is made at each input: tails that are fitted to 199 flag too many
MOST_INPUTS = 2_048  # and rows, at which so many take seconds
BLOCK_DRAWS = 1 << 22  # targets drawn at a time, 32 MiB
TIED = 1e-12  # of their size, within which values differ by rounding only
NOT_SIMULATED = "what a perfect model scores was not simulated (--reference R does, --no-reference does not)"
DIFFERS = (
    "verdict and p differ: the verdict holds whatever the shape of the distributions, p supposes the one predicted"
)
NO_EVIDENCE = "it depends on the predictions alone"


class Simulation:
    """Data sets in which the predictions are right, R of them: the same rows with other targets.

    Parameters
    ----------
    rows : Predictions
        With targets and distributions. Where these are known by draws, a target and a draw change places.
    run : Run
        How many, and the seed.
    inputs : int
        At how many inputs values are compared, besides the value of all rows: that takes more data sets.
    """

    def __init__(self, rows: Predictions, run: Run, *, inputs: int = 0) -> None:
        self.rows, self.run, self._inputs = rows, run, inputs
        self._count = _default_count(rows, inputs) if run.reference is None else run.reference

    def __len__(self) -> int:
        """Count the data sets, R."""
        return self._count

    def rng(self, block: int = 0) -> Generator:
        """Return the generator of a block of data sets."""
        return self.run.rng(Stream.REPLICATES, block, 0 if self.rows.y is None else _digest(self.rows))

    def of(self, predictive: Predictive) -> Simulation:
        """Return the same data sets, their distributions at hand in another way: held in memory, say."""
        y = self.rows.y
        return self if y is None else Simulation(self.rows.with_targets(y, predictive), self.run, inputs=self._inputs)

    def at(self, inputs: int) -> Simulation:
        """Return as many data sets as it takes to compare values at so many inputs."""
        return Simulation(self.rows, self.run, inputs=inputs)

    def __iter__(self) -> Iterator[Predictions]:
        """Yield the data sets, the same ones every time."""
        rows, size = self.rows, max(1, BLOCK_DRAWS // len(self.rows))
        if rows.y is None or rows.predictive is None:
            return
        for block, start in enumerate(range(0, len(self), size)):
            for y, predictive in rows.predictive.replicates(rows.y, self.rng(block), min(size, len(self) - start)):
                yield rows.with_targets(y, predictive)


def _default_count(rows: Predictions, inputs: int) -> int:
    if isinstance(rows.predictive, Deferred) or (len(rows) >= MANY_ROWS and not inputs):
        return FEW_REPLICATES
    return REPLICATES_AT_INPUTS if inputs and max(inputs, len(rows)) <= MOST_INPUTS else REPLICATES


def replicates_of(batch: Predictions, count: int, run: Run) -> Iterator[Predictions]:
    """Yield a batch of rows with targets drawn anew, so many times; batches differ in their luck."""
    if batch.y is None or batch.predictive is None:
        return
    told = blake2b(np.ascontiguousarray(batch.y).tobytes() + batch.places()[:1].tobytes(), digest_size=8)
    number, size = int.from_bytes(told.digest()), max(1, BLOCK_DRAWS // len(batch))
    for block, start in enumerate(range(0, count, size)):
        rng = run.rng(Stream.REPLICATES, block, number)
        for y, predictive in batch.predictive.replicates(batch.y, rng, min(size, count - start)):
            yield batch.with_targets(y, predictive)


@once
def _digest(rows: Predictions) -> int:
    """Return a number that differs between targets, made once for each."""
    return digest_of_order(rows.targets())


@dataclass(eq=False)
class Computed:
    """A metric of the data, ready to be computed again of replicates.

    Parameters
    ----------
    metric : Metric
        The metric.
    settings, state : Any
        What it has prepared and fitted.
    rows : Rows
        What it says.
    simulated : Simulated, optional
        What it says of replicates.
    """

    metric: Metric[Any, Any]
    settings: Any
    state: Any
    rows: Rows
    simulated: Simulated | None = None

    def of(self, replicate: Source, at: Source | None, run: Run) -> float:
        """Return the metric of a replicate; NaN where it has none."""
        metric = self.metric
        try:
            settings = metric.again(self.settings, replicate, run)
            return statistic_of(metric, metric.rows(settings, self.state, replicate, at, run)).estimate()
        except (DataError, NumericalError):
            return np.nan


def simulate(computed: Sequence[Computed], simulation: Simulation, at: Source | None, run: Run) -> None:
    """Compute metrics of all replicates, one replicate after the other: metrics share what they know of each.

    Those that are known already, or can be no evidence against a model, are left alone.
    """
    waiting = [each for each in computed if each.simulated is None and each.metric.evidence != "none"]
    if not waiting or not len(simulation):
        return
    values = np.empty((len(waiting), len(simulation)))
    quiet = run.silenced()
    for number, rows in enumerate(simulation):
        replicate = InMemory(rows)
        with np.errstate(all="ignore"):
            values[:, number] = [each.of(replicate, at, quiet) for each in waiting]
        run.progress("simulating", (number + 1) / len(simulation))
    for each, line in zip(waiting, values, strict=True):
        each.simulated = Simulated(line)


def p_value(values: NDArray[np.float64], own: float, sided: Sided, tied: float = TIED) -> float:
    """Return the Monte Carlo p-value: how likely a perfect model scores as far out, in (0, 1].

    (1 + #{T* >= T}) / (R + 1) for one side, twice the smaller of the two for both. Exact, and conservative where values
    tie; a replicate without a value counts as farther out.

    Parameters
    ----------
    values : (R,)
        T*, of replicates.
    own : float
        T, of the data.
    sided : str
        What counts as evidence: ``"upper"``, ``"lower"`` or ``"both"``.
    tied : float
        Share of T within which values count as equal.
    """
    slack = tied * abs(own)
    above = (1 + np.sum(~(values < own - slack))) / (len(values) + 1)
    below = (1 + np.sum(~(values > own + slack))) / (len(values) + 1)
    return float(min(1.0, {"upper": above, "lower": below, "both": 2 * min(above, below)}[sided]))


def compared(computed: Computed, estimate: float, inferred: Inference, run: Run) -> Inference:
    """Compare a metric with what it is where the model is right, and come to a verdict.

    Parameters
    ----------
    computed : Computed
        The metric, of the data and where the model is right.
    estimate : float
        Its value.
    inferred : Inference
        Its interval and, where it has an exact reference, what follows from that.
    run : Run
        The confidence.
    """
    metric, simulated = computed.metric, computed.simulated
    if metric.evidence == "none" or simulated is None or not np.isfinite(estimate):
        return _explained(metric, inferred)
    if simulated.no_verdict:
        told = {**inferred.details, "simulated": simulated.details}
        return _explained(metric, replace(inferred, details=told, no_verdict=simulated.no_verdict))
    values = simulated.values
    known = values[np.isfinite(values)]
    p = p_value(values, estimate if simulated.own is None else simulated.own, metric.evidence)
    told = {"replicates": len(values), **simulated.details}
    if len(known) < len(values):
        told["undefined"] = len(values) - len(known)
    found = replace(
        inferred,
        p_value=p,
        details={**inferred.details, "simulated": told},
        warnings=(*inferred.warnings, *simulated.warnings),
    )
    if len(known):
        found = _referred(found, metric.evidence, estimate, known, run.confidence)
    return _explained(metric, _judged(found, metric, p, len(values), run.confidence))


def _referred(
    found: Inference, sided: Sided, estimate: float, known: NDArray[np.float64], confidence: float
) -> Inference:
    """Add the reference and its limits, and the distance from it where there is no exact one."""
    mean = float(known.mean())
    tail = (1 - confidence) / (2 if sided == "both" else 1)
    low = None if sided == "upper" else float(np.quantile(known, tail))
    high = None if sided == "lower" else float(np.quantile(known, 1 - tail))
    if found.reference is not None:  # exact
        told = {**found.details["simulated"], "mean": mean, "low": low, "high": high}
        return replace(found, details={**found.details, "simulated": told})
    limit = high if low is None or (high is not None and estimate > mean) else low
    reach = abs((mean if limit is None else limit) - mean)
    zeta = (estimate - mean) / reach if reach > 0 else None
    return replace(found, reference=mean, reference_low=low, reference_high=high, reference_kind="simulated", zeta=zeta)


def _judged(found: Inference, metric: Metric[Any, Any], p: float, replicates: int, confidence: float) -> Inference:
    """Take the verdict from the p-value, unless one follows from an exact reference."""
    if metric.shape_free and found.verdict != "none":
        differs = found.verdict != "undecided" and (found.verdict == "fail") != (p <= 1 - confidence)
        return replace(found, warnings=(*found.warnings, DIFFERS)) if differs else found
    level = (1 - confidence) * (1 + TIED)
    if (2 if metric.evidence == "both" else 1) / (replicates + 1) > level:
        told = f"{replicates} replicates cannot reject at a confidence of {confidence:g}: pass a larger --reference"
        return replace(found, verdict="none", no_verdict=told)
    verdict: Verdict = "fail" if p <= level else "pass"
    return replace(found, verdict=verdict)


def _explained(metric: Metric[Any, Any], inferred: Inference) -> Inference:
    """Say why there is no verdict, where there is none."""
    if inferred.verdict != "none":
        return inferred
    reason = NO_EVIDENCE if metric.evidence == "none" else inferred.no_verdict or NOT_SIMULATED
    return replace(inferred, warnings=(*inferred.warnings, f"no verdict: {reason}"))
