"""Corrections for new inputs: rows with weights as among these, and what they foretell before and after."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from calcheck.errors import DataError, OptionError
from calcheck.evaluation import Answer
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.new_inputs.transfer import Transferred, transfer
from calcheck.options import TOLERANCE
from calcheck.predictions import Predictions
from calcheck.recalibration.cross_validation import WEIGHTS
from calcheck.reports import Inference, Result
from calcheck.statistics.groups import effective_count
from calcheck.studies.recalibrate.places import BIAS, FACTOR

NEW = "new inputs"


def weighted_rows(rows: Predictions, new: Predictions, run: Run) -> tuple[Predictions, float]:
    """Return rows with a column of weights as among the new ones, and how many of them count."""
    found = _transferred(rows, new, run)
    on = found.conclusion
    if on.effects[0].value is None or on.effective_rows is None:
        raise DataError(f"no correction is fitted for new inputs (--on): {on.effects[0].text}")
    weights = found.weights()
    return replace(rows, columns={**rows.columns, WEIGHTS: weights}), effective_count(weights)


def _transferred(rows: Predictions, new: Predictions, run: Run) -> Transferred:
    if rows.x is None:
        raise OptionError("--on compares inputs: also pass --inputs or --embedding, with the columns of both files")
    return transfer(rows, new, run=run, tolerance=TOLERANCE, level=Answer().level_of(rows))


def foretold_results(stages: Mapping[str, Predictions], new: Predictions, run: Run) -> Iterator[Result]:
    """Yield by how much intervals and means are off at new inputs, by stages of rows."""
    for stage, rows in stages.items():
        for effect in _transferred(rows, new, run).conclusion.effects[:2]:
            metric = METRICS[FACTOR if effect.topic == "size" else BIAS]()
            inference = Inference(
                low=effect.low,
                high=effect.high,
                interval="order-statistics" if effect.topic == "size" else "t",
                p_value_adjusted=effect.p,
            )
            yield metric.result(effect.value, {"rows": NEW, "stage": stage}, inference)
