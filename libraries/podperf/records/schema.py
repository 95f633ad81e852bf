"""The schema of records, and whether a document is one."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema

from podperf.metrics import METRICS, RATE, Metric, Quantity

SCHEMA_VERSION = 1
SCHEMA_PATH = Path(__file__).with_name("record.schema.json")


@functools.cache
def _validator(metrics: tuple[Metric, ...]) -> Any:
    draft = jsonschema.Draft202012Validator
    extend: Any = jsonschema.validators.extend
    quick = extend(draft, {"patternProperties": _pattern_properties, "$ref": _reference})
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    schema["properties"]["results"]["properties"] = schemas_of_results(metrics)
    return quick(schema)


def schemas_of_results(metrics: Iterable[Metric]) -> Mapping[str, Any]:
    """The schema of each metric's figure, by its name."""
    return {each.name: _schema_of(each.quantity) for each in metrics}


def _schema_of(quantity: Quantity) -> Mapping[str, Any]:
    if quantity is RATE:
        return {"$ref": "#/$defs/rate"}
    return {
        "type": "object",
        "required": [quantity.key, "lower_bound"],
        "properties": {quantity.key: {"type": "number"}, "lower_bound": {"type": "boolean"}},
        "additionalProperties": False,
    }


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any) -> Iterator[Any]:
    """The check of `patternProperties`, with a short cut for latency histograms: a run has 100 000 of their buckets."""
    counts = patterns.get("^[0-9]+$") == {"type": "integer", "minimum": 0} and isinstance(instance, dict)
    if counts and all(type(each) is int and each >= 0 for each in instance.values()):
        return
    yield from jsonschema.Draft202012Validator.VALIDATORS["patternProperties"](validator, patterns, instance, schema)


_SHARED = "#/$defs/environment"
_sound: set[str] = set()  # environments, as JSON


def _reference(validator: Any, reference: str, instance: Any, schema: Any) -> Iterator[Any]:
    """As the draft has it, but at once for an environment that was sound before: all tests of a run have the same."""
    errors = jsonschema.Draft202012Validator.VALIDATORS["$ref"](validator, reference, instance, schema)
    if reference != _SHARED:
        yield from errors
    elif (text := json.dumps(instance)) not in _sound:
        found = list(errors)
        if not found:
            _sound.add(text)
        yield from found


def schema_errors(document: Mapping[str, Any]) -> list[str]:
    """The errors of a document by the schema, one line each with the place. Empty for a valid record."""
    errors = sorted(_validator(tuple(METRICS.values())).iter_errors(document), key=lambda each: each.json_path)
    return [f"{each.json_path}: {each.message[:300]}" for each in errors]
