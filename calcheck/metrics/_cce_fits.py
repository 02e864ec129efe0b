"""Fits of the conditional calibration error, exact and from landmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calcheck.distributions import Samples
from calcheck.embeddings.distance import (
    FEW_ROWS,
    difference_influences,
    distances,
    effective_neighbors,
    embed_replicates,
    kernel_warnings,
    noise,
    quantiles,
    reach,
    solver_details,
    trial_statistics,
)
from calcheck.embeddings.landmarks import (
    LandmarkOptions,
    NystroemEmbedding,
    as_precise,
    nystroem_details,
    nystroem_warnings,
)
from calcheck.embeddings.ridge import KernelRidge
from calcheck.embeddings.target_kernels import DataSet, KernelSettings, SwappedDraw, feature_details, residual_warnings
from calcheck.errors import NumericalError, OptionError
from calcheck.execution.bottom_k import sample_inputs
from calcheck.execution.run import Run
from calcheck.inference.metric_protocol import NullDistribution, RowResults
from calcheck.inference.null_distribution import NullSimulator
from calcheck.kernels.functions import evaluation_points, require_inputs, target_matrix
from calcheck.metrics._cce_options import CceOptions
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.typing import Values


@dataclass(frozen=True, eq=False)
class CceExact:
    """The fit of cce with an exact solver."""

    options: CceOptions
    settings: KernelSettings  # Kernels, scaling, features and distributions
    ridge: KernelRidge  # Kernel ridge regression on the inputs
    # (m, d), scaled inputs at which cce is evaluated; by default the rows' own inputs
    at: Values | None = None

    @classmethod
    def from_source(cls, options: CceOptions, settings: KernelSettings, source: Source, run: Run) -> CceExact:
        """Return the fit to the inputs of a source."""
        x = settings.scaling.rounded(source.predictions().inputs(), precision=run.precision)
        solver = "auto" if options.solver == "nystroem" else options.solver
        return cls(options, settings, KernelRidge(settings.kernel, x, run, solver=solver))

    def refit(self, options: CceOptions, settings: KernelSettings, _: Source) -> CceExact:
        """Return the fit with other options and distributions, and with the same regression on the inputs."""
        return replace(self, options=options, settings=settings)

    def plan(self, options: Sequence[CceOptions], models: int) -> None:
        """Choose a solver for the regularizers of several metrics; the noise must not depend on other metrics."""
        lambdas = {lambda_ for each in options for lambda_ in each.lambdas}
        alone = any(each.unbiased for each in options)
        self.ridge.plan(len(lambdas), 0 if alone else len(options) * models)

    def at_inputs(self, source: Source) -> CceExact:
        """Return the fit, to be evaluated at the inputs of another source."""
        return replace(self, at=evaluation_points(source, self.settings.scaling))

    def evaluate(self, source: Source, run: Run) -> RowResults:
        """Return the distance at each input."""
        options, settings, ridge = self.options, self.settings, self.ridge
        lambda_, lambda_model = options.lambdas
        y, _ = require_inputs(source.predictions())
        observed, predicted, bounds = settings.features.embed(y, options.trials_of(settings.predictive, run))
        found = distances(
            ridge,
            observed,
            predicted,
            lambda_=lambda_,
            lambda_model=lambda_model,
            points=self.at,
        )
        values, noise_details = found.values.mean(axis=0), {}
        if options.unbiased:
            added, error = noise(ridge, found.sizes, lambda_, self.at)
            values = (found.values**2).mean(axis=0) - added
            noise_details = {"noise": float(added.mean()), "noise_error": error}
        if not np.isfinite(values).all():
            msg = f"CCE is not finite at {int((~np.isfinite(values)).sum()):,} inputs: the kernel overflows there"
            raise NumericalError(msg)
        few = sample_inputs(source.predictions().lazy_inputs(), FEW_ROWS)
        details = {
            "rows": len(values),
            "quantiles": quantiles(values),
            **noise_details,
            **trial_statistics(found.values.mean(axis=1)),
            **settings.details,
            **solver_details(found, bounds, ridge, run),
            "reach": reach(settings.kernel, settings.scaling(few), settings.scaling, lambda_),
        }
        columns = {options.column: values}
        if run.keep_rows:
            columns["effective_neighbors"] = effective_neighbors(ridge, lambda_, self.at)
        return RowResults(
            columns, details=details, warnings=kernel_warnings(found.dof.value, bounds, found, ridge.run.precision)
        )

    def null_distribution(self, simulation: NullSimulator, run: Run) -> NullDistribution:
        """Return cce of replicates, which share the regression and its solutions for common features."""
        options, distributions = self.options, self.settings.predictive
        y, _ = require_inputs(simulation.rows)
        bandwidth = options.replicate_bandwidths(self.settings.features.gamma)
        model = list(options.trials_of(distributions, run))

        def data_set(rows: Predictions) -> DataSet:
            targets = target_matrix(rows)
            if rows.predictive is distributions or rows.predictive is None:
                return DataSet(targets, bandwidth(targets), model)
            if isinstance(options.draws, int):
                return DataSet(targets, bandwidth(targets), list(options.trials_of(rows.predictive, run)))
            return DataSet(targets, bandwidth(targets), [SwappedDraw(distributions)])

        data = DataSet(y, bandwidth(y), model)
        trials = [each.draws for each in model if isinstance(each, Samples)]
        known = not trials or distributions.n_draws is not None
        covered = distributions if known else Samples(np.concatenate(trials, axis=1))
        kernel, shared_run = options.target_kernel, self.ridge.run
        replicates = simulation.with_predictive(distributions)
        found = embed_replicates(
            self.ridge,
            data,
            map(data_set, replicates),
            len(replicates) + 1,
            share=lambda differences: kernel.shared(data, covered, shared_run, differences=differences),
            lambdas=options.lambdas,
            points=self.at,
            unbiased=options.unbiased,
        )
        own, *others = found.values
        return NullDistribution(
            np.array(others), data_value=own, at_inputs=found.at_inputs, floor=found.floor, details=found.details
        )


def influences(options: CceOptions, settings: KernelSettings, both: Predictions, run: Run) -> Values:
    """Return the contribution of each row to the difference of squared values of two models, (n,)."""
    n = len(both) // 2
    first = CceExact.from_source(options, settings, InMemory(both.take(slice(n))), run)
    y, predictive = require_inputs(both)
    features = options.features(y[:n], predictive, run)
    observed, means, _ = features.embed(y[:n], options.trials_of(predictive, run))
    return difference_influences(
        first.ridge,
        observed,
        [(mean[:n], mean[n:]) for mean in means],
        options.lambdas,
        unbiased=options.unbiased,
    )


@dataclass(frozen=True, eq=False)
class CceNystroem:
    """The fit of cce on landmarks."""

    options: CceOptions
    settings: KernelSettings  # Kernels, scaling, features and distributions
    embedding: NystroemEmbedding  # Landmarks, and regressions on them

    @classmethod
    def from_source(
        cls, options: CceOptions, settings: KernelSettings, source: Source, reason: str, run: Run
    ) -> CceNystroem:
        """Return the fit to a source; ``reason`` states why the solver is not exact."""
        run = as_precise(source.predictions(), run)
        landmarks = LandmarkOptions.from_metric(options)
        return cls(options, settings, NystroemEmbedding(settings, source, landmarks, run, reason))

    def refit(self, options: CceOptions, settings: KernelSettings, source: Source) -> CceNystroem:
        """Return the fit with other options and distributions, and with the same landmarks."""
        return replace(self, options=options, settings=settings, embedding=self.embedding.from_fit(settings, source))

    def plan(self, options: Sequence[CceOptions], models: int) -> None:
        """Do nothing; landmarks serve all regularizers."""

    def at_inputs(self, _: Source) -> CceNystroem:
        """Raise an error: landmarks are fitted for the rows' own inputs only."""
        msg = "--at and --grid require an exact solver. Pass --solver cg, or use fewer rows (--subsample)"
        raise OptionError(msg)

    def evaluate(self, _: Source, run: Run) -> RowResults:
        """Return the distance at each input if rows are kept, else at the sampled inputs."""
        settings, lambda_ = self.settings, self.options.lambda_
        found = self.embedding.fitted(lambda_)
        columns = {"cce": found.at_all_rows() if run.keep_rows else found.values[:, 0]}
        values = columns["cce"]
        if run.keep_rows:
            columns["effective_neighbors"] = found.effective_neighbors()
        landmarks = self.embedding.options
        details = {
            "rows": found.landmarks.rows,
            "quantiles": quantiles(values),
            **settings.details,
            **feature_details(found.bounds),
            **nystroem_details(found.measured, found.landmarks, landmarks, self.embedding.run, self.embedding.reason),
            "reach": reach(settings.kernel, found.landmarks.evaluated[:FEW_ROWS], settings.scaling, lambda_),
        }
        correction = found.measured.means[0] - values.mean()
        warnings = nystroem_warnings(found.measured, found.landmarks, landmarks, residual_warnings(found.bounds))
        numbers = None if len(values) == found.landmarks.rows else found.places
        fixed = {"correction": correction}
        return RowResults(columns, fixed=fixed, details=details, warnings=warnings, numbers=numbers)

    def null_distribution(self, _: NullSimulator, __: Run) -> NullDistribution:
        """Return cce of the replicates, which were fitted together with the data."""
        near = self.embedding.fitted(self.options.lambda_)
        details = {"columns": near.groups[1], "landmarks": len(near.landmarks.landmarks)}
        at_inputs = near.at_inputs()
        at_sample = near.values.T if at_inputs is None else None
        return NullDistribution(near.measured.means[1:], at_inputs=at_inputs, at_sample=at_sample, details=details)
