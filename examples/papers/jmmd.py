"""Tables of "Evaluating Aleatoric Uncertainty via Conditional Generative Models" (Huang, Lam, Zhang).

    python examples/papers/jmmd.py [FIGURE] --data FOLDER [--sets 5]

trains the generators of arXiv 2206.04287 (examples/generators.py, which needs torch) and asks calcheck about their
draws at rows that they were not trained on. The UCI sets are CSV or Parquet files with columns x… and y in a folder.
The images are the digits of scikit-learn.

fid      FID of A-CGM beside the published one, for several numbers of epochs; --sets is the number of random splits;
         then over all rows, with the number of epochs of each data set at which FID is near the published one
table1   the form of Table 1: all rows of eight data sets, one split, all methods; half an hour
digits   images given their label
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import generators
from tools import Line, Setting, calcheck, main, value, write

FID = {"boston": 0.0052, "energy": 0.0094, "yacht": 0.0077}
SETS = ("boston", "concrete", "energy", "wine", "yacht", "kin8nm", "protein", "ccpp")
EPOCHS = (30, 100, 300)
ALL_ROWS_EPOCHS = {"boston": 120, "energy": 18, "yacht": 85}
TABLE_EPOCHS = dict.fromkeys(SETS, 100) | {"protein": 10}  # It has 45,730 rows
FACTOR = 2
PIXEL = 80.0  # Unit of pixels, in which the kernel exp(-d^2 / 2) of two images is about 0.8
WIDTH, DIGIT_EPOCHS, DIGIT_ROWS = 128, 40, 1797


def fid(setting: Setting) -> None:
    """Print the FID of A-CGM on three data sets: the geometric mean over splits, and what right models score."""
    names = files_of(setting, tuple(FID))
    print_heads("20 % of the rows to test on")
    for name in names:
        for epochs in EPOCHS:
            print_fid(setting, name, epochs)
    print_heads("all rows, the training rows included")
    for name in names:
        print_fid(setting, name, ALL_ROWS_EPOCHS[name], "--all-rows")


def print_heads(rows: str) -> None:
    """Print the title and the heads of a table of FID."""
    print(f"\nTable 1, FID of A-CGM, {rows}\n$ calcheck fid FILE --inputs x0,x1,…")
    print(
        f"{'':<8} {'epochs':>6} {'published':>9} {'found':>7} {'×/÷':>5} {'right':>7}  within 3 ×/÷  factor of {FACTOR}"
    )


def print_fid(setting: Setting, name: str, epochs: int, *options: object) -> None:
    """Print the FID of A-CGM on a data set after a number of epochs."""
    reports = [fid_of(setting, name, epochs, seed, *options) for seed in range(setting.sets)]
    logs = [float(np.log(report["value"])) for report in reports]
    line = Line(name, float(np.log(FID[name])), logs)
    right = np.mean([report["reference"] for report in reports])
    close = "yes" if abs(line.mean - np.log(FID[name])) <= np.log(FACTOR) else "no"
    factor = "" if line.deviation is None else f"{np.exp(line.deviation):.1f}"
    numbers = f"{FID[name]:>9.4f} {np.exp(line.mean):>7.4f} {factor:>5} {right:>7.4f}"
    print(f"{name:<8} {epochs:>6} {numbers}  {line.agrees:<12}  {close}", flush=True)


def fid_of(setting: Setting, name: str, epochs: int, seed: int, *options: object) -> dict[str, float]:
    """Return the result of calcheck fid for A-CGM on a random split of a data set."""
    train(setting, name, "--methods", "A-CGM", "--epochs", epochs, "--seed", seed, *options)
    path = setting.folder / f"{name}_A-CGM.parquet"
    (result,) = calcheck("fid", path, "--inputs", inputs_of(path))["results"]
    return dict(result)


def table_1(setting: Setting) -> None:
    """Print JMMD, AMMD and FID of every method on all rows of eight data sets."""
    print("\nThe form of Table 1, all rows\n$ calcheck evaluate FILE --inputs x0,x1,… --metrics jmmd,ammd,fid")
    for name in files_of(setting, SETS):
        printed = train(setting, name, "--rows", 10**6, "--epochs", TABLE_EPOCHS[name])
        print("\n".join(printed.splitlines()[:4]), flush=True)


def train(setting: Setting, name: str, *options: object) -> str:
    """Return what examples/generators.py prints of a data set; its draws are in the folder."""
    command = [generators.__file__, "--data", folder_of(setting, name), "--datasets", name, "--out", setting.folder]
    ended = subprocess.run(
        [sys.executable, *map(str, (*command, *options))], check=True, capture_output=True, text=True
    )
    return ended.stdout


def files_of(setting: Setting, names: tuple[str, ...]) -> list[str]:
    """Return the data sets whose file is in the folder; the others are named."""
    return [name for name in names if folder_of(setting, name)]


def folder_of(setting: Setting, name: str) -> Path | None:
    """Return the folder of a data set."""
    path = setting.file(f"{name}.csv", f"{name}.parquet")
    return path.parent if path else None


def inputs_of(path: Path) -> str:
    """Return the names of the inputs in a Parquet file: those that begin with x."""
    return ",".join(name for name in generators.pq.read_schema(path).names if name.startswith("x"))


def digits(setting: Setting) -> None:
    """Print JMMD, AMMD and FID of images of digits given their label, for every method and for random images."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    data = generators.Rows(np.eye(10)[labels], images / PIXEL)
    rng = np.random.default_rng(0)
    train_rows, test = generators.split(data, rng, DIGIT_ROWS)
    draws = {name: images_of(loss, train_rows, test) for name, loss in generators.LOSSES.items()}
    draws["any label"] = rng.choice(train_rows.y, (len(test.y), generators.SAVED))
    inputs = {f"x{label}": column for label, column in enumerate(test.x.T)}
    print("\nImages given their label\n$ calcheck METRIC FILE --inputs x0,x1,… --standardize none")
    print(f"{'':<18}" + "".join(f"{name:>14} " for name in draws))
    found = {}
    for name, each in draws.items():
        path = write(setting.folder / f"digits_{name}.parquet", **inputs, y=test.y.tolist(), samples=each.tolist())
        found[name] = {metric: image_score(metric, path) for metric in generators.METRICS}
    generators.print_rows("digits", found)


def image_score(metric: str, path: Path) -> float:
    """Return a metric of images; AMMD has no inputs."""
    inputs = () if metric == "ammd" else ("--inputs", inputs_of(path))
    return value(metric, path, *inputs, "--standardize", "none", "--no-null")


def images_of(loss: generators.Loss, train_rows: generators.Rows, test: generators.Rows) -> np.ndarray:
    """Train on images, and return draws at the labels of other rows, (m, l, 64)."""
    torch = generators.torch
    torch.manual_seed(0)
    x, y, at = (torch.tensor(each, dtype=torch.float32) for each in (train_rows.x, train_rows.y, test.x))
    generator = generators.trained(loss, x, y, DIGIT_EPOCHS, WIDTH)
    with torch.no_grad():
        return generator(at, generators.SAVED).double().numpy()


if __name__ == "__main__":
    main(__doc__, {"fid": fid, "table1": table_1, "digits": digits})
