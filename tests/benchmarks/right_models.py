"""Right models of many kinds: how often they are told to be wrong.

    python -m tests.benchmarks.right_models --sets 400
    python -m tests.benchmarks.right_models --designs "poisson, 9 quantiles, n 400" --sets 2000 --first 400

Prints for each design the share of sets in which the answer is no, in which all metrics together fail, and in which
each metric fails at 5 %; the largest of these, and the share of sets of which nothing is stated because rows depend on
each other and no option says so. A share above 7.5 % is marked; it is run again with 2,000 fresh sets and stands by
that. ``pairs`` prints the share of pairs of models in which the difference of each metric has a p-value of at most
5 %. ``observed`` prints the table of targets that are measured with noise, clipped, or rounded, and ``--unstated``
leaves out the options that say so. ``outputs`` prints what is told of two outputs of which one has a wrong std, or
which are correlated without a word. ``power`` prints how often faults of such models are found (all metrics together at
5 %): standard deviations 25 % too small, and targets .3 standard deviations above. Beside it stands how often they are
found in targets as they are, among fewer rows: as many as have the same Kullback-Leibler divergence of normal models.
Of quantiles and intervals it is that of the shares of targets between them, which is all that they state.
"""

import argparse
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product

import numpy as np
from scipy.stats import norm

import calcheck
from calcheck.distributions import Gaussian, Independent, Intervals, Quantiles, Samples
from calcheck.distributions.continuous import StudentT
from calcheck.distributions.count_families import NegativeBinomial, Poisson
from calcheck.distributions.noise_clip_rounding import Observation, Observations, round_to
from calcheck.distributions.positive import LogNormal
from calcheck.models.alignment import Model
from calcheck.models.comparison import compare
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics import coverage
from calcheck.statistics.zscores import spreads
from tests.helpers.simulations import autoregressive

LEVEL, MARK = 0.05, 0.075
ROWS, FEWEST = 300, 10  # Of targets that are observed
NINE = np.arange(1, 10) / 10
WIDE = np.array([0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95])


def locations(rng, n):
    """Return means and spreads that vary over the rows."""
    return rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))


def normal(rng, n, factor):
    mean, std = locations(rng, n)
    return Predictions(y=mean + std * rng.normal(size=n), predictive=Gaussian(mean, factor * std))


def equal_std(rng, n, factor):
    mean, _ = locations(rng, n)
    return Predictions(y=mean + rng.normal(size=n), predictive=Gaussian(mean, np.full(n, factor)))


def student_t(rng, n, factor):
    mean, std = locations(rng, n)
    predictive = StudentT(loc=mean, scale=factor * std, df=np.full(n, 4.0))
    return Predictions(y=mean + std * rng.standard_t(4, n), predictive=predictive)


def lognormal(rng, n, factor):
    mean, std = locations(rng, n)
    predictive = LogNormal(mu=mean, sigma=factor * std)
    return Predictions(y=np.exp(mean + std * rng.normal(size=n)), predictive=predictive)


def poisson(rng, n, factor):
    """Counts; a wrong model predicts Poisson where the variance is larger by the square of the factor."""
    rate = 4 * np.exp(0.5 * rng.normal(size=n))
    return Predictions(y=counts(rng, rate, factor), predictive=Poisson(rate))


def nbinom(rng, n, factor):
    rate = 4 * np.exp(0.5 * rng.normal(size=n))
    y = rng.negative_binomial(3, 3 / (3 + rate)).astype(float)
    return Predictions(y=y, predictive=NegativeBinomial(mu=rate, size=np.full(n, 3 / factor**2)))


def counts(rng, rate, factor):
    """Return Poisson counts, or counts whose variance is that of Poisson divided by the factor squared."""
    if factor == 1:
        return rng.poisson(rate).astype(float)
    if factor > 1:
        number = np.ceil(rate / (1 - 1 / factor**2)).astype(int)
        return rng.binomial(number, rate / number).astype(float)
    size = rate / (1 / factor**2 - 1)
    return rng.negative_binomial(size, size / (size + rate)).astype(float)


