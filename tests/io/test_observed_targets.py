"""Targets that were observed with noise, clipped or rounded, are read with the distributions of what was observed."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import calcheck as library
from calcheck.distributions.row_random import RowRandom
from calcheck.errors import CalcheckError

N = 200


def frame(seed=0):
    """A right model whose targets have noise, are clipped at 1 and rounded to halves."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=N), np.exp(0.3 * rng.normal(size=N))
    noise = 0.5 * std
    y = mean + std * rng.normal(size=N) + noise * rng.normal(size=N)
    y = np.floor(np.minimum(y, 1) / 0.5 + 0.5) * 0.5
    return pd.DataFrame({"y": y, "mean": mean, "std": std, "noise": noise, "top": np.ones(N)})


OBSERVED = {"target_std": "noise", "clip": ",top", "rounded": 0.5}
"""How the targets of the frame were observed."""
EVALUATED = {"metrics": ["zms", "crps", "nll", "width-factor"], "replicates": 99, "resamples": 0}


def values(report):
    return {result.metric: result.value for result in report.results}


def test_columns_numbers_and_arrays_say_the_same():
    data = frame()
    expected = values(library.evaluate(data, **OBSERVED, **EVALUATED))
    arrays = {"target_std": data["noise"].to_numpy(), "clip": (None, 1.0), "rounded": np.full(N, 0.5)}
    assert values(library.evaluate(data, **arrays, **EVALUATED)) == expected
    assert values(library.evaluate(data, **EVALUATED)) != expected


@pytest.mark.parametrize("form", ["moments", "samples", "quantiles", "intervals", "counts"])
def test_every_kind_of_prediction_has_verdicts_for_observed_targets(form):
    data, rng = frame(1), np.random.default_rng(1)
    mean, std = data["mean"].to_numpy(), data["std"].to_numpy()
    observed = dict(OBSERVED)
    predictions = {"mean": mean, "std": std}
    if form == "samples":
        predictions = {"samples": mean[:, None] + std[:, None] * rng.normal(size=(N, 20))}
    elif form == "quantiles":
        predictions = {"quantiles": {0.05: mean - 1.645 * std, 0.5: mean, 0.95: mean + 1.645 * std}}
    elif form == "intervals":
        predictions = {"lower": mean - 1.645 * std, "upper": mean + 1.645 * std, "level": 0.9}
    y = data["y"].to_numpy()
    if form == "counts":
        rate = np.exp(1 + 0.3 * mean)
        predictions = {"dist": "poisson", "param": {"rate": rate}}
        y, observed = np.minimum(rng.poisson(rate), 4), {"clip": (None, 4)}
    else:
        observed["target_std"], observed["clip"] = data["noise"].to_numpy(), (None, 1)
    report = library.evaluate(y=y, **predictions, **observed, metrics=["coverage", "width-factor"], replicates=99)
    assert {result.metric: result.verdict for result in report.results} == {"coverage": "pass", "width-factor": "pass"}


def test_batches_and_states_give_the_values_of_all_rows(calcheck, tmp_path):
    data = frame()
    path = tmp_path / "preds.parquet"
    data.to_parquet(path, row_group_size=50)
    options = ["--target-std", "noise", "--clip", ",top", "--rounded", "0.5", "--metrics", "zms,crps,nll"]
    whole = json.loads(calcheck("evaluate", path, *options, "--no-null", "--resamples", "0", "--format", "json").out)
    state = tmp_path / "state.npz"
    calcheck("evaluate", path, *options, "--no-null", "--save-state", state)
    merged = json.loads(calcheck("evaluate", state, "--resamples", "0", "--format", "json").out)
    for one, other in zip(whole["results"], merged["results"], strict=True):
        assert other["value"] == pytest.approx(one["value"], rel=1e-9)
    assert whole["input"]["columns"]["clip"] == ",top"
    second = tmp_path / "second.npz"
    calcheck("evaluate", path, *options[:2], "--clip", "-9,top", *options[4:], "--no-null", "--save-state", second)
    assert "observed targets (--clip) differ" in calcheck("evaluate", state, second).err


def test_inspect_shows_the_options_and_converts_what_was_predicted(calcheck, tmp_path):
    path = tmp_path / "preds.csv"
    frame().to_csv(path, index=False)
    options = ("--target-std", "noise", "--clip", "-9,top", "--rounded", "0.5")
    text = calcheck("inspect", path, *options).out
    assert "--target-std noise --clip -9,top --rounded 0.5" in text
    calcheck("inspect", path, *options, "-o", tmp_path / "out.csv")
    assert (pd.read_csv(tmp_path / "out.csv")["std"] == frame()["std"]).all()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"clip": (None, 0.5)}, "y must lie within the limits of --clip"),
        ({"rounded": 0.3}, "y must be multiples of --rounded"),
        ({"rounded": -1}, "rounded must be positive"),
        ({"clip": "5"}, "clip takes two limits"),
        ({"clip": (2, 1)}, "clip must be a lower limit and a larger upper limit"),
        ({"target_std": "absent"}, "there is no column 'absent'"),
        ({"target_std": -1}, "target-std must be nonnegative"),
        ({"clip": (None, "high")}, "there is no column 'high'"),
    ],
)
def test_targets_that_cannot_be_observed_and_unknown_columns_are_refused(columns, words):
    with pytest.raises(CalcheckError, match=words):
        library.read(frame(), **columns).predictions()


