"""By how much prediction intervals would have to be wider."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from calcheck.core import sc
from calcheck.core.metric_info import MetricInfo
from calcheck.core.text import count_of
from calcheck.errors import AT_QUANTILES, Message
from calcheck.inference.metric_protocol import IntervalInference, RowResults
from calcheck.metrics._lazy import bootstrap, coverage, groups, np
from calcheck.metrics.base import FIXED, WEIGHT, LevelOption, OrderedMetric, has_interval, stated_levels, with_verdict
from calcheck.options import LEVEL_TOLERANCE
from calcheck.result_details import FactorAtLevel, WidthFactorDetails

if TYPE_CHECKING:
    from calcheck.inference.bootstrap import WeightedOrder
    from calcheck.metrics._lazy import Clusters, Means, Predictions, Predictive, Run, Source, Values
    from calcheck.statistics.coverage import Uniforms
    from calcheck.statistics.groups import TieGroups

LEVELS = (0.5, 0.9, 0.99)  # Levels at which the factors show the shape of the distributions
STEP, STEPS = 1.1, 16  # Ratio of neighboring factors of the grid for sums, and their number on each side of 1
UP_TO = "up to "  # Beginning of the names of the shares of rows up to them
UNCLIPPED = "unclipped"  # Name of the column of rows whose limits are not clipped
ALL_CLIPPED = "targets beyond intervals show the factor, and all intervals have a limit at --clip"
MEMBER = "member "  # Beginning of the names of columns in which a draw plays the target


@dataclass(frozen=True, eq=False)
class Standard:
    """What the data and its replicates have in common."""

    uniform: Uniforms | None  # The random numbers between the limits of the PIT of counts
    expected: float  # The quantile of the ratios of exchangeable draws; 1 for other distributions


@dataclass(frozen=True)
class WidthFactor(LevelOption, OrderedMetric):
    r"""Factor by which prediction intervals would have to be wider to have the stated coverage.

    .. math:: f_p = r_{(\lceil np \rceil)}, \qquad
              r_i = \frac{y_i - m_i}{u_i - m_i} \text{ for } y_i > m_i, \text{ else } \frac{m_i - y_i}{m_i - l_i}

    with the limits l and u of the interval at level p, and its middle m: the predicted median, or the middle of a
    stated interval. Intervals that are f times as wide on both sides of m contain a share #{r <= f} / n of the targets.

    For counts, r is \|z\| / z_p, with the normal scores z of the randomized PIT and the normal quantile z_p. For m
    draws per row, r is the size of the z-score, and :math:`f_p = \sqrt{q^2 (1 + 1/m) - 1/m}`, where q is the quantile
    of r, divided by its mean over all m + 1 roles: those of the target, and of each draw as the target.

    Value
    -----
    Dimensionless, >= 0; 1 is ideal. Above 1, intervals are too narrow. ``details`` have the factors at 50, 90 and 99 %,
    and the factor of split conformal prediction, which is the :math:`\lceil (n + 1) p \rceil`-th r.

    Notes
    -----
    The interval consists of two one-sided limits, each of which is wrong with a probability of 1 - confidence: with the
    default, 90 % of intervals contain the factor, and it agrees with a test of equivalence. The limits are order
    statistics, exact for independent rows of any distribution, and cautious if rows differ. Weights, clusters and
    series change the number of rows to that whose share varies as much. Targets that are equal to stated limits count
    on the side that favors the model; rows whose limits are clipped do not count. A rounded target stands for a random
    number within its step, by the distribution between quantiles, or by a normal one with the limits of its interval;
    the factor of a wrong model is then 1 to 3 % nearer to 1 at a step of half a standard deviation. For files of
    quantiles and of intervals, the p-value is that of the number of targets inside. Draws resolve levels up to
    (m - 1) / (m + 1) in a row; at higher ones, it is the factor of z-scores over all rows. Factors above m / 2 are too
    small, and have no upper limit. Time O(n log n); replicates O(n).

    References
    ----------
    Thompson (1936), "On confidence ranges for the median". Hoeffding (1956). Woodruff (1952). Lei et al. (2018).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="width-factor",
        orientation="reference",
        above="too-narrow",
        below="too-wide",
        source="order statistics (Thompson 1936)",
        interpretation="1 is ideal; at 1.2, intervals would have to be 20 % wider.",
        interval="one-sided",
        uses="coverage",
        details=WidthFactorDetails,
    )

    def interpolates(self, levels: Values) -> bool:
        return not has_interval(levels, self.level_of(None))

    def fit(self, source: Source, run: Run) -> Standard:  # type: ignore[override] # noqa: ARG002 - not random
        """Return what the data and their replicates have in common."""
        rows = source.predictions()
        return Standard(coverage.uniforms(rows), self._expected(self._members(rows)))

    def refit(self, fit: Standard, source: Source, run: Run) -> Standard:  # noqa: ARG002
        """Return the same, which does not depend on which of exchangeable values is the target."""
        return fit

    def evaluate(self, fit: Standard | None, source: Source, run: Run) -> RowResults:
        rows = source.predictions()
        if fit is None:
            return self.compute(rows)
        order = coverage.width_order(rows, self.level_of(rows.predictive), fit.uniform)
        found = self._results(self._sort_keys(rows, fit.uniform), order)
        if run.dependence.is_stated or not np.any(found.columns.get(UNCLIPPED, 1.0)):
            return found
        return replace(found, details=self._details(rows, found, fit, 1 - run.confidence))

    def sort_keys(self, rows: Predictions) -> dict[str, Values]:
        return self._sort_keys(rows, coverage.uniforms(rows))

    def _sort_keys(self, rows: Predictions, uniform: Uniforms | None) -> dict[str, Values]:
        """Return the ratios; whether targets are inside stated limits; and what the ratios of draws are divided by."""
        level, predictive = self.level_of(rows.predictive), rows.distributions()
        keys = {"ratio": coverage.width_ratios(rows, level, uniform)} | _unclipped(predictive, level)
        if coverage.states_limits(predictive):
            keys |= coverage.inside(rows, level)
        if members := self._members(rows):
            keys |= members | {"draws": np.full(len(rows), float(predictive.n_draws or 0))}
        return keys

    def _members(self, rows: Predictions) -> dict[str, Values]:
        """Return the ratios of draws that play the target, by name."""
        if rows.distributions().n_draws is None:
            return {}
        found = coverage.role_ratios(rows, self.level_of(rows.predictive))
        return {f"{MEMBER}{number}": each for number, each in enumerate(found)}

    def _expected(self, members: dict[str, Values], level: float | None = None) -> float:
        """Return the mean quantile of the ratios of the draws that play the target; 1 without draws."""
        level = self.level_of(None) if level is None else level
        return sum(coverage.quantile_of(each, level) for each in members.values()) / len(members) if members else 1.0

    def from_sort_keys(self, columns: dict[str, Values]) -> RowResults:
        return self._results(columns, groups.TieGroups(columns["ratio"]))

    def _results(self, columns: dict[str, Values], order: TieGroups) -> RowResults:
        """Return the results of ratios, given their order."""
        members = {name: each for name, each in columns.items() if name.startswith(MEMBER)}
        own = {name: each for name, each in columns.items() if name not in (*members, "draws")}
        ties = {"ratio": order, **{name: groups.TieGroups(each) for name, each in members.items()}}
        fixed = {f"{name} values": each.distinct for name, each in ties.items()}
        if members:
            fixed |= {"expected": np.asarray(self._expected(members)), "draws": columns["draws"][0]}
        inside = {name: groups.MeanTerm(each) for name, each in own.items() if name != "ratio"}
        at_limits = "covered" in own and bool((own["strictly_inside"] < own["covered"]).any())
        return RowResults(
            own,
            {**{name: groups.MeanTerm(own.get(UNCLIPPED), each) for name, each in ties.items()}, **inside},
            fixed=fixed,
            reference=1.0,
            warnings=(AT_QUANTILES,) if at_limits else (),
        )

    def quick_statistic(self, fit: Standard, source: Source, run: Run) -> float:  # noqa: ARG002 - not random
        """Return the null statistic by selection, without sorting."""
        rows = source.predictions()
        predictive, level = rows.distributions(), self.level_of(rows.predictive)
        if coverage.states_limits(predictive):
            found = {name: np.asarray(each.mean()) for name, each in coverage.inside(rows, level).items()}
            return float(self._by_share(groups.Means(found, len(rows))))
        ratio, draws = np.asarray(coverage.width_quantile(rows, level, fit.uniform)), predictive.n_draws
        return float(ratio if draws is None else coverage.factor_of_draws(ratio, fit.expected, draws))

    def stacked_statistics(self, fit: Standard, rows: Predictions, count: int) -> Values:
        """Return the quick statistics of data sets of equal size whose rows are stacked, (count,)."""
        level, uniform = self.level_of(rows.predictive), fit.uniform
        ratios = coverage.width_ratios(rows, level, uniform and coverage.repeated(uniform, count)).reshape(count, -1)
        if (weights := coverage.unclipped(rows.distributions(), level)) is not None:
            ratios = ratios[:, weights[: ratios.shape[1]] > 0]
            if not ratios.size:
                return np.full(count, np.nan)
        place = coverage.smallest_rank(ratios.shape[1], level) - 1
        return np.asarray(np.partition(ratios, place, axis=1)[:, place])

    def value(self, means: Means) -> Values:
        return self._of_means(means)

    def _of_means(self, means: Means) -> Values:
        """Return the factor by the order of the ratios; without it, by the share of targets inside."""
        if f"{UP_TO}0" in means:
            return self._on_grid(means)
        if "ratio" not in means:
            return self._by_share(means)
        ratio = self._quantile(means, "ratio")
        members = [self._quantile(means, name) for name in _members_of(means)]
        return _factor(ratio, {**means, "expected": sum(members) / len(members)} if members else means)

    def _quantile(self, means: Means, name: str) -> Values:
        """Return the quantile of ratios, (...), given the shares of rows with each of the different ones, (..., k)."""
        values, shares = means[f"{name} values"], np.cumsum(means[name], axis=-1)
        level = self.level_of(None) * means.get(UNCLIPPED, np.ones(()))
        below = np.count_nonzero(shares < level[..., None] * (1 - coverage.ROUNDING), axis=-1)
        return np.where(level > 0, values[np.minimum(below, len(values) - 1)], np.nan)

    def null_statistic(self, means: Means) -> Values:
        """Return the factor by the share of targets inside, if only that is stated; else the value."""
        return self._by_share(means) if "covered" in means else self._of_means(means)

    def null_reference(self, rows: RowResults) -> float | None:  # noqa: ARG002 - the same for all rows
        """Return 1."""
        return 1.0

    def at_fixed_levels(self, rows: RowResults) -> RowResults:
        """Return results by the share of targets inside, in place of the order of all ratios."""
        if "covered" in rows.terms:
            terms = {name: term for name, term in rows.terms.items() if name != "ratio"}
        else:
            weights = rows.terms[WEIGHT].values if WEIGHT in rows.terms else None
            inside = (rows.columns["ratio"] <= _plain(rows.fixed).get("expected", 1.0)).astype(np.float64)
            inside = np.where(rows.columns.get(UNCLIPPED, 1.0), inside, self.level_of(None))
            others = {name: term for name, term in rows.terms.items() if term.groups is None}
            terms = {"covered": groups.MeanTerm(inside if weights is None else weights * inside), **others}
        return replace(rows, terms=terms, fixed={})

    def on_grid(self, rows: Predictions) -> dict[str, Values]:
        """Return the share of each row up to the factors of a grid, of the target and of draws in its place."""
        level, predictive = self.level_of(rows.predictive), rows.distributions()
        shares, *members = coverage.shares_up_to(rows, level, self._grid(), tuple(self._members(rows).values()))
        found = {f"{UP_TO}{place}": each for place, each in enumerate(shares.T)}
        if members:
            found |= {f"{MEMBER}{UP_TO}{place}": each for place, each in enumerate(np.mean(members, axis=0).T)}
            found["draws"] = np.full(len(rows), float(predictive.n_draws or 0))
        unclipped = _unclipped(predictive, level)
        found = {name: each * unclipped.get(UNCLIPPED, 1.0) for name, each in found.items()} | unclipped
        return found | (coverage.inside(rows, level) if coverage.states_limits(predictive) else {})

    @staticmethod
    def _grid() -> Values:
        return np.asarray(STEP ** np.arange(-STEPS, STEPS + 1), np.float64)

    def limits_of_sums(self, means: Means, rows: float, tail: float) -> tuple[float, float]:
        """Return the limits by shares of rows up to the factors of a grid, given how many independent rows they are.

        A limit beyond the grid is 0 or infinite.
        """
        unclipped = float(means.get(UNCLIPPED, 1.0))
        if not unclipped:
            return 0.0, math.inf
        low, high = bootstrap.binomial_shares(rows * unclipped, self.level_of(None), tail)
        first, last = (float(means[f"{UP_TO}{place}"]) / unclipped for place in (0, 2 * STEPS))
        least = float(self._on_grid(means, low)) if low > first else 0.0
        return least, float(self._on_grid(means, high)) if high < last else math.inf

    def _on_grid(self, means: Means, share: float | None = None) -> Values:
        """Return the factor by shares of rows up to the factors of a grid, and within it: where one is reached."""
        level = self.level_of(None)
        own = self._at_share(means, UP_TO, level if share is None else share)
        if "draws" not in means:
            return own
        expected = self._at_share(means, f"{MEMBER}{UP_TO}", level)
        return _factor(own, {"expected": expected, "draws": means["draws"]})

    def _at_share(self, means: Means, names: str, level: float) -> Values:
        """Return where shares on the grid reach a level, by interpolation of logarithms."""
        grid = np.log(self._grid())
        shares = np.stack([means[f"{names}{place}"] for place in range(len(grid))], axis=-1)
        shares = shares / means.get(UNCLIPPED, np.ones(()))[..., None]
        after = np.clip(np.count_nonzero(shares < level, axis=-1), 1, len(grid) - 1)
        low, high = (np.take_along_axis(shares, (after - side)[..., None], axis=-1)[..., 0] for side in (1, 0))
        part = np.clip(np.divide(level - low, high - low, out=np.ones_like(low), where=high > low), 0, 1)
        return np.asarray(np.exp(grid[after - 1] + part * (grid[after] - grid[after - 1])))

    def _by_share(self, means: Means) -> Values:
        """Return the factor that normal distributions need to have this share of targets inside."""
        level = self.level_of(None)
        share = np.clip(coverage.nearest_share(means, np.asarray(level)), 0, 1)
        return np.asarray(coverage.normal_score(level) / sc.ndtri((1 + share) / 2))

    def limits(self, rows: RowResults, run: Run, clusters: Clusters | None) -> IntervalInference:
        """Return the limits by order statistics, and the test of the number of targets inside."""
        if not np.any(rows.columns.get(UNCLIPPED, 1.0)):
            return IntervalInference(warnings=(Message.of_absence("no-interval", ALL_CLIPPED),))
        own = replace(rows, fixed=_plain(rows.fixed))
        return with_verdict(self._limits(own, 1 - run.confidence, clusters), run.confidence)

    def _limits(self, rows: RowResults, tail: float, clusters: Clusters | None) -> IntervalInference:
        """Return the limits and the p-value of one target."""
        level = self.level_of(None)
        order = self._order(rows, clusters)
        found = _at_level(order, level, tail, rows.fixed)
        text = f"there is no upper limit: {count_of(rows.n, 'row is', 'rows are')} too few at the level {level:g}"
        draws, high = float(rows.fixed.get("draws", np.inf)), found["high"]
        if high is not None and high > coverage.largest_factor(draws):
            most, high = coverage.largest_factor(draws), None
            text = f"there is no upper limit: {draws:.0f} draws show factors up to about {most:.2g} only"
        return IntervalInference(
            low=found["low"],
            high=high,
            interval="order-statistics",
            p_value=order.p_value(level, float(rows.fixed.get("expected", 1.0))),
            warnings=(Message("few-rows" if found["high"] is None else "few-draws", text),) if high is None else (),
        )

    def _order(self, rows: RowResults, clusters: Clusters | None) -> WeightedOrder:
        """Return the order of the ratios of one target, with the number of independent rows that they stand for."""
        level, weights, members = self.level_of(None), rows.terms["ratio"].values, _members_of(rows.terms)

        def own_order(name: str) -> tuple[WeightedOrder, Values]:
            ties = cast("TieGroups", rows.terms[name].groups)
            found = bootstrap.WeightedOrder.from_ties(ties, weights, float(rows.n))
            return found, np.where(ties.values <= found.value(level), 1 - level, -level)

        order, apart = own_order("ratio")
        if weights is None and clusters is None and not members:
            return order
        for name in members:
            apart -= own_order(name)[1] / len(members)
        found = bootstrap.effective_rows(apart, weights, level, clusters)
        if weights is not None and UNCLIPPED in rows.columns:
            count = groups.effective_count(weights)
            found = count if clusters is None else min(found, count)
        return replace(order, rows=found)

    def _details(self, rows: Predictions, found: RowResults, fit: Standard, tail: float) -> WidthFactorDetails:
        """Return the factors at the levels that show the shape, and that of split conformal prediction."""
        level, factors, predictive = self.level_of(rows.predictive), [], rows.distributions()
        own, members, base = self._order(found, None), self._members(rows), coverage.level_unit(predictive, level)
        levels = {level, *LEVELS}  # As far as they are stated
        if predictive.interval_levels is not None or predictive.quantile_levels is not None:
            stated = np.array(stated_levels(predictive))
            levels = {level, *(each for each in LEVELS if (np.abs(stated - each) <= LEVEL_TOLERANCE).any())}
        for other in sorted(levels):
            unit, fixed = coverage.level_unit(predictive, other), found.fixed
            weights = coverage.unclipped(predictive, other)
            if weights is not None and not weights.any():
                continue
            if base is None or unit is None or weights is not None:
                ties = coverage.width_order(rows, other, fit.uniform)
                count = own.rows if weights is None else float(weights.sum())
                order = bootstrap.WeightedOrder.from_ties(ties, weights, count)
            else:
                order = replace(own, distinct=base / unit * own.distinct)
            if members and base is not None and unit is not None:
                fixed = {**fixed, "expected": np.asarray(base / unit * self._expected(members, other))}
            factors.append(_at_level(order, other, tail, fixed))
        details: WidthFactorDetails = {"factors": factors}
        if predictive.n_draws is None and fit.uniform is None:
            count = float(found.columns.get(UNCLIPPED, np.ones(len(rows))).sum())
            rank = math.ceil((count + 1) * level * (1 - coverage.ROUNDING))
            details["conformal_factor"] = own.value(rank / count) if rank <= count else None
        return details


