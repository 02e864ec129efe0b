"""The evidence for an answer: clear failures, levels of intervals, bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from statistics import NormalDist, fmean
from typing import NamedTuple

from calcheck.core.number_text import percent
from calcheck.report import TIED, Direction, Fault, Overall, Report, Result
from calcheck.result_details import CoverageDetails, DetailsT, SpreadBin, select_details

CLEAR_P = 0.01  # Maximum p-value of the details that support a clear failure
CLEAR_ERRORS = 3.0  # Minimum difference in standard errors, for the kind of a fault
SUSPECT_ERRORS = 2.5  # Minimum difference in standard errors, for a single share
LARGE_SHIFT, SMALL_SHIFT = 0.3, 0.1  # Biases, relative to the typical error, that hide the shape, and that hide nothing
EVEN = 0.05  # Maximum relative spread of uncertainties that are equal in practice


class ErrorBins(NamedTuple):
    """Errors by predicted uncertainty."""

    spread: float  # Relative spread of the uncertainties
    # Exponent of the errors as a power of the uncertainties: 1 if they are proportional, 0 if they are unrelated
    exponent: float
    error: float  # Standard error of the exponent

    @classmethod
    def from_bins(cls, bins: Sequence[SpreadBin]) -> ErrorBins:
        """Return the regression of log RMSE on log RMV over the bins of ence."""
        pairs = [(each["rmv"] or 0.0, each["rmse"] or 0.0) for each in bins]
        logs = [(math.log(rmv), math.log(rmse)) for rmv, rmse in pairs if rmv > 0 and rmse > 0]
        if len(logs) < 3:  # noqa: PLR2004 - two parameters and a residual
            return cls(0.0, 1.0, math.inf)
        x, y = [each for each, _ in logs], [each for _, each in logs]
        away = [each - fmean(x) for each in x]
        squares = sum(each**2 for each in away)
        if squares == 0:
            return cls(0.0, 1.0, math.inf)
        exponent = sum(a * b for a, b in zip(away, y, strict=True)) / squares
        residuals = [b - fmean(y) - exponent * a for a, b in zip(away, y, strict=True)]
        variance = sum(each**2 for each in residuals) / (len(logs) - 2)
        return cls(math.sqrt(squares / len(logs)), exponent, math.sqrt(variance / squares))

    @property
    def differ(self) -> bool:
        """Whether the errors are not proportional to the uncertainties."""
        return abs(self.exponent - 1) > CLEAR_ERRORS * self.error


def are_uneven(shares: Sequence[tuple[float, float]]) -> bool:
    """Return whether shares of (share, rows) differ more than by chance, by a chi-square test at CLEAR_P."""
    rows = sum(count for _, count in shares)
    mean = sum(share * count for share, count in shares) / rows
    degrees = len(shares) - 1
    if not 0 < mean < 1 or not degrees:
        return False
    statistic = sum(count * (share - mean) ** 2 for share, count in shares) / (mean * (1 - mean))
    spread = 2 / (9 * degrees)  # Wilson and Hilferty (1931): the cube root is nearly normal
    limit = 1 - spread - math.sqrt(spread) * UNIT.inv_cdf(CLEAR_P)
    return math.cbrt(statistic / degrees) > limit


FEWEST_TARGETS = 5  # Minimum number of targets inside and outside intervals, for a scale
SAME_SHARE = 0.005  # Maximum difference of an expected share from its level that is not mentioned
UNIT = NormalDist()
NORMAL_LIMIT = UNIT.inv_cdf(0.975)  # Limit of a 95 % interval in standard errors


class Scale(NamedTuple):
    """Logarithm of the factor by which uncertainties should be larger, with its standard error."""

    log: float
    error: float


class Level(NamedTuple):
    """Share of targets inside the central intervals of one level."""

    # level, coverage, expected: level, observed share and expected share
    level: float
    coverage: float
    expected: float
    # Observed share without targets equal to stated limits, as for counts. A right model has a share of at most the
    # level without them, and at least the level with them, so it is judged by the nearest share between the two.
    strictly: float
    scale: Scale  # How much wider normal intervals would have to be to hold the expected share
    is_informative: bool  # Whether enough targets are inside and outside. Otherwise the scale is only a limit.

    @classmethod
    def from_coverage(
        cls, level: float, coverage: float, expected: float, n: int, strictly: float | None = None
    ) -> Level:
        """Return a level with the scale that its share implies."""
        strictly = coverage if strictly is None else strictly
        nearest = nearest_share(coverage, strictly, expected)
        smoothed = (nearest * n + 0.5) / (n + 1)  # away from 0 and 1, where the scale is infinite
        likely = min(max(expected, 0.5 / n), 1 - 0.5 / n)
        wanted, found = (UNIT.inv_cdf((1 + share) / 2) for share in (likely, smoothed))
        error = math.sqrt(smoothed * (1 - smoothed) / n) / (2 * UNIT.pdf(found) * found)
        fewest = min(nearest, 1 - nearest) * n
        scale = Scale(math.log(wanted / found), error)
        return cls(level, coverage, expected, strictly, scale, fewest >= FEWEST_TARGETS)

    def p_value(self, n: float) -> float:
        """Return the two-sided binomial p-value of the share for n independent rows."""
        from scipy.special import betainc

        share = min(max(self.expected, 0.0), 1.0)
        inside = nearest_share(self.coverage, self.strictly, share) * n
        at_least = betainc(inside, n - inside + 1, share) if inside > 0 else 1.0
        at_most = 1 - betainc(inside + 1, n - inside, share) if inside < n else 1.0
        return float(min(1.0, 2 * min(at_least, at_most)))

    @property
    def differs(self) -> bool:
        """Whether the share differs from the expected one."""
        return abs(self.scale.log) > SUSPECT_ERRORS * self.scale.error

    @property
    def direction(self) -> Direction:
        """How the intervals are wrong if the share differs."""
        return "too-narrow" if self.scale.log > 0 else "too-wide"

    @property
    def share(self) -> str:
        """The share in words, with the expected one where that is not the level, as for counts."""
        shown = percent(self.coverage, 1)
        if self.at_limits:
            return f"{percent(self.strictly, 1)} to {shown}"
        same = abs(self.expected - self.level) <= SAME_SHARE
        return shown if same else f"{shown} instead of {percent(self.expected, 1)}"

    @property
    def at_limits(self) -> str:
        """What the two ends of the share are, in words; "" if they are equal."""
        differ = percent(self.strictly, 1) != percent(self.coverage, 1)
        return ", without and with targets at their limits" if differ else ""

    @property
    def text(self) -> str:
        """The level and its share in words."""
        return f"{percent(self.level)} intervals hold {self.share}{self.at_limits}"


def nearest_share(closed: float, strictly: float, expected: float) -> float:
    """Return the number nearest to an expected share between those strictly inside and inside."""
    return min(max(expected, strictly), closed)


def exceeds(scale: Scale | None, other: Scale) -> bool:
    """Return whether a scale is larger than another clearly."""
    return scale is not None and scale.log - other.log > SUSPECT_ERRORS * math.hypot(scale.error, other.error)


class Evidence:
    """The results of a report, as the sentences of the conclusion use them."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.results = {result.metric: result for result in report.results if not result.slice}

    def value(self, metric: str) -> float | None:
        result = self.results.get(metric)
        return None if result is None else result.value

    def details(self, metric: str, kind: type[DetailsT]) -> DetailsT:
        """Return the details of a metric that their type declares; none if the report lacks the metric."""
        return select_details(self.results[metric].details if metric in self.results else {}, kind)

    def is_judged(self, *metrics: str) -> bool:
        return any(name in self.results and self.results[name].verdict != "none" for name in metrics)

    def clear_failure(self, *metrics: str) -> Result | None:
        """Return the first of the named metrics that fails clearly."""
        return next((self.results[name] for name in metrics if name in self.results and self.fails_clearly(name)), None)

    def fails_clearly(self, metric: str) -> bool:
        return metric in self._clear

    @cached_property
    def _clear(self) -> frozenset[str]:
        """The metrics that fail clearly."""
        return clear_failures(self.report)

    def fails_unclearly(self, *metrics: str) -> bool:
        """Return whether one of the named metrics fails, but not clearly."""
        return any(self.results[name].verdict == "fail" for name in metrics if name in self.results)

    @cached_property
    def shift(self) -> float | None:
        """Mean error relative to the observed errors, if it differs from 0 clearly; its sign if these are unknown."""
        bias, rmse = self.value("bias"), self.value("rmse")
        if bias is None or self.clear_failure("bias") is None:
            return None
        if not rmse:
            return math.copysign(1.0, bias)
        limit = -UNIT.inv_cdf(CLEAR_P / 2) / math.sqrt(self.report.input.n)
        return max(-1.0, min(bias / rmse, 1.0)) if abs(bias) > limit * rmse else None

    @property
    def is_bias_only(self) -> bool:
        """Whether the squared errors agree with the uncertainties once the bias is removed."""
        rmse, sharpness = self.results.get("rmse"), self.value("sharpness")
        if abs(self.shift or 0.0) < SMALL_SHIFT or rmse is None or not rmse.value or not sharpness:
            return False
        if rmse.reference_low is None or rmse.reference_high is None:
            return False
        variance = 1 - (self.shift or 0.0) ** 2  # relative to the mean squared error; 0 if all errors are equal
        if variance <= 0 or rmse.reference_low <= 0:
            return False
        tolerance = math.log(rmse.reference_high / rmse.reference_low) / 2 * CLEAR_ERRORS / 2
        return abs(math.log(rmse.value * math.sqrt(variance) / sharpness)) <= tolerance

    @cached_property
    def levels(self) -> list[Level]:
        """The levels of coverage in ascending order."""
        result = self.results.get("coverage")
        if result is None or result.value is None or result.reference is None:
            return []
        n, found = self.report.input.n, self.details("coverage", CoverageDetails)
        main = Level.from_coverage(
            result.options["level"], result.value, result.reference, n, found.get("strictly_inside")
        )
        others = [
            Level.from_coverage(each["level"], each["coverage"], each["expected"], n, each.get("strictly_inside"))
            for each in found.get("at_other_levels", [])
        ]
        return sorted([main, *others])

    @property
    def main_level(self) -> Level | None:
        """The level of the coverage metric."""
        level = self.results["coverage"].options["level"] if "coverage" in self.results else None
        return next((each for each in self.levels if each.level == level), None)

    @cached_property
    def tails(self) -> Fault | None:
        """Whether the outer intervals imply larger or smaller uncertainties than the inner ones."""
        if len(self.levels) < 2 or self.clear_failure("pit", "ece", "coverage", "zms", "ence") is None:  # noqa: PLR2004 - a pair
            return None
        if abs(self.shift or 0.0) > LARGE_SHIFT:
            return None
        inner, outer = self.levels[0].scale, self.levels[-1].scale
        if exceeds(inner, outer):
            return "light-tails"
        known = [level.scale for level in self.levels if level.is_informative]
        heavy = bool(known) and (
            exceeds(known[-1], known[0])
            or (self.clear_failure("zms") is not None and exceeds(self.zms_scale, known[0]))
        )
        return "heavy-tails" if heavy else None

    @property
    def zms_scale(self) -> Scale | None:
        """The scale that squared z-scores imply, if a bias does not contribute to them."""
        zms = self.results.get("zms")
        if zms is None or self.shift is not None or not zms.value or not zms.low or not zms.high:
            return None
        return Scale(math.log(zms.value) / 2, (math.log(zms.high) - math.log(zms.low)) / 4 / NORMAL_LIMIT)

    @property
    def has_shape_fault(self) -> bool:
        """Whether the sentence about the shape explains what zms and rce find."""
        return self.tails is not None and self.is_judged("pit", "ece")

    @property
    def pre_rank(self) -> str | None:
        """How the vectors of several targets are ranked; None for a single target, or if their ranks are not judged."""
        return self.results["pit"].options.get("pre_rank") if self.is_judged("pit") else None

    @property
    def wrong_level(self) -> Level | None:
        """The clearest of the levels that no metric judges, of a file that states intervals or quantiles only.

        Its p-value is adjusted for their number (Bonferroni).
        """
        others = [level for level in self.levels if level != self.main_level]
        alone = self.is_judged("pit", "zms") or not self.is_judged("coverage") or self.clear_failure("coverage")
        if alone or not others or self.results["coverage"].options.get("at_least"):
            return None
        p, wrong = min((level.p_value(self.effective_rows), level) for level in others)
        return wrong if p * len(others) <= CLEAR_P else None

    @property
    def effective_rows(self) -> float:
        """The number of independent rows with the same spread of coverage, if rows depend on each other."""
        n, main = self.report.input.n, self.main_level
        null = self.details("coverage", CoverageDetails).get("null", {})
        result = self.results["coverage"]
        low, high = null.get("low") or result.reference_low, null.get("high") or result.reference_high
        if main is None or "clusters" not in null or low is None or high is None:
            return n
        error = (high - low) / 2 / NORMAL_LIMIT
        return min(n, main.level * (1 - main.level) / error**2) if error > 0 else n


