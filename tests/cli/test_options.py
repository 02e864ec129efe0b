"""Options of commands change what is computed: none is read and then ignored.

Options that describe the file are in tests/io/test_reading.py, and those that must not change a number, as --memory,
are where these are tested.
"""

import json
import re
import shlex
from functools import cache

import numpy as np
import pytest

from tests.helpers.files import write

N = 80
SHOWN = ("results", "overall", "conclusion", "gates", "skipped", "monitor", "points")
"""What is compared; settings repeat options whether or not they have an effect."""

QUICK = "--replicates 19 --resamples 100"
INFERENCE = {
    "seed": "--seed 1",
    "confidence": "--confidence 0.5",
    "replicates": "--replicates 39",
    "resamples": "--resamples 120",
    "no-null": "--no-null",
    "no-bootstrap": "--no-bootstrap",
}
BOOTSTRAP = {name: INFERENCE[name] for name in ("seed", "confidence", "resamples", "no-bootstrap")}
ROWS = {"filter": "--filter age>30"}
CLUSTERS = {"cluster": "--cluster patient", "time": "--time day", "block": ("--time day", "--block 9")}
WEIGHTS = {"weights": "--weights w"}
KERNEL = {
    "kernel-x": "--kernel-x laplace",
    "gamma-x": "--gamma-x 3",
    "gamma-y": "--gamma-y 0.1",
    "lambda": "--lambda 0.5",
    "normalize": "--normalize none",
    "kernel-y": "--kernel-y laplace",
    "degree": ("--kernel-x polynomial", "--degree 2"),
    "coef0": ("--kernel-x polynomial", "--coef0 3"),
}
CCE = KERNEL | {
    "lambda-model": "--lambda-model 0.5",
    "draws": "--draws 2",
    "trials": ("--draws 2 --trials 2", "--trials 3"),
    "estimator": "--estimator unbiased",
    "solver": ("--solver cholesky", "--solver nystroem --landmarks 5"),
    "landmarks": ("--solver nystroem --landmarks 5", "--landmarks 10"),
    "landmark-sampling": (
        "--solver nystroem --landmarks 5 --landmark-sampling uniform",
        "--landmark-sampling leverage",
    ),
}

BY_CCE = "--inputs x1,x2 --criteria cce"
SEARCH = f"wrong.parquet --columns age,x1 --metrics bias {QUICK}"
CONTRADICTED = {"no-null": "--(replicates|permutations)", "no-bootstrap": "--resamples"}
"""Options of the command line that an option contradicts."""

