"""Local error: by how much the scale or the bias of the predictions varies from row to row."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from calcheck.core.metric_info import MetricInfo
from calcheck.core.text import count_of
from calcheck.errors import DataError
from calcheck.inference.metric_protocol import CurveData, IntervalInference, NullDistribution, RowResults
from calcheck.metrics._lazy import curves, local_error, np, pit
from calcheck.metrics.base import Metric
from calcheck.options import option
from calcheck.result_details import LocalErrorDetails

if TYPE_CHECKING:
    from calcheck.embeddings.local_error import LocalRegression
    from calcheck.metrics._lazy import Curve, Means, NullSimulator, Predictions, Run, Source, Values

FEWEST = 5  # Rows, of which an interval can be stated
KEYWORDS = ("std", "inputs", "time")
LOCAL_ERROR = MetricInfo(
    name="",
    alternative="greater",
    source="Neyman 1937, with leave-one-out predictions",
    interpretation="",
    interval="lower",
    uses_inputs=True,
    details=LocalErrorDetails,
)  # What the metrics have in common


class _Estimate(NamedTuple):
    """Local errors of n rows."""

    place: int  # The place of the regularizer of the value
    sharpest: int  # That of the local errors
    mean: float  # The mean component of the PIT
    influences: Values  # (n,), the value is their mean
    local: Values  # (n,), local errors
    outputs: Values  # (n,), what was predicted, in units of local errors


@dataclass(frozen=True)
class LocalErrorMetric(Metric["LocalRegression"]):
    """Base class of metrics that bound from below how much an expected component of the PIT varies between rows."""

    degree: ClassVar[int]  # The degree of the component, from 1
    column: ClassVar[str]  # The name of the local error of a row
    right: ClassVar[float]  # The local error of a right model
    curves_along_columns: ClassVar[bool] = True

    along: str | None = option(
        "What the error may vary along: the predicted standard deviation (std), the inputs or the embedding (inputs),"
        " the times of --time (time), or a column of numbers, dates or categories. Default: inputs if there are, else"
        " std.",
        metavar="std|inputs|time|COLUMN",
    )

    def columns(self) -> tuple[str, ...]:
        return () if self.along is None or self.along in KEYWORDS else (self.along,)

    def with_defaults(self, rows: Predictions) -> LocalErrorMetric:
        return replace(self, along=self._direction(rows))

    def _direction(self, rows: Predictions) -> str:
        """Return what the error may vary along: by default inputs if there are any, else the standard deviation."""
        return self.along if self.along is not None else "std" if rows.x is None else "inputs"

    def _resolution(self, rows: Predictions) -> float:
        return local_error.resolution(rows.distributions(), self.degree)

    def interpolates(self, levels: Values) -> bool:  # noqa: ARG002 - the PIT lies between stated levels
        return False

    def fit(self, source: Source, run: Run) -> LocalRegression:
        rows = source.predictions()
        if self._resolution(rows) <= 0:
            raise DataError("one draw per row shows no uncertainty: two are needed")
        if len(rows) < FEWEST:
            raise DataError(
                f"{count_of(len(rows), 'row is', 'rows are')} too few for local errors: {FEWEST} are needed"
            )
        return local_error.local_regression(rows, self._direction(rows), run.quiet())

    def refit(self, fit: LocalRegression, source: Source, run: Run) -> LocalRegression:  # noqa: ARG002 - inputs are the same
        """Return the fit: it does not depend on targets."""
        return fit

    def evaluate(self, fit: LocalRegression, source: Source, run: Run) -> RowResults:
        from calcheck.embeddings.local_error import LAMBDAS

        rows = source.predictions()
        found = self._estimate(fit, rows)
        value, error = float(found.influences.mean()), fit.standard_error(found.influences)
        null = fit.null_bounds(found.outputs, rows, run)
        reach = max(fit.critical_value(run.confidence) * error, float(np.quantile(null, run.confidence)))
        details: LocalErrorDetails = {
            "along": self._direction(rows),
            "mean": float(self.local_error(np.array(found.mean / self._resolution(rows)))),
            "standard_error": error,
            "rows": len(found.influences),
            "regularizer": LAMBDAS[found.place],
            "directions": fit.regression.basis.shape[1],
            "dof": float(fit.regression.shrinkage[found.place].sum()),
        }
        is_sample = fit.places is not None and not run.keep_rows
        local = found.local if fit.places is None or is_sample else self._at_all_rows(fit, rows, found, run)
        return RowResults(
            {self.column: local},
            fixed={"value": np.array(value)},
            details=details,
            inference=IntervalInference(low=value - reach, interval="normal"),
            numbers=fit.places if is_sample else None,
        )

    def _estimate(self, fit: LocalRegression, rows: Predictions) -> _Estimate:
        """Return the local errors of rows, and their influences on the value."""
        rows = fit.take(rows)
        outputs, known = pit.mean_component(*pit.stated_pit(rows), self.degree), self._resolution(rows)
        mean = float(outputs.mean())
        outputs -= mean
        found = fit.regression.covariances(outputs[:, None])
        place, sharpest = int(found.best[0]), int(found.sharpest[0])
        predicted, local = (fit.regression.predict(outputs[:, None], each)[:, 0] for each in (place, sharpest))
        unit = local_error.DERIVATIVES[self.degree] * known
        influences = predicted * outputs / (predicted.std() * unit)
        local = self.local_error((local + mean) / known)
        return _Estimate(place, sharpest, mean, influences, local, outputs / unit)

    def _at_all_rows(self, fit: LocalRegression, rows: Predictions, found: _Estimate, run: Run) -> Values:
        """Return the local errors of all rows, (n,), by the regression on a sample of them."""
        known = self._resolution(rows)
        x = local_error.positions(rows, self._direction(rows), run)
        outputs = found.outputs * local_error.DERIVATIVES[self.degree] * known
        local = self.local_error((fit.regression.predict_others(x, outputs, found.sharpest) + found.mean) / known)
        local[fit.places] = found.local
        return local

    def value(self, means: Means) -> Values:
        return means["value"]

    def null_statistic(self, means: Means) -> Values:
        """Return the value."""
        return self.value(means)

    def null_reference(self, rows: RowResults) -> float:  # noqa: ARG002 - the same for all rows
        """Return 0: predictions of a right model's errors are independent of them."""
        return 0.0

    def null_distribution(self, fit: LocalRegression, simulation: NullSimulator, run: Run) -> NullDistribution:
        """Return the values of the replicates, a block of them at a time; for dependent rows, those of random signs."""
        from calcheck.inference.null_distribution import replicate_pits

        if fit.clusters is not None:
            null = fit.null_bounds(self._estimate(fit, simulation.rows).outputs, simulation.rows, run)
            return NullDistribution(null, details=fit.clusters.details)
        left, right = replicate_pits(simulation, local_error.MOST_ROWS)
        size, found = max(1, run.limits.block_targets // right.shape[1]), []
        for start in range(0, len(right), size):
            high = right[start : start + size].T.astype(np.float64, order="C")
            low = high if left is right else left[start : start + size].T.astype(np.float64, order="C")
            outputs = pit.mean_component(low, high, self.degree)
            found.append(fit.regression.covariances(outputs - outputs.mean(axis=0)).bounds)
        unit = local_error.DERIVATIVES[self.degree] * self._resolution(simulation.rows)
        return NullDistribution(np.concatenate(found) / unit)

    def curves(self, shown: CurveData[LocalRegression]) -> tuple[Curve, ...]:
        """Return the mean local error in bins of rows, by default along the column of ``along``."""
        rows = shown.source.predictions()
        local, by = {self.column: self._estimate(shown.fit, rows).local}, shown.run.curves_by or self.columns()
        return (curves.curve_along(lambda means: means[self.column], shown.fit.take(rows), local, by, self.right),)

    @abstractmethod
    def local_error(self, means: Values) -> Values:
        """Return the local errors of normal targets with given expected components."""


@dataclass(frozen=True)
class LocalScale(LocalErrorMetric):
    r"""Typical relative error of the predicted scale from row to row, as far as inputs explain it.

    .. math:: \frac{\pi}{\sqrt{15}} \, \frac{\mathrm{Cov}(g_i, w_i)}{\mathrm{sd}(g_i)}, \qquad
              w_i = \phi_2(F_i(y_i)), \quad \phi_2(u) = \sqrt5 (6u^2 - 6u + 1)

    where :math:`g_i` predicts :math:`w_i` from the other rows, by kernel ridge regression along the inputs, the
    predicted standard deviation, the time, or a column. A constant error of the scale has no effect: see ``zms`` and
    ``pit-dispersion``.

    Value
    -----
    Dimensionless, smaller is better: 0.2 says that intervals are typically too narrow or too wide by 20 %, in some
    direction, beside the error that all rows share. It is a lower bound of the standard deviation of the logarithm of
    the factor by which standard deviations are wrong, with ``low`` as its one-sided limit at the confidence (at least).
    A right model has a mean near 0, slightly below it, as predictions of noise are no better than none. Rows have the
    local factor: above 1 where predictions are too narrow.

    Notes
    -----
    By Cauchy-Schwarz, sd(E[w|x]) >= Cov(g, w) / sd(g) for any g that does not depend on the row's own target. The
    divisor, :math:`\sqrt{15} / \pi`, is the derivative of E[w] by the logarithm of the factor for normal errors; it is
    smaller for draws and quantiles, which show less of the PIT. Where a CDF jumps, w is averaged over the jump.
    The kernel on several inputs is that of cce, on numbers it is a smoothing spline of their ranks. The regularizer
    is the largest of five whose leave-one-out error is at most one standard error above the smallest, for data and
    replicates alike; local factors have that with the smallest error. Above 1,000 rows, landmarks replace inputs, and
    10,000 sampled rows replace more of them: the bound holds, and p is exact, for any landmarks and any sample. The
    limit is below the value by the quantile of normal errors, or by that of values for random signs of w, as if nothing
    varied, if that is more. If rows depend on each other, predictions are those without folds of whole
    clusters, standard errors are those of sums by cluster, and the rows of a cluster have the same sign; p is then by
    random signs. Along the predicted standard deviation of draws, rows are ordered by the median absolute deviation of
    draws and target together, whose ranks are uniform for a right model. Time O(n M^2) for M landmarks.

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Barber, Candès, Ramdas, Tibshirani (2021), "The limits of
    distribution-free conditional predictive inference": the absence of local errors cannot be shown.
    """

    info: ClassVar[MetricInfo] = replace(
        LOCAL_ERROR,
        name="local-scale",
        above="conditional-scale",
        interpretation="Smaller is better; 0.2 says that intervals are off by at least 20 % from row to row.",
    )
    degree: ClassVar[int] = 2
    column: ClassVar[str] = "local_factor"
    right: ClassVar[float] = 1.0

    def local_error(self, means: Values) -> Values:
        return local_error.factors(means)


@dataclass(frozen=True)
class LocalBias(LocalErrorMetric):
    r"""Typical bias from row to row in predicted standard deviations, as far as inputs explain it.

    .. math:: \sqrt{\frac{\pi}{3}} \, \frac{\mathrm{Cov}(g_i, w_i)}{\mathrm{sd}(g_i)}, \qquad
              w_i = \phi_1(F_i(y_i)), \quad \phi_1(u) = \sqrt3 (2u - 1)

    where :math:`g_i` predicts :math:`w_i` from the other rows, by kernel ridge regression along the inputs, the
    predicted standard deviation, the time, or a column. A bias that all rows share has no effect: see ``bias`` and
    ``pit-bias``.

    Value
    -----
    In predicted standard deviations, smaller is better: 0.2 says that predictions are typically too low or too high by
    0.2 standard deviations, in some direction, beside the bias that all rows share. It is a lower bound of the standard
    deviation of the local bias, with ``low`` as its one-sided limit at the confidence (at least). A right model has a
    mean near 0, slightly below it. Rows have the local bias: positive where targets are above predictions.

    Notes
    -----
    As for ``local-scale``, with the divisor :math:`\sqrt{3 / \pi}`: the derivative of E[w] by the shift of normal
    targets. Time O(n M^2) for M landmarks.

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Barber, Candès, Ramdas, Tibshirani (2021), "The limits of
    distribution-free conditional predictive inference".
    """

    info: ClassVar[MetricInfo] = replace(
        LOCAL_ERROR,
        name="local-bias",
        above="conditional-bias",
        interpretation="Smaller is better; 0.2 says that the bias varies by at least 0.2 standard deviations.",
    )
    degree: ClassVar[int] = 1
    column: ClassVar[str] = "local_shift"
    right: ClassVar[float] = 0.0

    def local_error(self, means: Values) -> Values:
        return local_error.shifts(means)
