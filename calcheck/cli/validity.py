"""`calcheck validity`: how often the interval of a metric contains the value of a right model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    COLUMNS,
    REPORT,
    SEED,
    deliver,
    draw,
    open_source,
    require_outputs,
    run_context,
    select_metrics,
)
from calcheck.cli.study_options import ValidityOptions
from calcheck.cli.typer_bridge import argument, build, make_command, parameters
from calcheck.studies.options import PlotOptions

if TYPE_CHECKING:
    from calcheck.cli.settings import Settings


def _validity(file: str | None = None, *, settings: Settings, **given: Any) -> None:
    """Simulate how often the interval of a metric contains the value of a right model, by the tails of uncertainties.

    The uncertainties are drawn from a distribution with heavy tails (--nu), or from those of FILE.
    """
    from calcheck.studies.validity.document import validity_document
    from calcheck.studies.validity.picture import validity_picture
    from calcheck.studies.validity.study import ROWS, DataSets, tails_of, validity

    options, plot = build(ValidityOptions, given), build(PlotOptions, given).plot
    metrics = select_metrics(options.metrics, settings)
    source = None if file is None else open_source(file, {**given, "error_dist": None}, metrics, narrow=False)
    report_to, _ = require_outputs(given, source)
    with run_context(given, source) as run:
        rows = options.rows or (ROWS if source is None else len(source.predictions()))
        data_sets = DataSets(rows, options.sets, options.error_dist)
        read = None if source is None else source.input_info()
        report = validity(metrics, tails_of(options.nu, source), data_sets, read=read, run=run)
    if plot:
        draw(validity_picture(report), plot)
    deliver(report, report_to, validity_document)


validity_command = make_command(
    "validity",
    _validity,
    [
        argument("file", "FILE", "Predictions whose uncertainties are used, instead of --nu.", str | None, None),
        *parameters(ValidityOptions, "Simulation"),
        *(parameter for parameter in COLUMNS if parameter.name != "error_dist"),
        *REPORT,
        *parameters(PlotOptions, "Output"),
        *SEED,
    ],
    example="calcheck validity --metrics zms,rce --nu 2..10,15,20 --sets 1000 --rows 5000",
)
