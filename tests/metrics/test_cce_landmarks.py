"""CCE with landmarks: invariances, the number of landmarks, errors, and refused options."""

from dataclasses import replace
from threading import Event

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calcheck import read
from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.embeddings import nystroem
from calcheck.embeddings.landmarks import flops, sample_rows, weighted_leverage_sample
from calcheck.embeddings.ridge import approximation_reason
from calcheck.errors import DataError, NumericalError, OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Limits, Run, prefetch
from calcheck.kernels.kernel_functions import Polynomial, Rbf
from calcheck.metrics.cce import Cce
from calcheck.models.alignment import Model
from calcheck.predictions import InMemory, Predictions
from calcheck.studies.sweep.study import parse, sweep
from tests.helpers.files import limited, write
from tests.helpers.shorthand import gaussian_case, texts

N, D = 240, 5
X, Y, RIGHT = gaussian_case(np.random.default_rng(0), N, D)
WRONG = Gaussian(RIGHT.loc, 0.6 * RIGHT.scale)
SMALL = Limits(full_validation_rows=0, validation_rows=70, evaluated_rows=150, pilot_rows=100, min_landmarks=8)
"""Evaluate some rows, validate fewer, and choose the number of landmarks on few, as for a million rows."""


def small(**settings):
    return Run(limits=SMALL, **settings)


PLAIN = small(replicates=0)


def rows_of(x=X, y=Y, predictive=WRONG, **parts):
    return Predictions(y=y, predictive=predictive, x=x, **parts)


def result(rows, run=PLAIN, *, worst=0, sink=None, **options):
    source = InMemory(rows) if isinstance(rows, Predictions) else rows
    exact = {"landmarks": None} if options.get("solver") == "cholesky" else {}
    metric = Cce(**{"solver": "nystroem", "landmarks": 30, **exact, **options})
    report = evaluate(source, [metric], run=run, worst=worst, sink=sink)
    assert not report.skipped, report.skipped
    return report.results[0]


def skipped(rows, **options):
    (found,) = evaluate(InMemory(rows), [Cce(**{"solver": "nystroem", **options})], run=PLAIN).skipped
    return found.reason


def solver_of(rows, run=PLAIN, **options):
    return result(rows, run, **options).details["solver"]


def assert_same(found, expected, rtol):
    assert_allclose(found.value, expected.value, rtol=rtol)
    assert_allclose(found.details["solver"]["error"], expected.details["solver"]["error"], rtol=max(1e-6, 100 * rtol))
    assert_allclose(found.details["dof"], expected.details["dof"], rtol=max(1e-6, rtol))


@pytest.mark.parametrize("by", ["uniform", "leverage"])
def test_the_result_does_not_depend_on_the_order_of_rows(by):
    order = np.random.default_rng(1).permutation(N)
    assert_same(result(rows_of().take(order), landmark_sampling=by), result(rows_of(), landmark_sampling=by), 1e-9)


def test_the_result_does_not_depend_on_the_unit_of_targets():
    scaled = Gaussian(1000 * WRONG.loc, 1000 * WRONG.scale)
    for run in (PLAIN, small(replicates=19)):
        expected, found = result(rows_of(), run), result(rows_of(y=1000 * Y, predictive=scaled), run)
        assert_same(found, expected, 1e-8)
        assert found.p_value == expected.p_value


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_the_result_does_not_depend_on_the_block_size(size):
    blocks = replace(PLAIN, limits=replace(SMALL, block_rows=size))
    assert_same(result(rows_of(), blocks), result(rows_of()), 1e-10)