CONFIDENCE = 0.95  # Of reports that do not state theirs
OTHERS = 0.2  # Share of the level that metrics beside those of the overall verdict have in addition


def confidence_of(report: Report) -> float:
    """Return the confidence of the verdicts of a report."""
    return float(report.settings.get("confidence", CONFIDENCE))


def families(report: Report) -> list[tuple[Result, ...]]:
    """Return the results for all rows that have a verdict and a p-value or zeta, by family."""
    judged = [each for each in report.results if not each.slice and each.verdict != "none" and _is_measured(each)]
    together = tuple(each for each in judged if each.p_value_adjusted is not None)
    alone = [(each,) for each in judged if each.p_value_adjusted is None]
    return [*([together] if together else []), *alone]


def judged_overall(report: Report) -> Overall | None:
    """Return the overall verdict of a report; None if there is none."""
    return None if report.overall is None or report.overall.verdict == "none" else report.overall


def family_level(report: Report, family: tuple[Result, ...]) -> float:
    """Return the level at which a family is tested."""
    level, random = 1 - confidence_of(report), [each for each in families(report) if not each[0].is_impossible]
    if judged_overall(report) is None:
        return level / max(1, len(random))
    return level if is_joined(family) else OTHERS * level / max(1, sum(not is_joined(each) for each in random))


