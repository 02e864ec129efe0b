"""Faults of predictions that are planted into replicates, to see which of them these rows can show."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from calcheck.core import sc
from calcheck.predictions import Predictions
from calcheck.reports.conclusion import Power
from calcheck.statistics.zscores import spreads
from calcheck.typing import Values

TAIL = 1e-300  # Probability below planted targets, which are at least the least value of a family
FREEDOM = 4.0  # Degrees of freedom of heavy tails
SHARE = 0.1  # Share of the rows in a region
BEYOND_FACTOR, BEYOND_BIAS = 5 / 3, 2.5  # Faults in tolerances: a factor of 1.33 and a bias of 0.5 for one of 0.2
Plant = Callable[[Predictions, Generator], Values]


class Fault(NamedTuple):
    """A fault, and how it changes the targets of a right model."""

    name: str
    text: str
    plant: Plant
    of_inputs: bool = False  # Whether it needs inputs


def planted(fault: Fault, rows: Predictions, rng: Generator) -> Predictions:
    """Return a replicate with a fault: targets away from the middle of their predictions, within the support."""
    predictive = rows.distributions()
    y = predictive.record(fault.plant(rows, rng))
    if predictive.n_draws is None and predictive.quantile_levels is None and predictive.interval_levels is None:
        y = np.maximum(y, predictive.quantile(TAIL))
    return rows.with_targets(y, predictive)


def _stretched(factor: Values | float, rows: Predictions) -> Values:
    """Return targets that are farther from the median by a factor."""
    middle = rows.distributions().median()
    return np.asarray(middle + factor * (rows.targets() - middle))


def _narrow(share: float) -> Plant:
    return lambda rows, _: _stretched(1 / (1 - share), rows)


def _biased(size: float) -> Plant:
    return lambda rows, _: rows.targets() + size * spreads(rows.distributions())


def _heavy(rows: Predictions, rng: Generator) -> Values:
    """Return targets whose errors are multiplied such that normal ones follow Student's t of equal variance."""
    return _stretched(np.sqrt((FREEDOM - 2) / rng.chisquare(FREEDOM, len(rows))), rows)


def _shuffled(rows: Predictions, rng: Generator) -> Values:
    """Return targets whose errors have the size of the uncertainties of other rows."""
    sizes = spreads(rows.distributions())
    return _stretched(rng.permutation(sizes) / sizes, rows)


def _in_region(factor: float) -> Plant:
    """Return a fault of the rows with the inputs nearest to those of a random row."""

    def plant(rows: Predictions, rng: Generator) -> Values:
        x = rows.inputs().astype(np.float64)
        deviation = x.std(axis=0)
        scaled = x / np.where(deviation > 0, deviation, 1.0)
        distance = ((scaled - scaled[rng.integers(len(x))]) ** 2).sum(axis=1)
        near = distance.argsort(kind="stable")[: round(SHARE * len(x))]
        factors = np.ones(len(x))
        factors[near] = factor
        return _stretched(factors, rows)

    return plant


FAULTS = (
    *(
        Fault(f"narrow-{100 * size:.0f}", f"std {100 * size:.0f} % too small", _narrow(size))
        for size in (0.1, 0.25, 0.5)
    ),
    *(Fault(f"bias-{size:g}", f"mean error of {size:g} std", _biased(size)) for size in (0.2, 0.5)),
    Fault("heavy-tails", f"errors with the tails of t{FREEDOM:.0f}", _heavy),
    Fault("ranking-lost", "uncertainties of other rows", _shuffled),
    *(
        Fault(f"region-{size:g}", f"a tenth of the inputs {size:g} times as wide", _in_region(size), of_inputs=True)
        for size in (1.5, 2.0)
    ),
)
"""The faults of the table of what these rows could have shown."""


def expected_power(
    factors: Sequence[Values], biases: Sequence[Values], tolerance: float, confidence: float
) -> tuple[Power, ...]:
    """Return how often a std too small, and a bias, beyond the tolerance would make the answer no, by normal laws."""
    limit = sc.ndtri((1 + confidence) / 2)
    factor, bias = 1 + tolerance * BEYOND_FACTOR, tolerance * BEYOND_BIAS
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [np.log(each) for each in factors]
    narrow = f"{100 * (1 - 1 / factor):.0f}"
    found = [
        (f"narrow-{narrow}", f"std {narrow} % too small", math.log(factor), logs),
        (f"bias-{bias:g}", f"mean error of {bias:.2g} std", bias, biases),
    ]
    spreads_of = [[float(np.std(each)) for each in nulls if np.isfinite(each).all()] for *_, nulls in found]
    return tuple(
        Power(fault=name, text=text, share=float(sc.ndtr(size / min(known) - limit)))
        for (name, text, size, _), known in zip(found, spreads_of, strict=True)
        if known and min(known) > 0
    )
