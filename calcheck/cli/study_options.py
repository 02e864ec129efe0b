"""Options of single studies."""

from __future__ import annotations

from dataclasses import dataclass

from calcheck.options import option


@dataclass(frozen=True)
class GroupOptions:
    """Options for groups of the rows."""

    by: tuple[str, ...] | None = option(
        None,
        "Compare groups of the rows, as calcheck slices does: sex,region or age:5. Default: all rows together.",
        metavar="COLUMNS",
    )


@dataclass(frozen=True)
class RefitOptions:
    """Option for metrics of groups that are no means over rows."""

    refit: bool = option(
        default=False,
        text="With --by, compute metrics that are no means over rows, such as cce and ence, on the rows of each group"
        " alone. Default: cce has one fit to all rows, whose values are averaged in each group.",
    )


@dataclass(frozen=True)
class SliceOptions:
    """Options for slices of the rows."""

    by: tuple[str, ...] | None = option(
        None,
        "Columns that form groups, and their combinations: sex,region. Numbers are cut into quantile bins, age:5, or at"
        " edges, age:30/50/70; dates by period, date:month. mean and std are the predicted ones. Default: regions are"
        " searched.",
        metavar="COLUMNS",
    )
    metrics: tuple[str, ...] | None = option(
        None,
        "Metrics by group, which must be means over rows, or cce, unless --refit; or metrics that describe regions. "
        "Default: bias, pit-dispersion, coverage and zms.",
        metavar="NAMES",
    )
