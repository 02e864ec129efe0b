"""Fifteen tasks of everyday work, with the libraries of the field: `python -m tests.first_tasks [NUMBER …]`.

Each task writes a file as a user of the library would, then runs calcheck as somebody who found it today. The second
command, where there is one, is what the message of the first suggests. A task whose library is not installed is named
and left out: `pip install scikit-learn ngboost mapie statsmodels torch==2.13.0`.
"""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

SHOWN = 9  # lines of each output


def diabetes():
    """Return inputs and targets of scikit-learn's diabetes data, in two halves: for training, and for evaluation."""
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True, as_frame=True)
    return x.iloc[::2], y.iloc[::2], x.iloc[1::2], y.iloc[1::2]


def gaussian_process():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    x, y, x_new, y_new = diabetes()
    model = GaussianProcessRegressor(RBF(0.1) + WhiteKernel(1.0), normalize_y=True).fit(x, y)
    mean, std = model.predict(x_new, return_std=True)
    x_new.assign(y=y_new, y_pred=mean, y_std=std).to_csv("gp.csv", index=False)
    return ["gp.csv --inputs bmi,bp,s5"]


def ngboost():
    from ngboost import NGBRegressor

    x, y, x_new, y_new = diabetes()
    predicted = NGBRegressor(verbose=False, random_state=0, n_estimators=100).fit(x.to_numpy(), y).pred_dist(x_new)
    pd.DataFrame({"y": y_new, **predicted.params}).to_parquet("ngboost.parquet")
    return ["ngboost.parquet", "ngboost.parquet --dist gaussian"]


def quantile_regression():
    from sklearn.ensemble import GradientBoostingRegressor

    x, y, x_new, y_new = diabetes()
    levels = np.arange(1, 10) / 10
    models = {level: GradientBoostingRegressor(loss="quantile", alpha=level, random_state=0) for level in levels}
    columns = {f"{level:.1f}": model.fit(x, y).predict(x_new) for level, model in models.items()}
    pd.DataFrame({"y": y_new, **columns}).to_csv("quantiles.csv", index=False)
    return ["quantiles.csv", "quantiles.csv --crossing sort"]


def conformal():
    from mapie.regression import SplitConformalRegressor
    from sklearn.ensemble import RandomForestRegressor

    x, y, x_new, y_new = diabetes()
    forest = RandomForestRegressor(random_state=0).fit(x.iloc[::2], y.iloc[::2])
    model = SplitConformalRegressor(forest, confidence_level=[0.8, 0.9]).conformalize(x.iloc[1::2], y.iloc[1::2])
    y_pred, y_pis = model.predict_interval(x_new)
    np.savez("mapie.npz", y=y_new, y_pred=y_pred, y_pis=y_pis)
    return ["mapie.npz", "mapie.npz --level 0.8,0.9"]


def torch_ensemble():
    import torch

    torch.manual_seed(0)
    x = torch.randn(500, 1)
    y = x[:, 0] + 0.5 * torch.randn(500)
    nets = [torch.nn.Linear(1, 1) for _ in range(5)]
    for net in nets:
        net.weight.data.fill_(1.0)
        net.bias.data.normal_(0, 0.1)
    mu = torch.stack([net(x)[:, 0] for net in nets], dim=1).detach()
    np.savez("ensemble.npz", y=y.numpy(), mu=mu.numpy(), sigma=np.full_like(mu.numpy(), 0.5))
    return ["ensemble.npz", "ensemble.npz --dist mixture --param loc=mu --param scale=sigma"]