@pytest.mark.parametrize(
    ("normalize", "kernel_x", "gamma_x"),
    [
        ("l2", "polynomial", 1.0),
        ("standardize", "polynomial", "1/d"),
        ("standardize", "rbf", "variance"),
        ("none", "rbf", "variance"),
    ],
)
def test_lazy_inputs_give_the_same_result(tmp_path, normalize, kernel_x, gamma_x):
    parts = {"y": Y, "mean": WRONG.loc, "std": WRONG.scale, "embedding": (X * 3 + 2).astype(np.float32)}
    path = write(tmp_path / "preds.parquet", parts)
    options = {"normalize": normalize, "kernel_x": kernel_x, "gamma_x": gamma_x}
    values, expected = [], result(read(path), run=replace(PLAIN, keep_rows=True), worst=3, **options)
    lazy = limited(read(path), input_bytes=1, batch_bytes=50 * D * 4)
    found = result(lazy, sink=lambda *given: values.append(given[2].columns["cce"]), worst=3, **options)
    assert_same(found, expected, 1e-5)  # single precision, 6e-8, amplified by the powers of a polynomial
    assert found.details["solver"]["precision"] == "float32"
    assert [row["row"] for row in found.details["worst"]] == [row["row"] for row in expected.details["worst"]]
    assert values[0].shape == (N,)


def test_torch_gives_the_same_result():
    pytest.importorskip("torch")
    expected = result(rows_of(), small(replicates=19))
    found = result(rows_of(), small(replicates=19, device="cpu"))
    assert_same(found, expected, 1e-8)
    assert (found.p_value, found.details["solver"]["device"]) == (expected.p_value, "cpu")
    for device in (None, "cpu"):
        assert_same(result(rows_of(), replace(PLAIN, device=device, precision="float32")), expected, 1e-3)


@pytest.mark.parametrize("ridge", [0.1, 1e-3])
def test_the_error_in_single_precision_includes_rounding(ridge):
    """All rows are validated, so that rounding is the only error."""
    limits = replace(SMALL, full_validation_rows=N, evaluated_rows=N)
    exact = result(rows_of(), solver="cholesky", lambda_=ridge).value
    found = result(rows_of(), replace(PLAIN, precision="float32", limits=limits), lambda_=ridge)
    error = found.details["solver"]["error"]
    assert abs(found.value - exact) <= error + 1e-7 * exact
    assert 1e-7 / ridge * exact < error < 1e-5 * exact / ridge
    assert found.details["solver"]["validation_rows"] == N


def test_replicates_depend_on_the_targets_and_not_on_the_run(monkeypatch):
    numbers_drawn = []

    def recorded(self, y, rng, numbers):
        numbers_drawn.append(rng.random(1)[0])
        return ((y, self) for _ in numbers)

    monkeypatch.setattr(Gaussian, "replicates", recorded)
    for rows in (rows_of(), rows_of(), rows_of(y=Y[::-1])):
        result(rows, small(replicates=19))
    first, again, other = np.reshape(numbers_drawn, (3, -1)).tolist()
    assert first == again != other


def test_the_value_estimates_the_mean_over_all_rows():
    """The mean over 150 rows plus a bias correction from 70, compared with the exact mean over 240."""
    exact = result(rows_of(), solver="cholesky")
    found = result(rows_of())
    assert found.value != exact.value
    assert abs(found.value - exact.value) < found.details["solver"]["error"]
    assert (found.details["rows"], found.details["solver"]["mean_rows"]) == (N, 150)
    assert found.details["solver"]["validation_rows"] == 70


def test_every_row_is_evaluated_on_request():
    values = []
    found = result(rows_of(), worst=2, sink=lambda *given: values.append(given[2].columns["cce"]))
    assert_allclose(found.value, result(rows_of()).value, rtol=1e-12)
    assert values[0].shape == (N,)
    assert [row["row"] for row in found.details["worst"]] == np.argsort(values[0])[::-1][:2].tolist()
    exact = []
    result(rows_of(), solver="cholesky", sink=lambda *given: exact.append(given[2].columns["cce"]))
    assert np.corrcoef(values[0], exact[0])[0, 1] > 0.9


