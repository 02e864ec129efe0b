"""Report details and warnings of a conditional mean embedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.embeddings.landmark_selection import LandmarkOptions, flops
from calcheck.errors import Message

if TYPE_CHECKING:
    from calcheck.embeddings.distance import Distances
    from calcheck.embeddings.exact_features import FeatureBounds
    from calcheck.embeddings.nystroem_ridge import Landmarks, NystroemNorms
    from calcheck.embeddings.ridge import KernelRidge
    from calcheck.execution.run import Run
    from calcheck.typing import Values

MIN_DOF = 2.0  # Below this dof, the input kernel hardly distinguishes inputs
MAX_RESIDUAL = 1e-8  # Maximum feature residual (of a squared norm) without a warning; changes a CCE of 0.01 by < 1e-6
MAX_ROUNDING_ERROR = {"float64": 1e-7, "float32": 1e-4}  # Relative rounding error without a warning

ROUNDING = 1e-14  # Minimum reported residual: smaller values are rounding errors and differ between processors


def quantiles(values: Values) -> dict[str, float]:
    """Return quantiles of the values over inputs."""
    levels = {"min": 0.0, "q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95, "max": 1.0}
    return dict(zip(levels, np.quantile(values, list(levels.values())).tolist(), strict=True))


def trial_statistics(means: Values) -> dict[str, Any]:
    """Return the standard deviation and the values of the mean distance over trials; empty for one trial."""
    if len(means) == 1:
        return {}
    deviation = float(means.std(ddof=1))
    return {"trials": {"std": deviation, "values": means.tolist()}, "deviation": deviation}


def feature_details(bounds: FeatureBounds) -> dict[str, Any]:
    """Return rank and residuals of the output features."""
    features = {
        "rank": bounds.rank,
        "residual_targets": bounds.points,
        "residual_predictive": bounds.rows,
        "quadrature_error": bounds.quadrature,
    }
    return {"features": features}


def feature_warnings(rank: int, residual: float) -> list[Message]:
    """Return a warning if the largest residual of the output features is large."""
    if residual <= MAX_RESIDUAL:
        return []
    return [
        Message(
            "feature-residual", f"{rank:,} output features have a residual of up to {residual:.1e} of a squared norm"
        )
    ]


def residual_warnings(bounds: FeatureBounds) -> list[Message]:
    """Return a warning if the residual of the output features of targets or distributions is large."""
    return feature_warnings(bounds.rank, max(bounds.points, bounds.rows))


def solver_details(found: Distances, bounds: FeatureBounds, ridge: KernelRidge, run: Run) -> dict[str, Any]:
    """Return dof, output features and solver."""
    return {
        "dof": found.dof.value,
        "dof_error": found.dof.error,
        **feature_details(bounds),
        "solver": {
            "name": ridge.solver,
            "reason": ridge.reason,
            "cached": ridge.is_cached,
            "iterations": found.iterations,
            **({"preconditioner": {"name": "nystroem", "rank": found.preconditioner}} if found.preconditioner else {}),
            "residual": max(found.residual, ROUNDING),
            "precision": run.precision,
            "device": run.device or "numpy",
        },
    }


def nystroem_details(
    measured: NystroemNorms, landmarks: Landmarks, options: LandmarkOptions, run: Run, reason: str
) -> dict[str, Any]:
    """Return dof and solver of a Nyström approximation."""
    n, d = landmarks.rows, landmarks.landmarks.shape[1]
    count, columns = measured.coefficients.shape
    return {
        "dof": measured.dof,
        "dof_error": measured.dof_error,
        "solver": {
            "name": "nystroem",
            "reason": reason,
            "landmarks": count,
            "landmark_sampling": options.by,
            "error": float(measured.errors[0]),
            "tolerance": options.tolerance,
            "bias_correction": float(measured.corrections[0]),
            "mean_rows": len(landmarks.evaluated),
            "validation_rows": len(landmarks.validation),
            "flops": flops(n, d, count, columns, run.limits),
            "precision": run.precision,
            "device": run.device or "numpy",
        },
    }


def nystroem_warnings(
    measured: NystroemNorms, landmarks: Landmarks, options: LandmarkOptions, features: Sequence[Message]
) -> tuple[Message, ...]:
    """Return the warnings for a value computed with the Nyström approximation, after those about its features."""
    value, error, correction = (float(each[0]) for each in (measured.means, measured.errors, measured.corrections))
    share = f" ({100 * error / value:.2g} % of the value)" if value else ""
    message = f"approximation with {len(landmarks.landmarks):,} landmarks: the error may be {error:.2g}{share}"
    if not options.is_accurate(measured):
        message += (
            f", which is above --tolerance {options.tolerance:g}. Pass more --landmarks, or a larger --max-flops or"
            " --memory. The verdict is still valid"
        )
    if correction > options.tolerance * value:
        message += f". A bias correction of {correction:.2g} is added to the mean, but not to rows or quantiles"
    return (*few_dof(measured.dof), *features, Message("approximation", message))


def few_dof(dof: float) -> list[Message]:
    """Return a warning if the input kernel hardly distinguishes inputs."""
    message = (
        f"dof {dof:.2g}: the kernel hardly distinguishes inputs, so this is close to a marginal test."
        " Try --normalize l2 or standardize, --gamma-x median, or a smaller --lambda"
    )
    return [Message("low-dof", message)] if dof < MIN_DOF else []


def kernel_warnings(dof: float, bounds: FeatureBounds, found: Distances, precision: str) -> tuple[Message, ...]:
    """Return the warnings for a value computed with an exact solver."""
    warnings = [*few_dof(dof), *residual_warnings(bounds)]
    moved = found.residual * found.rms / max(float(found.values.mean()), np.finfo(float).tiny)
    if moved > MAX_ROUNDING_ERROR[precision] and found.values.any():
        text = (
            f"rounding in {precision} may change the value by {moved:.1e} (relative)."
            " Pass --precision float64, or a larger --lambda"
        )
        warnings.append(Message("rounding", text))
    return tuple(warnings)
