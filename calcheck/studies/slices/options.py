"""Options of `calcheck slices`: groups of the rows, or the search of regions."""

from dataclasses import dataclass

from calcheck.errors import OptionError
from calcheck.options import group, option
from calcheck.studies import Study, options

MOST_BINS, MOST_CLUSTERS, MOST_DEPTH = 32, 50, 5


@dataclass(frozen=True)
class SliceOptions:
    """Options for slices of the rows."""

    by: tuple[str, ...] | None = option(
        "Columns that form groups: sex,region. Numbers are cut into quantile bins, age:5, or at edges, age:30/50/70;"
        " dates by period, date:month. mean and std are the predicted ones. Default: regions are"
        " searched.",
        metavar="COLUMNS",
        common=True,
    )
    metrics: tuple[str, ...] | None = option(
        "Metrics by group, which must be means over rows, or cce, unless --refit; or metrics that describe regions. "
        "Default: standardized-bias, pit-dispersion, width-factor and zms.",
        metavar="NAMES",
        common=True,
    )


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search for regions."""

    columns: tuple[str, ...] | None = option(
        "Columns in which to search regions. Default: those of --inputs, else all columns without a role, mean and std,"
        " the predicted ones, and embedding, its clusters, without columns that seem computed from targets.",
        metavar="COLUMNS",
        common=True,
    )
    bins: int = option("Number of quantile bins per column of numbers or dates.", 10)
    embedding_clusters: int = option(
        "Number of clusters of an embedding, each of which is a category of the search; 0 for none. By default they"
        " have about as many rows as quantile bins.",
        10,
    )
    min_rows: int | None = option(
        "Minimum number of rows of a group that is judged, 30 by default; or of a region, 50 by default, or 2 % of the"
        " rows if that is more.",
        metavar="ROWS",
    )
    most: int = option("Maximum number of regions to report.", 5)
    depth: int | None = option(
        "Summarize the file by a tree of this depth, e.g. 3, instead of the regions that deviate most. Leaves have"
        " at least 100 rows, or 2 % of the rows if that is more (--min-rows).",
        common=True,
    )

    def __post_init__(self) -> None:
        limited = (("bins", 2, MOST_BINS), ("embedding_clusters", 0, MOST_CLUSTERS), ("most", 1, None))
        for name, least, most in (*limited, ("min_rows", 1, None), ("depth", 1, MOST_DEPTH)):
            value = getattr(self, name)
            if value is not None and (value < least or (most is not None and value > most)):
                limits = f"at least {least}" if most is None else f"between {least} and {most}"
                raise OptionError(f"--{name.replace('_', '-')} must be {limits}, got {value}")

    @property
    def reads_embedding(self) -> bool:
        """Whether clusters of an embedding are searched, if there is one."""
        from calcheck.regions.partition import EMBEDDING

        return bool(self.embedding_clusters) and (self.columns is None or EMBEDDING in self.columns)


SLICES = Study(
    "slices",
    """Show where the uncertainties are wrong: in groups of the rows, or in regions that a search finds.

    Each group or region is compared with a perfect model on the same rows. P-values are adjusted for the number of
    groups or regions: a perfect model fails somewhere in 5 % of all files.
    """,
    "study.run",
    arguments=(options.FILE,),
    groups=(
        group("Slices", SliceOptions, options.RefitOptions, SearchOptions, options.ToleranceOptions),
        *(options.COLUMNS, options.WEIGHTS, options.INFERENCE, options.DEPENDENCE),
        *(options.REPORT, options.SCREEN, options.PLOT, options.POINTWISE, options.SEED, options.ENGINE),
    ),
    document="document.slices_blocks",
    screen="document.slices_screen",
    picture="document.slices_picture",
    each_target=True,
    example="calcheck slices preds.parquet --by sex,age:5",
)