def test_every_row_is_tested_if_all_are_evaluated():
    rows, run = [], Run(limits=replace(SMALL, evaluated_rows=N))
    result(rows_of(), run, sink=lambda *given: rows.append(given[2].columns))
    assert set(rows[0]) >= {"cce", "p_value", "significant"}
    order = np.random.default_rng(2).permutation(N)
    result(rows_of().take(order), run, sink=lambda *given: rows.append(given[2].columns))
    assert_allclose(rows[1]["cce"], rows[0]["cce"][order], rtol=1e-7)


def counts(options=None, **about):
    found = solver_of(rows_of(**about), landmarks=None, **(options or {}))
    return found["landmarks"], found["error"]


def test_a_smaller_tolerance_requires_more_landmarks():
    found = [counts({"landmark_error": tolerance}) for tolerance in (0.5, 0.1, 0.001)]
    assert found[0][0] == 8
    assert found[0][0] < found[1][0] < found[2][0] == 150
    assert max(found[1][1], found[2][1]) < found[0][1]
    assert "above --landmark-error" not in str(texts(result(rows_of(), landmarks=None, landmark_error=0.5).warnings))


def test_an_error_too_small_to_change_the_verdict_is_sufficient():
    """With replicates, an error of a tenth of the width of the reference is sufficient."""
    rows, hard = (
        rows_of(predictive=RIGHT),
        {"landmark_error": 1e-4, "kernel_x": "rbf", "gamma_x": 0.02, "normalize": "none"},
    )
    alone = solver_of(rows, landmarks=None, **hard)
    compared = solver_of(rows, small(replicates=39), landmarks=None, **hard)
    assert alone["landmarks"] == 150
    assert compared["landmarks"] <= alone["landmarks"]
    assert not any(
        "above --landmark-error" in text
        for text in texts(result(rows, small(replicates=39), landmarks=100, **hard).warnings)
    )


def test_reaching_the_maximum_of_flops_gives_a_warning():
    found = result(rows_of(), small(replicates=19), landmarks=None, landmark_error=1e-5, max_flops=1e6)
    assert found.details["solver"]["landmarks"] == 8
    assert found.verdict == "fail"
    error = found.details["solver"]["error"]
    share = f"{100 * error / found.value:.2g} % of the value"
    start = f"approximation with 8 landmarks: the error may be {error:.2g} ({share}), which is above"
    (warning,) = [text for text in texts(found.warnings) if text.startswith(start)]
    assert " above --landmark-error 1e-05. Pass more --landmarks, or a larger --max-flops" in warning
    correction = found.details["solver"]["bias_correction"]
    assert warning.endswith(f"A bias correction of {correction:.2g} is added to the mean, but not to rows or quantiles")
    assert found.details["solver"]["flops"] < 1e8
    assert result(rows_of(), landmarks=None, landmark_error=1e-5, max_flops=1e12).details["solver"]["landmarks"] == 150


def test_flops_and_memory_limit_the_number_of_landmarks():
    """N (M + 70) (5 + M + columns) products; 8 arrays of M^2 numbers."""
    for limit in ({"max_flops": 1e6}, {}):
        run = replace(PLAIN, memory=4 << 30 if limit else 8 * 8 * 32**2)
        settings = Cce(solver="nystroem", **limit)
        state = settings.fit(InMemory(rows_of()), run).embedding
        count = state._affordable(D, N)
        columns = state.settings.features.rank * (1 + state.replicates)
        if limit:
            assert flops(N, D, count, columns, SMALL) <= 1e6 or count == 8
            assert flops(N, D, 2 * count, columns, SMALL) > 1e6
        else:
            assert count == 32


def test_flops_are_counted_in_multiply_adds():
    assert flops(1000, 20, 100, 7, SMALL) == 1000 * (100 + 100) * (20 + 100 + 7)