TWO = {"y": np.zeros((N, 2)), "mean": np.zeros((N, 2)), "std": np.ones((N, 2))}


def test_each_of_several_targets_is_observed_by_itself_or_all_in_the_same_way():
    data, options = frame(), {name: OBSERVED[name] for name in ("clip", "rounded")}
    one = library.read(data, **options).predictions()
    columns = {name: np.stack([data[name], data[name]], axis=1) for name in ("y", "mean", "std")}
    same = library.read(**columns, clip=",1", rounded="0.5").predictions()
    own = library.read(**columns, clip=",1,-9,9", rounded="0.5,0.25", target_std="0,0.4").predictions()
    again = library.read(**columns, clip=",1,-9,9", rounded="0.5,0.25", target_std="0,0.4", only="y_2").predictions()
    for rows, place in ((same, 0), (same, 1), (own, 0)):
        found = rows.of_target(place).distributions()
        assert (found.cdf(one.y) == one.distributions().cdf(one.y)).all()
    assert (own.of_target(1).distributions().cdf(one.y) == again.distributions().cdf(one.y)).all()
    alone = library.read(data, clip=(-9, 9), rounded=0.25, target_std=0.4).predictions()
    assert (again.distributions().cdf(one.y) == alone.distributions().cdf(one.y)).all()


def test_noise_makes_correlations_smaller_and_draws_keep_those_that_clips_leave():
    rng = np.random.default_rng(3)
    zero, root = np.zeros((N, 2)), np.tile([[1, 0], [0.6, 0.8]], (N, 1, 1))
    joint = {"y": zero, "dist": "joint-gaussian:cholesky", "param": {"loc": zero, "cholesky": root.reshape(N, 4)}}
    noisy = library.read(**joint, target_std="1,0.5").predictions().distributions()
    covariance = noisy.cholesky @ np.swapaxes(noisy.cholesky, 1, 2)
    assert covariance[0].ravel() == pytest.approx([2, 0.6, 0.6, 1.25])
    draws = np.einsum("nij,nmj->nmi", root, rng.normal(size=(N, 20, 2)))
    clipped = library.read(y=zero, samples=draws, clip=",0.5,-1,").predictions().distributions()
    expected = np.stack([np.minimum(draws[..., 0], 0.5), np.maximum(draws[..., 1], -1)], axis=2)
    assert (clipped.draws == expected).all()
    limited = library.read(**joint, target_std="1,0.5", clip=",1,,").predictions().distributions()
    drawn, before = (each.sample(RowRandom(np.arange(N, dtype=np.uint64)), 3) for each in (limited, noisy))
    assert_allclose(drawn, np.minimum(before, [1, np.inf]))


def test_numbers_of_targets_that_differ_and_errors_alone_are_refused():
    with pytest.raises(CalcheckError, match="--target-std is given for 3 targets, and there are 2"):
        library.read(**TWO, target_std="1,2,3").predictions()
    with pytest.raises(CalcheckError, match="clip takes two limits"):
        library.read(**TWO, clip="0,1,2").predictions()
    with pytest.raises(CalcheckError, match="need targets"):
        library.read(error=np.zeros(N), std=np.ones(N), clip=(None, 1)).predictions()


@pytest.mark.slow
def test_recalibration_corrects_the_prediction_and_not_the_observation():
    """The true standard deviation is twice the predicted one, and the noise hides most of it."""
    rng = np.random.default_rng(4)
    mean, noise = rng.normal(size=N), 1.0
    y = np.minimum(mean + 2 * rng.normal(size=N) + noise * rng.normal(size=N), 2)
    given = {"target_std": noise, "clip": (None, 2)}
    found = library.recalibrate(y=y, mean=mean, std=np.ones(N), **given, metrics="zms", replicates=0)
    (step,) = found.map.steps
    assert step.factor == pytest.approx(2, rel=0.2)
    assert any("only scale and shift-scale are fitted" in each.reason for each in found.skipped)
    after = [each.value for each in found.results if each.metric == "zms" and each.slice["stage"] == "after"]
    assert after == [pytest.approx(1, abs=0.2)]
    draws = mean[:, None] + rng.normal(size=(N, 20))
    found = library.recalibrate(None, "scale", y=y, samples=draws, **given, metrics="zms", replicates=0)
    assert found.map.steps[0].factor == pytest.approx(2, rel=0.15)


