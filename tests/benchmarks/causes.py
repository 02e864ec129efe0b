"""How often the cause of a fault is named first, and how often one is named where there is none.

    python -m tests.benchmarks.causes --sets 50 --workers 2
    python -m tests.benchmarks.causes --kinds members --causes stuck-member right --rows 100 300 --sets 200

Plants each cause into 300 rows of each kind for which it has a meaning, evaluates them as ``calcheck evaluate`` does,
and prints a table: in how many sets the answer is NO, in how many the planted cause is named first, in how many it is
named at all, the others that are named first, and the median share of the fault that the first one explains. Of right
models, of those whose std is off by a plain factor, and of biased ones, it counts sets in which any cause is named.
Noise that is left out and an uneven std count as one where both are named, since few rows cannot tell them apart.
``--direct`` looks for causes whatever the answer is, which is faster and stricter; it knows no regions. All rows
have two columns of groups.
"""

import argparse
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from scipy.stats import norm

from calcheck.causes.candidates import Case
from calcheck.causes.search import find_causes
from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.count_families import NegativeBinomial, Poisson
from calcheck.evaluation import Answer, evaluate
from calcheck.execution.run import Run
from calcheck.predictions import InMemory, Predictions

ROWS, MEMBERS, REPLICATES = 300, 20, 199
GROUPS = {"kind": 5, "part": 2}  # Numbers of groups, by column
REGION, GROUP = 2.5, 3  # Factors of the errors of a fourth of the inputs, and of one of five groups
UNEVEN = 0.7  # Standard deviation of errors of the logarithm of the std: off by a factor of 2
ALIKE = (
    {"noise-left-out", "uneven-std", "variance-as-std"},
    {"heavy-tails", "constant-std"},
    {"one-region", "one-input", "constant-std"},
)  # Causes that few rows cannot tell apart, which count as one where they are told together
NINE = np.arange(1, 10) / 10
NONE = ("right", "factor 1.3", "factor 0.8", "bias")
READINGS = {
    "variance-as-std": lambda std: std**2,
    "inverse-as-std": lambda std: 1 / std,
    "precision-as-std": lambda std: std**-2,
    "log-as-std": np.log,
    "log-variance-as-std": lambda std: 2 * np.log(std),
    "half-width-as-std 1.645": lambda std: 1.645 * std,
    "half-width-as-std 1.96": lambda std: 1.96 * std,
    "half-width-as-std 2": lambda std: 2 * std,
    "std-in-other-unit 100": lambda std: 100 * std,
    "std-in-other-unit 0.001": lambda std: std / 1000,
}  # What a file has instead of the std
SCALES = {
    "log-target": np.log,
    "log1p-target": np.log1p,
    "log-prediction": np.exp,
    "log1p-prediction": np.expm1,
    "standardized-target": lambda y: (y - y.mean()) / y.std(),
    "other-unit 1000": lambda y: 1000 * y,
    "other-unit 0.1": lambda y: y / 10,
    "other-unit 60": lambda y: 60 * y,
    "other-unit °F": lambda y: 1.8 * y + 32,
    "other-unit °C": lambda y: (y - 32) / 1.8,
    "other-unit K": lambda y: y + 273.15,
    "shifted-rows 1": lambda y: np.roll(y, 1),
    "shifted-rows -1": lambda y: np.roll(y, -1),
    "reversed-rows": lambda y: y[::-1].copy(),
    "clipped-targets": lambda y: np.minimum(y, np.quantile(y, 0.7)),
}  # What it has instead of the targets
SMALL = {"log-prediction", "log1p-prediction", "log1p-target"}  # Targets are a fourth of those of others
OTHERS = (
    "standardized-prediction",
    "shuffled-rows",
    "noise-left-out",
    "training-rows",
    "heavy-tails",
    "constant-std",
    "constant-std hidden",
    "one-input",
    "one-region",
    "one-group",
    "training-rows by group",
    "uneven-std",
)
CAUSES = {
    "gaussian": (*READINGS, *SCALES, *OTHERS, *NONE),
    "members": (*SCALES, *OTHERS, "spread-of-mean", "stuck-member", *NONE),
    "quantiles": (*SCALES, *OTHERS, *NONE),
    "counts": ("other-unit 60", "shifted-rows 1", "reversed-rows", "shuffled-rows", "clipped-targets", "right"),
}


