"""Dataclasses as named arrays, and back: how sums and settings are stored."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from calcheck.embeddings.nystroem_sums import RowSums
from calcheck.embeddings.output_features import OutputFeatures
from calcheck.execution.backend import Precision
from calcheck.kernels.functions import Kernel
from calcheck.kernels.input_kernel import Scaling
from calcheck.messages import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    Arrays = Mapping[str, NDArray[Any]]

NAMES = {
    "Any": Any,
    "NDArray": NDArray,
    "Values": NDArray[np.float64],
    "Inputs": NDArray[np.floating[Any]],
    "Precision": Precision,
    "Kernel": Kernel,
    "Scaling": Scaling,
    "OutputFeatures": OutputFeatures,
    "RowSums": RowSums,
    "Message": Message,
}
"""Types in annotations of stored dataclasses that their modules import for type checkers only."""
SUBCLASS = "subclass"  # Name of the class, if it is a subclass of the declared one
JSON = dict[str, Any]


def to_arrays(name: str, value: Any, kind: Any) -> dict[str, NDArray[Any]]:
    """Return a value of a declared type as named arrays, without object arrays.

    Fields of a dataclass and entries of a dictionary have names such as ``settings.scaling.shift``. A list of arrays is
    concatenated. ``dict[str, Any]`` becomes JSON. None is left out.
    """
    if value is None:
        return {}
    if is_dataclass(value):
        owner: Any = type(value)
        parts: dict[str, NDArray[Any]] = {}
        for field, hint in _types(owner).items():
            parts |= to_arrays(field, getattr(value, field), hint)
        if owner is not kind:
            parts[SUBCLASS] = np.array(owner.__name__)
    elif isinstance(value, dict) and kind != JSON:
        parts = {key: _array(each) for key, each in value.items()}
    elif (record := _record(kind)) is not None:
        texts = [[getattr(each, declared.name) for declared in fields(record)] for each in value]
        return {name: np.array(texts, dtype=str).reshape(-1, len(fields(record)))}
    else:
        return {name: np.array(json.dumps(value)) if kind == JSON else _array(value)}
    return {f"{name}.{key}": each for key, each in parts.items()}


def from_arrays(name: str, kind: Any, arrays: Arrays) -> Any:
    """Return a value of a declared type from the arrays of :func:`to_arrays`; other arrays are ignored.

    Raises
    ------
    KeyError, TypeError, ValueError
        An array is absent, or does not have the declared type.
    """
    if kind is NoneType or (NoneType in get_args(kind) and name not in arrays):
        return None
    if NoneType in get_args(kind):
        kind = get_args(kind)[0]
    if kind == JSON:
        return dict(json.loads(arrays[name].item()))
    parts = strip_prefix(name, arrays)
    if get_origin(kind) is dict:
        return {key: _typed(each, get_args(kind)[1]) for key, each in parts.items()}
    if is_dataclass(kind):
        owner = _subclass(kind, parts)
        return owner(**{field: from_arrays(field, hint, parts) for field, hint in _types(owner).items()})
    if (record := _record(kind)) is not None:
        return tuple(record(*map(str, line)) for line in arrays[name].tolist())
    return _typed(arrays[name], kind)


def strip_prefix(prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with the prefix and a dot, with these removed from the names."""
    return {name.removeprefix(f"{prefix}."): each for name, each in arrays.items() if name.startswith(f"{prefix}.")}


@cache
def _types(owner: type) -> dict[str, Any]:
    """Return the type of each field of a dataclass."""
    hints = get_type_hints(owner, localns=NAMES)
    return {declared.name: hints[declared.name] for declared in fields(owner)}


def _record(kind: Any) -> Any:
    """Return the dataclass of texts whose instances a declared tuple holds; None for other types."""
    item = get_args(kind)[0] if get_origin(kind) is tuple else None
    return item if is_dataclass(item) else None


def _array(value: Any) -> NDArray[Any]:
    """Return an array in C order of an array, a list of arrays, a number, or texts."""
    if isinstance(value, list):
        value[:] = [np.concatenate(value)]  # In place, so that memory holds the parts once
        return np.asarray(value[0])
    return np.asarray(value, order="C", dtype=str if isinstance(value, (tuple, str)) else None)


def _typed(values: NDArray[Any], kind: Any) -> Any:
    """Return an array as a declared type."""
    if kind in (int, float, bool):
        return kind(values.item())
    if get_origin(kind) is list:
        return [values]
    if get_origin(kind) is tuple:
        return tuple(map(str, values))
    if get_origin(kind) is not Literal:
        return values
    if (word := values.item()) not in get_args(kind):
        msg = f"{word!r} is none of {', '.join(get_args(kind))}"
        raise ValueError(msg)
    return word


def _subclass(kind: Any, parts: Arrays) -> Any:
    """Return the stored subclass of a declared class, else the declared class."""
    if SUBCLASS not in parts:
        return kind
    subclasses = {each.__name__: each for each in kind.__subclasses__()}  # No other class is ever made
    return subclasses[parts[SUBCLASS].item()]