def is_joined(family: tuple[Result, ...]) -> bool:
    """Return whether a family is that of the p-values that are adjusted for each other."""
    return family[0].p_value_adjusted is not None


def clear_failures(report: Report) -> frozenset[str]:
    """Return the names of the metrics that fail clearly: right models rarely do, however many verdicts there are.

    Metrics whose p-values are adjusted for each other are a family. Each other metric that is judged, by its own
    p-value or by zeta, is a family of its own. If there is an overall verdict, the joined metrics have the level of the
    report, 5 %, and the others share a fifth of it, 1 %, in addition. Else the level is divided by the number of
    families (Bonferroni). Targets with probability 0 are a clear failure at any level.
    """
    confidence = confidence_of(report)
    return frozenset(
        each.metric
        for family in families(report)
        for each in family
        if each.verdict == "fail" and _family_p_value(each, confidence) <= family_level(report, family) * (1 + TIED)
    )


def zeta_limit(level: float, confidence: float) -> float:
    """Return the absolute zeta whose p-value is the level; 1 if that is 1 - confidence.

    Examples
    --------
    >>> round(zeta_limit(0.025, 0.95), 3)
    1.144
    """
    return UNIT.inv_cdf(level / 2) / UNIT.inv_cdf((1 - confidence) / 2)


def is_by_zeta(result: Result) -> bool:
    """Return whether zeta decides, and not the p-value of replicates or of an exact test."""
    return result.p_value is None or (
        result.zeta is not None and any(message.code == "verdict-basis" for message in result.warnings)
    )


def _is_measured(result: Result) -> bool:
    return result.p_value is not None or result.zeta is not None or result.is_impossible


def _family_p_value(result: Result, confidence: float) -> float:
    """Return the p-value of a result within its family; that of zeta for normal errors, if zeta decides."""
    if result.is_impossible:
        return 0.0
    if result.p_value_adjusted is not None:
        return result.p_value_adjusted
    if result.p_value is not None and not is_by_zeta(result):
        return result.p_value
    limit = -UNIT.inv_cdf((1 - confidence) / 2)
    return math.erfc(abs(result.zeta or 0.0) * limit / math.sqrt(2))
