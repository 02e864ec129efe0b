"""Proper scores: of distributions, of intervals and of quantiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from calcheck.core.metric_info import MetricInfo
from calcheck.errors import DataError, Message, OptionError
from calcheck.inference.metric_protocol import RowResults
from calcheck.metrics._lazy import groups, multivariate, np, scores, zscores
from calcheck.metrics.base import LevelOption, LevelsOption, LocalMetric, MeanMetric
from calcheck.options import LEVEL_TOLERANCE, option
from calcheck.result_details import CrpsDetails, LevelScore, NllDetails, PinballDetails, WisDetails

if TYPE_CHECKING:
    from calcheck.metrics._lazy import Means, Predictions, Predictive, Values

HUB_LEVELS = (0.01, 0.025, *(round(0.05 * j, 2) for j in range(1, 20)), 0.975, 0.99)  # The 23 levels of forecast hubs
COMPONENTS = ("overprediction", "underprediction", "dispersion")


@dataclass(frozen=True)
class Nll(MeanMetric):
    r"""Negative log-likelihood of the targets under the predicted distributions.

    .. math:: \mathrm{NLL} = \frac1n \sum_i -\log f_i(y_i)

    with the natural logarithm; f_i is a density for continuous distributions and a probability mass for discrete ones.
    With ``--discretise``, continuous distributions have masses too, F_i(k + 1/2) - F_i(k - 1/2) for the integer k
    nearest to y_i, which can be compared with those of distributions of counts. For several targets, f_i is the density
    of the target vector: that of joint normal distributions, or a product if the targets are predicted independently.

    Value
    -----
    Any sign, smaller is better. Dimensionless, but for densities a change of the unit of y by a factor c adds log c.
    Infinite, and null in JSON, if a target has probability 0. The report counts these rows, and the verdict is fail
    with the smallest possible p-value, also without replicates.

    Notes
    -----
    For Gaussians the NLL is (ZMS + mean log std^2 + log 2 pi) / 2. ``details`` show both terms, because a small NLL may
    come from sharp predictions or from calibrated ones. A mean over rows; unbiased. Time O(n).

    References
    ----------
    Pernot (2024), Eq. 12, arXiv 2402.10043. Gneiting, Raftery (2007), doi:10.1198/016214506000001437.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="nll",
        source="Pernot, Eq. 12 (arXiv 2402.10043)",
        interpretation=(
            "Smaller is better; only comparisons on the same targets are meaningful, as there is no absolute scale."
        ),
        details=NllDetails,
        several_targets=True,
        infinite_if_impossible=True,
    )
    column: ClassVar[str] = "nll"

    discretise: bool = option(
        "For targets that are counts, give continuous distributions the masses of whole numbers.", default=False
    )

    def measure(self, predictive: Predictive) -> Literal["densities", "masses"]:
        """Return what the likelihoods of distributions are."""
        return "masses" if predictive.has_masses or self.discretise else "densities"

    def compute(self, rows: Predictions) -> RowResults:
        predictive = rows.distributions()
        discretised = self.discretise and not predictive.has_masses
        loss = -scores.log_likelihoods(rows, discretised=discretised)
        details: NllDetails = {}
        if predictive.targets == 1 and predictive.normal() is not None and not discretised:
            log_variance = 2 * np.log(zscores.uncertainties(rows))
            details = {
                "zms": float(np.mean(zscores.z_scores(rows) ** 2)),
                "mean_log_variance": float(log_variance.mean()),
            }
        impossible = int(np.isposinf(loss).sum())
        if impossible:
            loss[np.isneginf(loss)] = 0.0  # an infinite density makes no target with probability 0 possible
        warning = f"{scores.describe_impossible(impossible)}, so the log-likelihood is infinite"
        return RowResults(
            {"nll": loss}, details=details, warnings=(Message("impossible-targets", warning),) if impossible else ()
        )