def counts():
    import statsmodels.api as sm

    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    y = rng.negative_binomial(2, 2 / (2 + np.exp(1 + 0.5 * x)))
    design = sm.add_constant(x)
    poisson = sm.Poisson(y, design).fit(disp=0)
    negative = sm.NegativeBinomial(y, design).fit(disp=0)
    pd.DataFrame({"y": y, "mu": poisson.predict()}).to_csv("poisson.csv", index=False)
    pd.DataFrame({"y": y, "mu": negative.predict(), "alpha": negative.params[-1]}).to_csv("nbinom.csv", index=False)
    return ["poisson.csv", "poisson.csv --dist poisson --param rate=mu", "nbinom.csv --dist nbinom:mu-alpha"]


def notebook():
    import calcheck

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.normal(size=300), "mean": 0.0, "std": 1.3})
    print(calcheck.evaluate(frame).conclusion)
    print(calcheck.evaluate(frame, "zms").to_frame())
    return []


def simulated(name, n=2000):
    """Write predictions whose uncertainty is wrong in one group, with days and inputs; return the file's name."""
    rng = np.random.default_rng(1)
    sex = rng.choice(["f", "m"], n)
    std = np.exp(rng.normal(0, 0.3, n))
    y = rng.normal(size=n) * std * np.where(sex == "f", 1.4, 1.0)
    day = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n) // 20, unit="D")
    frame = pd.DataFrame({"y": y, "mean": 0.0, "std": std, "sex": sex, "date": day, "x": rng.normal(size=n)})
    frame.to_csv(name, index=False) if name.endswith("csv") else frame.to_parquet(name)
    return name


def groups():
    simulated("groups.csv")
    return ["ence groups.csv --by sex"]


def pictures():
    simulated("pictures.parquet")
    return ["pictures.parquet -o report.html --metrics zms,pit,coverage"]


def recalibration():
    simulated("before.csv")
    return ["recalibrate before.csv", "recalibrate before.csv --export map.json"]


def gate():
    simulated("gate.csv")
    return ["check gate.csv", "check gate.csv --fail-on 'zms.verdict == fail'"]


def two_models():
    frame = pd.read_csv(simulated("old.csv"))
    frame.assign(std=1.2 * frame["std"]).to_csv("new.csv", index=False)
    return ["compare old.csv new.csv --metrics crps,nll,coverage"]


def days():
    simulated("days.parquet")
    return ["lzms days.parquet --by date"]


def arrays():
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    pd.DataFrame({"y": y}).to_csv("truth.csv", index=False)
    np.save("draws.npy", rng.normal(size=(400, 50)))
    return ["draws.npy --truth truth.csv:y", "draws.npy --truth truth.csv:y --samples embedding"]


def million_rows():
    rng = np.random.default_rng(0)
    n = 1_000_000
    mean = rng.normal(size=n).astype(np.float32)
    pd.DataFrame({"y": mean + rng.normal(size=n).astype(np.float32), "mean": mean, "std": np.float32(1)}).to_parquet(
        "million.parquet"
    )
    return ["million.parquet --metrics coverage,zms,pit"]


TASKS = (
    *(gaussian_process, ngboost, quantile_regression, conformal, torch_ensemble, counts, notebook, groups),
    *(pictures, recalibration, gate, two_models, days, arrays, million_rows),
)


def run(command):
    """Run a command line of calcheck and print its exit code and its first lines."""
    print(f"$ calcheck {command}")
    ended = subprocess.run(
        [sys.executable, "-m", "calcheck", *shlex.split(command)], capture_output=True, text=True, check=False
    )
    lines = (ended.stdout + ended.stderr).splitlines()
    print("\n".join(lines[:SHOWN]), f"[exit code {ended.returncode}, {len(lines)} lines]", sep="\n")


def main():
    chosen = [int(word) for word in sys.argv[1:]] or range(1, len(TASKS) + 1)
    for number in chosen:
        task = TASKS[number - 1]
        print(f"\n== {number}. {task.__name__.replace('_', ' ')}")
        try:
            commands = task()
        except ImportError as error:
            print(f"left out: {error.name} is not installed")
            continue
        for command in commands:
            run(command)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, str(Path.cwd()))
        import os

        os.chdir(folder)
        main()
