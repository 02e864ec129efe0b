"""The methods of recalibration by name, alone and composed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from calcheck.distributions.counts import Counts
from calcheck.distributions.intervals import Intervals
from calcheck.distributions.quantiles import Quantiles
from calcheck.errors import OptionError, with_suggestion
from calcheck.predictions import Predictions
from calcheck.recalibration.features import STD
from calcheck.recalibration.fits import (
    FitOptions,
    fit_beta,
    fit_bias,
    fit_bin_scaling,
    fit_conformal,
    fit_isotonic_variance,
    fit_local,
    fit_pit,
    fit_scale,
    fit_shift_scale,
)
from calcheck.recalibration.steps import AnyStep

if TYPE_CHECKING:
    from calcheck.distributions import Predictive

Fit = Callable[[Predictions, FitOptions], AnyStep]
Stage = Literal["bias", "scale", "probability", "conformal"]

AUTO, NONE = "auto", "none"
JOINED = "+"  # Separates the steps of a composition
STAGES: tuple[Stage, ...] = ("bias", "scale", "probability", "conformal")
"""The order of the steps of a composition."""


@dataclass(frozen=True)
class StepMethod:
    """A step of a method."""

    name: str  # Name in `--method`
    stage: Stage  # Its place in a composition
    fit: Fit  # Returns the step fitted to rows
    meaning: str  # What it changes, in a few words


STEPS: dict[str, StepMethod] = {
    step.name: step
    for step in (
        StepMethod("scale", "scale", fit_scale, "multiplies all uncertainties by one factor"),
        StepMethod("shift-scale", "scale", fit_shift_scale, "also moves predictions by a multiple of uncertainties"),
        StepMethod("bias", "bias", fit_bias, "moves predictions by a regression of errors on --by"),
        StepMethod("local", "scale", fit_local, "multiplies uncertainties by a regression of squared errors on --by"),
        StepMethod(
            "isotonic-variance", "scale", fit_isotonic_variance, "isotonic regression of squared errors on variances"
        ),
        StepMethod("bvs", "scale", fit_bin_scaling, "one factor per bin of the uncertainties"),
        StepMethod("beta", "probability", fit_beta, "maps probabilities by a function with three parameters"),
        StepMethod("pit", "probability", fit_pit, "maps probabilities by the distribution of the PIT"),
        StepMethod("conformal", "conformal", fit_conformal, "moves quantiles or limits by conformal scores"),
    )
}
"""The steps by their names in ``--method``."""


@dataclass(frozen=True)
class Method:
    """A method: one step, or several in order."""

    name: str  # Names of the steps, joined by +; "none" for no change

    @classmethod
    def parse(cls, text: str) -> Method:
        """Return a method by its name."""
        if text == NONE:
            return cls(NONE)
        names = [name.strip() for name in text.split(JOINED)]
        for name in names:
            if name not in STEPS:
                known = ", ".join((AUTO, *STEPS))
                msg = with_suggestion(f"--method: there is no method {name!r} (methods: {known})", name, STEPS)
                raise OptionError(msg)
        places = [STAGES.index(STEPS[name].stage) for name in names]
        if any(later <= earlier for earlier, later in pairwise(places)):
            msg = (
                f"--method {text}: steps are joined in the order bias, then one that scales, then pit or beta, as in"
                " bias+local+pit"
            )
            raise OptionError(msg)
        return cls(JOINED.join(names))

    @property
    def steps(self) -> tuple[StepMethod, ...]:
        """The steps in order."""
        return () if self.name == NONE else tuple(STEPS[name] for name in self.name.split(JOINED))

    def fit(self, rows: Predictions, options: FitOptions) -> tuple[AnyStep, ...]:
        """Return the steps fitted to rows, each to the rows corrected by those before."""
        return tuple(step for step, _ in self._fitted(rows, options))

    def _fitted(self, rows: Predictions, options: FitOptions) -> Iterator[tuple[AnyStep, Predictions]]:
        for place, each in enumerate(self.steps):
            step = each.fit(rows, options)
            yield step, rows
            rows = step.apply(rows) if place + 1 < len(self.steps) else rows


def candidates(predictive: Predictive, by: tuple[str, ...]) -> tuple[Method, ...]:
    """Return the methods among which ``auto`` chooses, from no change to the most freedom.

    Maps of probabilities make quantiles of draws. These are smoother, and score better, even if nothing is wrong: draws
    are only moved and scaled.
    """
    if isinstance(predictive, (Quantiles, Intervals)):
        names = ["conformal"] + (["pit"] if isinstance(predictive, Quantiles) else [])
    elif isinstance(predictive, Counts):
        names = ["beta", "pit"]
    else:
        mapped = predictive.shape_is_known and predictive.n_draws is None
        names = ["scale", "shift-scale", "local", *(["beta", "pit", "local+pit"] if mapped else [])]
        if by != (STD,):
            names += ["bias+local", *(["bias+local+pit"] if mapped else [])]
    return tuple(map(Method, [NONE, *names]))


def apply_steps(steps: tuple[AnyStep, ...], rows: Predictions) -> Predictions:
    """Return rows with corrected distributions."""
    for step in steps:
        rows = step.apply(rows)
    return rows
