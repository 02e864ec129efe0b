"""NumPy and modules that import it, loaded when a metric first uses them, as its help needs none; types of metrics."""

# ruff: noqa: F401 - for the metrics

from typing import TYPE_CHECKING

from calcheck.core import LazyModule

if TYPE_CHECKING:
    import numpy as np

    from calcheck import predictions
    from calcheck.dependence import clusters
    from calcheck.dependence.clusters import Clusters
    from calcheck.distributions import Predictive
    from calcheck.embeddings import distance, landmarks, local_error, permutations, ridge, target_kernels
    from calcheck.execution.run import Run
    from calcheck.inference import binned_validity, bootstrap
    from calcheck.inference.null_distribution import NullSimulator
    from calcheck.kernels import bandwidths, kernel_functions
    from calcheck.kernels.kernel_functions import Kernel
    from calcheck.mmd import frechet, joint, quadratic_forms, two_samples
    from calcheck.predictions import Predictions, Source
    from calcheck.reports import Curve
    from calcheck.reports.conclusion import Direction
    from calcheck.statistics import binning, coverage, curves, groups, multivariate, pit, scores, zscores
    from calcheck.statistics.binning import Binning
    from calcheck.statistics.groups import Means, MeanTerm
    from calcheck.typing import AnyArray, Floats, Mask, Values
else:
    np, predictions = LazyModule("numpy"), LazyModule("calcheck.predictions")
    for room, names in {
        "dependence": ("clusters",),
        "embeddings": ("distance", "landmarks", "local_error", "permutations", "ridge", "target_kernels"),
        "inference": ("binned_validity", "bootstrap"),
        "kernels": ("bandwidths", "kernel_functions"),
        "mmd": ("frechet", "joint", "quadratic_forms", "two_samples"),
        "statistics": ("binning", "coverage", "curves", "groups", "multivariate", "pit", "scores", "zscores"),
    }.items():
        for name in names:
            globals()[name] = LazyModule(f"calcheck.{room}.{name}")
