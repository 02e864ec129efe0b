"""Real data, a real model: Gaussian-process predictions of diabetes progression.

scikit-learn's diabetes data: 442 patients, ten standardised measurements, and a score of disease progression one year
later. Every patient is predicted by a Gaussian process that did not see them (five folds), with ``return_std``. The
result, ``diabetes.parquet``, is in the repository; running this again makes the same file.

    python examples/diabetes.py
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import KFold

OUT = Path(__file__).with_suffix(".parquet")


def predictions() -> pa.Table:
    """Return inputs, targets, and the mean and standard deviation predicted for each patient."""
    data = load_diabetes()
    x = data.data / data.data.std(axis=0)
    mean, std = np.empty(len(x)), np.empty(len(x))
    kernel = ConstantKernel() * RBF(length_scale=5.0) + WhiteKernel()
    for train, test in KFold(5, shuffle=True, random_state=0).split(x):
        model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(x[train], data.target[train])
        mean[test], std[test] = model.predict(x[test], return_std=True)
    inputs = dict(zip(data.feature_names, data.data.T, strict=True))
    return pa.table({"id": np.arange(len(x)), **inputs, "y": data.target, "mean": mean, "std": std})


if __name__ == "__main__":
    pq.write_table(predictions(), OUT)
    print(f"wrote {OUT}")
