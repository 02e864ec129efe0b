"""The rules of the answer: each branch, with numbers made by hand."""

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calcheck.conclusion.answer import Estimate, decide, is_inside, is_outside, rows_needed
from tests.helpers.simulations import examples

RIGHT = Estimate("size", 0.98, 0.91, 1.08, 0.7)
CENTERED = Estimate("bias", 0.01, -0.07, 0.09, 0.9)
answer = partial(decide, n=400, tolerance=0.2)


def test_intervals_within_the_tolerance_are_a_yes():
    found = answer([RIGHT, CENTERED])
    assert (found.answer, found.within, found.qualifiers) == ("yes", (True, True), ())
    assert (found.deciding, found.rows_needed) == ((), None)


def test_a_significant_difference_within_the_tolerance_stays_a_yes():
    assert answer([RIGHT._replace(low=1.05, high=1.19, p=0.001), CENTERED]).answer == "yes"


@pytest.mark.parametrize(
    ("size", "inside", "outside"),
    [
        ((1 / 1.2, 1.2), True, False),
        ((1 / 1.2 - 1e-9, 1.0), False, False),
        ((1.0, 1.2 + 1e-9), False, False),
        ((1.21, 2.0), False, True),
        ((0.5, 0.83), False, True),
        ((0.0, math.inf), False, False),
    ],
)
def test_a_factor_is_within_between_the_tolerance_and_its_reciprocal(size, inside, outside):
    each = Estimate("size", 1.0, *size)
    assert (is_inside(each, 0.2), is_outside(each, 0.2)) == (inside, outside)


def test_a_bias_is_within_the_tolerance_on_both_sides():
    assert is_inside(Estimate("bias", 0.0, -0.2, 0.2), 0.2)
    assert not is_inside(Estimate("bias", 0.0, -0.201, 0.1), 0.2)
    assert is_outside(Estimate("bias", -0.5, -0.8, -0.21), 0.2)


@pytest.mark.parametrize("wrong", [Estimate("size", 1.2, 1.05, 1.4, 0.05), Estimate("bias", 0.1, 0.01, 0.21, 0.01)])
def test_a_significant_effect_that_is_not_shown_to_be_within_is_a_no(wrong):
    other = CENTERED if wrong.topic == "size" else RIGHT
    found = answer([wrong, other])
    assert (found.answer, found.within, found.rows_needed) == ("no", (False, True), None)
    assert answer([wrong._replace(p=0.051), other]).answer == "not-shown"


def test_the_level_of_the_p_value_is_that_of_the_confidence():
    wrong = Estimate("size", 1.2, 1.05, 1.4, 0.04)
    assert answer([wrong, CENTERED], alpha=0.01).answer == "not-shown"


def test_without_a_p_value_only_an_interval_beyond_the_tolerance_is_a_no():
    assert answer([Estimate("size", 1.4, 1.21, 1.6), CENTERED]).answer == "no"
    assert answer([Estimate("size", 1.4, 1.19, 1.6), CENTERED]).answer == "not-shown"
    assert answer([RIGHT, Estimate("bias", 0.4, 0.21, 0.6)]).answer == "no"


@pytest.mark.parametrize("topic", ["ranking", "inputs", "time", "groups"])
def test_a_local_error_beyond_the_tolerance_is_a_no_even_if_the_average_is_right(topic):
    found = answer([RIGHT, CENTERED, Estimate(topic, 0.3, 0.201, p=0.005)])
    assert (found.answer, found.within) == ("no", (True, True, False))


@pytest.mark.parametrize(("p", "qualifiers"), [(0.05, ("on-average",)), (0.06, ()), (None, ())])
def test_a_significant_local_error_up_to_the_tolerance_limits_the_yes(p, qualifiers):
    found = answer([RIGHT, CENTERED, Estimate("inputs", 0.234, 0.173, p=p)])
    assert (found.answer, found.within, found.qualifiers) == ("yes", (True, True, None), qualifiers)


@pytest.mark.parametrize(
    ("interval", "qualifiers"), [((1.21, 1.3), ("at-level",)), ((0.7, 0.83), ("at-level",)), ((1.19, 1.3), ())]
)
def test_another_level_beyond_the_tolerance_limits_the_yes(interval, qualifiers):
    assert answer([RIGHT, CENTERED], others=[Estimate("shape", 1.0, *interval)]).qualifiers == qualifiers


def test_without_inputs_the_yes_holds_as_far_as_tested():
    assert answer([RIGHT, CENTERED], tested=False).qualifiers == ("as-tested",)