def members(number, rng, n, factor):
    mean, std = locations(rng, n)
    draws = mean[:, None] + factor * std[:, None] * rng.normal(size=(n, number))
    return Predictions(y=mean + std * rng.normal(size=n), predictive=Samples(draws))


def rain_members(number, rng, n, factor):
    """Draws of rain, which is zero with probability 0.4 on average: in many rows, all draws are zero."""
    dry, scale = rng.beta(0.5, 0.75, n)[:, None], np.exp(0.5 * rng.normal(size=n))[:, None]
    values = np.where(rng.random((n, number + 1)) < dry, 0.0, scale * rng.exponential(size=(n, number + 1)))
    return Predictions(y=values[:, 0], predictive=Samples(factor * values[:, 1:]))


def at_levels(levels, quantile):
    return Quantiles(levels, np.stack([quantile(level) for level in levels], axis=1))


def normal_quantiles(rng, n, factor, *, step=0.0, rounds_quantiles=False, even=False):
    """Quantiles of normal distributions; with a step, targets are rounded, and quantiles, too, if asked for.

    Only with rounded quantiles is the model right. Steps of 0.5, a third of the std, make it wrong by half a percent.
    """
    mean, std = 3 * rng.normal(size=n), np.ones(n) if even else 1.5 * np.exp(0.3 * rng.normal(size=n))
    y = mean + std * rng.normal(size=n)
    found = at_levels(WIDE, Gaussian(mean, factor * std).quantile)
    if step:
        y = np.round(y / step) * step
    if rounds_quantiles:
        found = Quantiles(WIDE, np.round(found.values / step) * step)
    return Predictions(y=y, predictive=found)


def count_quantiles(levels, rng, n, factor, *, typical=4):
    rate = typical * np.exp(0.5 * rng.normal(size=n))
    return Predictions(y=counts(rng, rate, factor), predictive=at_levels(levels, Poisson(rate).quantile))


def rain(rng, n, factor):
    """Quantiles of rain, which is zero with probability 0.4 and exponential otherwise."""
    scale = np.exp(0.5 * rng.normal(size=n))
    y = np.where(rng.random(n) < 0.4, 0.0, rng.exponential(scale))
    wet = np.clip((WIDE - 0.4) / 0.6, 0, None)
    return Predictions(y=y, predictive=Quantiles(WIDE, -factor * scale[:, None] * np.log1p(-wet)))


def count_intervals(levels, rng, n, factor):
    rate = 4 * np.exp(0.5 * rng.normal(size=n))
    sides = [np.stack([Poisson(rate).quantile((1 + sign * level) / 2) for level in levels], 1) for sign in (-1, 1)]
    return Predictions(y=counts(rng, rate, factor), predictive=Intervals(np.array(levels), *sides))


def normal_intervals(levels, rng, n, factor):
    mean, std = locations(rng, n)
    sides = [np.stack([Gaussian(mean, factor * std).quantile((1 + sign * level) / 2) for level in levels], 1)
             for sign in (-1, 1)]  # fmt: skip
    return Predictions(y=mean + std * rng.normal(size=n), predictive=Intervals(np.array(levels), *sides))


