"""Real data, real models: predictions of diabetes progression by a Gaussian process, and by a linear model.

scikit-learn's diabetes data: 442 patients, ten standardized measurements, and a score of disease progression one year
later. Every patient is predicted by models that did not see them (five folds), with ``return_std``. The results,
``diabetes.parquet`` of the Gaussian process and ``diabetes_linear.parquet`` of Bayesian ridge regression, are in the
repository; running this again makes the same files.

    python examples/diabetes.py
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_diabetes
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


if __name__ == "__main__":
    for name in MODELS:
        pq.write_table(predictions(name), FOLDER / f"{name}.parquet")
        print(f"wrote {FOLDER / name}.parquet")
