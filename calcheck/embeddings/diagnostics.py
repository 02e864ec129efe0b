"""What reports tell of a conditional embedding: how its values spread, how it was had, and what makes it doubtful."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.embeddings.landmark_selection import flops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.embeddings.distance import Distances
    from calcheck.embeddings.landmark_selection import LandmarkOptions
    from calcheck.embeddings.nystroem_ridge import Landmarks, NystroemNorms
    from calcheck.embeddings.output_features import FeatureError
    from calcheck.embeddings.ridge import KernelRidge
    from calcheck.execution.context import Run

FEW_DOF = 2.0  # below it the kernel tells hardly any inputs apart
MUCH_LEFT_OUT = 1e-8  # of a squared norm: the value's own error is then below 1e-6 where CCE is 0.01
ACCURATE = {"float64": 1e-7, "float32": 1e-4}  # share of the value that rounding may move without a warning

ROUNDING = 1e-14  # a residual below it is rounding of the check itself, and differs between processors


def quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    """Describe the spread over inputs."""
    levels = {"min": 0.0, "q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95, "max": 1.0}
    return dict(zip(levels, np.quantile(values, list(levels.values())).tolist(), strict=True))


def trial_statistics(means: NDArray[np.float64]) -> dict[str, Any]:
    """Describe the mean distance over trials, if there are several."""
    if len(means) == 1:
        return {}
    return {"trials": {"std": float(means.std(ddof=1)), "values": means.tolist()}}


def feature_details(bounds: FeatureError) -> dict[str, Any]:
    """Describe what stands for the kernel on targets."""
    told = {
        "rank": bounds.features.rank,
        "residual_targets": bounds.points,
        "residual_predictive": bounds.rows,
        "quadrature_error": bounds.quadrature,
    }
    return {"features": told}


def feature_warnings(details: dict[str, Any]) -> list[str]:
    """Warn where features leave out much."""
    told = details["features"]
    most = max(told["residual_targets"], told["residual_predictive"])
    if most <= MUCH_LEFT_OUT:
        return []
    return [f"{told['rank']:,} output features leave out up to {most:.1e} of a squared norm"]


def solver_details(found: Distances, bounds: FeatureError, ridge: KernelRidge, run: Run) -> dict[str, Any]:
    """Describe features and solver."""
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
    """Describe an approximation on centres."""
    n, d = landmarks.rows, landmarks.landmarks.shape[1]
    return {
        "dof": measured.dof,
        "dof_error": measured.dof_error,
        "solver": {
            "name": "nystroem",
            "reason": reason,
            "landmarks": len(landmarks.landmarks),
            "landmark_sampling": options.by,
            "error": float(measured.errors[0]),
            "tolerance": options.tolerance,
            "bias_correction": float(measured.corrections[0]),
            "mean_rows": len(landmarks.evaluated),
            "validation_rows": len(landmarks.validation),
            "flops": flops(n, d, *measured.coefficients.shape),
            "precision": run.precision,
            "device": run.device or "numpy",
        },
    }


def nystroem_warnings(details: dict[str, Any], *, accurate: bool, value: float) -> tuple[str, ...]:
    """Say what makes a value on centres doubtful."""
    warnings = [*few_dof(details), *feature_warnings(details)]
    solver = details["solver"]
    share = f" ({100 * solver['error'] / value:.2g} % of it)" if value else ""
    told = f"{solver['landmarks']:,} centres stand for all rows: the value may be off by {solver['error']:.2g}{share}"
    if not accurate:
        told += (
            f", which is above --tolerance {solver['tolerance']:g}. Pass more --landmarks, or a larger --max-flops or"
            " --memory; the verdict holds all the same"
        )
    if solver["bias_correction"] > solver["tolerance"] * value:
        told += f". It has a correction of {solver['bias_correction']:.2g} that single rows and quantiles lack"
    return (*warnings, told)


def few_dof(details: dict[str, Any]) -> list[str]:
    """Warn where the kernel hardly tells inputs apart."""
    told = (
        f"dof {details['dof']:.2g}: the kernel hardly tells inputs apart, so this is close to a marginal test."
        " Try --normalize l2 or standardize, --gamma-x median, or a smaller --lambda"
    )
    return [told] if details["dof"] < FEW_DOF else []


def kernel_warnings(details: dict[str, Any], found: Distances, precision: str) -> tuple[str, ...]:
    """Say what makes the value doubtful."""
    warnings = [*few_dof(details), *feature_warnings(details)]
    moved = found.residual * found.rms / max(float(found.values.mean()), np.finfo(float).tiny)
    if moved > ACCURATE[precision] and found.values.any():
        warnings.append(
            f"rounding in {precision} may move the value by {moved:.1e} of itself."
            " Pass --precision float64, or a larger --lambda"
        )
    return tuple(warnings)
