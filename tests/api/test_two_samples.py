"""Two samples in Python: the numbers of the commands, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import calcheck as package


@pytest.fixture
def samples():
    """Return two samples of one input and one target, whose inputs differ."""
    rng = np.random.default_rng(3)
    x, other = rng.uniform(size=(2, 60))
    first = pd.DataFrame({"x": x, "y": rng.normal(x)})
    return first, pd.DataFrame({"x": other, "y": rng.normal(other + 1)})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mcmd", {"gamma_x": 0.5}),
        ("mmd", {"joint": True}),
        ("jmmd", {}),
        ("cmmd", {"kernel_y": "laplace"}),
        ("fid", {}),
    ],
)
def test_two_samples_give_the_numbers_of_their_command(calcheck, samples, tmp_path, name, options):
    files = [tmp_path / f"{place}.parquet" for place in range(2)]
    for frame, path in zip(samples, files, strict=True):
        frame.to_parquet(path)
    given = [text for key, each in options.items() for text in (f"--{key.replace('_', '-')}", str(each))]
    flags = [text for text in given if text != "True"]
    ended = calcheck(name, *files, "--inputs", "x", *flags, "--format", "json")
    (expected,) = json.loads(ended.out)["results"]
    report = package.compare_samples(*samples, package.metric(name, **options), inputs=["x"])
    (found,) = report.results
    assert (found.value, found.p_value, found.verdict) == tuple(
        expected[key] for key in ("value", "p_value", "verdict")
    )
    assert "if both samples have the same distribution" in report.to_html()


def test_two_samples_have_a_distance_at_each_evaluation_point(samples):
    report = package.compare_samples(*samples, inputs=["x"], grid=5, replicates=19)
    ends = min(frame["x"].min() for frame in samples), max(frame["x"].max() for frame in samples)
    assert_allclose(report.rows("mcmd")["x"], np.linspace(*ends, 5))
    at = package.compare_samples(*samples, inputs=["x"], at=np.array([0.2, 0.7]), replicates=19)
    assert at.rows("mcmd")["mcmd"].shape == (2,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "zms"}, "zms does not compare two samples. Metrics that do: mcmd, mmd, jmmd, cmmd, fid"),
        ({"metric": "mmd", "grid": 5}, "grid sets evaluation points, which mmd does not have"),
        ({"metric": "mcmc"}, "unknown metric 'mcmc'. Did you mean 'mcmd'?"),
        ({"inputs": None}, "needs inputs to condition on"),
        ({"target": "z"}, "there is no column 'z' for the target"),
        ({"seed": 1.5}, "seed"),
    ],
)
def test_two_samples_that_cannot_be_compared_are_refused(samples, arguments, message):
    keywords = {name: value for name, value in ({"inputs": ["x"]} | arguments).items() if value is not None}
    with pytest.raises(package.CalcheckError) as error:
        package.compare_samples(*samples, **keywords)
    assert message in str(error.value)
    assert "--" not in str(error.value)


def test_metrics_of_two_samples_are_no_metrics_of_predictions(samples):
    with pytest.raises(package.OptionError, match=r"mcmd compares two samples.*calcheck\.compare_samples"):
        package.evaluate(samples[0].assign(mean=0.0, std=1.0), ["zms", "mcmd"])