def _at_level(order: WeightedOrder, level: float, tail: float, fixed: Any) -> FactorAtLevel:
    """Return the factor at a level with its limits and their ranks."""
    low, high, ranks = order.limits(level, tail)
    value, below, above = (float(_factor(np.asarray(each), fixed)) for each in (order.value(level), low, high))
    known = [each if np.isfinite(each) else None for each in (value, below, above)]
    return {"level": level, "factor": known[0], "low": known[1], "high": known[2], "ranks": list(ranks)}


def _factor(ratio: Values, fixed: Any) -> Values:
    """Return the factor of a ratio: the ratio itself, but for draws."""
    return coverage.factor_of_draws(ratio, fixed["expected"], fixed["draws"]) if "expected" in fixed else ratio


def _unclipped(predictive: Predictive, level: float) -> dict[str, Values]:
    """Return in which rows no limit is clipped, (n,), by its name, if targets have limits."""
    found = coverage.unclipped(predictive, level)
    return {} if found is None else {UNCLIPPED: found}


def _members_of(terms: Iterable[str]) -> list[str]:
    """Return the names of the terms in which a draw plays the target."""
    return [name for name in terms if name.startswith(MEMBER) and not name.endswith("values")]


def _plain(fixed: dict[str, Values]) -> dict[str, Values]:
    """Return what is no mean by its names, also of a weighted metric."""
    return {name.removeprefix(FIXED): each for name, each in fixed.items()}