def test_every_qualifier_can_stand_beside_the_others_and_only_beside_a_yes():
    limits = {"others": [Estimate("shape", 1.25, 1.21, 1.3)], "tested": False}
    local = Estimate("ranking", 0.1, 0.05, p=0.01)
    assert answer([RIGHT, CENTERED, local], **limits).qualifiers == ("at-level", "on-average", "as-tested")
    wide = RIGHT._replace(high=1.3)
    assert answer([wide, CENTERED, local], **limits).qualifiers == ()
    assert answer([wide._replace(p=0.01), CENTERED, local], **limits).qualifiers == ()


def test_the_numbers_that_decide_are_named_if_nothing_is_shown():
    wide = RIGHT._replace(high=1.3)
    assert answer([wide, CENTERED]).deciding == (0,)
    assert answer([wide, CENTERED._replace(low=-0.3)]).deciding == (0, 1)
    assert answer([wide, CENTERED]).within == (None, True)


def test_a_bias_that_cannot_be_judged_does_not_decide_and_an_unknown_size_does():
    assert answer([RIGHT]).answer == "yes"
    assert answer([CENTERED]).answer == "not-shown"
    assert answer([CENTERED]).rows_needed is None
    assert answer([]).answer == "not-shown"


def test_rows_are_those_at_which_the_half_width_equals_the_room_to_the_tolerance():
    # half width log(1.44) / 2 = log 1.2, and the room is log 1.2 - log 1.1 = .08701: 100 (.18232 / .08701)^2 = 439.06
    assert rows_needed(Estimate("size", 1.1, 1.0, 1.44), 100, 0.2) == 440
    # the same below 1
    assert rows_needed(Estimate("size", 1 / 1.1, 1 / 1.44, 1.0), 100, 0.2) == 440
    # (.3 / (.2 - .05))^2 = 4
    assert rows_needed(Estimate("bias", -0.05, -0.35, 0.25), 100, 0.2) in (400, 401)


def test_rows_needed_end_at_a_hundred_times_the_rows():
    # (.3 / .03)^2 = 100, (.3 / .029)^2 = 107
    assert rows_needed(Estimate("bias", 0.16999, -0.13001, 0.46999), 40, 0.2) == 3998
    assert rows_needed(Estimate("bias", 0.171, -0.129, 0.471), 40, 0.2) is None


def test_no_number_of_rows_shows_an_estimate_outside_the_tolerance():
    assert rows_needed(Estimate("size", 1.2, 1.0, 1.5), 100, 0.2) is None
    assert rows_needed(Estimate("size", 0.0, 0.0, 1.5), 100, 0.2) is None
    assert rows_needed(Estimate("bias", 0.2, 0.0, 0.5), 100, 0.2) is None
    found = answer([RIGHT._replace(value=1.25, high=1.6, p=0.2), CENTERED._replace(low=-0.3)])
    assert (found.answer, found.rows_needed) == ("not-shown", None)


def test_the_larger_number_of_rows_is_needed():
    wide, biased = RIGHT._replace(high=1.3), CENTERED._replace(low=-0.3)
    alone = [answer(pair).rows_needed for pair in ([wide, CENTERED], [RIGHT, biased])]
    assert answer([wide, biased]).rows_needed == max(alone)


def test_an_interval_without_a_limit_has_the_width_of_normal_errors():
    # (1.5 / log 1.2)^2 = 67.7
    assert rows_needed(Estimate("size", 1.0, 0.4, math.inf), 20, 0.2) == 68


NUMBERS = st.floats(0.01, 10)
TOPICS = st.sampled_from(["bias", "ranking", "inputs"])
P_VALUES = st.none() | st.floats(0, 1)


@st.composite
def estimates(draw):
    low, value, high = sorted(draw(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
    local = [Estimate(draw(TOPICS), value - 1, low - 1, high, draw(P_VALUES)) for _ in range(draw(st.integers(0, 3)))]
    return [Estimate("size", value, low, high, draw(P_VALUES)), *local]


@examples(200)
@given(estimates(), st.floats(0.01, 2))
def test_the_answer_agrees_with_what_is_within(found, tolerance):
    decided = decide(found, n=50, tolerance=tolerance)
    average = [held for each, held in zip(found, decided.within, strict=True) if each.topic in ("size", "bias")]
    if False in decided.within:
        assert decided.answer == "no"
    else:
        assert decided.answer == ("yes" if all(average) else "not-shown")
    assert decided.rows_needed is None or decided.rows_needed > 50
    assert decided.answer == "yes" or not decided.qualifiers


@examples(100)
@given(estimates(), st.floats(0.01, 2))
def test_a_larger_tolerance_never_turns_a_yes_into_another_answer(found, tolerance):
    if decide(found, n=50, tolerance=tolerance).answer == "yes":
        assert decide(found, n=50, tolerance=1.1 * tolerance).answer == "yes"
