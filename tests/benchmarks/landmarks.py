"""How often the estimated error of CCE with landmarks covers the true one.

    python -m tests.benchmarks.landmarks [SEEDS [ROWS]]

For d = 1, 16, 512, lambda = 0.1, 0.01 and models from perfect to plainly wrong, with several seeds (of landmarks and
validation rows), and for inputs far from all others with a narrow kernel and lambda = 0.001: how often the true error
is at most the estimated one, and their ratio. The true value comes from a Cholesky factor of all rows, computed without
calcheck's solvers.
"""

import sys

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.linalg import cho_factor, cho_solve

from calcheck.distributions import Gaussian
from calcheck.embeddings.rbf import output_features
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.kernels.bandwidths import conditioning, target_bandwidths
from calcheck.metrics.cce import Cce
from calcheck.predictions import InMemory, Predictions

MODELS = {"perfect": (0.0, 1.0), "std x 0.9": (0.0, 0.9), "std x 0.7": (0.0, 0.7), "mean + std/2": (0.5, 1.0)}


FAR = {"kernel_x": "rbf", "gamma_x": 2.0, "normalize": "none"}
CASES = {"1": (1, {}), "16": (16, {}), "512": (512, {}), "heavy tails": (2, FAR), "far cluster": (2, FAR)}


def data(case, n):
    """Return inputs (n, d), right means and deviations, and targets."""
    d, _ = CASES[case]
    rng = np.random.default_rng(d)
    if d == 2:
        x = rng.standard_t(2, size=(n, d)) if case == "heavy tails" else rng.normal(size=(n, d))
        if case == "far cluster":
            x[: n // 100] += 100
        mean, std = np.sin(x[:, 0]), 0.3 + 0.1 * np.cos(x[:, 1])
    elif d == 1:
        x = rng.uniform(-3, 3, (n, 1))
        mean, std = np.sin(2 * x[:, 0]), 0.2 + 0.1 * np.abs(x[:, 0])
    elif d == 16:
        x = rng.normal(size=(n, d))
        mean, std = np.sin(x[:, 0]) + 0.5 * x[:, 1], 0.3 * np.exp(0.3 * x[:, 2])
    else:
        clusters = rng.normal(size=(200, d))
        x = (clusters[rng.integers(0, 200, n)] + rng.normal(size=(n, d))) / np.sqrt(np.arange(1, d + 1)) + 0.05
        shown = x @ rng.normal(size=(d, 3))
        shown /= shown.std(axis=0)
        mean, std = np.sin(shown[:, 0]) + 0.5 * shown[:, 1], 0.4 * np.exp(0.3 * shown[:, 2])
    return x, mean, std, mean + std * rng.normal(size=n)


def runs(case, n, seeds):
    """Yield lambda, model, and the true and the estimated error of each seed, relative to the value."""
    x, mean, std, y = data(case, n)
    d, options = CASES[case]
    models = {name: Gaussian(mean + shift * std, factor * std) for name, (shift, factor) in MODELS.items()}
    rows = {name: Predictions(y=y, predictive=model, x=x, has_embedding=d > 16) for name, model in models.items()}
    chosen = conditioning(rows["perfect"], Cce(**options))
    scaled = chosen.scaling(x)
    gram = chosen.kernel.gram(scaled, scaled)
    for lambda_ in (0.001,) if options else (0.1, 0.01):
        factor = cho_factor(gram + n * lambda_ * np.eye(n), lower=True, overwrite_a=True)
        for name, model in models.items():
            gamma = target_bandwidths(y[:, None], None)
            features = output_features(y[:, None], model, gamma, np.random.default_rng(0))
            apart = features.of_points(y[:, None]) - features.of_distributions(model)
            exact = np.linalg.norm(apart - n * lambda_ * cho_solve(factor, apart), axis=1).mean()
            errors = []
            for seed in range(seeds):
                metric = Cce(solver="nystroem", lambda_=lambda_, **options)
                run = Run(seed=seed, replicates=0)
                (result,) = evaluate(InMemory(rows[name]), [metric], run=run).results
                errors.append((abs(result.value / exact - 1), result.details["solver"]["error"] / exact))
            yield lambda_, name, np.array(errors)
        del factor


def main():
    """Print a line for each case, and a summary of all runs."""
    seeds, n = (int(word) for word in [*sys.argv[1:], *("9", "12000")[len(sys.argv) - 1 :]])
    shown = Table("inputs", "lambda", "model", "true error", "estimated error", "covered", "median ratio")
    every = []
    for case in CASES:
        for lambda_, name, errors in runs(case, n, seeds):
            true, estimated = errors.T
            every.append(errors)
            ratio = np.median(estimated / np.maximum(true, np.finfo(float).eps))
            covered = f"{np.sum(true <= estimated)} of {len(true)}"
            cells = f"{np.median(true):.1e}", f"{np.median(estimated):.1e}", covered, f"{ratio:.1f}"
            shown.add_row(case, f"{lambda_:g}", name, *cells)
    Console(width=120).print(shown)
    true, estimated = np.concatenate(every).T
    print(f"covered: {np.mean(true <= estimated):.1%} of {len(true)} runs; median of estimated over true: ", end="")
    print(f"{np.median(estimated / np.maximum(true, np.finfo(float).eps)):.1f}")


if __name__ == "__main__":
    main()