def clusters(correlation, rng, n, factor, *, size=10, own_std=True):
    """Clusters of rows with one std a cluster, and an intra-class correlation of their errors."""
    label = np.arange(n) // size
    std = np.exp(0.5 * rng.normal(size=n // size))[label] if own_std else np.exp(0.3 * rng.normal(size=n))
    shared = rng.normal(size=n // size)[label]
    error = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.normal(size=n)
    mean = rng.normal(size=n)
    texts = np.array([f"c{each}" for each in label], dtype=object)
    return Predictions(y=mean + std * error, predictive=Gaussian(mean, factor * std), columns={"patient": texts})


def series(correlation, rng, n, factor):
    """A series of rows with an integer time."""
    mean, std = locations(rng, n)
    y = mean + std * autoregressive(rng, n, correlation)
    return Predictions(y=y, predictive=Gaussian(mean, factor * std), columns={"hour": np.arange(n)})


def two_outputs(correlation, rng, n, factor):
    mean, std = rng.normal(size=(n, 2)), np.exp(0.3 * rng.normal(size=(n, 2)))
    error = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], n)
    marginals = tuple(Gaussian(*each) for each in zip(mean.T, factor * std.T, strict=True))
    return Predictions(y=mean + std * error, predictive=Independent(marginals))


def with_inputs(rng, n, factor):
    x = rng.normal(size=(n, 2))
    std = np.exp(0.3 * x[:, 1])
    y = x[:, 0] + std * rng.normal(size=n)
    return Predictions(y=y, predictive=Gaussian(x[:, 0], factor * std), x=x, has_embedding=False)


@dataclass(frozen=True)
class Design:
    """Right predictions of n rows, with the options that fit; ``unstated`` dependence has none."""

    make: object
    n: int
    options: dict = field(default_factory=dict)
    unstated: bool = False


BY_PATIENT, BY_HOUR = {"cluster": "patient"}, {"time": "hour"}
DISTRIBUTIONS = {
    "normal": normal,
    "normal, equal std": equal_std,
    "t4": student_t,
    "lognormal": lognormal,
    "poisson": poisson,
    "negative binomial": nbinom,
    "11 members": partial(members, 11),
    "5 members": partial(members, 5),
    "rain, 11 members": partial(rain_members, 11),
    "two outputs": partial(two_outputs, 0.0),
}
QUANTILES = {
    "normal, 9 quantiles": normal_quantiles,
    "normal rounded, 9 quantiles": partial(normal_quantiles, step=0.5),
    "normal and quantiles rounded": partial(normal_quantiles, step=1.0, rounds_quantiles=True),
    "equal std and quantiles rounded": partial(normal_quantiles, step=1.0, rounds_quantiles=True, even=True),
    "poisson, 9 quantiles": partial(count_quantiles, NINE),
    "rare poisson, 9 wide quantiles": partial(count_quantiles, WIDE, typical=0.4),
    "poisson, 9 wide quantiles": partial(count_quantiles, WIDE),
    "rain, 9 quantiles": rain,
    "normal intervals": partial(normal_intervals, (0.9,)),
    "poisson intervals": partial(count_intervals, (0.9,)),
    "poisson, 3 intervals": partial(count_intervals, (0.5, 0.8, 0.95)),
}
KINDS = {
    **{each: DISTRIBUTIONS[each] for each in ("normal", "t4", "lognormal", "poisson")},
    **{f"{number} members": partial(members, number) for number in (20, 100)},
    "normal, 9 quantiles": normal_quantiles,
    "normal intervals": partial(normal_intervals, (0.9,)),
}
STATED = ("normal, 9 quantiles", "normal intervals")
LEVELS = (0.9,)  # Of the intervals
OBSERVED = {
    "noise": {"noise": 1.0},
    "clip 10 %": {"clipped": 0.1},
    "clip 40 %": {"clipped": 0.4},
    "rounded": {"step": 0.5},
    "all": {"noise": 1.0, "clipped": 0.1, "step": 0.5},
}
"""Noise and step in typical standard deviations of the design, and the share of targets that are clipped."""
FAULTS = {"std": {"factor": 0.75}, "bias": {"factor": 1.0, "bias": 0.3}}


@cache
def population(kind, noise):
    """Return typical standard deviations of a kind of model, and quantiles of its noisy targets at 0, .001, ..., 1."""
    rng = np.random.default_rng(0)
    rows = KINDS[kind](rng, 20_000, 1.0)
    scale = float(np.median(spreads(rows.predictive))) if kind != "normal intervals" else 1.0
    y = rows.y + noise * scale * rng.normal(size=len(rows.y))
    return scale, np.quantile(y, np.linspace(0, 1, 1001))


def observed(kind, rng, n, factor, *, bias=0.0, noise=0.0, clipped=0.0, step=0.0):
    """Rows whose targets are measured with noise, then clipped from above, then rounded, as the rows say."""
    rows = KINDS[kind](rng, n, factor)
    scale, quantiles = population(kind, noise)
    shift = rng.poisson(bias * scale, n) if kind == "poisson" else bias * scale  # a sum of such counts is such a count
    y, parts = rows.y + shift + noise * scale * rng.normal(size=n), {}
    grid = step * scale if kind != "poisson" else 1.0
    if noise:
        parts["noise"] = np.full(n, noise * scale)
    if clipped:
        limit = quantiles[round(1000 * (1 - clipped))]
        parts["high"] = np.full(n, round(limit / grid) * grid if step else limit)
        y = np.minimum(y, parts["high"])
    if step:
        parts["step"] = np.full(n, grid)
        y = round_to(y, parts["step"])
    return replace(rows, y=y, observation=Observation(**parts))


def two_observed(kind, rng, n, factor, **options):
    """Rows with two independent targets of one kind, observed in the same way."""
    first, second = (observed(kind, rng, n, factor, **options) for _ in range(2))
    marginals = first.predictive, second.predictive
    is_drawn = isinstance(first.predictive, Samples)
    joint = Samples(np.stack([each.draws for each in marginals], axis=2)) if is_drawn else Independent(marginals)
    parts = first.observation, second.observation
    return Predictions(np.stack([first.y, second.y], axis=1), joint, observation=Observations(parts))


DESIGNS = {
    **{f"{name}, n 300": Design(make, 300) for name, make in DISTRIBUTIONS.items()},
    **{f"{name}, n {n}": Design(make, n) for name, make in QUANTILES.items() for n in (100, 400)},
    "inputs, n 100": Design(with_inputs, 100),
    **{
        f"{count} clusters of 10, ICC {correlation:g}, --cluster": Design(
            partial(clusters, correlation), 10 * count, BY_PATIENT
        )
        for count in (10, 20, 50)
        for correlation in (0.0, 0.5)
    },
    "20 clusters of 10, ICC 0.5, std by row, --cluster": Design(partial(clusters, 0.5, own_std=False), 200, BY_PATIENT),
    **{
        f"AR(1) {correlation:g}, n {n}, --time": Design(partial(series, correlation), n, BY_HOUR)
        for n in (200, 500)
        for correlation in (0.0, 0.5, 0.8)
    },
    "AR(1) 0, n 500, no option": Design(partial(series, 0.0), 500),
    "AR(1) 0.5, n 500, no option": Design(partial(series, 0.5), 500, unstated=True),
    "AR(1) 0.8, n 500, no option": Design(partial(series, 0.8), 500, unstated=True),
    "50 clusters of 10, ICC 0.5, no option": Design(partial(clusters, 0.5), 500, unstated=True),
}
OBSERVED_DESIGNS = {
    f"{kind}, {way}": Design(partial(observed, kind, **options), ROWS)
    for kind in KINDS
    for way, options in OBSERVED.items()
} | {
    f"two targets, {kind}, {way}": Design(partial(two_observed, kind, **options), 150)
    for kind in KINDS
    for way, options in OBSERVED.items()
}


def one_set(name, metrics, replicates, unstated, seed):
    """Return what is told to be wrong in one set: names of metrics, ``overall``, ``answer``; or ``noticed``."""
    design = (DESIGNS | OBSERVED_DESIGNS)[name]
    rng = np.random.default_rng([sum(name.encode()), design.n, seed])
    rows = design.make(rng, design.n, 1.0)
    rows = replace(rows, observation=None) if unstated else rows.observed()
    report = calcheck.evaluate(rows, metrics, replicates=replicates, resamples=1000, seed=seed, **design.options)
    told = [each.metric for each in report.results if each.verdict == "fail"]
    told += [f"{own.name} {each.metric}" for own in report.outputs for each in own.results if each.verdict == "fail"]
    told += ["overall"] * (report.overall is not None and report.overall.verdict == "fail")
    answer = report.conclusion.answer if report.conclusion else "none"
    told += [f"answer {answer}"]
    noticed = any(message.code == "dependent-rows" for each in report.results for message in each.warnings)
    return told + ["noticed"] * noticed


def evaluated(designs, sets, first, settings, pool):
    """Print the table of designs."""
    head = ("design", "answer no", "answer yes", "overall", "noticed", "the metrics that fail most often")
    print(f"| {' | '.join(head)} |\n| --- | ---: | ---: | ---: | ---: | --- |")
    for name in designs:
        told = pool(partial(one_set, name, *settings), range(first, first + sets))
        shares = {each: count / sets for each, count in Counter(each for one in told for each in one).items()}
        metrics = {each: share for each, share in shares.items() if not each.startswith(("answer", "noticed", "over"))}
        most = sorted(metrics, key=metrics.get, reverse=True)
        listed = [f"{each} {marked(metrics[each])}" for each in most if metrics[each] > MARK] or [
            f"{each} {metrics[each]:.3f}" for each in most[:2]
        ]
        no, overall = (marked(shares.get(each, 0.0)) for each in ("answer no", "overall"))
        yes, noticed = (f"{shares.get(each, 0.0):.3f}" for each in ("answer yes", "noticed"))
        print(f"| {name} | {no} | {yes} | {overall} | {noticed} | {', '.join(listed)} |", flush=True)


def log_likelihood(rows, bias, factor):
    """Return the log-likelihood of each observed target if the normal predictions are off by a bias and a factor."""
    given, scale = rows.observation, population("normal", 0.0)[0]
    mean, std = rows.predictive.mean() + bias * scale, rows.predictive.std() * factor
    std = np.hypot(std, 0.0 if given.noise is None else given.noise)
    if given.step is None:
        inside, half = norm.logpdf(rows.y, mean, std), 0.0
    else:
        half = given.step / 2
        inside = np.log(norm.cdf(rows.y + half, mean, std) - norm.cdf(rows.y - half, mean, std))
    if given.high is None:
        return inside
    return np.where(rows.y < given.high, inside, norm.logsf(given.high - half, mean, std))


def stated_divergence(rows):
    """Return how far the shares of targets between quantiles, or inside intervals, are from what the rows state.

    Shares are as near to the levels as ties, clips and rounding leave open.
    """
    if rows.predictive.interval_levels is None:
        points = calcheck.metric("ece").compute(rows).details["curve"]
        levels, found = (np.array([point[name] for point in points]) for name in ("level", "observed"))
    else:
        shares = {name: np.asarray(each.mean()) for name, each in coverage.inside(rows, LEVELS[0]).items()}
        levels, found = np.array(LEVELS), np.array([coverage.nearest_share(shares, np.array(LEVELS[0]))])
    expected, share = (np.diff(np.concatenate([[0.0], each, [1.0]])) for each in (levels, found))
    return float(np.sum(share * np.log(np.maximum(share, 1e-12) / expected)))


@cache
def information(kind, way, fault):
    """Return how far wrong predictions are from the truth in one target (Kullback-Leibler), relative to all.

    Normal ones stand for all whose distributions are known.
    """

    def divergence(options):
        own = kind if kind in STATED else "normal"
        rows = observed(own, np.random.default_rng(0), 20_000, **FAULTS[fault], **options)
        if kind in STATED:
            return stated_divergence(rows.observed())
        truth = FAULTS[fault].get("bias", 0.0), 1 / FAULTS[fault]["factor"]
        return np.mean(log_likelihood(rows, *truth) - log_likelihood(rows, 0.0, 1.0))

    return divergence(OBSERVED[way]) / divergence({})


def equal_rows(kind, way, fault):
    """Return how many targets as they are have the information of the observed ones, at least the fewest."""
    return max(round(ROWS * information(kind, way, fault)), FEWEST)


def found(kind, way, fault, seed):
    """Return whether a fault is found in observed targets, and among fewer rows of targets as they are."""
    verdicts = []
    for n, options in (ROWS, OBSERVED[way]), (equal_rows(kind, way, fault), {}):
        rng = np.random.default_rng([sum(f"{kind}, {way}, {fault}".encode()), n, seed])
        rows = observed(kind, rng, n, **FAULTS[fault], **options).observed()
        report = calcheck.evaluate(rows, replicates=39, resamples=1000, seed=seed)
        verdicts.append(report.overall.verdict == "fail")
    return verdicts


def powers(kinds, sets, first, pool):
    """Print how often faults are found in targets as they were observed."""
    print("| kind, way, fault | found | rows of equal information | found among them |\n| --- | ---: | ---: | ---: |")
    for kind, way, fault in product(kinds, OBSERVED, FAULTS):
        share, plain = np.mean(pool(partial(found, kind, way, fault), range(first, first + sets)), axis=0)
        rows = equal_rows(kind, way, fault)
        mark = "" if share >= 0.8 * plain else " !"
        print(f"| {kind}, {way}, {fault} | {share:.3f}{mark} | {rows} | {plain:.3f} |", flush=True)


def one_pair_of_outputs(has_wrong_std, seed):
    """Return what is told of two outputs: one with a std of .3 in place of .5, or their correlation of .8 left out."""
    rng = np.random.default_rng([seed, has_wrong_std])
    mean, correlation = rng.normal(size=(ROWS, 2)), 0.0 if has_wrong_std else 0.8
    error = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], ROWS)
    std = np.tile([0.5, 0.3 if has_wrong_std else 0.5], (ROWS, 1))
    found = calcheck.evaluate(mean + error / 2, mean, std, metrics=["bias"], replicates=39, seed=seed).conclusion
    first, second = found.outputs
    together, size = (
        next(each for each in part.effects if each.topic == topic)
        for part, topic in ((found, "correlation"), (second, "size"))
    )
    return {
        "y_1 NO": first.answer == "no",
        "y_2 NO": second.answer == "no",
        "the factor of y_2 holds the truth": size.low <= 0.5 / std[0, 1] <= size.high,
        "correlation wrong": together.p is not None and together.p <= LEVEL,
    }


