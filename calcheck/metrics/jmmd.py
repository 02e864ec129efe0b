"""Joint and conditional distributions of targets given inputs, compared by mean discrepancies and by moments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from calcheck.core.metric_info import SHARED_FIT, MetricInfo
from calcheck.errors import DataError
from calcheck.inference.metric_protocol import NullDistribution, RowResults
from calcheck.kernels import Estimator, KernelOptions, Normalization, Solver
from calcheck.metrics import _joint_mmd
from calcheck.metrics._lazy import (
    bandwidths,
    frechet,
    joint,
    np,
    permutations,
    quadratic_forms,
    target_kernels,
    two_samples,
)
from calcheck.options import option, require_positive_option
from calcheck.result_details import AmmdDetails, CmmdDetails, FidDetails, JmmdDetails
from calcheck.typing import Values

if TYPE_CHECKING:
    from calcheck.embeddings.laplace import PairForm
    from calcheck.metrics._lazy import Kernel, NullSimulator, Predictions, Predictive, Run, Source, Values
    from calcheck.mmd.frechet import SharedInputs
    from calcheck.mmd.joint import JointEmbedding
    from calcheck.mmd.quadratic_forms import GramSums, InputKernel, QuadraticForm, RidgeNorms
    from calcheck.mmd.two_samples import SampleDistance
    from calcheck.reports import Alternative

FEW_DRAWS = 8  # maximum draws per row at which exact pair sums cost less than features


@dataclass(frozen=True)
class Jmmd(_joint_mmd.JointMetric["GramSums"]):
    r"""Squared joint maximum mean discrepancy between (input, target) and (input, prediction).

    .. math:: \mathrm{JMMD}^2 = \frac{1}{n(n-1)} \sum_{i \ne j} k_X(x_i, x_j)\, \delta_i \cdot \delta_j, \qquad
              \delta_i = \frac1r \sum_a \psi(y_{ia}) - \mathrm{E}\, \psi(Y'_i)

    where :math:`\psi` are features of the kernel on targets. For samples, the expectation is the mean over the draws
    of the row.

    Value
    -----
    Dimensionless, squared, smaller is better. ``unbiased`` is 0 on average for a perfect model and may be negative.
    ``v`` is >= 0, at most twice the mean of k_X, and biased upwards by noise. ``paper`` may have any sign, as it omits
    the term that depends on the data only, and it is biased because targets and predictions share their inputs.

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
        needs=("y", "predictive", "x"),
        alternative="greater",
        above="wrong-distribution",
        source="Huang, Lam, Zhang, Eq. 7 (arXiv 2206.04287)",
        interpretation="0 on average for a perfect model; negative values are possible.",
        no_interval="it is a mean over pairs of rows, for which the row bootstrap is not valid",
        uses_kernels=True,
        several_targets=True,
        repeated_targets=True,
        details=JmmdDetails,
    )

    statistic: Estimator = option(
        "Estimator: pairs of distinct rows (unbiased), all pairs (v), or without the term of the data only (paper).",
        "unbiased",
    )

    def description(self) -> str:
        if self.statistic != "paper":
            return super().description()
        return f"{self.summary()} The term that depends on the data only is omitted."

    @property
    def alternative(self) -> Alternative:
        return "two-sided" if self.statistic == "paper" else "greater"

    def _sums(self, inputs: InputKernel, run: Run) -> GramSums:
        if len(inputs.x) == 1:
            raise DataError("jmmd is a mean over pairs of rows and needs at least 2 rows, got 1")
        return quadratic_forms.GramSums(inputs, run, self.max_exact_rows)

    def _form(self, embedding: JointEmbedding) -> QuadraticForm:
        return embedding.form(self.statistic)

    def _row_results(self, sums: GramSums, form: QuadraticForm) -> RowResults:
        pairs = sums.pairs(form)
        values = len(form.u) * form.terms(pairs.products(form.u), pairs.diagonal)
        return RowResults({"jmmd": values}, details={"pairs": pairs.details}, warnings=tuple(pairs.warnings))

    @property
    def _uses_differences(self) -> bool:
        return self.statistic != "paper"

    def _pair_form(self, sums: GramSums) -> PairForm | None:
        if not self._uses_differences:
            return None
        return sums.pair_form(unbiased=self.statistic == "unbiased", needed=self.target_kernel.replicates_share_scale)

    def _replicate_values(self, sums: GramSums, data_sets: Iterable[JointEmbedding | None]) -> list[float]:
        forms = [None if each is None else self._form(each) for each in data_sets]
        known = [form for form in forms if form is not None]
        values = iter(sums.pairs_of_many(known[0]).totals(known) if known else ())
        return [float("nan") if form is None else float(next(values)) for form in forms]

    def _influences(self, sums: GramSums, first: JointEmbedding, second: JointEmbedding) -> Values:
        one, other = self._form(first), self._form(second)
        pairs = sums.pairs(one)
        mean, half = (one.u + other.u) / 2, (one.u - other.u) / 2
        slope = (one.left_vectors + other.left_vectors) / 4 + one.scale / 2 * mean  # half of the gradient at the mean
        terms = half * pairs.products(slope) + slope * pairs.products(half)
        if self.statistic == "unbiased":
            terms -= 2 * one.scale * pairs.diagonal[:, None] * half * mean
        return np.asarray(-4 * terms.sum(axis=1))

    def of_samples(self) -> JmmdOfSamples:
        """Return the metric with these options, of two samples."""
        return _joint_mmd.with_options_of(self, JmmdOfSamples)


