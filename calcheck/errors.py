"""Errors, warnings and suggestions."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from keyword import iskeyword
from typing import Literal


def nearest_word(word: str, known: Iterable[str]) -> str:
    """Return the known word most similar to a word, whatever its case; an empty string if none is similar."""
    from difflib import SequenceMatcher, get_close_matches

    by_lower = {each.lower(): each for each in sorted(set(known))}
    lower = word.lower()
    near = get_close_matches(lower, by_lower, n=3)
    likeness = {each: (SequenceMatcher(None, each, lower).ratio(), sorted(each) == sorted(lower)) for each in near}
    return by_lower[max(near, key=lambda each: likeness[each])] if near else ""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a question that names the known word most similar to a word; an empty string if none is similar.

    >>> suggestion("zsm", ["zms", "ece"]), suggestion("PIT", ["zms", "pit"]), suggestion("banana", ["zms"])
    ("Did you mean 'zms'?", "Did you mean 'pit'?", '')
    >>> suggestion("sede", ["seed", "side"])
    "Did you mean 'seed'?"
    """
    near = nearest_word(word, known)
    return f"Did you mean '{near}'?" if near else ""


def with_suggestion(message: str, word: str, known: Iterable[str]) -> str:
    """Return a message, followed by a suggestion for a misspelled word in it if there is one.

    >>> with_suggestion("there is no metric 'zsm'", "zsm", ["zms", "ece"])
    "there is no metric 'zsm'. Did you mean 'zms'?"
    """
    return ". ".join(filter(None, [message, suggestion(word, known)]))


AbsenceCode = Literal[
    "no-value", "infinite-value", "no-interval", "no-verdict", "no-p-value", "no-difference", "no-reference"
]
BasisCode = Literal[
    "undecided", "verdict-basis", "exchangeability-assumed", "permutations-approximate", "permutations-partial"
]
IntervalCode = Literal[
    "interval-shows-spread", "few-rows", "few-draws", "few-resamples", "few-effective-rows", "heavy-tail"
]
DependenceCode = Literal["dependence", "dependent-rows", "ordered-rows", "few-clusters"]
BinCode = Literal["few-rows-per-bin", "tied-bins"]
KernelCode = Literal["approximation", "low-dof", "narrow-kernel", "feature-residual", "low-rank-error", "rounding"]
ReadingCode = Literal[
    "targets-moved", "inputs-moved", "layout", "clipped-std", "sorted-quantiles", "targets-joined-by-row"
]
DistributionCode = Literal[
    "unknown-shape", "no-negative-error", "assumed-level", "assumed-variance", "interpolated-distributions"
]
TargetCode = Literal[
    "unpaired-levels", "coverage-outcome", "grouped-rows", "impossible-targets", "equal-draws", "weighted"
]
DataCode = Literal[ReadingCode, DistributionCode, TargetCode]
ComparisonCode = Literal["biased-estimator", "different-inputs", "values-compared", "in-hindsight", "criterion-missing"]
SeriesCode = Literal[
    "outside-interval", "not-computed", "tied-uncertainties", "matched-without-targets", "ranking-changes"
]
StudyCode = Literal[ComparisonCode, SeriesCode, "streamed", "outside-range", "sampled-rows", "computed-from-targets"]
Code = Literal[AbsenceCode, BasisCode, IntervalCode, DependenceCode, BinCode, KernelCode, DataCode, StudyCode]
"""Codes of messages. Their texts may change between versions; the codes do not."""


@dataclass(frozen=True)
class Message:
    """A warning or a note."""

    code: Code  # What the message is about, for programs
    text: str  # The message, for readers

    @classmethod
    def of_absence(cls, code: Literal["no-value", "no-interval", "no-verdict"], reason: str) -> "Message":
        """Return the message that something is absent, with the reason."""
        return cls(code, f"{_words(code)}: {reason}")

    @property
    def reason(self) -> str:
        """The text without what the code says already."""
        return self.text.removeprefix(f"{_words(self.code)}: ")

    def prefixed(self, prefix: str) -> "Message":
        """Return the message with a text in front."""
        return replace(self, text=prefix + self.text)


def _words(code: Code) -> str:
    return code.replace("-", " ")


INFINITE = Message("infinite-value", "the value is infinite, and null in JSON")


def absent_value(value: float) -> Message:
    """Return the message about a value that is not finite."""
    return INFINITE if value == math.inf else Message.of_absence("no-value", f"it is {value}")


AT_QUANTILES = Message(
    "verdict-basis",
    "some targets are equal to quantiles or limits of intervals, as for counts, or rounded to them: what this leaves"
    " open counts in favor of the model, and the verdict is conservative",
)


SHOWN = 3  # Maximum number of invalid rows listed in a message
SHOWN_NAMES = 12  # Maximum number of names listed in a message
FLAG = re.compile(
    r"(?<![\w-])--([a-z][a-z-]*[a-z])(?: (omit|sort|'[^']*'|-?\d[\w.]*\w|\d|[A-Z]+\b|\w+(?==)\S*[^\s.,;:)]))?"
)  # With its value, if it is a number, in capitals, in quotes, an equation, or a known word
COMMAND = re.compile(r", as in calcheck .*")
NUMBER = re.compile(r"-?[\d.]+(?:e-?\d+)?|[XN]")  # Or a letter that stands for one
WORDS = {
    "table": "to_frame()",
    "format": "to_frame()",
    "no-bootstrap": "resamples=0",
    "no-null": "replicates=0",
    "discretise": 'metric("nll", discretise=True)',
    "help": "--help",
}  # Flags without a keyword


