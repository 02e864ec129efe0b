"""`calcheck trend`: metrics over a series of files."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from tests.helpers.files import write
from tests.helpers.schemas import validate

QUICK = ("--resamples", 200, "--replicates", 39)


@pytest.fixture
def series(tmp_path):
    """Return files of a model that sees inputs with more and more noise, on rows of their own."""

    def file(place, noise):
        rng = np.random.default_rng(place)
        x = rng.uniform(0, 6, 60 + place)
        seen = x + noise * rng.normal(size=len(x))
        columns = {"x": x, "y": np.sin(x) + 0.3 * rng.normal(size=len(x)), "mean": np.sin(seen)}
        return write(tmp_path / f"noise{place}.parquet", columns | {"std": np.full(len(x), 0.3)})

    return [file(place, noise) for place, noise in enumerate((0.0, 0.5, 2.0))]


@pytest.fixture
def report(calcheck):
    """Run the command, and return its report."""

    def run(*arguments):
        ended = calcheck("trend", *arguments, *QUICK, "--format", "json")
        assert (ended.code, ended.err) == (0, "")
        found = json.loads(ended.out)
        validate(found)
        return found

    return run


@pytest.mark.slow
def test_each_file_has_the_values_of_evaluate_and_their_changes(report, calcheck, series):
    found = report(*series, "--metrics", "zms,cce", "--inputs", "x", "--positions", "0,0.5,2")
    assert [(each["metric"], each["slice"]["at"]) for each in found["results"]] == [
        (metric, at) for metric in ("zms", "cce") for at in ("0", "0.5", "2")
    ]
    for place, path in enumerate(series):
        command = ("evaluate", path, "--metrics", "zms,cce", "--inputs", "x", *QUICK, "--format", "json")
        alone = json.loads(calcheck(*command).out)["results"]
        for own, group in zip(alone, (found["results"][:3], found["results"][3:]), strict=True):
            keys = ("value", "low", "high", "p_value", "verdict")
            assert [group[place][key] for key in keys] == [own[key] for key in keys]
            assert group[place]["details"]["change"] == group[place]["value"] - group[0]["value"]
    assert [each["verdict"] for each in found["results"][:3]] == ["pass", "fail", "fail"]
    assert found["results"][3]["verdict"] == "pass"


def test_positions_count_from_zero_by_default(report, series):
    found = report(*series, "--metrics", "crps,zms")
    assert [each["slice"]["at"] for each in found["results"]] == ["0", "1", "2"] * 2
    assert found["settings"]["at"] == [0, 1, 2]
    assert [each["path"] for each in found["input"]["files"]] == list(series)
    assert found["overall"] is None  # which would be that of one file


def test_the_table_and_the_picture_show_the_series(calcheck, series, tmp_path):
    plot = tmp_path / "trend.svg"
    out = calcheck("trend", *series, "--metrics", "zms,crps", *QUICK, "--plot", plot).out
    (head,) = (line for line in out.splitlines() if line.startswith("metric"))
    assert head.split()[:5] == ["metric", "at", "value", "change", "interval"]
    assert ">position of the file<" in plot.read_text()


@pytest.mark.parametrize("options", [("--draws", "1", "--trials", "3"), ()])
def test_deviations_over_trials_are_shown(calcheck, series, monkeypatch, options):
    for name, value in () if options else (("DRAWS", "1"), ("TRIALS", "3")):
        monkeypatch.setenv(f"CALCHECK_CCE_{name}", value)
    out = calcheck("trend", *series, "--metrics", "cce", "--inputs", "x", "--no-null", *options).out
    assert sum(" ± " in line for line in out.splitlines()) == 3


def test_the_first_file_may_be_of_another_family(report, series):
    found = report(f"{series[0]}@std=x", series[1], "--metrics", "zms")
    assert len(found["results"]) == 2


def test_densities_and_probability_masses_have_no_common_trend(report, calcheck, tmp_path):
    """The same counts, by Poisson rates and by normal distributions with their moments."""
    rates = np.linspace(1, 9, 60)
    counts = np.random.default_rng(0).poisson(rates)
    masses = write(tmp_path / "masses.parquet", {"y": counts, "rate": rates})
    densities = write(tmp_path / "densities.parquet", {"y": counts, "mean": rates, "std": np.sqrt(rates)})
    files = (f"{masses}@dist=poisson", densities)
    found = report(*files, "--metrics", "nll,crps")
    assert [each["metric"] for each in found["results"]] == ["crps", "crps"]
    (skipped,) = found["skipped"]
    assert skipped["reason"].startswith("compares densities of some models with probability masses of others")
    assert "pass --discretise" in calcheck("trend", *files, "--metrics", "nll", *QUICK).refused()
    assert len(report(densities, densities, "--metrics", "nll")["results"]) == 2
    values = [each["value"] for each in report(*files, "--metrics", "nll", "--discretise")["results"]]
    normal = stats.norm(rates, np.sqrt(rates))
    by_hand = [stats.poisson(rates).logpmf(counts), np.log(normal.cdf(counts + 0.5) - normal.cdf(counts - 0.5))]
    assert_allclose(values, [-each.mean() for each in by_hand])


@pytest.mark.parametrize(
    ("count", "arguments", "message"),
    [
        (1, (), "a trend needs at least two files, got one"),
        (2, ("--positions", "0"), "--positions needs 2 increasing numbers, one per file, got 0"),
        (2, ("--positions", "1,0"), "--positions needs 2 increasing numbers, one per file, got 1, 0"),
        (2, ("--positions", "1,1"), "--positions needs 2 increasing numbers, one per file, got 1, 1"),
    ],
)
def test_positions_that_do_not_fit_are_refused(calcheck, series, count, arguments, message):
    assert message in calcheck("trend", *series[:count], "--metrics", "zms", *arguments).refused()


def test_a_comparison_with_positions_is_a_trend(calcheck, series):
    arguments = (*series, "--metrics", "zms", "--positions", "0,1,2", *QUICK)
    assert calcheck("compare", *arguments).out == calcheck("trend", *arguments).out
    for option in (("--names", "a,b,c"), ("--by-folder",), ("--permutations", "99"), ("--weights", "w")):
        assert f"{option[0]} does not apply to a series of files" in calcheck("compare", *arguments, *option).refused()


def test_scores_of_several_targets_together_have_a_trend(report, series, tmp_path):
    files = []
    for place, path in enumerate(series[1:]):
        rows = pd.read_parquet(path)
        names = ("y", "mean", "std")
        both = {f"{name}_{target}": rows[name].to_numpy() for target in (1, 2) for name in names}
        files.append(write(tmp_path / f"both{place}.parquet", both))
    found = report(*files, "--metrics", "crps,pit,nll")["results"]
    assert [(each["metric"], each["slice"]["at"]) for each in found] == [
        (metric, at) for metric in ("crps", "pit", "nll") for at in ("0", "1")
    ]