def pairs_of_outputs(sets, first, pool):
    """Print what is told of two outputs."""
    for title, has_wrong_std in (("second std 0.3 in place of 0.5", True), ("correlation 0.8 left out", False)):
        told = pool(partial(one_pair_of_outputs, has_wrong_std), range(first, first + sets))
        shares = (f"{name} {np.mean([each[name] for each in told]):.3f}" for name in told[0])
        print(f"{title}: {', '.join(shares)}", flush=True)


def marked(share):
    return f"{share:.3f}{' !' if share > MARK else ''}"


def two_scales(rng, n, first, second):
    """Two models whose standard deviations are off by factors."""
    mean, std = locations(rng, n)
    y = mean + std * rng.normal(size=n)
    return [Predictions(y=y, predictive=Gaussian(mean, std * factor)) for factor in (first, second)]


def two_means(rng, n, first, second):
    """Two models whose means are off by shifts."""
    mean, std = locations(rng, n)
    y = mean + std * rng.normal(size=n)
    return [Predictions(y=y, predictive=Gaussian(mean + shift * std, std)) for shift in (first, second)]


def two_halves(rng, n):
    """Two models, each of which is right in one half of the rows and has twice the std in the other."""
    mean, std = locations(rng, n)
    y, half = mean + std * rng.normal(size=n), rng.random(n) < 0.5
    return [Predictions(y=y, predictive=Gaussian(mean, std * np.where(half == one, 2, 1))) for one in (True, False)]


