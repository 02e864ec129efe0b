"""Representation of the model's distributions: closed form, saved samples, or new draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from calcheck.distributions import Predictive, Samples
from calcheck.errors import DataError, OptionError
from calcheck.execution.run import RandomStream, Run

Draws = int | Literal["exact", "all"] | None

COPIES = 4  # Number of arrays of draws in memory during sampling


def draws_of(predictive: Predictive, chosen: Draws) -> int | str:
    """Return the representation of the model, with a default if it is None."""
    sampled = predictive.n_draws is not None
    if chosen == "exact" and sampled:
        msg = "--draws exact needs parameters, but the file has samples. Pass --draws all, or a number"
        raise OptionError(msg)
    if chosen == "all" and not sampled:
        msg = "--draws all needs saved samples, but the file has parameters. Pass --draws exact, or a number"
        raise OptionError(msg)
    return chosen or ("all" if sampled else "exact")


def trials_of(predictive: Predictive, chosen: Draws, trials: int, run: Run) -> Iterator[Predictive]:
    """Yield the representation of the model in each trial: the distributions, or draws from them."""
    size = draws_of(predictive, chosen)
    if not isinstance(size, int):
        yield predictive
        return
    requested = f"--draws {size:,}" + (f" --trials {trials:,}" if trials > 1 else "")
    run.require_room(
        COPIES * 8 * trials * size * len(predictive) * predictive.targets, f"{requested} of {len(predictive):,} rows"
    )
    for trial in range(trials):
        try:
            draws = predictive.sample(run.rng(RandomStream.DRAWS, trial), size)
        except (ValueError, OverflowError, MemoryError) as error:
            msg = f"sampling {size:,} draws per row from {predictive.family} distributions failed ({error})"
            raise DataError(msg) from error
        yield Samples(draws)
