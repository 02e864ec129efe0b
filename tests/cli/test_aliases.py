"""Metrics under the names that they have elsewhere: as commands, in lists, rules, settings, and in Python."""

import json

import numpy as np
import pytest
from scipy.stats import norm

import calcheck
from calcheck.errors import OptionError
from calcheck.metrics import ALIASES, METRICS, canonical_name
from tests.helpers.files import write

N = 100  # one row per percent, so that the sparsification curve needs no part of a row
QUICK = {"resamples": 0, "replicates": 0}
FAST = ("--no-bootstrap", "--no-null")


@pytest.fixture
def rows():
    rng = np.random.default_rng(7)
    std = rng.uniform(0.5, 3, N)
    return {"y": 1.4 * std * rng.standard_normal(N), "mean": np.zeros(N), "std": std}


@pytest.fixture
def path(tmp_path, rows):
    return write(tmp_path / "preds.parquet", rows)


def sparsification_error(y, mean, std):
    """Return the area between the sparsification curve and its oracle, by the mean error of the rows that remain."""
    error = np.abs(y - mean)
    curves = [[error[order][: N - k].mean() for k in range(N)] for order in (np.argsort(std), np.argsort(error))]
    gap = np.subtract(*curves)
    return float(np.sum((gap[1:] + gap[:-1]) / 2) / N)


def published(y, mean, std):
    """Return the values of the aliases by their published formulas, with 90 % intervals and 99 levels.

    ``mace`` agrees with uncertainty-toolbox 0.1.1: mean_absolute_calibration_error(..., prop_type="quantile") of
    examples/diabetes.parquet is 0.98 times calcheck's value with 98 levels, because its 100 levels include 0 and 1.
    """
    low, high = mean - norm.ppf(0.95) * std, mean + norm.ppf(0.95) * std
    outside = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    levels = np.arange(1, 100) / 100
    z = (y - mean) / std
    observed = (norm.cdf(y, mean, std)[:, None] <= levels).mean(axis=0)
    return {
        "picp": np.mean((low <= y) & (y <= high)),
        "mpiw": np.mean(high - low),
        "winkler": np.mean(high - low + 2 / 0.1 * outside),
        "ause": sparsification_error(y, mean, std),
        "energy": np.mean(std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))),  # for one target
        "mace": np.mean(np.abs(observed - levels)),
    }


def test_an_alias_has_the_value_of_its_published_formula(rows):
    expected = published(**rows)
    assert expected.keys() == ALIASES.keys()
    for name, value in expected.items():
        (result,) = calcheck.evaluate(rows, name, **QUICK).results
        assert result.metric == ALIASES[name].metric
        np.testing.assert_allclose(result.value, value, rtol=1e-12, err_msg=name)


def test_an_alias_is_no_metric_of_its_own():
    assert not ALIASES.keys() & METRICS.keys()
    assert {alias.metric for alias in ALIASES.values()} <= METRICS.keys()
    assert canonical_name("zms") == "zms"


def test_the_command_of_an_alias_is_that_of_its_metric(calcheck, path):
    plain = calcheck("coverage", path, "--level", "0.8", *FAST)
    found = calcheck("picp", path, "--level", "0.8", *FAST)
    assert (found.code, found.out) == (0, plain.out)
    assert found.err == "calcheck: picp (prediction interval coverage probability) is coverage here\n"
    assert "Usage: calcheck coverage" in calcheck("picp", "--help").out


def test_an_alias_that_others_compute_differently_states_the_difference(calcheck, path):
    assert calcheck("ause", path, *FAST).err == (
        "calcheck: ause (area under the sparsification error) is confidence-curve here, not divided by the error of all"
        " rows\n"
    )
    assert "is ece here, over quantile levels, not over central intervals\n" in calcheck("mace", path, *FAST).err


def test_an_alias_and_its_metric_are_computed_once(calcheck, path):
    found = calcheck("evaluate", path, "--metrics", "picp,zms,coverage,picp", *FAST, "--format", "json")
    assert [result["metric"] for result in json.loads(found.out)["results"]] == ["coverage", "zms"]
    assert found.err.count("picp") == 1


@pytest.mark.parametrize("command", [("compare",), ("prune", *FAST), ("reject",), ("sweep", "--vary", "level=0.5,0.8")])
def test_every_command_that_takes_names_of_metrics_takes_aliases(calcheck, tmp_path, path, command):
    name, *more = command
    files = [path, write(tmp_path / "b.parquet", doubled_spread(path))] if name == "compare" else [path]
    flag = "--metric" if name == "sweep" else "--metrics"
    found = calcheck(name, *files, flag, "winkler", *more, "--format", "json")
    assert found.code == 0, found
    assert {result["metric"] for result in json.loads(found.out)["results"]} == {"interval-score"}
    assert found.err.startswith("calcheck: winkler (Winkler score) is interval-score here\n")


def doubled_spread(path):
    frame = calcheck.read(path).predictions()
    return {"y": frame.y, "mean": frame.predictive.mean(), "std": 2 * frame.predictive.std()}


def test_rules_take_aliases_and_show_the_metric(calcheck, path):
    rules = ("--fail-on", "picp < 0.5", "--warn-on", "mace.value > 2 or picp > 2")
    found = calcheck("check", path, *rules, *FAST, "--format", "json")
    gates = json.loads(found.out)["gates"]
    assert [(gate["rule"], [*gate["values"]]) for gate in gates] == [
        ("picp < 0.5", ["coverage"]),
        ("mace.value > 2 or picp > 2", ["ece.value", "coverage"]),
    ]
    assert [line.split()[1] for line in found.err.splitlines()] == ["picp", "mace"]


def test_settings_take_aliases(calcheck, path, tmp_path, monkeypatch):
    monkeypatch.delenv("CALCHECK_NO_CONFIG")
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / "calcheck.toml"
    settings.write_text("[picp]\nlevel = 0.5\n")
    (result,) = json.loads(calcheck("coverage", path, *FAST, "--format", "json").out)["results"]
    assert result["options"] == {"level": 0.5, "at_least": False}
    settings.write_text("[picp]\nlevel = 0.5\n[coverage]\nlevel = 0.8\n")
    assert "[coverage] is given twice, under two spellings or names of coverage" in calcheck("zms", path).refused()


def test_python_takes_aliases(rows):
    assert calcheck.metric("picp", level=0.8) == calcheck.metric("coverage", level=0.8)
    report = calcheck.evaluate(rows, ["mpiw"], **QUICK)
    assert report.rows("mpiw").equals(report.rows("width"))
    with pytest.raises(OptionError, match=r"unknown metric 'pipc'\. Did you mean 'picp'\?"):
        calcheck.metric("pipc")
    with pytest.raises(OptionError, match=r"unknown metric 'banana'\. Available metrics: zms, rce"):
        calcheck.metric("banana")


def test_metrics_lists_the_aliases_of_each_metric(calcheck):
    listed = " ".join(calcheck("metrics").out.split())
    for name in ALIASES:
        assert f"called {name}." in listed
