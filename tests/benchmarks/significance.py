"""The level of verdicts if the model is right, and the power of each metric if it is wrong.

    python -m tests.benchmarks.significance levels --sets 1000 --rows 30 100 500 2000
    python -m tests.benchmarks.significance power --sets 300 --rows 300 1000
    python -m tests.benchmarks.significance levels --metrics cce jmmd cmmd fid --sets 200 --rows 100
    python -m tests.benchmarks.significance quantiles --sets 1000 --rows 100 1000
    python -m tests.benchmarks.significance levels --families "1 interval" "2 intervals" "3 intervals" --replicates 79
    python -m tests.benchmarks.significance compare --sets 400 --rows 100 300

``levels`` draws data sets from models that are right, and prints how often each metric's verdict is ``fail``: at most
7.5 % in any cell, and 5 % within the binomial band at 99.9 %, divided by the number of cells (below it where ties make
p conservative, or where there is no verdict). A cell is followed by the share of sets that are ``undecided`` or have no
verdict, if that is above 1 %. ``quantiles`` does the same for right models of which files state 2 to 23 quantiles, with
the coverage of their outermost interval, and ``power`` for models that are wrong. ``compare`` draws pairs of equally
good models, and prints how often the p-value of their difference is at most 0.05.
"""

import argparse
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from scipy import stats

from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory
from tests.benchmarks.models import BY_QUANTILES, EQUAL, RIGHT, WRONG, equal_pair, rows_of
from tests.helpers.shorthand import compare_models

LEVEL, MOST = 0.05, 0.075
JUDGED = [name for name, metric in METRICS.items() if metric.info.alternative != "none"]
BY_ROWS = [name for name in JUDGED if "x" not in METRICS[name].info.needs]
IN_BINS = ("lzms", "lrce")  # whose intervals need the bootstrap


def metric_of(name, predictive):
    """Return a metric; coverage is that of the outermost interval of distributions given by quantiles."""
    levels = predictive.quantile_levels
    if name != "coverage" or levels is None:
        return METRICS[name]()
    return METRICS[name](level=round(float(levels[-1] - levels[0]), 6))


def verdicts(maker, names, targets, replicates, n, seed):
    """Return the verdict of each metric on one data set; absent where it does not apply."""
    rows = rows_of(maker, n, seed, targets)
    shapeless = not rows.predictive.shape_is_known
    found = {}
    for run, chosen in (
        (
            Run(resamples=1000 if shapeless else 0, replicates=replicates),
            [name for name in names if name not in IN_BINS],
        ),
        (Run(resamples=1000 if shapeless else 100, replicates=replicates), [name for name in names if name in IN_BINS]),
    ):
        if not chosen:
            continue
        report = evaluate(InMemory(rows), [metric_of(name, rows.predictive) for name in chosen], run=run)
        found |= {result.metric: result.verdict for result in report.results}
    return found


def differences(maker, names, n, seed):
    """Return whether each metric's difference of two models has p <= 0.05; absent without a p-value."""
    first, second = equal_pair(maker, n, seed)
    run = Run(seed=seed, resamples=999)
    found = {name: compare_models(METRICS[name](), first, second, run=run, swaps=999).p_value for name in names}
    return {name: "fail" if p <= LEVEL else "pass" for name, p in found.items() if p is not None}


def counted(work, sets, workers):
    """Count the outcomes of many data sets by metric."""
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(work, range(sets), chunksize=5))
    names = dict.fromkeys(name for each in found for name in each)
    return {name: Counter(each.get(name, "none") for each in found) for name in names}


def share(counts, verdict):
    return counts[verdict] / sum(counts.values())


def outcome(counts):
    """Return the share of fails, and of other outcomes if there are any, as text."""
    others = {"undecided": share(counts, "undecided"), "none": share(counts, "none")}
    details = ", ".join(f"{name} {part:.2f}" for name, part in others.items() if part > 0.01)
    return f"{share(counts, 'fail'):.3f}" + (f" ({details})" if details else "")


def print_table(names, cells):
    """Print metrics as rows and cells as columns."""
    print(f"| metric | {' | '.join(cells)} |")
    print(f"| --- |{' ---: |' * len(cells)}")
    for name in names:
        print(f"| {name} | {' | '.join(outcome(cell[name]) if name in cell else '–' for cell in cells.values())} |")


def print_summary(names, cells, rows):
    """Print the mean and the largest share of fails over families, for each metric and number of rows."""
    print(f"| metric | {' | '.join(f'n = {n:,}' for n in rows)} |")
    print(f"| --- |{' ---: |' * len(rows)}")
    for name in names:
        line = []
        for n in rows:
            fails = [share(cell[name], "fail") for (_, size), cell in cells.items() if size == n and name in cell]
            line.append(f"{np.mean(fails):.3f} ({max(fails):.3f})" if fails else "–")
        print(f"| {name} | {' | '.join(line)} |")


def band(sets, cells):
    """Return limits that contain the shares of all cells with a probability of 99.9 %, if p-values are exact."""
    tail = 0.001 / cells / 2
    return stats.binom.ppf(tail, sets, LEVEL) / sets, stats.binom.ppf(1 - tail, sets, LEVEL) / sets


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["levels", "quantiles", "power", "compare"])
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="*", default=[300])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--targets", type=int, default=1)
    parser.add_argument(
        "--replicates", type=int, help="of levels and power; more are drawn for open verdicts by default"
    )
    parser.add_argument("--metrics", choices=JUDGED, nargs="*", default=BY_ROWS)
    parser.add_argument("--families", nargs="*")
    given = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the workers
    makers = {"levels": RIGHT, "quantiles": BY_QUANTILES, "power": WRONG, "compare": EQUAL}[given.what]
    cells = {}
    for n in given.rows:
        for name in given.families or makers:
            work = (
                partial(differences, makers[name], given.metrics, n)
                if given.what == "compare"
                else partial(verdicts, makers[name], given.metrics, given.targets, given.replicates, n)
            )
            cells[name, n] = counted(work, given.sets, given.workers)
            print(f"{name}, n = {n}:", *(f"{each} {outcome(one)};" for each, one in cells[name, n].items()), flush=True)
    print_table(given.metrics, {f"{name}, n = {n}": cell for (name, n), cell in cells.items()})
    if given.what != "power":
        print_summary(given.metrics, cells, given.rows)
        low, high = band(given.sets, sum(map(len, cells.values())))
        shares = {
            (*cell, name): share(counts, "fail") for cell, found in cells.items() for name, counts in found.items()
        }
        above = {cell: fails for cell, fails in shares.items() if fails > MOST}
        print(f"band [{low:.3f}, {high:.3f}]; outside: {[each for each in shares if shares[each] > high] or 'none'}")
        print(f"above {MOST:g}: {above or 'none'}; mean of all cells: {np.mean(list(shares.values())):.3f}")


if __name__ == "__main__":
    main()
