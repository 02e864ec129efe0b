"""How often each answer is given: to right models, and to models that are off by a known size.

    python -m tests.benchmarks.answers --rows 100 300 1000 --sets 400 --workers 2
    python -m tests.benchmarks.answers --table --rows 100 300 1000
    python -m tests.benchmarks.answers --power --rows 100 300 1000

Counts for each design, fault and number of rows the data sets with the answers YES and NO, and the intervals of the
width factor that hold its true value, which is that of 300,000 rows, or of 200 times as many if these are more. Each
cell is saved as a line of answers.jsonl and is not computed again unless more sets are asked for. A cell has 60 sets at
first, as many as ``--wrong`` for the NO of wrong models, and all of them for the intervals and where a wrong answer is
more frequent than a third of what is allowed. ``--table`` prints what is saved. ``--power`` prints what ``calcheck
evaluate --power`` tells about right normal rows with two inputs.

Marked are a YES if the fault is at the tolerance or beyond, or a NO to a right model, in more than 7.5 % of sets, and
intervals that hold the truth in less than 88.5 %, or 86 % if rows depend on each other. Only the metrics behind the
answer are computed: the factor first, since without its interval inside the tolerance there is no YES, then the answer
without replicates, which a YES does not need, and then 199 replicates. A local misfit with inputs counts as YES
only without "on average".
"""

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from calcheck.distributions import Gaussian
from calcheck.evaluation import Answer, evaluate
from calcheck.execution.run import RowDependence, Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.zscores import spreads
from tests.benchmarks import right_models
from tests.benchmarks.right_models import NINE

SAVED = Path(__file__).with_suffix(".jsonl")
ROWS = (30, 60, 100, 300, 1000, 10_000)
FACTORS = (1 / 1.333, 1.1, 1.2, 1.333, 1.5)
MARK, HELD, HELD_DEPENDENT = 0.075, 0.885, 0.86
TOLERANCE = 0.2
FIRST = 60  # Sets of a cell before it is known whether more are needed
REPLICATES = 199
PART, MANY = 50_000, 300_000  # Rows that the needed factor is searched with, and those whose factor is the true one
TIMES = 200  # As many times the rows of a data set are those of the true factor, if these are more
STEPS = 2  # of the search with the smaller number
PROMISED = 1.333  # Factor that must be seen
NEAR = 0.05  # Most difference of the logarithms of the factors that is wanted and met
BORDER = 0.99  # Relative size of a fault at the tolerance, up to rounding
FEWEST = 60  # The fewest rows that depend on each other: clusters of 10
COUNTS = ("held", "yes", "no")  # Each needs the ones before it


@dataclass(frozen=True)
class Fault:
    """What is wrong with a model: the factor by which its intervals would have to be wider, and its bias."""

    factor: float = 1.0
    bias: float = 0.0  # in predicted standard deviations
    local: float = 0.0  # standard deviation of the error of the logarithm of the std, along the input
    named: bool = False  # whether the inputs are given
    scale: float = 1.0  # of predictions that need the factor

    @property
    def is_beyond(self):
        """Return whether a YES is wrong: at the border too. Without inputs, a local misfit cannot be seen."""
        known = self.local if self.named else 0.0
        sizes = abs(np.log(self.factor)) / np.log1p(TOLERANCE), self.bias / TOLERANCE, known / TOLERANCE
        return max(sizes) > BORDER

    @property
    def is_right(self):
        return self.factor == 1 and not (self.bias or self.local)


FAULTS = {
    "right": Fault(),
    **{f"factor {each:.3g}": Fault(factor=each) for each in FACTORS},
    "bias .2": Fault(bias=0.2),
    "bias .5": Fault(bias=0.5),
    "local .3, inputs": Fault(local=0.3, named=True),
    "local .3": Fault(local=0.3),
    "right, inputs": Fault(named=True),
}


def misfit(local, rng, n, factor):
    """Normal predictions whose std is off along the input."""
    x = rng.uniform(-1, 1, size=(n, 1))
    mean, std = x[:, 0], np.exp(0.3 * rng.normal(size=n))
    y = mean + std * rng.normal(size=n)
    wrong = factor * std * np.exp(local * np.sqrt(3) * x[:, 0])  # of a uniform number the std is 1 / sqrt(3)
    return Predictions(y=y, predictive=Gaussian(mean, wrong), x=x, has_embedding=False)


@dataclass(frozen=True)
class Design:
    """Predictions by their generator, the number of rows and the factor of their scale."""

    make: object
    dependence: RowDependence = field(default_factory=RowDependence)
    exact: bool = False  # Whether the factor of the scale is the reciprocal of the one that is needed
    counts: bool = False  # Whether targets are whole numbers


