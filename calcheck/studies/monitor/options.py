"""Options of `calcheck monitor`: what is monitored, and when there is an alarm."""

from dataclasses import dataclass
from typing import Any, ClassVar

from calcheck.errors import OptionError
from calcheck.io.times import Window
from calcheck.options import Argument, group, option
from calcheck.studies import Study
from calcheck.studies import options as study_options

MAX_LEVEL = 0.5


@dataclass(frozen=True)
class MonitorOptions:
    """What is monitored, and when there is an alarm."""

    time: str | None = option(
        "Column of the target times: dates, or numbers in the order of time. Rows of one time may depend on each other."
        " Required unless a state states it.",
        metavar="COLUMN",
        common=True,
    )
    window: str | int | None = option(
        "Windows of the metrics: a duration or period such as 7D, 12h, W or M, or a number of times. Default: a number"
        " of times that makes at most 20 windows.",
        metavar="LENGTH",
        common=True,
    )
    horizon: str | int | None = option(
        "Forecast horizon in steps of the times: a column of whole numbers, or one number for all rows. A forecast with"
        " horizon 3 is made before the last two times before its target are observed. Default: 1.",
        metavar="COLUMN",
    )
    level: float = option(
        "Probability of ever raising a false alarm. There is an alarm above 1 / LEVEL.", 0.05, common=True
    )

    keywords: ClassVar = {"level": "alarm_level"}  # In Python, ``level`` is that of intervals

    def __post_init__(self) -> None:
        if not 0 < self.level <= MAX_LEVEL:
            raise OptionError(f"--level must be above 0 and at most {MAX_LEVEL:g}, got {self.level:g}")
        if self.window is not None:
            Window.parse(str(self.window))

    def stored(self) -> dict[str, Any]:
        """Return what a state keeps: all but the level, which belongs to each report."""
        return {"time": self.time, "window": self.window, "horizon": self.horizon}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read, besides targets and predictions."""
        named = (self.time, None if self.constant_horizon else str(self.horizon))
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def constant_horizon(self) -> int | None:
        """The horizon of all rows; None if a column states it."""
        if self.horizon is None:
            return 1
        text = str(self.horizon)
        return int(text) if text.isdecimal() and int(text) > 0 else None


@dataclass(frozen=True)
class WindowMetricOptions:
    """Options for the metrics by window."""

    metrics: tuple[str, ...] | None = option(
        "Metrics by window, which must be means over rows. Default: standardized-bias, pit-dispersion and"
        " width-factor.",
        metavar="NAMES",
    )


@dataclass(frozen=True)
class SavedStateOptions:
    """Options for the state that the next run continues."""

    save_state: str | None = option(
        "Save the state to a file, which the next run takes before its new rows: calcheck monitor day1.state day2.csv.",
        metavar="FILE",
        by_hand=study_options.OVERWRITTEN,
        common=True,
    )


FILES = "Predictions in the order of time: files, folders or quoted patterns, and states of earlier runs."
OPTIONS = group("Monitor", MonitorOptions, study_options.ToleranceOptions, WindowMetricOptions)
REPORT, STATE = group("Output", study_options.GateReportOptions), group("Output", SavedStateOptions)
MONITOR = Study(
    "monitor",
    """Tell whether a model is still calibrated, by an e-value that may be looked at as often as you like.

    A right model ever raises an alarm with a probability of at most --level. Files
    of predictions, and states of earlier runs, follow each other in time.
    """,
    "study.run",
    arguments=(Argument("files", "FILE", FILES, list[str]),),
    groups=(
        *(OPTIONS, group("Rules", study_options.RuleOptions)),
        *(study_options.COLUMNS.omit("level"), study_options.REFERENCE),
        *(REPORT, study_options.SCREEN, study_options.PLOT, STATE, study_options.SEED, study_options.ENGINE),
    ),
    document="document.monitor_blocks",
    picture="document.monitor_picture",
    each_target=True,
    example="calcheck monitor preds.parquet --time date --window 7D --plot monitor.svg",
)