@dataclass(frozen=True)
class JmmdOfSamples(_joint_mmd.OfSamples, Jmmd):  # type: ignore[misc]
    """Squared joint maximum mean discrepancy of two samples of inputs and targets."""

    info: ClassVar[MetricInfo] = _joint_mmd.info_of_samples(
        Jmmd.info, "0 on average if inputs and targets have equal joint distributions; negative values are possible."
    )

    def _distance(self, kernel: Kernel, x: Values, y: Values) -> tuple[SampleDistance, dict[str, Any]]:
        on_targets, details = _joint_mmd.sample_kernel(self, y.shape[1])
        return two_samples.JointMmd(
            two_samples.PooledGram(kernel.gram(x, x) * on_targets.gram(y, y)), self.statistic
        ), details


@dataclass(frozen=True)
class Ammd(_joint_mmd.KernelMetric["Values"]):
    r"""Average squared maximum mean discrepancy between each row's prediction and its targets.

    .. math:: \mathrm{AMMD}^2 = \frac1n \sum_i \Big[ \frac{1}{\ell(\ell-1)} \sum_{j \ne j'} k_Y(y'_{ij}, y'_{ij'})
              - \frac{2}{\ell r} \sum_{a, j} k_Y(y_{ia}, y'_{ij}) \Big]

    with r targets and :math:`\ell` draws per row i. Parametric distributions use closed forms instead of draws.

    Value
    -----
    Dimensionless, squared, smaller is better. AMMD^2 is twice a kernel score: it omits the term that depends on the
    data only, which lies between 0 and 1, so it is negative for a good model. With ``--constant``, which requires
    repeated targets, it is 0 on average for a perfect model. Unbiased; ``v`` includes the pairs of a draw with itself
    and is larger by about 1/l.

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
        source="Huang, Lam, Zhang, Eq. 6 (arXiv 2206.04287)",
        interpretation="A proper score without the term that depends on the data only; good models are below 0.",
        conditional_on="scale of the kernel on targets",
        several_targets=True,
        repeated_targets=True,
        details=AmmdDetails,
    )

    statistic: Estimator = option("Estimator: pairs of distinct draws (unbiased, paper), or all pairs (v).", "unbiased")
    constant: bool = option("Add the term that depends on the data only; requires repeated targets.", default=False)

    def description(self) -> str:
        if not self.constant:
            return super().description()
        biased = self.statistic == "v"
        reading = "At least 0; sampling noise makes it larger." if biased else "0 on average for a perfect model."
        return f"{self.summary()} {reading}"

    @property
    def alternative(self) -> Alternative:
        return "greater" if self.constant else "two-sided"

    def fit(self, source: Source, run: Run) -> Values:  # noqa: ARG002 - not random
        """Return the scale of the kernel on targets, (t,)."""
        rows = source.predictions()
        return self.bandwidths(joint.repeated_targets(rows), rows.distributions())

    def evaluate(self, fit: Values, source: Source, run: Run) -> RowResults:
        rows = source.predictions()
        y, predictive = joint.repeated_targets(rows), rows.distributions()
        draws = predictive.n_draws
        if self.statistic != "v" and draws == 1:
            raise DataError("ammd needs at least 2 draws per row, got 1. Pass --statistic v, which is biased")
        if self.statistic != "v" and self.constant and y.shape[1] == 1:
            msg = "--constant requires several targets per input (rows with the same id), got one target per input"
            raise DataError(msg)
        details = {"targets": self.describe_targets(fit, y.shape[1]), "draws": draws or "exact"}
        scores = {"rbf": joint.direct_scores, "laplace": joint.laplace_scores}.get(self.kernel_y)
        found = scores(y, predictive, fit, **self._pairs) if scores and not self.feature_targets else None
        if found is not None:
            return RowResults({"ammd": found}, details=details)
        psi = self.target_kernel.features(y.reshape(-1, y.shape[2]), predictive, fit, run)
        both, bounds = joint.embed(self.target_kernel, psi, rows, predictive.load())
        details |= target_kernels.feature_details(bounds)
        return RowResults(
            {"ammd": both.scores(**self._pairs)},
            details=details,
            warnings=tuple(target_kernels.residual_warnings(bounds)),
        )

    def moments(self, fit: Values, source: Source, run: Run) -> joint.NormalData | float:
        """Return one target per row with the scale of the kernel, if distributions are normal; else the metric."""
        rows = source.predictions()
        y, predictive = rows.targets(), rows.distributions()
        of_pairs = self.kernel_y == "rbf" and not (self.constant or self.feature_targets)
        if of_pairs and y.ndim == 1 and predictive.normal() is not None:
            return joint.NormalData(y, predictive, float(fit[0]))
        return float(self.evaluate(fit, source, run).columns["ammd"].mean())

    def quick_statistics(self, moments: Sequence[joint.NormalData | float | None], run: Run) -> Values:  # noqa: ARG002
        """Return the metric of each data set."""
        found = np.array([np.nan if each is None or isinstance(each, tuple) else each for each in moments])
        normal = [place for place, each in enumerate(moments) if isinstance(each, tuple)]
        if normal:
            found[normal] = joint.mean_normal_scores([each for each in moments if isinstance(each, tuple)])
        return found

    @property
    def _pairs(self) -> dict[str, bool]:
        """Keyword arguments that select the pairs in the score functions."""
        return {"unbiased": self.statistic != "v", "constant": self.constant}

    def null_distribution(self, fit: Values, simulation: NullSimulator, run: Run) -> NullDistribution | None:
        """Return the metric of all replicates, which share features; None if single replicates are as cheap."""
        predictive = simulation.rows.predictive
        if predictive is None or self._cheap(predictive):
            return None
        data_sets = self.data_sets(simulation, fit, predictive, run)
        values = np.empty(1 + len(data_sets.replicates))
        in_closed_form = predictive.n_draws is None and self.kernel_y == "rbf"
        if in_closed_form and not (self.feature_targets or self.constant):
            scores = data_sets.mean_scores()
        else:
            embedded = data_sets.embeddings(apart=False)
            scores = (np.nan if each is None else float(each.scores(**self._pairs).mean()) for each in embedded)
        for number, value in enumerate(scores):
            values[number] = value
            run.progress("replicates", (number + 1) / len(values))
        return NullDistribution(values[1:], data_value=float(values[0]))

    def _cheap(self, predictive: Predictive) -> bool:
        """Return whether the direct computation costs no more than features of a replicate's targets."""
        if self.kernel_y != "rbf" or self.feature_targets:
            return self.kernel_y == "laplace"
        if predictive.normal() is not None:
            return True
        draws = predictive.n_draws
        return draws is not None and (draws <= FEW_DRAWS or predictive.nbytes == 0)


