"""How many data sets simulations draw, and how many pairs laws are tested on: all of them with `--all` or `--rest`.

Limits are quantiles at the number that is drawn, so that a right program fails with the same probability in both.
"""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from scipy.stats import binom

full = False
"""Whether all are drawn; conftest.py sets it before tests are imported."""


QUARTER = 4


def sets(number: int, part: int = QUARTER) -> int:
    """Return the number of data sets to draw by default, one of ``part``, of which ``number`` are all."""
    return number if full else -(-number // part)


def pairs(first: Iterable[Any], second: Iterable[Any], part: int = QUARTER) -> list[Any]:
    """Return the pairs on which a law is tested: one of ``part``, so that each item is in some, or all.

    All others are marked ``slow``.
    """
    others = list(second)
    numbered = [
        (place + number, (one, other)) for place, one in enumerate(first) for number, other in enumerate(others)
    ]
    fast = [pair for number, pair in numbered if number % part == 0]
    return fast + [slow(pair) for number, pair in numbered if full and number % part]


def slow(values: Any) -> Any:
    """Return the parameter, or a tuple of several, of a test that runs with `--all` or `--rest` only."""
    return pytest.param(*(values if isinstance(values, tuple) else (values,)), marks=pytest.mark.slow)


@cache
def simulated(path: Path) -> frozenset[str]:
    """Return the names of a module of tests whose definition, or that of a name in it, uses a number of data sets."""
    uses = {}
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        words = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        names = [statement.name] if hasattr(statement, "name") else words
        uses |= dict.fromkeys(names, words)
    found = {"sets", "examples", "simulations"}
    while more := {name for name, words in uses.items() if words & found} - found:
        found |= more
    return frozenset(found)


def band(number: int, share: float, error: float = 0.001) -> tuple[float, float]:
    """Return limits that contain a count out of ``number`` with probability 1 - ``error``, half on either side."""
    low, high = binom.ppf([error / 2, 1 - error / 2], number, share)
    return low, high


def examples(number: int) -> settings:
    """Return settings of hypothesis for a number of examples, of which ``number`` are all; they are always the same."""
    # the time of an example depends on the load of the machine
    return settings(
        max_examples=sets(number), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )


def autoregressive(rng, n, correlation):
    """Return a stationary autoregressive series of standard normal numbers, (n,)."""
    from scipy.signal import lfilter

    steps = rng.standard_normal(n) * np.sqrt(1 - correlation**2)
    steps[0] = rng.standard_normal()
    return lfilter([1.0], [1.0, -correlation], steps)
