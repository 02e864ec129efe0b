"""Recalibration: what is gained by the method that is chosen, levels of p-values, coverage, and other libraries.

    python -m tests.benchmarks.recalibration choice --sets 150 --rows 100 300 1000
    python -m tests.benchmarks.recalibration choice --by std
    python -m tests.benchmarks.recalibration places --sets 50 --rows 2000
    python -m tests.benchmarks.recalibration level --sets 1000 --rows 100 1000
    python -m tests.benchmarks.recalibration coverage --sets 2000
    python -m tests.benchmarks.recalibration peers

``choice`` fits every method to rows of normal forecasts that are right, or wrong in a known way, and prints the change
of the CRPS of 3,000 fresh rows in percent, then the same of the method that ``auto`` chooses and of other rules, with
the share of data sets in which the forecasts are left as they are, and the share of the excess over the CRPS of the
truth that is lost. ``places`` runs the whole study, with its search for regions, on files with three columns: right
ones, and some whose std should be twice as large where one of them exceeds 30; it prints the share of 20,000 fresh
targets that 90 % intervals hold in both parts, the change of the CRPS, and how often forecasts are left as they are.
``level`` draws data sets from models that are right, and prints how often the p-value of each method is at most 0.05,
with the change of the CRPS that it brings out of fold. ``coverage`` draws rows and one new row, and prints how often
its target is at most the corrected quantile at k / (n + 1), or in the interval. ``peers`` compares the numbers and
times of other libraries on the same rows.
"""

import argparse
import math
from collections import Counter
from functools import partial
from itertools import product

import numpy as np
from scipy import stats

from calcheck.distributions import Gaussian, Intervals, Quantiles, Samples
from calcheck.distributions.continuous import StudentT
from calcheck.distributions.count_families import Poisson
from calcheck.execution.run import Run
from calcheck.predictions import InMemory, Predictions
from calcheck.recalibration.cross_validation import cross_validate
from calcheck.recalibration.features import usable_columns
from calcheck.recalibration.methods import FitOptions, apply_steps, candidates, fit_conformal, fit_pit
from calcheck.studies.recalibrate.options import RecalibrationOptions
from calcheck.studies.recalibrate.study import _Study

FRESH, HELD = 3000, 20_000
HOT, FACTORS = 30.0, (1.0, 2.0)
LEVEL = 0.05
NINE = np.arange(1, 10) / 10
ERROR = 0.001


def forecasts(rng, n):
    """Return an input, and normal forecasts that do not depend on it."""
    x, other = rng.normal(size=(2, n))
    return x, Gaussian(other, np.exp(0.4 * np.sin(2 * other)))


TRUTHS = {
    "right": lambda _, f: f,
    "std x 1.4": lambda _, f: Gaussian(f.loc, 1.4 * f.scale),
    "mean + 0.3 std": lambda _, f: Gaussian(f.loc + 0.3 * f.scale, f.scale),
    "t4": lambda x, f: StudentT(loc=f.loc, scale=f.scale / math.sqrt(2), df=np.full(len(x), 4.0)),
    "std by input": lambda x, f: Gaussian(f.loc, f.scale * np.exp(0.3 * x - 0.09)),
}
"""The distribution of targets, by inputs and forecasts; the mean squared z-score of the last two is 1."""


def rows_of(name, rng, n):
    """Return forecasts with targets, and the truth."""
    x, forecast = forecasts(rng, n)
    truth = TRUTHS[name](x, forecast)
    return Predictions(y=truth.sample(rng, 1)[:, 0], predictive=forecast, columns={"x": x}), truth


def smallest(found):
    """Return the candidate with the smallest mean score."""
    return min(found, key=lambda each: each.mean)


def within_errors(errors, validation, found):
    """Return the first candidate that is not worse than the smallest by more than some standard errors."""
    best = smallest(found)
    pairs = ((each, validation.compare(each.scores, best.scores)) for each in found if each.scores is not None)
    return next(each for each, paired in pairs if each is best or paired.value <= errors * paired.error)


RULES = {
    "auto": lambda validation, found: validation.choose(found),
    "smallest": lambda _, found: smallest(found),
    "1 error": lambda validation, found: within_errors(1.0, validation, found),
    "1/2 error": lambda validation, found: within_errors(0.5, validation, found),
}


def chosen(name, n, by, seed):
    """Return the CRPS of fresh rows: of the truth, after each method, and after the one that each rule chooses."""
    rng = np.random.default_rng([seed, n])
    rows, _ = rows_of(name, rng, n)
    fresh, truth = rows_of(name, rng, FRESH)
    options = FitOptions(by=by) if by else FitOptions(by=usable_columns(rows, list(rows.columns)), selects=True)
    validation, found = cross_validate(rows, candidates(rows.predictive), options)
    means = {
        each.method.name: apply_steps(each.method.fit(rows, options), fresh).predictive.crps(fresh.y).mean()
        for each in found
    }
    names = {rule: choose(validation, found).method.name for rule, choose in RULES.items()}
    return truth.crps(fresh.y).mean(), means, names


