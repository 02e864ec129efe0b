"""NumPy and the modules that import it, each loaded when a metric first uses it: the help of a metric needs none."""

from typing import TYPE_CHECKING

from calcheck.core import LazyModule

if TYPE_CHECKING:
    import numpy as np

    from calcheck import predictions
    from calcheck.dependence import clusters
    from calcheck.embeddings import distance, landmarks, local_error, permutations, ridge, target_kernels
    from calcheck.inference import binned_validity, bootstrap, order_statistics
    from calcheck.kernels import bandwidths, kernel_functions
    from calcheck.mmd import frechet, joint, quadratic_forms, two_samples
    from calcheck.statistics import binning, coverage, curves, groups, multivariate, pit, scores, width, zscores
else:
    np = LazyModule("numpy")
    clusters = LazyModule("calcheck.dependence.clusters")
    distance = LazyModule("calcheck.embeddings.distance")
    landmarks = LazyModule("calcheck.embeddings.landmarks")
    local_error = LazyModule("calcheck.embeddings.local_error")
    permutations = LazyModule("calcheck.embeddings.permutations")
    ridge = LazyModule("calcheck.embeddings.ridge")
    target_kernels = LazyModule("calcheck.embeddings.target_kernels")
    binned_validity = LazyModule("calcheck.inference.binned_validity")
    bootstrap = LazyModule("calcheck.inference.bootstrap")
    order_statistics = LazyModule("calcheck.inference.order_statistics")
    bandwidths = LazyModule("calcheck.kernels.bandwidths")
    kernel_functions = LazyModule("calcheck.kernels.kernel_functions")
    frechet = LazyModule("calcheck.mmd.frechet")
    joint = LazyModule("calcheck.mmd.joint")
    quadratic_forms = LazyModule("calcheck.mmd.quadratic_forms")
    two_samples = LazyModule("calcheck.mmd.two_samples")
    predictions = LazyModule("calcheck.predictions")
    binning = LazyModule("calcheck.statistics.binning")
    coverage = LazyModule("calcheck.statistics.coverage")
    curves = LazyModule("calcheck.statistics.curves")
    groups = LazyModule("calcheck.statistics.groups")
    multivariate = LazyModule("calcheck.statistics.multivariate")
    pit = LazyModule("calcheck.statistics.pit")
    scores = LazyModule("calcheck.statistics.scores")
    width = LazyModule("calcheck.statistics.width")
    zscores = LazyModule("calcheck.statistics.zscores")
