"""What other packages say about three models: the table in README.md. `python -m tests.benchmarks.peers`.

Needs an environment of its own, with this repository on PYTHONPATH:

    python -m venv peers
    peers/bin/pip install uncertainty-toolbox==0.1.1 netcal==1.4 MAPIE==1.6 scoringrules==0.10 model-diagnostics==1.5
    peers/bin/pip install covmetrics==0.1.2 pyarrow pandas typer rich pydantic array-api-compat threadpoolctl
    PYTHONPATH=. peers/bin/python -m tests.benchmarks.peers

Each model predicts 442 normal distributions. Targets are drawn from them; with a standard deviation of 4/3 of the
predicted one; or of twice the predicted one where the input x is above 0.8.
"""

from importlib.metadata import version

import numpy as np
import pandas as pd

import calcheck

ROWS, SEED, NORMAL_95 = 442, 3, 1.6448536269514722
FACTORS = {
    "right": lambda _: 1.0,
    "std 25 % too small": lambda _: 4 / 3,
    "std half of the right one where x > 0.8": lambda x: np.where(x > 0.8, 2.0, 1.0),
}


def predictions(factor):
    """Return the frame of a model, whose targets deviate by a factor of the inputs more than predicted."""
    rng = np.random.default_rng(SEED)
    x, std = rng.uniform(size=ROWS), rng.uniform(1, 2, ROWS)
    return pd.DataFrame({"y": 10 * x + factor(x) * std * rng.normal(size=ROWS), "mean": 10 * x, "std": std, "x": x})


def numbers(frame):
    """Yield what each package computes for a frame: its name and version, the measure, and the value."""
    import uncertainty_toolbox
    from mapie.metrics.conditional import worst_slab_coverage
    from mapie.metrics.regression import regression_coverage_score
    from model_diagnostics.calibration import compute_bias
    from netcal.metrics.regression import ENCE
    from scoringrules import crps_normal

    y, mean, std = (frame[name].to_numpy() for name in ("y", "mean", "std"))
    low, high = mean - NORMAL_95 * std, mean + NORMAL_95 * std
    limits = np.stack([low, high], axis=1)[:, :, None]
    found = uncertainty_toolbox.get_all_average_calibration(mean, std, y, num_bins=100, verbose=False)
    bias = compute_bias(y_obs=y, y_pred=high, functional="quantile", level=0.95)
    yield "uncertainty-toolbox", "miscalibration area", found["miscal_area"]
    yield "netcal", "ENCE", float(np.squeeze(ENCE(10).measure((mean, std), y)))
    yield "mapie", "coverage of 90 % intervals", regression_coverage_score(y, limits)[0]
    yield "mapie", "coverage of the worst slab of x", worst_slab_coverage(frame[["x"]], y, y_intervals=limits)
    yield "scoringrules", "CRPS", crps_normal(y, mean, std).mean()
    yield "model-diagnostics", "p of the 95 % quantile", bias["p_value"][0]


def main():
    """Print a table of the numbers, and the answers of calcheck."""
    frames = {name: predictions(factor) for name, factor in FACTORS.items()}
    columns = [list(numbers(frame)) for frame in frames.values()]
    print(f"| | {' | '.join(frames)} |")
    for cells in zip(*columns, strict=True):
        package, measure, _ = cells[0]
        values = " | ".join(f"{value:.3g}" for _, _, value in cells)
        print(f"| {package} {version(package)}: {measure} | {values} |")
    for name, frame in frames.items():
        report = calcheck.evaluate(frame, ["zms"], inputs=["x"])
        size = next(effect for effect in report.conclusion.effects if effect.topic == "size")
        where = report.region.text if report.region else ""
        print(f"{name}: {report.conclusion.answer} {report.conclusion.qualifiers}; {size.text}; {where}")


if __name__ == "__main__":
    main()
