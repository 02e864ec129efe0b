"""Regressions on centres of rows that are never together: what is chosen once, summed, and told of the sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.embeddings.diagnostics import nystroem_details, nystroem_warnings, quantiles
from calcheck.embeddings.landmark_selection import CHECKED_ROWS, NystroemEmbedding, as_precise
from calcheck.embeddings.nystroem_ridge import Landmarks, NystroemRidge
from calcheck.embeddings.nystroem_sums import RegressionTargets, RowProducts
from calcheck.embeddings.output_features import ROUNDING
from calcheck.embeddings.row_sample import SAMPLE_ROWS, RowSample, RowSampleSums
from calcheck.execution.bottom_k import bottom_k, hash_rows_and_inputs
from calcheck.predictions import InMemory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.embeddings.fitted_settings import KernelSettings
    from calcheck.embeddings.landmark_selection import LandmarkOptions
    from calcheck.embeddings.nystroem_ridge import NystroemNorms
    from calcheck.embeddings.nystroem_sums import RowSums
    from calcheck.embeddings.output_features import OutputFeatures
    from calcheck.execution.backend import Precision
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.scaling import Scaling
    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]
    Inputs = NDArray[np.floating[Any]]

REASON = "rows are summed batch by batch, which takes centres"
OWN = 0.5  # of what centres do not see of a row's part in its own value: where no row is checked, that goes unmeasured
LOST = 10.0  # times that share, of the value, which it may be too small where so much is left out
LEFT_OUT = 1e-4  # share of what is regressed, squared, that may be left out without a warning: it moves little
MOVED = 1.25  # times what centres do not see of the checked inputs, beyond which others are elsewhere
CLEAR = 4.0  # standard errors of such a difference
NONE = 1e-6  # of k(x, x), below which nothing is left that centres do not see


@dataclass(frozen=True, eq=False)
class StreamedLandmarks:
    """What is chosen once, by the first rows, for all that are summed like them.

    Parameters
    ----------
    scaling : Scaling
        Normalization of the inputs.
    kernel : Kernel
        k_X on normalized inputs.
    features : OutputFeatures
        psi with k_Y(u, v) = psi(u) . psi(v).
    directions : (r, q)
        Orthonormal; what is regressed varies in these.
    landmarks, validation : (M, d), (S, d)
        Normalized inputs.
    key : int
        Of the hashes that rows are sampled by.
    precision : str
        Of kernel values.
    details : dict
        The choices in words and numbers, for the report.
    """

    scaling: Scaling
    kernel: Kernel
    features: OutputFeatures
    directions: Values
    landmarks: Inputs
    validation: Inputs
    key: int
    precision: Precision
    details: dict[str, Any]

    @classmethod
    def select(
        cls,
        settings: KernelSettings,
        sample: RowSampleSums,
        key: int,
        options: LandmarkOptions,
        lambda_: float,
        run: Run,
    ) -> StreamedLandmarks:
        """Choose directions, centres and checked inputs by a sample of the rows.

        Raises
        ------
        DataError
            The features cannot represent targets or predictions.
        """
        run = as_precise(sample.rows, run.for_worker())
        by = NystroemEmbedding(settings, InMemory(sample.rows), options, run, REASON)
        (directions, few), centres, checked = by.selected(lambda_, sample.n)
        scaling, kernel, features = settings.scaling, settings.kernel, settings.features
        return cls(
            scaling, kernel, features, directions[:, :few], centres, checked, key, run.precision, settings.details
        )

    def fit(self, batch: Predictions, replicates: int, run: Run) -> tuple[RowSums, RowSample]:
        """Sum a batch of rows and replicates of its targets; sample it too."""
        run = replace(run, precision=self.precision)
        outputs = RegressionTargets(self.features, self.directions, self.directions.shape[1], replicates, run)
        work = RowProducts(self.kernel, self.scaling, self.landmarks, self.validation, outputs, run)
        hashes = hash_rows_and_inputs(batch, self.key)
        kept = bottom_k(hashes, SAMPLE_ROWS)
        rows = batch.take(kept)
        x = self.scaling.rounded(rows.inputs(), precision=self.precision)
        return work(batch), RowSample(hashes[kept], {"x": x, "left_out": self._left_out(rows)})

    def _left_out(self, rows: Predictions) -> Values:
        """Return squared norms of rows, (p, 4).

        What features leave out of the target, and of the distribution; what directions leave out of the difference
        of their features, and this difference.
        """
        y, predictive = rows.targets().reshape(len(rows), -1), rows.distributions().load()
        observed, expected = self.features.of_points(y), self.features.of_distributions(predictive)
        apart = observed - expected
        norm = predictive.kernel_norm(self.features.pivots.gamma)
        size, seen = _squares(apart), _squares(apart @ self.directions)
        return np.stack([1 - _squares(observed), norm - _squares(expected), size - seen, size], axis=1)

    def measured(self, sums: RowSums, sample: RowSample, lambda_: float, run: Run) -> StreamedFit:
        """Regress what was summed."""
        run = replace(run, precision=self.precision)
        x = sample.columns["x"]
        first = np.array_equal(x, self.validation)  # the rows that these were chosen by, all of them
        weights = np.full(len(self.validation), sums.n / len(self.validation))
        landmarks = Landmarks(self.landmarks, x, self.validation, weights, sums.n, among=first)
        ridge = NystroemRidge(sums, self.kernel, landmarks, run)
        found = ridge.norms(lambda_, (self.directions.shape[1],) * 2)
        left_out = sample.columns["left_out"]
        unseen_checked, unseen = (ridge.residual(each) for each in (self.validation, x[:CHECKED_ROWS]))
        among = _some_among(self.validation, x)
        own = 0.0 if among else OWN * unseen.mean() / (sums.n * lambda_) * np.sqrt(left_out[:, 3].mean())
        errors = np.hypot(found.errors, own) + LOST * _share(left_out) * found.means
        found = replace(found, errors=errors)
        return StreamedFit(self, found, landmarks, left_out, unseen_checked, unseen, run)


@dataclass(frozen=True, eq=False)
class StreamedFit:
    """What sums say of the data, and of replicates.

    Parameters
    ----------
    by : StreamedLandmarks
        What was chosen.
    measured : NystroemNorms
        Mean norms with errors, the data first.
    landmarks : Landmarks
        The inputs that stand for all.
    left_out : (k, 4)
        Of sampled rows (:meth:`StreamedLandmarks.sum_groups`).
    validation_residual, residual : (S,), (p,)
        What centres do not see of checked inputs, and of some of all rows.
    run : Run
        Device and precision.
    """

    by: StreamedLandmarks
    measured: NystroemNorms
    landmarks: Landmarks
    left_out: Values
    validation_residual: Values
    residual: Values
    run: Run

    def details(self, options: LandmarkOptions, quadrature: float) -> dict[str, Any]:
        """Describe the sums and what was had from them."""
        points, distributions = self.left_out[:, :2].max(axis=0)
        told = nystroem_details(self.measured, self.landmarks, options, self.run, REASON)
        told["solver"] |= {
            "validation_residual": float(self.validation_residual.mean()),
            "nystroem_residual": float(self.residual.mean()),
        }
        return {
            "rows": self.landmarks.rows,
            "quantiles": quantiles(self.measured.values[:, 0]),
            **self.by.details,
            "features": {
                "rank": self.by.features.rank,
                "residual_targets": max(float(points), ROUNDING),
                "residual_predictive": max(float(distributions), ROUNDING),
                "residual_rows": _share(self.left_out),
                "quadrature_error": quadrature,
            },
            **told,
        }

    def warnings(self, details: dict[str, Any], options: LandmarkOptions) -> tuple[str, ...]:
        """Say what makes the value doubtful."""
        value, accurate = float(self.measured.means[0]), options.met_by(self.measured)
        warnings = [*nystroem_warnings(details, accurate=accurate, value=value)]
        if (share := _share(self.left_out)) > LEFT_OUT:
            warnings.append(
                "targets or predictions have moved to where the rows that settings were chosen by had none:"
                f" {share:.2g} of what is compared is left out. Make a new state, without --settings-from"
            )
        if self._moved():
            warnings.append(
                "the inputs have moved away from those that the landmarks were chosen among: the landmarks miss"
                f" {self.residual.mean():.2g} of k(x, x), and {self.validation_residual.mean():.2g} at the validation"
                " inputs, where the error is estimated. So the error may be larger than reported. Make a new state,"
                " without --settings-from"
            )
        return tuple(warnings)

    def _moved(self) -> bool:
        """Tell whether the inputs of all rows are not where the checked ones are, which were chosen at first."""
        new, old = self.residual, self.validation_residual
        error = np.sqrt(new.var() / len(new) + old.var() / len(old))
        return bool(new.mean() > max(NONE, MOVED * old.mean()) and new.mean() - old.mean() > CLEAR * error)


def _some_among(some: Inputs, others: Inputs) -> bool:
    """Tell whether some inputs are among others."""
    return not {each.tobytes() for each in some}.isdisjoint(each.tobytes() for each in others)


def _share(left_out: Values) -> float:
    """Return the share of what is regressed, squared, that features and directions leave out, of (k, 4) norms."""
    total = np.maximum(left_out, 0).sum(axis=0)
    whole = total[0] + total[1] + total[3]
    return float(total[:3].sum() / whole) if whole > 0 else 0.0


def _squares(values: Values) -> Values:
    return np.asarray(np.einsum("ij,ij->i", values, values))
