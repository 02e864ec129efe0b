"""Which model would be best at new inputs."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import calcheck
from calcheck.render.new_inputs import answer_text, label_text
from calcheck.reports.conclusion import Effect, InputsDiffer, NewInputs, RowsBeyond

FEW = ("--replicates", 0, "--resamples", 0, "--permutations", 0, "--metrics", "crps")


@pytest.fixture(scope="module")
def frames():
    """Return two models on 200 rows, of which each is right on its side of 0, and 80 new inputs: most are above 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    frame = pd.DataFrame({"a": x, "y": rng.normal(size=200), "std": 1.0})
    wrong = 1.5 * (2 * rng.integers(0, 2, size=200) - 1)
    models = {
        "low": frame.assign(mean=np.where(x < 0.3, 0, wrong)),
        "high": frame.assign(mean=np.where(x < 0.3, wrong, 0)),
    }
    return models, pd.DataFrame({"a": 1 + 0.5 * rng.normal(size=80)})


@pytest.mark.slow
def test_a_model_is_best_where_the_new_inputs_are_and_another_one_elsewhere(frames):
    """With errors of 0 and 1.5 in the mean, the CRPS are .564 and 1.02: a difference of .46 where one is right."""
    models, new = frames
    report = calcheck.compare(models, "crps", inputs=["a"], on=new, replicates=0, permutations=0)
    assert report.best[0].model == "low"
    best = report.on.best
    assert (best.model, best.others[0].model, best.others[0].significant) == ("high", "low", True)
    share = (new["a"] > 0.3).mean()
    assert best.others[0].low < 0.46 * (2 * share - 1) < best.others[0].high
    assert {name: each.answer for name, each in report.on.models.items()} == {"low": "no", "high": "not-shown"}
    alone = calcheck.evaluate(models["low"], "crps", inputs=["a"], on=new, replicates=0, resamples=0).conclusion.on
    assert report.on.models["low"] == alone


def test_the_command_has_the_answers_of_all_models_and_refuses_what_does_not_fit(calcheck, frames, tmp_path):
    models, new = frames
    for name, frame in models.items():
        frame[:80].to_csv(tmp_path / f"{name}.csv", index=False)
    models["high"][:80].assign(a=1.0).to_csv(tmp_path / "other.csv", index=False)
    new[:20].to_csv(tmp_path / "new.csv", index=False)
    low, high, other, on = (tmp_path / f"{name}.csv" for name in ("low", "high", "other", "new"))
    arguments = ("compare", low, high, *FEW, "--on", on)
    told = calcheck(*arguments, "--inputs", "a").out
    assert re.search(r"And on new.csv\?  high\n  crps    high is best by crps: [1-9][\d.]* % below low", told)
    assert all(f"\n  {line}" in told for line in ("low     NO: ×", "high    NOT SHOWN: ×", "new "))
    assert re.search(r"calcheck evaluate \S+ --inputs a --on \S+new.csv", re.sub(r" \\\n +", " ", told))
    assert "targets there" not in told
    new[:20].assign(y=0.0).to_csv(on, index=False)
    assert "targets there are not used" in calcheck(*arguments, "--inputs", "a").out
    assert "also pass --inputs or --embedding" in calcheck(*arguments).refused()
    assert (
        "low and other have different inputs"
        in calcheck("compare", low, other, *FEW, "--inputs", "a", "--on", on).refused()
    )
    assert "--weights" in calcheck(*arguments, "--inputs", "a", "--weights", "std").refused()
    assert "the file of the tested rows" in calcheck("compare", low, high, *FEW, "--inputs", "a", "--on", low).refused()


def test_a_no_names_the_effect_that_makes_it_a_no():
    """A factor within the tolerance is named only where the answer is not no."""
    size = Effect(topic="size", value=0.93, low=0.88, high=1.02, within=True, text="")
    bias = Effect(topic="bias", value=-0.14, low=-0.22, high=-0.07, within=False, text="")
    along = Effect(topic="inputs", kind="scale", value=0.5, low=0.3, within=False, text="off by at least 30 %")
    told = {
        ("yes", (size,)): "YES within 20 %: ×0.93 (0.88 to 1.02)",
        ("no", (size, bias)): "NO: mean error -0.14 std (-0.22 to -0.07)",
        ("no", (size, bias, along)): "NO: mean error -0.14 std (-0.22 to -0.07), off by at least 30 %",
    }
    beyond, differ = RowsBeyond(share=0.0, low=0.0, high=0.1, rows=0), InputsDiffer(p=1.0)
    for (answer, effects), text in told.items():
        on = NewInputs(answer=answer, effects=effects, tolerance=0.2, rows=9, beyond=beyond, inputs_differ=differ)
        assert answer_text(on) == text


def test_the_rows_to_label_are_named_and_why_there_are_no_more():
    beyond, differ = RowsBeyond(share=1.0, low=0.9, high=1.0, rows=9), InputsDiffer(p=1.0)
    on = NewInputs(answer="no", effects=(), rows=9, beyond=beyond, inputs_differ=differ, no_label="all lie beyond")
    assert label_text(on) == "no rows to label: all lie beyond"
    assert label_text(replace(on, label=(3,))).endswith("row 3 (--pointwise); no more rows to label: all lie beyond")
