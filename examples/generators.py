"""Conditional generators trained on calcheck's discrepancies, and judged by its command line.

[JMMD] (Huang, Lam, Zhang): a generator maps an input and noise to a draw of the target, G(x, xi) with xi ~ U(-1, 1)^10;
two hidden layers of 32 rectified units, Adam at 5e-4. Its loss on a mini-batch is a discrepancy between the batch's
targets and a few draws a row, on inputs and targets standardized by the training rows:

    A-CGM   AMMD (Algorithm 1): the draws at an input against its own target
    J-CGM   JMMD (Algorithm 2), by Eq. 7 as printed: it has pairs of the same row, without which only rows of similar
            inputs would teach the generator anything
    CGMMN   CMMD, the baseline (lambda = 0.1)

and, to know what a model scores that sees no input, targets of random training rows: unconditional.

    python examples/generators.py [--data FOLDER] [--datasets a,b] [--rows N] [--methods a,b] [--epochs N] [--seed N]
                                  [--all-rows] [--out FOLDER]

The data are CSV or Parquet files with columns x… and y: those of ../shared/data/uci beside this repository, or of any
other folder. At most 1,000 rows of each are used, at random, unless --rows says how many. For every data set and method
it writes one Parquet file (inputs, y, and a column of lists ``samples``: 50 draws at each test row), and prints a table
like the paper's Table 1, of what ``calcheck evaluate --metrics jmmd,ammd,fid`` says of these files. Five data sets take
two minutes of one processor.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import torch

from calcheck.discrepancies import ammd, cmmd, jmmd, standardized

DATA = Path(__file__).parents[2] / "shared" / "data" / "uci"
DATASETS = "boston,concrete,energy,wine,yacht"
ROWS, TEST = 1000, 0.2  # most rows that are used of a data set by default, and the share of them to test on
NOISE, WIDTH, RATE, BATCH = 10, 32, 5e-4, 50
DRAWS, SAVED = 5, 50  # a row: in a step of training, and in files

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
LOSSES: dict[str, Loss] = {
    "A-CGM": lambda _, y, draws: ammd(y, draws),
    "J-CGM": lambda x, y, draws: jmmd(x, y, draws, statistic="paper"),
    "CGMMN": lambda x, y, draws: cmmd(x, y, draws, lambda_=0.1),
}
FLOOR = "unconditional"
METRICS = {"jmmd": ".2e", "ammd": ".4f", "fid": ".4f"}

NOTE = """
* lowest of its row. Lower is better, and for JMMD 0 is perfect: what lies below is chance. --out keeps the files;
calcheck evaluate says of each what a perfect model would score.

The order of the methods may be compared with that in the paper's Table 1, the numbers may not:
- AMMD is without the constant that the targets alone decide, so it is negative for every model that is any good.
  The paper prints positive values, which its definition (Eq. 6) does not give.
- JMMD leaves out pairs of the same row: 0 on average where model and data agree. Eq. 7 as printed keeps them.
- Inputs and targets are standardized by the test rows; rows, split, seed, epochs and batches are not the paper's.
"""


@dataclass(frozen=True)
class Rows:
    """Inputs (n, d) and targets (n,) or (n, t)."""

    x: np.ndarray
    y: np.ndarray


def data_file(folder: Path, name: str) -> Path | None:
    """Return the file of a data set, CSV or Parquet; None if there is none."""
    files = (folder / f"{name}{ending}" for ending in (".csv", ".parquet"))
    return next((file for file in files if file.is_file()), None)


def read(path: Path, rng: np.random.Generator, most: int = ROWS) -> tuple[Rows, Rows]:
    """Return rows to train and to test on, at random: at most so many together."""
    table = pq.read_table(path) if path.suffix == ".parquet" else pc.read_csv(path)
    x = np.stack([table[name].to_numpy() for name in table.column_names if name != "y"], axis=1).astype(float)
    return split(Rows(x, table["y"].to_numpy().astype(float)), rng, most)


def split(data: Rows, rng: np.random.Generator, most: int) -> tuple[Rows, Rows]:
    """Return rows to train and to test on, at random: at most so many together."""
    order = rng.permutation(len(data.x))[:most]
    test, train = np.split(order, [round(TEST * len(order))])
    return Rows(data.x[train], data.y[train]), Rows(data.x[test], data.y[test])


def joined(train: Rows, test: Rows) -> Rows:
    """Return the rows of both parts."""
    return Rows(np.concatenate([train.x, test.x]), np.concatenate([train.y, test.y]))


class Generator(torch.nn.Module):
    """G(x, xi): standardized inputs (n, d) become standardized draws (n, l) of one target, or (n, l, t)."""

    def __init__(self, columns: int, targets: int = 1, width: int = WIDTH) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(columns + NOISE, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, targets),
        )

    def forward(self, x: torch.Tensor, size: int) -> torch.Tensor:
        noise = 2 * torch.rand(len(x), size, NOISE) - 1
        repeated = x[:, None].expand(-1, size, -1)
        drawn = self.layers(torch.cat([repeated, noise], dim=2))
        return drawn[:, :, 0] if drawn.shape[2] == 1 else drawn


def trained(loss: Loss, x: torch.Tensor, y: torch.Tensor, epochs: int, width: int = WIDTH) -> Generator:
    """Return a generator that makes the loss small on mini-batches of standardized rows."""
    generator = Generator(x.shape[1], y[0].numel(), width)
    optimizer = torch.optim.Adam(generator.parameters(), lr=RATE)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).tensor_split(max(1, len(x) // BATCH)):
            optimizer.zero_grad()
            loss(x[rows], y[rows], generator(x[rows], DRAWS)).backward()
            optimizer.step()
    return generator


def draws_of(loss: Loss, train: Rows, x: np.ndarray, epochs: int, seed: int) -> np.ndarray:
    """Train on standardized rows, and return draws at other inputs, (m, l) or (m, l, t), in the unit of the targets."""
    torch.manual_seed(seed)
    inputs, targets, at = (
        torch.tensor(standardized(values, by), dtype=torch.float32)
        for values, by in ((train.x, train.x), (train.y, train.y), (x, train.x))
    )
    generator = trained(loss, inputs, targets, epochs)
    with torch.no_grad():
        draws = generator(at, SAVED).double().numpy()
    return train.y.mean(axis=0) + train.y.std(axis=0, ddof=1) * draws


def unconditional(train: Rows, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return targets of random training rows, (n, l)."""
    return rng.choice(train.y, (n, SAVED))


