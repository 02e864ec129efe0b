"""Maximum mean discrepancy: distance between two samples' distributions, of targets, or of inputs and targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.core.metric_info import MetricInfo
from calcheck.errors import DataError
from calcheck.inference.metric_protocol import NullDistribution, RowResults
from calcheck.kernels import KernelName, Standardize
from calcheck.metrics._joint_mmd import COPIES, SAMPLE, first_sample
from calcheck.metrics._lazy import bandwidths, kernel_functions, np, permutations, two_samples
from calcheck.metrics.base import Metric
from calcheck.options import option, require_positive_option
from calcheck.result_details import MmdDetails

if TYPE_CHECKING:
    from calcheck.metrics._lazy import Mask, Means, NullSimulator, Run, Source, Values
    from calcheck.mmd.two_samples import PooledGram


DEGREE, COEF0 = 3, 1.0  # of the polynomial kernel


@dataclass(frozen=True, eq=False)
class MmdFit:
    """The kernel on the pooled rows of both samples, and which rows belong to the first."""

    gram: PooledGram
    labels: Mask
    details: MmdDetails


@dataclass(frozen=True)
class Mmd(Metric[MmdFit]):
    r"""Squared distance between the distributions of two samples: of targets, or of inputs and targets.

    .. math:: \mathrm{MMD}^2 = \frac{\sum_{i \ne j} k(a_i, a_j)}{n (n - 1)} + \frac{\sum_{i \ne j} k(b_i, b_j)}{m (m-1)}
              - \frac{2}{n m} \sum_{i, j} k(a_i, b_j)

    for a sample a of n rows and a sample b of m rows, where k is :math:`k_Y(y, y')`, or with ``--joint``
    :math:`k_X(x, x')\, k_Y(y, y')`, the joint MMD of two samples whose inputs differ.

    Value
    -----
    Dimensionless, squared; 0 on average if the distributions are equal, and possibly negative. At most 2 for rbf and
    laplace.

    Notes
    -----
    The reference is the mean over permutations of the sample labels over all rows, so p is exact if rows are
    independent: for ``joint``, equal distributions of inputs and targets together; if each input is equally frequent in
    both samples, labels are permuted among rows with equal inputs. ``calcheck mcmd`` compares the
    distributions of targets given inputs, whatever the inputs are. Scales are those of both samples together, so that
    permutations do not change them. Time and memory O((n + m)^2).

    References
    ----------
    Gretton, Borgwardt, Rasch, Schölkopf, Smola, A Kernel Two-Sample Test, JMLR 2012, Eq. 3. Joint: Huang, Lam, Zhang,
    Eq. 7 (arXiv 2206.04287), with its constant term.

    Examples
    --------
    >>> Mmd(joint=True).options()["kernel_y"]
    'rbf'
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="mmd",
        needs=("y",),
        alternative="greater",
        above="wrong-distribution",
        source="Gretton et al. 2012; Huang, Lam, Zhang, Eq. 7 (arXiv 2206.04287)",
        interpretation="0 on average for equal distributions; negative values are possible.",
        no_interval="resampling repeats rows, which adds noise to both samples",
        permutes_samples=True,
        pointwise=False,
        uses_kernels=True,
        several_targets=True,
        details=MmdDetails,
    )

    joint: bool = option("Compare inputs and targets together: the joint MMD.", default=False)
    kernel_y: KernelName = option("Kernel on targets; polynomial is (gamma y.y' + 1)^3.", "rbf")
    gamma_y: float | None = option(
        "Gamma of the kernel on targets. Default: 1/2 for rbf, 1 for laplace, 1/t for polynomial."
    )
    kernel_x: KernelName = option("Kernel on inputs, with --joint; polynomial is (gamma x.x' + 1)^3.", "rbf")
    gamma_x: float | None = option(
        "Gamma of the kernel on inputs. Default: 1/2 for rbf, 1 for laplace, 1/d for polynomial."
    )
    standardize: Standardize = option(
        "Standardize each column of inputs and targets over both samples (data), or leave them unchanged.", "data"
    )

    def __post_init__(self) -> None:
        for name in ("gamma_y", "gamma_x"):
            require_positive_option(name, getattr(self, name))

    def columns(self) -> tuple[str, ...]:
        return (SAMPLE,)

    def fit(self, source: Source, run: Run) -> MmdFit:
        rows = source.predictions()
        labels = first_sample(rows, "mmd")
        run.require_room(COPIES * 8 * len(rows) ** 2, f"all pairs of {len(rows):,} rows")
        n = int(labels.sum())
        gram, gamma_y = self._gram(bandwidths.target_matrix(rows), "targets", self.kernel_y, self.gamma_y)
        details: MmdDetails = {
            "samples": {"rows": n, "rows_b": len(rows) - n},
            "targets": {"kernel": self.kernel_y, "gamma": gamma_y},
        }
        if self.joint:
            x = np.asarray(bandwidths.all_inputs(rows, run), dtype=np.float64)
            of_inputs, gamma_x = self._gram(x, "inputs", self.kernel_x, self.gamma_x)
            details["inputs"] = {"kernel": self.kernel_x, "gamma": gamma_x}
            gram *= of_inputs
        return MmdFit(two_samples.PooledGram(gram), labels, details)

    def _gram(self, values: Values, what: str, kernel: KernelName, gamma: float | None) -> tuple[Values, float]:
        """Return the kernel on all pairs of rows (n, d), (n, n), and its gamma."""
        default = {"rbf": 0.5, "laplace": 1.0, "polynomial": 1 / values.shape[1]}[kernel]
        shape = {"degree": DEGREE, "coef0": COEF0} if kernel == "polynomial" else {}
        gamma = default if gamma is None else gamma
        if self.standardize == "data":
            mean, spread = values.mean(axis=0), np.asarray(values.std(axis=0, ddof=1))
            if not (spread > 0).all():
                msg = f"a column of the {what} is constant, so it cannot be standardized. Pass --standardize none"
                raise DataError(msg)
            values = np.asarray((values - mean) / spread)
        gram: Values = kernel_functions.KERNELS[kernel](gamma=gamma, **shape).gram(values, values)
        return gram, gamma

    def evaluate(self, fit: MmdFit, source: Source, run: Run) -> RowResults:  # noqa: ARG002 - the fit has the rows
        return RowResults({}, fixed={"mmd": fit.gram.distances(fit.labels[None])[0]}, details=fit.details)

    def null_distribution(self, fit: MmdFit, simulation: NullSimulator, run: Run) -> NullDistribution:
        """Return the metric of permuted samples."""
        rows = simulation.rows
        groups = (
            permutations.joint_strata(np.asarray(rows.inputs()), fit.labels)
            if self.joint
            else permutations.one_stratum(fit.labels)
        )
        found = []
        for values in fit.gram.permuted(groups.permuted(simulation.rng(), len(simulation))):
            found.append(values)
            run.progress("permutations", sum(map(len, found)) / len(simulation))
        own = float(fit.gram.distances(fit.labels[None])[0])
        return NullDistribution(np.concatenate(found), data_value=own, details={"labels": groups.description})

    def value(self, means: Means) -> Values:
        return means["mmd"]
