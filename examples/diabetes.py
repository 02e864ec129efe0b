"""Real data, real models: diabetes progression by a Gaussian process, a linear model, and quantile regressions.

scikit-learn's diabetes data: 442 patients, ten standardized measurements, and a score of disease progression one year
later. Every patient is predicted by models that did not see them (five folds), with ``return_std``. The results,
``diabetes.parquet`` of the Gaussian process and ``diabetes_linear.parquet`` of Bayesian ridge regression, are in the
repository; running this again makes the same files. ``diabetes_quantiles.parquet`` has nine quantiles by gradient
boosting, one model for each level, so that the quantiles of many patients cross.

    python examples/diabetes.py
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import KFold

FOLDER = Path(__file__).parent
KERNEL = ConstantKernel() * RBF(length_scale=5.0) + WhiteKernel()
MODELS = {
    "diabetes": lambda: GaussianProcessRegressor(KERNEL, normalize_y=True, random_state=0),
    "diabetes_linear": BayesianRidge,
}
LEVELS = (0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95)


def predictions(name: str) -> pa.Table:
    """Return inputs, targets, and the mean and standard deviation that a model predicts for each patient."""
    data = load_diabetes()
    x = data.data / data.data.std(axis=0)
    mean, std = np.empty(len(x)), np.empty(len(x))
    for train, test in KFold(5, shuffle=True, random_state=0).split(x):
        model = MODELS[name]().fit(x[train], data.target[train])
        mean[test], std[test] = model.predict(x[test], return_std=True)
    inputs = dict(zip(data.feature_names, data.data.T, strict=True))
    return pa.table({"id": np.arange(len(x)), **inputs, "y": data.target, "mean": mean, "std": std})


def quantiles() -> pa.Table:
    """Return targets and the quantiles that independent models predict for each patient."""
    data = load_diabetes()
    columns = {f"q_{level:g}": np.empty(len(data.target)) for level in LEVELS}
    for train, test in KFold(5, shuffle=True, random_state=0).split(data.data):
        for level, column in zip(LEVELS, columns.values(), strict=True):
            model = GradientBoostingRegressor(
                loss="quantile", alpha=level, n_estimators=50, max_depth=2, min_samples_leaf=10, random_state=0
            )
            column[test] = model.fit(data.data[train], data.target[train]).predict(data.data[test])
    return pa.table({"id": np.arange(len(data.target)), "y": data.target, **columns})


if __name__ == "__main__":
    for name in MODELS:
        pq.write_table(predictions(name), FOLDER / f"{name}.parquet")
        print(f"wrote {FOLDER / name}.parquet")
    pq.write_table(quantiles(), FOLDER / "diabetes_quantiles.parquet")
    print(f"wrote {FOLDER / 'diabetes_quantiles.parquet'}")