def hints(data=None, **columns):
    report = library.evaluate(data, metrics="zms", replicates=39, **columns)
    return [effect.text for effect in report.conclusion.effects if effect.topic == "targets"]


@pytest.mark.parametrize(
    ("recorded", "option", "words"),
    [
        (lambda y: y, {}, ""),
        (lambda y: np.round(y, 2), {}, ""),
        (lambda y: np.minimum(y, 1), {}, "of 200 targets are exactly the largest, 1: if .* pass --clip ,1"),
        (lambda y: np.maximum(y, -2), {}, "exactly the smallest, -2: if they are clipped there, pass --clip -2,"),
        (lambda y: np.round(y * 2) / 2, {}, "all targets are multiples of 0.5: if .* pass --rounded 0.5"),
        (lambda y: np.minimum(y, 1), {"clip": (None, 1)}, ""),
        (lambda y: np.round(y * 2) / 2, {"rounded": 0.5}, ""),
    ],
)
def test_targets_at_limits_and_on_grids_are_noticed_in_the_conclusion(recorded, option, words):
    rng = np.random.default_rng(2)
    mean, std = rng.normal(size=N), np.exp(0.3 * rng.normal(size=N))
    (text,) = hints(y=recorded(mean + std * rng.normal(size=N)), mean=mean, std=std, **option) or [""]
    assert re.search(words, text) if words else text == ""


@pytest.mark.parametrize("side", ["min", "max"])
def test_the_limit_in_a_notice_is_exact_enough_for_the_targets_at_it(tmp_path, monkeypatch, side):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    mean, std = rng.normal(size=N), np.exp(0.3 * rng.normal(size=N))
    for limit in (1.23456789e-3, 9.87654321e-3):  # above and below what is written
        y = {"min": np.maximum, "max": np.minimum}[side](mean + std * rng.normal(size=N), limit)
        pd.DataFrame({"y": y, "mean": mean, "std": std}).to_csv("a.csv", index=False)
        (option,) = set(re.findall(r"pass (--clip \S+)", " ".join(hints("a.csv"))))
        exact = "{!r}," if side == "min" else ",{!r}"
        own, same = (
            values(library.evaluate("a.csv", "nll", clip=text, replicates=0, resamples=0))["nll"]
            for text in (option.split()[1], exact.format(limit))
        )
        assert_allclose(own, same, rtol=1e-5)


def test_unused_measurement_errors_are_noticed_by_their_names():
    data = pd.DataFrame({"y": np.arange(40.0) % 7.3, "mean": 3.0, "std": 2.0, "sigma_y": 0.5})
    assert hints(data) == [
        "the column 'sigma_y' is not used: pass --target-std sigma_y if it is the measurement error of the targets"
    ]
    assert hints(data, target_std="sigma_y") == []


def test_counts_and_ensembles_with_the_same_limits_are_not_noticed():
    rng = np.random.default_rng(2)
    rate = np.exp(rng.normal(size=N))
    assert hints(y=rng.poisson(rate), dist="poisson", param={"rate": rate}) == []
    rain = np.maximum(rng.normal(size=(N, 21)), 0)
    assert hints(y=rain[:, 0], samples=rain[:, 1:]) == []


def test_the_next_command_has_the_options_that_a_notice_names(calcheck, tmp_path):
    rng = np.random.default_rng(2)
    mean, std = rng.normal(size=N), np.exp(0.3 * rng.normal(size=N))
    data = pd.DataFrame({"y": np.clip(mean + std * rng.normal(size=N), -1, 1), "mean": mean, "std": std})
    data.assign(sigma_y=0.5).to_csv(tmp_path / "a.csv", index=False)
    shown = " ".join(calcheck("evaluate", tmp_path / "a.csv").out.replace("\\", "").split())
    assert f"calcheck evaluate {tmp_path / 'a.csv'} --target-std sigma_y --clip -1,1" in shown


def test_options_that_are_given_are_not_proposed_and_clipped_intervals_have_no_power_by_normal_laws():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=N)
    y = np.minimum(mean + rng.normal(size=N), 0.5)
    data = pd.DataFrame({"y": y, "lower": mean - 1.645, "upper": mean + 1.645})
    options = {"level": 0.9, "replicates": 39, "resamples": 0}
    plain, clipped = (library.evaluate(data, **options, **more).conclusion for more in ({}, {"clip": (None, 0.5)}))
    texts = [[each.text for each in found.effects] for found in (plain, clipped)]
    assert any("--clip" in text for text in texts[0])
    assert not any("--clip" in text for text in texts[1])
    assert plain.power
    assert not clipped.power
