"""JSON Schemas of reports, changes between reports and recalibration maps, generated from their classes."""

import types
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS
from calcheck.metrics.base import Metric
from calcheck.models.report_difference import DIFF_SCHEMA_VERSION, Diff
from calcheck.options import options_of
from calcheck.recalibration.methods import RecalibrationMap
from calcheck.reports import SCHEMA_VERSION, Report, Result

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of reports."""
    results = [_result(metric) for metric in (METRICS | TWO_SAMPLE_METRICS).values()]
    items = {"type": "array", "items": {"oneOf": results}}
    schema = _titled("calcheck report", Report, schema_version={"const": SCHEMA_VERSION}, results=items)
    conclusion = schema["properties"]["conclusion"]["anyOf"][0]
    conclusion["properties"]["outputs"]["items"]["properties"]["results"] = {"$ref": "#/properties/results"}
    return schema


def diff_schema() -> dict[str, Any]:
    """Return the JSON Schema of the changes between two reports."""
    return _titled("calcheck diff", Diff, schema_version={"const": DIFF_SCHEMA_VERSION})


def map_schema() -> dict[str, Any]:
    """Return the JSON Schema of stored recalibration maps."""
    checksum = {"type": "string", "description": "SHA-256 hash of the other fields."}
    return _titled("calcheck recalibration map", RecalibrationMap, checksum=checksum)


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {"report": report_schema, "diff": diff_schema, "map": map_schema}
"""The schemas, by name."""


def _titled(title: str, owner: type[Any], **properties: Any) -> dict[str, Any]:
    """Return the schema of a file, whose properties are those of a dataclass or the given ones."""
    schema = _object(owner)
    schema["properties"] |= properties
    return {"$schema": DIALECT, "title": title, **schema}


def _result(metric: type[Metric[Any]]) -> dict[str, Any]:
    """Return the schema of a metric's result."""
    schema = _object(Result)
    options = options_of(metric)
    schema["properties"]["metric"] = {"const": metric.info.name}
    described = {option.name: {**_type(option.hint), "description": option.help} for option in options}
    schema["properties"]["options"] = _closed(described, list(described))
    schema["properties"]["details"] = _type(metric.info.details)
    return schema


def _object(owner: type[Any]) -> dict[str, Any]:
    """Return the schema of a dataclass, or of a TypedDict with an annotation of each field that describes it."""
    hints = get_type_hints(owner, include_extras=is_typeddict(owner))
    if is_typeddict(owner):
        properties = {}
        for name, hint in hints.items():
            kind, text = get_args(get_args(hint)[0] if get_origin(hint) is NotRequired else hint)
            properties[name] = {**_type(kind), "description": text}
        return _closed(properties, sorted(owner.__required_keys__))
    required = [declared.name for declared in fields(owner) if not declared.metadata.get("added")]
    return _closed({declared.name: _type(hints[declared.name]) for declared in fields(owner)}, required)


def _closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """Return the schema of an object that has no other properties."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


SIMPLE: dict[Any, dict[str, Any]] = {
    Any: {},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Report: {"$ref": "#"},
    RecalibrationMap: {"$ref": "#"},
}


def _type(hint: Any) -> dict[str, Any]:
    """Return the schema of a type."""
    if hint in SIMPLE:
        return dict(SIMPLE[hint])
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_type(argument) for argument in arguments]}
    if origin in (tuple, list):
        return {"type": "array", "items": _type(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(arguments[1])}
    return _object(hint)
