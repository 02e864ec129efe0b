"""Figures of "On Measuring Calibration of Discrete Probabilistic Neural Networks" (Young, Jenkins).

    python examples/papers/mcmd.py [FIGURE] [--sets 5]

The published numbers are squares: the authors' code of that time returned the square of the distance, with lambda 0.01
(the text says 0.1), gamma 0.5 for inputs and targets, and 50 points.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import cce
import numpy as np
import sine_counts
from tools import Setting, calcheck, main, show_values

SETTINGS = ("--gamma-x", 0.5, "--gamma-y", 0.5, "--lambda", 0.01, "--squared")


def figure_1(setting: Setting) -> None:
    """Print ECE of perfect models of counts, which are those of Figure 13 of the later paper."""
    cce.figure_13(setting)


def figure_2(setting: Setting) -> None:
    """Print the squared MCMD of pairs of homoscedastic samples."""
    published = (0.0017, 0.0206, 0.1603, 1.3233, 0.6386, 0.6543)
    cce.six(setting, "Figure 2", cce.homoscedastic_pairs, published, *SETTINGS)


def figure_3(setting: Setting) -> None:
    """Print the squared distance of three families from the discrete sine wave, each with the true mean."""
    options = ("--inputs", "x", "--gamma-x", 0.5, "--gamma-y", 0.5, "--lambda", 0.01, "--draws", 100, "--no-null")
    rows: dict[str, list[list[float]]] = {name: [[]] for name in ("poisson", "nbinom", "gaussian")}
    out = setting.folder / "rows.parquet"
    for seed in range(setting.sets):
        files = cce.sine_files(setting, 200, seed)
        for name, (values,) in rows.items():
            calcheck("cce", files[name], *options, *sine_counts.OPTIONS[name], "--seed", seed, "--pointwise", out)
            values.append(float(np.mean(np.square(sine_counts.pq.read_table(out)["cce"]))))
    command = f"calcheck cce FILE {' '.join(map(str, options))} --pointwise OUT"
    show_values("Figure 3, mean of the square", command, ["squared"], rows)


def figure_4(setting: Setting) -> None:
    """Print the squared MCMD of pairs of heteroscedastic samples."""
    cce.six(setting, "Figure 4", cce.heteroscedastic_pairs, (None,) * len(cce.TITLES), *SETTINGS)


if __name__ == "__main__":
    main(__doc__, {"1": figure_1, "2": figure_2, "3": figure_3, "4": figure_4})
