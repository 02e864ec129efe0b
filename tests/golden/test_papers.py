"""The scripts of the papers: published numbers are within their stated limits, and missing data are named."""

import sys
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.execution.context import Run
from calcheck.metrics.mcmd import Mcmd
from calcheck.predictions import InMemory, Predictions
from calcheck.studies.two_samples import two_samples

PAPERS = Path(__file__).parents[2] / "examples" / "papers"
SHARED = ("tools", "cce", "sine_counts", "levi_figure1")
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


@pytest.mark.parametrize(
    ("pairs", "options", "published"),
    [
        ("heteroscedastic_pairs", {}, FIGURE_8),
        ("homoscedastic_pairs", {}, FIGURE_9),
        ("homoscedastic_pairs", SQUARED, MCMD_FIGURE_2),
    ],
)
def test_published_distances_are_within_the_limits_of_simulation(script, pairs, options, published):
    """Each figure shows one data set: it is within three standard deviations of the mean over others."""
    line = script("tools")["Line"]
    found = values_of(script("cce")[pairs], options)
    lines = [line("", number, values) for number, values in zip(published, found.T, strict=True)]
    assert [each.agrees for each in lines] == ["yes"] * 6, found.mean(axis=0)


def test_the_kernels_of_figure_12_are_within_the_limits_of_simulation(script):
    """0.434, 0.344 and 0.389: a cosine against a line, by RBF, Laplace and polynomial kernels in both spaces."""
    line, sample = script("tools")["Line"], script("cce")["homoscedastic"]
    found = {"rbf": [], "laplace": [], "polynomial": []}
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        first, x = sample(rng, 200), rng.uniform(0, 2 * np.pi, 100)
        second = {"x": x, "y": rng.normal(x - 5, 0.5)}
        sources = [
            InMemory(Predictions(x=each["x"][:, None], y=each["y"], has_embedding=False)) for each in (first, second)
        ]
        for kernel, values in found.items():
            gamma_x, gamma_y = (0.02, 0.02) if kernel == "polynomial" else (2.0, 1 / (2 * first["y"].var()))
            options = {
                "kernel_x": kernel,
                "gamma_x": gamma_x,
                "kernel_y": kernel,
                "gamma_y": gamma_y,
                "normalize": "none",
            }
            report = two_samples(*sources, Mcmd(**options), grid=100, run=Run(replicates=0))
            values.append(report.results[0].value)
    lines = [
        line("", number, found[kernel], digits=3) for kernel, number in zip(found, (0.434, 0.344, 0.389), strict=True)
    ]
    assert [each.agrees for each in lines] == ["yes"] * 3, found


def test_a_line_agrees_within_its_rounding_and_three_deviations(script):
    """Values 0.1 and 0.3: mean 0.2, deviation 0.1414, limit 3 * 0.1414 * sqrt(1.5) + 0.05 with one decimal."""
    line = script("tools")["Line"]
    each = line("", 0.7, [0.1, 0.3], digits=1)
    assert_allclose(each.limit, 3 * np.sqrt(0.02) * np.sqrt(1.5) + 0.05)
    assert each.agrees == "yes"
    assert line("", 0.8, [0.1, 0.3], digits=1).agrees == "no"
    assert line("", 0.8, [0.1, 0.3], 0.2, digits=1).agrees == "yes"
    assert line("", None, [0.1]).agrees == ""


def test_right_models_of_figure_13_have_the_stated_mean_and_variance(script):
    columns = script("cce")["right_models"](np.random.default_rng(0))
    x = columns["poisson"]["rate"]
    assert_allclose(columns["gaussian"]["std"] ** 2, x)
    size, probs = columns["nbinom"]["total_count"], columns["nbinom"]["probs"]
    assert_allclose(size * probs / (1 - probs), x, rtol=0.06)  # The size is rounded
    for each in columns.values():
        assert abs(np.mean((each["y"] - x) ** 2 / x) - 1) < 0.15


def test_sets_that_are_absent_are_named(monkeypatch, capsys, tmp_path):
    monkeypatch.syspath_prepend(str(PAPERS))
    monkeypatch.setattr(sys, "argv", ["zms.py", "table1", "--data", str(tmp_path)])
    run_path(str(PAPERS / "zms.py"), run_name="__main__")
    assert f"missing: no set9_*.csv in {tmp_path}" in capsys.readouterr().out
