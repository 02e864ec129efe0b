"""Arguments of Python functions: column names, and arrays in place of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, Literal, TypeAlias, TypedDict

from calcheck.errors import OptionError, named_some, suggestion
from calcheck.io.column_names import ColumnOptions
from calcheck.io.dataframes import column_name, frame_columns, is_frame, to_numpy
from calcheck.io.naming_schemes import level_name
from calcheck.options import options_of

Names: TypeAlias = "str | list[str]"
ArrayLike: TypeAlias = Any  # An array of NumPy or torch, a Series, or a list, with one value or vector per row

Y = "y"
VALUES = (
    *("error", "mean", "std", "var", "log_std", "log_var", "samples", "quantiles", "lower", "upper", "intervals"),
    *("embedding", "inputs", "id"),
)  # Roles that take arrays, besides y and param


SYNONYMS = {"y_true": Y, "y_pred": "mean", "y_std": "std", "y_pis": "intervals", "y_quantiles": "quantiles"}
"""Names of arrays in scikit-learn, uncertainty-toolbox and MAPIE."""
MEANT = {
    **dict.fromkeys(("sigma", "scale", "uncertainty", "std_dev", "stddev", "y_unc"), "std"),
    **dict.fromkeys(("mu", "loc", "pred", "preds", "prediction", "predictions", "y_hat", "yhat", "y_mean"), "mean"),
    **dict.fromkeys(("truth", "targets", "labels", "y_test", "observed"), Y),
    **dict.fromkeys(("x", "X", "features", "covariates"), "inputs"),
    **dict.fromkeys(("draws", "ensemble", "members"), "samples"),
    **dict.fromkeys(("variance", "y_var", "sigma2"), "var"),
    **dict.fromkeys(("alpha", "confidence_level", "coverage"), "level"),
    **dict.fromkeys(("random_state", "rng"), "seed"),
    **dict.fromkeys(("n_boot", "n_bootstrap", "n_resamples"), "resamples"),
    **dict.fromkeys(("y_col", "target_col", "label"), "target"),
    "by": "groups",
    "rules": "fail_on",
    "tol": "tolerance",
    "time_col": "time",
}  # Names that are no keywords, and what those who write them mean


def unknown_argument(name: str, known: Sequence[str]) -> str:
    """Return the message about a keyword that does not exist: the one that is meant, or all."""
    meant = MEANT.get(name, name)
    guess = f"Did you mean {meant!r}?" if meant in known else suggestion(name, known)
    return f"there is no argument {name!r}. " + (guess or f"Arguments: {', '.join(known)}")


class ColumnArguments(TypedDict, total=False):
    """Keywords for reading: the fields of ColumnOptions, also as arrays, and y."""

    y: ArrayLike
    y_true: ArrayLike
    y_pred: ArrayLike
    y_std: ArrayLike
    y_pis: ArrayLike
    y_quantiles: Mapping[float, ArrayLike]
    target: Names
    error: Names | ArrayLike
    mean: Names | ArrayLike
    std: Names | ArrayLike
    var: Names | ArrayLike
    log_std: Names | ArrayLike
    log_var: Names | ArrayLike
    dist: str
    param: Mapping[str, str | ArrayLike] | list[str]
    samples: str | ArrayLike
    quantiles: Names | Mapping[float, ArrayLike]
    lower: Names | ArrayLike
    upper: Names | ArrayLike
    intervals: str | ArrayLike
    level: float | Sequence[float]
    embedding: Names | ArrayLike
    inputs: Names | ArrayLike
    id: str | ArrayLike
    truth: str
    join_on: Names
    model: str
    filter: Mapping[str, Any] | list[str]
    target_std: str | float | ArrayLike
    clip: str | Sequence[str | float | ArrayLike | None]
    rounded: str | float | ArrayLike
    error_dist: Literal["normal", "t6"]
    only: str
    min_std: float
    crossing: Literal["raise", "sort"]
    nan_policy: Literal["raise", "omit"]


class Arguments:
    """Column options, and the arrays among them by column name, of keywords; None is as if not given."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.arrays: dict[str, Any] = {}
        self._options: dict[str, Any] = {}
        known = [Y, *(field.name for field in fields(ColumnOptions))]
        for called, value in with_levels(given).items():
            name = SYNONYMS.get(called, called)
            if name not in known:
                raise OptionError(unknown_argument(name, known))
            if name != called and given.get(name) is not None:
                raise OptionError(f"{called} is {name}: pass only one of them")
            if value is not None:
                self._add("target" if called == "y_true" and isinstance(value, str) else name, value)

    def options(self, default_id: str | None = None) -> ColumnOptions:
        """Return the column options; ``default_id`` is the column of keys if none is named."""
        return ColumnOptions(**({} if default_id is None else {"id": default_id}) | self._options)

    def _add(self, name: str, value: Any) -> None:
        if name == Y:
            self._options["target"] = self._column(Y, value)
        elif name == "param":
            if isinstance(value, Mapping):
                items = value.items()
                value = {each: named if isinstance(named, str) else self._column(each, named) for each, named in items}
            self._options[name] = tuple(_equations(name, value))
        elif name in ("target_std", "rounded"):
            self._options[name] = self._given(name, value)
        elif name == "clip" and not isinstance(value, str):
            self._options[name] = ",".join(self._limits(value))
        elif name == "level":
            self._options[name] = levels_of(value)
        elif name == "filter":
            self._options[name] = tuple(_equations(name, value))
        elif name == "quantiles" and _is_array(name, value):
            self._options[name] = ",".join(self._column(level, array) for level, array in _by_level(value).items())
        elif name == "inputs" and is_frame(value):
            columns = frame_columns(value, name)
            self._options[name] = _joined([self._column(label, column) for label, column in columns.items()], name)
        else:
            self._options[name] = self._column(name, value) if _is_array(name, value) else _named(name, value)

    def _column(self, name: str, values: Any) -> str:
        """Return the name of a column that is made of an array."""
        if isinstance(values, str):
            msg = f"{name} takes an array with one value per row, got the text {values!r}. Name columns with target"
            raise OptionError(msg)
        self.arrays[name] = values
        return name

    def _given(self, name: str, value: Any) -> str:
        """Return the text of a column, a number or an array."""
        if isinstance(value, str):
            return value
        return f"{float(value):.17g}" if not hasattr(value, "__len__") else self._column(name, value)

    def _limits(self, value: Any) -> list[str]:
        """Return the texts of two limits, empty for None."""
        if not isinstance(value, (list, tuple)) or len(value) != 2:  # noqa: PLR2004 - a pair
            raise OptionError(f"clip takes two limits, of which one may be None: (0, 5) or (None, 5), got {value!r}")
        names = "clip_low", "clip_high"
        return ["" if each is None else self._given(name, each) for name, each in zip(names, value, strict=True)]


