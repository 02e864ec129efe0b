"""The conclusion: its answer, and the sentences about each topic."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from calcheck import result_details
from calcheck.conclusion import evidence as facts
from calcheck.core.number_text import format_p, percent
from calcheck.report import Conclusion, Finding, Report, Result, Topic

BY_CHANCE, VERDICTS_PER_FAILURE = 2, 10  # Failures at 5 % that are plausible: 2 of few verdicts, 6 of twenty
LOST = 0.3  # Maximum exponent of errors as a power of uncertainties for a lost ranking
VECTORS = {
    "variogram": "how the targets of a row vary together",
    "band-depth": "how far the targets of a row are from the middle",
    "average": "how high the targets of a row are",
    "multivariate": "how many vectors are nowhere larger than the targets of a row",
}
"""What the ranks of vectors of several targets show, by the pre-rank."""
OF_VECTORS = ("crps", "nll", "ammd")
"""Metrics that judge the joint distributions of several targets."""
OF_SINGLE_DRAWS = ("cce", "jmmd")
"""Metrics that judge single draws: crps does not, which is symmetric in draw and target."""
WITHHELD = 0.2  # Share of rows with the largest uncertainties that the sentence about the ranking removes


def describe_bias(evidence: facts.Evidence) -> Finding | None:
    """Return the finding about whether the mean error is 0."""
    if evidence.shift is None:
        return None
    bias = evidence.results["bias"].value or 0.0
    side = "above" if bias > 0 else "below"
    relative = f", {abs(evidence.shift):.2g} of the typical error" if evidence.value("rmse") else ""
    text = f"targets are {abs(bias):.3g} {side} the predicted means on average{relative}"
    return _fault("bias", "predictions-too-low" if bias > 0 else "predictions-too-high", text)


def describe_size(evidence: facts.Evidence) -> Finding | None:
    """Return the finding about the size of the uncertainties."""
    judges = ("coverage", "zms", "rce")
    main = evidence.main_level
    single = main is not None and main.expected == 0
    if single or evidence.pre_rank is not None:
        return _size_of_single_draws(evidence) if single else _size_of_vectors(evidence)
    if not evidence.is_judged(*judges):
        return _untested(evidence, "size", *judges)
    if (wrong := evidence.wrong_level) is not None:
        return _fault("size", wrong.direction, f"{wrong.text}: {wrong.direction.replace('-', ' ')}")
    held = main.text if main is not None and evidence.is_judged("coverage") else _squares(evidence)
    failed = evidence.clear_failure("coverage") if evidence.has_shape_fault else evidence.clear_failure(*judges)
    if failed is None or failed.direction is None:
        return Finding(topic="size", state="right", text=f"{held}: {_right_size(evidence, main)}")
    if evidence.is_bias_only:
        return Finding(topic="size", state="right", text=f"{held}: right, apart from the bias")
    if failed.metric != "coverage":
        held = _squares(evidence, failed.metric)
    words = failed.direction.replace("-", " ")
    factor = "" if evidence.tails else _factor(evidence, failed, main)
    return _fault("size", failed.direction, f"{held}: {words}{factor}")


def _size_of_vectors(evidence: facts.Evidence) -> Finding | None:
    """Return the finding about several targets if their joint distributions keep what they promise; else None."""
    judged = [name for name in OF_VECTORS if evidence.is_judged(name)]
    if not judged:
        return _untested(evidence, "size", *OF_VECTORS)
    return _kept(evidence, judged, " of the vectors", "as the predicted joint distributions promise")


def _size_of_single_draws(evidence: facts.Evidence) -> Finding | None:
    """Return the finding about one draw per row, which has no interval; None if what compares distributions fails."""
    judged = [name for name in OF_SINGLE_DRAWS if evidence.is_judged(name)]
    if not judged:
        return Finding(topic="size", state="untested", text="not tested: one draw per row has no spread; save several")
    return _kept(evidence, judged, "", "as the predicted distributions promise")


def _kept(evidence: facts.Evidence, judged: Sequence[str], of: str, promised: str) -> Finding | None:
    """Return the finding that metrics do not fail clearly; None if one does."""
    if evidence.clear_failure(*judged):
        return None
    right = "not clearly wrong" if evidence.fails_unclearly(*judged) else promised
    return Finding(topic="size", state="right", text=f"{', '.join(judged)}{of}: {right}")


def _right_size(evidence: facts.Evidence, main: facts.Level | None) -> str:
    if any(evidence.results[name].verdict == "undecided" for name in ("coverage", "zms") if name in evidence.results):
        return "right on average, as far as the replicates decide"
    if evidence.tails and main is not None and main.differs:
        return "not quite, see shape"
    if evidence.fails_unclearly("coverage", "zms", "rce"):
        return "not clearly wrong"
    if evidence.is_judged("coverage") and main is not None and main.at_limits:
        return f"consistent with {percent(main.level)}"
    return "right on average"


def _squares(evidence: facts.Evidence, metric: str | None = None) -> str:
    """Return the size of the squared errors in words: by zms, which weighs rows equally, or by rce, in units of y."""
    judged = metric or next(name for name in ("zms", "rce") if evidence.is_judged(name))
    return f"squared errors are {_ratio(evidence, judged) or 0.0:.3g} times as large as predicted"


def _ratio(evidence: facts.Evidence, metric: str) -> float | None:
    """Return the squared errors relative to the predicted ones according to zms or rce; None if there is none."""
    value = evidence.value(metric)
    return value if value is None or metric != "rce" else (1 - value) * (1 - value)


def _factor(evidence: facts.Evidence, failed: Result, main: facts.Level | None) -> str:
    """Return by how much wider intervals would be right, from the metric that failed."""
    if failed.metric == "coverage" and main is not None and main.is_informative:
        factor = math.exp(main.scale.log)
    else:
        factor = math.sqrt(_ratio(evidence, "rce" if failed.metric == "rce" else "zms") or 0.0)
    agrees = factor > 1 if failed.direction == "too-narrow" else 0 < factor < 1
    return f"; {factor:.2f} times as wide would be right" if agrees else ""


def describe_shape(evidence: facts.Evidence) -> Finding:
    """Return the finding about the shape of the distributions."""
    pre_rank = evidence.pre_rank
    return _single_shape(evidence) if pre_rank is None else _of_vectors(evidence, pre_rank)


def _single_shape(evidence: facts.Evidence) -> Finding:
    """Return the finding about the shape of the distributions of a single target."""
    judges = ("pit", "ece")
    if not evidence.is_judged(*judges):
        return _untested(evidence, "shape", *judges)
    held = _both(evidence.levels)
    failed = evidence.clear_failure(*judges)
    p = "" if failed is None else _p_value(failed)
    if failed is not None and (skew := _skew(evidence)):
        return _fault("shape", "skewed", f"{skew}{p}")
    if evidence.tails:
        weight = "heavier" if evidence.tails == "heavy-tails" else "lighter"
        return _fault("shape", evidence.tails, f"{held}: {weight} tails than predicted{p}")
    if failed is not None:
        return _unexplained(evidence, failed, p)
    if evidence.clear_failure("coverage", "zms", "rce"):
        return Finding(topic="shape", state="right", text="no fault besides those above")
    right = "not clearly wrong" if evidence.fails_unclearly(*judges) else "right"
    return Finding(topic="shape", state="right", text=f"{held}: {right}" if held else "as predicted")


def _of_vectors(evidence: facts.Evidence, pre_rank: str) -> Finding:
    """Return the finding about several targets, by the ranks of their vectors."""
    what, failed = VECTORS[pre_rank], evidence.clear_failure("pit")
    if failed is None:
        right = "not clearly wrong" if evidence.fails_unclearly("pit") else "as predicted"
        return Finding(topic="shape", state="right", text=f"{what}: {right}")
    return _fault("shape", "wrong-distribution", f"{what}: not as predicted{_p_value(failed)}")


def _unexplained(evidence: facts.Evidence, failed: Result, p: str) -> Finding:
    """Return the finding about a wrong shape, unless the bias or the size explains it."""
    if abs(evidence.shift or 0.0) > facts.LARGE_SHIFT:
        return Finding(topic="shape", state="untested", text="cannot be judged with such a bias")
    if evidence.shift is not None or evidence.clear_failure("coverage", "zms", "rce"):
        return Finding(topic="shape", state="right", text="no fault besides those above")
    if failed.direction in ("predictions-too-low", "predictions-too-high"):
        words = failed.direction.replace("-", " ")
        return _fault("shape", failed.direction, f"predicted shares are off by {_gap(evidence)}: {words}{p}")
    return _fault("shape", "wrong-shape", f"predicted shares are off by {_gap(evidence)}: the shape is wrong{p}")


def _gap(evidence: facts.Evidence) -> str:
    """Return the largest difference in the quantile reliability diagram in words."""
    gaps = [
        abs(point["observed"] - point["level"])
        for point in evidence.details("ece", result_details.EceDetails).get("curve", [])
    ]
    return f"up to {percent(max(gaps), 1)}" if gaps else "more than chance"


def _skew(evidence: facts.Evidence) -> str:
    """Return the shares beyond the outermost quantiles if they differ and nothing else explains it; else ""."""
    histogram = evidence.details("pit", result_details.PitDetails).get("histogram", [])
    if evidence.shift is not None or len(histogram) < 2:  # noqa: PLR2004 - a pair
        return ""
    below, above, share = histogram[0], histogram[-1], 1 / len(histogram)
    if abs(above - below) <= facts.CLEAR_ERRORS * math.sqrt(above + below):
        return ""
    parts = [percent(count / sum(histogram), 1) for count in (below, above)]
    side = "right" if above > below else "left"
    return (
        f"{parts[0]} of targets are below the {percent(share)} quantile, {parts[1]} above the"
        f" {percent(1 - share)} quantile: more skewed to the {side} than predicted"
    )


def describe_ranking(evidence: facts.Evidence) -> Finding | None:
    """Return the finding about whether larger uncertainties mean larger errors."""
    removed = _removal(evidence)
    if not evidence.is_judged("ence") and evidence.is_judged("stratified-coverage"):
        return _by_width(evidence)
    if not evidence.is_judged("ence"):
        return _untested(evidence, "ranking", "ence") if removed else None
    if abs(evidence.shift or 0.0) > facts.LARGE_SHIFT:
        return Finding(topic="ranking", state="untested", text="cannot be judged with such a bias")
    return _by_std(
        evidence,
        facts.ErrorBins.from_bins(evidence.details("ence", result_details.BinnedDetails).get("bins", [])),
        removed,
    )


def _by_std(evidence: facts.Evidence, bins: facts.ErrorBins, removed: str) -> Finding:
    """Return the finding about errors by the size of the uncertainties."""
    if bins.spread < facts.EVEN:
        return Finding(
            topic="ranking", state="right", text="uncertainties are nearly equal, so they do not rank errors"
        )
    if evidence.clear_failure("ence") is None or not bins.differ:
        return _even_ranking(evidence, bins, removed)
    if bins.exponent < LOST:
        return _fault("ranking", "ranking-lost", f"larger uncertainties do not mean larger errors{removed}")
    size = "too large where they are large, too small where they are small"
    if bins.exponent > 1:
        size = "too small where they are large, too large where they are small"
    return _fault("ranking", "wrong-in-bins", f"uncertainties are {size}{removed}")


def _even_ranking(evidence: facts.Evidence, bins: facts.ErrorBins, removed: str) -> Finding:
    """Return the finding if errors do not differ from uncertainties by a power of them."""
    explained = (
        evidence.tails or evidence.shift is not None or evidence.clear_failure("coverage", "zms", "rce", "pit", "ece")
    )
    if evidence.clear_failure("ence") and not explained:
        return _fault("ranking", "wrong-in-bins", f"uncertainties of some sizes are wrong, see ence{removed}")
    if bins.exponent > facts.CLEAR_ERRORS * bins.error:
        return Finding(topic="ranking", state="right", text=f"larger uncertainties mean larger errors{removed}")
    text = f"the rows do not show whether larger uncertainties mean larger errors{removed}"
    return Finding(topic="ranking", state="untested", text=text)


def _by_width(evidence: facts.Evidence) -> Finding | None:
    """Return the finding about coverage by the width of the intervals; None if their widths are equal."""
    bins = evidence.details("stratified-coverage", result_details.StratifiedCoverageDetails).get("bins", [])
    shares = [(share, each["rows"]) for each in bins if (share := _nearest_share(each)) is not None]
    if evidence.results["stratified-coverage"].options["by"] is not None or not shares:
        return None
    narrowest, widest = bins[0]["from"], bins[-1]["to"]
    if not isinstance(narrowest, int | float) or not isinstance(widest, int | float):
        return None
    if narrowest >= (1 - facts.EVEN) * widest:
        return None
    low, high = (percent(round(share, 2)) for share in (min(shares)[0], max(shares)[0]))
    if evidence.clear_failure("stratified-coverage") and facts.are_uneven(shares):
        text = f"{low} to {high} of targets are inside, depending on the width of the intervals"
        return _fault("ranking", "wrong-in-bins", text)
    held = (
        f"{low} to {high}"
        if not any("strictly_inside" in each for each in bins)
        else "apart from targets at their limits"
    )
    return Finding(topic="ranking", state="right", text=f"narrow and wide intervals hold alike, {held}")


def _nearest_share(each: result_details.CoverageBin) -> float | None:
    """Return the share inside in a bin; if targets are equal to limits, the one nearest to what is expected."""
    share, strictly, expected = each["coverage"], each.get("strictly_inside"), each.get("expected")
    if share is None or strictly is None or expected is None:
        return share
    return facts.nearest_share(share, strictly, expected)


def _removal(evidence: facts.Evidence) -> str:
    """Return what removing the rows with the largest uncertainties does to the error, in words."""
    points = evidence.details("confidence-curve", result_details.ConfidenceCurveDetails).get("curve", [])
    curve = {point["removed"]: point["error"] for point in points}
    if WITHHELD not in curve:
        return ""
    score = evidence.results["confidence-curve"].options["score"]
    return f" (without the largest {percent(WITHHELD)}: {score} {curve[0.0]:.3g} → {curve[WITHHELD]:.3g})"


def describe_inputs(evidence: facts.Evidence) -> Finding | None:
    """Return the finding about the distributions at each input."""
    result = evidence.results.get("cce")
    if result is None and any(each.metric == "cce" and each.code == "inapplicable" for each in evidence.report.skipped):
        return Finding(topic="inputs", state="untested", text="not tested: pass --inputs or --embedding")
    if result is None:
        return None
    if result.verdict == "none":
        return _untested(evidence, "inputs", "cce")
    rejected = evidence.details("cce", result_details.CceDetails).get("rejected", {})
    if evidence.clear_failure("cce") is None:
        return Finding(topic="inputs", state="right", text="no input stands out: distributions match where data are")
    where = f"distributions differ from the data{' in some neighborhoods' if rejected.get('count') else ''}"
    return _fault("inputs", "wrong-distribution", f"{where}{_p_value(result)}")


def describe_impossible(evidence: facts.Evidence) -> Finding | None:
    """Return the finding about targets that have probability 0; None if there are none, or replicates have them too."""
    nll = evidence.results.get("nll")
    if nll is None or nll.verdict == "pass":
        return None
    texts = [message.text for message in nll.warnings if message.code == "impossible-targets"]
    if not texts and nll.value is None and nll.verdict == "fail":  # streamed rows are not counted
        texts = ["some targets have probability 0 under the predictions, so the log-likelihood is infinite"]
    return _fault("others", "worse-than-promised", texts[0]) if texts else None


def describe_others(evidence: facts.Evidence) -> Iterator[Finding]:
    """Yield a finding about failures that no sentence explains."""
    judged = [result for result in evidence.results.values() if result.verdict not in ("none", "undecided")]
    failed = [result for result in judged if result.verdict == "fail"]
    if clear := [each for each in failed if evidence.fails_clearly(each.metric)]:
        yield _fault("others", clear[0].direction, f"{_fail(clear)} clearly, and nothing above explains it")
    elif _are_more_than_chance(evidence, len(failed), len(judged)):
        who = f"{_fail(failed)} at 5 %" if failed else "the metrics fail together"
        state: Literal["fault", "untested"] = "untested" if facts.judged_overall(evidence.report) is None else "fault"
        yield Finding(topic="others", state=state, text=f"{who}, more than by chance")
    elif failed:
        text = f"{_fail(failed)} at 5 %, none clearly; among {len(judged)} verdicts that happens by chance"
        yield Finding(topic="others", state="right", text=text)


def _are_more_than_chance(evidence: facts.Evidence, failures: int, verdicts: int) -> bool:
    """Return whether failures are more than by chance, by the overall verdict or else by their number."""
    overall = facts.judged_overall(evidence.report)
    if overall is not None:
        return overall.verdict == "fail"
    return failures > BY_CHANCE * (1 + verdicts / VERDICTS_PER_FAILURE)


def _fail(results: Sequence[Result]) -> str:
    """Return the names of metrics with the directions, and that they fail."""
    names = ", ".join(map(_with_direction, results))
    return f"{names} {'fails' if len(results) == 1 else 'fail'}"


def _p_value(result: Result) -> str:
    """Return the p-value of a result in parentheses; "" without one."""
    return "" if result.p_value is None else f" (p {format_p(result.p_value)})"


def _untested(evidence: facts.Evidence, topic: Topic, *metrics: str) -> Finding:
    """Return the finding that a topic was not tested, with the reason."""
    result = next((evidence.results[name] for name in metrics if name in evidence.results), None)
    reasons = [] if result is None else [each.reason for each in result.warnings if each.code == "no-verdict"]
    reasons += [each.reason for each in evidence.report.skipped if each.metric in metrics]
    reason = next(iter(reasons), "not among the metrics of this report")
    return Finding(topic=topic, state="untested", text=f"not tested: {reason}")


def _fault(topic: Topic, fault: Any, text: str) -> Finding:
    return Finding(topic=topic, state="fault", fault=fault, text=text)


def _both(levels: Sequence[facts.Level]) -> str:
    """Return the shares inside the innermost and the outermost intervals."""
    if len(levels) < 2 or levels[-1].expected == 0:  # noqa: PLR2004 - a pair
        return ""
    inner, outer = levels[0], levels[-1]
    at_limits = inner.at_limits or outer.at_limits
    return f"{percent(inner.level)} intervals hold {inner.share}, {percent(outer.level)} hold {outer.share}{at_limits}"


def _with_direction(result: Result) -> str:
    """Return the name of a metric, and how the model is wrong according to it."""
    return result.metric if result.direction is None else f"{result.metric} ({result.direction.replace('-', ' ')})"


MIN_VERDICTS, MANY_RESULTS = 2, 8  # Minimum number of verdicts, or of results, for a conclusion
MIN_ROWS = 30  # Minimum number of rows for the answer yes
TOPICS = (describe_bias, describe_size, describe_shape, describe_ranking, describe_inputs, describe_impossible)
"""Functions that return the finding about a topic, in the order of the conclusion."""


def conclude(report: Report) -> Report:
    """Return a report with its conclusion; unchanged if it has few results and fewer than two verdicts."""
    impossible = (
        describe_impossible(facts.Evidence(report)) if any(each.is_impossible for each in report.results) else None
    )
    found = () if impossible is None else (impossible,)
    if (unjudged := unjudged_conclusion(report.settings, impossible=found)) is not None:
        return replace(report, conclusion=unjudged) if len(report.results) >= MIN_VERDICTS else report
    verdicts = sum(result.verdict != "none" for result in report.results)
    if verdicts < MIN_VERDICTS and len(report.results) < MANY_RESULTS:
        return report
    findings = _findings(facts.Evidence(report))
    answer = _answer(findings, report.input.n)
    return replace(report, conclusion=Conclusion(answer=answer, findings=findings))


def unjudged_conclusion(
    settings: Mapping[str, Any], further: str = "", *, impossible: Sequence[Finding] = ()
) -> Conclusion | None:
    """Return the conclusion if it was noticed that rows depend on each other; else None.

    Nothing is judged then but targets with probability 0, which are impossible however rows depend on each other.
    """
    noticed = settings.get("dependence_noticed")
    if noticed is None:
        return None
    text = f"nothing{' else' if impossible else ''} is judged, since {noticed['reason']}{further}"
    unclear = Finding(topic="dependence", state="untested", text=text)
    return Conclusion(answer="no" if impossible else "unclear", findings=(*impossible, unclear))


def _findings(evidence: facts.Evidence) -> tuple[Finding, ...]:
    """Return the findings in the order of the conclusion; failures that none of them explains come last."""
    found = [finding for describe in TOPICS if (finding := describe(evidence)) is not None]
    if all(finding.state != "fault" for finding in found):
        found += describe_others(evidence)
    return tuple(found)


def _answer(findings: Sequence[Finding], n: int) -> Literal["yes", "no", "unclear"]:
    """Return whether the uncertainties can be trusted, given n rows."""
    states = {finding.topic: finding.state for finding in findings}
    if "fault" in states.values():
        return "no"
    right = states.get("size") == "right" and states.get("others") != "untested"
    return "yes" if right and n >= MIN_ROWS else "unclear"
