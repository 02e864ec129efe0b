"""A model that was calibrated, and is not any more: daily forecasts of five stations, monitored month by month.

The forecasts are normal, and the errors of the stations on one day have a correlation of 0.5. From 15 February on, the
errors are 1.6 times as large as stated, as after a change of the instruments.

    python examples/monitor.py [FOLDER]

writes a file per month, and prints what calcheck says; with a folder, the files stay there.
"""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STATIONS = 5
MONTHS = {"january": "2026-01", "february": "2026-02"}
CHANGE = np.datetime64("2026-02-15")
COMMANDS = (
    ["monitor", "january.parquet", "--time", "date", "--window", "7D", "--save-state", "model.state", "--quiet"],
    ["monitor", "model.state", "february.parquet", "--save-state", "model.state"],
    ["check", "model.state", "--fail-on", "monitor.e_value > 20", "--exit-zero", "--format", "github"],
)


def forecasts(month: str, rng: np.random.Generator) -> pa.Table:
    """Return the forecasts of a month."""
    start = np.datetime64(month)
    days = np.arange(start, start + 1, dtype="datetime64[D]")
    shared, own = rng.normal(size=(len(days), 1)), rng.normal(size=(len(days), STATIONS))
    z = np.sqrt(0.5) * (shared + own) * np.where(days >= CHANGE, 1.6, 1.0)[:, None]
    mean = 10 + 3 * rng.normal(size=z.shape)
    std = np.tile(np.linspace(0.8, 1.6, STATIONS), (len(days), 1))
    columns = {"y": mean + std * z, "mean": mean, "std": std}
    return pa.table({"date": np.repeat(days, STATIONS), **{name: each.ravel() for name, each in columns.items()}})


def main(folder: Path) -> None:
    """Write the months and print the reports."""
    rng = np.random.default_rng(2026)
    for name, month in MONTHS.items():
        pq.write_table(forecasts(month, rng), folder / f"{name}.parquet")
    for command in COMMANDS:
        print(f"$ {shlex.join(['calcheck', *command])}", flush=True)
        subprocess.run([sys.executable, "-m", "calcheck", *command], check=True, cwd=folder)
        print(flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
