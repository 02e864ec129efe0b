"""Thirty natural mistakes, each with the message that a helpful colleague would give."""

import pickle
import shlex

import numpy as np
import pandas as pd
import pytest

N = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of files as people save them, with their oddities."""
    path = tmp_path_factory.mktemp("mistakes")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, N))
    preds = pd.DataFrame(
        {"y": y, "mean": 0.0, "std": 1.0, "lat": x, "lon": -x, "name": [f"n{row}" for row in range(N)]}
    )
    files = {
        "preds.csv": preds,
        "prices.csv": preds.rename(columns={"y": "price", "mean": "guess", "std": "error_bar"}),
        "negative.csv": preds.assign(std=-1.0),
        "zero.csv": preds.assign(std=np.where(np.arange(N) == 3, 0.0, 1.0)),
        "gap.csv": preds.assign(y=np.where(np.arange(N) == 7, np.nan, y)),
        "no_target.csv": preds.drop(columns="y"),
        "point.csv": preds[["y"]].assign(y_pred=0.0),
        "unclear.csv": preds.drop(columns="std").assign(uncertainty=1.0),
        "intervals.csv": preds[["y"]].assign(lower=-1.6, upper=1.6),
        "limits.csv": preds[["y"]].assign(conf_low=-1.6, conf_high=1.6),
        "crossing.csv": preds[["y"]].assign(**{"q_0.1": 1.0, "q_0.5": 0.0, "q_0.9": 2.0}),
        "counts.csv": pd.DataFrame({"y": np.arange(N) + 0.5, "rate": 3.0}),
    }
    for name, frame in files.items():
        frame.to_csv(path / name, index=False)
    preds.to_csv(path / "decimal_commas.csv", sep=";", decimal=",", index=False)
    (path / "empty.csv").touch()
    (path / "preds.pkl").write_bytes(pickle.dumps(preds))
    np.save(path / "draws.npy", rng.normal(size=(N, 20)))
    np.savez(path / "ensemble.npz", y=y, mu=np.zeros((N, 5)), sigma=np.ones((N, 5)))
    return path


@pytest.mark.parametrize(
    ("command", "message"),
    [
        # names
        ("evalute preds.csv", "No such command 'evalute'. Did you mean 'evaluate'?"),
        ("pits preds.csv", "No such command 'pits'. Did you mean 'pit'"),
        ("verdicts", "No such command 'verdicts'. There is a guide: calcheck guide verdicts"),
        ("missing.csv", "there is no file missing.csv"),
        ("evaluate preds.csv --metrics zsm", "unknown metric 'zsm'. Did you mean 'zms'?"),
        ("evaluate preds.csv --metrics 'zms ece'", "Several metrics are separated by commas: zms,ece"),
        ("evaluate prices.csv --target Price --mean guess --std error_bar", "Did you mean 'price'?"),
        ("lzms preds.csv --by City", "there is no column 'City'"),
        ("evaluate counts.csv --dist poison", "got 'poison'. Did you mean 'poisson'?"),
        ("zms preds.csv --targt y", "No such option: --targt. Did you mean --target?"),
        ("evaluate preds.csv --format jsn", "got 'jsn'. Did you mean 'json'?"),
        ("check preds.csv --fail-on 'zms.pvalue < 0.05'", "zms has no field 'pvalue'. Did you mean 'p_value'?"),
        ("check preds.csv --fail-on 'zms = 1'", "equality is =="),
        # options
        ("coverage preds.csv --level 95", "--level must lie strictly between 0 and 1, got 95: did you mean 0.95?"),
        ("evaluate preds.csv --confidence 95", "did you mean 0.95?"),
        ("evaluate preds.csv --inputs lat lon", "Several values are separated by commas: --inputs lat,lon"),
        ("evaluate preds.csv --mean mean --std mean", "column 'mean' is both the mean and the std"),
        ("evaluate preds.csv --inputs name", "column 'name' has 40 different texts, such as 'n0', and --inputs takes"),
        ("evaluate preds.csv prices.csv", "To read several files as one FILE, pass a folder or a quoted pattern"),
        ("compare preds.csv", "compare needs the files of at least two models, got only preds.csv"),
        ("evaluate preds.csv -o report.xlsx", "no format has the extension .xlsx. Use one of .txt, .json"),
        ("evaluate preds.csv -o report.md --format json", "its extension selects markdown"),
        ("evaluate preds.csv -o preds.csv", "preds.csv would overwrite preds.csv"),
        ("cce preds.csv", "cce needs inputs to condition on (--embedding or --inputs)"),
        # files
        ("prices.csv", "no columns were recognized as predictions. Pass --mean and --std"),
        ("no_target.csv", "no column was recognized as the target. Pass --target COLUMN, or --truth FILE"),
        ("point.csv", "there are only point forecasts, 'y_pred': no column was recognized as the std"),
        ("unclear.csv", "'uncertainty' may be a variance or a standard deviation: pass --var uncertainty or --std"),
        ("negative.csv", "std must be positive, but 40 of 40 rows are not (rows 0, 1, 2, …, counted from 0)"),
        ("zero.csv", "1 of 40 rows is not (row 3, counted from 0). Pass --min-std X to raise them to X"),
        ("gap.csv", "(row 7, counted from 0). Correct these values, or pass --nan-policy omit to drop these rows"),
        ("check intervals.csv", "Pass the level that was promised, as in calcheck intervals.csv --level 0.9"),
        ("recalibrate preds.csv prices.csv", "calcheck recalibrate preds.csv --to prices.csv -o MENDED.parquet"),
        ("check preds.csv --reference prices.csv", "Did you mean --against?"),
        (
            "limits.csv",
            "if of 90 % of the targets, calcheck limits.csv --lower 'conf_low' --upper 'conf_high' --level 0.9",
        ),
        ("crossing.csv", "those of 40 of 40 rows do (rows 0, 1, 2, …, counted from 0), by up to 1"),
        ("crossing.csv", "Pass --crossing sort to sort the quantiles of each row"),
        ("counts.csv --dist poisson", "y must be whole numbers >= 0 for the family poisson, but 40 of 40 rows are not"),
        ("ensemble.npz", "For an ensemble or a mixture of normal distributions, pass --dist mixture --param loc=mu"),
        ("draws.npy --truth preds.csv:y", "If 'embedding' holds draws of y, pass --samples embedding"),
        ("decimal_commas.csv", "has decimal commas, for example"),
        ("preds.pkl", "is a pickle-based file, unsafe to load: it can run any code. Export to Parquet"),
        ("empty.csv", "empty.csv is empty"),
    ],
)
def test_a_mistake_gets_one_helpful_line(calcheck, folder, monkeypatch, command, message):
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    assert message in calcheck(*shlex.split(command)).refused()
    assert sorted(path.name for path in folder.iterdir()) == before


def test_numbered_inputs_are_not_guessed_to_be_draws(calcheck, tmp_path):
    pd.DataFrame(np.zeros((9, 4)), columns=["x0", "x1", "x2", "y"]).to_csv(tmp_path / "a.csv", index=False)
    assert calcheck(tmp_path / "a.csv").refused().strip().endswith("or --dist (columns: 'x0', 'x1', 'x2', 'y')")


def test_a_report_in_place_of_predictions_is_named_as_one(calcheck, folder, tmp_path):
    report = tmp_path / "report.json"
    assert calcheck("zms", folder / "preds.csv", "--replicates", 19, "-o", report).code == 0
    message = (
        "report.json: this is a report of calcheck, not a file of predictions. To compare two reports: calcheck diff"
    )
    assert message in calcheck(report).refused()
