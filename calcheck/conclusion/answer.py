"""The conclusion: its answer, and the sentences about each topic."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, get_args

from calcheck.conclusion.effects import (
    SCALE,
    WIDTH,
    Estimate,
    Key,
    Measured,
    decide,
    is_inside,
    is_outside,
    is_wrong,
    rows_needed,
)
from calcheck.core.text import p_text
from calcheck.reports import Report, Result, Skipped
from calcheck.reports.conclusion import Answered, Conclusion, Effect, OutputConclusion, Qualifier, Topic

UNTESTED = "not tested: pass --inputs or --embedding"
CONFIDENCE = 0.95  # Of reports that do not state theirs


def conclude(
    report: Report,
    results: Sequence[Result],
    p_values: Mapping[Key, float],
    *,
    tolerance: float,
    level: float,
    skipped: Sequence[Skipped] = (),
    impossible_text: str = "",
) -> Report:
    """Return a report with its conclusion from results, skipped ones and topics' p-values, if any is judged."""
    report = replace(report, settings={**report.settings, "tolerance": tolerance})
    impossible = (Effect(topic="others", within=False, text=impossible_text),) if impossible_text else ()
    if (unjudged := unjudged_conclusion(report.settings, impossible=impossible)) is not None:
        return replace(report, conclusion=replace(unjudged, tolerance=tolerance, level=level))
    measured = Measured(report, tuple(results), p_values, level)
    alpha = 1 - float(report.settings.get("confidence", CONFIDENCE))
    estimates = measured.estimates()
    topics = {each.topic for each in estimates}
    tested = "inputs" in topics
    found = decide(
        estimates, n=report.input.n, tolerance=tolerance, others=measured.others(), tested=tested, alpha=alpha
    )
    effects = [*measured.effects(found.within, tolerance, alpha)]
    if not tested:
        reasons = [each.reason for each in skipped if each.metric == SCALE and each.code == "inapplicable"]
        untested = f"not tested: the local error {reasons[0]}" if reasons else UNTESTED
        effects.append(Effect(topic="inputs", text=untested))
    effects += impossible
    together = [] if "size" in topics else _together(report)
    if not estimates and not impossible and not together:
        return report
    if "size" not in topics:
        reasons = [each.reason for each in skipped if each.metric == WIDTH]
        effects += [*(Effect(topic="size", text=f"not tested: {reason}") for reason in reasons[:1]), *together]
    somewhere = found.answer == "yes" and _differs_somewhere(report, tolerance)
    qualifiers = {*found.qualifiers, *(["on-average"] if somewhere else [])}
    conclusion = Conclusion(
        answer="no" if any(each.within is False for each in effects) else found.answer,
        qualifiers=tuple(each for each in get_args(Qualifier) if each in qualifiers and not impossible),
        tolerance=tolerance,
        level=level,
        rows_needed=found.rows_needed,
        effects=tuple(effects),
        factors=tuple(measured.factors(tolerance)),
    )
    return replace(report, conclusion=conclusion)


def combine(
    report: Report, outputs: Mapping[str, Report], effect: Effect, limits: tuple[float, float] | None, tolerance: float
) -> Report:
    """Return a report with the conclusion from those of several targets and how they depend on each other."""
    concluded = tuple(_output(name, each) for name, each in outputs.items())
    first, inside = concluded[0], limits is None
    needed = [each.rows_needed for each in concluded if each.answer == "not-shown"]
    if limits is not None and effect.value is not None:
        hull = Estimate("correlation", effect.value, *limits)
        own = Estimate("correlation", effect.value, effect.low or 0.0, effect.high or math.inf, effect.p)
        inside = is_inside(hull, tolerance)
        alpha = 1 - float(report.settings.get("confidence", CONFIDENCE))
        effect = replace(effect, within=False if is_wrong(own, tolerance, alpha, inside=inside) else inside or None)
        needed += [] if inside else [rows_needed(hull, report.input.n, tolerance)]
    answers = {each.answer for each in concluded}
    qualifiers = [word for each in concluded for word in each.qualifiers] + ["as-tested"] * (limits is None)
    is_no = "no" in answers or effect.within is False
    is_yes = answers == {"yes"} and inside and not is_no
    known = [each for each in needed if each is not None]
    conclusion = Conclusion(
        answer="no" if is_no else "yes" if is_yes else "not-shown",
        qualifiers=tuple(dict.fromkeys(qualifiers)) if is_yes else (),
        tolerance=first.tolerance,
        level=first.level,
        rows_needed=max(known) if known and len(known) == len(needed) and not is_no else None,
        effects=(effect,),
        outputs=concluded,
    )
    return replace(report, settings={**report.settings, "tolerance": tolerance}, conclusion=conclusion)


def _differs_somewhere(report: Report, tolerance: float) -> bool:
    """Return whether the worst region of the inputs is shown to be beyond the tolerance."""
    region = report.region
    if region is None or region.value is None or region.low is None or region.high is None:
        return False
    topic: Topic = "bias" if region.level is None else "size"
    return is_outside(Estimate(topic, region.value, region.low, region.high), tolerance)


def _output(name: str, report: Report) -> OutputConclusion:
    """Return the conclusion about one of several targets with its metrics; it shows nothing if there is none."""
    found = report.conclusion or Conclusion(answer="not-shown", effects=())
    answered = {each.name: getattr(found, each.name) for each in fields(Answered)}
    return OutputConclusion(name=name, results=report.results, overall=report.overall, region=report.region, **answered)


def with_hint(report: Report, hint: str) -> Report:
    """Return a report whose conclusion has a hint about its targets; unchanged without a hint."""
    if report.conclusion is None or not hint:
        return report
    effects = (*report.conclusion.effects, Effect(topic="targets", text=hint))
    return replace(report, conclusion=replace(report.conclusion, effects=effects))


def unjudged_conclusion(
    settings: Mapping[str, Any], further: str = "", *, impossible: Sequence[Effect] = ()
) -> Conclusion | None:
    """Return the conclusion if rows were noticed to depend on each other, which judges impossible targets only."""
    noticed = settings.get("dependence_noticed")
    if noticed is None:
        return None
    text = f"nothing{' else' if impossible else ''} is judged, since {noticed['reason']}{further}"
    unclear = Effect(topic="dependence", text=text)
    return Conclusion(answer="no" if impossible else "not-shown", effects=(*impossible, unclear))


def _together(report: Report) -> list[Effect]:
    """Return what all metrics together say, where the size of the uncertainties cannot be judged."""
    overall = report.overall
    if overall is None or overall.verdict == "none":
        return []
    fails = overall.verdict == "fail"
    words = f"fail, led by {overall.leading}" if fails else "do not differ from those of a perfect model"
    text = f"{len(overall.metrics)} metrics together {words} ({p_text(overall.p_value)})"
    return [Effect(topic="others", p=overall.p_value, within=False if fails else None, text=text)]
