"""The option --kernel-y of the commands that compare predictions with targets by a kernel."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.helpers.files import write


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, 60)
    mean, std = np.sin(x), rng.uniform(0.3, 0.6, 60)
    path = tmp_path / "g.parquet"
    pd.DataFrame({"x": x, "y": mean + std * rng.normal(size=60), "mean": mean, "std": std}).to_parquet(path)
    return path


@pytest.mark.parametrize("kernel", ["laplace", "polynomial"])
@pytest.mark.parametrize("metric", ["cce", "jmmd", "cmmd"])
def test_reports_name_the_kernel_on_targets_and_give_a_p_value(calcheck, file, metric, kernel):
    result = calcheck(metric, file, "--inputs", "x", "--kernel-y", kernel, "--replicates", 19, "--format", "json")
    (found,) = json.loads(result.out)["results"]
    assert found["details"]["targets"]["kernel"] == kernel
    assert 0.05 <= found["p_value"] <= 1


def test_the_degree_of_cce_applies_to_the_kernel_on_targets(calcheck, file):
    options = ("--inputs", "x", "--kernel-y", "polynomial", "--degree", 2, "--no-null", "--format", "json")
    (found,) = json.loads(calcheck("cce", file, *options).out)["results"]
    assert found["details"]["targets"]["degree"] == 2
    assert found["details"]["features"]["rank"] == 3


def test_kernels_on_targets_can_be_compared_by_sweep(calcheck, file):
    options = ("--metric", "cce", "--vary", "kernel-y=rbf,laplace,polynomial", "--format", "json")
    found = json.loads(calcheck("sweep", file, "--inputs", "x", *options).out)
    assert len({each["value"] for each in found["results"]}) == 3


def test_landmarks_and_batches_need_the_rbf_kernel(calcheck, file):
    for options in (("--solver", "nystroem"), ("--landmarks", 5)):
        result = calcheck("cce", file, "--inputs", "x", "--kernel-y", "laplace", *options)
        assert "does not support --kernel-y laplace. Remove --kernel-y laplace, or pass --solver cg" in result.refused()


def test_the_last_target_columns_can_be_features_of_the_others(calcheck, tmp_path):
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 6, 40)
    y = np.sin(x) + 0.3 * rng.normal(size=40)
    draws = np.sin(x)[:, None] + 0.3 * rng.normal(size=(40, 5))
    path = tmp_path / "features.parquet"
    columns = {"x": x, "y": y, "f": y**2, "draws_y": list(draws), "draws_f": list(draws**2)}
    pd.DataFrame(columns).to_parquet(path)
    read = ("--target", "y,f", "--samples", "draws_y,draws_f", "--inputs", "x")
    options = (*read, "--feature-targets", 1, "--epsilon", 0.2)
    ended = calcheck("jmmd", path, *options, "--replicates", 19, "--format", "json")
    (found,) = json.loads(ended.out)["results"]
    assert found["details"]["targets"] | {"gamma": 0} == {
        "kernel": "rbf",
        "feature_targets": 1,
        "epsilon": 0.2,
        "gamma": 0,
        "repeats": 1,
    }
    assert found["p_value"] >= 0.05
    ended = calcheck("jmmd", path, *read, "--feature-targets", 2)
    assert "--feature-targets 2 leaves no target: the targets have 2 columns" in ended.refused()
    one = calcheck("jmmd", path, "--target", "y", "--samples", "draws_y", "--inputs", "x", "--feature-targets", 1)
    assert "--feature-targets 1 leaves no target: the targets have 1 column. Pass" in one.refused()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("jmmd", "--epsilon", 0.5), "--epsilon is for features of the targets: name their number with"),
        (("cmmd", "--gamma-features", 2), "--gamma-features is for features of the targets"),
        (
            ("cce", "--degree", 2),
            "--degree is for polynomial kernels, and the kernel on inputs is rbf: pass --kernel-x",
        ),
        (
            ("cce", "--kernel-x", "laplace", "--coef0", 2),
            "--coef0 is for polynomial kernels, and the kernel on inputs is",
        ),
    ],
)
def test_options_of_another_kernel_are_refused(calcheck, tmp_path, arguments, message):
    parts = {"y": np.arange(9.0), "mean": np.arange(9.0)[::-1], "std": np.ones(9), "x": np.arange(9.0) ** 2}
    command, *options = arguments
    path = write(tmp_path / "preds.parquet", parts)
    assert message in calcheck(command, path, "--inputs", "x", *options).refused()


@pytest.mark.parametrize("options", [("--kernel-x", "polynomial"), ("--kernel-y", "polynomial"), ("--kernel-x", "rbf")])
def test_a_degree_applies_if_one_kernel_is_polynomial(calcheck, tmp_path, options):
    rng = np.random.default_rng(2)
    parts = {"y": rng.normal(size=20), "mean": np.zeros(20), "std": np.ones(20), "x": rng.normal(size=20)}
    path = write(tmp_path / "preds.parquet", parts)
    degree = 3 if "rbf" in options else 2  # 3 is the default
    assert calcheck("cce", path, "--inputs", "x", "--degree", degree, *options, "--no-null").code == 0
