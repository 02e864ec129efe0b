"""How often each answer is given: to right models, and to models that are off by a known size.

    python -m tests.benchmarks.answers --sets 400
    python -m tests.benchmarks.answers --designs normal t4 --rows 100 300 --faults right "factor 1.33" --sets 100

Prints for each design and fault, by the number of rows, the share of sets with the answers YES and NO; and after
them the share of intervals of the width factor that hold its true value, which is that of a million rows. Marked are
a YES if the fault is at the tolerance or beyond, or a NO to a right model, in more than 7.5 % of sets, and intervals
that hold the truth in less than 88.5 %, or 86 % if rows depend on each other. Only the metrics behind the answer are
computed. A local misfit with inputs counts as YES only without "on average".
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np

from calcheck.distributions import Gaussian
from calcheck.evaluation import Answer, evaluate
from calcheck.execution.run import RowDependence, Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from tests.benchmarks import right_models
from tests.benchmarks.right_models import NINE

ROWS = (30, 60, 100, 300, 1000, 10_000)
FACTORS = (1 / 1.333, 1.1, 1.2, 1.333, 1.5)
MARK, HELD, HELD_DEPENDENT = 0.075, 0.885, 0.86
TOLERANCE = 0.2
MANY = 1_000_000
STEPS = 6  # of the search for the scale that needs a factor
BINDING = 1e-6  # A factor at the tolerance, up to rounding


@dataclass(frozen=True)
class Fault:
    """What is wrong with a model: the factor by which its intervals would have to be wider, and its bias."""

    factor: float = 1.0
    bias: float = 0.0  # in predicted standard deviations
    local: float = 0.0  # standard deviation of the error of the logarithm of the std, along the input
    named: bool = False  # whether the inputs are given

    @property
    def is_beyond(self):
        """Whether a YES is wrong: at the border too. Without inputs, a local misfit cannot be seen."""
        known = self.local if self.named else 0.0
        return (
            max(abs(np.log(self.factor)) / np.log1p(TOLERANCE), self.bias / TOLERANCE, known / TOLERANCE) > 1 - BINDING
        )

    @property
    def is_right(self):
        return self == Fault(named=self.named)


FAULTS = {
    "right": Fault(),
    **{f"factor {each:.3g}": Fault(factor=each) for each in FACTORS},
    "bias .2": Fault(bias=0.2),
    "bias .5": Fault(bias=0.5),
    "local .3, inputs": Fault(local=0.3, named=True),
    "local .3": Fault(local=0.3),
    "right, inputs": Fault(named=True),
}
WITH_MOMENTS = ("normal", "t4", "lognormal", "30 members", "11 members")
"""Designs whose predictions have means and standard deviations, so that a bias can be added."""


def misfit(local, rng, n, factor):
    """Normal predictions whose std is off along the input."""
    x = rng.uniform(-1, 1, size=(n, 1))
    mean, std = x[:, 0], np.exp(0.3 * rng.normal(size=n))
    y = mean + std * rng.normal(size=n)
    wrong = factor * std * np.exp(local * np.sqrt(3) * x[:, 0])  # of a uniform number the std is 1 / sqrt(3)
    return Predictions(y=y, predictive=Gaussian(mean, wrong), x=x, has_embedding=False)


@dataclass(frozen=True)
class Design:
    """Predictions by their generator, the number of rows and the factor of their scale."""

    make: object
    dependence: RowDependence = field(default_factory=RowDependence)
    exact: bool = False  # Whether the factor of the scale is the reciprocal of the one that is needed


DESIGNS = {
    "normal": Design(right_models.normal, exact=True),
    "t4": Design(right_models.student_t, exact=True),
    "lognormal": Design(right_models.lognormal),
    "poisson": Design(right_models.poisson),
    "negative binomial": Design(right_models.nbinom),
    "30 members": Design(partial(right_models.members, 30), exact=True),
    "11 members": Design(partial(right_models.members, 11), exact=True),
    "9 quantiles": Design(right_models.normal_quantiles, exact=True),
    "intervals": Design(partial(right_models.normal_intervals, (0.9,)), exact=True),
    "poisson, 9 quantiles": Design(partial(right_models.count_quantiles, NINE)),
    "AR(1) .5, --time": Design(partial(right_models.series, 0.5), RowDependence(time="hour"), exact=True),
    "clusters, --cluster": Design(partial(right_models.clusters, 0.5), RowDependence(cluster="patient"), exact=True),
}


def width_factor(rows):
    return evaluate(InMemory(rows), [METRICS["width-factor"]()], run=Run(resamples=0, replicates=0)).results[0].value


@cache
def scale_of(name, factor):
    """Return the factor of the predicted scale at which intervals need a factor, or None if there is none."""
    design = DESIGNS[name]
    if design.exact or factor == 1:
        return 1 / factor
    points = [(0.0, 0.0)]
    log_scale = -np.log(factor)
    for _ in range(STEPS):
        try:
            found = np.log(width_factor(design.make(np.random.default_rng(0), MANY // 5, float(np.exp(log_scale)))))
        except ValueError:
            return None
        points.append((log_scale, found))
        (x, a), (y, b) = points[-2:]
        log_scale = y + (np.log(factor) - b) * (y - x) / (b - a) if abs(b - a) > BINDING else y
    return float(np.exp(log_scale))


def one_set(name, fault, n, replicates, seed):
    """Return whether the answer is YES and NO, and whether the interval of the width factor holds the true one."""
    design, rng = DESIGNS[name], np.random.default_rng([sum(name.encode()), n, seed])
    if fault.local or fault.named:
        rows = misfit(fault.local, rng, n, 1.0)
        rows = rows if fault.named else replace(rows, x=None)
    else:
        rows = design.make(rng, n, scale_of(name, fault.factor))
    if fault.bias:
        rows = replace(rows, y=rows.y + fault.bias * rows.distributions().std())
    run = Run(resamples=0, replicates=replicates, seed=seed, dependence=design.dependence)
    found = evaluate(InMemory(rows), [], run=run, answer=Answer(TOLERANCE)).conclusion
    size = next((each for each in found.effects if each.topic == "size"), None)
    low, high = (0.0, None) if size is None else (size.low or 0.0, size.high)
    yes = found.answer == "yes" and not (fault.named and fault.local and "on-average" in found.qualifiers)
    return yes, found.answer == "no", low <= fault.factor <= (np.inf if high is None else high)


def is_made(name, fault):
    """Return whether a design has a fault."""
    if fault.local or fault.named:
        return name == "normal"
    if fault.bias:
        return name in WITH_MOMENTS
    return scale_of(name, fault.factor) is not None


def cell(name, fault, n, sets, first, replicates, pool):
    """Return a cell of the table: shares of YES and NO, and of intervals that hold the factor."""
    told = np.array(pool(partial(one_set, name, fault, n, replicates), range(first, first + sets)))
    yes, no, held = told.mean(axis=0)
    bar = HELD_DEPENDENT if DESIGNS[name].dependence.is_stated else HELD
    wrong = (fault.is_beyond and yes > MARK) or (fault.is_right and no > MARK)
    about = f" ({held:.3f}{' !' if held < bar else ''})" if not (fault.bias or fault.local) else ""
    return f"{yes:.2f} / {no:.2f}{' !' if wrong else ''}{about}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=list(DESIGNS), metavar="DESIGN")
    parser.add_argument("--faults", nargs="*", default=list(FAULTS), choices=list(FAULTS), metavar="FAULT")
    parser.add_argument("--rows", nargs="*", type=int, default=list(ROWS))
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--replicates", type=int, default=199)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the workers
    print(f"| YES / NO (held) | {' | '.join(f'{n:,}' for n in given.rows)} |\n| --- |{' --- |' * len(given.rows)}")
    with ProcessPoolExecutor(given.workers) as executor:

        def pool(function, seeds):
            return list(executor.map(function, seeds, chunksize=5))

        for name in given.designs:
            for each in given.faults:
                fault = FAULTS[each]
                if not is_made(name, fault):
                    continue
                cells = (cell(name, fault, n, given.sets, given.first, given.replicates, pool) for n in given.rows)
                print(f"| {name}: {each} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
