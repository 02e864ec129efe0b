"""The answer at new inputs in words."""

from collections.abc import Iterator
from pathlib import PurePath

from calcheck.core.text import count_of, p_text, percent
from calcheck.render.numbers_and_notes import factor, number, shift
from calcheck.reports import Report
from calcheck.reports.conclusion import MOST_ROWS, Effect, NewInputs

NEW = "new_inputs"  # Role of the file
SIGNIFICANT = 0.05  # Maximum p-value of inputs that differ
NAMED, LONGEST = 2, 32  # Most names of inputs that differ, and most characters of the name of a file
CHANGED = (
    "not only inputs changed: predictions there are of another model, such as a corrected one, or targets differ at the"
    " same inputs; only the new targets count"
)


def name_of(report: Report) -> str:
    """Return the name of the file with new inputs, or of several as they were given; the end of a long one."""
    files = (each for each in report.input.files if each.role == NEW)
    paths = (each.path if each.files > 1 or "*" in each.path else PurePath(each.path).name for each in files)
    name = next(paths, "the new inputs")
    return name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"


Fact = tuple[str, str]  # What a sentence is about, and the sentence


def facts(on: NewInputs, tested: int) -> tuple[list[Fact], list[Fact]]:
    """Return what is known about the new rows themselves, and what else than the effects."""
    named = f"; --pointwise names {on.beyond.rows:,}" if on.beyond.rows else ""
    untested = f"; {on.beyond.untested:,} have a category that was not tested" if on.beyond.untested else ""
    beyond = f"{beyond_text(on)} lie beyond the tested inputs{named}{untested}"
    after = [("rows", count_text(on, tested)), ("coverage", coverage_text(on))]
    after += [("observed", f"{text}, of {count_of(on.labelled, 'row')} with targets") for text, _ in observed_texts(on)]
    after += [("changed", CHANGED if on.contradicted else ""), ("judged", on.unjudged), ("label", label_text(on))]
    return [("beyond", beyond), ("new", differ_text(on))], [each for each in after if each[1]]


def answer_text(on: NewInputs) -> str:
    """Return the answer for one of several models, and by how much its intervals are off, or what makes it a no."""
    told = [each for each in on.effects if each.within is False] or [
        each for each in on.effects if each.topic == "size"
    ]
    within = f" within {percent(on.tolerance or 0.0)}" if on.answer == "yes" else ""
    return f"{on.answer.upper().replace('-', ' ')}{within}: {', '.join(map(_told, told))}"


def _told(effect: Effect) -> str:
    """Return the value of an effect with its interval, or its sentence."""
    if effect.value is None or effect.topic not in ("size", "bias"):
        return effect.text.removeprefix("not shown: ")
    return f"{'mean error ' * (effect.topic == 'bias')}{_number(effect)}"


def beyond_text(on: NewInputs) -> str:
    """Return which share of the new rows lies beyond the tested inputs."""
    share, low, high = (float(f"{100 * each:.2g}") for each in (on.beyond.share, on.beyond.low, on.beyond.high))
    return f"{share:g} % ({low:g} to {high:g} %) of {on.rows:,} row{'s' * (on.rows != 1)}"


def rows_text(on: NewInputs) -> str:
    """Return how many new rows lie beyond the tested inputs, and how many tested rows count for the others."""
    counted = "new targets" if on.contradicted else "tested rows"
    count = "" if on.effective_rows is None else f"; {on.effective_rows:,.0f} {counted} count"
    untested = f" ({on.beyond.untested:,} by an untested category)" if on.beyond.untested else ""
    return f"{beyond_text(on)} lie beyond{untested}{count}"


def differ_text(on: NewInputs) -> str:
    """Return whether the inputs differ from the tested ones, and which columns most."""
    if on.inputs_differ.p > SIGNIFICANT:
        return f"no difference from the tested inputs is shown ({p_text(on.inputs_differ.p)})"
    found = [each for each in on.inputs_differ.columns if each.p <= SIGNIFICANT]
    named = ", ".join(f"{each.name} ({each.distance:.2f})" for each in found[:NAMED])
    more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
    return f"inputs differ ({p_text(on.inputs_differ.p)})" + (f", most {named}{more}" if named else "")


def count_text(on: NewInputs, tested: int) -> str:
    """Return how many of the tested rows count for the new ones."""
    known = [count_of(tested, "tested row")] * (not on.contradicted)
    known += [f"{count_of(on.labelled, 'new one')} with targets"] * (on.labelled > 0)
    rows = f"of {' and '.join(known)}"
    tested = 0 if on.contradicted else tested
    rows += f", of which {MOST_ROWS:,} are sampled," if tested + on.labelled > MOST_ROWS else ""
    return f"none {rows} count there" if on.effective_rows is None else f"{on.effective_rows:,.0f} {rows} count there"


def coverage_text(on: NewInputs) -> str:
    """Return the expected coverage of the intervals of the answer; empty if it is unknown."""
    if on.coverage is None or on.level is None:
        return ""
    width = "" if on.width is None else f"are {number(on.width)} wide on average, and "
    return f"{percent(on.level)} intervals {width}are expected to hold {percent(float(f'{on.coverage:.2g}'))}"


def observed_texts(on: NewInputs) -> Iterator[tuple[str, bool]]:
    """Yield what was foretold for the new rows with targets and what was observed, and whether these contradict."""
    foretold = {(each.topic, each.kind): each for each in on.foretold}
    for each in on.observed:
        own = foretold.get((each.topic, each.kind))
        told = "nothing foretold" if own is None or own.value is None else f"foretold {_number(own)}"
        if each.value is not None:
            yield f"{told}, observed {_number(each)}", own is not None and each.contradicts(own)


def _number(effect: Effect) -> str:
    """Return the value of an effect with its interval."""
    span = (effect.value, effect.low, effect.high)
    return factor(span) if effect.topic == "size" else shift(span)


def label_text(on: NewInputs) -> str:
    """Return which new rows would help most; empty if none were asked for."""
    lacking = f"no {'more ' * bool(on.label)}rows to label: {on.no_label}" if on.no_label else ""
    if not on.label:
        return lacking
    shown = ", ".join(map(str, on.label[:NAMED])) + ", …" * (len(on.label) > NAMED)
    found = f"targets of {count_of(len(on.label), 'row')} would help most: row {shown} (--pointwise)"
    return f"{found}; {lacking}" if lacking else found
