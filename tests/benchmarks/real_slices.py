"""Regions of real predictions: found in one half of the rows, and what the other half says about them.

    python -m tests.benchmarks.real_slices

The data are in ../shared/data, and described there. Rows alternate between the halves. For each region, the metrics of
its fault are shown, with the p-values of the half that was not searched. Then the coverage of flu forecasts is compared
by location and horizon, in the first and the last three weeks.
"""

import re
import shlex
from pathlib import Path

import pandas as pd

import calcheck

DATA = Path("../shared/data")
FLU = DATA / "forecasts/flusight_ensemble_quantile.csv"
TRUTH = DATA / "forecasts/flusight_truth_hospital_admissions.csv"
ENERGIES = {"target": "E_", "mean": "prediction", "var": "uncertainty_total"}


def qm9():
    """Return energies of molecules with isotonic uncertainties, and the counts of their atoms."""
    rows = pd.read_csv(DATA / "predictions/qm9_e_isotonic_test.csv").drop(columns="index")
    for element in "CHNOF":
        found = rows.formula.map(lambda formula, element=element: re.findall(rf"{element}(\d*)", formula))
        rows[element] = [sum(int(count or 1) for count in counts) for counts in found]
    return rows


def text():
    """Return the readability of texts."""
    return pd.read_parquet(DATA / "text_case/test.parquet").drop(columns="embedding")


def confirm(name, rows, **options):
    """Print the regions of every other row, and the metrics of their faults in these and in the other rows."""
    columns = options.pop("columns", None)
    found = calcheck.slices(rows[::2], columns=columns, **options)
    faults = [each for each in found.results if each.verdict == "fail"]
    print(f"{name}: {len(rows[::2]):,} rows searched, {found.settings['regions']:,} regions")
    for result in faults:
        filters = [text for text in shlex.split(result.slice["filter"]) if text != "--filter"]
        (other,) = calcheck.evaluate(rows[1::2], result.metric, filter=filters, **options).results
        print(
            f"  {result.slice['group']} ({result.slice['rows']:,}): {result.metric} {result.value:.3g},"
            f" p {result.p_value_adjusted:.2g}; others {other.value:.3g}, p {other.p_value:.2g}"
        )


def flu(by):
    """Print the coverage of flu forecasts by group, in two periods."""
    for period in ("<2026-01-15", ">=2026-01-15"):
        report = calcheck.slices(
            FLU, by, metrics="coverage", min_rows=12, truth=str(TRUTH), filter=[f"reference_date{period}"]
        )
        total, *groups = (each for each in report.results if each.value is not None)
        failed = sum(each.verdict == "fail" for each in groups)
        values = [each.value for each in groups]
        print(
            f"  reference_date{period}: {total.value:.3f} of all; {by}: {failed} of {len(groups)} fail,"
            f" {min(values):.2f} to {max(values):.2f}"
        )


def main():
    """Print what is found and what is confirmed."""
    confirm("QM9", qm9(), columns=[*"CHNOF", "mean", "std"], **ENERGIES)
    confirm("text_case", text())
    confirm("diabetes", pd.read_parquet("examples/diabetes.parquet"))
    print("FluSight hub, coverage of 90 % intervals")
    flu("horizon")
    flu("location")


if __name__ == "__main__":
    main()