DESIGNS = {
    "normal": Design(right_models.normal, exact=True),
    "t4": Design(right_models.student_t, exact=True),
    "lognormal": Design(right_models.lognormal),
    "poisson": Design(right_models.poisson, counts=True),
    "negative binomial": Design(right_models.nbinom, counts=True),
    "30 members": Design(partial(right_models.members, 30), exact=True),
    "11 members": Design(partial(right_models.members, 11), exact=True),
    "9 quantiles": Design(right_models.normal_quantiles, exact=True),
    "intervals": Design(partial(right_models.normal_intervals, (0.9,)), exact=True),
    "poisson, 9 quantiles": Design(partial(right_models.count_quantiles, NINE), counts=True),
    "AR(1) .5, --time": Design(partial(right_models.series, 0.5), RowDependence(time="hour"), exact=True),
    "clusters, --cluster": Design(partial(right_models.clusters, 0.5), RowDependence(cluster="patient"), exact=True),
}


def size_of(rows, run):
    """Return the width factor at the level of the answer, as a result."""
    return evaluate(InMemory(rows), [METRICS["width-factor"]()], run=replace(run, resamples=0, replicates=0)).results[0]


def scaled(fault, design, rows):
    """Return a fault with the scale of predictions that need its factor; and with the exact one, which it is about."""
    if fault.factor == 1 or design.exact:
        return replace(fault, scale=1 / fault.factor)

    def needed(scale, n):
        return size_of(design.make(np.random.default_rng(0), n, scale), Run()).value

    scale, many = 1 / fault.factor, max(MANY, TIMES * rows)
    for n in (*[PART] * STEPS, many):
        if (found := needed(scale, n)) == 1:  # of ties
            break
        scale = float(scale ** (np.log(fault.factor) / np.log(found)))
    return replace(fault, scale=scale, factor=needed(scale, many))


def generator(name, n, seed):
    return np.random.default_rng([sum(name.encode()), n, seed])


def true_spreads(rows, name, n, seed):
    """Return the standard deviations of the distributions, also of those that draws or intervals are from, (n,)."""
    predictive = rows.distributions()
    is_known = predictive.n_draws is None and predictive.interval_levels is None
    return spreads(predictive) if is_known else right_models.locations(generator(name, n, seed), n)[1]


def rows_of(name, fault, n, seed):
    """Return a data set with a fault."""
    rng = generator(name, n, seed)
    if fault.local or fault.named:
        rows = misfit(fault.local, rng, n, 1.0)
        return rows if fault.named else replace(rows, x=None)
    rows = DESIGNS[name].make(rng, n, fault.scale)
    if not fault.bias:
        return rows
    shift = fault.bias * true_spreads(rows, name, n, seed)
    return replace(rows, y=rows.y + (np.floor(shift + rng.random(n)) if DESIGNS[name].counts else shift))


def answered(rows, replicates, run, *, power=False):
    run = replace(run, resamples=0, replicates=replicates)
    return evaluate(InMemory(rows), [], run=run, answer=Answer(TOLERANCE, power=power)).conclusion


def one_set(name, fault, n, wanted, seed):
    """Return whether the interval of the width factor holds the true one, and whether the answer is YES, and NO.

    The last ones are False if they are not wanted.
    """
    rows, run = rows_of(name, fault, n, seed), Run(seed=seed, dependence=DESIGNS[name].dependence)
    size = size_of(rows, run)
    low, high = size.low or 0.0, np.inf if size.high is None else size.high
    held = low <= fault.factor <= high
    if wanted == "held":
        return held, False, False
    is_inside = low >= 1 / (1 + TOLERANCE) and high <= 1 + TOLERANCE
    if is_inside and not fault.named and answered(rows, 0, run).answer == "yes":
        return held, True, False
    if wanted == "yes" and not (is_inside and fault.named):
        return held, False, False
    found = answered(rows, REPLICATES, run)
    yes = found.answer == "yes" and not (fault.local and "on-average" in found.qualifiers)
    return held, yes, found.answer == "no"


def is_made(name, fault, n):
    """Return whether a design has a fault: only some rows have inputs, and nine quantiles of counts have no std."""
    if (DESIGNS[name].dependence.is_stated and n < FEWEST) or (fault.bias and name == "poisson, 9 quantiles"):
        return False
    return name == "normal" or not (fault.local or fault.named)


def is_open(wanted, cell, fault):
    """Return whether the first sets of a cell leave open whether a share is what it must be."""
    if wanted == "held":
        return not (fault.bias or fault.local)
    count, sets = cell[wanted]
    is_wrong = fault.is_right if wanted == "no" else fault.is_beyond
    promised = "yes" if fault.is_right else "no" if fault.factor == PROMISED else ""
    is_promised = cell["design"] == "normal" and wanted == promised
    return is_promised or (is_wrong and count / sets > MARK / 3)