def test_auto_reports_why_it_uses_landmarks():
    assert solver_of(rows_of(), solver="auto", landmarks=None)["name"] != "nystroem"
    little = solver_of(rows_of(), replace(PLAIN, memory=20_000), solver="auto", landmarks=None)
    assert (little["name"], "--memory allows" in little["reason"]) == ("nystroem", True)
    costly = replace(PLAIN, limits=replace(SMALL, max_exact_flops=1e6))
    busy = solver_of(rows_of(), costly, solver="auto", landmarks=None)
    assert (busy["name"], "multiply-adds" in busy["reason"]) == ("nystroem", True)
    assert solver_of(rows_of(), costly)["reason"] == "as requested"
    assert solver_of(rows_of(), costly, solver="auto", draws=3, landmarks=None)["name"] != "nystroem"
    assert solver_of(rows_of(), costly, solver="cg", landmarks=None)["name"] == "cg"


def test_a_number_of_landmarks_selects_the_nystroem_solver():
    found = solver_of(rows_of(), solver="auto", landmarks=30)
    assert (found["name"], found["reason"], found["landmarks"]) == ("nystroem", "as requested", 30)
    with pytest.raises(OptionError, match="--landmarks requires --solver nystroem, got --solver cg"):
        Cce(solver="cg", landmarks=30)
    with pytest.raises(OptionError, match=r"--landmarks does not support --draws N\. Remove --draws N"):
        Cce(landmarks=30, draws=2)


def test_auto_depends_only_on_numbers_of_rows_columns_and_outputs():
    def why(n, d, outputs=20, memory=4 << 30, precision="float64"):
        return approximation_reason(n, d, outputs, replace(PLAIN, memory=memory, precision=precision))

    assert why(40_000, 512) == ""
    assert "conjugate gradients would need 2.9e+13 multiply-adds; the maximum is 2e+13" in why(63_000, 512)
    assert why(100_000, 20) == ""
    assert "0.5 GiB, and --memory allows 0.2" in why(20_000, 3000, memory=1 << 28)
    assert why(20_000, 2000, memory=1 << 28)
    assert not why(20_000, 2000, memory=1 << 28, precision="float32")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"lambda_model": 0.3}, "--lambda-model"),
        ({"estimator": "unbiased"}, "--estimator unbiased"),
        ({"draws": 3}, "--draws"),
    ],
)
def test_options_that_need_an_exact_solver_are_refused(options, named):
    with pytest.raises(OptionError, match=f"--solver nystroem does not support {named}.*, or pass --solver cg"):
        Cce(solver="nystroem", **options)
    assert Cce(solver="nystroem", lambda_model=0.1).exact_only == ""


@pytest.mark.parametrize(
    "options",
    [
        {"landmarks": 0},
        {"landmark_error": 0.0},
        {"landmark_error": -1.0},
        {"max_flops": 0.0},
        {"max_flops": float("inf")},
    ],
)
def test_options_are_checked(options):
    with pytest.raises(OptionError, match="--" + next(iter(options)).replace("_", "-")):
        Cce(**options)


def test_evaluation_inputs_require_an_exact_solver():
    with pytest.raises(OptionError, match=r"--at and --grid require an exact solver\. Pass --solver cg"):
        evaluate(InMemory(rows_of()), [Cce(solver="nystroem")], at=InMemory(rows_of()), run=PLAIN)


def test_kernels_that_overflow_or_vanish_are_refused():
    with pytest.raises(DataError, match="cce: the kernel overflows at some inputs"):
        result(rows_of(x=X * 1e70), normalize="none", kernel_x="polynomial")
    with pytest.raises(DataError, match="Pass a larger --lambda"):
        result(rows_of(), lambda_=1e-18)
    with pytest.raises(AssertionError, match="at least 2 rows"):
        result(rows_of().take(slice(1)))


