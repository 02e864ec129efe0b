"""What the results of a report say: clear failures, the bias, the levels of coverage and the tails."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from calcheck.clear_failures import clear_failures
from calcheck.conclusion.levels import NORMAL_LIMIT, UNIT, Level, Scale, exceeds
from calcheck.conclusion.thresholds import CLEAR_ERRORS, CLEAR_P, LARGE_SHIFT, SMALL_SHIFT
from calcheck.details import CoverageDetails, DetailsT, select_details

if TYPE_CHECKING:
    from calcheck.report import Fault, Report, Result


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