DESCRIPTIONS = {
    "energy": "Energy score: distances of several targets to the predictions, less half of those between predictions.",
    "variogram": "Variogram score of order 1/2: squared errors of the predicted differences between several targets.",
}

BIASED: CrpsDetails = {"estimator": "biased"}
FAIR: CrpsDetails = {"estimator": "fair"}


@dataclass(frozen=True)
class Crps(MeanMetric):
    r"""Continuous ranked probability score: calibration and sharpness combined, in the unit of the target.

    .. math:: \mathrm{CRPS} = \frac1n \sum_i \int (F_i(u) - 1\{u \ge y_i\})^2 \, du

    For several targets it is the energy score, or the variogram score of order 1/2, which sees how the targets depend
    on each other:

    .. math:: \mathrm{ES} = \frac1n \sum_i \mathrm{E} \lVert X_i - y_i \rVert
              - \tfrac12 \mathrm{E} \lVert X_i - X_i' \rVert, \qquad
              \mathrm{VS} = \frac1n \sum_i \sum_{j, k} (|y_{ij} - y_{ik}|^{1/2} - \mathrm{E} |X_{ij} - X_{ik}|^{1/2})^2

    Value
    -----
    Unit of y, >= 0, smaller is better. The fair estimate may be negative for a good ensemble.

    Notes
    -----
    A mean over rows; unbiased. For m draws, ``fair`` is an unbiased estimate for the distribution that the draws come
    from; ``biased`` scores the empirical distribution of the draws, which favors narrow ensembles. scoringrules
    computes the score of normal and Laplace distributions and of draws; other closed forms are arranged to be accurate
    for extreme parameters; for counts the score is a sum over the support. Time O(n), or O(n m log m) for samples.

    The energy score is ruled by the targets with the largest unit. It takes 50 draws of distributions that are not
    given by draws. Time O(n m^2 t) for t targets.

    References
    ----------
    Gneiting, Raftery (2007), doi:10.1198/016214506000001437. Ferro (2014). Scheuerer, Hamill (2015).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="crps",
        unit="y",
        source="Gneiting, Raftery 2007; Ferro 2014",
        interpretation="Smaller is better; for a point forecast it is the absolute error.",
        details=CrpsDetails,
        several_targets=True,
    )
    column: ClassVar[str] = "crps"

    ensemble: Literal["fair", "biased"] = option(
        "Score of samples: unbiased for the sampled distribution (fair), or of the draws themselves (biased).", "fair"
    )
    vector_score: Literal["energy", "variogram"] | None = option(
        "Score of several targets: of their distances, or of their differences (variogram). Default: energy."
    )

    def with_defaults(self, rows: Predictions) -> Self:
        if self.vector_score is None and rows.predictive is not None and rows.predictive.targets > 1:
            return replace(self, vector_score="energy")
        return self

    def description(self) -> str:
        if self.vector_score is None:
            return super().description()
        return f"{DESCRIPTIONS[self.vector_score]} Smaller is better."

    def compute(self, rows: Predictions) -> RowResults:
        if rows.distributions().targets > 1:
            score = multivariate.variogram_scores if self.vector_score == "variogram" else multivariate.energy_scores
            details: CrpsDetails = {"estimator": self.ensemble}
            return RowResults({"crps": score(rows, fair=self.ensemble == "fair")}, details=details)
        if self.vector_score is not None:
            raise DataError("--vector-score is for several targets, and there is one: omit it")
        predictive, y = rows.distributions(), zscores.targets(rows)
        if predictive.n_draws is None:
            return RowResults({"crps": predictive.crps(y)})
        if self.ensemble == "biased":
            return RowResults({"crps": predictive.crps(y)}, details=BIASED)
        if predictive.n_draws == 1:
            warning = "the fair CRPS needs at least 2 draws per row, got 1; this is the biased CRPS (absolute error)"
            return RowResults(
                {"crps": predictive.crps(y)}, details=BIASED, warnings=(Message("biased-estimator", warning),)
            )
        return RowResults({"crps": predictive.fair_crps(y)}, details=FAIR)


@dataclass(frozen=True)
class IntervalScore(LevelOption, MeanMetric):
    r"""Interval (Winkler) score: width of the central intervals plus a penalty for targets outside.

    .. math:: \frac1n \sum_i (u_i - l_i) + \frac2\alpha (l_i - y_i)_+ + \frac2\alpha (y_i - u_i)_+, \qquad
              \alpha = 1 - p

    Value
    -----
    Unit of y, >= 0, smaller is better; the expectation is minimal for the true interval.

    Notes
    -----
    A mean over rows; unbiased. Time O(n).

    References
    ----------
    Gneiting, Raftery (2007), doi:10.1198/016214506000001437.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="interval-score",
        unit="y",
        source="Gneiting, Raftery 2007",
        interpretation="Smaller is better.",
        uses="interval",
    )
    column: ClassVar[str] = "interval_score"

    def compute(self, rows: Predictions) -> RowResults:
        from scoringrules import interval_score

        y, level = zscores.targets(rows), self.level_of(rows.predictive)

        def score(part: Predictive, rows: slice) -> Values:
            limits = zscores.central_interval(part, level)
            return np.reshape(interval_score(y[rows], *limits, 1 - level, backend="numpy"), -1)

        return RowResults({"interval_score": rows.distributions().map_batches(score)})


