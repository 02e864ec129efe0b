"""Joint maximum mean discrepancy."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from calcheck.errors import DataError
from calcheck.kernels.kernel_options import Estimator
from calcheck.metrics._joint_mmd import JointMetric
from calcheck.options import option
from calcheck.results import Alternative, RowResults

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from calcheck.embeddings.fitted_settings import KernelSettings
    from calcheck.execution.context import Run
    from calcheck.mmd.joint import JointEmbedding
    from calcheck.mmd.quadratic_forms import GramSums
    from calcheck.predictions import Source
    from calcheck.results import Means


@dataclass(frozen=True)
class Jmmd(JointMetric["GramSums"]):
    r"""Joint maximum mean discrepancy, squared, between (input, target) and (input, prediction).

    .. math:: \mathrm{JMMD}^2 = \frac{1}{n(n-1)} \sum_{i \ne j} k_X(x_i, x_j)\, \delta_i \cdot \delta_j, \qquad
              \delta_i = \frac1r \sum_a \psi(y_{ia}) - \mathrm{E}\, \psi(Y'_i)

    with :math:`\psi` the features of the kernel on targets, and the mean over the row's draws where only these are
    known.

    Parameters
    ----------
    standardize, kernel_x, gamma_x, gamma_y
        The kernels, on standardized inputs and targets.
    estimator
        Which pairs of rows count.
    exact_rows
        Up to how many rows every pair is summed.

    Needs
    -----
    y : (n,), (n, t) or (n, r, t), unit of y
    predictive : n distributions
    x : (n, d), any unit

    Value
    -----
    Dimensionless, squared, smaller is better. ``unbiased``: 0 on average for a perfect model, which is below it at
    times; ``v``: >= 0, biased upwards by the rows' own noise, at most twice the mean of k_X. ``paper``: any number, as
    the part of the data alone is left out, and biased where, as here, model and data share their inputs.

    Raises
    ------
    DataError
        A needed column is absent, targets are constant, or there is one row only.

    Notes
    -----
    ``v`` sums all pairs, over n^2. ``paper``: -2 sum_ij K_ij a_i.b_j / n^2 plus the mean of K k_Y over pairs of
    different draws, as the paper's Eq. 7 for draws at independent inputs. Repeated targets, r of an input, are rows
    with the same id. Up to ``--max-exact-rows`` every pair is summed, O(n^2 (d + q)) with q features of targets; beyond,
    K_X is replaced by Nystroem features, O(n), as few as keep the sum within 1 % or a tenth of its standard deviation
    under the null on 10,000 of the rows; details give the error.

    References
    ----------
    Huang, Lam, Zhang, Evaluating Aleatoric Uncertainty via Conditional Generative Models, Eq. 5, 7 (arXiv 2206.04287).

    Examples
    --------
    >>> Jmmd(estimator="v").options()["estimator"]
    'v'
    """

    name: ClassVar[str] = "jmmd"
    alternative: ClassVar[Alternative] = "upper"
    source: ClassVar[str] = "Huang, Lam, Zhang, Eq. 7 (arXiv 2206.04287)"
    interpretation: ClassVar[str] = "0 on average for a perfect model, which is below it at times."
    no_interval: ClassVar[str] = "it is a mean over pairs of rows, which resampling rows gets wrong"

    statistic: Estimator = option(
        "unbiased", "Pairs of different rows; all pairs (v); or the paper's, without the part of the data alone."
    )

    def description(self) -> str:
        return (
            f"{self.summary()} Without the part of the data alone."
            if self.statistic == "paper"
            else super().description()
        )

    @property
    def alternative_in_use(self) -> Alternative:
        return "both" if self.statistic == "paper" else "upper"

    def fit(self, settings: KernelSettings, source: Source, run: Run) -> GramSums:
        from calcheck.mmd.quadratic_forms import GramSums

        x = source.predictions().inputs()
        if len(x) == 1:
            msg = "jmmd is a mean over pairs of rows, and there is one row"
            raise DataError(msg)
        return GramSums(settings.kernel, settings.scaling(x), run, self.max_exact_rows)

    def rows(
        self,
        settings: KernelSettings,
        state: GramSums,
        source: Source,
        at: Source | None,  # noqa: ARG002
        run: Run,  # noqa: ARG002
    ) -> RowResults:
        from calcheck.embeddings.diagnostics import feature_details, feature_warnings
        from calcheck.mmd.joint import embed

        found, bounds = embed(settings.features, source.predictions(), settings.predictive)
        form = found.form(self.statistic)
        pairs = state.pairs(form)
        values = len(form.u) * form.terms(pairs.products(form.u), pairs.diagonal)
        details = {**settings.details, "pairs": pairs.details, **feature_details(bounds)}
        return RowResults(
            {"jmmd": values},
            details=details,
            warnings=(*self._blind(settings), *feature_warnings(details), *pairs.warnings),
        )

    @property
    def _of_differences(self) -> bool:
        return self.statistic != "paper"

    def _of_many(self, state: GramSums, data_sets: Iterable[JointEmbedding | None]) -> list[float]:
        forms = [None if each is None else each.form(self.statistic) for each in data_sets]
        known = [form for form in forms if form is not None]
        values = iter(state.pairs_of_many(known[0]).totals(known) if known else ())
        return [float("nan") if form is None else float(next(values)) for form in forms]

    def _influences(self, state: GramSums, first: JointEmbedding, second: JointEmbedding) -> NDArray[np.float64]:
        import numpy as np

        one, other = first.form(self.statistic), second.form(self.statistic)
        pairs = state.pairs(one)
        mean, half = (one.u + other.u) / 2, (one.u - other.u) / 2
        slope = (one.left + other.left) / 4 + one.scale / 2 * mean  # half of the gradient at the mean
        terms = half * pairs.products(slope) + slope * pairs.products(half)
        if self.statistic == "unbiased":
            terms -= 2 * one.scale * pairs.diagonal[:, None] * half * mean
        return np.asarray(-4 * terms.sum(axis=1))

    def _told_of_many(self, state: GramSums) -> dict[str, Any]:
        return state.told_of_many

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - a plain mean
        return means["jmmd"]