def print_choice(name, n, by, sets):
    """Print changes of the CRPS in percent, and how often nothing is changed."""
    found = [chosen(name, n, by, seed) for seed in range(sets)]
    perfect, before = np.array([[truth, means["none"]] for truth, means, _ in found]).T
    cells = []
    for method in found[0][1]:
        after = np.array([means[method] for _, means, _ in found])
        cells.append(f"{method} {100 * np.mean(after / before - 1):+.2f}")
    for rule in RULES:
        after = np.array([means[names[rule]] for _, means, names in found])
        kept = np.mean([names[rule] == "none" for *_, names in found])
        lost = "" if name == "right" else f", excess lost {np.sum(before - after) / np.sum(before - perfect):.0%}"
        cells.append(f"{rule}: {100 * np.mean(after / before - 1):+.2f}, kept {kept:.0%}{lost}")
    print(f"| {n:,} {name} | {' | '.join(cells)} |", flush=True)


def heat(rng, n, factor):
    """Return normal forecasts with three columns; their std should be larger by a factor where temp exceeds 30."""
    temp, hum, site = rng.uniform(0, 40, n), rng.uniform(0, 1, n), rng.choice(list("abcd"), n)
    forecast = Gaussian(temp / 10 + rng.normal(size=n), np.exp(0.4 * rng.normal(size=n)))
    y = forecast.loc + forecast.scale * rng.normal(size=n) * np.where(temp > HOT, factor, 1.0)
    return Predictions(y=y, predictive=forecast, columns={"temp": temp, "hum": hum, "site": site})


def mended(factor, n, seed):
    """Return the coverage of fresh rows in both parts, the relative change of their CRPS, and the method."""
    rng = np.random.default_rng([seed, n])
    study = _Study(InMemory(heat(rng, n, factor)), RecalibrationOptions(), Run(seed=seed))
    fresh = heat(rng, HELD, factor)
    after, is_hot = study.fitted.apply(fresh).predictive, fresh.columns["temp"] > HOT
    low, high = after.central_interval(0.9)
    held = (low <= fresh.y) & (fresh.y <= high)
    change = after.crps(fresh.y).mean() / fresh.predictive.crps(fresh.y).mean() - 1
    return held[is_hot].mean(), held[~is_hot].mean(), change, study.chosen.method.name


def print_places(factor, n, sets):
    """Print means over data sets, with their standard errors."""
    found = [mended(factor, n, seed) for seed in range(sets)]
    numbers = 100 * np.array([each[:3] for each in found])
    errors = numbers.std(axis=0, ddof=1) / math.sqrt(sets)
    cells = [f"{mean:.2f} ± {error:.2f} %" for mean, error in zip(numbers.mean(axis=0), errors, strict=True)]
    names = Counter(name for *_, name in found).most_common()
    print(f"| {n:,}, x {factor:g} | {' | '.join(cells)} | {dict(names)} |", flush=True)


def gaussian(rng, n):
    _, forecast = forecasts(rng, n)
    return Predictions(y=forecast.sample(rng, 1)[:, 0], predictive=forecast)


def counts(rng, n):
    forecast = Poisson(4 * np.exp(rng.normal(size=n) / 2))
    return Predictions(y=forecast.sample(rng, 1)[:, 0], predictive=forecast)


def ensemble(rng, n):
    _, forecast = forecasts(rng, n)
    return Predictions(y=forecast.sample(rng, 1)[:, 0], predictive=Samples(forecast.sample(rng, 11)))


def quantiles(rng, n):
    rows = gaussian(rng, n)
    values = np.stack([rows.predictive.quantile(level) for level in NINE], axis=1)
    return Predictions(y=rows.y, predictive=Quantiles(NINE, values))


def interval(rng, n):
    rows = gaussian(rng, n)
    lower, upper = (limit[:, None] for limit in rows.predictive.central_interval(0.9))
    return Predictions(y=rows.y, predictive=Intervals(np.array([0.9]), lower, upper))


RIGHT = {"gaussian": gaussian, "counts": counts, "11 draws": ensemble, "9 quantiles": quantiles, "interval": interval}


def p_values(maker, n, seed):
    """Return the p-value of each method that something is gained, and the relative change of the score."""
    rows = maker(np.random.default_rng([seed, n]), n)
    options = FitOptions()
    validation, (none, *others) = cross_validate(rows, candidates(rows.predictive), options)
    compared = {each.method.name: validation.compare(each.scores, none.scores) for each in others}
    return {name: (paired.p_below, paired.value / none.mean) for name, paired in compared.items()}