@dataclass(frozen=True)
class Cmmd(_joint_mmd.JointMetric["RidgeNorms"]):
    r"""Squared conditional maximum mean discrepancy: distance between conditional embedding operators.

    .. math:: \mathrm{CMMD}^2 = \mathrm{tr}\, B^\top K_X B, \qquad B = (K_X + n \lambda I)^{-1} \delta, \qquad
              \delta_i = \frac1r \sum_a \psi(y_{ia}) - \mathrm{E}\, \psi(Y'_i)

    where :math:`\psi` are features of the kernel on targets. For samples, the expectation is the mean over the draws
    of the row.

    Value
    -----
    Dimensionless, squared, >= 0, smaller is better. Because of noise, a perfect model also has a positive value. The
    value increases with the rank of K_X and decreases with lambda.

    Notes
    -----
    CMMD^2 is the squared norm of a kernel ridge regression of delta on the inputs; CCE is the norm of its value at
    each input. With the same kernels, the mean of CCE^2 is at most max k_X times CMMD^2. Repeated targets of one input
    are rows with the same id. Targets and draws enter only through their row means, as ridge regression is linear.
    Beyond ``--max-exact-rows``, K_X is approximated by Nyström features in O(n); their error is estimated on 10,000
    validation rows. Kernels on targets are those of jmmd.
    With a second file, two samples are compared, whose inputs may differ: its targets are draws of the model, and each
    row has one. Scales are then those of both samples together. p comes from exchanging rows with similar inputs, as
    for mcmd. It compares what the regression of both samples together leaves of psi: otherwise different inputs would
    hide a difference of the targets. What this subtracts from the value is added to the reference, which is therefore
    expected of equal conditional distributions at these inputs. Memory is quadratic in the rows, and each permutation
    takes cubic time.

    References
    ----------
    Huang, Lam, Zhang, Evaluating Aleatoric Uncertainty via Conditional Generative Models, Eq. 2-4 (arXiv 2206.04287).
    Ren et al., Conditional Generative Moment-Matching Networks, NeurIPS 2016.

    Examples
    --------
    >>> Cmmd(lambda_=0.01).options()["lambda"]
    0.01
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="cmmd",
        needs=("y", "predictive", "x"),
        alternative="greater",
        above="wrong-distribution",
        source="Huang, Lam, Zhang, Eq. 2-4 (arXiv 2206.04287)",
        interpretation="0 means equal distributions; because of noise, a perfect model is above 0.",
        no_interval=SHARED_FIT,
        uses_kernels=True,
        several_targets=True,
        repeated_targets=True,
        details=CmmdDetails,
    )

    lambda_: float = option("Regularizer: K + n lambda I.", 0.1)
    solver: Solver = option("Cholesky or block conjugate gradients (cg); auto uses Cholesky up to 2,048 rows.", "auto")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive_option("lambda_", self.lambda_)

    def _sums(self, inputs: InputKernel, run: Run) -> RidgeNorms:
        return quadratic_forms.RidgeNorms(inputs, run, self.lambda_, solver=self.solver, exact_rows=self.max_exact_rows)

    def _row_results(self, sums: RidgeNorms, form: QuadraticForm) -> RowResults:
        norm = sums.norm(form.u)
        details = {"lambda": self.lambda_, **norm.details}
        return RowResults({"cmmd": len(norm.terms) * norm.terms}, details=details, warnings=norm.warnings)

    def _pair_form(self, sums: RidgeNorms) -> PairForm:
        return sums.pair_form

    def _influences(self, sums: RidgeNorms, first: JointEmbedding, second: JointEmbedding) -> Values:
        mean, half = (first.difference + second.difference) / 2, (first.difference - second.difference) / 2
        return np.asarray(-4 * np.sum(half * sums.apply(mean) + mean * sums.apply(half), axis=1))

    def of_samples(self) -> CmmdOfSamples:
        """Return the metric with these options, of two samples."""
        return _joint_mmd.with_options_of(self, CmmdOfSamples)


@dataclass(frozen=True)
class CmmdOfSamples(_joint_mmd.OfSamples, Cmmd):  # type: ignore[misc]
    """Squared conditional maximum mean discrepancy of two samples, whose inputs may differ."""

    exchanges_similar_inputs: ClassVar[bool] = True

    info: ClassVar[MetricInfo] = _joint_mmd.info_of_samples(
        Cmmd.info, "0 means equal distributions given the inputs; noise and different inputs make it larger."
    )

    def _distance(self, kernel: Kernel, x: Values, y: Values) -> tuple[SampleDistance, dict[str, Any]]:
        on_targets, details = _joint_mmd.sample_kernel(self, y.shape[1])
        features = permutations.PooledOutputs.from_kernel(on_targets, y).values
        return two_samples.OperatorMmd(kernel.gram(x, x), features, self.lambda_), {**details, "lambda": self.lambda_}


@dataclass(frozen=True, eq=False)
class FidFit:
    """Choices that depend on the data, and moments that depend on inputs only."""

    inputs: SharedInputs  # The normalized inputs
    spread: Values  # (t,), scale of each target column; targets are divided by it


@dataclass(frozen=True)
class Fid(_joint_mmd.GenerativeMetric[FidFit]):
    r"""Squared Fréchet distance between Gaussian fits to (input, target) and (input, prediction).

    .. math:: |m - m'|^2 + \mathrm{tr}\big( C + C' - 2 (C^{1/2} C' C^{1/2})^{1/2} \big)

    where m, C are mean and covariance of standardized inputs joined with targets, and m', C' those of inputs joined
    with predictions.

    Value
    -----
    Dimensionless if standardized, squared, >= 0, smaller is better. Because of noise, a perfect model also has a
    positive value. The value depends on means and covariances only, so it captures only linear relations to the inputs.

    Notes
    -----
    Each row has weight 1/n, divided equally among its targets or draws. Parametric distributions use exact moments.
    Covariances carry the factor n / (n - 1). The trace of the matrix root is the sum of singular values of a product of
    triangular factors, which is accurate for singular covariances. Time O(n (d + t)^2 + (d + t)^3).
    With a second file, two samples are compared, whose inputs may differ: its targets are draws of the model, and each
    row has one. Scales are then those of both samples together. p comes from exchanging any rows, which is exact for
    independent rows: it is for inputs and targets together. If each input is equally frequent in both samples, rows
    with equal inputs are exchanged.

    References
    ----------
    Dowson, Landau (1982), doi:10.1016/0047-259X(82)90077-X. Heusel et al. (2017). As in Huang, Lam, Zhang (arXiv
    2206.04287), Table 1.

    Examples
    --------
    >>> Fid().options()
    {'standardize': 'data'}
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="fid",
        needs=("y", "predictive", "x"),
        alternative="greater",
        above="wrong-distribution",
        source="Dowson, Landau 1982; Heusel et al. 2017",
        interpretation="0 means equal means and covariances.",
        no_interval="resampling adds noise to both covariances, which increases the distance",
        pointwise=False,
        several_targets=True,
        repeated_targets=True,
        details=FidDetails,
    )

    def fit(self, source: Source, run: Run) -> FidFit:
        rows = source.predictions()
        scaling = bandwidths.fit_scaling(bandwidths.all_inputs(rows, run), self._normalization, "rbf", rows.categories)
        return FidFit(frechet.SharedInputs(scaling(rows.inputs())), self._spread(rows))

    @property
    def _normalization(self) -> Normalization:
        return "standardize" if self.standardize == "data" else "none"

    def refit(self, fit: FidFit, source: Source, run: Run) -> FidFit:  # noqa: ARG002 - not random
        """Return the fit to other targets at the same inputs."""
        return replace(fit, spread=self._spread(source.predictions()))

    def _spread(self, rows: Predictions) -> Values:
        y = joint.repeated_targets(rows)
        columns = y.reshape(-1, y.shape[2])
        return (
            bandwidths.target_precisions(columns) ** -0.5 if self.standardize == "data" else np.ones(columns.shape[1])
        )

    def evaluate(self, fit: FidFit, source: Source, run: Run) -> RowResults:  # noqa: ARG002 - not random
        from calcheck.execution.run import one_blas_thread

        rows = source.predictions()
        y, predictive = joint.repeated_targets(rows), rows.distributions()
        with one_blas_thread():  # many small products, repeated for each replicate
            data = fit.inputs.joint_moments(*frechet.covariances_within_targets(y), fit.spread)
            model = fit.inputs.joint_moments(*frechet.covariances_within_rows(predictive), fit.spread)
            distance = np.asarray(frechet.frechet(data, model))
        details: dict[str, Any] = {
            "columns": {"inputs": fit.inputs.columns, "targets": y.shape[2]},
            "repeats": y.shape[1],
            "draws": predictive.n_draws or "exact",
            "means": float(np.sum((data.mean - model.mean) ** 2)),
        }
        return RowResults({}, fixed={"fid": distance}, details=details)

    def of_samples(self) -> FidOfSamples:
        """Return the metric with these options, of two samples."""
        return _joint_mmd.with_options_of(self, FidOfSamples)


@dataclass(frozen=True)
class FidOfSamples(_joint_mmd.OfSamples, Fid):  # type: ignore[misc]
    """Squared Fréchet distance between Gaussian fits to two samples of inputs and targets."""

    info: ClassVar[MetricInfo] = _joint_mmd.info_of_samples(
        Fid.info, "0 means equal means and covariances of inputs and targets."
    )

    @property
    def _inputs(self) -> KernelOptions:
        """Options of a kernel for propensities; the distance has none."""
        return KernelOptions(kernel_x="rbf", gamma_x="1/d", normalize=self._normalization)

    def _distance(self, kernel: Kernel, x: Values, y: Values) -> tuple[SampleDistance, dict[str, Any]]:  # noqa: ARG002
        return two_samples.GaussianDistance(x, y), {"columns": {"inputs": x.shape[1], "targets": y.shape[1]}}
