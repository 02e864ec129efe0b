"""Conditional congruence error with a Nyström approximation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from calcheck.embeddings.diagnostics import (
    feature_details,
    nystroem_details,
    nystroem_warnings,
    quantiles,
    residual_warnings,
)
from calcheck.embeddings.landmark_selection import LandmarkOptions, NystroemEmbedding, as_precise
from calcheck.embeddings.reach import FEW_ROWS, reach
from calcheck.errors import OptionError
from calcheck.results import NullDistribution, RowResults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.embeddings.fitted_settings import KernelSettings
    from calcheck.execution.context import Run
    from calcheck.inference.null_distribution import NullSimulator
    from calcheck.metrics._cce_options import CceOptions
    from calcheck.predictions import Source


@dataclass(frozen=True, eq=False)
class CceNystroem:
    """The fit of cce on landmarks.

    Parameters
    ----------
    options : CceOptions
        The options.
    settings : KernelSettings
        Kernels, scaling, features and distributions.
    embedding : NystroemEmbedding
        Landmarks, and regressions on them.
    """

    options: CceOptions
    settings: KernelSettings
    embedding: NystroemEmbedding

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
        """Raise an error: landmarks are fitted for the rows' own inputs only.

        Raises
        ------
        OptionError
            Always.
        """
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
