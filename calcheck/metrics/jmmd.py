"""Joint maximum mean discrepancy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from calcheck.details import JmmdDetails
from calcheck.errors import DataError
from calcheck.kernels.kernel_options import Estimator
from calcheck.metric_info import MetricInfo
from calcheck.metrics._joint_mmd import JointMetric
from calcheck.metrics._of_samples import OfSamples, info_of_samples, sample_kernel, with_options_of
from calcheck.options import option
from calcheck.results import RowResults

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from calcheck.embeddings.fitted_settings import KernelSettings
    from calcheck.embeddings.laplace_features import PairForm
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.mmd.joint import JointEmbedding
    from calcheck.mmd.joint_samples import SampleDistance
    from calcheck.mmd.quadratic_forms import GramSums
    from calcheck.report import Alternative

    Values = NDArray[np.float64]


@dataclass(frozen=True)
class Jmmd(JointMetric["GramSums"]):
    r"""Squared joint maximum mean discrepancy between (input, target) and (input, prediction).

    .. math:: \mathrm{JMMD}^2 = \frac{1}{n(n-1)} \sum_{i \ne j} k_X(x_i, x_j)\, \delta_i \cdot \delta_j, \qquad
              \delta_i = \frac1r \sum_a \psi(y_{ia}) - \mathrm{E}\, \psi(Y'_i)

    where :math:`\psi` are features of the kernel on targets. For samples, the expectation is the mean over the draws
    of the row.

    Parameters
    ----------
    standardize, kernel_x, gamma_x, kernel_y, gamma_y
        Standardization, and the kernels on inputs and targets.
    feature_targets, gamma_features, epsilon
        Features among the target columns, and their kernel.
    statistic
        Estimator: unbiased, v or paper.
    max_exact_rows
        Maximum rows for an exact sum over all pairs.

    Needs
    -----
    y : (n,), (n, t) or (n, r, t), unit of y
    predictive : n distributions
    x : (n, d), any unit

    Value
    -----
    Dimensionless, squared, smaller is better. ``unbiased`` is 0 on average for a perfect model and may be negative.
    ``v`` is >= 0, at most twice the mean of k_X, and biased upwards by noise. ``paper`` may have any sign, as it omits
    the term that depends on the data only, and it is biased because targets and predictions share their inputs.

    Raises
    ------
    DataError
        A required column is missing, targets are constant, or there is only one row.

    Notes
    -----
    ``v`` sums all pairs and divides by n^2. ``paper`` is -2 sum_ij K_ij a_i.b_j / n^2 plus the mean of K k_Y over pairs
    of distinct draws, as in the paper's Eq. 7 for draws at independent inputs. Repeated targets of one input are rows
    with the same id. Up to ``--max-exact-rows`` all pairs are summed, O(n^2 (d + q)) with q features of targets.
    Beyond, K_X is approximated by Nyström features in O(n). Their number is the smallest with an error of at most 1 %
    of the value, or a tenth of its standard deviation under the null, on 10,000 validation rows. Details give the
    error.
    With a second file, two samples are compared, whose inputs may differ: its targets are draws of the model, and each
    row has one. ``paper`` is then Eq. 7 under its own premise. Scales are those of both samples together. p comes from
    exchanging any rows, which is exact for independent rows: it is for inputs and targets together. If each input is
    equally frequent in both samples, rows with equal inputs are exchanged. Time and memory are quadratic in the rows.
    With --feature-targets, the last target columns are features f of the others, in the targets and in the predictions
    alike, and the kernel on targets is ((1 - epsilon) k(f, f') + epsilon) k(y, y'), as in Section 5.2 of the paper.
    A polynomial kernel on targets compares moments up to order 3. A Laplace kernel on targets compares all pairs of
    targets and predictions, in memory O(n^2); standardized targets are then divided by the deviation of the predictions
    (for samples, of targets and draws together), which replicates share.

    References
    ----------
    Huang, Lam, Zhang, Evaluating Aleatoric Uncertainty via Conditional Generative Models, Eq. 5, 7 (arXiv 2206.04287).

    Examples
    --------
    >>> Jmmd(statistic="v").options()["statistic"]
    'v'
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="jmmd",
        unit="1",
        needs=("y", "predictive", "x"),
        alternative="greater",
        orientation="smaller",
        above="wrong-distribution",
        source="Huang, Lam, Zhang, Eq. 7 (arXiv 2206.04287)",
        interpretation="0 on average for a perfect model; negative values are possible.",
        interval="none",
        no_interval="it is a mean over pairs of rows, for which the row bootstrap is not valid",
        uses_kernels=True,
        several_targets=True,
        repeated_targets=True,
        details=JmmdDetails,
    )

    statistic: Estimator = option(
        "unbiased",
        "Estimator: pairs of distinct rows (unbiased), all pairs (v), or without the term of the data only (paper).",
    )

    def description(self) -> str:
        return (
            f"{self.summary()} The term that depends on the data only is omitted."
            if self.statistic == "paper"
            else super().description()
        )

    @property
    def alternative(self) -> Alternative:
        return "two-sided" if self.statistic == "paper" else "greater"

    def _sums(self, settings: KernelSettings, x: NDArray[np.floating[Any]], run: Run) -> GramSums:
        from calcheck.mmd.quadratic_forms import GramSums

        if len(x) == 1:
            msg = "jmmd is a mean over pairs of rows and needs at least 2 rows, got 1"
            raise DataError(msg)
        return GramSums(settings.kernel, settings.scaling(x), run, self.max_exact_rows)

    def _row_results(self, sums: GramSums, embedding: JointEmbedding) -> RowResults:
        form = embedding.form(self.statistic)
        pairs = sums.pairs(form)
        values = len(form.u) * form.terms(pairs.products(form.u), pairs.diagonal)
        return RowResults({"jmmd": values}, details={"pairs": pairs.details}, warnings=tuple(pairs.warnings))

    @property
    def _uses_differences(self) -> bool:
        return self.statistic != "paper"

    def _pair_form(self, sums: GramSums) -> PairForm | None:
        return None if self.statistic == "paper" else sums.pair_form(unbiased=self.statistic == "unbiased")

    def _replicate_values(self, sums: GramSums, data_sets: Iterable[JointEmbedding | None]) -> list[float]:
        forms = [None if each is None else each.form(self.statistic) for each in data_sets]
        known = [form for form in forms if form is not None]
        values = iter(sums.pairs_of_many(known[0]).totals(known) if known else ())
        return [float("nan") if form is None else float(next(values)) for form in forms]

    def _influences(self, sums: GramSums, first: JointEmbedding, second: JointEmbedding) -> NDArray[np.float64]:
        import numpy as np

        one, other = first.form(self.statistic), second.form(self.statistic)
        pairs = sums.pairs(one)
        mean, half = (one.u + other.u) / 2, (one.u - other.u) / 2
        slope = (one.left_vectors + other.left_vectors) / 4 + one.scale / 2 * mean  # half of the gradient at the mean
        terms = half * pairs.products(slope) + slope * pairs.products(half)
        if self.statistic == "unbiased":
            terms -= 2 * one.scale * pairs.diagonal[:, None] * half * mean
        return np.asarray(-4 * terms.sum(axis=1))

    def of_samples(self) -> JmmdOfSamples:
        """Return the metric with these options, of two samples."""
        return with_options_of(self, JmmdOfSamples)


@dataclass(frozen=True)
class JmmdOfSamples(OfSamples, Jmmd):  # type: ignore[misc]
    """Squared joint maximum mean discrepancy of two samples of inputs and targets."""

    info: ClassVar[MetricInfo] = info_of_samples(
        Jmmd.info, "0 on average if inputs and targets have equal joint distributions; negative values are possible."
    )

    def _distance(self, kernel: Kernel, x: Values, y: Values) -> tuple[SampleDistance, dict[str, Any]]:
        from calcheck.mmd.joint_samples import JointMmd

        on_targets, details = sample_kernel(self, y.shape[1])
        return JointMmd(kernel.gram(x, x) * on_targets.gram(y, y), self.statistic), details
