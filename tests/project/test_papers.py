"""The scripts of the papers: published numbers are within their stated limits, and missing data are named."""

import sys
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.execution.run import Run
from calcheck.metrics.mcmd import Mcmd
from calcheck.models.two_samples import two_samples
from calcheck.predictions import InMemory, Predictions
from tests.helpers.simulations import slow

PAPERS = Path(__file__).parents[2] / "examples" / "papers"
SHARED = ("tools", "cce", "sine_counts", "misfit", "levi_figure1", "generators")
FIGURE_8 = (0.0375, 0.1539, 0.1636, 0.8367, 0.6381, 0.3266)
FIGURE_9 = (0.0347, 0.1228, 0.2675, 0.8083, 0.5169, 0.4521)
MCMD_FIGURE_2 = (0.0017, 0.0206, 0.1603, 1.3233, 0.6386, 0.6543)
SQUARED = {"gamma_x": 0.5, "gamma_y": 0.5, "lambda_": 0.01, "squared": True}
SETS = 3


@pytest.fixture
def script(monkeypatch):
    """Return the names that a script of a paper defines; modules that it imports are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(PAPERS))
    monkeypatch.syspath_prepend(str(PAPERS.parent))
    yield lambda name: run_path(str(PAPERS / f"{name}.py"))
    for name in SHARED:
        sys.modules.pop(name, None)


def values_of(pairs, options):
    """Return MCMD of the six pairs of some data sets, (sets, 6)."""

    def source(sample):
        return InMemory(Predictions(x=sample["x"][:, None], y=sample["y"], has_embedding=False))

    found = []
    for seed in range(SETS):
        first, *others = map(source, pairs(np.random.default_rng(seed)))
        reports = [two_samples(first, other, Mcmd(**options), grid=50, run=Run(replicates=0)) for other in others]
        found.append([report.results[0].value for report in reports])
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pairs", "options", "published"),
    [
        ("heteroscedastic_pairs", {}, FIGURE_8),
        slow(("homoscedastic_pairs", {}, FIGURE_9)),
        ("homoscedastic_pairs", SQUARED, MCMD_FIGURE_2),
    ],
)
def test_published_distances_are_within_the_limits_of_simulation(script, pairs, options, published):
    """Each figure shows one data set: it is within three standard deviations of the mean over others."""
    line = script("tools")["Line"]
    found = values_of(script("cce")[pairs], options)
    lines = [line("", number, values) for number, values in zip(published, found.T, strict=True)]
    assert [each.agrees for each in lines] == ["yes"] * 6, found.mean(axis=0)


def distances(samples, every):
    """Return MCMD of two samples at 100 points, for each of several options."""
    sources = [InMemory(Predictions(x=each["x"][:, None], y=each["y"], has_embedding=False)) for each in samples]
    reports = [two_samples(*sources, Mcmd(**options), grid=100, run=Run(replicates=0)) for options in every]
    return [report.results[0].value for report in reports]


def kernels_of_figure_12(first):
    gammas = {"rbf": (2.0, 1 / (2 * first["y"].var())), "polynomial": (0.02, 0.02)}
    return [
        {"kernel_x": kernel, "gamma_x": gamma_x, "kernel_y": kernel, "gamma_y": gamma_y, "normalize": "none"}
        for kernel in ("rbf", "laplace", "polynomial")
        for gamma_x, gamma_y in (gammas.get(kernel, gammas["rbf"]),)
    ]


def test_the_settings_of_a_cosine_and_a_line_are_within_the_limits_of_simulation(script):
    """Figure 12b is 0.434, 0.344 and 0.389, by RBF, Laplace and polynomial kernels in both spaces.

    The expected numbers of the script are means over 200 data sets by explicit inverses of every matrix.
    """
    line, names = script("tools")["Line"], script("cce")
    by_hand = [number for each in ("BY_HAND", "LAMBDAS", "GAMMAS") for number in names[each].values()]
    expected = [0.434, 0.344, 0.389, *by_hand]
    found = []
    for seed in range(SETS):
        first, second = names["wave_and_line_samples"](np.random.default_rng(seed))
        settings = kernels_of_figure_12(first)
        settings += [{"gamma_x": 0.5, "lambda_": float(each)} for each in names["LAMBDAS"]]
        settings += [{"gamma_x": float(each), "gamma_y": float(each)} for each in names["GAMMAS"]]
        values = distances((first, second), settings)
        found.append(values[:3] + values)
    lines = [line("", number, values, digits=3) for number, values in zip(expected, np.transpose(found), strict=True)]
    assert [each.agrees for each in lines] == ["yes"] * len(expected), np.mean(found, axis=0)


def test_a_line_agrees_within_its_rounding_and_three_deviations(script):
    """Values 0.1 and 0.3: mean 0.2, deviation 0.1414, limit 3 * 0.1414 * sqrt(1.5) + 0.05 with one decimal."""
    line = script("tools")["Line"]
    each = line("", 0.7, [0.1, 0.3], digits=1)
    assert_allclose(each.limit, 3 * np.sqrt(0.02) * np.sqrt(1.5) + 0.05)
    assert each.agrees == "yes"
    assert line("", 0.8, [0.1, 0.3], digits=1).agrees == "no"
    assert line("", 0.8, [0.1, 0.3], 0.2, digits=1).agrees == "yes"
    assert line("", None, [0.1]).agrees == ""


def test_a_single_simulated_data_set_agrees_with_nothing_and_contradicts_nothing(script):
    """Its deviation is unknown, and is not 0; a single value of the data of the paper has only rounding errors."""
    line = script("tools")["Line"]
    assert line("", 0.7, [0.1]).agrees == "? (--sets 2)"
    assert line("", 0.7, [0.1], simulated=False).agrees == "no"
    assert line("", 0.1, [0.1], simulated=False).agrees == "yes"


def test_right_models_of_figure_13_have_the_stated_mean_and_variance(script):
    columns = script("cce")["right_models"](np.random.default_rng(0))
    x = columns["poisson"]["rate"]
    assert_allclose(columns["gaussian"]["std"] ** 2, x)
    size, probs = columns["nbinom"]["total_count"], columns["nbinom"]["probs"]
    assert_allclose(size * probs / (1 - probs), x, rtol=0.06)  # The size is rounded
    for each in columns.values():
        assert abs(np.mean((each["y"] - x) ** 2 / x) - 1) < 0.15


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (("zms", "table1"), "set9_*.csv"),
        (("ence", "table1"), "qm9_e_uncalibrated_test.csv"),
        (("jmmd", "table1"), "protein.csv or protein.parquet"),
        (("cce", "3"), "test.parquet"),
    ],
)
def test_data_that_are_absent_are_named(monkeypatch, capsys, tmp_path, arguments, missing):
    name, figure = arguments
    monkeypatch.syspath_prepend(str(PAPERS))
    monkeypatch.setattr(sys, "argv", [f"{name}.py", figure, "--data", str(tmp_path)])
    run_path(str(PAPERS / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert f"missing: no {missing}" in printed
    assert f" in {tmp_path}" in printed


@pytest.mark.slow
def test_a_script_prints_expected_and_found_numbers(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(PAPERS))
    monkeypatch.setattr(sys, "argv", ["cce.py", "gamma", "--sets", "2"])
    run_path(str(PAPERS / "cce.py"), run_name="__main__")
    _, command, *lines = capsys.readouterr().out.strip().splitlines()
    assert command == "$ calcheck sweep A B --metric mcmd --inputs x --grid 100 --vary gamma-x+gamma-y=0.1,0.5,1,5"
    assert len(lines) == 5
    assert all(line.endswith("yes") for line in lines[1:])