@dataclass(frozen=True)
class Wis(LevelsOption, LocalMetric):
    r"""Weighted interval score: mean of the interval scores at several levels and the error of the median.

    .. math:: \mathrm{WIS} = \frac1n \sum_i \frac{1}{K + 1/2} \Big( \tfrac12 |y_i - m_i| + \sum_{k=1}^K
              \tfrac{\alpha_k}2 (u_{ik} - l_{ik}) + (l_{ik} - y_i)_+ + (y_i - u_{ik})_+ \Big)

    where :math:`m_i` is the median, and :math:`l_{ik}`, :math:`u_{ik}` are the quantiles at :math:`\alpha_k / 2` and
    :math:`1 - \alpha_k / 2`. Without the median, the sum is divided by :math:`K`.

    Value
    -----
    Unit of y, >= 0, smaller is better; the expectation is minimal for the true quantiles. It is the sum of
    overprediction (targets below the intervals or the median), underprediction (targets above them) and dispersion
    (the widths), which are in ``details`` and in the pointwise output.

    Notes
    -----
    A mean over rows; unbiased. It is twice the pinball loss averaged over the levels, and approximates the CRPS. Files
    of quantiles use their own levels; those without a counterpart are not used, as by scoringutils with ``na.rm``.
    There is no verdict for such a file, as the score of a perfect model depends on the distribution between and beyond
    the quantiles. Time O(n k), memory O(n).

    References
    ----------
    Bracher, Ray, Gneiting, Reich (2021), Eq. 2-3, doi:10.1371/journal.pcbi.1008618.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="wis",
        unit="y",
        source="Bracher, Ray, Gneiting, Reich 2021",
        interpretation="Smaller is better; the sum of overprediction, underprediction and dispersion.",
        details=WisDetails,
    )
    default_levels: ClassVar[tuple[float, ...]] = HUB_LEVELS

    levels: tuple[float, ...] | None = option(
        "Quantile levels: pairs p and 1 - p, with or without 0.5. Default: those of a quantile file, else the 23 levels"
        " of forecast hubs."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if single := _unpaired(self.levels or ()):
            raise OptionError(f"--levels must be pairs p and 1 - p, got {single[0]:g} without {1 - single[0]:g}")

    def compute(self, rows: Predictions) -> RowResults:
        levels, warnings = self._used(rows.distributions())
        parts = scores.interval_score_parts(rows.distributions(), zscores.targets(rows), levels)
        components = dict(zip(COMPONENTS, parts, strict=True))
        return RowResults(
            {"wis": parts[0] + parts[1] + parts[2], **components},
            {name: groups.MeanTerm(values) for name, values in components.items()},
            fixed={"levels": np.array(levels)},
            details=_details({name: values.mean() for name, values in components.items()}, levels),
            warnings=warnings,
        )

    def _used(self, predictive: Predictive) -> tuple[Sequence[float], tuple[Message, ...]]:
        """Return the levels that are used, and a message about other levels of the file."""
        known = predictive.quantile_levels
        if self.levels is not None or known is None:
            return self.levels_of(predictive), ()
        levels = known.tolist()
        single = _unpaired(levels)
        used = [level for level in levels if level not in single]
        listed = ", ".join(f"{level:g}" for level in single)
        if len(used) <= 1:
            msg = f"no two quantiles form a central interval: level {single[0]:g} has no quantile at {1 - single[0]:g}"
            raise DataError(msg)
        if not single:
            return used, ()
        text = f"quantiles at levels without a counterpart are not used: {listed}"
        return used, (Message("unpaired-levels", text),)

    def details(self, means: Means) -> WisDetails:
        return _details(means, means["levels"].tolist())

    def value(self, means: Means) -> Values:
        return means["overprediction"] + means["underprediction"] + means["dispersion"]


def _unpaired(levels: Sequence[float]) -> list[float]:
    """Return the levels p without a level 1 - p; the level 1/2 is its own counterpart."""
    return [level for level in levels if min(abs(1 - level - other) for other in levels) > LEVEL_TOLERANCE]


def _details(means: Mapping[str, Any], levels: Sequence[float]) -> WisDetails:
    over, under, dispersion = (float(means[name]) for name in COMPONENTS)
    return {"overprediction": over, "underprediction": under, "dispersion": dispersion, "levels": list(levels)}


@dataclass(frozen=True)
class Pinball(LevelsOption, MeanMetric):
    r"""Pinball loss (quantile score) of predicted quantiles, averaged over quantile levels.

    .. math:: \frac1{nk} \sum_{i=1}^n \sum_{j=1}^k (1\{y_i < q_{ij}\} - p_j) (q_{ij} - y_i), \qquad
              q_{ij} = F_i^{-1}(p_j)

    Value
    -----
    Unit of y, >= 0, smaller is better; the expectation is minimal for the true quantiles. ``details`` contain the mean
    score at each level.

    Notes
    -----
    A mean over rows; unbiased. At level 1/2 alone, it is half the mean absolute error of medians; the integral over all
    levels is half the CRPS. Files of quantiles use their own levels; other levels are interpolated. There is no verdict
    for such a file, as the score of a perfect model depends on the distribution between and beyond the quantiles.
    scoringrules computes the score. Time O(n k), memory O(n).

    References
    ----------
    Koenker, Bassett (1978), Econometrica 46, 33-50. Gneiting, Raftery (2007), Sec. 6, doi:10.1198/016214506000001437.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pinball",
        unit="y",
        source="Koenker, Bassett 1978; Gneiting, Raftery 2007, Sec. 6",
        interpretation="Smaller is better.",
        details=PinballDetails,
    )
    column: ClassVar[str] = "pinball"
    default_levels: ClassVar[tuple[float, ...]] = (0.1, 0.25, 0.5, 0.75, 0.9)

    levels: tuple[float, ...] | None = option(
        "Quantile levels of the scores. Default: those of a quantile file, else 0.1, 0.25, 0.5, 0.75 and 0.9."
    )

    def compute(self, rows: Predictions) -> RowResults:
        from scoringrules import quantile_score

        predictive, y = rows.distributions(), zscores.targets(rows)
        levels = self.levels_of(predictive)
        total = np.zeros(len(y))
        by_level: list[LevelScore] = []
        for level, predicted in zip(levels, scores.quantiles(predictive, levels), strict=True):
            losses = np.asarray(quantile_score(y, predicted, level, backend="numpy"))
            total += losses
            by_level.append({"level": level, "score": float(losses.mean())})
        details: PinballDetails = {"by_level": by_level}
        return RowResults({"pinball": total / len(levels)}, details=details)
