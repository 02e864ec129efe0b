"""Figures of "Beyond Calibration: Assessing the Probabilistic Fit of Neural Regressors via Conditional Congruence".

    python examples/papers/cce.py [FIGURE] [--sets 5]

simulates the data of a figure of arXiv 2405.12412 by the processes of the authors' scripts, asks calcheck, and prints
published and found numbers side by side. Figures of trained networks have stand-ins: on the discrete sine wave each
family has the true mean, and the variance that is nearest to the true one; Figure 7 has a model that misses part of a
wave. Figures without printed numbers have a table, of what the picture shows:

lambda, gamma   MCMD of the samples of Figure 12b, for other settings of the RBF kernels
boundaries      CCE within and beyond the inputs
residuals       correlation of CCE with the absolute error
variance        deviation of CCE over draws, and over data sets of 100 and 1,000 rows
3, 4            series of disturbed predictions, best and worst inputs: on text embeddings in --data FOLDER, a Parquet
                file test.parquet with the columns id, y, mean, std and embedding
losses          CCE and NLL at each input, on the same file

Expected numbers of lambda, gamma and 12b are means over 200 data sets, by explicit inverses of every matrix.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

sys.path.insert(0, str(Path(__file__).parents[1]))
import misfit
import sine_counts
from tools import Line, Setting, calcheck, main, show, show_values, value, write

Sample = dict[str, np.ndarray]
Pairs = Callable[[np.random.Generator], list[Sample]]
TITLES = ("same", "smaller variance", "larger variance", "mean, smaller variance", "mean, larger variance", "shape")
ROWS, OTHER_ROWS = 1000, 500
BY_HAND = {"rbf": 0.4454, "laplace": 0.3587, "polynomial": 0.4401}
LAMBDAS = {"0.001": 0.7114, "0.01": 0.6736, "0.05": 0.5808, "0.1": 0.5038, "0.5": 0.2551, "1": 0.1594}
GAMMAS = {"0.1": 0.4741, "0.5": 0.5068, "1": 0.4729, "5": 0.3338}


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


def six(setting: Setting, title: str, pairs: Pairs, published: tuple[float | None, ...], *options: object) -> None:
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
        for name, path in sine_files(setting, 200, seed).items():
            found[name].append(value("cce", path, *options, *sine_counts.OPTIONS[name]))
    lines = [Line(name, published[name], values) for name, values in found.items()]
    show("Figure 2, families with the true mean", f"calcheck cce FILE {' '.join(map(str, options))}", lines)


def figure_6(setting: Setting) -> None:
    """Print CCE of four families on 25 to 100 rows, over five draws."""
    sizes = (25, 50, 75, 100)
    options = ("--inputs", "x", "--gamma-x", 0.5, "--draws", 1)
    rows: dict[str, list[list[float]]] = {name: [[] for _ in sizes] for name in sine_counts.OPTIONS}
    for seed in range(setting.sets):
        files = [f"{path}{suffix_of(name)}" for name, path in sine_files(setting, 200, seed).items()]
        vary = f"subsample={','.join(map(str, sizes))}"
        report = calcheck("sweep", *files, *options, "--vary", vary, "--names", ",".join(rows), "--seed", seed)
        for result in report["results"]:
            if "subsample" in result["slice"]:
                place = sizes.index(int(result["slice"]["subsample"]))
                rows[result["slice"]["model"]][place].append(result["value"])
    show_values("Figure 6", f"calcheck sweep FILES {' '.join(map(str, options))} --vary {vary}", sizes, rows)


def suffix_of(family: str) -> str:
    """Return what follows the name of a file whose distributions are of a family."""
    options = sine_counts.OPTIONS[family]
    return f"@dist={options[1]}" if options else ""


def sine_files(setting: Setting, rows: int, seed: int) -> dict[str, Path]:
    """Return files of the discrete sine wave, by family."""
    tables = sine_counts.predictions(rows, seed).items()
    return {name: write(setting.folder / f"{name}.parquet", **columns_of(table)) for name, table in tables}


def columns_of(table: sine_counts.pa.Table) -> Sample:
    """Return the columns of a table by name."""
    return {name: table[name] for name in table.column_names}


def figure_7(setting: Setting) -> None:
    """Print the error of predictions that remain when those with the largest CCE, or random ones, are rejected."""
    options = ("--inputs", "x", "--gamma-x", 1, "--draws", 1, "--criteria", "cce,random", "--max-percent", 50)
    found: dict[str, dict[str, list[float]]] = {}
    for seed in range(setting.sets):
        labeled, new = (
            write(setting.folder / f"{place}.parquet", **misfit.predictions(misfit.ROWS, 2 * seed + place))
            for place in (0, 1)
        )
        results = calcheck("reject", labeled, "--new", new, *options, "--metrics", "mae,nll")["results"]
        for result in (each for each in results if "%" in each["slice"]["rejected"]):
            by = found.setdefault(f"{result['metric']}, by {result['slice']['by']}", {})
            by.setdefault(result["slice"]["rejected"], []).append(result["value"])
    heads = next(iter(found.values()))
    rows = {name: list(cells.values()) for name, cells in found.items()}
    show_values("Figure 7", f"calcheck reject LABELED --new NEW {' '.join(map(str, options))}", list(heads), rows)


def figure_8(setting: Setting) -> None:
    """Print MCMD of pairs of heteroscedastic samples."""
    six(setting, "Figure 8", heteroscedastic_pairs, (0.0375, 0.1539, 0.1636, 0.8367, 0.6381, 0.3266))


def figure_9(setting: Setting) -> None:
    """Print MCMD of pairs of homoscedastic samples."""
    six(setting, "Figure 9", homoscedastic_pairs, (0.0347, 0.1228, 0.2675, 0.8083, 0.5169, 0.4521))


def wave_and_line(setting: Setting, seed: int) -> tuple[Sample, list[Path]]:
    """Return the cosine of Figure 12b, and the files of it and of a line."""
    first, second = wave_and_line_samples(np.random.default_rng(seed))
    names = ("first.parquet", "second.parquet")
    return first, [write(setting.folder / name, **each) for name, each in zip(names, (first, second), strict=True)]


def wave_and_line_samples(rng: np.random.Generator) -> tuple[Sample, Sample]:
    """Return a cosine with 200 rows and a line with 100."""
    first, x = homoscedastic(rng, 200), rng.uniform(0, 2 * np.pi, 100)
    return first, {"x": x, "y": rng.normal(x - 5, 0.5)}


def figure_12(setting: Setting) -> None:
    """Print MCMD of a cosine and a line for three kernels, each on inputs and on targets (Figure 12b)."""
    published = {"rbf": 0.434, "laplace": 0.344, "polynomial": 0.389}
    found: dict[str, list[float]] = {kernel: [] for kernel in published}
    for seed in range(setting.sets):
        first, files = wave_and_line(setting, seed)
        for kernel, values in found.items():
            gammas = (0.02, 0.02) if kernel == "polynomial" else (2, 1 / (2 * first["y"].var()))
            kernels = ("--kernel-x", kernel, "--gamma-x", gammas[0], "--kernel-y", kernel, "--gamma-y", gammas[1])
            options = ("--inputs", "x", "--grid", 100, "--normalize", "none", "--permutations", 19)
            values.append(value("mcmd", *files, *options, *kernels))
    lines = [Line(kernel, published[kernel], values, digits=3) for kernel, values in found.items()]
    lines += [Line(f"{kernel}, by hand", None, values, BY_HAND[kernel]) for kernel, values in found.items()]
    show("Figure 12b", "calcheck mcmd A B --inputs x --grid 100 --kernel-x KERNEL --kernel-y KERNEL", lines)


def varied(setting: Setting, title: str, setting_name: str, expected: dict[str, float], *options: object) -> None:
    """Print MCMD of a cosine and a line, for several values of a setting."""
    vary = f"{setting_name}={','.join(expected)}"
    arguments = ("--metric", "mcmd", "--inputs", "x", "--grid", 100, *options, "--vary", vary)
    found: dict[str, list[float]] = {each: [] for each in expected}
    for seed in range(setting.sets):
        _, files = wave_and_line(setting, seed)
        for result in calcheck("sweep", *files, *arguments)["results"]:
            if setting_name in result["slice"]:
                found[result["slice"][setting_name]].append(result["value"])
    lines = [Line(f"{setting_name} {each}", None, values, expected[each]) for each, values in found.items()]
    show(title, f"calcheck sweep A B {' '.join(map(str, arguments))}", lines)


def figure_lambda(setting: Setting) -> None:
    """Print MCMD for several regularizers."""
    varied(setting, "The effect of lambda", "lambda", LAMBDAS, "--gamma-x", 0.5)


def figure_gamma(setting: Setting) -> None:
    """Print MCMD for several scales of the kernels on inputs and targets, the same for both."""
    varied(setting, "The effect of gamma", "gamma-x+gamma-y", GAMMAS)


def boundaries(setting: Setting) -> None:
    """Print CCE within the inputs, and up to half a period below and above them."""
    gammas = (0.1, 0.5, 1, 2)
    ends = {"below": (-np.pi, 0), "within": (0, 2 * np.pi), "above": (2 * np.pi, 3 * np.pi)}
    options = ("--inputs", "x", "--draws", 3, "--no-null")
    rows: dict[str, list[list[float]]] = {name: [[] for _ in gammas] for name in ends}
    for seed in range(setting.sets):
        path = sine_files(setting, 200, seed)["gaussian"]
        for name, (low, high) in ends.items():
            at = write(setting.folder / "at.parquet", x=np.linspace(low, high, 50))
            for values, gamma in zip(rows[name], gammas, strict=True):
                values.append(value("cce", path, *options, "--gamma-x", gamma, "--at", at, "--seed", seed))
    heads = [f"gamma-x {gamma}" for gamma in gammas]
    show_values("CCE at the boundaries", f"calcheck cce FILE {' '.join(map(str, options))} --at POINTS", heads, rows)


def residuals(setting: Setting) -> None:
    """Print the correlation of CCE with the absolute error: of a right model, and of one that misses part of a wave."""
    options = ("--inputs", "x", "--gamma-x", 0.5, "--draws", 5, "--no-null")
    rows: dict[str, list[list[float]]] = {"discrete wave": [[]], "misfit": [[]]}
    for seed in range(setting.sets):
        wrong = write(setting.folder / "misfit.parquet", **misfit.predictions(misfit.ROWS, seed))
        for name, path in zip(rows, (sine_files(setting, 200, seed)["gaussian"], wrong), strict=True):
            out = setting.folder / "rows.parquet"
            calcheck("cce", path, *options, "--seed", seed, "--pointwise", out)
            table = columns_of(sine_counts.pq.read_table(out))
            found = np.corrcoef(table["cce"], np.abs(np.subtract(table["y"], table["mean"])))[0, 1]
            rows[name][0].append(float(found))
    command = f"calcheck cce FILE {' '.join(map(str, options))} --pointwise OUT"
    show_values("Correlation of CCE with the absolute error", command, ["r"], rows)


def variance(setting: Setting) -> None:
    """Print the deviation of CCE over ten trials of draws, and over ten data sets of 100 and of 1,000 rows."""
    options = ("--inputs", "x", "--gamma-x", 0.5, "--draws", 5, "--no-null")
    rows: dict[str, list[list[float]]] = {name: [[], [], []] for name in sine_counts.OPTIONS}
    for name, path in sine_files(setting, 100, 0).items():
        trials = calcheck("cce", path, *options, *sine_counts.OPTIONS[name], "--trials", 10)["results"][0]
        rows[name][0] = trials["details"]["trials"]["values"]
    for place, size in enumerate((100, 1000), start=1):
        for seed in range(10):
            for name, path in sine_files(setting, size, seed).items():
                rows[name][place].append(value("cce", path, *options, *sine_counts.OPTIONS[name], "--seed", seed))
    heads = ["ten trials", "ten sets of 100", "ten sets of 1,000"]
    show_values("Variance of CCE", f"calcheck cce FILE {' '.join(map(str, options))} --trials 10", heads, rows)


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


def figure_3(setting: Setting) -> None:
    """Print how metrics of text predictions grow with the strength of a disturbance: means shifted by deviations."""
    if not (path := setting.file("test.parquet")):
        return
    strengths = (0, 0.25, 0.5, 1)
    table = sine_counts.pq.read_table(path)
    columns = {name: table[name] for name in ("id", "y", "std", "embedding")}
    files = []
    for strength in strengths:
        mean = np.asarray(table["mean"]) + strength * np.asarray(table["std"])
        files.append(write(setting.folder / f"shifted{strength}.parquet", **columns, mean=mean))
    options = ("--metrics", "cce,ece,nll", "--positions", ",".join(map(str, strengths)), "--no-null", "--no-bootstrap")
    rows: dict[str, list[list[float]]] = {}
    for result in calcheck("compare", *files, *options)["results"]:
        rows.setdefault(result["metric"], []).append([result["value"]])
    show_values("Figure 3, text", f"calcheck compare FILES {' '.join(options)}", strengths, rows)


def figure_4(setting: Setting) -> None:
    """Print the texts with the smallest and the largest CCE, and their errors."""
    if not (path := setting.file("test.parquet")):
        return
    out = setting.folder / "rows.parquet"
    calcheck("cce", path, "--no-null", "--pointwise", out)
    rows = sine_counts.pq.read_table(out).sort_by("cce")
    print("\nFigure 4, text\n$ calcheck cce FILE --pointwise OUT")
    print(f"{'':<8} {'id':>10} {'cce':>8} {'error':>8} {'std':>8}")
    for name, part in (("smallest", rows.slice(0, 5)), ("largest", rows.slice(rows.num_rows - 5))):
        for row in part.select(["id", "cce", "y", "mean", "std"]).to_pylist():
            error = abs(row["y"] - row["mean"])
            print(f"{name:<8} {row['id']!s:>10} {row['cce']:>8.4f} {error:>8.4f} {row['std']:>8.4f}")


def losses(setting: Setting) -> None:
    """Print quantiles of CCE and NLL over the inputs of text predictions, and their rank correlation."""
    if not (path := setting.file("test.parquet")):
        return
    out = setting.folder / "rows.parquet"
    options = ("--metrics", "cce,nll", "--no-null", "--no-bootstrap", "--pointwise")
    calcheck("evaluate", path, *options, out)
    rows = sine_counts.pq.read_table(out)
    values = {name: rows[name].to_numpy() for name in ("cce", "nll")}
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    cells = {name: [[float(each)] for each in np.quantile(column, levels)] for name, column in values.items()}
    show_values("CCE and NLL, text", f"calcheck evaluate FILE {' '.join(options)} OUT", levels, cells)
    print(f"rank correlation {spearmanr(*values.values()).statistic:.2f}")


FIGURES = {
    "1": figure_1,
    "2": figure_2,
    "3": figure_3,
    "4": figure_4,
    "6": figure_6,
    "7": figure_7,
    "8": figure_8,
    "9": figure_9,
    "12": figure_12,
    "13": figure_13,
    "lambda": figure_lambda,
    "gamma": figure_gamma,
    "boundaries": boundaries,
    "residuals": residuals,
    "variance": variance,
    "losses": losses,
}

if __name__ == "__main__":
    main(__doc__, FIGURES)
