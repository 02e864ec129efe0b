"""The causes that explain a fault, by likelihoods on held-out rows, and the commands that undo them."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calcheck.causes import fits
from calcheck.causes.candidates import CONSTANT_STD, FAR, READINGS, UNEVEN, Candidate, Case, candidates
from calcheck.causes.fits import NORMAL, Fit, Likely, Scored
from calcheck.execution.run import RowDependence
from calcheck.options import options_of
from calcheck.predictions import Predictions, Source
from calcheck.reports import Input, Report
from calcheck.reports.conclusion import Cause
from calcheck.statistics.zscores import ranks
from calcheck.typing import AnyArray, Indices, Mask, Values

MOST_ROWS = 2_000  # Rows that causes are looked for in
BLOCKS = 4  # Of consecutive rows, and their mirror images: rows keep their neighbors
OBSERVED = ("--target-std", "--clip", "--rounded")
FEWEST_ROWS = 30
MOST_CAUSES = 3
BETTER = 2.5  # Log-likelihood by which a cause must exceed all plain corrections
MUCH_BETTER, MUCH_BETTER_LEAST = 10.0, 0.5  # From which on half of the fault is enough
AS_GOOD = -3.5  # The same, for a cause that stretches all predictions by about one factor that is far from 1
AS_GOOD_TAILS = -8.0  # The same, for heavy tails
NEAR = 6.0  # Log-likelihood within which further causes are told
LEAST_FAULT = 0.005
MOST_EXPLAINED = 0.9  # Least share of the fault that a cause explains which leaves a factor
LARGE = 1.6  # Minimum logarithm of a factor that a cause explains in part: 5
LEAST_OF_ALL = 0.2  # Least share of the whole fault that a cause of that of the spread explains
NEARLY = 0.03  # Log-likelihood per row that such a cause may lack
LEFT = 0.12  # Maximum logarithm of the factor that is left where a stretch explains a fault
AS_MUCH, AS_LIKELY = 0.1, 0.05  # Share of the fault, and log-likelihood per row, by which a correction must be better
MEDIAN = 0.6745  # Of the absolute value of normal numbers


def with_causes(
    report: Report, rows: Predictions, inside: Mask | None, dependence: RowDependence, source: Source | None = None
) -> Report:
    """Return a report with the plausible causes of a no.

    ``inside`` are the rows of the worst region of the inputs, and a source has further columns.
    """
    found = report.conclusion
    if found is None or found.answer != "no" or rows.y is None or rows.y.ndim > 1:
        return report
    if rows.distributions().targets > 1 or rows.distributions().n_draws == 1:
        return report
    chosen = sampled_rows(len(rows))
    own = rows if chosen is None else rows.take(chosen)
    if rows.predictive is not None:
        own = own.with_targets(own.targets(), own.distributions().load())
    case = Case(
        own,
        form_of(report.input),
        any(flag in report.input.options for flag in OBSERVED),
        region="" if report.region is None else report.region.where,
        inside=inside if chosen is None or inside is None else inside[chosen],
        columns={} if source is None else source.free_columns(),
        names=() if source is None else source.input_names(),
        sampled=chosen,
        every=None if chosen is None else rows,
        total=report.input.n,
        step=1 if dependence.time is None else rows_of_step(rows.columns[dependence.time]),
    )
    stated = [
        word
        for each in options_of(RowDependence)
        if (value := getattr(dependence, each.field)) is not None
        for word in (each.flag, each.text(value))
    ]
    causes = tuple(
        Cause(
            cause=each.candidate.name,
            text=each.candidate.text,
            command=command_of(each.candidate, report.input, stated),
            explained=float(min(max(each.explained, 0.0), 1.0)),
            number=each.candidate.number,
        )
        for each in find_causes(case, seed=int(report.settings.get("seed") or 0))
    )
    return replace(report, conclusion=replace(found, causes=causes))


def rows_of_step(times: AnyArray) -> int:
    """Return how many rows each time has, if rows are in the order of times and all have as many; else 1."""
    changes = np.flatnonzero(times[1:] != times[:-1]) + 1
    lengths = np.diff(changes, prepend=0, append=len(times))
    is_even = len(np.unique(times)) == len(lengths) > 1 and (lengths == lengths[0]).all()
    return int(lengths[0]) if is_even else 1


def form_of(read: Input) -> str:
    """Return what a file states about the size of uncertainties."""
    if any(flag in read.options for flag in OBSERVED):
        return "other"
    if column_of(read, "--var"):
        return "var"
    is_normal = read.predictive is not None and read.predictive.startswith(("gaussian", "residuals"))
    return "std" if is_normal and not column_of(read, "--log-std", "--log-var") else "other"


def sampled_rows(n: int) -> Indices | None:
    """Return the rows that causes are looked for in: blocks, and their mirror images; None for all."""
    if n <= MOST_ROWS:
        return None
    length = MOST_ROWS // (2 * BLOCKS)
    starts = np.linspace(0, n // 2 - length, BLOCKS).astype(np.int64)
    first = np.unique((starts[:, None] + np.arange(length)).ravel())
    return np.unique(np.concatenate([first, n - 1 - first]))


WRITTEN = {
    "csv": ("read_csv", 'to_csv("mended.csv", index=False)'),
    "parquet": ("read_parquet", 'to_parquet("mended.parquet")'),
}  # Functions of pandas that read and write a file, by its ending
PARTIAL = {"--filter", "--nan-policy"}  # Options that leave rows out, which an edit of the whole file would change
SPREADS = ("--std", "--var", "--log-std", "--log-var")


def column_of(read: Input, *flags: str) -> str:
    """Return the column that an option names; empty if none does."""
    pairs = dict(zip(read.options, read.options[1:], strict=False))
    return next((pairs[flag] for flag in flags if flag in pairs), "")


def spread_column(read: Input) -> str:
    """Return the column of the standard deviations, or of the scales of normal distributions."""
    if column_of(read, "--dist") != "gaussian":
        return column_of(read, *SPREADS)
    return next((text.removeprefix("scale=") for text in read.options if text.startswith("scale=")), "")


def command_of(cause: Candidate, read: Input, dependence: Sequence[str] = ()) -> str:
    """Return the command that undoes a cause in the file that was read, given options about rows; else empty."""
    files = [each for each in read.files if each.role == "predictions"]
    several = "," in column_of(read, "--target") and not column_of(read, "--only")
    in_memory = not files and read.options
    if several or not (in_memory or (len(files) == 1 and files[0].files == 1 and files[0].path != "-")):
        return ""
    path, options = "..." if in_memory else files[0].path, [*read.options, *dependence]
    if cause.is_corrected:
        return shlex.join(["calcheck", "recalibrate", path, *options, *cause.options])
    if cause.options and cause.options[0] not in SPREADS:
        return shlex.join(["calcheck", "evaluate", path, *options, *cause.options])
    if cause.options and (given := next((each for each in SPREADS if each in options), "")):
        replaced = [cause.options[0] if each == given else each for each in options]
        return shlex.join(["calcheck", "evaluate", path, *replaced])
    return _edit(cause.edit, path, read)


def _has_commas(path: str) -> bool:
    """Return whether the names of the columns of a text file are separated by commas."""
    with Path(path).open(encoding="utf-8", errors="replace") as lines:
        return "," in lines.readline()


def _edit(edit: str, path: str, read: Input) -> str:
    """Return the command that writes a mended table; empty if the file has no such column, or is no table."""
    functions = WRITTEN.get(path.rpartition(".")[2].lower()) if not PARTIAL & {*read.options} else None
    pattern = column_of(read, "--samples")
    drawn = f"^{re.escape(pattern)}$".replace(r"\*", ".*") if "*" in pattern else ""
    columns = {"y": column_of(read, "--target"), "std": spread_column(read), "samples": drawn}
    needed = {name for name in columns if f"{{{name}}}" in edit}
    if functions is None or not edit or any(not columns[name] or "," in columns[name] for name in needed):
        return ""
    for name in needed:
        edit = edit.replace(f"{{{name}}}", json.dumps(columns[name], ensure_ascii=False))
    modules = "numpy as np, pandas as pd" if "np." in edit else "pandas as pd"
    name = json.dumps(path, ensure_ascii=False)
    if functions[0] == "read_csv" and not _has_commas(path):
        name += ', sep=None, engine="python"'
    code = f"import {modules}; f = pd.{functions[0]}({name}); {edit}; f.{functions[1]}"
    return f"python -c {shlex.quote(code)}"


class Explanation(NamedTuple):
    """A cause with its log-likelihood of all rows on held-out halves, and the share of the fault that it explains."""

    candidate: Candidate
    log_likelihood: float
    explained: float


def find_causes(case: Case, *, seed: int = 0) -> list[Explanation]:
    """Return the causes that explain the fault of predictions, the most likely first."""
    if len(case.rows) < FEWEST_ROWS:
        return []
    with np.errstate(all="ignore"):
        halves = _halves(len(case.rows), seed)
        fault = Fault(case, held_out(fits.as_stated(case.scored, (NORMAL,)), halves))
        if fault.stated < LEAST_FAULT:
            return []
        normal, plain = (best_plain(case, halves, freedoms) for freedoms in ((NORMAL,), fits.FREEDOMS))
        tried = [(each, held_out(each.fit, halves)) for each in candidates(case)]
        found = [
            Explanation(each, likely.total, fault.explained(likely, of_spread=each.of_spread))
            for each, likely in tried
            if not each.of_spread or fault.explained(likely) >= LEAST_OF_ALL
        ]
        trial = Trial(case, halves, normal, plain, fault)
        able = [each for each in found if each.explained >= trial.least(each)]
        told = [each for each in able if trial.counts(each) or trial.is_nearer(each)]
        alike = {each.candidate.alike for each in told} - {""}
        likely = AS_LIKELY * len(case.rows)
        return _chosen([*told, *(each for each in able if each.candidate.alike in alike)], likely)


def best_plain(case: Case, halves: Sequence[Mask], freedoms: Sequence[float]) -> Likely:
    """Return the most likely predictions with no or a free shift, and no or a free factor."""
    every = [fits.as_stated(case.scored, freedoms)]
    every += [
        fits.recalibrated(case.scored, shift=shift, scale=scale, freedoms=freedoms)
        for shift, scale in ((True, False), (False, True), (True, True))
    ]
    return max((held_out(each, halves) for each in every), key=lambda each: each.total)


def _chosen(told: list[Explanation], likely: float) -> list[Explanation]:
    """Return the causes that are told: the most likely and those nearly as likely; an uneven std only beside noise.

    What explains as much and can be undone is before what is corrected, if that is not more likely by this much.
    """
    undone = [each for each in told if not each.candidate.is_corrected]

    def order(each: Explanation) -> tuple[bool, bool, float]:
        is_after = each.candidate.is_corrected and any(
            other.explained >= each.explained - AS_MUCH and other.log_likelihood >= each.log_likelihood - likely
            for other in undone
        )
        return each.candidate.name == UNEVEN, is_after, each.candidate.surplus - each.log_likelihood

    told.sort(key=order)
    best: dict[str, Explanation] = {}
    for each in told:
        is_other = each.candidate.name != UNEVEN or told[0].candidate.alike == UNEVEN
        if is_other and each.log_likelihood >= told[0].log_likelihood - NEAR:
            best.setdefault(each.candidate.name, each)
    return list(best.values())[:MOST_CAUSES]


@dataclass(frozen=True)
class Trial:
    """Whether causes explain a fault better than plain corrections of the predictions."""

    case: Case
    halves: Sequence[Mask]
    normal: Likely  # After the best plain correction, with normal errors
    any_tail: Likely  # The same, with errors that may have heavy tails
    fault: "Fault"

    def least(self, each: Explanation) -> float:
        """Return the least share of the fault that a cause must explain, which is a half if it is far more likely."""
        than = self.normal if self._has_tails(each) else self.any_tail
        is_clear = each.candidate.is_corrected and each.log_likelihood - than.total >= MUCH_BETTER
        least = MUCH_BETTER_LEAST if is_clear else each.candidate.least
        plain = self.fault.explained(self.any_tail, of_spread=each.candidate.of_spread)
        return max(least, plain + each.candidate.gain)

    def counts(self, each: Explanation) -> bool:
        """Return whether a cause is more likely than plain corrections, or as likely and far from none."""
        own = each.candidate
        surplus = each.log_likelihood - self.any_tail.total
        if self._has_tails(each):  # which corrections may have, too
            return surplus >= AS_GOOD_TAILS and each.log_likelihood - self.normal.total >= BETTER
        if surplus >= BETTER + own.surplus:
            return True
        if own.stretched is None or own.name.startswith("log"):  # Logarithms that are all positive are rare
            return False
        if abs(np.median(np.log(own.stretched.spread / self.case.scored.spread))) < FAR:
            return False
        if abs(np.log(fits.factor(own.stretched))) <= LEFT:
            free = self._total(fits.recalibrated(own.stretched, shift=True, scale=True))
            if free >= self.any_tail.total + AS_GOOD + own.surplus:
                return True
        is_normal = self._total(fits.as_stated(own.stretched, (NORMAL,))) >= self.normal.total + AS_GOOD
        return surplus >= AS_GOOD + own.surplus and is_normal

    def _has_tails(self, each: Explanation) -> bool:
        """Return whether a cause changes the tails of errors only."""
        return each.candidate.name == "heavy-tails" or each.candidate.alike == CONSTANT_STD

    def is_nearer(self, each: Explanation) -> bool:
        """Return whether another reading of the std explains most of a large factor, and is nearly as likely."""
        own = each.candidate
        is_read = own.name in READINGS and not own.name.startswith("log")
        if own.stretched is None or not is_read or each.explained < MOST_EXPLAINED:
            return False
        before, after = (abs(np.log(size_of(one))) for one in (self.case.scored, own.stretched))
        if before < LARGE or after > before / 2:
            return False
        free = fits.recalibrated(own.stretched, shift=True, scale=True)
        return self._total(free) >= self.any_tail.total - NEARLY * len(self.case.rows)

    def _total(self, fit: Fit) -> float:
        return held_out(fit, self.halves).total


def size_of(scored: Scored) -> float:
    """Return the median size of normal scores, relative to that of a right model."""
    return float(np.median(np.abs(scored.evaluate()[0]))) / MEDIAN


def _halves(n: int, seed: int) -> list[Mask]:
    """Return two random halves of the rows."""
    first = np.zeros(n, np.bool_)
    first[np.random.default_rng(seed).permutation(n)[: n // 2]] = True
    return [first, ~first]


def held_out(fit: Fit, halves: Sequence[Mask]) -> Likely:
    """Return how likely the targets of each half are after a fit to the other."""
    parts = [fit(each) for each in halves]
    return Likely(*(np.where(halves[0], second, first) for first, second in zip(*parts, strict=True)))


class Fault:
    """By how much probability integral transforms differ from those of a right model, on average and along columns."""

    def __init__(self, case: Case, stated: Likely) -> None:
        extra = [] if case.inside is None else [case.inside.astype(np.float64)]
        columns = (case.scored.spread, *case.numbers.values(), *extra)
        self.along = [each for column in columns for each in _standard(column)]
        self.stated, self.spread = (self.size(stated.pit, of_spread=each) for each in (False, True))

    def explained(self, likely: Likely, *, of_spread: bool = False) -> float:
        """Return the share of the fault, or of that of the spread, which is gone."""
        before = self.spread if of_spread else self.stated
        return 1 - self.size(likely.pit, of_spread=of_spread) / before if before > 0 else 0.0

    def size(self, pit: Values, *, of_spread: bool = False) -> float:
        """Return the sum of squared means of Legendre polynomials, less what chance adds; at least 0.

        Those of even degree are the fault of the spread.
        """
        u = np.clip(pit, 0, 1)
        first, second = np.sqrt(3) * (2 * u - 1), np.sqrt(5) * (6 * u**2 - 6 * u + 1)
        third = np.sqrt(7) * (20 * u**3 - 30 * u**2 + 12 * u - 1)
        fourth = 3 * (70 * u**4 - 140 * u**3 + 90 * u**2 - 20 * u + 1)
        parts = [second, fourth, *(second * g for g in self.along)]
        parts += [] if of_spread else [first, third, *(first * g for g in self.along)]
        return max(sum(float(np.mean(each)) ** 2 for each in parts) - len(parts) / len(u), 0.0)


def _standard(column: Values) -> Iterator[Values]:
    """Yield the standardized ranks of a column, unless it is constant."""
    if np.ptp(column) > 0:
        values = ranks(column)
        yield (values - values.mean()) / values.std()
