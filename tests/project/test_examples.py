"""The examples reproduce the files in the repository, and the results in the README and the guides.

Tables of guides are tested as they stand there: cog compares them with what the examples print.
"""

import ast
import json
import re
import sys
import warnings
from pathlib import Path
from runpy import run_path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import csv

from tests.helpers.simulations import slow
from tests.helpers.tables import generator_table

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def run_example(monkeypatch, capfd):
    """Return a function that runs an example in this process, and returns the lines that it prints."""

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        run_path(str(EXAMPLES / name), run_name="__main__")
        return capfd.readouterr().out.splitlines()

    return run


def shown(guide, example):
    """Return the lines that a guide shows of what an example prints."""
    text = (ROOT / "calcheck" / "guides" / guide).read_text(encoding="utf-8")
    (block,) = re.findall(rf"script\(\"examples/{example}\".*?```\w+\n(.*?)\n```", text, re.DOTALL)
    return block.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diabetes", slow("diabetes_linear"), slow("diabetes_quantiles")])
def test_the_diabetes_script_reproduces_its_files(name):
    """To 1 % of the spread: the optimizer of the kernel parameters stops within that on any machine."""
    functions = run_path(str(EXAMPLES / "diabetes.py"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the optimizer warns that a length scale is at its bound
        made = functions["quantiles"]() if name == "diabetes_quantiles" else functions["predictions"](name)
    saved = pq.read_table(EXAMPLES / f"{name}.parquet")
    assert made.schema.equals(saved.schema)
    for column in saved.column_names:
        expected = saved[column].to_numpy()
        assert_allclose(made[column].to_numpy(), expected, atol=0.01 * expected.std() + 0.01 * expected.mean())


def test_the_sine_example_separates_families_that_can_represent_the_variance():
    lines = shown("each-input.md", "sine_counts.py")
    found = {family: float(value) for family, value in map(str.split, lines)}
    assert list(found) == ["gaussian", "poisson", "nbinom", "double-poisson"]
    assert max(found["gaussian"], found["double-poisson"]) < 0.1 * min(found["poisson"], found["nbinom"])


def test_counts_of_the_sine_example_have_the_mean_of_the_conflation():
    table = run_path(str(EXAMPLES / "sine_counts.py"))["predictions"]()["poisson"]
    assert table.num_rows == 2000
    y, x = table["y"].to_numpy(), table["x"].to_numpy()
    assert_allclose(np.mean(y - (20 - 10 * np.sin(x))), 0.4, atol=0.1)  # the conflation's mean is rate - 0.4


@pytest.mark.slow
def test_the_zms_table_passes_only_calibrated_sets(run_example):
    """Of the sets that it simulates, the calibrated ones pass and the others do not; one has too few effective rows."""
    _, *lines = run_example("zms_table2.py")
    verdicts = [(line[:24].strip(), line.split()[-1]) for line in lines]
    assert len(verdicts) == 8
    assert [verdict for name, verdict in verdicts if name.endswith("right")] == ["pass"] * 4
    assert [verdict for name, verdict in verdicts if not name.endswith("right")] == ["fail"] * 3 + ["none"]


@pytest.mark.slow
@pytest.mark.parametrize("epochs", [3, slow(60)])
def test_generators_score_better_than_a_model_without_inputs(run_example, tmp_path, epochs):
    """Two branches that diverge from 0 to 2: every method scores below the marginal distribution in every metric."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 2, (400, 2))
    y = rng.choice([-1, 1], 400) * x[:, 0] + 0.1 * rng.normal(size=400)
    columns = np.column_stack([x, y])
    np.savetxt(tmp_path / "fork.csv", columns, delimiter=",", header="x0,x1,y", comments="")
    options = ["--data", tmp_path, "--datasets", "fork", "--epochs", str(epochs), "--out", tmp_path / "made"]
    printed = "\n".join(run_example("generators.py", *options))
    assert "numbers may not" in printed
    table = generator_table(printed)
    assert list(table) == [("fork", metric) for metric in ("JMMD", "AMMD", "FID")]
    if epochs == 60:  # fewer show that files and the table are right
        for values in table.values():
            assert max(values[:3]) < values[3]
    saved = pq.read_table(tmp_path / "made" / "fork_A-CGM.parquet")
    assert saved.column_names == ["x0", "x1", "y", "samples"]
    draws = np.stack(saved["samples"].to_numpy())
    assert draws.shape == (80, 50)
    test = {tuple(row): target for *row, target in np.loadtxt(tmp_path / "fork.csv", delimiter=",", skiprows=1)}
    inputs = zip(saved["x0"].to_pylist(), saved["x1"].to_pylist(), strict=True)
    assert [test[row] for row in inputs] == saved["y"].to_pylist()


@pytest.mark.slow
def test_generators_are_reproducible():
    example = run_path(str(EXAMPLES / "generators.py"))
    rng = np.random.default_rng(0)
    train = example["Rows"](rng.normal(size=(60, 1)), rng.normal(size=60))
    for loss in example["LOSSES"].values():
        once, again, other = (example["draws_of"](loss, train, train.x, 2, seed) for seed in (0, 0, 1))
        assert_array_equal(once, again)
        assert np.abs(once - other).max() > 0.1


def test_generators_read_csv_and_parquet_alike_and_split_all_rows(tmp_path):
    """Of 50 rows 40 are trained on and 10 tested; at most 20 rows are 16 and 4."""
    example = run_path(str(EXAMPLES / "generators.py"))
    table = pa.table({"x0": np.arange(50.0), "x1": np.zeros(50), "y": np.arange(50.0)})
    parts = {}
    for name, write in (("a.csv", csv.write_csv), ("b.parquet", pq.write_table)):
        write(table, tmp_path / name)
        path = example["data_file"](tmp_path, name[0])
        assert path == tmp_path / name
        parts[name] = example["read"](path, np.random.default_rng(0), 50)
        assert [len(part.y) for part in example["read"](path, np.random.default_rng(0), 20)] == [16, 4]
    for one, other in zip(*parts.values(), strict=True):
        assert_array_equal(one.x, other.x)
        assert_array_equal(one.y, one.x[:, 0])
    assert [len(part.y) for part in parts["a.csv"]] == [40, 10]
    assert sorted(example["joined"](*parts["a.csv"]).y) == list(range(50))
    assert example["data_file"](tmp_path, "c") is None


def test_generators_of_several_targets_draw_vectors():
    example = run_path(str(EXAMPLES / "generators.py"))
    rng = np.random.default_rng(0)
    train = example["Rows"](rng.normal(size=(60, 2)), rng.normal((0, 100, -100), 0.1, (60, 3)))
    draws = example["draws_of"](example["LOSSES"]["A-CGM"], train, train.x[:7], 1, 0)
    assert draws.shape == (7, 50, 3)
    assert_allclose(draws.mean(axis=(0, 1)), (0, 100, -100), atol=0.3)


def test_generators_without_data_are_refused_in_one_line(run_example, tmp_path, capfd):
    with pytest.raises(SystemExit, match=r"^2$"):
        run_example("generators.py", "--data", tmp_path, "--datasets", "none")
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err == f"there is no {tmp_path / 'none.csv'}: give --data FOLDER and --datasets a,b\n"


@pytest.mark.slow
def test_theorem_9_needs_a_small_regularizer(run_example):
    """For sin 4x over whole periods, |delta|^2 is 1 - E exp(-(S - S')^2 / 2), S the sine of a uniform angle."""
    _, *lines = run_example("theorem9.py")
    s = np.sin(2 * np.pi * np.arange(1000) / 1000)
    left = 1 - np.exp(-((s[:, None] - s) ** 2) / 2).mean()
    for gamma_x, lambda_, cce, cmmd, shown, *verdict in map(str.split, lines):
        assert shown == f"{left:.3f}" == "0.312", gamma_x
        assert float(cce) <= float(cmmd)
        assert (verdict[0] == ">") == (float(lambda_) >= 0.1) == (float(cmmd) < left)


def test_the_misfit_example_rejects_inputs_where_the_model_is_wrong():
    """At 50 % hardly any row remains where the model is wrong by up to 1; the std is the same for all rows."""
    (half,) = [line.split() for line in shown("withhold.md", "misfit.py") if line.startswith("    50 %")]
    by_cce, by_std, at_random = (float(cell.rstrip("*")) for cell in half[3:])
    assert by_cce < 0.5 * at_random
    assert by_std == at_random
    assert half[3].endswith("*")


def test_only_equal_samples_pass_in_the_mcmd_example():
    _, *lines = shown("two-samples.md", "mcmd_six.py")
    verdicts = {line[:20].strip(): line.split()[-1] for line in lines}
    assert list(verdicts) == [
        "same",
        "smaller variance",
        "larger variance",
        "shifted mean",
        "different relation",
        "heteroscedastic",
    ]
    assert verdicts.pop("same") == "pass"
    assert set(verdicts.values()) == {"fail"}


@pytest.mark.slow  # the same as for the guides, but for the folder
@pytest.mark.parametrize(
    ("example", "files"),
    [
        ("sine_counts.py", {"gaussian.parquet": "y", "double-poisson.parquet": "phi"}),
        ("misfit.py", {"labeled.parquet": "std", "new.parquet": "x", "rejected.svg": None}),
        ("mcmd_six.py", {"heteroscedastic.parquet": "y", "mcmd_six.svg": None}),
    ],
)
def test_examples_leave_their_files_in_a_folder(run_example, tmp_path, example, files):
    run_example(example, tmp_path)
    for name, column in files.items():
        if column:
            assert column in pq.read_table(tmp_path / name).column_names
        else:
            assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.slow
def test_isotonic_recalibration_mends_ece_and_not_ence_and_scaling_the_opposite(run_example, tmp_path):
    """Levi et al. 2022, Figure 1, on rows that were not used to fit."""
    lines = run_example("levi_figure1.py", tmp_path / "picture.svg")
    told = [line.split() for line in lines if line.startswith(("ece", "ence"))]
    verdicts = [{name: words[1::2] for name, *words in told[start : start + 2]} for start in (0, 2)]
    assert verdicts == [
        {"ece": ["fail", "pass"], "ence": ["fail", "fail"]},
        {"ece": ["fail", "fail"], "ence": ["fail", "pass"]},
    ]
    assert (tmp_path / "picture.svg").read_text().startswith("<svg")


def code_cells():
    """Return the source of each cell of code of the notebook, which is stored without outputs."""
    cells = [each for each in json.loads((EXAMPLES / "calcheck.ipynb").read_text())["cells"] if "outputs" in each]
    assert all((each["outputs"], each["execution_count"]) == ([], None) for each in cells)
    return ["".join(each["source"]) for each in cells]


def test_cells_of_the_notebook_are_code_that_shows_its_last_expression():
    parsed = [ast.parse(each).body for each in code_cells()]
    assert all(isinstance(body[-1], ast.Expr) for body in parsed)


@pytest.mark.slow
def test_the_notebook_runs_and_shows_the_answers(monkeypatch):
    """Cells run in the folder of the examples, and what their last expression gives is shown as HTML."""
    monkeypatch.chdir(EXAMPLES)
    shown, names = [], {}
    for source in code_cells():
        *statements, last = ast.parse(source).body
        exec(compile(ast.Module(statements, []), "calcheck.ipynb", "exec"), names)  # noqa: S102 - as a notebook does
        found = eval(compile(ast.Expression(last.value), "calcheck.ipynb", "eval"), names)  # noqa: S307
        shown.append(found._repr_html_() if hasattr(found, "_repr_html_") else "")
    answers = [re.findall(r"(?:YES|NO)\b[^<,×]*", re.sub(r"</?span[^>]*>", "", each))[:1] for each in shown]
    assert [each[0].strip() for each in answers if each] == [
        "YES",
        "NO: too narrow",
        "NO: sex&gt;-0.04",
        "YES: power",
        "YES",
    ]