def save(path: Path, test: Rows, draws: np.ndarray) -> None:
    """Write inputs, targets and draws."""
    inputs = {f"x{column}": values for column, values in enumerate(test.x.T)}
    pq.write_table(pa.table(inputs | {"y": test.y, "samples": list(draws)}), path)


def scores(path: Path, columns: int) -> dict[str, float]:
    """Ask the program."""
    command = [sys.executable, "-m", "calcheck", "evaluate", str(path), "--metrics", ",".join(METRICS)]
    inputs = ",".join(f"x{column}" for column in range(columns))
    options = ["--inputs", inputs, "--no-null", "--no-bootstrap", "--format", "json"]
    said = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    return {result["metric"]: result["value"] for result in json.loads(said.stdout)["results"]}


def compared(path: Path, folder: Path, chosen: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Train every method on a data set, save its draws at the test rows, and return its scores."""
    rng = np.random.default_rng(chosen.seed)
    train, test = read(path, rng, chosen.rows)
    if chosen.all_rows:
        test = joined(train, test)
    found = {}
    for name in chosen.methods:
        if name == FLOOR:
            draws = unconditional(train, len(test.y), rng)
        else:
            draws = draws_of(LOSSES[name], train, test.x, chosen.epochs, chosen.seed)
        file = folder / f"{path.stem}_{name}.parquet"
        save(file, test, draws)
        found[name] = scores(file, test.x.shape[1])
    return found


def print_rows(dataset: str, found: dict[str, dict[str, float]]) -> None:
    """Print a row a metric, the best marked."""
    for metric, form in METRICS.items():
        values = [each[metric] for each in found.values()]
        cells = [f"{value:{form}}{'*' if value == min(values) else ' '}" for value in values]
        print(f"{dataset:<12}{metric.upper():<6}" + "".join(f"{cell:>15}" for cell in cells), flush=True)


def options() -> argparse.Namespace:
    """Read the command line; end the program where the data are absent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = (*LOSSES, FLOOR)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of CSV or Parquet files, columns x… and y")
    parser.add_argument("--datasets", default=DATASETS, help="their names, without .csv or .parquet")
    parser.add_argument("--rows", type=int, default=ROWS, help="most rows of a data set")
    parser.add_argument("--methods", type=lambda text: text.split(","), default=list(names), help=",".join(names))
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all-rows", action="store_true", help="judge on all rows, those of the training included")
    parser.add_argument("--out", type=Path, help="folder to keep the Parquet files in")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.methods if name not in names]:
        parser.exit(2, f"there is no method {', '.join(unknown)}: --methods takes {', '.join(names)}\n")
    for name in chosen.datasets.split(","):
        if not data_file(chosen.data, name):
            parser.exit(2, f"there is no {chosen.data / name}.csv: give --data FOLDER and --datasets a,b\n")
    return chosen


def main(folder: Path, chosen: argparse.Namespace) -> None:
    """Print the table, data set by data set."""
    torch.set_num_threads(1)  # the same sums, and so the same files, on any machine's number of processors
    print(f"{'':<18}" + "".join(f"{name:>14} " for name in chosen.methods))
    for name in chosen.datasets.split(","):
        print_rows(name, compared(data_file(chosen.data, name), folder, chosen))
    print(NOTE, end="")


if __name__ == "__main__":
    chosen = options()
    if chosen.out:
        chosen.out.mkdir(parents=True, exist_ok=True)
        main(chosen.out, chosen)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary), chosen)