def test_degenerate_data_have_a_value():
    """Two rows, repeated rows, more landmarks than rows, equal inputs, perfect predictions."""
    for rows in (rows_of().take(slice(2)), rows_of().take(np.repeat(np.arange(80), 3)), rows_of(x=np.ones((N, D)))):
        for count in (1, 8, 5000):
            found = result(rows, landmarks=count, normalize="none", kernel_x="rbf", gamma_x=0.1)
            exact = result(rows, solver="cholesky", normalize="none", kernel_x="rbf", gamma_x=0.1)
            assert abs(found.value - exact.value) <= found.details["solver"]["error"] + 1e-8
            assert found.details["solver"]["landmarks"] <= min(count, len(rows))
    perfect = result(rows_of(predictive=Samples(np.repeat(Y[:, None], 3, axis=1))), small(replicates=19))
    assert perfect.value < 1e-8


def test_constant_differences_have_one_principal_direction():
    class ConstantFeatures:
        def of_points(self, points):
            return np.zeros((len(points), 4))

        def of_distributions(self, predictive):
            return np.zeros((len(predictive), 4))

    _, few = nystroem.principal_directions(ConstantFeatures(), Y, RIGHT)
    assert few == 1


SAMPLED = 2000


def places(rows, size=400, seed=0):
    return sample_rows(rows, size, small(seed=seed))


