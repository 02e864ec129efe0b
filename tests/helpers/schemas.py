"""Validation of reports by the schemas of `calcheck schema`; each schema is compiled once."""

from functools import cache

from jsonschema import Draft202012Validator

from calcheck.storage.schema import SCHEMAS


def validate(found, kind="report"):
    """Raise an error unless a JSON value matches a schema."""
    _validator(kind).validate(found)


@cache
def _validator(kind):
    return Draft202012Validator(SCHEMAS[kind]())
