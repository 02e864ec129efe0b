"""`calcheck cce` with landmarks, for more rows than exact solvers support: results, errors and refused options."""

import csv
import io
import json

import numpy as np
import pytest

from tests.helpers.files import write
from tests.helpers.shorthand import gaussian_case, texts

N = 300


def model(tmp_path, name, spread):
    x, y, predictive = gaussian_case(np.random.default_rng(0), N, 6)
    parts = {"id": np.arange(N), "y": y, "mean": predictive.loc, "std": spread * predictive.scale}
    return write(tmp_path / name, parts | {"embedding": x.astype(np.float32)})


@pytest.fixture
def right(tmp_path):
    return model(tmp_path, "right.parquet", 1.0)


@pytest.fixture
def wrong(tmp_path):
    return model(tmp_path, "wrong.parquet", 0.6)


@pytest.fixture
def many_rows(limits):
    """Lower the limits, so that few rows count as many: no exact solver, and errors estimated on a sample."""
    limits(max_exact_flops=1.0, full_validation_rows=0, validation_rows=80, evaluated_rows=200)
    limits(pilot_rows=100, min_landmarks=16)


QUICK = ("--replicates", "19")


def results(ended):
    assert ended.code == 0, ended.err
    return json.loads(ended.out)["results"]


@pytest.mark.slow
@pytest.mark.usefixtures("many_rows")
def test_every_format_shows_the_estimated_error(calcheck, wrong):
    (found,) = results(calcheck("cce", wrong, *QUICK, "--format", "json"))
    assert found["verdict"] == "fail"
    solver = found["details"]["solver"]
    assert 0 < solver["error"] < 0.1 * found["value"]
    message = f"approximation with {solver['landmarks']} landmarks: the error may be {solver['error']:.2g}"
    assert any(warning.startswith(message) for warning in texts(found["warnings"]))
    for name in ("table", "markdown", "csv"):
        output = " ".join(calcheck("cce", wrong, *QUICK, "--format", name).out.split())
        assert "landmarks: the error may be" in output, name
    (row,) = csv.DictReader(io.StringIO(calcheck("cce", wrong, *QUICK, "--format", "csv").out))
    assert float(row["value"]) == found["value"]
    assert message in row["notes"]


@pytest.mark.usefixtures("many_rows")
def test_the_table_gives_the_reason_for_landmarks(calcheck, wrong):
    output = " ".join(calcheck("cce", wrong, *QUICK).out.split())
    assert "name nystroem" in output
    assert "reason exact conjugate gradients would need" in output


def test_landmarks_can_be_requested(calcheck, wrong):
    (exact,) = results(calcheck("cce", wrong, *QUICK, "--format", "json"))
    for options in (
        ("--landmarks", "50"),
        ("--landmarks", "50", "--landmark-sampling", "leverage"),
        ("--solver", "nystroem"),
    ):
        (found,) = results(calcheck("cce", wrong, *QUICK, *options, "--format", "json"))
        assert found["details"]["solver"]["name"] == "nystroem"
        assert found["value"] == pytest.approx(exact["value"], rel=1e-4)
        assert found["verdict"] == exact["verdict"] == "fail"