def with_levels(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords with quantiles in an array, (n, k), as a mapping from the levels of its columns."""
    found = {name: value for name, value in given.items() if name != "levels"}
    if given.get("levels") is not None:
        if found.get("level") is not None:
            raise OptionError("levels is level: pass only one of them")
        found["level"] = given["levels"]
    name = next((each for each in ("quantiles", "y_quantiles") if found.get(each) is not None), "")
    columns = _without_levels(name, found[name]) if name else []
    if not columns:
        return found
    levels = levels_of(found.pop("level", None))
    if len(levels) != len(columns):
        given_levels = f"{len(levels)} levels are given: pass levels=[0.05, …], one for each"
        raise OptionError(f"{name} has {len(columns)} columns, and {given_levels}")
    ColumnOptions(level=levels)  # which differ, and lie between 0 and 1
    return found | {name: dict(zip(levels, columns, strict=True))}


def _without_levels(name: str, quantiles: Any) -> list[ArrayLike]:
    """Return the columns of an array, a list or a DataFrame of quantiles; none if they are named by their levels."""
    if is_frame(quantiles):
        with suppress(OptionError):
            _by_level(quantiles)
            return []
        return list(frame_columns(quantiles, name).values())
    if isinstance(quantiles, Mapping) or not _is_array("quantiles", quantiles):
        return []
    values = to_numpy(quantiles, name)
    if values.ndim > 2:  # noqa: PLR2004 - rows and levels
        raise OptionError(f"{name} of several targets are not read: pass those of one target, (n, k)")
    return [*values.T] if values.ndim > 1 else []


def _by_level(quantiles: Any) -> dict[str, ArrayLike]:
    """Return quantiles by names with their levels."""
    columns = frame_columns(quantiles, "quantiles") if is_frame(quantiles) else quantiles
    try:
        levels = tuple(map(float, columns.keys()))
    except (AttributeError, TypeError, ValueError) as error:
        given = named_some(columns) if isinstance(columns, Mapping) else type(columns).__name__
        raise OptionError(f"quantiles are a mapping from levels such as 0.05 to arrays, got {given}") from error
    ColumnOptions(level=levels)
    return {level_name(level): values for level, values in zip(levels, columns.values(), strict=True)}


def levels_of(value: Any) -> tuple[float, ...]:
    """Return levels of intervals, given as a number or a list; none for None."""
    if value is None:
        return ()
    (option,) = (option for option in options_of(ColumnOptions) if option.field == "level")
    levels: tuple[float, ...] = option.take(value.tolist() if hasattr(value, "tolist") else value, "level")
    return levels


def _is_array(name: str, value: Any) -> bool:
    """Return whether the value of a role is an array, not names of columns."""
    if isinstance(value, (str, int, float)):
        return False
    names = isinstance(value, (list, tuple)) and all(isinstance(each, (str, tuple)) for each in value)
    if names and name == "samples":
        msg = "samples takes a pattern ('s*'), a column of lists, or an array: pass frame[names] for columns of draws"
        raise OptionError(msg)
    if not names and name not in VALUES:
        hint = ". Pass an array as y" if name == "target" else ""
        raise OptionError(f"{name} takes text, got {type(value).__name__}{hint}")
    return not names


def _named(name: str, value: Any) -> Any:
    """Return a value that is no array, with names of columns as text."""
    if isinstance(value, (list, tuple)):
        return _joined([column_name(each) for each in value], name)
    if name in VALUES and not isinstance(value, str):
        raise OptionError(f"{name} takes a column name, or an array with one value per row, got {value!r}")
    (option,) = (option for option in options_of(ColumnOptions) if option.field == name)
    return option.take(value.item() if hasattr(value, "item") else value, name)


def _joined(names: list[str], role: str) -> str:
    """Return names as comma-separated text."""
    if not names:
        raise OptionError(f"{role} is an empty list. Name at least one column")
    for name in names if len(names) > 1 else []:
        if "," in name or name != name.strip():
            msg = f"{role}: the column name {name!r} has a comma or outer spaces, so it cannot be listed. Rename it"
            raise OptionError(msg)
    return ",".join(names)


def _equations(role: str, value: Any) -> list[str]:
    """Return ``NAME=VALUE`` for each item of a mapping; texts stay as they are."""
    if isinstance(value, Mapping):
        return [f"{name}={each}" for name, each in value.items()]
    texts = list(value) if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(each, str) for each in texts):
        got = type(value).__name__ if hasattr(value, "shape") else repr(value)
        raise OptionError(f"{role} takes a mapping, or a list of texts such as 'NAME=VALUE', got {got}")
    return texts