def test_samples_of_rows_with_few_distinct_targets_are_uniform():
    """Counts of 0 to 3 with equal predictions are sampled in proportion."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, SAMPLED).astype(float)
    rows = Predictions(y=y, predictive=Poisson(np.full(SAMPLED, 1.5)), x=rng.normal(size=(SAMPLED, 2)))
    chosen = places(rows)
    assert len(np.unique(chosen)) == 400
    shares = [np.mean(y[chosen] == count) for count in range(4)]
    assert np.all(np.abs(np.array(shares) - 0.25) < 0.07)
    assert abs(np.mean(chosen < 1000) - 0.5) < 0.08
    halves = [np.mean(y[chosen[:100]] == count) for count in range(4)]
    assert np.all(np.abs(np.array(halves) - 0.25) < 0.15)


def test_the_sample_depends_on_the_content_of_rows_and_the_seed():
    rng = np.random.default_rng(1)
    y, order = rng.normal(size=SAMPLED), rng.permutation(SAMPLED)
    rows = Predictions(y=y, predictive=Gaussian(np.round(y), np.ones(SAMPLED)), x=y[:, None])
    chosen = places(rows)
    assert_array_equal(y[order][places(rows.take(order))], y[chosen])
    assert_array_equal(places(rows, 50), chosen[:50])
    assert len(np.intersect1d(chosen, places(rows, seed=1))) < 150
    assert_array_equal(np.sort(places(rows, SAMPLED)), np.arange(SAMPLED))
    assert_array_equal(places(rows, SAMPLED)[:400], chosen)
    assert abs(y[chosen].mean()) < 0.15
    other = Predictions(y=y, predictive=Gaussian(-y, np.ones(SAMPLED)), x=y[:, None])
    assert len(np.intersect1d(chosen, places(other))) < 200


def test_leverage_sampling_selects_isolated_inputs():
    """Of ten isolated inputs, leverage sampling selects most and uniform sampling few."""
    x = X.copy()
    x[:10] = 40 * np.eye(10, D) + np.arange(10)[:, None] * 5
    kept = {"normalize": "none", "kernel_x": "rbf", "gamma_x": 0.01, "lambda_": 0.001, "landmarks": 40}
    found = {}
    for by in ("uniform", "leverage"):
        metric = Cce(solver="nystroem", landmark_sampling=by, **kept)
        fit = metric.fit(InMemory(rows_of(x=x)), PLAIN)
        state = fit.embedding.fitted(0.001)
        scaled = fit.embedding.settings.scaling(x)
        landmarks, evaluated = (
            {tuple(row) for row in each} for each in (state.landmarks.landmarks, scaled[state.places])
        )
        far = {tuple(row) for row in scaled[:10]} & evaluated
        found[by] = len(far & landmarks) / len(far)
        assert len(state.landmarks.landmarks) == 40
        assert landmarks <= evaluated
    assert found["leverage"] > max(0.75, found["uniform"])


def test_settings_and_models_on_shared_inputs_have_separate_values():
    rows = [replace(rows_of(predictive=each), id=np.arange(N)) for each in (RIGHT, WRONG)]
    models = [Model(name, InMemory(each)) for name, each in zip("ab", rows, strict=True)]
    metric = Cce(solver="nystroem", landmarks=30)
    report = sweep(models, metric, [parse("gamma-y=0.2,2", Cce), parse("lambda=0.02", Cce)], run=PLAIN)
    for found in report.results:
        model = rows["ab".index(found.slice["model"])]
        options = {name.replace("-", "_"): float(text) for name, text in found.slice.items() if name != "model"}
        options = {"lambda_" if name == "lambda" else name: value for name, value in options.items()}
        assert_allclose(found.value, result(model, **options).value, rtol=1e-10)
    assert len({round(found.value, 9) for found in report.results}) == len(report.results) == 8


def test_a_sweep_combines_exact_solvers_and_landmarks():
    rows = replace(rows_of(), id=np.arange(N))
    expected = {
        text: result(rows, solver="cholesky", draws=draws).value for text, draws in (("1", 1), ("exact", "exact"))
    }
    run = replace(PLAIN, limits=replace(SMALL, max_exact_flops=1.0))
    report = sweep([Model("m", InMemory(rows))], Cce(), [parse("draws=1,exact", Cce)], run=run)
    first, one, exact = report.results
    assert_allclose(one.value, expected["1"], rtol=1e-6)
    assert first.value == exact.value == result(rows, landmarks=None).value


def test_an_empty_source_is_refused():
    with pytest.raises(DataError):
        evaluate(InMemory(rows_of().take(slice(0))), [Cce(solver="nystroem")], run=PLAIN)


def test_the_next_batch_is_prefetched():
    made = [Event() for _ in range(3)]

    def batches():
        for each in made:
            each.set()
            yield each
        raise DataError("the file ends here")

    found = prefetch(batches())
    for place in range(2):
        assert next(found) is made[place]
        assert made[place + 1].wait(5)
    next(found)
    with pytest.raises(DataError, match="ends here"):
        next(found)


def test_isolated_inputs_are_always_validated_and_others_at_random():
    """Weights are inverse sampling probabilities: a weighted count is unbiased."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(500, 1)), 50 + 20 * np.arange(10.0)[:, None]])
    counts, low = [], []
    for seed in range(200):
        chosen, weights = weighted_leverage_sample(Rbf(1.0), x, x[:40], 60, 0.01, small(seed=seed))
        assert_allclose(weights.sum(), 510)
        assert set(range(500, 510)) <= set(chosen)
        assert_allclose(weights[chosen >= 500], 1)
        counts.append(weights[x[chosen, 0] > 1].sum())
        low.append(weights.max() * 60 / 510)
    assert_allclose(np.mean(counts), np.sum(x > 1), rtol=0.03)
    assert max(low) < 4  # a probability is at least about a quarter of that in a uniform sample
    chosen, weights = weighted_leverage_sample(Rbf(1.0), x, x[:40], 510, 0.01, small())
    assert_array_equal(chosen, np.arange(510))
    assert_array_equal(weights, 1)


def test_equal_inputs_are_validated_with_equal_probability():
    chosen, weights = weighted_leverage_sample(Rbf(1.0), np.zeros((100, 2)), np.zeros((5, 2)), 20, 0.1, small())
    assert len(np.unique(chosen)) == 20
    assert_allclose(weights, 5)


def test_kernels_that_overflow_are_refused_before_rows_are_sampled():
    x = np.full((30, 2), 1e200)
    with pytest.raises(NumericalError, match="overflows"), np.errstate(all="ignore"):
        weighted_leverage_sample(Polynomial(3, 1.0, 1.0), x, x[:5], 10, 0.1, small())