def limits(number, share):
    """Return the limits of a share that is observed in a number of sets, with the probability 1 - ERROR."""
    return stats.binom.ppf([ERROR / 2, 1 - ERROR / 2], number, share) / number


def print_level(name, n, sets):
    """Print how often each method seems to help where nothing is wrong."""
    found = [p_values(RIGHT[name], n, seed) for seed in range(sets)]
    for method in found[0]:
        tested, changes = np.array([each[method] for each in found]).T
        print(
            f"| {n:,} {name} | {method} | {np.mean(tested <= LEVEL):.3f} | {100 * changes.mean():+.3f} % |",
            flush=True,
        )


def skewed_rows(rng, n):
    """Return normal forecasts that are too narrow, at the wrong place and of the wrong shape."""
    _, forecast = forecasts(rng, n)
    return Predictions(y=forecast.loc + forecast.scale * (rng.gamma(2, size=n) - 1.5), predictive=forecast)


def below_recalibrated(rows, level):
    """Return whether the target of the last row is at most its quantile, recalibrated by the other rows."""
    fitted, new = split(rows)
    corrected = fit_pit(fitted, FitOptions()).apply(new)
    return corrected.y[0] <= corrected.predictive.quantile(level)[0]


def below_quantile(rows, level):
    """Return the same for a conformal quantile; rows have equal widths, so that quantiles do not cross."""
    levels = np.array([level / 2, level])
    values = rows.predictive.loc[:, None] + stats.norm.ppf(levels)
    fitted, new = split(Predictions(y=rows.y, predictive=Quantiles(levels, values)))
    corrected = fit_conformal(fitted, FitOptions()).apply(new)
    return corrected.y[0] <= corrected.predictive.values[0, 1]


def inside_interval(rows, level, *, relative=False):
    """Return whether the target of the last row is in its conformal interval (CQR)."""
    lower, upper = (limit[:, None] for limit in rows.predictive.central_interval(level))
    fitted, new = split(Predictions(y=rows.y, predictive=Intervals(np.array([level]), lower, upper)))
    return is_inside(fit_conformal(fitted, FitOptions(relative=relative)).apply(new))


def inside_scaled(rows, level):
    """Return the same for the interval of normalized split conformal prediction."""
    fitted, new = split(rows)
    return is_inside(fit_conformal(fitted, FitOptions(levels=(level,))).apply(new))


def split(rows):
    """Return all rows but the last, and the last."""
    last = len(rows) - 1
    return rows.take(np.arange(last)), rows.take(np.array([last]))


def is_inside(rows):
    """Return whether the target of the only row is in the only interval."""
    return rows.predictive.lower[0, 0] <= rows.y[0] <= rows.predictive.upper[0, 0]


CORRECTED = {
    "pit, quantile": below_recalibrated,
    "conformal, quantile": below_quantile,
    "conformal, interval": inside_interval,
    "conformal, interval by width": partial(inside_interval, relative=True),
    "conformal, std": inside_scaled,
}


def covered(name, k, n, sets):
    """Return in how many sets the target of a new row is covered at the level k / (n + 1)."""
    rows = (skewed_rows(np.random.default_rng([seed, n, k]), n + 1) for seed in range(sets))
    return sum(bool(CORRECTED[name](each, k / (n + 1))) for each in rows)


def print_coverage(name, k, n, sets):
    """Print the share of covered targets, and the limits of the binomial distribution."""
    low, high = limits(sets, k / (n + 1))
    share = covered(name, k, n, sets) / sets
    print(f"| {name} | {n} | {k / (n + 1):.2f} | {share:.4f} | {low:.4f} to {high:.4f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["choice", "places", "level", "coverage", "peers"])
    parser.add_argument("--sets", type=int, default=150)
    parser.add_argument("--rows", type=int, nargs="*")
    parser.add_argument("--by", nargs="*", default=[], help="of choice: what bias and local depend on")
    parser.add_argument("--only", nargs="*", help="names of truths, families or corrections")
    given = parser.parse_args()
    if given.what == "peers":
        from tests.benchmarks.recalibration_peers import print_peers

        print_peers()
    elif given.what == "coverage":
        for n, name in product(given.rows or [19, 99], given.only or CORRECTED):
            for k in sorted({1, (n + 1) // 2, n}):
                print_coverage(name, k, n, given.sets)
    elif given.what == "choice":
        for n, name in product(given.rows or [100, 300, 1000], given.only or TRUTHS):
            print_choice(name, n, tuple(given.by), given.sets)
    elif given.what == "places":
        print("| rows, factor | held above | held below | change of the CRPS | methods |")
        for n, factor in product(given.rows or [2000], FACTORS):
            print_places(factor, n, given.sets)
    else:
        print(f"limits: {limits(given.sets, LEVEL)}")
        for n, name in product(given.rows or [100, 1000], given.only or RIGHT):
            print_level(name, n, given.sets)


if __name__ == "__main__":
    main()