COMMANDS = {
    "evaluate": (
        "a.parquet --metrics crps,ence,bias " + QUICK,
        INFERENCE
        | ROWS
        | CLUSTERS
        | WEIGHTS
        | {
            "metrics": "--metrics mae",
            "by": ("--metrics mae", "--by sex"),
            "refit": ("--by sex --inputs x1,x2 --metrics cce", "--refit"),
            "fdr": ("--inputs x1,x2 --metrics cce", "--fdr 0.9"),
            "subsample": "--subsample 40",
        },
    ),
    "cce": (
        "a.parquet --inputs x1,x2 --replicates 19",
        {name: INFERENCE[name] for name in ("seed", "replicates", "no-null")}
        | ROWS
        | CLUSTERS
        | CCE
        | {"fdr": "--fdr 0.9", "at": "--at c.parquet", "grid": ("a.parquet --inputs x1 --replicates 19", "--grid 3")},
    ),
    "compare": (
        "a.parquet b.parquet --metrics crps,zms --resamples 100",
        BOOTSTRAP
        | ROWS
        | CLUSTERS
        | WEIGHTS
        | {
            "metrics": "--metrics mae",
            "names": "--names one,two",
            "by-folder": ("one/a.parquet two/b.parquet one/b.parquet two/a.parquet --metrics mae", "--by-folder"),
            "replicates": "--replicates 39",
            "draws": ("--metrics cce --inputs x1,x2", "--draws 2"),
            "trials": ("--metrics cce --inputs x1,x2 --draws 2", "--trials 3"),
        },
    ),
    "slices": (
        "a.parquet --by sex --metrics zms " + QUICK,
        INFERENCE
        | ROWS
        | CLUSTERS
        | WEIGHTS
        | {
            "by": "--by age:3",
            "metrics": "--metrics mae",
            "refit": ("--inputs x1,x2 --metrics cce", "--refit"),
            "min-rows": "--min-rows 40",
            "columns": (SEARCH, "--columns x2"),
            "bins": (SEARCH, "--bins 3"),
            "depth": (SEARCH, "--depth 1"),
        },
    ),
    "monitor": (
        "a.parquet --time day --window 20D --replicates 19",
        ROWS
        | {
            "time": "--time later",
            "window": "--window 10D",
            "horizon": "--horizon 3",
            "metrics": "--metrics mae",
            "fail-on": "--fail-on 'monitor.e_value > 0'",
            "warn-on": "--warn-on 'monitor.e_value > 0'",
            "exit-zero": ("--fail-on 'monitor.e_value > 0'", "--exit-zero"),
            "seed": "--seed 1",
            "replicates": "--replicates 39",
            "no-null": "--no-null",
            "confidence": "--confidence 0.5",
        },
    ),
    "recalibrate": (
        "a.parquet --method scale " + QUICK,
        INFERENCE
        | ROWS
        | CLUSTERS
        | {
            "method": "--method bias",
            "by": "--method local --by age",
            "folds": "--folds 3",
            "score": "--score interval",
            "bins": ("--method bvs --by age", "--bins 3"),
            "levels": ("--method conformal", "--levels 0.5"),
            "relative": ("intervals.parquet --lower lo --upper hi --level 0.8 --method conformal", "--relative"),
            "to": "--to c.parquet",
        },
    ),
    "reject": (
        "a.parquet --criteria std,age --resamples 100",
        BOOTSTRAP
        | ROWS
        | {
            "criteria": "--criteria age",
            "metrics": "--metrics mae",
            "step": "--step 20",
            "max-percent": "--max-percent 50",
            "coverage": "--coverage 0.7",
            "new": (BY_CCE, "--new c.parquet"),
            "lambda": (BY_CCE, "--lambda 0.5"),
            "gamma-x": (BY_CCE, "--gamma-x 3"),
        },
    ),
    "trend": (
        "a.parquet b.parquet --metrics crps,zms " + QUICK,
        INFERENCE
        | ROWS
        | CLUSTERS
        | {
            "metrics": "--metrics mae",
            "positions": "--positions 0,0.5",
            "draws": ("--metrics cce --inputs x1,x2", "--draws 2"),
            "trials": ("--metrics cce --inputs x1,x2 --draws 2", "--trials 3"),
            "fdr": ("--metrics cce --inputs x1,x2", "--fdr 0.9"),
        },
    ),
    "prune": (
        "a.parquet --metrics crps --step 5 --inputs x1,x2 " + QUICK,
        INFERENCE | ROWS | {"step": "--step 10", "max-percent": "--max-percent 5"},
    ),
    "validity": (
        "--metrics zms --sets 20 --rows 30 --resamples 100",
        {
            "metrics": "--metrics rce",
            "nu": "--nu 3",
            "rows": "--rows 40",
            "sets": "--sets 25",
            "resamples": "--resamples 120",
            "confidence": "--confidence 0.5",
            "seed": "--seed 1",
            "error-dist": "--error-dist t6",
        },
    ),
    "check": (
        "a.parquet --fail-on 'zms > 9' --warn-on 'bias > 9' " + QUICK,
        INFERENCE
        | ROWS
        | CLUSTERS
        | WEIGHTS
        | {
            "fail-on": "--fail-on 'zms < 9'",
            "warn-on": "--warn-on 'bias < 9'",
            "metrics": "--metrics mae",
            "exit-zero": ("--fail-on 'zms < 9'", "--exit-zero"),
            "by": "--by sex",
            "subsample": "--subsample 40",
        },
    ),
    "mcmd": (
        "a.parquet c.parquet --inputs x1,x2 --permutations 19",
        KERNEL
        | {
            "lambda-b": "--lambda-b 0.5",
            "squared": "--squared",
            "grid": ("a.parquet c.parquet --inputs x1 --permutations 19", "--grid 3"),
            "solver": "--solver cg",
            "at": "--at c.parquet",
            "permutations": "--permutations 39",
            "no-null": "--no-null",
            "filter": "--filter age>30",
            "seed": "--seed 1",
        },
    ),
    "mmd": (
        "a.parquet c.parquet --permutations 19",
        {
            "joint": ("--inputs x1,x2", "--joint"),
            "kernel-y": "--kernel-y laplace",
            "gamma-y": "--gamma-y 3",
            "kernel-x": ("--inputs x1,x2 --joint", "--kernel-x laplace"),
            "gamma-x": ("--inputs x1,x2 --joint", "--gamma-x 3"),
            "standardize": "--standardize none",
            "permutations": "--permutations 39",
            "no-null": "--no-null",
            "filter": "--filter age>30",
            "seed": "--seed 1",
        },
    ),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write predictions with columns for every option: two models of the same rows, other rows, and a broken one."""
    folder = tmp_path_factory.mktemp("options")
    for name, seed, spread in (("a", 0, 1.0), ("b", 0, 1.4), ("c", 1, 1.0)):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(N, 2))
        std = rng.uniform(0.5, 2, N)
        parts = {
            "id": np.arange(N) + N * seed,
            "y": x[:, 0] + std * rng.normal(size=N),
            "mean": x[:, 0] + 0.1 * (name == "b") * rng.normal(size=N),
            "std": spread * std,
            "x1": x[:, 0],
            "x2": x[:, 1],
            "age": rng.integers(10, 60, N),
            "sex": rng.choice(["f", "m"], N),
            "patient": rng.integers(0, 12, N),
            "day": np.datetime64("2026-01-01") + np.arange(N) + N * seed,
            "later": np.datetime64("2026-01-01") + 2 * np.arange(N) + N * seed,
            "lead": np.ones(N, dtype=int),
            "w": rng.uniform(0.1, 3, N),
        }
        write(folder / f"{name}.parquet", parts)
        wrong = np.where(parts["age"] > 30, 5.0, 1.0) * parts["y"]
        write(folder / "wrong.parquet", parts | {"y": wrong + 3 * (x[:, 0] > 1)})
        write(folder / "equal.parquet", {"y": parts["y"], "lo": x[:, 0], "hi": x[:, 0]})
        write(folder / "intervals.parquet", {"y": parts["y"], "lo": x[:, 0] - std, "hi": x[:, 0] + 2 * std})
        (folder / "one").mkdir(exist_ok=True)
        (folder / "two").mkdir(exist_ok=True)
        write(folder / "one" / f"{name}.parquet", parts)
        write(folder / "two" / f"{name}.parquet", {key: each[: N // 2] for key, each in parts.items()})
    return folder


def without(arguments, option):
    """Return arguments without an option and its value."""
    return re.sub(rf"{option} \S+", "", arguments) if option else arguments


def shown(ended):
    """Return the exit code and what is computed, without settings and the options of each result."""
    if not ended.out:
        return ended.code, ended.err
    report = json.loads(ended.out)
    results = [{key: value for key, value in each.items() if key != "options"} for each in report["results"]]
    return ended.code, results, {key: report.get(key) for key in SHOWN[1:]}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_changes_what_is_computed(calcheck, files, monkeypatch, command):
    monkeypatch.chdir(files)
    base, options = COMMANDS[command]

    @cache
    def run(arguments):
        return shown(calcheck(command, *shlex.split(arguments), "--format", "json"))

    ignored = []
    for name, entry in options.items():
        extra, added = ("", entry) if isinstance(entry, str) else entry
        before = extra if ".parquet" in extra else f"{base} {extra}"
        after = run(f"{without(before, CONTRADICTED.get(name))} {added}")
        assert after[0] != 2, (name, after[1])
        if after == run(before):
            ignored.append(name)
    assert ignored == []


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("cce a.parquet --embedding x1 --inputs x2", "--embedding and --inputs both set what calibration"),
        ("zms a.parquet --param loc=mean", "--param needs --dist"),
        ("zms a.parquet --truth b.parquet --target y", "--truth replaces --target. Pass only one"),
        ("zms a.parquet --weights sex", "column 'sex' does not hold numbers, which --weights needs"),
        ("ece a.parquet --alpha 3", "--alpha must be 1 or 2, got 3"),
        ("cce a.parquet --inputs x1 --estimator unbiased --lambda-model 0.2", "requires equal regularizers, got two"),
        ("slices a.parquet --by :5", "--by must be COLUMN, or COLUMN:HOW"),
        ("slices a.parquet --depth 99", "--depth must be"),
        ("reject a.parquet --step 0.001", "gives more than 1,000 steps: pass a larger --step"),
        ("validity --metrics ence", "--metrics takes metrics with an interval and a known value of right models"),
        ("monitor a.parquet --time age --window 5 c.parquet --horizon sex", "horizons are whole numbers of steps"),
        ("convert a.parquet", "convert needs an output file: pass -o PATH"),
        (
            "recalibrate equal.parquet --lower lo --upper hi --level 0.8 --method conformal --relative",
            "have the width 0",
        ),
        ("zms a.parquet --memory 1", "--memory"),
        ("mae a.parquet --filter age", "--filter"),
    ],
)
def test_what_options_cannot_do_is_refused(calcheck, files, monkeypatch, command, message):
    monkeypatch.chdir(files)
    assert message in calcheck(*shlex.split(command)).refused()
