"""The answer about a population of new rows, and its sentences."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from calcheck.conclusion.answer import LOCAL, Estimate, bias_text, decide, is_inside, size_text
from calcheck.core.lazy_inputs import Inputs, same_inputs, take
from calcheck.core.text import count_of, p_text
from calcheck.dependence.clusters import find_clusters
from calcheck.errors import CalcheckError, DataError, OptionError
from calcheck.execution.run import RandomStream, RowDependence, Run, one_blas_thread, replicate_seed
from calcheck.inference.p_values_and_verdicts import holm
from calcheck.kernels.bandwidths import Scaling
from calcheck.new_inputs.population import Factor, Outputs, Population, observed_bias, stated_levels
from calcheck.new_inputs.positions import Beyond, Neighborhood, compare_inputs, parts_of, scale_inputs
from calcheck.new_inputs.weights import DensityRatio, choose_labels
from calcheck.predictions import Predictions, concat, row_sample
from calcheck.reports.conclusion import MOST_ROWS, Effect, InputsDiffer, NewInputs, WidthFactor
from calcheck.typing import AnyArray, Indices, Values

# Distance of the means of weighted tested rows from those of new ones, in standard deviations and relative to that
# without weights, up to which they stand for each other
MOST_SHIFT, MOST_LEFT = 0.25, 0.4
MIDDLE = 0.5  # Level of the intervals of which few rows show most
FEW_NEW = "too few new rows lie among the tested inputs"
NO_MATCH = "the tested inputs cannot stand for the new ones"
CONTRADICTED = "targets there contradict what was foretold, and cannot stand for all new rows"


class Terms(NamedTuple):
    """What an answer is about."""

    level: float  # Of the intervals
    tolerance: float
    tail: float  # Probability that a limit is wrong


def state(found: Population | None, terms: Terms, no_match: str = NO_MATCH) -> dict[str, Any]:
    """Return fields of the conclusion about a population: the answer, if enough rows count and have its inputs."""
    if found is None:
        return _nothing(FEW_NEW)
    counted, reason = {"effective_rows": found.weights.effective_rows}, _mismatch(found)
    return counted | (_nothing(f"{no_match}: {reason}") if reason else _stated(found, terms))


def _mismatch(found: Population, *, few: bool = False) -> str:
    """Return why the tested rows cannot stand for the new ones, which may be ``few``; empty if they can."""
    if found.lack:
        return found.lack
    shift, left, by_chance = found.remaining_shift
    is_far = shift > (max(MOST_SHIFT, by_chance) if few else MOST_SHIFT) and left > MOST_LEFT
    return f"with weights, their means differ by {shift:.2g} std" if is_far else ""


def _nothing(reason: str) -> dict[str, Any]:
    return {"answer": "not-shown", "effects": (Effect(topic="size", text=f"not shown: {reason}"),)}


def _stated(found: Population, terms: Terms) -> dict[str, Any]:
    factors = {level: found.factor(level, terms.tail) for level in stated_levels(found.rows, terms.level)}
    tests = [factors[level].p or 0.0 for level in factors if level in (MIDDLE, terms.level)]
    size = factors[terms.level]._replace(p=min(1.0, len(tests) * min(tests)))
    local = found.local(terms.tail)
    estimates = [size, found.bias(terms.tail), *([] if local is None else [local])]
    adjusted = holm([each.p or 0.0 for each in estimates])
    estimates = [each._replace(p=p) for each, p in zip(estimates, adjusted, strict=True)]
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
        text=local_text(each, terms.tail) if is_local else _text(each, held, terms),
    )


def _text(each: Estimate, held: bool | None, terms: Terms) -> str:  # noqa: FBT001 - as decided
    told = size_text(terms.level, each) if each.topic == "size" else bias_text(each)
    if each.p is None or each.p > terms.tail:
        return told
    p = p_text(each.p)
    return f"{told}; differs from a perfect model ({p}), by less than the tolerance" if held else f"{told} ({p})"


def local_text(each: Estimate, alpha: float) -> str:
    """Return the sentence about the local error along the inputs; without a least one if that is not positive."""
    if each.p is None or each.p > alpha:
        return "no error of the uncertainties along the inputs is shown"
    typical, p = f"{100 * each.value:.2g} %", p_text(each.p)
    if each.low <= 0:
        return f"uncertainties are off along the inputs, typically by {typical} ({p})"
    return f"uncertainties are off by at least {100 * each.low:.2g} % along the inputs, typically {typical} ({p})"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _width_factor(level: float, each: Estimate, tolerance: float) -> WidthFactor:
    held = is_inside(each, tolerance) or None
    return WidthFactor(level=level, value=each.value, low=each.low, high=_finite(each.high), within=held)


def foretold_effects(found: Population, terms: Terms) -> tuple[Effect, ...]:
    """Return the size and the bias of a population as tested rows foretell them; none if they cannot stand for it."""
    return (
        ()
        if _mismatch(found, few=True)
        else _sizes([found.factor(terms.level, terms.tail), found.bias(terms.tail)], terms)
    )


def observed_effects(rows: Predictions, terms: Terms, dependence: RowDependence) -> tuple[Effect, ...]:
    """Return the size and the bias of rows as they are observed; none if too few are independent of each other."""
    try:
        clusters = find_clusters(rows, dependence)
    except CalcheckError:
        return ()
    size = Factor.from_rows(rows, terms.level).of_equal_rows(terms.tail, clusters)
    return _sizes([size, observed_bias(rows, terms.tail, clusters)], terms)


def _sizes(estimates: Sequence[Estimate], terms: Terms) -> tuple[Effect, ...]:
    return tuple(_effect(each._replace(p=None), is_inside(each, terms.tolerance) or None, terms) for each in estimates)


def is_contradicted(foretold: Sequence[Effect] = (), observed: Sequence[Effect] = ()) -> bool:
    """Return whether an effect that was observed contradicts what was foretold."""
    return any(each.contradicts(other) for each in observed for other in foretold)


FEWEST, FEWEST_NEW = 20, 5  # Fewest tested and new rows that say anything
FEWEST_OBSERVED = 10  # Fewest new rows with targets that are compared with what was foretold


@dataclass(frozen=True, eq=False)
class Transferred:
    """What the tested rows say about new inputs."""

    conclusion: NewInputs
    # What is known about each new row, (m,) each: its distance to the tested rows, the nearest of them (-1
    # if that is a new row with a target), its conformal p-value, whether it lies beyond, and its local factor, else NaN
    columns: dict[str, AnyArray]
    tested_distances: Values  # (n,), distances of tested rows to others, in ascending order
    weights: Callable[[], Values]  # Returns the density ratio at each tested row, (n,), sampled or not


@dataclass(frozen=True, eq=False)
class Placement:
    """Where new rows are in comparison with the tested ones."""

    scaling: Scaling
    tested: Predictions  # The tested rows, and those of the new ones that have targets
    beyond: Beyond
    differ: InputsDiffer

    @property
    def near(self) -> Indices:
        """The places of the new rows that do not lie beyond the tested ones."""
        return np.flatnonzero(~self.beyond.rows)


def locate(
    rows: Predictions, new: Predictions, *, run: Run, names: Sequence[str] = (), labelled: Predictions | None = None
) -> Placement:
    """Return where new rows are; see :func:`transfer`."""
    _check(rows, new, labelled)
    scaling = scale_inputs(rows)
    tested = rows if labelled is None else _joined(rows, labelled)
    near = Neighborhood.from_rows(tested, scaling, replicate_seed(run))
    differ = compare_inputs(rows.lazy_inputs(), new.lazy_inputs(), scaling, run, names=names)
    return Placement(scaling, tested, Beyond.from_inputs(near, new.lazy_inputs(), rows.categories), differ)


@one_blas_thread()  # many small products
def transfer(
    rows: Predictions,
    new: Predictions,
    *,
    run: Run,
    tolerance: float,
    level: float,
    label: int = 0,
    labelled: Predictions | None = None,
    names: Sequence[str] = (),
) -> Transferred:
    """Return what tested rows say about new inputs; ``label`` of them are chosen whose targets would narrow it most."""
    located = locate(rows, new, run=run, names=names, labelled=labelled)
    terms = Terms(level, tolerance, 1 - run.confidence)
    return transfer_located(rows, new, located, terms, run, label=label, labelled=labelled)


def transfer_located(
    rows: Predictions,
    new: Predictions,
    located: Placement,
    terms: Terms,
    run: Run,
    *,
    label: int = 0,
    labelled: Predictions | None = None,
) -> Transferred:
    """Return what tested rows say about new inputs whose places are known; see :func:`transfer`."""
    scaling, tested, beyond, places = located.scaling, located.tested, located.beyond, located.near
    sample = _Sample(scaling, run)
    compared = {} if labelled is None else sample.compared(rows, labelled, terms)
    counted = labelled if labelled is not None and is_contradicted(**compared) else tested
    found = sample.of_factor(counted, new.lazy_inputs(), places, terms.level)
    if found is not None and counted is labelled:
        found = replace(found, counted="new targets")
    conclusion = NewInputs(
        tolerance=terms.tolerance,
        level=terms.level,
        rows=len(new),
        beyond=beyond.summary(),
        inputs_differ=located.differ,
        contradicted=counted is labelled,
        labelled=0 if labelled is None else len(labelled),
        **compared,
        **state(found, terms, CONTRADICTED if counted is labelled else NO_MATCH),
    )
    if label and found is not None:
        numbers = new.row_numbers()[sample.new_places(places)]
        known = np.isin(numbers, () if labelled is None else labelled.row_numbers())
        chosen = numbers[choose_labels(found.reweighting.ratio, label, known)].tolist()
        few = f"only {len(chosen):,} new rows without a target lie" if chosen else "no new row without a target lies"
        lacking = f"{few} among the tested inputs" if len(chosen) < label else ""
        conclusion = replace(conclusion, label=tuple(chosen), no_label=lacking)
    elif label:
        conclusion = replace(conclusion, no_label=FEW_NEW)
    columns = {
        "distance": beyond.distance,
        "nearest": np.append(rows.row_numbers(), np.full(len(tested) - len(rows), -1))[beyond.nearest],
        "p_value": beyond.p,
        "beyond": beyond.rows,
        "local_factor": _local_factors(found, new.lazy_inputs(), beyond, scaling),
    }
    ratio = None if found is None else found.reweighting.ratio
    return Transferred(conclusion, columns, beyond.tested, partial(_ratio, ratio, rows.lazy_inputs(), scaling))


def _check(rows: Predictions, new: Predictions, labelled: Predictions | None) -> None:
    if len(rows) < FEWEST:
        few = count_of(len(rows), "tested row is", "tested rows are")
        raise DataError(f"{few} too few to say anything about new inputs: {FEWEST} are needed")
    if rows.distributions().n_draws == 1:
        raise DataError("one draw per row states no uncertainty, so nothing can be foretold for new inputs (--on)")
    if rows.width != new.width:
        inputs = f"{new.width:,} input{'s' * (new.width != 1)}"
        raise OptionError(f"the new rows (--on) have {inputs}, the tested ones {rows.width:,}: both must be the same")
    if labelled is not None and _are_same(rows, labelled):
        raise OptionError("the new rows (--on) are the tested rows: all inputs and targets are equal. Pass other rows")


def _are_same(rows: Predictions, labelled: Predictions) -> bool:
    x, other = rows.lazy_inputs(), labelled.lazy_inputs()
    return np.array_equal(rows.targets(), labelled.targets()) and same_inputs(x, other)


def _joined(rows: Predictions, labelled: Predictions) -> Predictions:
    """Return the rows of both, with what they have in common."""
    shared = rows.columns.keys() & labelled.columns.keys()
    parts = [
        Predictions(
            y=each.y,
            predictive=each.predictive,
            x=each.inputs(),
            has_embedding=each.has_embedding,
            categories=each.categories,
            columns={name: each.columns[name] for name in rows.columns if name in shared},
        )
        for each in (rows, labelled)
    ]
    return concat(parts)


@dataclass(frozen=True, eq=False)
class _Sample:
    """The rows that estimates are from."""

    scaling: Scaling
    run: Run

    def tested_places(self, rows: Predictions) -> Indices:
        many = len(rows) > MOST_ROWS
        return row_sample(rows, MOST_ROWS, replicate_seed(self.run)) if many else np.arange(len(rows))

    def new_places(self, places: Indices) -> Indices:
        if len(places) <= MOST_ROWS:
            return places
        return np.sort(self.run.rng(RandomStream.SUBSAMPLE).permutation(places)[:MOST_ROWS])

    def population(self, tested: Predictions, outputs: Outputs, x: Inputs, places: Indices) -> Population | None:
        """Return the population of new inputs at some places; None if these are too few."""
        if len(places) < FEWEST_NEW:
            return None
        new = self.scaling(take(x, self.new_places(places)))
        return Population.from_rows(tested, self.scaling(tested.inputs()), new, outputs, self.run)

    def of_factor(self, rows: Predictions, x: Inputs, places: Indices, level: float) -> Population | None:
        """Return the population of new inputs at some places, for the width factor at a level."""
        tested = rows.take(self.tested_places(rows))
        return self.population(tested, Factor.from_rows(tested, level).outputs, x, places)

    def compared(self, rows: Predictions, labelled: Predictions, terms: Terms) -> dict[str, Any]:
        """Return the effects of new rows with targets as other rows foretell them, and as they were observed."""
        near = Neighborhood.from_rows(rows, self.scaling, replicate_seed(self.run))
        places = np.flatnonzero(~Beyond.from_inputs(near, labelled.lazy_inputs(), rows.categories).rows)
        if len(places) < FEWEST_OBSERVED:
            return {}
        found = self.of_factor(rows, labelled.lazy_inputs(), places, terms.level)
        foretold = () if found is None else foretold_effects(found, terms)
        return {"foretold": foretold, "observed": observed_effects(labelled.take(places), terms, self.run.dependence)}


class MeansAtNew(NamedTuple):
    """The means of numbers of tested rows at new inputs."""

    population: Population | None  # None if nothing can be stated
    reason: str  # Why; empty if it can
    values: Values  # (n, c), the numbers of the rows that the population has


def means_at_new(rows: Predictions, values: Values, new: Predictions, located: Placement, run: Run) -> MeansAtNew:
    """Return the means at new inputs of numbers (n, c) of tested rows, of which differences matter."""
    sample = _Sample(located.scaling, run)
    chosen = sample.tested_places(rows)
    some = values[chosen]
    away = some - some.mean(axis=1, keepdims=True)
    spread = away.std(axis=0)
    outputs = away / np.where(spread > 0, spread, 1)
    found = sample.population(rows.take(chosen), lambda _: outputs, new.lazy_inputs(), located.near)
    reason = FEW_NEW if found is None else _mismatch(found)
    return MeansAtNew(None if reason else found, reason, some)


def _ratio(found: DensityRatio | None, x: Inputs, scaling: Scaling) -> Values:
    """Return the density of new inputs relative to that of tested ones (n, d), (n,)."""
    if found is None:
        return np.zeros(len(x))
    return np.concatenate([found.at(scaling(block)) for block in parts_of(x)])


def _local_factors(found: Population | None, x: Inputs, beyond: Beyond, scaling: Scaling) -> Values:
    """Return the factors by which standard deviations are wrong at new inputs, (m,); NaN for those beyond."""
    if found is None:
        return np.full(len(x), np.nan)
    parts = [found.local_factors(scaling(block)) for block in parts_of(x)]
    return np.where(beyond.rows, np.nan, np.concatenate(parts))
