"""Real data, real intervals: conformalized quantile regression of diabetes progression.

scikit-learn's diabetes data, as in ``diabetes.py``. Every patient is predicted by models that did not see them (five
folds): two quantile regressions (boosted trees, levels 0.05 and 0.95) are fitted to three quarters of the other
patients, and their distance is adjusted on the last quarter, so that 90 % of new patients are expected inside (Romano,
Patterson, Candès 2019, arXiv 1905.03222). The result, ``diabetes_intervals.parquet``, is in the repository.

    python examples/conformal.py
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import KFold, train_test_split

FILE = Path(__file__).parent / "diabetes_intervals.parquet"
LEVEL = 0.9


def fitted(x: np.ndarray, y: np.ndarray, level: float) -> GradientBoostingRegressor:
    """Return a quantile regression."""
    model = GradientBoostingRegressor(loss="quantile", alpha=level, max_depth=2, n_estimators=60, random_state=0)
    return model.fit(x, y)


def limits(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return medians and both limits at new inputs, adjusted on a quarter of the rows."""
    x_fit, x_rest, y_fit, y_rest = train_test_split(x, y, test_size=0.25, random_state=0)
    low, middle, high = (fitted(x_fit, y_fit, level) for level in ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2))
    scores = np.maximum(low.predict(x_rest) - y_rest, y_rest - high.predict(x_rest))
    rank = int(np.ceil((len(scores) + 1) * LEVEL)) - 1
    margin = np.sort(scores)[rank]
    return middle.predict(new), low.predict(new) - margin, high.predict(new) + margin


def predictions() -> pa.Table:
    """Return inputs, targets, medians and intervals of each patient."""
    data = load_diabetes()
    x, y = data.data, data.target
    found = np.empty((3, len(x)))
    for train, test in KFold(5, shuffle=True, random_state=0).split(x):
        found[:, test] = limits(x[train], y[train], x[test])
    inputs = dict(zip(data.feature_names, x.T, strict=True))
    named = dict(zip(("prediction", "lower", "upper"), found, strict=True))
    return pa.table({"id": np.arange(len(x)), **inputs, "y": y, **named})


if __name__ == "__main__":
    pq.write_table(predictions(), FILE)
    print(f"wrote {FILE}")
