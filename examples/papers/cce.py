"""Figures of "Beyond Calibration: Assessing the Probabilistic Fit of Neural Regressors via Conditional Congruence".

    python examples/papers/cce.py [FIGURE] [--sets 5]

simulates the data of a figure of arXiv 2405.12412 by the processes of the authors' scripts, asks calcheck, and prints
published and found numbers side by side. The numbers of Figure 2 are of trained networks; here each family has the true
mean, and the variance that is nearest to the true one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import sine_counts
from tools import Line, Setting, main, show, value, write

Sample = dict[str, np.ndarray]
Pairs = Callable[[np.random.Generator], list[Sample]]
TITLES = ("same", "smaller variance", "larger variance", "mean, smaller variance", "mean, larger variance", "shape")
ROWS, OTHER_ROWS = 1000, 500


def homoscedastic(rng: np.random.Generator, rows: int, shift: float = 0.0, spread: float = 0.5) -> Sample:
    """Return a sample of Figure 9: a cosine with noise of one size."""
    x = rng.uniform(0, 2 * np.pi, rows)
    return {"x": x, "y": rng.normal(np.cos(x) + shift, spread)}


def heteroscedastic(rng: np.random.Generator, rows: int, shift: float = 0.0, factor: float = 1.0) -> Sample:
    """Return a sample of Figure 8: a sine, with noise whose variance is max(x, 0.2)."""
    x = rng.uniform(-np.pi, np.pi, rows)
    return {"x": x, "y": rng.normal(np.sin(x) + shift, factor * np.sqrt(np.maximum(x, 0.2)))}


def homoscedastic_pairs(rng: np.random.Generator) -> list[Sample]:
    """Return the first sample and the six others: the last is a line, x - 5."""
    changes = [(0.0, 0.5), (0.0, 0.1), (0.0, 1.5), (-2.0, 0.1), (-2.0, 1.5)]
    x = rng.uniform(0, 2 * np.pi, OTHER_ROWS)
    return [
        homoscedastic(rng, ROWS),
        *(homoscedastic(rng, OTHER_ROWS, *change) for change in changes),
        {"x": x, "y": rng.normal(x - 5, 0.5)},
    ]


def heteroscedastic_pairs(rng: np.random.Generator) -> list[Sample]:
    """Return the first sample and the six others: the last is the line x in the script, x - 5 in the text."""
    changes = [(0.0, 1.0), (0.0, 0.25), (0.0, 2.0), (-3.0, 0.25), (-3.0, 2.0)]
    x = rng.uniform(-np.pi, np.pi, OTHER_ROWS)
    return [
        heteroscedastic(rng, ROWS),
        *(heteroscedastic(rng, OTHER_ROWS, *change) for change in changes),
        {"x": x, "y": rng.normal(x, 0.5)},
    ]


def six(setting: Setting, title: str, pairs: Pairs, published: tuple[float, ...], *options: object) -> None:
    """Print MCMD of six pairs of samples, at 50 points."""
    arguments = ("--inputs", "x", "--grid", 50, "--permutations", 19, *options)
    found: list[list[float]] = [[] for _ in TITLES]
    for seed in range(setting.sets):
        first, *others = (
            write(setting.folder / f"{place}.parquet", **sample)
            for place, sample in enumerate(pairs(np.random.default_rng(seed)))
        )
        for values, other in zip(found, others, strict=True):
            values.append(value("mcmd", first, other, *arguments))
    lines = [Line(*each) for each in zip(TITLES, published, found, strict=True)]
    show(title, f"calcheck mcmd a.parquet b.parquet {' '.join(map(str, arguments))}", lines)


def figure_1(setting: Setting) -> None:
    """Print CCE of a model that predicts the marginal distribution: y = 3 x + e, predicted by N(0, 10)."""
    options = ("--inputs", "x", "--gamma-x", 1, "--draws", 1, "--no-null")
    slip: list[float] = []
    stated: list[float] = []
    ece: list[float] = []
    for seed in range(setting.sets):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=500)
        y = rng.normal(3 * x)
        path = write(setting.folder / "marginal.parquet", x=x, y=y, mean=np.zeros(500), std=np.full(500, 10**0.5))
        slip.append(value("cce", path, *options, "--seed", seed, "--gamma-y", y.var() / 2))
        stated.append(value("cce", path, *options, "--seed", seed))
        ece.append(
            value("ece", path, "--levels", "linspace:1e-5:0.99999:100", "--level-weights", "frequency", "--no-null")
        )
    lines = [
        Line("CCE, gamma-y var/2 (a slip)", 0.209, slip, 0.229, 3),
        Line("CCE, gamma-y 1/(2 var)", None, stated, 0.369, 3),
        Line("ECE", None, ece, None, 3),
    ]
    show("Figure 1", f"calcheck cce marginal.parquet {' '.join(map(str, options))} --gamma-y VAR/2", lines)


def figure_2(setting: Setting) -> None:
    """Print CCE of four families on the discrete sine wave."""
    published = {"poisson": 0.1123, "nbinom": 0.1256, "gaussian": 0.0191, "double-poisson": 0.0203}
    options = ("--inputs", "x", "--gamma-x", 0.5, "--draws", 5, "--trials", 5, "--no-null")
    found: dict[str, list[float]] = {name: [] for name in published}
    for seed in range(setting.sets):
        for name, table in sine_counts.predictions(200, seed).items():
            path = write(setting.folder / f"{name}.parquet", **{each: table[each] for each in table.column_names})
            found[name].append(value("cce", path, *options, *sine_counts.OPTIONS[name]))
    lines = [Line(name, published[name], values) for name, values in found.items()]
    show("Figure 2, families with the true mean", f"calcheck cce FILE {' '.join(map(str, options))}", lines)


def figure_8(setting: Setting) -> None:
    """Print MCMD of pairs of heteroscedastic samples."""
    six(setting, "Figure 8", heteroscedastic_pairs, (0.0375, 0.1539, 0.1636, 0.8367, 0.6381, 0.3266))


def figure_9(setting: Setting) -> None:
    """Print MCMD of pairs of homoscedastic samples."""
    six(setting, "Figure 9", homoscedastic_pairs, (0.0347, 0.1228, 0.2675, 0.8083, 0.5169, 0.4521))


def figure_12(setting: Setting) -> None:
    """Print MCMD of a cosine and a line for three kernels, each on inputs and on targets (Figure 12b)."""
    published = {"rbf": 0.434, "laplace": 0.344, "polynomial": 0.389}
    found: dict[str, list[float]] = {kernel: [] for kernel in published}
    for seed in range(setting.sets):
        rng = np.random.default_rng(seed)
        first = homoscedastic(rng, 200)
        x = rng.uniform(0, 2 * np.pi, 100)
        files = [
            write(setting.folder / "first.parquet", **first),
            write(setting.folder / "second.parquet", x=x, y=rng.normal(x - 5, 0.5)),
        ]
        for kernel, values in found.items():
            gammas = (0.02, 0.02) if kernel == "polynomial" else (2, 1 / (2 * first["y"].var()))
            kernels = ("--kernel-x", kernel, "--gamma-x", gammas[0], "--kernel-y", kernel, "--gamma-y", gammas[1])
            options = ("--inputs", "x", "--grid", 100, "--normalize", "none", "--permutations", 19)
            values.append(value("mcmd", *files, *options, *kernels))
    lines = [Line(kernel, published[kernel], values, digits=3) for kernel, values in found.items()]
    show("Figure 12b", "calcheck mcmd A B --inputs x --grid 100 --kernel-x KERNEL --kernel-y KERNEL", lines)


def figure_13(setting: Setting) -> None:
    """Print ECE of perfect models of several families: --pit plain as in the paper, and calcheck's default."""
    published = {"gaussian": 0.0056, "poisson": 0.0716, "nbinom": 0.0587, "double-poisson": 0.0720}
    options = ("--levels", "linspace:1e-5:0.99999:50", "--level-weights", "frequency", "--no-null")
    found: dict[str, list[float]] = {name: [] for name in published}
    nonrandomized: dict[str, list[float]] = {name: [] for name in published}
    for seed in range(setting.sets):
        for name, columns in right_models(np.random.default_rng(seed)).items():
            path = write(setting.folder / f"{name}.parquet", **columns)
            family = sine_counts.OPTIONS[name]
            found[name].append(value("ece", path, *options, "--pit", "plain", *family))
            nonrandomized[name].append(value("ece", path, *options, *family))
    lines = [Line(f"{name}, plain", published[name], values) for name, values in found.items()]
    lines += [Line(f"{name}, nonrandomized", None, values) for name, values in nonrandomized.items()]
    show("Figure 13", f"calcheck ece FILE {' '.join(map(str, options))} --pit plain", lines)


def right_models(rng: np.random.Generator) -> dict[str, Sample]:
    """Return targets and the distributions from which they are drawn, for x ~ U(1, 10) with mean x and variance x.

    The negative binomial has n = round(x^2 / 0.1) and p = x / (x + 0.1), as the authors' code. A double Poisson with
    phi = 1 is a Poisson.
    """
    x = rng.uniform(1, 10, 1000)
    size, success = np.rint(x**2 / 0.1), x / (x + 0.1)
    return {
        "gaussian": {"y": rng.normal(x, np.sqrt(x)), "mean": x, "std": np.sqrt(x)},
        "poisson": {"y": rng.poisson(x), "rate": x},
        "nbinom": {"y": rng.negative_binomial(size, success), "total_count": size, "probs": 1 - success},
        "double-poisson": {"y": rng.poisson(x), "mu": x, "phi": np.ones(1000)},
    }


if __name__ == "__main__":
    main(__doc__, {"1": figure_1, "2": figure_2, "8": figure_8, "9": figure_9, "12": figure_12, "13": figure_13})
