"""Right models pass with the options that say how their targets were observed, and fail without."""

import numpy as np
import pytest
from scipy.stats import binom, norm

import calcheck
from tests.helpers.simulations import sets, slow

N = 100
METRICS = ("zms", "pit", "coverage", "crps", "width-factor")
LEVELS = (0.05, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95)
WAYS = ("noise", "clip 10 %", "clip 40 %", "rounded", "all")
TOP = {"clip 10 %": 1.35, "clip 40 %": 0.3, "all": 1.9}
"""Upper limits of targets in the unit of `draw`: they are beyond in 10, 40 and 10 % of the rows."""


def draw(kind, rng):
    """Return targets whose predictions are right, these, and the standard deviations."""
    mean, std = rng.normal(scale=0.3, size=N), np.exp(0.3 * rng.normal(size=N))
    if kind == "student-t":
        param = {"df": np.full(N, 4.0), "loc": mean, "scale": std / np.sqrt(2)}
        return mean + param["scale"] * rng.standard_t(4, N), {"dist": "student-t", "param": param}, std
    if kind == "lognormal":
        spread = np.sqrt(np.expm1(0.16)) * np.exp(mean + 0.08)
        param = {"s": np.full(N, 0.4), "scale": np.exp(mean)}
        return np.exp(mean + 0.4 * rng.normal(size=N)), {"dist": "lognormal:scipy", "param": param}, spread
    if kind == "poisson":
        rate = np.exp(1.3 + mean)
        return rng.poisson(rate).astype(float), {"dist": "poisson", "param": {"rate": rate}}, np.sqrt(rate)
    forms = {
        "normal": {"mean": mean, "std": std},
        "20 draws": {"samples": mean[:, None] + std[:, None] * rng.normal(size=(N, 20))},
        "quantiles": {"quantiles": {level: mean + std * norm.ppf(level) for level in LEVELS}},
        "intervals": {"lower": mean - norm.ppf(0.95) * std, "upper": mean + norm.ppf(0.95) * std, "level": 0.9},
    }
    return mean + std * rng.normal(size=N), forms[kind], std


def observe(how, y, kind, std, rng):
    """Return targets as they are observed, and the options that say how."""
    options = {}
    if how in ("noise", "all"):
        y, options["target_std"] = y + std * rng.normal(size=N), std
    if how in TOP:
        top = {"lognormal": np.exp(0.5 * TOP[how]), "poisson": np.ceil(3.7 + 2.3 * TOP[how])}.get(kind, TOP[how])
        y, options["clip"] = np.minimum(y, top), (None, top)
    if how in ("rounded", "all"):
        y, options["rounded"] = np.floor(y / (std / 2) + 0.5) * (std / 2), std / 2
    return y, options


def shares(kind, how, number, *, told=True):
    """Return how often each metric, and all of them together, fail."""
    failed = dict.fromkeys((*METRICS, "overall"), 0)
    for place in range(number):
        rng = np.random.default_rng([place, len(kind), len(how)])
        y, predictions, std = draw(kind, rng)
        y, options = observe(how, y, kind, std, rng)
        report = calcheck.evaluate(
            y=y, **predictions, **(options if told else {}), metrics=METRICS, replicates=39, resamples=0
        )
        for result in report.results:
            failed[result.metric] += result.verdict == "fail"
        failed["overall"] += report.overall is not None and report.overall.verdict == "fail"
    return failed


KINDS = ("normal", "student-t", "lognormal", "poisson", "20 draws", "quantiles", "intervals")
FAST = {("normal", "clip 40 %"), ("20 draws", "noise")}
SLOW = {("student-t", "all"), ("lognormal", "all")}
"""Pairs that take five seconds a data set, and are not drawn."""
PAIRS = [
    pair if pair in FAST else slow(pair) for pair in ((kind, how) for kind in KINDS for how in WAYS) if pair not in SLOW
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "how"), PAIRS)
def test_right_models_of_observed_targets_fail_in_one_of_twenty_data_sets(kind, how):
    number = sets(32)
    most = binom.ppf(1 - 1e-5, number, 0.05)
    assert {name: count for name, count in shares(kind, how, number).items() if count > most} == {}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["clip 40 %", slow("noise")])
def test_without_the_options_noise_and_clips_fail(how):
    number = sets(32)
    assert shares("normal", how, number, told=False)["overall"] >= number / 2
