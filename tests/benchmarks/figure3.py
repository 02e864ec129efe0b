"""Figure 3 of the ZMS paper: how often |zeta| <= 1 on calibrated data, by the tail of the uncertainties.

`python -m tests.benchmarks.figure3` prints it for 1,000 sets of 5,000 rows, in about three minutes.
"""

import numpy as np

from calcheck.distributions import Gaussian
from calcheck.execution.context import Run
from calcheck.inference.bootstrap import Replicates
from calcheck.inference.intervals import acceleration, bca, zeta
from calcheck.inference.verdicts import statistic_of
from calcheck.metrics import METRICS
from calcheck.predictions import Predictions
from tests.shorthand import rows_of


def normal_inverse_gamma(rng, rows, nu):
    """Return predictions with u^2 from an inverse gamma distribution (nu/2, nu/2), and errors N(0, u^2)."""
    std = np.sqrt(nu / 2 / rng.gamma(nu / 2, size=rows))
    return Predictions(y=std * rng.normal(size=rows), predictive=Gaussian(np.zeros(rows), std))


def zetas(predictions, *, run, resamples, confidence):
    """Return zeta of ZMS and RCE."""
    found = [rows_of(METRICS[name](), predictions) for name in ("zms", "rce")]
    statistics = [statistic_of(METRICS[name](), rows) for name, rows in zip(("zms", "rce"), found, strict=True)]
    replicates = Replicates(statistics, run)
    replicates.draw(resamples)
    for statistic, rows, values in zip(statistics, found, replicates.values, strict=True):
        estimate = statistic.estimate()
        limits = bca(values, estimate, acceleration(statistic.leave_one_out()), confidence)
        yield zeta(estimate, rows.reference, limits.low, limits.high)


def share_of_valid(*, nu, sets, rows, resamples, confidence=0.95):
    """Return the shares of sets with |zeta| <= 1, for ZMS and for RCE."""
    rng = np.random.default_rng(0)
    valid = np.zeros(2)
    for seed in range(sets):
        predictions = normal_inverse_gamma(rng, rows, nu)
        found = zetas(predictions, run=Run(seed=seed), resamples=resamples, confidence=confidence)
        valid += np.abs(list(found)) <= 1
    return valid / sets


def main():
    """Print the shares by nu."""
    print("nu    zms    rce")
    for nu in (2, 3, 4, 6, 20):
        zms, rce = share_of_valid(nu=nu, sets=1000, rows=5000, resamples=1500)
        print(f"{nu:2}  {zms:.3f}  {rce:.3f}", flush=True)


if __name__ == "__main__":
    main()
