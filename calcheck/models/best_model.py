"""Which of several models is best by a score, by how much, and whether that is shown."""

from collections.abc import Callable, Mapping, Sequence

from calcheck.core.text import p_text
from calcheck.inference.p_values_and_verdicts import holm
from calcheck.reports import Result, rejects
from calcheck.reports.conclusion import BestModel, OtherModel

SCORES = ("crps", "nll", "wis", "interval-score", "pinball", "mae", "rmse")
"""Scores that decide which model is best, the first of them that is known."""
SIGNED = ("nll",)  # Scores that can be negative, of which no percentages are stated
MOST_PAIRED = 5  # Largest number of models of which the others are compared with each other, too
MOST_NAMED = 3  # Number of models that the sentence names, of those with and those without a significant difference


def best_model(
    metric: str, scores: Mapping[str, float], differences: Callable[[Sequence[str]], list[Result]], confidence: float
) -> BestModel | None:
    """Return the model with the smallest score, and ``differences`` of others from it; None if all are equal.

    ``differences`` are those of all models of a sequence from the first. Of few models, all pairs are compared.
    """
    ordered = sorted(scores, key=scores.__getitem__)
    if len(ordered) < 2 or scores[ordered[0]] == scores[ordered[-1]]:  # noqa: PLR2004 - a comparison needs two
        return None
    pairs = len(ordered) * (len(ordered) - 1) // 2  # The data choose the best model

    def others_than(order: Sequence[str]) -> tuple[OtherModel, ...]:
        found = {str(each.slice["model"]): each for each in differences(order)}
        known = {name: each.p_value for name, each in found.items() if each.p_value is not None}
        adjusted = dict(zip(known, holm(list(known.values()), pairs), strict=True))
        return tuple(_other(each, scores[name], adjusted.get(name), metric, confidence) for name, each in found.items())

    others, alike = others_than(ordered), []
    for place, name in enumerate(ordered[1:-1] if len(ordered) <= MOST_PAIRED else (), 1):
        alike += [(name, each.model) for each in others_than(ordered[place:]) if not each.significant]
    text = "; ".join([_sentence(metric, ordered[0], others), *_alike(alike)])
    return BestModel(metric=metric, model=ordered[0], others=others, alike=tuple(alike), text=text)


def _alike(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return which other models are not shown to differ."""
    named = ", ".join(f"{better} and {worse}" for better, worse in pairs)
    return [f"not shown to differ: {named}"] if pairs else []


def _other(result: Result, score: float, p_value: float | None, metric: str, confidence: float) -> OtherModel:
    """Return the difference of a model from the best one, also in percent of its score."""
    sides = (result.value, result.low, result.high)
    relative = metric not in SIGNED and score > 0
    percents = [None if each is None or not relative else 100 * each / score for each in sides]
    return OtherModel(
        model=str(result.slice["model"]),
        difference=result.value or 0.0,
        low=result.low,
        high=result.high,
        percent=percents[0],
        percent_low=percents[1],
        percent_high=percents[2],
        p_value=p_value,
        significant=p_value is not None and rejects(p_value, confidence),
    )


def _sentence(metric: str, best: str, others: Sequence[OtherModel]) -> str:
    """Return the sentence about the best model; of many others, it names the nearest."""
    shown, open_ = ([each for each in others if each.significant == whether] for whether in (True, False))
    if not shown:
        return f"{best} has the lowest {metric}, which is not shown to be lower: {_listed(open_)}"
    rest = f"; not shown: {_listed(open_)}" if open_ else ""
    return f"{best} is best by {metric}: {_listed(shown)}{rest}"


def _listed(others: Sequence[OtherModel]) -> str:
    """Return by how much the best model is better than some others."""
    named = [_described(each) for each in others[:MOST_NAMED]]
    count = len(others) - len(named)
    return ", ".join([*named, *([f"and {count} more"] if count else [])])


def _described(other: OtherModel) -> str:
    """Return by how much the best model is better than another one, with the interval and the p-value."""
    relative = other.percent is not None
    in_percent = other.percent, other.percent_low, other.percent_high
    value, low, high = in_percent if relative else (other.difference, other.low, other.high)
    digits, unit = (".1f", " %") if relative else (".3g", "")
    parts = [] if low is None or high is None else [f"{low:{digits}} to {high:{digits}}{unit}"]
    parts += [] if other.p_value is None else [p_text(other.p_value)]
    return f"{value:{digits}}{unit} below {other.model}" + (f" ({'; '.join(parts)})" if parts else "")
