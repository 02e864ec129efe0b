"""Components of the probability integral transform (PIT) and its independence of earlier rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.core.metric_info import MetricInfo
from calcheck.details import PitIndependenceDetails
from calcheck.errors import DataError
from calcheck.inference.metric_protocol import RowResults
from calcheck.metrics.base import MeanMetric, Metric
from calcheck.options import option, require_count_option

if TYPE_CHECKING:
    from calcheck.execution.run import Run
    from calcheck.predictions import Predictions, Source
    from calcheck.statistics.groups import Means
    from calcheck.typing import Values


@dataclass(frozen=True)
class PitComponent(MeanMetric):
    """Mean of an orthonormal polynomial of the PIT: 0 for a perfect model, with variance at most 1/n."""

    column: ClassVar[str] = "component"
    degree: ClassVar[int]
    """The degree of the polynomial, from 1."""

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.pit import mean_component, pit

        predictive = rows.distributions()
        is_exact = predictive.shape_is_known and predictive.quantile_levels is None
        values = mean_component(*pit(rows), self.degree)
        return RowResults({"component": values}, reference=0.0 if is_exact else None)


@dataclass(frozen=True)
class PitBias(PitComponent):
    r"""Bias of the probability integral transform (PIT): its mean, standardized.

    .. math:: \frac1n \sum_i \phi_1(F_i(y_i)), \qquad \phi_1(u) = \sqrt3 (2u - 1)

    If a CDF jumps at its target from F- to F, the polynomial is averaged over [F-, F].

    Value
    -----
    Dimensionless, in [-1.73, 1.73]; 0 is ideal. Positive values mean that targets are above the
    predictions.

    Notes
    -----
    A mean over rows; unbiased. For a perfect continuous model the variance is 1/n, and the four components of the PIT
    are uncorrelated. The influence of a row is bounded, so the metric suits heavy tails and distributions without a
    mean. Time O(n).

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-bias",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="zero",
        above="predictions-too-low",
        below="predictions-too-high",
        source="Neyman 1937",
        interpretation="0 is ideal; positive values mean that targets are above the predictions.",
        exempt_laws={"spread": "about 0 for any spread of symmetric distributions, so noise decides"},
    )
    degree: ClassVar[int] = 1


@dataclass(frozen=True)
class PitDispersion(PitComponent):
    r"""Dispersion of the probability integral transform (PIT): its mean square around 1/2, standardized.

    .. math:: \frac1n \sum_i \phi_2(F_i(y_i)), \qquad \phi_2(u) = \sqrt5 (6u^2 - 6u + 1)

    If a CDF jumps at its target from F- to F, the polynomial is averaged over [F-, F].

    Value
    -----
    Dimensionless, in [-1.12, 2.24]; 0 is ideal. Positive values mean that distributions
    are too narrow: the histogram of the PIT has the shape of a U.

    Notes
    -----
    A mean over rows; unbiased. A bias alone also makes it positive: compare ``pit-bias`` first. The influence of a row
    is bounded, so the metric suits heavy tails, where few rows determine ``zms``. Time O(n).

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-dispersion",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="zero",
        above="too-narrow",
        below="too-wide",
        source="Neyman 1937",
        interpretation="0 is ideal; positive values mean that distributions are too narrow.",
    )
    degree: ClassVar[int] = 2


@dataclass(frozen=True)
class PitSkew(PitComponent):
    r"""Skewness of the probability integral transform (PIT): its third Legendre moment, standardized.

    .. math:: \frac1n \sum_i \phi_3(F_i(y_i)), \qquad \phi_3(u) = \sqrt7 (20u^3 - 30u^2 + 12u - 1)

    If a CDF jumps at its target from F- to F, the polynomial is averaged over [F-, F].

    Value
    -----
    Dimensionless, in [-2.65, 2.65]; 0 is ideal. Positive values mean that targets are more
    skewed to the right than predicted.

    Notes
    -----
    A mean over rows; unbiased. Compare ``pit-bias`` and ``pit-dispersion`` first: a large bias or a wrong width also
    contributes to this component. The influence of a row is bounded. Time O(n).

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-skew",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="zero",
        above="skewed-right",
        below="skewed-left",
        source="Neyman 1937",
        interpretation="0 is ideal; positive values mean that targets are more skewed to the right than predicted.",
        exempt_laws={"spread": "about 0 for any spread of symmetric distributions, so noise decides"},
    )
    degree: ClassVar[int] = 3


