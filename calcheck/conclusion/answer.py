"""The conclusion: its answer, and the sentences about each topic."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calcheck.conclusion.decision import decide
from calcheck.conclusion.effects import SCALE, WIDTH, Key, Measured
from calcheck.core.number_text import format_p
from calcheck.report import Report, Result, Skipped
from calcheck.report.conclusion import Conclusion, Effect

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
        untested = f"not tested: {SCALE} {reasons[0]}" if reasons else UNTESTED
        effects.append(Effect(topic="inputs", text=untested))
    effects += impossible
    together = [] if "size" in topics else _together(report)
    if not estimates and not impossible and not together:
        return report
    if "size" not in topics:
        reasons = [each.reason for each in skipped if each.metric == WIDTH]
        effects += [*(Effect(topic="size", text=f"not tested: {reason}") for reason in reasons[:1]), *together]
    conclusion = Conclusion(
        answer="no" if any(each.within is False for each in effects) else found.answer,
        qualifiers=found.qualifiers if not impossible else (),
        tolerance=tolerance,
        level=level,
        rows_needed=found.rows_needed,
        effects=tuple(effects),
        factors=tuple(measured.factors(tolerance)),
    )
    return replace(report, conclusion=conclusion)


def with_hint(report: Report, hint: str) -> Report:
    """Return a report whose conclusion says how targets may have been observed; unchanged without a hint."""
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
    text = f"{len(overall.metrics)} metrics together {words} (p {format_p(overall.p_value)})"
    return [Effect(topic="others", p=overall.p_value, within=False if fails else None, text=text)]
