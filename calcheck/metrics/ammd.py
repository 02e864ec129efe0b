"""Average maximum mean discrepancy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.details import AmmdDetails
from calcheck.errors import DataError
from calcheck.kernels.kernel_options import Estimator
from calcheck.metric_info import MetricInfo
from calcheck.metrics._joint_mmd import KernelMetric
from calcheck.options import option
from calcheck.results import NullDistribution, RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.inference.null_distribution import NullSimulator
    from calcheck.predictions import Predictions, Source
    from calcheck.report import Alternative

    Bandwidths = NDArray[np.float64]

FEW_DRAWS = 8  # maximum draws per row at which exact pair sums cost less than features


@dataclass(frozen=True)
class Ammd(KernelMetric["Bandwidths"]):
    r"""Average squared maximum mean discrepancy between each row's prediction and its targets.

    .. math:: \mathrm{AMMD}^2 = \frac1n \sum_i \Big[ \frac{1}{\ell(\ell-1)} \sum_{j \ne j'} k_Y(y'_{ij}, y'_{ij'})
              - \frac{2}{\ell r} \sum_{a, j} k_Y(y_{ia}, y'_{ij}) \Big]

    with r targets and :math:`\ell` draws per row i. Parametric distributions use closed forms instead of draws.

    Parameters
    ----------
    standardize, kernel_y, gamma_y
        Standardization of the targets, and the kernel on them.
    feature_targets, gamma_features, epsilon
        Features among the target columns, and their kernel.
    statistic
        Estimator: pairs of distinct draws (unbiased), or all pairs (v).
    constant
        Whether to add the term that depends on the data only.

    Needs
    -----
    y : (n,), (n, t) or (n, r, t), unit of y
    predictive : n distributions; for samples, at least 2 draws per row

    Value
    -----
    Dimensionless, squared, smaller is better. AMMD^2 is twice a kernel score: it omits the term that depends on the
    data only, which lies between 0 and 1, so it is negative for a good model. With ``--constant``, which requires
    repeated targets, it is 0 on average for a perfect model. Unbiased; ``v`` includes the pairs of a draw with itself
    and is larger by about 1/l.

    Raises
    ------
    DataError
        A required column is missing, targets are constant, or there are too few draws or targets per row.

    Notes
    -----
    A mean over rows and a proper score; time O(n l^2). Repeated targets of one input are rows with the same id.
    Kernels on targets are those of jmmd; here the time is linear in the rows for each of them.
    ``paper`` is the same as ``unbiased``. Table 1 of the paper shows positive values, which contradict its definition.

    References
    ----------
    Huang, Lam, Zhang, Evaluating Aleatoric Uncertainty via Conditional Generative Models, Eq. 6 (arXiv 2206.04287).

    Examples
    --------
    >>> Ammd(statistic="v").options()["statistic"]
    'v'
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="ammd",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="smaller",
        above="worse-than-promised",
        below="better-than-promised",
        source="Huang, Lam, Zhang, Eq. 6 (arXiv 2206.04287)",
        interpretation="A proper score without the term that depends on the data only; good models are below 0.",
        conditional_on="scale of the kernel on targets",
        several_targets=True,
        repeated_targets=True,
        details=AmmdDetails,
    )

    statistic: Estimator = option("unbiased", "Estimator: pairs of distinct draws (unbiased, paper), or all pairs (v).")
    constant: bool = option(False, "Add the term that depends on the data only; requires repeated targets.")  # noqa: FBT003 - default

    def description(self) -> str:
        if not self.constant:
            return super().description()
        reading = (
            "At least 0; sampling noise makes it larger."
            if self.statistic == "v"
            else "0 on average for a perfect model."
        )
        return f"{self.summary()} {reading}"

    @property
    def alternative(self) -> Alternative:
        return "greater" if self.constant else "two-sided"

    def fit(self, source: Source, run: Run) -> Bandwidths:  # noqa: ARG002 - not random
        """Return the scale of the kernel on targets, (t,)."""
        from calcheck.mmd.joint import repeated_targets

        rows = source.predictions()
        return self.bandwidths(repeated_targets(rows), rows.distributions())

    def evaluate(self, fit: Bandwidths, source: Source, run: Run) -> RowResults:
        from calcheck.embeddings.diagnostics import feature_details, residual_warnings
        from calcheck.mmd.joint import embed, repeated_targets
        from calcheck.mmd.kernel_scores import direct_scores, laplace_scores

        rows = source.predictions()
        y, predictive = repeated_targets(rows), rows.distributions()
        draws = predictive.n_draws
        self._require_pairs(draws, y.shape[1])
        details = {"targets": self.describe_targets(fit, y.shape[1]), "draws": draws or "exact"}
        scores = {"rbf": direct_scores, "laplace": laplace_scores}.get(self.kernel_y)
        found = scores(y, predictive, fit, **self._pairs) if scores and not self.feature_targets else None
        if found is not None:
            return RowResults({"ammd": found}, details=details)
        psi = self.target_kernel.features(y.reshape(-1, y.shape[2]), predictive, fit, run)
        both, bounds = embed(psi, rows, predictive.load())
        details |= feature_details(bounds)
        return RowResults(
            {"ammd": both.scores(**self._pairs)}, details=details, warnings=tuple(residual_warnings(bounds))
        )

    @property
    def _pairs(self) -> dict[str, bool]:
        """Keyword arguments that select the pairs in the score functions."""
        return {"unbiased": self.statistic != "v", "constant": self.constant}

    def _require_pairs(self, draws: int | None, targets: int) -> None:
        """Raise unless each row has enough draws and targets for the estimator."""
        if self.statistic == "v":
            return
        if draws == 1:
            msg = "ammd needs at least 2 draws per row, got 1. Pass --statistic v, which is biased"
            raise DataError(msg)
        if self.constant and targets == 1:
            msg = "--constant requires several targets per input (rows with the same id), got one target per input"
            raise DataError(msg)

    def null_distribution(
        self,
        fit: Bandwidths,
        simulation: NullSimulator,
        run: Run,
    ) -> NullDistribution | None:
        """Return the metric of all replicates, which share features; None if single replicates are as cheap."""
        import numpy as np

        from calcheck.mmd.joint import DataSets

        predictive = simulation.rows.predictive
        if predictive is None or self._cheap(simulation.rows):
            return None
        replicates = simulation.with_predictive(predictive)
        data_sets = DataSets(
            simulation.rows,
            replicates,
            self.replicate_bandwidths(fit, predictive),
            predictive,
            self.target_kernel,
            run,
        )
        values = np.empty(1 + len(replicates))
        for number, each in enumerate(data_sets.embeddings(apart=False)):
            values[number] = np.nan if each is None else each.scores(**self._pairs).mean()
            run.progress("replicates", (number + 1) / len(values))
        return NullDistribution(values[1:], data_value=float(values[0]))

    def _cheap(self, rows: Predictions) -> bool:
        """Return whether the direct computation costs no more than features of a replicate's targets."""
        predictive = rows.predictive
        if self.kernel_y != "rbf" or self.feature_targets:
            return self.kernel_y == "laplace"
        if predictive is None or predictive.normal() is not None:
            return True
        draws = predictive.n_draws
        return draws is not None and (draws <= FEW_DRAWS or predictive.nbytes == 0)