def planted(kind, cause, rng, n=ROWS):
    """Return rows with a cause."""
    if kind == "counts":
        return counts(cause, rng, n)
    x, mean, std = stated(cause, rng, n)
    own = rng.spawn(1)[0]
    groups = {name: own.integers(0, count, n).astype(str) for name, count in GROUPS.items()}
    y = mean + in_group(cause, groups) * true_std(cause, x, std, rng) * errors(cause, rng, n)
    if cause == "standardized-prediction":
        middle, width = y.mean() + 0.1, 1.03 * y.std()
        mean, std = (mean - middle) / width, std / width
    y = y + 0.5 * std if cause == "bias" else y
    y = changed(cause, y, rng)
    std = READINGS.get(cause, lambda std: std)(std)
    std = std * np.exp(UNEVEN * rng.normal(size=n)) if cause == "uneven-std" else std
    factor = float(cause.split()[1]) if cause.startswith("factor") else 1.0
    predictive = distributions(kind, cause, mean, factor * std, rng)
    with_inputs = cause in {"constant-std", "one-input", "one-region"}
    return Predictions(y=y, predictive=predictive, x=x if with_inputs else None, has_embedding=False, columns=groups)


def stated(cause, rng, n):
    """Return inputs, and means and standard deviations of right predictions."""
    x = rng.uniform(-1, 1, (n, 2))
    mean, std = 6 + 1.5 * x[:, 0] + 0.7 * rng.normal(size=n), 0.6 * np.exp(0.5 * rng.normal(size=n))
    if cause in {"log-as-std", "log-variance-as-std"}:
        return x, 5 * mean, np.exp(rng.uniform(0.1, 2, n))
    if cause in SMALL:
        return x, mean / 4, std / 4
    return x, mean, np.full(n, 0.6) if cause.startswith("constant-std") else std


def true_std(cause, x, std, rng):
    """Return the standard deviations of the errors."""
    if cause in {"constant-std", "one-input"}:
        return std * np.exp(0.8 * x[:, 0])
    if cause == "constant-std hidden":
        return std * np.exp(UNEVEN * rng.normal(size=len(x)) - UNEVEN**2)  # whose mean square is that of the stated
    if cause == "one-region":
        return np.where(x[:, 0] > 0.5, REGION, 1) * std
    return np.hypot(std, 0.8) if cause == "noise-left-out" else std


def in_group(cause, groups):
    """Return the factors of the errors of one of five groups, and of one of two that was trained on."""
    name, factor = {"one-group": ("kind", GROUP), "training-rows by group": ("part", 0.05)}.get(cause, ("kind", 1))
    return np.where(groups[name] == "0", factor, 1)


def errors(cause, rng, n):
    """Return the errors in standard deviations."""
    if cause == "heavy-tails":
        return rng.standard_t(3, n) / np.sqrt(3)
    return rng.normal(size=n) * (np.where(rng.random(n) < 0.5, 0.05, 1) if cause == "training-rows" else 1)


def changed(cause, y, rng):
    """Return the targets of the file."""
    if cause == "shuffled-rows":
        return rng.permutation(y)
    return SCALES.get(cause, lambda y: y)(np.maximum(y, 0.05) if cause == "log-target" else y)