@dataclass(frozen=True)
class PitTails(PitComponent):
    r"""Tails of the probability integral transform (PIT): its fourth Legendre moment, standardized.

    .. math:: \frac1n \sum_i \phi_4(F_i(y_i)), \qquad \phi_4(u) = 3 (70u^4 - 140u^3 + 90u^2 - 20u + 1)

    If a CDF jumps at its target from F- to F, the polynomial is averaged over [F-, F].

    Value
    -----
    Dimensionless, in [-1.29, 3]; 0 is ideal. Positive values mean that targets have
    heavier tails, and more values near the center, than predicted.

    Notes
    -----
    A mean over rows; unbiased. If ``pit-dispersion`` is near 0, the width is right and the shape is wrong. A wrong
    width also contributes to this component. The influence of a row is bounded. Time O(n).

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-tails",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="zero",
        above="heavy-tails",
        below="light-tails",
        source="Neyman 1937",
        interpretation="0 is ideal; positive values mean that targets have heavier tails than predicted.",
    )
    degree: ClassVar[int] = 4


MOST_LAGS = 1_000  # maximum number of lags


@dataclass(frozen=True)
class PitIndependence(Metric[None]):
    r"""Serial correlation of the probability integral transform (PIT), and of its distance from 1/2.

    .. math:: \sqrt{\frac1{2L} \sum_{k=1}^{L} \left(r_k(u)^2 + r_k(|2u - 1|)^2\right)}, \qquad u_t = F_t(y_t)

    where r_k is the autocorrelation at lag k. Rows are in the order of the file, or of the column of ``--time``; rows
    of one time are averaged. If a CDF jumps at its target from F- to F, both are averaged over [F-, F].

    Value
    -----
    Dimensionless, in [0, 1], smaller is better. A perfect model of which each forecast knows the targets before it
    scores about 1 / sqrt(n).

    Notes
    -----
    Forecasts of h steps ahead are right although errors depend on each other at lags below h. A large value is
    evidence against forecasts of one step, and it is the reason to pass ``--time`` to the other metrics, whose
    p-values assume independent rows. Replicates are independent, so that the p-value is exact, also for counts and
    samples. Time O(n L).

    References
    ----------
    Diebold, Gunther, Tay (1998), "Evaluating density forecasts", International Economic Review 39, 863-883. Box, Pierce
    (1970).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-independence",
        unit="1",
        needs=("y", "predictive"),
        alternative="greater",
        orientation="smaller",
        above="dependent-errors",
        source="Diebold, Gunther, Tay 1998",
        interpretation="Smaller is better; errors of forecasts of one step are independent in time.",
        interval="none",
        no_interval="it is a function of pairs of rows, for which the row bootstrap is not valid",
        tests_independence=True,
        pointwise=False,
        details=PitIndependenceDetails,
        exempt_laws={"spread": "correlations do not depend on the spread, so noise decides"},
    )

    lags: int = option(5, "Number of lags.")

    def __post_init__(self) -> None:
        require_count_option("lags", self.lags, MOST_LAGS)

    def fit(self, source: Source, run: Run) -> None:
        """Return None: there is nothing to fit."""

    def evaluate(self, fit: None, source: Source, run: Run) -> RowResults:  # noqa: ARG002 - nothing is fitted
        import numpy as np

        from calcheck.dependence.columns import time_labels
        from calcheck.statistics.pit import mean_distance, pit

        rows = source.predictions()
        place = time_labels(rows, run.dependence.time)
        counts = np.bincount(place)
        if len(counts) < self.lags + 2:
            times = "1 time is" if len(counts) == 1 else f"{len(counts)} times are"
            msg = f"{times} too few for {self.lags} lags. Pass a smaller --lags, or more rows"
            raise DataError(msg)
        left, right = pit(rows)
        series = [np.bincount(place, each) / counts for each in ((left + right) / 2, mean_distance(left, right))]
        found = np.stack([self._correlations(each) for each in series])
        return RowResults({}, fixed={"correlations": found}, details=self._details(found))

    def _correlations(self, series: Values) -> Values:
        """Return the autocorrelations at the first lags, (L,); 0 for a constant series."""
        import numpy as np

        from calcheck.dependence.columns import autocovariances

        covariances = autocovariances(series)
        return covariances[1 : self.lags + 1] / covariances[0] if covariances[0] > 0 else np.zeros(self.lags)

    def _details(self, found: Values) -> PitIndependenceDetails:
        """Return the autocorrelations at each lag."""
        position, distance = found.tolist()
        return {
            "correlations": [
                {"lag": lag, "position": own, "distance": other}
                for lag, own, other in zip(range(1, self.lags + 1), position, distance, strict=True)
            ]
        }

    def value(self, means: Means) -> Values:
        import numpy as np

        return np.asarray(np.sqrt(np.mean(means["correlations"] ** 2)))
