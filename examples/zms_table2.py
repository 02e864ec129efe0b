"""Table II of the ZMS paper: ZMS and RCE with their intervals and zeta-scores, a line a file.

    python examples/zms_table2.py FILE...

Files have errors and standard deviations (columns `error`, `std`), or targets, means and standard deviations. Without a
file it makes four sets with the shapes of the paper's: calibrated and not, with light and with heavy tails.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import calcheck

SETS = {  # rows, degrees of freedom of u^2 ~ inverse gamma, factor by which uncertainties are too small
    "light, right": (2000, 20, 1.0),
    "light, small": (2000, 20, 1.15),
    "heavy, right": (4000, 3, 1.0),
    "heavy, small": (4000, 3, 1.15),
}


def made(folder: Path) -> list[Path]:
    """Write the four sets as CSV files with errors and standard deviations."""
    rng = np.random.default_rng(0)
    paths = []
    for name, (rows, nu, factor) in SETS.items():
        std = np.sqrt(nu / 2 / rng.gamma(nu / 2, size=rows))
        paths.append(folder / f"{name}.csv")
        pyarrow.csv.write_csv(pa.table({"error": std * rng.normal(size=rows), "std": std / factor}), paths[-1])
    return paths


def main(paths: list[Path]) -> None:
    """Print the table."""
    print(f"{'set':24} {'n':>6}  {'':4} {'value':>8}  {'95 % interval':>18}  {'zeta':>6} {'±':>6}  verdict")
    for path in paths:
        report = calcheck.evaluate(path, ["zms", "rce"])
        for result in report.results:
            interval = "" if result.low is None else f"[{result.low:.4f}, {result.high:.4f}]"
            distance = "" if result.zeta is None else f"{result.zeta:6.3f} {result.zeta_mc_error:6.3f}"
            line = f"{path.stem[:24]:24} {report.input.n:6}  {result.metric:4} {result.value:8.4f}  {interval:>18}"
            print(f"{line}  {distance}  {result.verdict}")


if __name__ == "__main__":
    if sys.argv[1:]:
        main([Path(argument) for argument in sys.argv[1:]])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(made(Path(temporary)))
