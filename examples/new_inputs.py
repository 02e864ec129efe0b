"""What is foretold for new inputs, and what was observed there, on real data with targets kept apart until the end.

    python examples/new_inputs.py [DATA]

prints the table of `calcheck guide new-inputs`. DATA is a folder with text_case, pernot, uci and forecasts, by default
../shared/data beside this repository. Models of the UCI data predict the mean and the spread of the 12 nearest of a
third of the rows. Of the others, rows with a first principal component among the largest 30 % are new with a
probability of 85 %, the rest with 10 %.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

import calcheck
from calcheck.reports.conclusion import Answered

FAST = {"replicates": 0, "resamples": 0}  # the answer at new inputs does not depend on them
Frames = tuple[str, pd.DataFrame, pd.DataFrame, list[str]]


def text(data: Path) -> Iterator[Frames]:
    """Yield readability of texts by their embeddings: two halves at random, and long texts after short ones."""
    first, second = (pd.read_parquet(data / "text_case" / f"{name}.parquet") for name in ("val", "test"))
    yield "texts → other texts", first, second, []
    counts = pd.concat([pd.read_parquet(data / "text_case" / f"{name}_count.parquet") for name in ("val", "test")])
    both = pd.concat([first, second], ignore_index=True)
    sentences = counts.set_index("id")["y"].reindex(both["id"]).to_numpy()
    is_long = sentences > np.median(sentences)
    yield "short texts → long ones", both[~is_long], both[is_long], []


def molecules(data: Path) -> Iterator[Frames]:
    """Yield energies of QM9: large molecules after small ones."""
    frame = pd.read_csv(data / "pernot" / "set7_QM9_E.csv").rename(columns={"y_true": "y", "y_pred": "mean"})
    inputs = ["n_atoms", "mass", "frac_hetero"]
    frame = frame[["y", "mean", "std", *inputs]]
    is_large = frame["n_atoms"] > 18  # noqa: PLR2004 - the median
    yield "QM9: small → large", frame[~is_large], frame[is_large], inputs


def uci(data: Path, name: str) -> Iterator[Frames]:
    """Yield a data set of UCI, split mostly along its first principal component."""
    frame, rng = pd.read_csv(data / "uci" / f"{name}.csv"), np.random.default_rng(0)
    x, y = frame.drop(columns="y").to_numpy(np.float64), frame["y"].to_numpy(np.float64)
    x = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    first = x @ np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[2][0]
    order = rng.permutation(len(y))
    trained, rest = order[: len(y) // 3], order[len(y) // 3 :]
    near = y[trained][cKDTree(x[trained]).query(x[rest], k=12)[1]]
    spread = np.maximum(near.std(axis=1, ddof=1), y.std() / 20)
    made = frame.iloc[rest].assign(mean=near.mean(axis=1), std=spread)
    is_large = first[rest] > np.quantile(first[rest], 0.7)
    is_new = rng.random(len(rest)) < np.where(is_large, 0.85, 0.1)
    yield f"UCI {name}", made[~is_new], made[is_new], [each for each in frame if each != "y"]


def influenza(data: Path) -> Iterator[Frames]:
    """Yield the FluSight ensemble: reference dates after 10 January after those before."""
    keys, folder = {"location": str, "date": str, "target_end_date": str}, data / "forecasts"
    long = pd.read_csv(folder / "flusight_ensemble_quantile.csv", dtype=keys)
    truth = pd.read_csv(folder / "flusight_truth_hospital_admissions.csv", dtype=keys)
    units = ["reference_date", "location", "horizon", "target_end_date"]
    wide = long.pivot_table(index=units, columns="output_type_id", values="value")
    wide = wide.set_axis([f"q_{level:g}" for level in wide.columns], axis=1).reset_index()
    seen = truth.rename(columns={"date": "target_end_date", "value": "y"})[["target_end_date", "location", "y"]]
    wide = wide.merge(seen, on=["target_end_date", "location"])
    wide = wide.assign(log_median=np.log1p(wide["q_0.5"]), log_width=np.log1p(wide["q_0.975"] - wide["q_0.025"]))
    is_new = wide["reference_date"] > "2026-01-10"
    wide = wide.drop(columns=[name for name in units if name != "horizon"])
    yield "FluSight: to 10 Jan → later", wide[~is_new], wide[is_new], ["horizon", "log_median", "log_width"]


def size(answered: Answered | None) -> str:
    """Return the factor of an answer with its interval."""
    found = [] if answered is None else [each for each in answered.effects if each.topic == "size"]
    if not found or found[0].value is None:
        return "not shown"
    high = "∞" if found[0].high is None else f"{found[0].high:.2f}"
    return f"{found[0].value:.2f} ({found[0].low or 0:.2f}–{high})"


def main(data: Path) -> None:
    """Print the table."""
    print("| tested → new | rows | beyond | on tested rows | foretold | observed |")
    print("| --- | --- | --- | --- | --- | --- |")
    frames = [*text(data), *molecules(data)]
    frames += [each for name in ("boston", "concrete", "energy", "wine", "ccpp", "kin8nm") for each in uci(data, name)]
    for name, tested, new, inputs in [*frames, *influenza(data)]:
        options = FAST | ({"inputs": inputs} if inputs else {})
        report = calcheck.evaluate(tested, "mae", on=new.drop(columns="y"), **options)
        is_beyond = report.rows("on")["beyond"].to_numpy(bool)
        rest = new if is_beyond.all() else new[~is_beyond]
        there = calcheck.evaluate(rest, "mae", **FAST)
        known = report.conclusion
        on = None if known is None else known.on
        share = 0.0 if on is None else on.beyond.share
        cells = (f"{len(tested):,} → {len(new):,}", f"{share:.0%}", *map(size, (known, on, there.conclusion)))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "shared" / "data")
