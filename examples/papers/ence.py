"""Figures of "Evaluating and Calibrating Uncertainty Prediction in Regression Tasks" (Levi et al. 2022).

    python examples/papers/ence.py [FIGURE] [--data FOLDER] [--sets 5]

Figure 1: random uncertainties, which say nothing about the errors, become calibrated on average by isotonic
recalibration: the calibration error of quantiles is then that of a right model, and ENCE shows that they mean nothing.
Figure 2 and Table 1 are of images that are not public; here are the same bins and columns for energies of molecules,
QM9, in a folder: qm9_e_uncalibrated_validation.csv and qm9_e_uncalibrated_test.csv of github.com/ppernot/2024_SimRef.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import levi_figure1
from tools import Line, Setting, calcheck, main, show, show_values

METRICS = ("ece", "ence")
COLUMNS = ("--target", "E_", "--mean", "prediction", "--var", "uncertainty_total")
METHODS = {"scaled": "scale", "isotonic variance": "isotonic-variance"}


def figure_1(setting: Setting) -> None:
    """Print ECE and ENCE before and after isotonic recalibration, and what a right model scores."""
    found: dict[str, list[float]] = {}
    for seed in range(setting.sets):
        files = [setting.folder / f"{name}.parquet" for name in ("fitted", "tested", "corrected")]
        for path, rows, number in (
            (files[0], levi_figure1.FITTED, 2 * seed),
            (files[1], levi_figure1.TESTED, 2 * seed + 1),
        ):
            levi_figure1.predictions(rows, number).to_parquet(path)
        recalibrate(files[0], files[1], files[2], "--method", "pit")
        for stage, path in (("before", files[1]), ("recalibrated", files[2])):
            report = calcheck("evaluate", path, "--metrics", ",".join(METRICS), "--no-bootstrap", "--replicates", 199)
            for result in report["results"]:
                found.setdefault(f"{result['metric']} {stage}", []).append(result["value"])
                if result["reference"] is not None:
                    found.setdefault(f"{result['metric']} {stage}, right", []).append(result["reference"])
    lines = [Line(name, None, values) for name, values in found.items()]
    show("Figure 1", "calcheck recalibrate VAL --method pit --to TEST -o OUT; calcheck evaluate OUT", lines)


def recalibrate(fitted: Path, tested: Path, corrected: Path, *options: str) -> None:
    """Fit a correction to a file, and write the corrected predictions of another."""
    command = ["recalibrate", fitted, "--to", tested, "-o", corrected, *options]
    subprocess.run([sys.executable, "-m", "calcheck", *map(str, command)], check=True, capture_output=True)


def qm9(setting: Setting) -> dict[str, list[object]]:
    """Return the files of the energies before and after each correction, with the options that read them."""
    names = ("qm9_e_uncalibrated_validation.csv", "qm9_e_uncalibrated_test.csv")
    fitted, tested = (setting.file(name) for name in names)
    if not fitted or not tested:
        return {}
    files: dict[str, list[object]] = {"uncalibrated": [tested, *COLUMNS]}
    for name, method in METHODS.items():
        files[name] = [setting.folder / f"{method}.parquet"]
        recalibrate(fitted, tested, files[name][0], "--method", method, *COLUMNS)
    return files


def table_1(setting: Setting) -> None:
    """Print the columns of Table 1 for the energies, before and after each correction."""
    metrics = ("ence", "ece", "nll", "cv", "rmse")
    rows = {}
    for name, file in qm9(setting).items():
        report = calcheck("evaluate", *file, "--metrics", ",".join(metrics), "--no-null", "--no-bootstrap")
        found = {result["metric"]: result["value"] for result in report["results"]}
        rows[name] = [[found[metric]] for metric in metrics]
    if rows:
        show_values("Table 1, QM9", f"calcheck evaluate FILE --metrics {','.join(metrics)}", metrics, rows)


def figure_2(setting: Setting) -> None:
    """Print the root mean squared error over the predicted deviation in ten bins, before and after each correction."""
    rows = {}
    for name, file in qm9(setting).items():
        (result,) = calcheck("ence", *file, "--no-null", "--no-bootstrap")["results"]
        rows[name] = [[each["rmse"] / each["rmv"]] for each in result["details"]["bins"]]
    if rows:
        heads = [f"bin {place}" for place in range(1, 11)]
        show_values("Figure 2, QM9: RMSE / RMV of bins", "calcheck ence FILE", heads, rows)


if __name__ == "__main__":
    main(__doc__, {"1": figure_1, "2": figure_2, "table1": table_1})
