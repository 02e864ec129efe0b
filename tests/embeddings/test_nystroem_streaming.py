"""CCE in batches: sums over landmarks and a sample of rows that can be merged."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calcheck.distributions import Gaussian, Samples
from calcheck.embeddings import nystroem_streaming
from calcheck.embeddings.nystroem_streaming import RowSample, hash_rows_and_inputs, sample_batch
from calcheck.evaluation import evaluate
from calcheck.execution.run import Limits, Run
from calcheck.metrics.cce import Cce
from calcheck.predictions import InMemory, Predictions, concat
from calcheck.storage.archives import read_archive, write_archive
from calcheck.streaming.state import accumulate, merge, read_state, report_from_state, write_state
from tests.helpers.shorthand import texts
from tests.helpers.simulations import slow
from tests.helpers.streams import Batches

RUN = Run(replicates=19)
METRIC = Cce(kernel_x="rbf", normalize="none", gamma_x=0.1, gamma_y=0.5, lambda_=0.01, landmarks=64)


def rows(n=500, d=4, *, seed=0, spread=1.0, moved=0.0, dtype=np.float64):
    """Return rows of a model that is right up to the spread, with inputs shifted by ``moved``."""
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(n, d)) + moved).astype(dtype)
    mean, std = np.sin(x[:, 0], dtype=np.float64), 0.5 + 0.3 * np.abs(np.cos(x[:, 1], dtype=np.float64))
    return Predictions(y=mean + std * rng.normal(size=n), predictive=Gaussian(mean, std * spread), x=x)


def result(state):
    report = report_from_state(state, RUN)
    assert not report.skipped, report.skipped
    return report.results[0]


def accumulated(source, metric=METRIC, **options):
    return accumulate(source, [metric], RUN, **options)


def merged(*states):
    return merge([(f"day {number}", state) for number, state in enumerate(states)])


@pytest.fixture(scope="module")
def first():
    return accumulated(Batches(rows()))


@pytest.fixture(name="few")
def _few(monkeypatch):
    """Sample only some of the rows; stored samples are merged without a run, which would have limits."""
    monkeypatch.setattr(nystroem_streaming, "SAMPLE_ROWS", 200)


def exact(data, metric=METRIC):
    return evaluate(
        InMemory(data), [replace(metric, solver="cholesky", landmarks=None)], run=Run(replicates=0)
    ).results[0]


def test_the_value_agrees_with_the_exact_solver(first):
    found, whole = result(first), exact(rows())
    assert_allclose(found.value, whole.value, rtol=2e-6)  # up to 4,096 rows, all are validation rows
    assert abs(found.value - whole.value) <= found.details["solver"]["error"]
    assert abs(found.details["solver"]["bias_correction"]) > 1e-4 * found.value  # the correction matters
    assert abs(found.details["dof"] - whole.details["dof"]) <= found.details["dof_error"] + 1e-9
    assert found.details["solver"]["landmarks"] == 64


@pytest.mark.slow
@pytest.mark.parametrize("sampled", ["all", "few"])
def test_batches_and_merged_states_give_the_same_value_in_any_order(sampled, request):
    if sampled == "few":
        request.getfixturevalue("few")
    data, rng = rows(), np.random.default_rng(1)
    like = accumulated(InMemory(data))
    value = result(like).value
    shuffled = data.take(rng.permutation(len(data)))
    for source in (InMemory(shuffled), Batches(data, 50), Batches(shuffled, 3)):
        assert_allclose(result(accumulated(source, like=like)).value, value, rtol=1e-10)
    assert_allclose(
        result(accumulated(Batches(shuffled, 5))).value, value, rtol=1e-10
    )  # landmarks and samples are the same too
    days = [accumulated(Batches(shuffled.take(slice(start, start + 50)), 2), like=like) for start in range(0, 500, 50)]
    for order in (range(10), rng.permutation(10)):
        states = [accumulated(Batches(shuffled.take(slice(50 * day, 50 * day + 50))), like=like) for day in order]
        assert_allclose(result(merged(*states)).value, value, rtol=1e-10)
    assert result(merged(*days)).details["rows"] == 500


@pytest.mark.usefixtures("few")
def test_the_error_includes_that_of_sampling():
    """200 of 1,500 rows are evaluated and validated: the error covers the exact value and is below 15 %."""
    data = rows(1500)
    metric = replace(METRIC, landmarks=150)
    found = result(accumulated(Batches(data), metric))
    whole = exact(data, metric)
    assert found.details["solver"]["mean_rows"] == 200
    assert 0 < abs(found.value - whole.value) <= found.details["solver"]["error"] < 0.15 * whole.value


def test_accumulated_replicates_distinguish_right_from_wrong_models(first):
    assert result(first).verdict == "pass"
    wrong = result(accumulated(Batches(rows(spread=0.6))))
    assert (wrong.verdict, wrong.p_value) == ("fail", 1 / 20)
    assert wrong.details["null"]["replicates"] == 19
    assert wrong.reference < wrong.value
    day = accumulated(Batches(rows(seed=1, spread=0.5)), like=first)
    assert result(day).verdict == "fail"


def test_replicates_have_the_mean_of_right_models():
    """Their mean is within four standard errors of the mean of right models."""
    values = [result(accumulated(InMemory(rows(300, seed=seed)), replace(METRIC, landmarks=32))) for seed in range(8)]
    scores, references = (np.array([getattr(each, name) for each in values]) for name in ("value", "reference"))
    assert abs(scores.mean() - references.mean()) < 4 * (scores - references).std(ddof=1) / np.sqrt(8)
    assert_allclose(scores.mean(), references.mean(), rtol=0.1)


def test_without_replicates_there_is_no_verdict():
    state = accumulate(Batches(rows(200)), [METRIC], Run(replicates=0))
    found = report_from_state(state, RUN).results[0]
    assert (found.verdict, found.p_value, found.reference) == ("none", None, None)


def test_a_state_is_read_back_unchanged(first, tmp_path):
    path = str(tmp_path / "day.state")
    write_state(path, first)
    back = read_state(path)
    assert report_from_state(back, RUN) == report_from_state(first, RUN)
    write_state(str(tmp_path / "again.state"), back)
    assert (tmp_path / "again.state").read_bytes() == (tmp_path / "day.state").read_bytes()
    day = rows(300, seed=1)
    assert result(accumulated(InMemory(day), like=back)) == result(accumulated(InMemory(day), like=first))
    total = result(merged(back, accumulated(InMemory(day), like=first)))
    assert total.details["rows"] == 800


def test_invalid_states_of_cce_are_refused(first, tmp_path):
    path = str(tmp_path / "day.state")
    write_state(path, first)
    header, arrays = read_archive(path, "state")
    sums, settings = "cce.sums.sums", "cce.settings"
    assert arrays[f"{sums}.landmarks"].shape == (64, 64)
    for name, broken in (
        (f"{sums}.landmarks", arrays[f"{sums}.landmarks"][:-1]),
        (f"{sums}.outputs", arrays[f"{sums}.outputs"][:, :-1]),
        (f"{sums}.validation", np.full_like(arrays[f"{sums}.validation"], np.nan)),
        ("cce.sums.sample.columns.x", arrays["cce.sums.sample.columns.x"][:, :-1]),
        ("cce.sums.sample.hashes", arrays["cce.sums.sample.hashes"][:-1]),
        (f"{settings}.landmarks", arrays[f"{settings}.landmarks"][:, :-1]),
        (f"{settings}.directions", arrays[f"{settings}.directions"][:-1]),
        (f"{settings}.features.factor", arrays[f"{settings}.features.factor"][:-1]),
        (f"{settings}.kernel.subclass", np.array("Path")),
        (f"{settings}.precision", np.array("float8")),
        (f"{settings}.details", np.array("[1, 2]")),
        (f"{settings}.details", np.array("[" * 10**5)),
        (f"{settings}.key", np.array("x")),
    ):
        write_archive(path, "state", header, {**arrays, name: broken})
        with pytest.raises(Exception, match=r"day\.state is damaged or truncated"):
            read_state(path)


def test_states_with_different_landmarks_are_not_merged(first):
    with pytest.raises(Exception, match=r"cce was prepared on other rows: its setting 'scaling\.shift' differs"):
        merged(first, accumulated(InMemory(rows(seed=1))))


@pytest.mark.slow
def test_shifted_inputs_and_targets_give_a_warning(first):
    for seed in range(3):
        alike = result(accumulated(Batches(rows(seed=seed + 2)), like=first))
        assert not any("moved" in warning for warning in texts(alike.warnings))
    moved = result(
        merged(accumulated(Batches(rows()), like=first), accumulated(Batches(rows(seed=1, moved=2.5)), like=first))
    )
    message = next(warning for warning in texts(moved.warnings) if warning.startswith("the inputs have moved"))
    assert "without --settings-from" in message
    solver = moved.details["solver"]
    assert solver["nystroem_residual"] > 1.25 * solver["validation_residual"]
    data = rows(seed=3)
    far = Predictions(y=data.y + 40, predictive=Gaussian(data.predictive.loc + 40, data.predictive.scale), x=data.x)
    shifted = result(accumulated(Batches(far), like=first))
    assert any(warning.startswith("targets or predictions have moved") for warning in texts(shifted.warnings))
    assert shifted.details["features"]["residual_rows"] > 0.9


def test_the_number_of_landmarks_depends_on_the_tolerance():
    run = replace(RUN, limits=Limits(min_landmarks=32, validation_rows=100))

    def count(**options):
        metric = replace(METRIC, gamma_x=1.0, landmarks=None, **options)
        report = report_from_state(accumulate(Batches(rows()), [metric], run), run)
        return report.results[0].details["solver"]["landmarks"]

    assert count(landmark_error=1e-3) > count(landmark_error=10.0) == 32
    assert count(landmark_error=1e-3, max_flops=1e3) == 32


@pytest.mark.parametrize("size", [100, 500, slow(1500)])
def test_the_error_covers_rows_other_than_the_validation_rows(first, size):
    for spread in (1.0, 0.5):
        day = rows(size, seed=1, spread=spread)
        found, whole = result(accumulated(InMemory(day), like=first)), exact(day)
        solver = found.details["solver"]
        assert (solver["mean_rows"], solver["validation_rows"]) == (size, 500)
        assert 1e-5 * whole.value < abs(found.value - whole.value) <= solver["error"] < 0.05 * whole.value


@pytest.mark.slow
def test_the_error_covers_merged_states(first):
    day = rows(700, seed=1)
    found = result(merged(accumulated(Batches(rows()), like=first), accumulated(Batches(day), like=first)))
    whole = exact(concat([rows(), replace(day, row=np.arange(500, 1200))]))
    assert abs(found.value - whole.value) <= found.details["solver"]["error"] < 0.01 * whole.value


def test_inputs_in_float32_are_accumulated_in_float32():
    data = rows(300, dtype=np.float32)
    state = accumulated(Batches(data))
    found = result(state)
    assert found.details["solver"]["precision"] == "float32"
    settings, sums = state.metrics[0].settings, state.sums[0]
    values = settings.kernel.gram(sums.sample.columns["x"], settings.landmarks)
    assert values.dtype == np.float32
    assert_allclose(sums.sums.landmarks, values.T.astype(float) @ values.astype(float), rtol=1e-12)
    assert_allclose(found.value, exact(data).value, atol=found.details["solver"]["error"])
    other = rows(300, seed=1, dtype=np.float32)
    days = [
        accumulated(InMemory(replace(other, x=other.x.astype(dtype))), like=state) for dtype in (np.float32, np.float64)
    ]
    assert_array_equal(days[0].sums[0].sums.landmarks, days[1].sums[0].sums.landmarks)
    assert result(days[1]).details["solver"]["precision"] == "float32"


def test_samples_and_several_targets_are_accumulated():
    rng = np.random.default_rng(0)
    data = rows(300)
    draws = data.predictive.sample(rng, 9)
    of_draws = Predictions(y=data.y, predictive=Samples(draws), x=data.x)
    two = Predictions(
        y=np.stack([data.y, -data.y], axis=1), predictive=Samples(np.stack([draws, -draws], axis=2)), x=data.x
    )
    for each in (of_draws, two):
        found = result(accumulated(Batches(each)))
        assert_allclose(found.value, exact(each).value, atol=max(1e-6, found.details["solver"]["error"]))
        assert found.verdict == "pass"


def test_a_metric_with_an_exact_solver_has_no_accumulator():
    for options, message in (
        ({"solver": "cg"}, "--solver cg"),
        ({"solver": "cholesky"}, "--solver cholesky"),
        ({"estimator": "unbiased"}, "--estimator unbiased"),
        ({"lambda_model": 0.5}, "--lambda-model"),
    ):
        state = accumulated(InMemory(rows(50)), Cce(**options))
        assert not state.metrics
        assert state.skipped[0].reason.startswith(f"needs all rows at once with {message}. ")


def test_problems_are_reported_by_row_of_the_file():
    data = rows(60)
    x = data.x.copy()
    x[41] = 0
    state = accumulated(Batches(replace(data, x=x)), Cce(normalize="l2"))
    assert "row 41, counted from 0" in state.skipped[0].reason
    constant = replace(data, y=np.ones(60))
    assert "targets are constant" in accumulated(Batches(constant), Cce()).skipped[0].reason


@pytest.mark.usefixtures("few")
def test_merged_samples_equal_the_sample_of_all_rows():
    data = rows(1500)
    whole = sample_batch(data, 7)
    first, *others = [sample_batch(part, 7) for part in Batches(data, 40).batches()]
    for other in others:
        first.add(other)
    assert first.n == 1500
    assert_array_equal(first.hashes, whole.hashes)
    assert_array_equal(first.rows.y, whole.rows.y)
    assert len(set(whole.rows.y) & set(sample_batch(data, 8).rows.y)) < 70  # 27 by chance


@pytest.mark.usefixtures("few")
def test_rows_with_few_distinct_values_are_sampled_uniformly():
    """Constant targets and predictions and eight inputs: each input is about an eighth of the sample."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 8, 9000)
    data = Predictions(y=np.ones(9000), predictive=Gaussian(np.ones(9000), np.ones(9000)), x=kind[:, None] * 1.0)
    found = sample_batch(data, 0).rows.x[:, 0]
    counts = np.bincount(found.astype(int), minlength=8)
    assert len(found) == 200
    assert counts.min() > 8  # 25 each on average, with a standard deviation of 5
    assert counts.max() < 45
    assert len(np.unique(hash_rows_and_inputs(data, 0))) == 9000


def test_hashes_of_inputs_with_few_digits_differ():
    for dtype in (np.float32, np.float64):
        x = np.stack(np.meshgrid(*[np.arange(10)] * 3), axis=-1).reshape(-1, 3).astype(dtype)
        data = Predictions(y=np.zeros(1000), predictive=Gaussian(np.zeros(1000), np.ones(1000)), x=x)
        hashes = hash_rows_and_inputs(data, 5)
        assert_array_equal(hash_rows_and_inputs(data.take(slice(500, None)), 5), hashes[500:])
        assert len(np.unique(hashes)) == 1000
        assert abs(np.mean(hashes / 2.0**64) - 0.5) < 0.05


@pytest.mark.usefixtures("few")
def test_samples_keep_the_smallest_hashes():
    hashes = np.random.default_rng(0).permutation(1000).astype(np.uint64)
    kept = RowSample(hashes[:0], {"x": np.zeros(0)})
    for part in np.split(hashes, 10):
        kept.add(RowSample(part, {"x": part * 2.0}))
    assert_array_equal(kept.hashes, np.arange(200))
    assert_array_equal(kept.columns["x"], 2.0 * np.arange(200))
