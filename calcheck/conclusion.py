"""The conclusion of a report, in sentences: whether the uncertainties can be trusted, and what is wrong with them.

Each sentence follows from values, verdicts and details of the results. A fault is stated where a verdict fails clearly,
at a p-value of at most 1 %: of the twenty metrics of a report, one fails at 5 % by chance.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from calcheck.report import Conclusion, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.report import Direction, Fault, Report, Result, Topic

MIN_VERDICTS, MANY_RESULTS = 2, 8  # Minimum number of verdicts, or of results, for a conclusion
MIN_ROWS = 30  # Minimum number of rows for the answer yes
CLEAR_P = 0.01  # Maximum p-value of a clear failure
CLEAR_ZETA = 1.5  # Minimum |zeta| of a clear failure without an exact p-value, or of one that no sentence explains
CLEAR_ERRORS = 3.0  # Minimum difference in standard errors, for the kind of a fault
SUSPECT_ERRORS = 2.5  # Minimum difference in standard errors, for a single share
FEWEST_TARGETS = 5  # Minimum number of targets inside and outside intervals, for a scale
LARGE_SHIFT, SMALL_SHIFT = 0.3, 0.1  # Biases, relative to the typical error, that hide the shape, and that hide nothing
SAME_SHARE = 0.005  # Maximum difference of an expected share from its level that is not mentioned
BY_CHANCE, VERDICTS_PER_FAILURE = 2, 10  # Failures at 5 % that are plausible: 2 of few verdicts, 6 of twenty
EVEN = 0.05  # Maximum relative spread of uncertainties that are equal in practice
LOST = 0.3  # Maximum exponent of errors as a power of uncertainties for a lost ranking
WITHHELD = 0.2  # Share of rows with the largest uncertainties that the sentence about the ranking removes
UNIT = NormalDist()
NORMAL_LIMIT = UNIT.inv_cdf(0.975)  # Limit of a 95 % interval in standard errors


def conclude(report: Report) -> Report:
    """Return a report with its conclusion; unchanged if it has few results and fewer than two verdicts."""
    verdicts = sum(result.verdict != "none" for result in report.results)
    if verdicts < MIN_VERDICTS and len(report.results) < MANY_RESULTS:
        return report
    findings = tuple(Evidence(report).findings())
    answer = _answer(findings, report.input.n)
    return replace(report, conclusion=Conclusion(answer=answer, findings=findings))


def _answer(findings: Sequence[Finding], n: int) -> Literal["yes", "no", "unclear"]:
    """Return whether the uncertainties can be trusted, given n rows."""
    states = {finding.topic: finding.state for finding in findings}
    if "fault" in states.values():
        return "no"
    right = states.get("size") == "right" and states.get("others") != "untested"
    return "yes" if right and n >= MIN_ROWS else "unclear"


class Scale(NamedTuple):
    """Logarithm of the factor by which uncertainties should be larger, with its standard error."""

    log: float
    error: float


class Level(NamedTuple):
    """Share of targets inside the central intervals of one level.

    Parameters
    ----------
    level, coverage, expected : float
        Level, observed share and expected share.
    scale : Scale
        How much wider normal intervals would have to be to hold the expected share.
    is_informative : bool
        Whether enough targets are inside and outside. Otherwise the scale is only a limit.
    """

    level: float
    coverage: float
    expected: float
    scale: Scale
    is_informative: bool

    @classmethod
    def from_coverage(cls, level: float, coverage: float, expected: float, n: int) -> Level:
        """Return a level with the scale that its share implies."""
        smoothed = (coverage * n + 0.5) / (n + 1)  # away from 0 and 1, where the scale is infinite
        likely = min(max(expected, 0.5 / n), 1 - 0.5 / n)
        wanted, found = (UNIT.inv_cdf((1 + share) / 2) for share in (likely, smoothed))
        error = math.sqrt(smoothed * (1 - smoothed) / n) / (2 * UNIT.pdf(found) * found)
        fewest = min(coverage, 1 - coverage) * n
        return cls(level, coverage, expected, Scale(math.log(wanted / found), error), fewest >= FEWEST_TARGETS)

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
        shown = _percent(self.coverage, 1)
        same = abs(self.expected - self.level) <= SAME_SHARE
        return shown if same else f"{shown} instead of {_percent(self.expected, 1)}"

    @property
    def text(self) -> str:
        """The level and its share in words."""
        return f"{_percent(self.level)} intervals hold {self.share}"


class Evidence:
    """The results of a report, as the rules of the conclusion use them."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.results = {result.metric: result for result in report.results if not result.slice}

    def findings(self) -> Iterator[Finding]:
        """Yield the findings in the order of the conclusion."""
        topics = (self._bias, self._size, self._shape, self._ranking, self._inputs)
        found = [finding for finding in (topic() for topic in topics) if finding is not None]
        yield from found
        if all(finding.state != "fault" for finding in found):
            yield from self._others()

    # ------------------------------------------------------------------ verdicts

    def _value(self, metric: str) -> float | None:
        result = self.results.get(metric)
        return None if result is None else result.value

    def _is_judged(self, *metrics: str) -> bool:
        return any(name in self.results and self.results[name].verdict != "none" for name in metrics)

    def _clear(self, *metrics: str) -> Result | None:
        """Return the first of the named metrics that fails clearly."""
        return next((self.results[name] for name in metrics if name in self.results and self._fails(name)), None)

    def _fails(self, metric: str) -> bool:
        result = self.results[metric]
        if result.verdict != "fail":
            return False
        if _has_exact_p(result):
            return result.p_value is not None and result.p_value <= CLEAR_P
        return abs(result.zeta or 0.0) >= CLEAR_ZETA

    def _fails_unclearly(self, *metrics: str) -> bool:
        """Return whether one of the named metrics fails, but not clearly."""
        return any(self.results[name].verdict == "fail" for name in metrics if name in self.results)

    def _untested(self, topic: Topic, *metrics: str) -> Finding:
        """Return the finding that a topic was not tested, with the reason."""
        result = next((self.results[name] for name in metrics if name in self.results), None)
        reasons = [] if result is None else [each.text for each in result.warnings if each.code == "no-verdict"]
        reasons += [each.reason for each in self.report.skipped if each.metric in metrics]
        reason = (reasons or ["not among the metrics of this report"])[0].removeprefix("no verdict: ")
        return Finding(topic=topic, state="untested", text=f"not tested: {reason}")

    # ------------------------------------------------------------------ bias

    @cached_property
    def _shift(self) -> float | None:
        """Mean error relative to the observed errors, if it differs from 0 clearly; its sign if these are unknown."""
        bias, rmse = self._value("bias"), self._value("rmse")
        if bias is None or self._clear("bias") is None:
            return None
        if not rmse:
            return math.copysign(1.0, bias)
        limit = -UNIT.inv_cdf(CLEAR_P / 2) / math.sqrt(self.report.input.n)
        return max(-1.0, min(bias / rmse, 1.0)) if abs(bias) > limit * rmse else None

    def _bias(self) -> Finding | None:
        if self._shift is None:
            return None
        bias = self.results["bias"].value or 0.0
        side = "above" if bias > 0 else "below"
        relative = f", {abs(self._shift):.2g} of the typical error" if self._value("rmse") else ""
        text = f"targets are {abs(bias):.3g} {side} the predicted means on average{relative}"
        return _fault("bias", "predictions-too-low" if bias > 0 else "predictions-too-high", text)

    @property
    def _is_bias_only(self) -> bool:
        """Whether the squared errors agree with the uncertainties once the bias is removed."""
        rmse, sharpness = self.results.get("rmse"), self._value("sharpness")
        if abs(self._shift or 0.0) < SMALL_SHIFT or rmse is None or not rmse.value or not sharpness:
            return False
        if rmse.reference_low is None or rmse.reference_high is None:
            return False
        variance = 1 - (self._shift or 0.0) ** 2  # relative to the mean squared error; 0 if all errors are equal
        if variance <= 0 or rmse.reference_low <= 0:
            return False
        tolerance = math.log(rmse.reference_high / rmse.reference_low) / 2 * CLEAR_ERRORS / 2
        return abs(math.log(rmse.value * math.sqrt(variance) / sharpness)) <= tolerance

    # ------------------------------------------------------------------ size and shape

    @cached_property
    def _levels(self) -> list[Level]:
        """The levels of coverage in ascending order."""
        result = self.results.get("coverage")
        if result is None or result.value is None or result.reference is None:
            return []
        others = result.details.get("at_other_levels", [])
        shares = [(result.options["level"], result.value, result.reference)]
        shares += [(each["level"], each["coverage"], each["expected"]) for each in others]
        return [Level.from_coverage(*share, n=self.report.input.n) for share in sorted(shares)]

    @property
    def _main(self) -> Level | None:
        """The level of the coverage metric."""
        level = self.results["coverage"].options["level"] if "coverage" in self.results else None
        return next((each for each in self._levels if each.level == level), None)

    @cached_property
    def _tails(self) -> Fault | None:
        """Whether the outer intervals imply larger or smaller uncertainties than the inner ones."""
        if len(self._levels) < 2 or self._clear("pit", "ece", "coverage", "zms", "ence") is None:  # noqa: PLR2004 - a pair
            return None
        if abs(self._shift or 0.0) > LARGE_SHIFT:
            return None
        inner, outer = self._levels[0].scale, self._levels[-1].scale
        if _exceeds(inner, outer):
            return "light-tails"
        known = [level.scale for level in self._levels if level.is_informative]
        heavy = bool(known) and (
            _exceeds(known[-1], known[0]) or (self._clear("zms") is not None and _exceeds(self._zms_scale, known[0]))
        )
        return "heavy-tails" if heavy else None

    @property
    def _zms_scale(self) -> Scale | None:
        """The scale that squared z-scores imply, if a bias does not contribute to them."""
        zms = self.results.get("zms")
        if zms is None or self._shift is not None or not zms.value or not zms.low or not zms.high:
            return None
        return Scale(math.log(zms.value) / 2, (math.log(zms.high) - math.log(zms.low)) / 4 / NORMAL_LIMIT)

    def _size(self) -> Finding:
        judges = ("coverage", "zms", "rce")
        main = self._main
        if not self._is_judged(*judges):
            return self._untested("size", *judges)
        if (wrong := self._wrong_level) is not None:
            return _fault("size", wrong.direction, f"{wrong.text}: {wrong.direction.replace('-', ' ')}")
        held = main.text if main is not None and self._is_judged("coverage") else self._squares()
        failed = self._clear("coverage") if self._has_shape_fault else self._clear(*judges)
        if failed is None or failed.direction is None:
            return Finding(topic="size", state="right", text=f"{held}: {self._right_size(main)}")
        if self._is_bias_only:
            return Finding(topic="size", state="right", text=f"{held}: right, apart from the bias")
        if failed.metric != "coverage":
            held = self._squares()
        words = failed.direction.replace("-", " ")
        factor = "" if self._tails else self._factor(failed, main)
        return _fault("size", failed.direction, f"{held}: {words}{factor}")

    @property
    def _has_shape_fault(self) -> bool:
        """Whether the sentence about the shape explains what zms and rce find."""
        return self._tails is not None and self._is_judged("pit", "ece")

    @property
    def _wrong_level(self) -> Level | None:
        """The level that differs most, of a file that states intervals or quantiles only."""
        if self._is_judged("pit", "zms") or not self._is_judged("coverage"):
            return None
        wrong = [level for level in self._levels if abs(level.scale.log) > CLEAR_ERRORS * level.scale.error]
        alone = self.results["coverage"].options.get("at_least") or self._clear("coverage")
        return None if alone else max(wrong, key=lambda level: abs(level.scale.log) / level.scale.error, default=None)

    def _right_size(self, main: Level | None) -> str:
        if any(self.results[name].verdict == "undecided" for name in ("coverage", "zms") if name in self.results):
            return "right on average, as far as the replicates decide"
        if self._tails and main is not None and main.differs:
            return "not quite, see shape"
        return "not clearly wrong" if self._fails_unclearly("coverage", "zms", "rce") else "right on average"

    def _squares(self) -> str:
        """Return the mean squared z-score in words."""
        zms, rce = self._value("zms"), self._value("rce")
        error = 1 - (rce or 0.0)
        ratio = zms if zms is not None else error * error
        return f"squared errors are {ratio:.3g} times as large as predicted"

    def _factor(self, failed: Result, main: Level | None) -> str:
        """Return by how much wider intervals would be right, from the metric that failed."""
        zms = self._value("zms")
        factor = math.sqrt(zms) if zms else None
        if failed.metric == "coverage" and main is not None and (main.is_informative or zms is None):
            factor = math.exp(main.scale.log) if main.is_informative else None
        return "" if factor is None else f"; {factor:.2f} times as wide would be right"

    def _shape(self) -> Finding:
        judges = ("pit", "ece")
        if not self._is_judged(*judges):
            return self._untested("shape", *judges)
        held = _both(self._levels)
        failed = self._clear(*judges)
        p = "" if failed is None or failed.p_value is None else f" (p {failed.p_value:.2g})"
        if failed is not None and (skew := self._skew()):
            return _fault("shape", "skewed", f"{skew}{p}")
        if self._tails:
            weight = "heavier" if self._tails == "heavy-tails" else "lighter"
            return _fault("shape", self._tails, f"{held}: {weight} tails than predicted{p}")
        if failed is not None:
            return self._unexplained(failed, p)
        if self._clear("coverage", "zms", "rce"):
            return Finding(topic="shape", state="right", text="no fault besides those above")
        right = "not clearly wrong" if self._fails_unclearly(*judges) else "right"
        return Finding(topic="shape", state="right", text=f"{held}: {right}" if held else "as predicted")

    def _unexplained(self, failed: Result, p: str) -> Finding:
        """Return the finding about a wrong shape, unless the bias or the size explains it."""
        if abs(self._shift or 0.0) > LARGE_SHIFT:
            return Finding(topic="shape", state="untested", text="cannot be judged with such a bias")
        if self._shift is not None or self._clear("coverage", "zms", "rce"):
            return Finding(topic="shape", state="right", text="no fault besides those above")
        if failed.direction in ("predictions-too-low", "predictions-too-high"):
            words = failed.direction.replace("-", " ")
            return _fault("shape", failed.direction, f"predicted shares are off by {self._gap()}: {words}{p}")
        return _fault("shape", "wrong-shape", f"predicted shares are off by {self._gap()}: the shape is wrong{p}")

    def _gap(self) -> str:
        """Return the largest difference in the quantile reliability diagram in words."""
        curve = self.results["ece"].details.get("curve", []) if "ece" in self.results else []
        gaps = [abs(point["observed"] - point["level"]) for point in curve]
        return f"up to {_percent(max(gaps), 1)}" if gaps else "more than chance"

    def _skew(self) -> str:
        """Return the shares beyond the outermost quantiles if they differ and nothing else explains it; else ""."""
        histogram = self.results["pit"].details.get("histogram", []) if "pit" in self.results else []
        if self._shift is not None or len(histogram) < 2:  # noqa: PLR2004 - a pair
            return ""
        below, above, share = histogram[0], histogram[-1], 1 / len(histogram)
        if abs(above - below) <= CLEAR_ERRORS * math.sqrt(above + below):
            return ""
        parts = [_percent(count / sum(histogram), 1) for count in (below, above)]
        side = "right" if above > below else "left"
        return (
            f"{parts[0]} of targets are below the {_percent(share)} quantile, {parts[1]} above the"
            f" {_percent(1 - share)} quantile: more skewed to the {side} than predicted"
        )

    # ------------------------------------------------------------------ ranking and inputs

    def _ranking(self) -> Finding | None:
        removed = self._removal()
        if not self._is_judged("ence") and self._is_judged("stratified-coverage"):
            return self._by_width()
        if not self._is_judged("ence"):
            return self._untested("ranking", "ence") if removed else None
        if abs(self._shift or 0.0) > LARGE_SHIFT:
            return Finding(topic="ranking", state="untested", text="cannot be judged with such a bias")
        return self._by_std(_Bins.from_result(self.results["ence"]), removed)

    def _by_std(self, bins: _Bins, removed: str) -> Finding:
        """Return the finding about errors by the size of the uncertainties."""
        if bins.spread < EVEN:
            return Finding(
                topic="ranking", state="right", text="uncertainties are nearly equal, so they do not rank errors"
            )
        if self._clear("ence") is None or not bins.differ:
            return self._even_ranking(bins, removed)
        if bins.exponent < LOST:
            return _fault("ranking", "ranking-lost", f"larger uncertainties do not mean larger errors{removed}")
        size = "too large where they are large, too small where they are small"
        if bins.exponent > 1:
            size = "too small where they are large, too large where they are small"
        return _fault("ranking", "wrong-in-bins", f"uncertainties are {size}{removed}")

    def _even_ranking(self, bins: _Bins, removed: str) -> Finding:
        """Return the finding if errors do not differ from uncertainties by a power of them."""
        explained = self._tails or self._shift is not None or self._clear("coverage", "zms", "rce", "pit", "ece")
        if self._clear("ence") and not explained:
            return _fault("ranking", "wrong-in-bins", f"uncertainties of some sizes are wrong, see ence{removed}")
        if bins.exponent > CLEAR_ERRORS * bins.error:
            return Finding(topic="ranking", state="right", text=f"larger uncertainties mean larger errors{removed}")
        text = f"the rows do not show whether larger uncertainties mean larger errors{removed}"
        return Finding(topic="ranking", state="untested", text=text)

    def _by_width(self) -> Finding | None:
        """Return the finding about coverage by the width of the intervals; None if their widths are equal."""
        result = self.results["stratified-coverage"]
        bins = result.details.get("bins", [])
        shares = [(each["coverage"], each["rows"]) for each in bins]
        if result.options["by"] is not None or not shares or bins[0]["from"] >= (1 - EVEN) * bins[-1]["to"]:
            return None
        low, high = (_percent(round(share, 2)) for share in (min(shares)[0], max(shares)[0]))
        if self._clear("stratified-coverage") and _are_uneven(shares):
            text = f"{low} to {high} of targets are inside, depending on the width of the intervals"
            return _fault("ranking", "wrong-in-bins", text)
        return Finding(topic="ranking", state="right", text=f"narrow and wide intervals hold alike, {low} to {high}")

    def _removal(self) -> str:
        """Return what removing the rows with the largest uncertainties does to the error, in words."""
        result = self.results.get("confidence-curve")
        curve = {} if result is None else {point["removed"]: point["error"] for point in result.details["curve"]}
        if result is None or WITHHELD not in curve:
            return ""
        return (
            f" (without the largest {_percent(WITHHELD)}: {result.options['score']} {curve[0.0]:.3g} →"
            f" {curve[WITHHELD]:.3g})"
        )

    def _inputs(self) -> Finding | None:
        result = self.results.get("cce")
        if result is None and any(each.metric == "cce" and each.code == "inapplicable" for each in self.report.skipped):
            return Finding(topic="inputs", state="untested", text="not tested: pass --inputs or --embedding")
        if result is None:
            return None
        if result.verdict == "none":
            return self._untested("inputs", "cce")
        rejected = result.details.get("rejected", {})
        if self._clear("cce") is None:
            return Finding(
                topic="inputs", state="right", text="no input stands out: distributions match where data are"
            )
        where = "distributions differ from the data"
        if rejected.get("count"):
            where += f" at {rejected['count']:,} of {rejected['inputs']:,} inputs"
        p = "" if result.p_value is None else f" (p {result.p_value:.2g})"
        return _fault("inputs", "wrong-distribution", f"{where}{p}")

    def _others(self) -> Iterator[Finding]:
        """Yield a finding about failures that no sentence explains."""
        judged = [result for result in self.results.values() if result.verdict not in ("none", "undecided")]
        failed = [result for result in judged if result.verdict == "fail"]
        if not failed:
            return
        clear = [each for each in failed if self._fails(each.metric) and abs(each.zeta or math.inf) >= CLEAR_ZETA]
        if clear:
            names = ", ".join(map(_with_direction, clear))
            fails = "fails" if len(clear) == 1 else "fail"
            yield _fault("others", clear[0].direction, f"{names} {fails} clearly, and nothing above explains it")
            return
        names = ", ".join(map(_with_direction, failed))
        fails = "fails" if len(failed) == 1 else "fail"
        if len(failed) > BY_CHANCE * (1 + len(judged) / VERDICTS_PER_FAILURE):
            yield Finding(topic="others", state="untested", text=f"{names} {fails} at 5 %, more than by chance")
            return
        text = f"{names} {fails} at 5 %, none clearly; among {len(judged)} verdicts that happens by chance"
        yield Finding(topic="others", state="right", text=text)


