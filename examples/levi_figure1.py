"""What ECE and ENCE see, after Levi et al. 2022 (arXiv 1905.11659), Figure 1: uncertainties that mean nothing.

The errors are uniform with one spread in all rows, and the model predicts standard deviations at random, too small on
average. Two corrections are fitted to validation rows, and judged on test rows:

* isotonic recalibration of the distribution function (``pit``) makes shares below the quantiles right over all rows, so
  that ECE passes; large and small uncertainties still mean nothing, and ENCE fails;
* scaling of the variance by a power of itself (``local``) makes uncertainties equal to the errors in all bins, so that
  ENCE passes; the distributions are still normal, the errors are not, and ECE fails.

    python examples/levi_figure1.py [PICTURE]

prints both tables, and draws both in one picture, ``levi_figure1.svg`` unless a name is given.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from calcheck import recalibrate
from calcheck.charts.drawing import draw
from calcheck.charts.picture import Axis, Line, Panel, Picture, Rule
from calcheck.reports import Report

FITTED, TESTED = 10_000, 2000
METHODS = {"pit": "after isotonic recalibration", "local": "after scaling of the variance"}


def predictions(rows: int, seed: int) -> pd.DataFrame:
    """Return targets with uniform errors, means, and random standard deviations."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=rows), 0.4 * np.exp(0.4 * rng.normal(size=rows))
    return pd.DataFrame({"y": mean + rng.uniform(-1, 1, rows), "mean": mean, "std": std})


def points(report: Report, metric: str, stage: str, detail: str) -> list[dict[str, float]]:
    """Return the points of a metric's curve or bins on the test rows."""
    wanted = {"rows": "other rows", "stage": stage}
    (found,) = (each for each in report.results if each.metric == metric and each.slice == wanted)
    return found.details[detail]


def quantile_line(report: Report, stage: str, name: str) -> Line:
    """Return the share of targets below each quantile, as a difference from its level."""
    curve = points(report, "ece", stage, "curve")
    return Line([each["level"] for each in curve], [each["observed"] - each["level"] for each in curve], name)


def spread_line(report: Report, stage: str, name: str) -> Line:
    """Return the root mean squared errors of bins of rows against their predicted deviations."""
    bins = points(report, "ence", stage, "bins")
    return Line([each["rmv"] for each in bins], [each["rmse"] for each in bins], name)


def outcomes(report: Report) -> pd.DataFrame:
    """Return the values of metrics on the test rows with their verdicts, before and after the correction."""
    found: dict[str, dict[str, str]] = {"before": {}, "after": {}}
    for each in report.results:
        if each.slice.get("rows") == "other rows":
            found[str(each.slice["stage"])][each.metric] = f"{each.value:.3g} {each.verdict}"
    return pd.DataFrame(found)


def picture(reports: dict[str, Report]) -> Picture:
    """Return the picture of both reliabilities before and after each correction."""
    first = next(iter(reports.values()))
    panels = []
    for line in (quantile_line, spread_line):
        after = (line(report, "after", METHODS[method]) for method, report in reports.items())
        panels.append([line(first, "before", "before"), *after])
    ends = [0.2, 2.0]
    return Picture(
        (
            Panel((Rule(y=0), *panels[0]), Axis("level"), Axis("share below − level"), "what ECE sees"),
            Panel(
                (Line(ends, ends, dashed=True), *panels[1]),
                Axis("predicted deviation of the bin", log=True),
                Axis("root mean squared error", log=True),
                "what ENCE sees",
            ),
        ),
        "Random uncertainties, recalibrated",
        "Right uncertainties lie on the dashed lines.",
    )


def main(path: str) -> None:
    """Print the tables, and draw the picture."""
    fitted, tested = predictions(FITTED, 0), predictions(TESTED, 2)
    reports = {
        method: recalibrate(fitted, method, to=tested, metrics=("ece", "ence"), resamples=0, replicates=99)
        for method in METHODS
    }
    for method, report in reports.items():
        print(f"{METHODS[method]}\n{outcomes(report).to_string()}\n")
    Path(path).write_bytes(draw(picture(reports), path))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "levi_figure1.svg")
