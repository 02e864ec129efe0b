"""Six pairs of samples, compared by their conditional distributions, after the MCMD paper (Appendix A).

The first sample of each pair is the same: x ~ U(0, 2 pi) and y = sin x + 0.3 e with e ~ N(0, 1). The second has inputs
of its own and more rows, and is like the first, or has less or more noise, another mean, another relation, or noise
that grows along x and has the same variance on average: it is heteroscedastic, where the first is homoscedastic.

    python examples/mcmd_six.py [FOLDER]

asks ``calcheck mcmd`` about each pair, and prints a table. In the folder stay the samples, and ``mcmd_six.svg``: the
distance at each input beside what it is where distributions are equal.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from calcheck.charts.drawing import draw
from calcheck.charts.picture import Picture
from calcheck.render.pictures import metric_pictures
from calcheck.reports import Report
from calcheck.storage.report_json import read_report

ROWS, OTHER_ROWS, SEED = 500, 600, 0
NOISE = 0.3

Curve = Callable[[np.ndarray], np.ndarray]


def constant(size: float) -> Curve:
    """Return noise of one size at all inputs."""
    return lambda x: np.full_like(x, size)


def growing(x: np.ndarray) -> np.ndarray:
    """Return noise that grows from 0 on, with a mean variance of NOISE^2."""
    return NOISE * np.sqrt(3) * x / (2 * np.pi)


SAMPLES: dict[str, tuple[Curve, Curve]] = {
    "same": (np.sin, constant(NOISE)),
    "smaller variance": (np.sin, constant(0.5 * NOISE)),
    "larger variance": (np.sin, constant(2 * NOISE)),
    "shifted mean": (lambda x: np.sin(x) + 0.3, constant(NOISE)),
    "different relation": (np.cos, constant(NOISE)),
    "heteroscedastic": (np.sin, growing),
}


def sample(rng: np.random.Generator, rows: int, mean: Curve, noise: Curve) -> pa.Table:
    """Draw inputs and targets."""
    x = rng.uniform(0, 2 * np.pi, rows)
    return pa.table({"x": x, "y": mean(x) + noise(x) * rng.normal(size=rows)})


def mcmd(first: Path, second: Path, name: str) -> Report:
    """Return the report of the program; with a picture, it has the curve of the picture."""
    report, plot = first.with_name(f"{name}.json"), first.with_name(f"{name}.svg")
    command = [sys.executable, "-m", "calcheck", "mcmd", str(first), str(second), "--inputs", "x"]
    subprocess.run([*command, "--format", "json", "-o", str(report), "--plot", str(plot)], check=True)
    return read_report(str(report))


def main(folder: Path) -> None:
    """Write the samples and the plot, and print the table."""
    rng = np.random.default_rng(SEED)
    first = folder / "first.parquet"
    pq.write_table(sample(rng, ROWS, *SAMPLES["same"]), first)
    panels = []
    print(f"{'second sample':<20} {'MCMD':>6} {'equal':>6} {'p':>6}  verdict")
    for name, (mean, noise) in SAMPLES.items():
        second = folder / f"{name.replace(' ', '_')}.parquet"
        pq.write_table(sample(rng, OTHER_ROWS, mean, noise), second)
        report = mcmd(first, second, f"{second.stem}_mcmd")
        (found,), (picture,) = report.results, metric_pictures(report)
        print(f"{name:<20} {found.value:.4f} {found.reference:.4f} {found.p_value:6.3f}  {found.verdict}")
        panels += [replace(panel, title=name) for panel in picture.panels]
    plot = folder / "mcmd_six.svg"
    plot.write_bytes(draw(Picture(tuple(panels), "MCMD of two samples"), str(plot)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
