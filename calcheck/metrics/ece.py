"""Expected calibration error of quantiles."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from calcheck.errors import DataError, OptionError
from calcheck.metrics.base import Need, RowMetric
from calcheck.options import option, require_count_option
from calcheck.results import Alternative, IntervalMethod, Orientation, RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.predictions import Predictions, Source
    from calcheck.results import Means

SHOWN = 9  # levels of the curve in details
MOST_LEVELS = 10_000  # more would tell nothing more


@dataclass(frozen=True)
class Ece(RowMetric):
    r"""Distance between the levels of predicted quantiles and the shares of targets below them.

    .. math:: \mathrm{ECE} = \sum_{j=1}^{q} w_j |p_j - \hat p_j|^\alpha, \qquad
              p_j = \frac{j}{q+1}, \quad \hat p_j = \frac1n \sum_i 1\{F_i(y_i) \le p_j\}

    Where a distribution jumps at its target, from F- to F, the indicator is replaced by its mean over a uniform draw
    inside the jump, (p - F-) / (F - F-) between 0 and 1.

    Parameters
    ----------
    levels
        How many levels, q.
    alpha
        The power: 1, as the Wasserstein distance of the PIT from uniform; 2, as the Cramer-von Mises distance.
    weights
        w_j: 1/q, or proportional to p-hat_j, as in the authors' code.
    pit
        What is done where a distribution jumps.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, in [0, 1/2] for uniform weights, smaller is better. A perfect model scores about 0.3 / sqrt(n).

    Raises
    ------
    OptionError
        There is no level, or the power is neither 1 nor 2.

    Notes
    -----
    Sees quantiles on average over all rows: a model that predicts the marginal distribution everywhere is perfect for
    it. With ``--pit plain`` perfect predictions of counts score badly (0.070 in place of 0.006 for Poisson rates),
    which is what the papers show. Biased upwards, more so under resampling: its interval is of percentiles and decides
    nothing. O(n) for continuous families, O(n q) for others.

    References
    ----------
    Kuleshov, Fenner, Ermon (ICML 2018); Young et al., Eq. 4-5 (arXiv 2405.12412). Czado, Gneiting, Held (2009).
    """

    name: ClassVar[str] = "ece"
    unit: ClassVar[str] = "1"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    alternative: ClassVar[Alternative] = "upper"
    orientation: ClassVar[Orientation] = "smaller"
    source: ClassVar[str] = "Kuleshov et al. 2018; Young et al., Eq. 4-5 (arXiv 2405.12412)"
    interpretation: ClassVar[str] = "Smaller is better; the noise of n rows keeps a perfect model above 0."
    interval: ClassVar[IntervalMethod] = "percentile"

    n_levels: int = option(99, "Number of quantile levels q, at j/(q + 1); files of quantiles have their own.")
    alpha: int = option(1, "Power of the distance at each level: 1 or 2.")
    level_weights: Literal["uniform", "frequency"] = option(
        "uniform", "Levels count alike, or by the share of targets below them, as in the authors' code."
    )
    pit: Literal["nonrandomized", "plain"] = option(
        "nonrandomized",
        "For counts and samples: spread a row over the jump of its distribution, or count F(y) <= p, as in the papers.",
    )

    def __post_init__(self) -> None:
        require_count_option("n_levels", self.n_levels, MOST_LEVELS)
        if self.alpha not in (1, 2):
            msg = f"--alpha must be 1 or 2, got {self.alpha}"
            raise OptionError(msg)

    def interpolates(self, levels: NDArray[np.float64]) -> bool:  # noqa: ARG002 - it looks at these levels only
        return False

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.groups import MeanTerm
        from calcheck.statistics.pit import levels_of, pit, share_below

        left, right = pit(rows)
        known = rows.distributions().quantile_levels
        levels = levels_of(self.n_levels) if known is None else known
        below = share_below(right if self.pit == "plain" else left, right, levels)
        return RowResults(
            {"pit_low": left, "pit_high": right},
            {"below": MeanTerm(groups=below)},
            fixed={"levels": levels},
            details=self.details({"below": below.sums(None) / len(rows), "levels": levels}),
        )

    def rows(self, settings: None, state: None, source: Source, at: Source | None, run: Run) -> RowResults:
        found = super().rows(settings, state, source, at, run)
        below = found.terms["below"].groups
        if self.level_weights == "frequency" and below is not None and not below.sums(None).any():
            msg = "no target lies below any level, so weights by frequency (--weights) are not defined"
            raise DataError(msg)
        return found

    def details(self, means: Means) -> dict[str, Any]:
        """Describe the reliability diagram at some of its levels."""
        observed, levels = means["below"], means["levels"]
        count = len(levels)
        step = max(1, (count + 1) // 10)
        chosen = range(count) if count <= SHOWN else range(step - 1, count, step)
        return {"curve": [{"level": float(levels[j]), "observed": float(observed[j])} for j in chosen]}

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - a function of means
        import numpy as np

        observed = means["below"]  # (..., q)
        gaps = np.abs(means["levels"] - observed) ** self.alpha
        if self.level_weights == "uniform":
            return np.asarray(gaps.mean(axis=-1))
        return np.asarray((gaps * observed).sum(axis=-1) / observed.sum(axis=-1))
