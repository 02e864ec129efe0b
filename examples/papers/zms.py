"""Tables and figures of "How to validate average calibration for machine learning regression tasks?" (Pernot).

    python examples/papers/zms.py [FIGURE] --data FOLDER

reads the sets of arXiv 2402.10043 (github.com/ppernot/2024_RCE) from a folder, as CSV files with the columns error and
std, named set1_*.csv to set9_*.csv. Sets 8 and 9 may have the names and the columns of their authors. Sets that are not
there are named, and left out. Figure 3 needs no data.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from tools import Line, Setting, calcheck, main, show

ZMS = (0.960, 0.885, 1.119, 1.226, 0.846, 0.984, 0.972, 0.926, 0.971)
ZMS_ZETA = (-0.28, -1.02, 1.69, 3.39, -1.89, -0.10, -0.69, -1.14, -0.27)
RCE = (0.0186, -0.0387, -0.0075, 0.0545, 0.0986, 0.0924, -0.264, 0.0459, -0.0131)
RCE_ZETA = (0.47, -0.66, -0.16, 0.985, 2.45, 1.02, -0.999, 1.24, -0.34)
ORIGINAL = {8: "logp_10k_a_ls_gcn_test.csv", 9: "logp_150k_ls_gcn_test.csv"}  # Their deviations are the column uq
LARGE = 0.1  # Published with three decimals
NU = "2..10,15,20"


def sets(setting: Setting) -> dict[int, tuple[object, ...]]:
    """Return the files of the sets that are in the folder, with the options that name their columns, by number."""
    files = {
        number: setting.file(f"set{number}_*.csv", *([ORIGINAL[number]] if number in ORIGINAL else []))
        for number in range(1, 10)
    }
    return {
        number: (path, "--error", "error", "--std", "uq" if path.name in ORIGINAL.values() else "std")
        for number, path in files.items()
        if path
    }


def table_1(setting: Setting) -> None:
    """Print the sizes of the sets, and the tails of their uncertainties, errors and z-scores."""
    print("\nTable I\n$ calcheck evaluate FILE --metrics zms,rce --error error --std std")
    print(f"{'set':>3} {'rows':>7} {'RMV':>9} {'RMSE':>9} {'bias':>10}  skewness of u², E², z²")
    for number, data in sets(setting).items():
        report = calcheck("evaluate", *data, "--metrics", "zms,rce", "--no-bootstrap")
        zms, rce = (result["details"] for result in report["results"])
        tails = (rce["skewness"]["variance"], rce["skewness"]["squared_error"], zms["skewness"]["z2"])
        texts = " ".join(f"{each:.2f}" for each in tails)
        parts = f"{rce['rmv']:9.4g} {rce['rmse']:9.4g} {rce['mean_error']:10.3g}"
        print(f"{number:>3} {report['input']['n']:>7} {parts}  {texts}")


def table_2(setting: Setting) -> None:
    """Print ZMS and RCE with their zeta-scores and the bias of the bootstrap.

    Zeta moves from seed to seed by about 1.5 %: each has the deviation over ``--sets`` seeds.
    """
    lines, biases = [], []
    for number, data in sets(setting).items():
        runs = [calcheck("evaluate", *data, "--metrics", "zms,rce", "--seed", seed) for seed in range(setting.sets)]
        for place, (name, values, zetas, digits) in enumerate((("ZMS", ZMS, ZMS_ZETA, 3), ("RCE", RCE, RCE_ZETA, 4))):
            results = [run["results"][place] for run in runs]
            published, zeta = values[number - 1], zetas[number - 1]
            decimals = 3 if abs(published) > LARGE else digits
            found = [results[0]["value"]]
            lines.append(Line(f"set {number} {name}", published, found, digits=decimals, simulated=False))
            lines.append(Line(f"set {number} {name} zeta", zeta, [each["zeta"] for each in results], digits=2))
            biases.append(
                f"set {number} {name} {np.mean([each['details']['bootstrap']['bias'] for each in results]):.1e}"
            )
    show("Table II", "calcheck evaluate FILE --metrics zms,rce --error error --std std --seed SEED", lines)
    print(f"bias of the bootstrap: {', '.join(biases)}")


def figure_1(setting: Setting) -> None:
    """Print the distances of ZMS and RCE from their targets, |zeta|, and whether the two metrics agree.

    The revised paper adds the same without the 5 % of the rows that have the largest uncertainties.
    """
    print("\nFigure 1\n$ calcheck reject FILE --refit --error error --std std --step 5 --max-percent 5")
    print(f"{'':<8} {'|zeta| ZMS':>10} {'RCE':>6}  {'':<14} {'without 5 %: ZMS':>16} {'RCE':>6}")
    for number, data in sets(setting).items():
        results = calcheck("reject", *data, "--refit", "--step", 5, "--max-percent", 5)["results"]
        zetas = [abs(each["zeta"]) for each in results]
        texts = []
        for zms, rce in zip(zetas[:2], zetas[2:], strict=True):
            valid = [name for name, zeta in (("ZMS", zms), ("RCE", rce)) if zeta <= 1]
            texts.append((zms, rce, f"valid: {', '.join(valid) or 'none'}"))
        (zms, rce, text), (zms_5, rce_5, text_5) = texts
        print(f"set {number:<4} {zms:>10.2f} {rce:>6.2f}  {text:<14} {zms_5:>16.2f} {rce_5:>6.2f}  {text_5}")


def figure_2(setting: Setting) -> None:
    """Print the change of ZMS and RCE when the largest uncertainties are removed."""
    print("\nFigure 2\n$ calcheck reject FILE --refit --error error --std std --step 5")
    print(f"{'':<28} {'removed':>8} {'change':>9} {'zeta':>6}")
    for number, data in sets(setting).items():
        report = calcheck("reject", *data, "--refit", "--step", 5)
        for each in report["results"]:
            name = f"set {number} {each['metric']}"
            print(f"{name:<28} {each['slice']['removed']:>8} {each['details']['change']:>9.4f} {each['zeta']:>6.2f}")


def figure_3(setting: Setting) -> None:
    """Print how often intervals are valid, by the tails of the uncertainties: ``--sets`` times 100 data sets."""
    options = ("--nu", NU, "--sets", 100 * setting.sets, "--rows", 5000, "--resamples", 1500)
    report = calcheck("validity", "--metrics", "zms,rce", *options)
    print(f"\nFigure 3\n$ calcheck validity --metrics zms,rce {' '.join(map(str, options))}")
    print(f"{'nu':>4} {'valid ZMS':>10} {'limits':>14} {'valid RCE':>10} {'limits':>14}")
    half = len(report["results"]) // 2
    for zms, rce in zip(report["results"][:half], report["results"][half:], strict=True):
        texts = [f"{each['value']:>10.3f} {each['low']:>8.3f},{each['high']:.3f}" for each in (zms, rce)]
        print(f"{zms['slice']['nu']:>4} {' '.join(texts)}")


if __name__ == "__main__":
    main(__doc__, {"table1": table_1, "table2": table_2, "1": figure_1, "2": figure_2, "3": figure_3})
