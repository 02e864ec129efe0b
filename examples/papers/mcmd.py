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
from tools import Setting, main

SETTINGS = ("--gamma-x", 0.5, "--gamma-y", 0.5, "--lambda", 0.01, "--squared")


def figure_1(setting: Setting) -> None:
    """Print ECE of perfect models of counts, which are those of Figure 13 of the later paper."""
    cce.figure_13(setting)


def figure_2(setting: Setting) -> None:
    """Print the squared MCMD of pairs of homoscedastic samples."""
    published = (0.0017, 0.0206, 0.1603, 1.3233, 0.6386, 0.6543)
    cce.six(setting, "Figure 2", cce.homoscedastic_pairs, published, *SETTINGS)


if __name__ == "__main__":
    main(__doc__, {"1": figure_1, "2": figure_2})
