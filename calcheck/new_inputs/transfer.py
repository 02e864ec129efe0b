"""The answer at new inputs."""

from collections.abc import Sequence
from dataclasses import dataclass

from calcheck.errors import DataError
from calcheck.execution.run import Run, replicate_seed
from calcheck.new_inputs.beyond import Beyond
from calcheck.new_inputs.difference import compare_inputs
from calcheck.new_inputs.positions import Neighborhood, scale_inputs
from calcheck.predictions import Predictions
from calcheck.reports.conclusion import Effect, NewInputs
from calcheck.typing import AnyArray

FEWEST = 20  # Fewest tested rows that say anything about others


@dataclass(frozen=True, eq=False)
class Transferred:
    """What the tested rows say about new inputs."""

    conclusion: NewInputs
    columns: dict[str, AnyArray]  # What is known about each new row, (m,) each, by name


def transfer(
    rows: Predictions,
    new: Predictions,
    *,
    run: Run,
    tolerance: float,
    level: float,
    names: Sequence[str] = (),
) -> Transferred:
    """Return what tested rows say about new inputs.

    Parameters
    ----------
    rows
        The tested rows, with targets, predictions and inputs.
    new
        The new rows, with the same inputs; targets are not used.
    run
        Seed and confidence.
    tolerance
        Relative error of the intervals, and error of the means in standard deviations, that does not matter.
    level
        Level of the intervals.
    names
        Names of the inputs, to compare each of them; none for an embedding.

    Returns
    -------
    Transferred
        The conclusion at the new inputs, and what is known about each new row.

    Raises
    ------
    DataError
        If there are too few tested rows, or other inputs.
    """
    if len(rows) < FEWEST:
        raise DataError(f"{len(rows):,} tested rows are too few to say anything about new inputs: {FEWEST} are needed")
    if rows.width != new.width:
        raise DataError(
            f"the new rows have {new.width:,} inputs, the tested ones {rows.width:,}: both must be the same"
        )
    scaling = scale_inputs(rows)
    beyond = Beyond.from_inputs(Neighborhood.from_rows(rows, scaling, replicate_seed(run)), new.lazy_inputs())
    columns = {"distance": beyond.distance, "nearest": beyond.nearest, "p_value": beyond.p, "beyond": beyond.rows}
    conclusion = NewInputs(
        answer="not-shown",
        tolerance=tolerance,
        level=level,
        rows=len(new),
        beyond=beyond.summary(),
        inputs_differ=compare_inputs(rows.lazy_inputs(), new.lazy_inputs(), scaling, run, names=names),
        effects=(Effect(topic="size", text="nothing is stated about the uncertainties at new inputs"),),
    )
    return Transferred(conclusion, columns)
