"""Serial correlation of the probability integral transform (PIT) in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.details import PitIndependenceDetails
from calcheck.errors import DataError
from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import Metric
from calcheck.options import option, require_count_option
from calcheck.results import RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.predictions import Source
    from calcheck.statistics.groups import Means

MOST_LAGS = 1_000  # maximum number of lags


@dataclass(frozen=True)
class PitIndependence(Metric[None]):
    r"""Serial correlation of the probability integral transform (PIT), and of its distance from 1/2.

    .. math:: \sqrt{\frac1{2L} \sum_{k=1}^{L} \left(r_k(u)^2 + r_k(|2u - 1|)^2\right)}, \qquad u_t = F_t(y_t)

    where r_k is the autocorrelation at lag k. Rows are in the order of the file, or of the column of ``--time``; rows
    of one time are averaged. If a CDF jumps at its target from F- to F, both are averaged over [F-, F].

    Parameters
    ----------
    lags
        Number of lags L.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, in [0, 1], smaller is better. A perfect model of which each forecast knows the targets before it
    scores about 1 / sqrt(n).

    Raises
    ------
    OptionError
        The number of lags is out of range.
    DataError
        There are too few times, or there are several target columns.

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

    def _correlations(self, series: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the autocorrelations at the first lags, (L,); 0 for a constant series."""
        import numpy as np

        from calcheck.dependence.autoregression import autocovariances

        covariances = autocovariances(series)
        return covariances[1 : self.lags + 1] / covariances[0] if covariances[0] > 0 else np.zeros(self.lags)

    def _details(self, found: NDArray[np.float64]) -> PitIndependenceDetails:
        """Return the autocorrelations at each lag."""
        position, distance = found.tolist()
        return {
            "correlations": [
                {"lag": lag, "position": own, "distance": other}
                for lag, own, other in zip(range(1, self.lags + 1), position, distance, strict=True)
            ]
        }

    def value(self, means: Means) -> NDArray[np.float64]:
        import numpy as np

        return np.asarray(np.sqrt(np.mean(means["correlations"] ** 2)))
