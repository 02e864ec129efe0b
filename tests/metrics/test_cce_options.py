"""Options of CCE: defaults, validation, and their effect on the report."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Samples
from calcheck.errors import DataError, OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics.cce import Cce
from calcheck.predictions import InMemory, Predictions
from tests.helpers.shorthand import cce, gaussian_case, texts

PLAIN = Run(replicates=0)
X, Y, RIGHT = gaussian_case(np.random.default_rng(0), 60, 4)


def details(*, x=X, predictive=RIGHT, has_embedding=True, **options):
    rows = Predictions(y=Y, predictive=predictive, x=x, has_embedding=has_embedding)
    (result,) = evaluate(InMemory(rows), [Cce(**options)], run=PLAIN).results
    return result.details


def test_defaults_depend_on_the_kind_of_inputs():
    embedding = details()["inputs"]
    assert (embedding["kernel"], embedding["normalize"], embedding["gamma"]) == ("polynomial", "l2", 1.0)
    assert (embedding["degree"], embedding["coef0"]) == (3, 1.0)
    inputs = details(has_embedding=False)["inputs"]
    assert (inputs["kernel"], inputs["normalize"], inputs["gamma"]) == ("polynomial", "standardize", 0.25)
    single = details(x=X[:, :1])["inputs"]
    assert (single["kernel"], single["normalize"]) == ("rbf", "none")
    assert_allclose(single["gamma"], 1 / (2 * X[:, 0].var(ddof=1)))
    assert_allclose(details()["targets"]["gamma"], 1 / (2 * Y.var(ddof=1)))


def test_the_kernel_of_the_paper_is_available():
    paper = details(normalize="none", gamma_x="1/d")["inputs"]
    assert (paper["normalize"], paper["gamma"]) == ("none", 0.25)
    assert details(kernel_x="rbf")["inputs"]["normalize"] == "l2"


def test_the_model_is_exact_for_parameters_and_all_draws_for_samples():
    samples = Samples(RIGHT.sample(np.random.default_rng(1), 5))
    assert details()["model"]["draws"] == "exact"
    assert details(predictive=samples)["model"]["draws"] == "all"
    with pytest.raises(OptionError, match="exact needs parameters"):
        details(predictive=samples, draws="exact")
    with pytest.raises(OptionError, match="all needs saved samples"):
        details(draws="all")
    with pytest.raises(OptionError, match="5 saved samples per row, got 6"):
        details(predictive=samples, draws=6)


def test_trials_report_mean_and_deviation():
    found = details(draws=1, trials=4)["trials"]
    assert len(found["values"]) == 4
    assert_allclose(found["std"], np.std(found["values"], ddof=1))
    assert len(set(found["values"])) == 4  # new draws in each trial
    single = [details(draws=1), details(draws=1)]
    assert single[0] == single[1]
    assert "trials" not in single[0]


def test_values_of_trials_do_not_depend_on_their_number():
    rows = Predictions(y=Y, predictive=RIGHT, x=X)
    (one,), (many,) = (evaluate(InMemory(rows), [Cce(draws=1, trials=trials)], run=PLAIN).results for trials in (2, 5))
    assert_allclose(many.details["trials"]["values"][:2], one.details["trials"]["values"], rtol=1e-9)


def test_repeating_all_saved_draws_gives_the_same_values():
    draws = RIGHT.sample(np.random.default_rng(2), 3)
    assert_allclose(cce(X, Y, Samples(np.tile(draws, 4))), cce(X, Y, Samples(draws)), rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lambda_": 0.0}, "--lambda must be a positive number, got 0.0"),
        ({"lambda_model": -1.0}, "--lambda-model must be a positive number, got -1.0"),
        ({"gamma_x": float("nan")}, "--gamma-x must be a positive number, got nan"),
        ({"gamma_y": float("inf")}, "--gamma-y must be a positive number, got inf"),
        ({"degree": 0}, "degree must be at least 1, got 0"),
        ({"coef0": -0.5}, "coef0 must be a number >= 0, got -0.5"),
        ({"draws": 0}, "draws must be at least 1 and at most 100,000, got 0"),
        ({"draws": 1, "trials": 0}, "trials must be at least 1 and at most 10,000, got 0"),
        ({"trials": 3}, "--trials 3 requires a number of draws per row"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(OptionError, match=message):
        Cce(**options)


def test_degenerate_data_are_refused():
    with pytest.raises(DataError, match=r"targets are constant \(2\)"):
        cce(X, np.full(60, 2.0), RIGHT)
    with pytest.raises(DataError, match="at least 2 rows"):
        cce(X[:1], Y[:1], RIGHT.take(slice(0, 1)))
    with pytest.raises(DataError, match="needs inputs that vary"):
        cce(np.ones((60, 1)), Y, RIGHT)


def test_target_kernels_that_need_too_many_features_are_refused(monkeypatch):
    from calcheck.embeddings import rbf as features

    monkeypatch.setattr(features, "MAX_FEATURES", 50)  # targets that exceed the real maximum take long
    with pytest.raises(DataError, match=r"--gamma-y 1e\+09 is too narrow for these targets"):
        cce(X, Y, RIGHT, gamma_y=1e9)
    monkeypatch.setattr(features, "MAX_FEATURES", 70)
    with pytest.raises(DataError, match=r"predictions spread too far .* in the unit of the targets"):
        cce(X, Y, RIGHT, gamma_y=1e9, draws=500)


def test_a_nearly_constant_input_kernel_gives_a_warning():
    """On unit-norm embeddings of 400 dimensions (x.x'/d + 1)^3 is nearly constant: dof is near 1."""
    x = np.random.default_rng(3).normal(size=(60, 400))
    rows = Predictions(y=Y, predictive=RIGHT, x=x)
    (blind,) = evaluate(InMemory(rows), [Cce(gamma_x="1/d")], run=PLAIN).results
    assert blind.details["dof"] < 1
    assert any("marginal test" in warning and "--normalize" in warning for warning in texts(blind.warnings))
    (seeing,) = evaluate(InMemory(rows), [Cce()], run=PLAIN).results
    assert not any("marginal test" in warning for warning in texts(seeing.warnings))


def test_the_unbiased_square_is_not_described_as_a_distance():
    plain, squared = (
        evaluate(InMemory(Predictions(y=Y, predictive=RIGHT, x=X)), [Cce(estimator=estimator)], run=PLAIN)
        .results[0]
        .summary
        for estimator in ("plugin", "unbiased")
    )
    assert "0 means equal distributions" in plain
    assert "1.4" not in squared
    assert "Squared and corrected for noise" in squared


def test_the_report_contains_quantiles_over_rows():
    found = details()
    values = cce(X, Y, RIGHT)
    assert found["rows"] == 60
    assert_allclose(found["quantiles"]["median"], np.median(values))
    assert_allclose(found["quantiles"]["max"], values.max())


def test_rows_are_listed_from_the_worst_and_from_the_best():
    rows = Predictions(y=Y, predictive=RIGHT, x=X, id=np.arange(100, 160), columns={"note": np.full(60, "a")})
    (result,) = evaluate(InMemory(rows), [Cce()], run=PLAIN, worst=2, best=3).results
    order = np.argsort(cce(X, Y, RIGHT))
    assert [row["id"] - 100 for row in result.details["worst"]] == order[::-1][:2].tolist()
    assert [row["row"] for row in result.details["best"]] == order[:3].tolist()
    assert result.details["worst"][0]["note"] == "a"


def test_a_subsample_is_reproducible():
    rows = Predictions(y=Y, predictive=RIGHT, x=X)
    reports = [evaluate(InMemory(rows), [Cce()], run=PLAIN, subsample=30) for _ in range(2)]
    assert reports[0] == reports[1]
    assert reports[0].input.n == 30
    with pytest.raises(OptionError, match="between 1 and the number of rows, 60, got 61"):
        evaluate(InMemory(rows), [Cce()], subsample=61)