def named_some(names: Iterable[object], *, most: int = SHOWN_NAMES, between: str = ", ") -> str:
    """Return the names as one line of text, shortened if there are more than ``most``.

    >>> named_some(["y", "mean"]), named_some(range(2000), most=2)
    ("'y', 'mean'", '0, 1, … 2,000 in all')
    """
    items = list(names)
    text = between.join(map(repr, items[:most]))
    return f"{text}{between.rstrip()} … {len(items):,} in all" if len(items) > most else text


def listed_columns(names: Iterable[str], wanted: str = "") -> str:
    """Return the end of a message about a column: the names of the columns, and a name similar to the wanted one.

    >>> listed_columns(["price", "y"], "Price")
    "(columns: 'price', 'y'). Did you mean 'price'?"
    """
    names = list(names)
    return with_suggestion(f"(columns: {named_some(names)})", wanted, names)


def named_rows(rows: Sequence[int]) -> str:
    """Return the first rows as text.

    >>> named_rows([4]), named_rows(range(10))
    ('row 4, counted from 0', 'rows 0, 1, 2, …, counted from 0')
    """
    more = ", …" if len(rows) > SHOWN else ""
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(str(int(row)) for row in rows[:SHOWN])}{more}, counted from 0"


class CalcheckError(Exception):
    """A problem that the user can solve; the message is one line and says what to do."""

    exit_code = 2


class DataError(CalcheckError):
    """The data are missing, malformed, or unsuitable for the requested computation."""


class RefusedError(DataError):
    """No metric is computed: a file cannot be used, or numbers in it are too large or too small to compute with."""


class ExtremeError(RefusedError):
    """Numbers are too large or too small to compute with, so that a metric would overflow or underflow."""


class FileError(RefusedError):
    """A file cannot be read, or has the wrong content for its purpose; the message names the file."""


class MissingFileError(FileError):
    """There is no such file."""

    def __init__(
        self,
        name: str,  # Name of the file
    ) -> None:
        self.name = name
        super().__init__(f"there is no file {name}")

    def __reduce__(self) -> "tuple[type[MissingFileError], tuple[str]]":
        """Return the constructor and its argument, for pickling."""
        return type(self), (self.name,)


class OptionError(CalcheckError):
    """An option has an invalid value, or options contradict each other."""


class NumericalError(CalcheckError):
    """The problem is too ill-conditioned for the requested precision or solver."""


class ValuesError(DataError):
    """Some values of an array are invalid; readers add the file, column and row numbers of the values."""

    def __init__(
        self,
        name: str,  # Role of the array: "y", "std", "rate" …
        rule: str,  # Requirement that is violated, starting with a verb: "must be positive"
        rows: Sequence[int],  # Indices of the invalid rows, counted from 0
        total: int,  # Total number of rows
        remedy: str = "",  # What the user can do; may be empty
    ) -> None:
        self.name, self.rule, self.rows, self.total, self.remedy = name, rule, rows, total, remedy
        super().__init__(self.message(name))

    def __reduce__(self) -> "tuple[type[ValuesError], tuple[str, str, list[int], int, str]]":
        """Return the constructor and its arguments, for pickling."""
        return type(self), (self.name, self.rule, list(self.rows), self.total, self.remedy)

    def message(self, name: str, places: Sequence[int] | None = None, total: str = "") -> str:
        """Return the message with another name for the array, and row numbers and the number of rows of the file."""
        first = [row if places is None else places[row] for row in self.rows[: SHOWN + 1]]
        of = total or f"{self.total:,}"
        verb = "is" if len(self.rows) == 1 else "are"
        text = f"{name} {self.rule}, but {len(self.rows):,} of {of} rows {verb} not ({named_rows(first)})"
        return f"{text}. {self.remedy}" if self.remedy else text

    def named(self, name: str, places: Sequence[int]) -> DataError:
        """Return the error with the name of the column and the row numbers in the file."""
        return DataError(self.message(name, places))


class ExtremeValuesError(ValuesError, ExtremeError):
    """Some values of an array are too large or too small to compute with."""

    def named(self, name: str, places: Sequence[int]) -> DataError:
        return ExtremeError(self.message(name, places))


@contextmanager
def message_prefix(name: str) -> Iterator[None]:
    """Begin the messages of errors with a name, such as that of a data set."""
    try:
        yield
    except CalcheckError as error:
        error.args = (f"{name}: {error}", *error.args[1:])
        raise


@contextmanager
def keyword_messages() -> Iterator[None]:
    """Name options in the messages of errors by their keywords in Python instead of their flags."""
    try:
        yield
    except CalcheckError as error:
        error.args = (with_keywords(str(error)), *error.args[1:])
        raise


def with_keywords(text: str) -> str:
    """Return a text with the keywords of options in place of their flags; "pass" replaces a command without a file.

    >>> with_keywords("Pass --nan-policy omit, --std COLUMN, --level 0.9 or another --lambda")
    "Pass nan_policy='omit', std='COLUMN', level=0.9 or another lambda_"
    >>> with_keywords("calcheck '' --level 0.9")
    'pass level=0.9'
    """
    text = text.replace("--format csv", "--format").replace("calcheck '' --", "pass --")
    return FLAG.sub(_keyword, COMMAND.sub("", text))


def _keyword(flag: re.Match[str]) -> str:
    name, value = flag[1], flag[2]
    field = name.replace("-", "_")
    named = WORDS.get(name, f"{field}_" if iskeyword(field) else field)
    if value is None:
        return named
    return f"{named}={value if NUMBER.fullmatch(value) else repr(value.strip(chr(39)))}"