def distributions(kind, cause, mean, std, rng):
    if kind == "gaussian":
        return Gaussian(mean, std)
    if kind == "quantiles":
        return Quantiles(NINE, mean[:, None] + std[:, None] * norm.ppf(NINE))
    std = std / np.sqrt(MEMBERS) if cause == "spread-of-mean" else std
    draws = mean[:, None] + std[:, None] * rng.normal(size=(len(mean), MEMBERS))
    if cause == "stuck-member":
        draws[:, 7] = 0
    return Samples(draws)


def counts(cause, rng, n):
    rate = 4 * np.exp(0.6 * rng.normal(size=n))
    is_poisson = rng.random() < 0.5
    y = rng.poisson(rate) if is_poisson else rng.negative_binomial(3, 3 / (3 + rate))
    y = np.minimum(y, 5) if cause == "clipped-targets" else y
    y = changed(cause, y, rng) if cause != "clipped-targets" else y
    predictive = Poisson(rate) if is_poisson else NegativeBinomial(mu=rate, size=np.full(n, 3.0))
    return Predictions(y=y.astype(float), predictive=predictive)


class Grouped(InMemory):
    """Rows whose columns form groups."""

    def free_columns(self):
        return self.rows.columns


def told(rows, seed=0):
    """Return the answer and its causes."""
    run = Run(seed=seed, resamples=0, replicates=REPLICATES)
    found = evaluate(Grouped(rows), [], run=run, answer=Answer(), places=lambda *_: None).conclusion
    return found.answer, [(each.cause, each.explained) for each in found.causes]


def looked_for(kind, rows, seed):
    """Return the causes whatever the answer is."""
    case = Case(rows, "std" if kind == "gaussian" else "other", columns=rows.columns)
    return "", [(each.candidate.name, each.explained) for each in find_causes(case, seed=seed)]


def one_set(kind, cause, n, direct, seed):
    rng = np.random.default_rng([seed, n, *f"{kind}{cause}".encode()])
    rows = planted(kind, cause, rng, n)
    return looked_for(kind, rows, seed) if direct else told(rows, seed)


def first_of(name, causes):
    """Return the first cause; the planted one if it is told together with one that cannot be told apart from it."""
    return name if any({name, causes[0]} <= each & {*causes} for each in ALIKE) else causes[0]


def line(kind, cause, n, found):
    """Return a line of the table, in Markdown."""
    name, sets = cause.split()[0], len(found)
    firsts = Counter(first_of(name, [each for each, _ in causes]) for _, causes in found if causes)
    is_none = cause in NONE
    first = sum(firsts.values()) if is_none else firsts[name]
    at_all = sum(any(each == name for each, _ in causes) for _, causes in found)
    others = ", ".join(f"{each} {count}" for each, count in firsts.most_common() if is_none or each != name)
    shares = [causes[0][1] for _, causes in found if causes]
    share = f"{np.median(shares):.2f}" if shares else ""
    no = sum(answer == "no" for answer, _ in found) if any(answer for answer, _ in found) else ""
    return f"| {kind} | {cause} | {n} | {no} | {first} | {'' if is_none else at_all} | {sets} | {share} | {others} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="*", default=["gaussian", "members", "quantiles", "counts"], choices=[*CAUSES])
    parser.add_argument("--causes", nargs="*", metavar="CAUSE")
    parser.add_argument("--rows", nargs="*", type=int, default=[ROWS])
    parser.add_argument("--sets", type=int, default=50)
    parser.add_argument("--direct", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the workers
    print("| kind | planted | rows | NO | first | named | sets | explained | others first |")
    print(f"|{' --- |' * 9}")
    with ProcessPoolExecutor(given.workers) as executor:
        for kind in given.kinds:
            for cause in CAUSES[kind]:
                if given.causes and cause not in given.causes:
                    continue
                for n in given.rows:
                    found = executor.map(partial(one_set, kind, cause, n, given.direct), range(given.sets), chunksize=5)
                    print(line(kind, cause, n, list(found)), flush=True)


if __name__ == "__main__":
    main()
