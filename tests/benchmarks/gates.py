"""How often gates fail: those without rules of right models, and those against reports of other rows.

    python -m tests.benchmarks.gates --rows 400 --sets 400 --workers 2

Draws three data sets of each kind: two from a right model, and one whose predicted standard deviations are 25 % too
small. Prints the shares of sets in which ``calcheck check`` without rules, ``check SECOND --against FIRST --no-worse``
and the same of the third exit with 1, each with its Monte Carlo error, and what was worse. Reports have the scores and
what is behind the answer, which is all that these gates look at.
"""

import argparse
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from calcheck.evaluation import Answer, evaluate
from calcheck.execution.run import RowDependence, Run
from calcheck.metrics import METRICS
from calcheck.models.report_difference import SCORES, SQUARES
from calcheck.predictions import InMemory
from calcheck.studies.gate.baseline import compare_other_rows
from tests.benchmarks import right_models

SIZE = 5  # Rows of a cluster
WRONG = 0.75  # Factor of the predicted standard deviations
REPLICATES = 199
DESIGNS = {
    "normal": (right_models.normal, RowDependence()),
    "poisson": (right_models.poisson, RowDependence()),
    "20 members": (partial(right_models.members, 20), RowDependence()),
    "9 quantiles": (right_models.normal_quantiles, RowDependence()),
    "AR(1) .5, --time": (partial(right_models.series, 0.5), RowDependence(time="hour")),
    "clusters of 5, --cluster": (partial(right_models.clusters, 0.5, size=SIZE), RowDependence(cluster="patient")),
}


def report_of(name, n, scale, seed):
    """Return the report of a data set."""
    make, dependence = DESIGNS[name]
    rows = make(np.random.default_rng([sum(name.encode()), n, *seed]), n, scale)
    run = Run(seed=seed[0], replicates=REPLICATES, dependence=dependence)
    metrics = [METRICS[each]() for each in METRICS if each in (*SCORES, SQUARES)]
    return evaluate(InMemory(rows), metrics, run=run, answer=Answer())


def one_set(name, n, seed):
    """Return whether each gate fails, and what is worse: of a right model, and of a wrong one."""
    first, second, third = (report_of(name, n, scale, (seed, part)) for part, scale in enumerate((1.0, 1.0, WRONG)))
    worse = [
        [each.rule for each in compare_other_rows(other, first, "old", "", strict=False) if not each.passed]
        for other in (second, third)
    ]
    return first.conclusion.answer == "no", *worse


def share(count, sets):
    """Return a share with its standard error."""
    found = count / sets
    return f"{found:.3f} ± {np.sqrt(found * (1 - found) / sets):.3f}"


def line(name, n, found):
    """Return a line of the table, in Markdown."""
    checks, same, wrong = zip(*found, strict=True)
    shares = [share(sum(map(bool, each)), len(found)) for each in (checks, same, wrong)]
    what = Counter(rule.removesuffix(" is not worse") for each in same for rule in each)
    told = ", ".join(f"{rule} {count}" for rule, count in what.most_common())
    return f"| {name} | {n} | {len(found)} | {' | '.join(shares)} | {told} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=list(DESIGNS), metavar="DESIGN")
    parser.add_argument("--rows", nargs="*", type=int, default=[400])
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="number of the first set")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the workers
    print(
        "| predictions | rows | sets | check, right | no-worse, right | no-worse, std 25 % too small | worse, right |"
    )
    print(f"|{' --- |' * 7}")
    seeds = range(given.first, given.first + given.sets)
    with ProcessPoolExecutor(given.workers) as executor:
        for name in given.designs:
            for n in given.rows:
                found = executor.map(partial(one_set, name, n), seeds, chunksize=5)
                print(line(name, n, list(found)), flush=True)


if __name__ == "__main__":
    main()
