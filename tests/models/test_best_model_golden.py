"""The sentence of a comparison: its numbers by hand, its p-values, and that equal models are not told apart."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import calcheck as library
from calcheck.inference.p_values_and_verdicts import holm
from calcheck.models.best_model import best_model
from calcheck.reports import Result

N = 400


def differences(p_values, order):
    first, *others = order
    return [
        Result(
            metric="crps", summary="", options={}, slice={"model": name, "minus": first}, unit="y", value=1.0, low=0.5,
            high=1.5, p_value=p_values[name],
        )
        for name in others
    ]  # fmt: skip


def test_percentages_are_of_the_score_of_the_other_model():
    found = best_model("crps", {"a": 5.0, "b": 4.0}, lambda order: differences({"a": 0.01}, order), 0.95)
    assert found is not None
    assert found.model == "b"
    (other,) = found.others
    assert (other.model, other.difference, other.percent, other.percent_low, other.percent_high) == ("a", 1, 20, 10, 30)
    assert other.significant
    assert found.text == "b is best by crps: 20.0 % below a (10.0 to 30.0 %; p 0.01)"


def test_differences_that_are_not_shown_are_named_last():
    scores = {"a": 4.0, "b": 5.0, "c": 5.5}
    found = best_model("crps", scores, lambda order: differences({"b": 0.04, "c": 0.001}, order), 0.95)
    assert found is not None
    assert [each.p_value for each in found.others] == pytest.approx([0.08, 0.003])
    assert found.text == (
        "a is best by crps: 18.2 % below c (9.1 to 27.3 %; p < 0.01);"
        " not shown: 20.0 % below b (10.0 to 30.0 %; p 0.08)"
    )


def test_other_models_that_are_not_shown_to_differ_are_named():
    p_values = {("b", "a"): 0.001, ("c", "a"): 0.001, ("c", "b"): 0.2}

    def of_pairs(order):
        return differences({name: p_values[name, order[0]] for name in order[1:]}, order)

    found = best_model("crps", {"c": 6.0, "a": 4.0, "b": 5.0}, of_pairs, 0.95)
    assert found is not None
    assert found.alike == (("b", "c"),)
    assert found.text.endswith("; not shown to differ: b and c")
    p_values["c", "b"] = 0.01  # times 3 pairs
    assert best_model("crps", {"c": 6.0, "a": 4.0, "b": 5.0}, of_pairs, 0.95).alike == ()


def test_scores_that_can_be_negative_have_no_percentages():
    found = best_model("nll", {"a": -0.5, "b": 0.5}, lambda order: differences({"b": 0.5}, order), 0.95)
    assert found is not None
    assert found.others[0].percent is None
    assert found.text == "a has the lowest nll, which is not shown to be lower: 1 below b (0.5 to 1.5; p 0.5)"


def test_equal_models_have_no_best():
    assert best_model("crps", {"a": 1.0, "b": 1.0}, lambda order: differences({}, order), 0.95) is None


def test_equal_models_rarely_differ_significantly():
    """The best of five is compared with four others, the worst among them: that is the range of all."""
    scores = np.random.default_rng(0).normal(size=(4000, 5))
    z = (scores - scores.min(axis=1, keepdims=True)) / np.sqrt(2)
    p = np.sort(2 * norm_sf(z), axis=1)[:, :4]
    shown = [holm(line, tests=10)[0] <= 0.05 for line in p]
    assert 0.02 < np.mean(shown) < 0.055


def norm_sf(z):
    from scipy.stats import norm

    return norm.sf(z)


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(1)
    mean, y = rng.normal(size=N), rng.normal(size=N)
    base = pd.DataFrame({"y": mean + y, "mean": mean, "std": 1.0})
    return {
        "noisy": base.assign(mean=mean + rng.normal(size=N)),
        "right": base,
        "near": base.assign(mean=mean + 0.01 * rng.normal(size=N)),
    }


def test_the_best_model_is_compared_with_all_others_wherever_it_stands(models):
    (best,) = library.compare(models, ["mae"]).best
    errors = {name: np.abs(each["y"] - each["mean"]) for name, each in models.items()}
    assert best.model == min(errors, key=lambda name: errors[name].mean())
    assert [each.model for each in best.others][-1] == "noisy"
    for each in best.others:
        apart = errors[each.model] - errors[best.model]
        assert_allclose([each.difference, each.percent], [apart.mean(), 100 * apart.mean() / errors[each.model].mean()])
        error = 1.96 * apart.std() / np.sqrt(N)
        assert_allclose([each.low, each.high], [apart.mean() - error, apart.mean() + error], atol=0.2 * error)
    assert [each.significant for each in best.others] == [False, True]


def test_reports_end_with_the_sentence(calcheck, tmp_path, models):
    paths = [tmp_path / f"{name}.parquet" for name in models]
    for path, frame in zip(paths, models.values(), strict=True):
        frame.to_parquet(path)
    arguments = ["compare", *paths, "--metrics", "crps,mae"]
    (best,) = json.loads(calcheck(*arguments, "--format", "json").out)["best"]
    assert best["metric"] == "crps"
    for format_ in ("markdown", "html"):
        assert best["text"] in calcheck(*arguments, "--format", format_).out
    assert best["text"] in " ".join(calcheck(*arguments, "--table").out.split())


def test_each_data_set_has_a_sentence(models):
    found = library.compare({"one": models, "two": models}, ["crps"]).best
    assert [each.dataset for each in found] == ["one", "two"]
