"""Column names determine one form of predictions or are refused as ambiguous; other columns have no effect."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calcheck import METRICS, InMemory, Predictions, write
from calcheck.distributions import Gaussian, Independent, Samples
from calcheck.errors import CalcheckError, DataError, OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.io.file_source import FileSource
from tests.helpers.files import limited
from tests.helpers.files import write as save
from tests.helpers.shorthand import texts
from tests.io.test_long_layouts import hub, read, refused

Y = {"y": [1.0, 2.0]}
NORMAL = Y | {"mean": [0.0, 1.0], "std": [1.0, 2.0]}


TRUE = "x_true y_true x_pred y_pred x_std y_std"  # The second is a known target, and not the only one


def file(tmp_path, columns):
    return save(tmp_path / "preds.parquet", pa.table(columns))


def test_filters_split_at_the_first_equals_sign(tmp_path):
    path = file(tmp_path, NORMAL | {"note": ["a=b", "a"]})
    assert_array_equal(read(path, filter=("note=a=b",)).predictions().y, [1])
    path = file(tmp_path, NORMAL | {"note": [None, "a"]})  # a missing value matches no filter
    assert_array_equal(read(path, filter=("note=a",)).predictions().row, [1])


def test_a_single_column_is_neither_samples_nor_quantiles(tmp_path):
    rows = read(file(tmp_path, NORMAL | {"loss_s1": [9.0, 9.0], "q_0.5": [0.0, 1.0]})).predictions()
    assert_array_equal(rows.predictive.std(), [1, 2])


def test_intervals_of_100_percent_are_ignored(tmp_path):
    """Limits of 100 % would be the levels 0 and 1; a median is the level 1/2."""
    ends = {"-lo-100": -9.0, "-lo-90": -1.0, "-median": 0.0, "-hi-90": 1.0, "-hi-100": 9.0}
    rows = read(file(tmp_path, Y | {f"M{end}": [value] * 2 for end, value in ends.items()})).predictions()
    assert_array_equal(rows.predictive.levels, [0.05, 0.5, 0.95])
    assert_array_equal(rows.predictive.values, [[-1, 0, 1]] * 2)


def test_quantiles_of_two_targets_are_ambiguous(tmp_path):
    columns = {f"{of}_q{level}": [start + level] * 2 for of, start in (("a", 0), ("b", 10)) for level in (0.1, 0.9)}
    path = file(tmp_path, Y | columns)
    assert "several models or targets: 'a', 'b'. Pass --model 'a'" in refused(path)
    assert_allclose(read(path, model="b").predictions().predictive.values, [[10.1, 10.9]] * 2)


def test_quantile_names_without_a_level_or_with_a_duplicate_are_refused(tmp_path):
    path = file(tmp_path, Y | {name: [0.0, 0.0] for name in ("q_0.1", "0.1", "q_0.9", "other")})
    for names, odd in (("q_0.1,other", "other"), ("q_0.1,0.1", "q_0.1")):
        assert f"--quantiles: column name '{odd}' has no level (as in q_0.05), or two" in refused(path, quantiles=names)


def test_nixtla_rows_are_distinguished_by_their_cutoff(tmp_path):
    ends = {"M-lo-90": [0.0] * 4, "M-hi-90": [2.0] * 4}
    keys = {"unique_id": ["a"] * 4, "ds": [1, 2, 1, 2], "cutoff": [0, 0, 1, 1]}
    path = file(tmp_path, keys | {"y": [1.0] * 4} | ends)
    assert len(read(path).predictions()) == 4
    path = file(tmp_path, keys | {"y": [1.0] * 4, "cutoff": [0, 0, 0, 0]} | ends)  # the second batch repeats the first
    again = limited(read(path), batch_bytes=1, batch_rows=2)
    with pytest.raises(DataError, match=r"2 keys occur more than once.*for example unique_id='a', ds='1', cutoff='0'"):
        again.predictions()


def test_parameters_are_read_from_one_model(tmp_path):
    """Names without a prefix come first, then a common prefix; two prefixes are two models."""
    one = {"A-loc": [1.0, 1.0], "A-scale": [2.0, 2.0]}
    two = one | {"B-loc": [3.0, 3.0], "B-scale": [4.0, 4.0]}
    path = file(tmp_path, Y | two)
    assert "several models: 'A', 'B'. Pass --model 'A'" in refused(path, dist="gaussian")
    assert_array_equal(read(path, dist="gaussian", model="B").predictions().predictive.std(), [4, 4])
    path = file(tmp_path, Y | one | {"loc": [5.0, 5.0], "scale": [6.0, 6.0]})
    assert_array_equal(read(path, dist="gaussian").predictions().predictive.std(), [6, 6])
    path = file(tmp_path, Y | {"center": [7.0, 7.0], "A-scale": [2.0, 2.0], "B-loc": [3.0, 3.0]})
    rows = read(path, dist="gaussian", param=("loc=center",)).predictions()
    assert_array_equal(rows.predictive.mean(), [7, 7])
    assert_array_equal(rows.predictive.std(), [2, 2])


def test_ambiguous_parameter_columns_are_refused(tmp_path):
    path = file(tmp_path, Y | {"loc": [0.0, 0.0], "mu": [1.0, 1.0], "scale": [1.0, 1.0]})
    assert "two columns may hold the loc: 'loc' and 'mu'. Pass --param loc=COLUMN" in refused(path, dist="gaussian")
    options = {"dist": "gaussian", "param": ("loc=mu",)}
    assert_array_equal(read(path, **options).predictions().predictive.mean(), [1, 1])
    message = refused(path, dist="gaussian", param=("rate=mu",))
    assert "--param must be NAME=COLUMN with a name among loc, scale, got 'rate=mu'" in message
    parts = {f"{name}_{part}": [0.5, 0.5] for name in ("loc", "scale", "weight") for part in range(2)}
    message = refused(file(tmp_path, Y | parts | {"loc_2": [0.5, 0.5]}), dist="mixture")
    assert "different numbers of columns: loc has 3, scale has 2, weight has 2" in message


def test_a_family_named_in_the_file_keeps_its_convention(tmp_path):
    """mu and alpha mean variance mu + mu^2 / alpha in PyMC, and mu + alpha mu^2 in statsmodels."""
    columns = {"y": [1, 2], "mu": [2.0, 2.0], "alpha": [4.0, 4.0], "dist": ["nbinom:pymc"] * 2}
    assert_allclose(read(file(tmp_path, columns)).predictions().predictive.std() ** 2, 2 + 4 / 4)


def test_an_error_column_is_used_only_without_targets_and_samples(tmp_path):
    """A column `error` is ignored if there are targets or samples."""
    error = {"error": [9.0, 9.0], "std": [1.0, 2.0]}
    message = refused(file(tmp_path, Y | error))
    assert "no column was recognized as the mean" in message
    assert "--error COLUMN" in message
    assert_array_equal(read(file(tmp_path, NORMAL | error)).predictions().y, [1, 2])
    drawn = error | {"sample_0": [0.0, 0.0], "sample_1": [1.0, 1.0]}
    rows = read(file(tmp_path, drawn), wanted="any").predictions()
    assert_array_equal(rows.predictive.draws, [[0, 1], [0, 1]])
    assert rows.y is None
    message = refused(file(tmp_path, error | {"std2": [1.0, 1.0]}), error="error", std="std,std2")
    assert "--error names 1 column and --std 2. Name one column for each" in message


def test_two_embedding_columns_are_ambiguous(tmp_path):
    vectors = {"embedding": [[1.0], [2.0]], "emb_0": [1.0, 2.0]}
    assert "two columns may hold the embedding: 'embedding' and 'emb_0'" in refused(file(tmp_path, NORMAL | vectors))


def test_deviations_equal_to_the_minimum_are_not_raised(tmp_path):
    source = read(file(tmp_path, NORMAL), min_std=1.0)
    assert_array_equal(source.predictions().predictive.std(), [1, 2])
    assert texts(source.warnings()) == ()


def test_logarithms_that_overflow_are_refused(tmp_path):
    path = file(tmp_path, NORMAL | {"u": [0.0, 800.0]})
    assert "must be logarithms of numbers up to 1e+75, but 1 of 2 rows is not (row 1" in refused(path, log_std="u")
    narrow = file(tmp_path, NORMAL | {"u": [0.0, 340.0]})
    assert_allclose(read(narrow, log_var="u").predictions().predictive.std(), [1, np.exp(170)])


def test_draws_are_assigned_to_their_targets(tmp_path):
    """Targets y1, y2 with draws a_0, a_1 and b_0, b_1: the same number for each."""
    draws = {f"{of}_{draw}": [10.0 * place + draw] * 2 for place, of in enumerate("ab") for draw in range(2)}
    columns = {"y1": [1.0, 1.0], "y2": [2.0, 2.0]} | draws
    options = {"target": "y1,y2", "samples": "a_*,b_*"}
    rows = read(file(tmp_path, columns), **options).predictions()
    assert_array_equal(rows.predictive.draws, [[[0, 10], [1, 11]]] * 2)
    assert_array_equal(rows.y, [[1, 2]] * 2)
    message = refused(file(tmp_path, columns | {"b_2": [0.0, 0.0]}), **options)
    assert "targets have different numbers of samples: 2, 3" in message


def test_dropped_rows_are_counted_once_per_pass(tmp_path):
    path = file(tmp_path, NORMAL | {"y": [np.nan, 2.0], "std": [1.0, 0.1]})
    source = read(path, nan_policy="omit", min_std=0.5)
    for _ in range(2):
        assert [len(batch) for batch in source.batches()] == [1]
    assert (source.reading.n_dropped, source.reading.n_clipped) == (1, 1)


def test_normal_is_another_name_of_the_gaussian_family(tmp_path):
    columns = {"y": [0.0, 1.0], "m": [0.0, 1.0], "s": [1.0, 2.0]}
    names = {"param": ["loc=m", "scale=s"]}
    named, other = (read(file(tmp_path, columns), dist=name, **names).predictions() for name in ("gaussian", "normal"))
    assert type(named.predictive) is type(other.predictive)
    assert_array_equal(named.predictive.std(), other.predictive.std())


def test_lazy_distributions_exclude_dropped_rows(tmp_path):
    """Row 1 has no input: it is dropped from targets, inputs and distributions."""
    columns = {"y": [0.0, 1.0, 2.0], "embedding": [[0.0], [np.nan], [2.0]]}
    path = file(tmp_path, columns | {f"sample_{draw}": [0.0 + draw, 10.0 + draw, 20.0 + draw] for draw in range(2)})
    rows = limited(read(path, nan_policy="omit"), predictive_bytes=1).predictions()
    assert rows.predictive.nbytes == 0
    assert_array_equal(rows.predictive.mean(), [0.5, 20.5])
    assert_array_equal(rows.y, [0, 2])


def test_lazy_quantiles_behave_like_quantiles_in_memory(tmp_path):
    """Their levels, their errors and the masses around limits are the same as in memory."""
    rng = np.random.default_rng(0)
    y, width = rng.normal(size=60), rng.uniform(0.5, 2, 60)
    levels = (0.1, 0.5, 0.9)
    columns = {"y": y, "embedding": rng.normal(size=(60, 2))} | {f"q_{p}": width * (p - 0.5) for p in levels}
    path = save(tmp_path / "q.parquet", columns)
    metrics = [METRICS[name]() for name in ("ece", "pit", "crps", "cce")]
    metrics += [METRICS["coverage"](level=level) for level in (0.8, 0.6)]
    in_memory = evaluate(read(path), metrics, run=Run(resamples=0, replicates=0))
    lazy = limited(read(path), predictive_bytes=1, batch_bytes=1, batch_rows=16)
    assert lazy.predictions().predictive.nbytes == 0
    assert evaluate(lazy, metrics, run=Run(resamples=0, replicates=0)).results == in_memory.results
    assert in_memory.results[4].reference == pytest.approx(0.8)
    assert in_memory.results[5].reference is None
    given = in_memory.results[3].details["features"]["quadrature_error"]
    assert given == pytest.approx(lazy.predictions().predictive.kernel_error)
    low, high = np.full(60, 9.0), width * 0.4  # 9.0 is at no known level, the other limit is a quantile
    for one in (read(path).predictions().predictive, lazy.predictions().predictive):
        assert_array_equal(one.central_interval(0.8)[0], width * -0.4)
        assert_allclose(one.interval_mass_error(y, low, high), 0.1)


def test_coverage_between_unknown_quantiles_has_no_reference(tmp_path):
    """Levels 0.025 … 0.975: 90 % intervals are interpolated, those of 50 % and 95 % are known despite rounding."""
    levels = (0.025, 0.25, 0.5, 0.75, 0.975)
    path = save(tmp_path / "q.parquet", {"y": np.linspace(0, 1, 40)} | {f"{p}": np.full(40, p) for p in levels})
    known, open_ = evaluate(
        read(path), [METRICS["coverage"](level=level) for level in (0.5, 0.9)], run=Run(resamples=0, replicates=0)
    ).results
    assert known.reference == pytest.approx(0.5)
    assert [other["level"] for other in known.details["at_other_levels"]] == [0.95]
    assert open_.reference is None
    assert any("missing quantile levels make it uncertain" in warning for warning in texts(open_.warnings))


def test_labels_named_like_roles_are_renamed_when_written(tmp_path):
    """A hub's label `target` is written with the predictions, and is not read back as their target."""
    path = save(tmp_path / "hub.csv", pa.table(hub(model_id="A")))
    source = read(path, wanted="any", narrow=True)
    write(source, str(tmp_path / "out.parquet"))
    again = read(str(tmp_path / "out.parquet"), wanted="any", narrow=True)
    assert_array_equal(again.predictions().predictive.values, source.predictions().predictive.values)
    assert again.predictions().y is None
    assert again.predictions().columns["target_given"].tolist() == ["wk inc flu hosp"] * 6
    assert again.predictions().columns["model_id_given"].tolist() == ["A"] * 6