@pytest.mark.usefixtures("many_rows")
def test_a_limit_of_flops_is_reported_and_the_verdict_remains(calcheck, wrong):
    ended = calcheck("cce", wrong, *QUICK, "--landmark-error", "1e-6", "--max-flops", "1", "--format", "json")
    (found,) = results(ended)
    assert found["details"]["solver"]["landmarks"] == 16
    assert found["verdict"] == "fail"
    assert any("above --landmark-error 1e-06. Pass more --landmarks" in warning for warning in texts(found["warnings"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--solver", "nystroem", "--lambda-model", "0.2"), "--solver nystroem does not support --lambda-model"),
        (
            ("--solver", "nystroem", "--estimator", "unbiased"),
            "--solver nystroem does not support --estimator unbiased",
        ),
        (("--solver", "nystroem", "--draws", "3"), "--solver nystroem does not support --draws N"),
        (("--landmarks", "9", "--draws", "3"), "--landmarks does not support --draws N"),
        (("--solver", "cg", "--landmarks", "9"), "--landmarks requires --solver nystroem, got --solver cg"),
        (("--solver", "nystroem", "--landmarks", "0"), "--landmarks must be at least 1, got 0"),
        (
            ("--solver", "nystroem", "--landmark-sampling", "size"),
            "--landmark-sampling takes one of uniform, leverage, got 'size'",
        ),
        (("--landmark-error", "0"), "--landmark-error must be a positive number, got 0"),
        (("--max-flops", "-1"), "--max-flops must be a positive number, got -1"),
        (("--solver", "nystrom"), "--solver takes one of auto, cholesky, cg, nystroem, got 'nystrom'"),
    ],
)
def test_incompatible_options_are_refused_in_one_line(calcheck, wrong, options, message):
    assert message in calcheck("cce", wrong, *options).refused()


def test_evaluation_points_are_refused_in_one_line(calcheck, wrong, right):
    line = calcheck("cce", wrong, "--solver", "nystroem", "--at", right).refused()
    assert "--at and --grid require an exact solver. Pass --solver cg" in line


@pytest.mark.usefixtures("many_rows")
def test_pointwise_and_worst_cover_every_row(calcheck, wrong, tmp_path):
    from pyarrow import parquet

    out = tmp_path / "rows.parquet"
    arguments = ("--pointwise", out, "--worst", "3", "--format", "json")
    (found,) = results(calcheck("cce", wrong, *QUICK, *arguments))
    rows = parquet.read_table(out).to_pydict()
    assert len(rows["cce"]) == N
    assert rows["id"] == list(range(N))
    order = np.argsort(rows["cce"])[::-1][:3]
    assert [row["row"] for row in found["details"]["worst"]] == order.tolist()
    missing = found["value"] - np.mean(rows["cce"])
    assert abs(missing) < found["details"]["solver"]["bias_correction"] + 3 * found["details"]["solver"]["error"]


@pytest.mark.slow
@pytest.mark.usefixtures("many_rows")
def test_evaluate_compare_and_sweep_support_many_rows(calcheck, right, wrong):
    (own,) = results(calcheck("cce", wrong, *QUICK, "--format", "json"))
    (beside,) = [
        each
        for each in results(calcheck("evaluate", wrong, *QUICK, "--no-bootstrap", "--format", "json"))
        if each["metric"] == "cce"
    ]
    assert beside["value"] == own["value"]
    compared = results(calcheck("compare", right, wrong, "--metrics", "cce", "--format", "json"))
    values = {each["slice"]["model"]: each["value"] for each in compared if "model" in each["slice"]}
    assert min(values.values()) < 0.6 * max(values.values())
    assert any("row influences require an exact solver" in str(texts(each["warnings"])) for each in compared)
    swept = results(calcheck("sweep", right, wrong, "--metric", "cce", "--vary", "gamma-y=0.3,3", "--format", "json"))
    assert len({round(each["value"], 9) for each in swept}) == 6


@pytest.mark.usefixtures("many_rows")
def test_reject_orders_rows_by_cce_at_every_row(calcheck, wrong, tmp_path):
    from pyarrow import parquet

    out = tmp_path / "rows.parquet"
    results(calcheck("cce", wrong, "--no-null", "--pointwise", out, "--format", "json"))
    retained = np.argsort(parquet.read_table(out)["cce"].to_numpy(), kind="stable")[:150]
    rows = parquet.read_table(wrong)
    off = np.abs(rows["y"].to_numpy() - rows["mean"].to_numpy())[retained].mean()
    found = results(calcheck("reject", wrong, "--criteria", "cce", "--format", "json"))
    (half,) = [each for each in found if each["metric"] == "mae" and each["slice"]["rejected"] == "50 %"]
    assert half["value"] == pytest.approx(off, rel=1e-9)


def test_a_kernel_that_overflows_is_refused_in_one_line(calcheck, tmp_path):
    x, y, predictive = gaussian_case(np.random.default_rng(0), 60, 3)
    parts = {"y": y, "mean": predictive.loc, "std": predictive.scale, "embedding": 1e70 * x}
    path = write(tmp_path / "far.parquet", parts)
    line = calcheck("cce", path, "--solver", "nystroem", "--normalize", "none", "--kernel-x", "polynomial").refused()
    assert "the kernel overflows at some inputs" in line


def test_help_explains_landmarks(calcheck):
    output = " ".join(calcheck("cce", "--help").out.replace("│", " ").split())
    assert "Number of landmarks; implies nystroem. Default: increased until --landmark-error is met." in output
    assert "Default: 2e+13." in output
