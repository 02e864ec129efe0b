"""Evaluate files in which one to three rows have an extreme value: `python -m tests.fuzz --values`.

Each starts from predictions that are right, or clearly wrong. With the extreme values, it is refused in one line, or
the answer and the overall verdict are at least as bad as before; nothing else is raised, warnings included.
"""

import json
import math
import random
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

import calcheck
from calcheck.distributions import CONVENTIONS
from calcheck.render import render
from calcheck.render.document import report_document
from tests.fuzz.program import READ, REFUSED
from tests.helpers.files import table

ROWS, REPLICATES, WRONG = 60, 199, 10.0
LARGE = (1e160, -1e160, 1e308, -1e308, math.inf, -math.inf, math.nan)
SMALL = (0.0, -0.0, 1e-320, -1e-320, 1e-160, -1e-160)
ANSWERS, VERDICTS = ("yes", "not-shown", "no"), ("none", "pass", "undecided", "fail")
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
RANGES = {  # of parameters; others are uniform from 1.1 to 2
    **dict.fromkeys(("df", "alpha"), (5, 9)),
    **dict.fromkeys(("p", "probs"), (0.3, 0.7)),
    "logits": (-0.5, 0.5),
    "c": (1.5, 4),
}
NORMAL = ("gaussian", "laplace", "student-t", "nig", "cauchy", "mixture", "joint-gaussian")
CENTERS = ("y", "mean", "loc", "x", "logits", "gamma")
"""Columns that may be of any sign, and small."""


@dataclass(frozen=True)
class Start:
    """Predictions before values are changed, and the keywords that they are evaluated with."""

    name: str
    columns: dict = field(repr=False)
    keywords: dict = field(default_factory=dict)
    centers: tuple = CENTERS

    @cached_property
    def before(self):
        """The answer and the overall verdict, as numbers that grow with their severity; and the metrics that fail."""
        return severity(self.report(self.columns))

    def report(self, columns):
        options = {"replicates": REPLICATES, "resamples": 0} | self.keywords
        return calcheck.evaluate(table(columns), **options)

    def values(self, name):
        """Return the values that a column is changed to."""
        return LARGE if name in self.centers else (*SMALL, *LARGE)


def severity(report):
    overall = "none" if report.overall is None else report.overall.verdict
    failed = {result.metric for result in report.results if result.verdict == "fail"}
    return ANSWERS.index(report.conclusion.answer), VERDICTS.index(overall), failed


def parameters_of(convention, rng):
    """Return the parameters of random distributions."""
    if convention.joint:
        loc, spread = convention.parameters
        return {loc: rng.normal(size=(ROWS, 2)), spread: np.tile([1.1, 0.37, 1.3], (ROWS, 1))}
    shape = (ROWS, 2) if convention.grouped else (ROWS,)
    made = {name: rng.uniform(*RANGES.get(name, (1.1, 2)), shape) for name in convention.parameters}
    if "weight" in made:
        made["weight"] = np.full(shape, 0.5)
    if convention.family in NORMAL:
        location = convention.location or "loc"
        made[location] = rng.normal(size=shape)
    return made


def starts(seed=0):
    """Return right and wrong predictions of every family and in every form."""
    rng = np.random.default_rng(seed)
    right = [start for convention in CONVENTIONS.values() for start in _of_family(convention, rng)]
    mean, std, x = rng.normal(size=ROWS), rng.uniform(1, 2, ROWS), rng.normal(size=ROWS)
    y = mean + std * rng.normal(size=ROWS)
    for name, spread in {"std": std, "var": std**2, "log_std": np.log(std), "log_var": 2 * np.log(std)}.items():
        right.append(Start(name, {"y": y, "mean": mean, "u": spread}, {name: "u", "mean": "mean"}))
    right.append(Start("inputs", {"y": y, "mean": mean, "std": std, "x": x}, {"inputs": ["x"]}))
    draws = mean[:, None] + std[:, None] * rng.normal(size=(ROWS, 20))
    right.append(Start("samples", {"y": y, "samples": draws}))
    scores = np.array([-1.6448536, -0.6744898, 0.0, 0.6744898, 1.6448536])
    at = dict(zip((f"q_{level}" for level in LEVELS), (mean[:, None] + std[:, None] * scores).T, strict=True))
    right.append(Start("quantiles", {"y": y, **at}))
    limits = {"lower_90": at["q_0.05"], "upper_90": at["q_0.95"], "lower_50": at["q_0.25"], "upper_50": at["q_0.75"]}
    right.append(Start("intervals", {"y": y, **limits}))
    return [wrong for start in right for wrong in (start, _wrong(start))]


def _of_family(convention, rng):
    made = parameters_of(convention, rng)
    y = np.asarray(convention(**made).sample(rng, 1)).reshape(ROWS, -1)
    columns = {"y": y if convention.joint else y[:, 0], **made}
    yield Start(convention.spelling, columns, {"dist": convention.spelling})


def _wrong(start):
    """Return predictions whose targets are ten times as large: for counts too, which remain whole numbers."""
    return Start(f"{start.name}, wrong", start.columns | {"y": WRONG * start.columns["y"]}, start.keywords)


@dataclass(frozen=True)
class Change:
    """A value that some rows of a column are changed to."""

    start: Start
    column: str
    value: float
    rows: tuple
    whole: bool

    def label(self):
        return f"{self.start.name}: {self.column} = {self.value} in rows {self.rows}"

    def columns(self):
        changed = self.start.columns[self.column].copy()
        if changed.ndim > 1 and not self.whole:
            changed[self.rows, 0] = self.value
        else:
            changed[list(self.rows)] = self.value
        return self.start.columns | {self.column: changed}

    def outcome(self):
        """Return whether the changed file is refused or read, or what is wrong instead."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                report = self.start.report(self.columns())
                json.loads(render(report, "json", report_document), parse_constant=int)  # NaN and infinity raise
                repr(report)
        except calcheck.CalcheckError as error:
            return REFUSED if "\n" not in str(error) else "refused in more than a line"
        except Exception as error:  # noqa: BLE001 - these are the findings
            return f"{type(error).__name__}: {error}"
        after = severity(report)
        worse = all(now >= then for now, then in zip(after[:2], self.start.before[:2], strict=True))
        lost = self.start.before[2] - {result.metric for result in report.results if result.verdict != "none"}
        return READ if worse and not lost else f"better: {self.start.before} became {after}, without {lost}"


def changes(seed=0, *, some=None):
    """Return the changes of all columns; with ``some``, that many drawn at random from those of all families."""
    rnd = random.Random(seed)
    made = [
        Change(start, column, value, tuple(rnd.sample(range(ROWS), count)), rnd.random() < 0.5)
        for start in starts(seed)
        for column in start.columns
        for value in start.values(column)
        for count in (1, 3)
    ]
    return made if some is None else rnd.sample(made, some)


def run(seed=0):
    """Run all changes, and print the outcomes; return the number of bad ones."""
    counts, bad = Counter(), 0
    for change in changes(seed):
        found = change.outcome()
        counts[found if found in (READ, REFUSED) else "found"] += 1
        if found not in (READ, REFUSED):
            bad += 1
            print(f"{change.label()}: {found}", flush=True)
    print(", ".join(f"{count:,} {outcome}" for outcome, count in counts.most_common()))
    return bad