@pytest.mark.parametrize("suffix", ["parquet", "csv", "feather"])
def test_inputs_are_read_back_as_inputs_without_options(tmp_path, suffix):
    columns = {"age": [3.0, 4.0], "height": [5.0, 6.0], "input_0": [7.0, 8.0], "a": [9.0, 10.0]}
    write(read(file(tmp_path, NORMAL | columns), inputs="age,height", narrow=True), str(tmp_path / f"out.{suffix}"))
    rows = read(str(tmp_path / f"out.{suffix}"), narrow=True).predictions()
    assert_array_equal(rows.x, [[3, 5], [4, 6]])
    assert not rows.has_embedding
    assert rows.columns["input_0_given"].tolist() == [7, 8]
    assert rows.columns["a"].tolist() == [9, 10]  # a parameter of the beta family, of which there is none


def test_an_embedding_beside_inputs_is_refused(tmp_path):
    path = file(tmp_path, NORMAL | {"input_0": [3.0, 4.0], "emb_0": [5.0, 6.0]})
    with pytest.raises(DataError, match="there are an embedding and inputs, 'emb_0' and 'input_0'"):
        read(path).predictions()
    assert_array_equal(read(path, inputs="input_0").predictions().x, [[3], [4]])


def test_numbered_targets_are_those_of_joint_distributions_and_of_samples(calcheck, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    y = {"y_1": np.arange(30.0), "y_2": np.arange(30.0) % 7, "a": np.arange(30.0) % 5}
    joint = {"loc_1": y["y_1"] + 1, "loc_2": y["y_2"], **dict.fromkeys(("covariance_11", "covariance_22"), np.ones(30))}
    pq.write_table(pa.table({**y, **joint, "covariance_21": np.zeros(30)}), "joint.parquet")
    pq.write_table(pa.table(y), "y.parquet")
    command = "calcheck joint.parquet --dist joint-gaussian:covariance"
    assert command in calcheck("joint.parquet").refused()
    assert "y_1, y_2" in calcheck(*command.split()[1:], "--no-null").out
    assert calcheck("mmd", "y.parquet", "joint.parquet", "--no-null").code == 0


def test_normal_distributions_of_several_targets_are_written_as_csv_and_no_others(tmp_path):
    one, other = Gaussian(np.zeros(2), np.ones(2)), Gaussian(np.ones(2), np.array([2.0, 3.0]))
    rows = Predictions(y=np.array([[1.0, 2.0], [3.0, 4.0]]), predictive=Independent((one, other)))
    write(InMemory(rows), str(tmp_path / "out.csv"))
    again = read(tmp_path / "out.csv").predictions()
    assert_array_equal(again.y, rows.y)
    assert_array_equal(again.predictive.std(), rows.predictive.std())
    draws = Predictions(y=np.zeros((2, 2)), predictive=Samples(np.zeros((2, 3, 2))))
    with pytest.raises(DataError, match="CSV cannot represent several targets per row"):
        write(InMemory(draws), str(tmp_path / "out.csv"))


def test_only_keys_with_leading_zeros_are_text(tmp_path):
    for text, expected in (("100\n205", [100, 205]), ("-01\n1", ["-01", "1"]), ("0\n10", [0, 10])):
        (tmp_path / "preds.csv").write_text("id,y,mean,std\n" + "".join(f"{key},1,1,1\n" for key in text.split("\n")))
        assert read(str(tmp_path / "preds.csv")).predictions().id.tolist() == expected


@pytest.mark.parametrize("kind", ["F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"])
def test_every_type_of_tensor_is_read(tmp_path, kind):
    stored = {"F": "float", "I": "int", "U": "uint"}.get(kind[0], "") + kind[1:] if kind != "BOOL" else "bool"
    values = np.array([[0, 1], [1, 0], [1, 1]] if kind == "BOOL" else [[3, 2], [100, 7], [0, 1]], dtype=stored)
    head = json.dumps({"e": {"dtype": kind, "shape": [3, 2], "data_offsets": [0, values.nbytes]}}).encode()
    content = len(head).to_bytes(8, "little") + head + values.astype(values.dtype.newbyteorder("<")).tobytes()
    (tmp_path / "e.safetensors").write_bytes(content)
    assert_array_equal(read(str(tmp_path / "e.safetensors"), wanted="any").predictions().x, values)


def test_draws_of_all_chains_are_pooled(tmp_path):
    """Two chains of three draws for four units, with their axes, and targets of the same name."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "posterior.nc"
    values = np.arange(24.0).reshape(2, 3, 4)

    def posterior(**more):
        with h5py.File(path, "w") as archive:
            for name, given in {
                "y": values,
                "chain": np.arange(2),
                "draw": np.arange(3),
                "y_dim_0": np.arange(4),
            }.items():
                archive[f"posterior_predictive/{name}"] = given
            archive["observed_data/y"] = np.arange(4.0) + 100
            archive["observed_data/other"] = np.zeros(4)
            for name, given in more.items():
                archive[name.replace(".", "/")] = given
        return str(path)

    rows = read(posterior()).predictions()
    assert_array_equal(rows.predictive.draws, [[unit + 4 * draw for draw in range(6)] for unit in range(4)])
    assert_array_equal(rows.y, [100, 101, 102, 103])
    message = refused(posterior(**{"posterior_predictive.z": values}))
    assert "there must be draws of one variable" in message
    assert "'y', 'z'" in message
    assert len(read(posterior(**{"posterior_predictive.other": np.zeros((4, 5))})).predictions()) == 4  # has no draws
    with h5py.File(path, "w") as archive:
        archive["posterior_predictive/y"], archive["posterior_predictive/draw"] = values[0], np.arange(3)
    assert "draws of one variable, with axes chain and draw" in refused(path)
    with h5py.File(path, "w") as archive:
        archive["posterior/y"] = values
    assert "'posterior_predictive'" in refused(path)


def test_models_in_later_batches_are_detected(tmp_path):
    path = file(tmp_path, NORMAL | {"model": ["A", "B"]})
    with pytest.raises(DataError, match="several models: 'A', 'B'"):
        limited(read(path), batch_bytes=1, batch_rows=1).predictions()
    rows = limited(read(path, model="B"), batch_bytes=1, batch_rows=1).predictions()
    assert_array_equal(rows.row, [1])
    assert_array_equal(rows.y, [2])


def test_a_wrong_name_is_refused_before_anything_is_read(tmp_path):
    source = FileSource(read(file(tmp_path, NORMAL)).file, also=("nothing",))
    with pytest.raises(CalcheckError, match="there is no column 'nothing'"):
        source.predictions()


def test_other_columns_keep_their_values(tmp_path):
    """Integers with a gap stay integers, categories become text, times keep their nanoseconds."""
    others = {
        "count": pa.array([7, None]),
        "kind": pa.array(["b", "a"]).dictionary_encode(),
        "at": pa.array([1, 3_600_000_000_000], pa.time64("ns")),
    }
    columns = read(file(tmp_path, NORMAL | others), narrow=True).predictions().columns
    assert columns["count"].tolist() == [7, None]
    assert isinstance(columns["count"][0], int)
    assert columns["kind"].tolist() == ["b", "a"]
    assert columns["at"].tolist() == ["00:00:00.000000001", "01:00:00.000000000"]


@pytest.mark.parametrize("options", [{"target": "nope"}, {"id": "nope"}, {"samples": "x*"}, {"embedding": "nope"}, {}])
def test_errors_list_a_limited_number_of_column_names(tmp_path, options):
    many = {f"v{number}_unc": np.ones(3) for number in range(2000)}
    path = save(
        tmp_path / "preds.parquet",
        {"y": np.ones(3), "mean": np.ones(3), **({"std": np.ones(3)} if options else {}), **many},
    )
    with pytest.raises(DataError, match=r"… 2,0\d\d in all") as refused:
        read(path, **options).predictions()
    assert len(str(refused.value)) < 700


DAYS = pa.array(["2024-02-29", "2024-03-01", None]).cast(pa.date32())


@pytest.mark.parametrize(
    ("values", "text", "kept"),
    [
        ([59, 60, 61], "x>60", [2]),
        ([59, 60, 61], "x>=60", [1, 2]),
        ([59.5, 60.0, None], "x<60", [0]),  # a missing value is on no side
        ([59.5, 60.0, float("nan")], " x <= 60 ", [0, 1]),
        ([1, 2, 2], "x!=2", [0]),
        (["f", "m", None], "x!=m", [0, 2]),
        (["f", "", None], "x=", [1, 2]),  # the empty text stands for a missing value
        ([1.0, float("nan"), None], "x!=", [0]),
        (["007", "010", "9"], "x<10", [0, 2]),  # numbers that the file has as text
        (["2024-02-29", "2024-03-01", ""], "x>=2024-03-01", [1]),  # dates as text
        (DAYS, "x>=2024-03", [1]),
        (DAYS, "x<2024-03-01", [0]),
        (DAYS.cast(pa.timestamp("us", "Europe/Berlin")), "x<2024-03-01", [0]),  # in UTC
        (pa.array(["b", "a", "b"]).dictionary_encode(), "x>a", [0, 2]),
        (pa.array([3, 1, 2]).dictionary_encode(), "x>1", [0, 2]),
    ],
)
def test_filters_select_ranges_and_texts(tmp_path, values, text, kept):
    path = file(tmp_path, {"y": [1.0, 2.0, 3.0], "mean": [0.0] * 3, "std": [1.0] * 3, "x": values})
    assert read(path, filter=(text,)).predictions().row_numbers().tolist() == kept


def test_a_filter_names_a_column_that_contains_an_operator(tmp_path):
    path = file(tmp_path, NORMAL | {"a<b": [1.0, 5.0]})
    assert read(path, filter=("a<b=5",)).predictions().row.tolist() == [1]
    assert read(path, filter=("a<b>=5",)).predictions().row.tolist() == [1]


def test_a_filter_that_cannot_be_compared_is_refused(tmp_path):
    path = file(tmp_path, NORMAL | {"age": [1, 2], "day": pa.array([0, 1], pa.date32())})
    with pytest.raises(DataError, match=r"--filter age>old: the column holds numbers, and 'old' is none"):
        read(path, filter=("age>old",)).predictions()
    with pytest.raises(DataError, match=r"--filter day>=5x: the column holds times, and '5x' is none"):
        read(path, filter=("day>=5x",)).predictions()
    with pytest.raises(OptionError, match="must be COLUMN=VALUE, or have one of"):
        read(path, filter=("age",))


@pytest.mark.parametrize(
    "names",
    [
        ("y", "mu", "sigma"),
        ("y_test", "y_pred", "y_std"),
        ("actual", "predicted", "sd"),
        ("temp", "temp_pred", "temp_std"),
        ("y", "y_hat", "y_hat_std"),
        ("y", "yhat", "stddev"),
        ("obs", "fit", "std"),
        ("measured", "forecast", "forecast_sd"),
        ("price_obs", "price_mean", "price_std"),
    ],
    ids=" ".join,
)
def test_means_and_standard_deviations_are_found_by_other_names(tmp_path, names):
    rows = read(file(tmp_path, dict(zip(names, NORMAL.values(), strict=True)))).predictions()
    assert_array_equal(rows.y, [1, 2])
    assert_array_equal(rows.predictive.mean(), [0, 1])
    assert_array_equal(rows.predictive.std(), [1, 2])


@pytest.mark.parametrize(
    ("names", "likely"),
    [
        (("hba1c", "predicted_hba1c", "sd"), "--target 'hba1c' --mean 'predicted_hba1c'"),
        (("Weight", "PredictedWeight", "WeightSD"), "--target 'Weight' --mean 'PredictedWeight' --std 'WeightSD'"),
        (("sales", "p10", "p90"), "--target 'sales'"),
        (("y", "model_output", "std"), "--mean 'model_output'"),
        (("load", "output", "sigma_1"), None),  # no word says which of two is the target
        (("", "('y', 'mu')", "('y', 'sigma')"), None),  # the first is an index
    ],
    ids=str,
)
def test_the_options_that_are_likely_meant_are_named_and_never_taken(tmp_path, names, likely):
    message = refused(file(tmp_path, dict(zip(names, NORMAL.values(), strict=True))))
    assert message.partition(". Perhaps: ")[2] == (likely or "")


def test_common_names_come_before_others(tmp_path):
    rows = read(file(tmp_path, NORMAL | {"mu": [7.0, 7.0], "sd": [9.0, 9.0], "fit": [3.0, 4.0]})).predictions()
    assert_array_equal(rows.predictive.std(), [1, 2])


def test_names_of_a_target_do_not_replace_a_known_target(tmp_path):
    """A feature temp with its mean and standard deviation is no prediction of y."""
    columns = Y | {"temp": [1.0, 2.0], "temp_pred": [0.0, 1.0], "temp_sd": [1.0, 2.0]}
    assert "no columns were recognized as predictions" in refused(file(tmp_path, columns))


@pytest.mark.parametrize("names", ["y y_pred y_std", "y_true y_pred y_std", "y y_forecast y_sd"])
def test_a_feature_with_its_rolling_mean_is_no_target_beside_a_known_one(tmp_path, names):
    known = dict(zip(names.split(), NORMAL.values(), strict=True))
    columns = {"temp": [5.0, 6.0], "temp_mean": [5.0, 7.0], "temp_std": [9.0, 9.0]} | known
    rows = read(file(tmp_path, columns)).predictions()
    assert_array_equal(rows.y, [1, 2])
    assert_array_equal(rows.predictive.std(), [1, 2])


@pytest.mark.parametrize(
    "names",
    ["y_1 y_2 mean_1 mean_2 std_1 std_2", "t u t_pred u_pred t_std u_std", "y_v y_w mean_v mean_w std_v std_w", TRUE],
)
def test_several_targets_are_found_by_number_or_by_name(tmp_path, names):
    values = [[1.0, 2.0], [3.0, 4.0], [0.0, 1.0], [5.0, 6.0], [1.0, 2.0], [3.0, 5.0]]
    rows = read(file(tmp_path, dict(zip(names.split(), values, strict=True)))).predictions()
    assert_array_equal(rows.y, [[1, 3], [2, 4]])
    assert_array_equal(rows.predictive.mean(), [[0, 5], [1, 6]])
    assert_array_equal(rows.predictive.std(), [[1, 3], [2, 5]])


@pytest.mark.parametrize(
    ("names", "levels"),
    [
        (("Q2.5", "Q97.5"), [0.025, 0.975]),  # brms
        (("X5.", "X50.", "X95."), [0.05, 0.5, 0.95]),  # R, where names were made valid
        (("2.5%", "97.5%"), [0.025, 0.975]),
        (("q05", "q50", "q95"), [0.05, 0.5, 0.95]),
        (("p10", "p90"), [0.1, 0.9]),
        (("q5", "q95"), [0.05, 0.95]),
        (("p5", "p50", "p95"), [0.05, 0.5, 0.95]),
    ],
    ids=str,
)
def test_levels_of_quantiles_in_percent_are_read(tmp_path, names, levels):
    path = file(tmp_path, Y | {name: [float(place), place + 1.0] for place, name in enumerate(names)})
    assert_array_equal(read(path).predictions().predictive.levels, levels)
    named = read(path, quantiles=",".join(names)).predictions()
    assert_array_equal(named.predictive.levels, levels)


def test_numbers_in_names_that_are_no_percentages_are_no_levels(tmp_path):
    """Answers q1 to q3 of a questionnaire are not the quantiles of 1 to 3 %."""
    columns = Y | {f"q{number}": [0.0, 1.0] for number in (1, 2, 3)}
    assert "no columns were recognized as predictions" in refused(file(tmp_path, columns))


@pytest.mark.parametrize(
    ("names", "level"),
    [
        (("fit", "lwr", "upr"), 0.95),
        ((".pred", ".pred_lower", ".pred_upper"), 0.95),
        (("yhat", "yhat_lower", "yhat_upper"), 0.8),
    ],
    ids=["R", "tidymodels", "Prophet"],
)
def test_the_level_that_a_tool_writes_by_default_is_used_with_a_note(tmp_path, names, level):
    path = file(tmp_path, Y | dict(zip(names, ([0.0, 1.0], [-1.0, 0.0], [1.0, 3.0]), strict=True)))
    assert_array_equal(read(path).predictions().predictive.interval_levels, [level])
    assert [each.code for each in read(path).warnings()] == ["assumed-level"]
    assert_array_equal(read(path, level=(0.5,)).predictions().predictive.interval_levels, [0.5])


@pytest.mark.parametrize(("name", "option"), [("se.fit", "--std"), ("variance.estimates", "--var")])
def test_standard_errors_of_means_are_not_taken_for_standard_deviations(tmp_path, name, option):
    message = refused(file(tmp_path, Y | {"fit": [0.0, 1.0], name: [1.0, 2.0]}))
    assert f"'{name}' may be the uncertainty of the mean alone" in message
    assert f"preds.parquet {option} '{name}'; else with the noise, with standard deviation STD" in message


def test_the_only_other_column_is_no_target_if_it_is_named_like_means(tmp_path):
    message = refused(file(tmp_path, {"predictions": [0.0, 1.0], "0.1": [-1.0, 0.0], "0.9": [1.0, 2.0]}))
    assert "no column was recognized as the target" in message
    assert "--target 'predictions'" not in message


def test_excel_files_are_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "book.xlsx"
    pandas.DataFrame(NORMAL | {"site": ["a", "b"]}).to_excel(path, index=False)
    rows = read(path, filter=("site=b",)).predictions()
    assert_array_equal(rows.predictive.std(), [2])


def test_a_damaged_excel_file_is_refused(tmp_path):
    path = tmp_path / "book.xlsx"
    path.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(CalcheckError, match="not a readable excel file"):
        read(path).predictions()


def test_numbered_runs_beside_observations_are_draws(tmp_path):
    rows = read(file(tmp_path, {"obs": [1.0, 2.0], "run1": [0.0, 1.0], "run2": [4.0, 5.0]})).predictions()
    assert_array_equal(rows.predictive.load().draws, [[0, 4], [1, 5]])
