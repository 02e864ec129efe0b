"""Figure 1 of "Evaluating and Calibrating Uncertainty Prediction in Regression Tasks" (Levi et al. 2022).

    python examples/papers/ence.py [FIGURE] [--sets 5]

Random uncertainties, which say nothing about the errors, become calibrated on average by isotonic recalibration: the
calibration error of quantiles is then that of a right model, and ENCE shows that they mean nothing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import levi_figure1
from tools import Line, Setting, calcheck, main, show

METRICS = ("ece", "ence")


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
        command = ["recalibrate", files[0], "--method", "pit", "--to", files[1], "-o", files[2]]
        subprocess.run([sys.executable, "-m", "calcheck", *map(str, command)], check=True, capture_output=True)
        for stage, path in (("before", files[1]), ("recalibrated", files[2])):
            report = calcheck("evaluate", path, "--metrics", ",".join(METRICS), "--no-bootstrap", "--replicates", 199)
            for result in report["results"]:
                found.setdefault(f"{result['metric']} {stage}", []).append(result["value"])
                if result["reference"] is not None:
                    found.setdefault(f"{result['metric']} {stage}, right", []).append(result["reference"])
    lines = [Line(name, None, values) for name, values in found.items()]
    show("Figure 1", "calcheck recalibrate VAL --method pit --to TEST -o OUT; calcheck evaluate OUT", lines)


if __name__ == "__main__":
    main(__doc__, {"1": figure_1})