def two_noises(rng, n):
    """Two right models with independent errors of the mean."""
    y = rng.normal(size=n)
    means = 0.5 * rng.normal(size=(2, n))
    std = np.full(n, np.sqrt(1.25))
    return [Predictions(y=y, predictive=Gaussian(mean, std)) for mean in means]


SCALE_OF_ZMS = [0.5**-0.5, 1.5**-0.5]
SCALE_OF_COVERAGE = [1.191608, 0.875175]  # 90 % intervals hold 95 % and 85 % of normal targets
PAIRS = {
    "both right": two_noises,
    "zms .5 and 1.5": partial(two_scales, first=SCALE_OF_ZMS[0], second=SCALE_OF_ZMS[1]),
    "coverage .95 and .85": partial(two_scales, first=SCALE_OF_COVERAGE[0], second=SCALE_OF_COVERAGE[1]),
    "bias +-.3": partial(two_means, first=0.3, second=-0.3),
    "each right in one half": two_halves,
    "right and std x .7": partial(two_scales, first=1.0, second=0.7),
    "right and mean + .5": partial(two_means, first=0.0, second=0.5),
}
COMPARED = ("zms", "coverage", "bias", "rce", "ence", "crps")


def one_pair(name, n, seed):
    """Return the p-values of differences of one pair of models."""
    models = PAIRS[name](np.random.default_rng([sum(name.encode()), n, seed]), n)
    named = [Model(label, InMemory(each)) for label, each in zip("ab", models, strict=True)]
    run = calcheck.execution.run.Run(replicates=0, resamples=1000, seed=seed)
    metrics = [calcheck.metric(each) for each in COMPARED]
    found = {each.metric: each.p_value for each in compare(named, metrics, swaps=999, run=run).results if each.p_value}
    return [found.get(each, 1.0) for each in COMPARED]


