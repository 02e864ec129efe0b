"""The option --kernel-y of the commands that compare predictions with targets by a kernel."""

import json

import numpy as np
import pandas as pd
import pytest


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
