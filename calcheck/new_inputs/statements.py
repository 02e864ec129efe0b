"""The answer about a population of new rows, and its sentences."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from calcheck.conclusion.decision import LOCAL, Estimate, decide, is_inside
from calcheck.conclusion.effects import bias_text, size_text
from calcheck.core.text import p_text
from calcheck.new_inputs.measures import Factor, observed_bias, stated_levels
from calcheck.new_inputs.population import Population
from calcheck.predictions import Predictions
from calcheck.reports.conclusion import Effect, WidthFactor

FEWEST_EFFECTIVE = 30  # Fewest tested rows that count, for a statement about the uncertainties
# Distance of the means of weighted tested rows from those of new ones, in standard deviations and relative to that
# without weights, up to which they stand for each other
MOST_SHIFT, MOST_LEFT = 0.3, 0.5
MIDDLE = 0.5  # Level of the intervals of which few rows show most
NO_MATCH = "the tested inputs cannot stand for the new ones"


class Terms(NamedTuple):
    """What an answer is about."""

    level: float  # Of the intervals
    tolerance: float
    tail: float  # Probability that a limit is wrong


def state(found: Population | None, terms: Terms) -> dict[str, Any]:
    """Return fields of the conclusion about a population: the answer, if enough rows count and have its inputs."""
    if found is None:
        return _nothing("too few new rows lie among the tested inputs")
    counted, reason = {"effective_rows": found.weights.effective_rows}, _mismatch(found)
    return counted | (_nothing(f"{NO_MATCH}: {reason}") if reason else _stated(found, terms))


def _mismatch(found: Population) -> str:
    """Return why the tested rows cannot stand for the new ones; empty if they can."""
    effective, (shift, left) = found.weights.effective_rows, found.remaining_shift
    if effective < FEWEST_EFFECTIVE:
        return f"{effective:.0f} of them count, {FEWEST_EFFECTIVE} are needed"
    is_far = shift > MOST_SHIFT and left > MOST_LEFT
    return f"with weights, their means differ by {shift:.2g} standard deviations" if is_far else ""


def _nothing(reason: str) -> dict[str, Any]:
    return {"answer": "not-shown", "effects": (Effect(topic="size", text=f"not shown: {reason}"),)}


def _stated(found: Population, terms: Terms) -> dict[str, Any]:
    factors = {level: found.factor(level, terms.tail) for level in stated_levels(found.rows, terms.level)}
    tests = [factors[level].p or 0.0 for level in factors if level in (MIDDLE, terms.level)]
    size = factors[terms.level]._replace(p=min(1.0, len(tests) * min(tests)))
    local = found.local(terms.tail)
    estimates = _adjusted([size, found.bias(terms.tail), *([] if local is None else [local])])
    others = [each._replace(topic="shape", p=None) for level, each in factors.items() if level != terms.level]
    n, tested = len(found.rows), local is not None
    decision = decide(estimates, n=n, tolerance=terms.tolerance, others=others, tested=tested, alpha=terms.tail)
    effects = [_effect(each, held, terms) for each, held in zip(estimates, decision.within, strict=True)]
    return {
        "answer": decision.answer,
        "qualifiers": decision.qualifiers,
        "rows_needed": decision.rows_needed,
        "effects": tuple(effects),
        "factors": tuple(_width_factor(level, each, terms.tolerance) for level, each in factors.items()),
        "coverage": found.coverage(terms.level),
    }


def _adjusted(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return estimates with p-values adjusted for their number (Holm)."""
    order = sorted(range(len(estimates)), key=lambda place: estimates[place].p or 0.0)
    adjusted, largest = list(estimates), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * (estimates[place].p or 0.0)))
        adjusted[place] = estimates[place]._replace(p=largest)
    return adjusted


def _effect(each: Estimate, held: bool | None, terms: Terms) -> Effect:  # noqa: FBT001 - as decided
    is_local = each.topic in LOCAL
    return Effect(
        topic=each.topic,
        kind="scale" if is_local else None,
        value=_finite(each.value),
        low=_finite(each.low),
        high=_finite(each.high),
        within=held,
        p=each.p,
        text=_local_text(each, terms) if is_local else _text(each, held, terms),
    )


def _text(each: Estimate, held: bool | None, terms: Terms) -> str:  # noqa: FBT001 - as decided
    told = size_text(terms.level, each) if each.topic == "size" else bias_text(each)
    if each.p is None or each.p > terms.tail:
        return told
    p = p_text(each.p)
    return f"{told}; differs from a perfect model ({p}), by less than the tolerance" if held else f"{told} ({p})"


def _local_text(each: Estimate, terms: Terms) -> str:
    if each.p is None or each.p > terms.tail:
        return "no error of the uncertainties along the inputs is shown"
    sizes = f"at least {100 * each.low:.2g} % along the inputs, typically {100 * each.value:.2g} %"
    return f"uncertainties are off by {sizes} ({p_text(each.p)})"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _width_factor(level: float, each: Estimate, tolerance: float) -> WidthFactor:
    held = is_inside(each, tolerance) or None
    return WidthFactor(level=level, value=each.value, low=each.low, high=_finite(each.high), within=held)


def foretold_effects(found: Population, terms: Terms) -> tuple[Effect, ...]:
    """Return the size and the bias of a population as tested rows foretell them; none if they cannot stand for it."""
    return () if _mismatch(found) else _sizes([found.factor(terms.level, terms.tail), found.bias(terms.tail)], terms)


def observed_effects(rows: Predictions, terms: Terms) -> tuple[Effect, ...]:
    """Return the size and the bias of rows as they are observed."""
    return _sizes(
        [Factor.from_rows(rows, terms.level).of_equal_rows(terms.tail), observed_bias(rows, terms.tail)], terms
    )


def _sizes(estimates: Sequence[Estimate], terms: Terms) -> tuple[Effect, ...]:
    return tuple(_effect(each._replace(p=None), is_inside(each, terms.tolerance) or None, terms) for each in estimates)