def compared(names, sets, first, n, pool):
    """Print the table of pairs."""
    print(f"| pair, n {n} | {' | '.join(COMPARED)} |\n| --- |{' ---: |' * len(COMPARED)}")
    for name in names:
        shares = np.mean(np.array(pool(partial(one_pair, name, n), range(first, first + sets))) <= LEVEL, axis=0)
        print(f"| {name} | {' | '.join(f'{share:.3f}' for share in shares)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", nargs="?", choices=["evaluate", "observed", "power", "outputs", "pairs"], default="evaluate"
    )
    parser.add_argument("--designs", nargs="*", help="default: all")
    parser.add_argument("--pairs", nargs="*", default=list(PAIRS))
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", type=int, default=300, help="of the pairs")
    parser.add_argument("--metrics", nargs="*", help="default: all that apply")
    parser.add_argument("--replicates", type=int, default=39)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="of the power")
    parser.add_argument("--unstated", action="store_true", help="leave out how targets were observed")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the workers
    with ProcessPoolExecutor(given.workers) as executor:

        def pool(function, seeds):
            return list(executor.map(function, seeds, chunksize=5))

        if given.what == "pairs":
            compared(given.pairs, given.sets, given.first, given.rows, pool)
        elif given.what == "outputs":
            pairs_of_outputs(given.sets, given.first, pool)
        elif given.what == "power":
            powers(given.kinds, given.sets, given.first, pool)
        else:
            settings = given.metrics, given.replicates, given.unstated
            designs = given.designs or (OBSERVED_DESIGNS if given.what == "observed" else DESIGNS)
            evaluated(designs, given.sets, given.first, settings, pool)


if __name__ == "__main__":
    main()