class _Bins(NamedTuple):
    """Errors by predicted uncertainty.

    Parameters
    ----------
    spread : float
        Relative spread of the uncertainties.
    exponent : float
        Exponent of the errors as a power of the uncertainties: 1 if they are proportional, 0 if they are unrelated.
    error : float
        Standard error of the exponent.
    """

    spread: float
    exponent: float
    error: float

    @classmethod
    def from_result(cls, result: Result) -> _Bins:
        """Return the regression of log RMSE on log RMV over the bins of ence."""
        pairs = [(each["rmv"], each["rmse"]) for each in result.details.get("bins", [])]
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


def _has_exact_p(result: Result) -> bool:
    """Return whether the p-value decides, and its replicates are enough for a clear failure."""
    if result.p_value is None or any(message.code == "verdict-basis" for message in result.warnings):
        return False
    replicates: float = result.details.get("null", {}).get("replicates", math.inf)
    return (2 if result.alternative == "two-sided" else 1) / (replicates + 1) <= CLEAR_P


def _exceeds(scale: Scale | None, other: Scale) -> bool:
    """Return whether a scale is larger than another clearly."""
    return scale is not None and scale.log - other.log > SUSPECT_ERRORS * math.hypot(scale.error, other.error)


def _are_uneven(shares: Sequence[tuple[float, float]]) -> bool:
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


def _fault(topic: Topic, fault: Any, text: str) -> Finding:
    return Finding(topic=topic, state="fault", fault=fault, text=text)


def _both(levels: Sequence[Level]) -> str:
    """Return the shares inside the innermost and the outermost intervals."""
    if len(levels) < 2:  # noqa: PLR2004 - a pair
        return ""
    inner, outer = levels[0], levels[-1]
    return f"{inner.text}, {_percent(outer.level)} hold {outer.share}"


def _with_direction(result: Result) -> str:
    """Return the name of a metric, and how the model is wrong according to it."""
    return result.metric if result.direction is None else f"{result.metric} ({result.direction.replace('-', ' ')})"


def _percent(share: float, digits: int = 0) -> str:
    """Return a share in percent, without trailing zeros.

    Examples
    --------
    >>> _percent(0.9), _percent(0.8925, 1), _percent(0.995)
    ('90 %', '89.2 %', '99.5 %')
    """
    shown = round(100 * share, digits) if digits else 100 * share
    return f"{shown:.4g} %"
