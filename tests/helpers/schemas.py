"""Validation of reports by the schemas of `calcheck schema`; each schema is compiled once."""

from functools import cache

from jsonschema import Draft202012Validator, validators

from calcheck.storage.schema import SCHEMAS


def validate(found, kind="report"):
    """Raise an error unless a JSON value matches a schema."""
    _validator(kind).validate(found)


def _one_of_its_name(validator, choices, instance, schema):
    """Compare a result only with the schema of its metric: the schemas of others require another constant."""
    named = [each for each in choices if each["properties"]["metric"]["const"] == instance.get("metric")]
    yield from Draft202012Validator.VALIDATORS["oneOf"](validator, named or choices, instance, schema)


@cache
def _validator(kind):
    return validators.extend(Draft202012Validator, {"oneOf": _one_of_its_name})(SCHEMAS[kind]())