def extended(cell, fault, sets, wrong, pool):
    """Return a cell with as many sets as it needs, of which some are for the NO of wrong models."""
    name, n = cell["design"], cell["rows"]
    if "scale" not in cell:
        fault = scaled(fault, DESIGNS[name], n)
        cell = {**cell, "factor": fault.factor, "scale": fault.scale}
    fault = replace(fault, factor=cell["factor"], scale=cell["scale"])
    for first in (True, False):
        for wanted in reversed(COUNTS):
            done = cell.get(wanted, [0, 0])[1]
            few = FIRST if wanted != "no" or fault.is_right else wrong
            upto = min(few, sets) if first else sets
            if done >= upto or not (first or (done and is_open(wanted, cell, fault))):
                continue
            told = pool(partial(one_set, name, fault, n, wanted), range(done, upto))
            for each, count in zip(COUNTS, np.sum(told, axis=0).tolist(), strict=True):
                known, before = cell.get(each, [0, 0])
                if COUNTS.index(each) <= COUNTS.index(wanted) and before == done:
                    cell[each] = [known + count, upto]
    return cell


def key_of(cell):
    return cell["design"], cell["fault"], cell["rows"]


def is_met(cell):
    """Return whether predictions need about the factor of the fault: with ties there may be none that do."""
    return abs(np.log(cell["factor"] / FAULTS[cell["fault"]].factor)) < NEAR


def load():
    """Return the saved cells by design, fault and number of rows."""
    lines = SAVED.read_text(encoding="utf-8").splitlines() if SAVED.exists() else []
    return {key_of(cell): cell for cell in map(json.loads, lines)}


def scale_of(name, fault, rows):
    """Return the scale of predictions with a fault and their factor, if a cell has them that is as exact."""
    known = (
        each
        for each in load().values()
        if (each["design"], each["fault"]) == (name, fault) and max(each["rows"], MANY // TIMES) >= rows
    )
    return {each: cell[each] for cell in [*known][:1] for each in ("factor", "scale")}


def save(cells):
    SAVED.write_text("".join(f"{json.dumps(cell)}\n" for cell in cells.values()), encoding="utf-8")


def shares(cell, *, held=True):
    """Return the shares of a cell as text, and marks of those that are not what they must be."""
    fault = replace(FAULTS[cell["fault"]], factor=cell["factor"])
    yes, no, inside = (np.divide(*cell.get(each, [0, np.nan])) for each in ("yes", "no", "held"))
    bar = HELD_DEPENDENT if DESIGNS[cell["design"]].dependence.is_stated else HELD
    wrong = (fault.is_beyond and yes > MARK) or (fault.is_right and no > MARK)
    text = f"{yes:.2f}/{'' if np.isnan(no) else f'{no:.2f}'}{' !' if wrong else ''}"
    known = held and not (fault.bias or fault.local)
    return f"{text} ({inside:.3f}{' !' if inside < bar else ''})" if known else text


def table(designs, faults, rows, *, held=True):
    """Return the table of what is saved, in Markdown."""
    cells = {key: cell for key, cell in load().items() if is_met(cell)}
    columns = [(fault, n) for fault in faults for n in rows]
    names = [name for name in designs if any((name, *column) in cells for column in columns)]
    lines = [
        f"| YES/NO | {' | '.join(f'{fault}, {n:,}' for fault, n in columns)} |",
        f"| --- |{' --- |' * len(columns)}",
    ]
    for name in names:
        found = (cells.get((name, *column)) for column in columns)
        lines.append(f"| {name} | {' | '.join(shares(each, held=held) if each else '' for each in found)} |")
    return "\n".join(lines)


def power_table(rows):
    """Return the table of the share of data sets with each fault of ``--power`` whose answer is NO, in Markdown."""
    made = (right_models.with_inputs(np.random.default_rng(0), n, 1.0) for n in rows)
    found = [answered(each, REPLICATES, Run(), power=True).power for each in made]
    lines = [f"| rows | {' | '.join(f'{n:,}' for n in rows)} |", f"| --- |{' ---: |' * len(rows)}"]
    each_fault = zip(*found, strict=True)
    lines += [f"| {each[0].text} | {' | '.join(f'{one.share:.2f}' for one in each)} |" for each in each_fault]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=list(DESIGNS), metavar="DESIGN")
    parser.add_argument("--faults", nargs="*", default=list(FAULTS), choices=list(FAULTS), metavar="FAULT")
    parser.add_argument("--rows", nargs="*", type=int, default=list(ROWS))
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--wrong", type=int, default=FIRST // 2)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--power", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if given.power:
        print(power_table(given.rows))
        return
    if given.table:
        print("\n\n".join(table(given.designs, [fault], given.rows) for fault in given.faults))
        return
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the workers
    with ProcessPoolExecutor(given.workers) as executor:

        def pool(function, seeds):
            return list(executor.map(function, seeds, chunksize=5))

        for fault in given.faults:
            for name in given.designs:
                for n in given.rows:
                    if not is_made(name, FAULTS[fault], n):
                        continue
                    cell = {"design": name, "fault": fault, "rows": n}
                    cell = extended(
                        load().get(key_of(cell), cell | scale_of(name, fault, n)),
                        FAULTS[fault],
                        given.sets,
                        given.wrong,
                        pool,
                    )
                    save({**load(), key_of(cell): cell})
                    print(f"{name}: {fault}, {n:,} rows: {shares(cell)}", flush=True)


if __name__ == "__main__":
    main()
