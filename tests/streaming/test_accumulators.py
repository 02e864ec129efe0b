"""Accumulators over batches and merged states do not depend on how rows are divided."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian, Intervals
from calcheck.errors import DataError, Message, OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import DECOMPOSITIONS, METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.reports import InputFile
from calcheck.statistics.groups import Groups, MeanTerm
from calcheck.streaming.accumulators import Metadata, MomentSums, central_products
from calcheck.streaming.metric_accumulators import accumulator_of
from calcheck.streaming.state import accumulate, merge, report_from_state
from tests.benchmarks.models import RIGHT, rows_of
from tests.helpers.families import FAMILIES, calibrated
from tests.helpers.shorthand import texts
from tests.helpers.simulations import band, pairs
from tests.helpers.streams import Batches

RUN = Run(resamples=100, replicates=0)
SUMMED = [name for name, metric in METRICS.items() if name != "cce" and accumulator_of(metric()) is not None]
every_summed = pytest.mark.parametrize("name", SUMMED)


def days(rows, count, *, order=None):
    """Divide rows into days of different lengths."""
    places = np.arange(len(rows))
    parts = np.split(places, np.linspace(4, len(rows) ** 0.5, count + 1)[1:-1].astype(int) ** 2)
    return [rows.take(parts[day]) for day in (range(count) if order is None else order)]


def only(report):
    assert not report.skipped, report.skipped
    return report.results[0]


def test_all_metrics_except_joint_ones_have_an_accumulator():
    assert accumulator_of(METRICS["cce"]()) is not None  # test_nystroem_accumulator.py
    fitted_to_all_rows = {"tail", "pit-independence", "local-scale", "local-bias", *DECOMPOSITIONS}
    assert set(METRICS) - set(SUMMED) == {"cce", "jmmd", "ammd", "cmmd", "fid"} | fitted_to_all_rows


@pytest.mark.parametrize(("name", "family"), pairs(SUMMED, FAMILIES, 6))
def test_batches_give_the_value_of_all_rows(name, family):
    metric, rows = METRICS[name](), calibrated(family)
    together = evaluate(InMemory(rows), [metric], run=RUN)
    summed = report_from_state(accumulate(Batches(rows), [metric], RUN), RUN)
    assert [each.metric for each in summed.skipped] == [each.metric for each in together.skipped]
    if together.results:
        assert_allclose(only(summed).value, only(together).value, rtol=1e-10)
        assert only(summed).options == only(together).options
        references = [only(report).reference for report in (summed, together)]
        assert [each is None for each in references] in ([True, True], [False, False])
        if references[0] is not None:
            assert_allclose(references[0], references[1], rtol=1e-10)


@pytest.mark.parametrize(("name", "family"), pairs(SUMMED, ["gaussian", "samples", "mixture"]))
def test_merged_states_give_the_value_of_one_file_in_any_order(name, family):
    metric, rows = METRICS[name](), calibrated(family)
    first, *others = days(rows, 10)
    like = accumulate(InMemory(first), [metric], RUN)
    whole = accumulate(InMemory(rows), [metric], RUN, like=like)
    if not like.metrics:
        pytest.skip(like.skipped[0].reason)
    expected = only(report_from_state(whole, RUN)).value
    for order in (range(9), np.random.default_rng(2).permutation(9)):
        states = [accumulate(InMemory(others[day]), [metric], RUN, like=like) for day in order]
        states.insert(4, accumulate(InMemory(first), [metric], RUN, like=like))
        merged = merge([(f"day {day}", state) for day, state in enumerate(states)])
        assert merged.input.n == len(rows)
        assert_allclose(only(report_from_state(merged, RUN)).value, expected, rtol=1e-10, atol=1e-14)


def numbers(result):
    """Return the numbers of a result with their places, also those of its details."""

    def walk(value, place):
        if isinstance(value, dict | list | tuple):
            for key, each in value.items() if isinstance(value, dict) else enumerate(value):
                yield from walk(each, f"{place}.{key}")
        else:
            yield place, value

    return dict(walk(asdict(replace(result, warnings=())), ""))


@pytest.mark.parametrize("family", ["gaussian", "samples", "poisson"])
def test_merged_states_of_unequal_parts_give_all_numbers_of_one_file(family):
    """Intervals, zeta, references and bins too: parts of 23, 8 and 269 rows are no averages of averages.

    Ends of intervals are differences of close numbers, and agree to seven digits.
    """
    rows = calibrated(family)
    parts = [InMemory(rows.take(part)) for part in np.split(np.arange(len(rows)), [23, 31])]
    metrics = [METRICS[name]() for name in SUMMED]
    like = accumulate(parts[0], metrics, RUN)
    expected = report_from_state(accumulate(InMemory(rows), metrics, RUN, like=like), RUN)
    states = [like, *(accumulate(part, metrics, RUN, like=like) for part in parts[1:])]
    merged = report_from_state(merge([(str(place), state) for place, state in enumerate(states)]), RUN)
    assert len(merged.results) >= 15
    for one, other in zip(merged.results, expected.results, strict=True):
        found, wanted = numbers(one), numbers(other)
        assert found.keys() == wanted.keys(), one.metric
        assert set(one.warnings) >= set(other.warnings), one.metric
        for place, value in wanted.items():
            if isinstance(value, float):
                assert_allclose(found[place], value, rtol=1e-7, atol=1e-12, err_msg=one.metric + place)
            else:
                assert found[place] == value, one.metric + place


@pytest.mark.slow
def test_batches_of_a_single_row_give_the_value_of_all_rows():
    rows = calibrated("gaussian", n=40)
    for name in SUMMED:
        metric = METRICS[name]()
        together = evaluate(InMemory(rows), [metric], run=RUN)
        summed = report_from_state(accumulate(Batches(rows, 40), [metric], RUN), RUN)
        assert_allclose(only(summed).value, only(together).value, rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_the_cv_of_nearly_equal_uncertainties_is_accurate(scale):
    rng = np.random.default_rng(3)
    std = scale * (1 + 1e-7 * rng.normal(size=500))
    rows = Predictions(y=rng.normal(size=500) * scale, predictive=Gaussian(np.zeros(500), std))
    found = only(report_from_state(accumulate(Batches(rows), [METRICS["cv"]()], RUN), RUN)).value
    assert_allclose(found, np.std(std / scale, ddof=1), rtol=1e-6)


def dense(terms, n):
    """Spread each term over its groups, row by row, (n, K)."""
    found = []
    for term in terms.values():
        values = np.ones(n) if term.values is None else term.values
        shares = np.ones((n, 1)) if term.groups is None else term.groups.membership()[term.groups.label]
        found.append(values[:, None] * shares)
    return np.concatenate(found, axis=1)


LABEL = np.random.default_rng(0).integers(0, 4, 60)
SHARES = np.random.default_rng(1).dirichlet(np.ones(3), 4)
GROUPS = {
    "none": None,
    "classes": Groups(LABEL, 4),
    "shares": Groups(LABEL, 4, SHARES),
    "cumulative": Groups(LABEL, 4, cumulative=True),
}


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_merged_products_agree_with_those_of_all_rows(groups):
    rng = np.random.default_rng(2)
    columns = {"one": None, "a": rng.normal(size=60), "b": 5 + rng.normal(size=60)}

    def terms(rows):
        own = groups and Groups(LABEL[rows], groups.classes, groups.shares, groups.cumulative)
        return {name: MeanTerm(each if each is None else each[rows], own) for name, each in columns.items()}

    whole = dense(terms(slice(None)), 60)
    expected = np.cov(whole.T, ddof=0) * 60
    assert_allclose(central_products(terms(slice(None)), 60), expected, atol=1e-10)
    parts = [slice(0, 7), slice(7, 8), slice(8, 60)]
    first, *others = [MomentSums.from_terms(terms(part), Metadata(part.stop - part.start)) for part in parts]
    for other in others:
        first.add(other)
    assert_allclose(first.products, expected, atol=1e-10)
    assert_allclose(first.mean_vector(), whole.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("n", [6, 400])
def test_the_interval_of_a_mean_is_normal(n):
    """Mean of z² ± 1.96 std/√n, with n - 1 in the variance, up to the Monte Carlo error of 10,000 draws."""
    rows = calibrated("gaussian", n=n)
    result = only(report_from_state(accumulate(Batches(rows, 3), [METRICS["zms"]()], RUN), Run(replicates=0)))
    z2 = ((rows.y - rows.predictive.loc) / rows.predictive.scale) ** 2
    reach = 1.96 * z2.std(ddof=1) / n**0.5
    assert result.interval == "normal"
    assert_allclose([result.low, result.high], [z2.mean() - reach, z2.mean() + reach], atol=0.03 * reach)
    assert_allclose(result.zeta, (z2.mean() - 1) / reach, rtol=0.1, atol=0.05)


@pytest.mark.parametrize(("last", "few"), [(1.0, False), (100.0, True)])
def test_normal_intervals_with_few_effective_rows_give_a_warning(last, few):
    """(sum t^2)^2 / sum t^4 for centered z^2: 40 rows of 0 and 2, with and without one outlier."""
    z = np.sqrt(np.append(np.tile([0.0, 2.0], 20)[:-1], 2 * last))
    rows = Predictions(y=z, predictive=Gaussian(np.zeros(40), np.ones(40)))
    away = z**2 - np.mean(z**2)
    for run in (RUN, Run(resamples=100, replicates=39)):
        result = only(report_from_state(accumulate(Batches(rows), [METRICS["zms"]()], run), run))
        assert_allclose(result.details["normal"]["effective_rows"], np.sum(away**2) ** 2 / np.sum(away**4), rtol=1e-6)
        assert any("effective rows" in message for message in texts(result.warnings)) == few
    assert result.verdict == ("fail" if few else "pass")


@pytest.mark.slow
@pytest.mark.parametrize("spread", [1.0, 0.8])
def test_accumulated_replicates_distinguish_right_from_wrong_models(spread):
    rows = calibrated("gaussian", n=600)
    wrong = Predictions(y=rows.y, predictive=Gaussian(rows.predictive.loc, rows.predictive.scale * spread))
    metrics = [METRICS[name]() for name in ("ece", "ence", "crps", "coverage", "nll")]
    state = accumulate(Batches(wrong), metrics, Run(resamples=100, replicates=39))
    for result in report_from_state(state, Run(resamples=100)).results:
        assert result.details["null"]["replicates"] == 39
        assert result.verdict == ("pass" if spread == 1 else "fail"), result


@pytest.mark.slow
def test_p_values_of_perfect_models_are_uniform_for_sorted_rows():
    """With equal random streams in every batch, p-values would concentrate around 0.5, which 15 sets would not show."""
    found = []
    for seed in range(60):
        rows = calibrated("gaussian", n=60, seed=seed)
        ordered = rows.take(np.argsort(rows.y, kind="stable"))
        state = accumulate(Batches(ordered, 12), [METRICS["bias"]()], Run(resamples=0, replicates=19))
        found.append(only(report_from_state(state, Run(resamples=0))).p_value)
    low, high = band(60, 0.2)
    assert low <= np.sum(np.array(found) <= 0.2) <= high
    assert 0.35 < np.mean(found) < 0.65


def test_problems_are_reported_by_row_of_the_file():
    rows = calibrated("gaussian", n=30)
    scale = rows.predictive.scale.copy()
    scale[17] = 1e-60
    broken = Predictions(y=rows.y, predictive=Gaussian(rows.predictive.loc, scale))
    with pytest.raises(DataError, match="row 17, counted from 0"):
        accumulate(Batches(broken), [METRICS["zms"](), METRICS["mae"]()], RUN)


def test_states_with_different_settings_are_not_merged():
    rows = calibrated("gaussian")
    states = [accumulate(InMemory(day), [METRICS["ence"]()], RUN) for day in days(rows, 3)[1:]]
    with pytest.raises(Exception, match="ence was prepared on other rows: its setting 'low' differs"):
        merge([("a", states[0]), ("b", states[1])])
    other = accumulate(InMemory(rows), [METRICS["ence"](bins=5)], RUN)
    with pytest.raises(Exception, match="ence has bins 10 in the first and 5 in the second"):
        merge([("a", states[0]), ("b", other)])
    zms = accumulate(InMemory(rows), [METRICS["zms"]()], RUN)
    drawn = accumulate(InMemory(rows), [METRICS["zms"]()], Run(resamples=100, replicates=19))
    with pytest.raises(OptionError, match=r"their replicates \(--replicates\) differ: 0 and 19"):
        merge([("a", zms), ("b", drawn)])
    counts = accumulate(InMemory(calibrated("poisson")), [METRICS["zms"]()], RUN)
    with pytest.raises(OptionError, match="their predictive distributions differ: gaussian and poisson"):
        merge([("a", zms), ("b", counts)])
    with pytest.raises(Exception, match="the metrics differ: ence only in the first and zms only in the second"):
        merge([("a", states[0]), ("b", zms)])


def test_metadata_of_unequal_parts_is_weighted_by_rows_and_keeps_all_warnings():
    """By hand: (10 · 0.9 + 30 · 0.5) / 40 = 0.6, then (40 · 0.6 + 60 · 0.1) / 100 = 0.3."""
    first, second = Message("few-rows", "a"), Message("heavy-tail", "b")
    total = Metadata(10, 0.9, (first,))
    total.add(Metadata(30, 0.5, (second, first)))
    assert (total.n, total.reference, total.warnings) == (40, pytest.approx(0.6), (first, second))
    total.add(Metadata(60, 0.1))
    assert (total.n, total.reference) == (100, pytest.approx(0.3))
    total.add(Metadata(1, None))
    assert total.reference is None


def test_warnings_of_a_metric_are_kept_by_batches():
    """Targets equal to limits of intervals."""
    limits = np.array([[1.0], [8.0]]).repeat(40, axis=1)[..., None]
    y = np.random.default_rng(0).poisson(4, 40).astype(float)
    rows = Predictions(y=y, predictive=Intervals(np.array([0.9]), *limits))
    state = accumulate(Batches(rows), [METRICS["coverage"]()], RUN)
    assert "verdict-basis" in [each.code for each in only(report_from_state(state, RUN)).warnings]


def test_merged_states_of_unequal_days_add_dropped_rows_warnings_and_files():
    rows = calibrated("gaussian")

    def day(part, dropped, *warnings):
        state = accumulate(InMemory(rows.take(part)), [METRICS["zms"]()], RUN)
        file = InputFile(role="predictions", path=f"{dropped}.csv", sha256=str(dropped), rows=len(part))
        return replace(state, input=replace(state.input, dropped=dropped, files=(file,)), warnings=warnings)

    first, second = Message("few-rows", "a"), Message("heavy-tail", "b")
    parts = (range(7), 2, first), (range(7, 30), 3, second), (range(30, 31), 4, first)
    merged = merge([(str(part[1]), day(np.array(part[0]), *part[1:])) for part in parts])
    assert (merged.input.n, merged.input.dropped, merged.warnings) == (31, 9, (first, second))
    assert [file.path for file in merged.input.files] == ["2.csv", "3.csv", "4.csv"]


def test_sums_with_other_fixed_arguments_are_not_added():
    one, other = (MomentSums(Metadata(3), {"a": np.ones(2)}, {"levels": np.array([level])}) for level in (0.1, 0.2))
    with pytest.raises(DataError, match="its levels differ between batches"):
        one.add(other)


def test_states_of_different_versions_are_not_merged():
    """Sums of intervals lacked the targets strictly inside, before counts were judged by them."""
    rows = rows_of(RIGHT["1 interval"], 60, 0)
    states = [accumulate(InMemory(day), [METRICS["coverage"]()], RUN) for day in days(rows, 2)]
    del states[1].sums[0].sums["strictly_inside"]
    with pytest.raises(Exception, match="a and b cannot be merged: different versions of calcheck summed coverage"):
        merge([("a", states[0]), ("b", states[1])])
