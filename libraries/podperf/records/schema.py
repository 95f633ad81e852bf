"""The schema of records, and whether a document is one."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs

from podperf.metrics import METRICS, RATE, Metric, Quantity

SCHEMA_VERSION = 2
SCHEMA_PATH = Path(__file__).with_name("record.schema.json")


@functools.cache
def _schema(metrics: tuple[Metric, ...]) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    schema["properties"]["results"]["properties"] = schemas_of_results(metrics)
    return schema


@functools.cache
def _quick(metrics: tuple[Metric, ...]) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(_schema(metrics))


@functools.cache
def _thorough(metrics: tuple[Metric, ...]) -> Any:
    return jsonschema.Draft202012Validator(_schema(metrics))


def schemas_of_results(metrics: Iterable[Metric]) -> Mapping[str, Any]:
    """The schema of each metric's figure, by its name."""
    return {metric.name: _schema_of(metric.quantity) for metric in metrics}


def _schema_of(quantity: Quantity) -> Mapping[str, Any]:
    if quantity is RATE:
        return {"$ref": "#/$defs/rate"}
    ends = [f"{end}_{quantity.key}" for end in ("low", "high")] if quantity.has_interval else []
    return {
        "type": "object",
        "required": [quantity.key, *ends, "lower_bound"],
        "properties": {
            quantity.key: {"type": "number"},
            **{end: {"type": ["number", "null"]} for end in ends},
            "lower_bound": {"type": "boolean"},
            "doubt": {"$ref": "#/$defs/doubt"},
        },
        "additionalProperties": False,
    }


def schema_errors(document: Mapping[str, Any]) -> list[str]:
    """The errors of a document by the schema, one line each with the place. Empty for a valid record.

    Two validators read the same schema. The first one is fast: it decides about the thousands of records of a history
    in a second. The second one looks only at documents that the first one does not accept, and has the words.
    """
    metrics = tuple(METRICS.values())
    if _is_valid(document, metrics):
        return []
    errors = sorted(_thorough(metrics).iter_errors(document), key=lambda each: each.json_path)
    return [f"{error.json_path}: {error.message[:300]}" for error in errors]


def _is_valid(document: Mapping[str, Any], metrics: tuple[Metric, ...]) -> bool:
    validator = _quick(metrics)  # a wrong schema is an error, and no invalid document
    try:
        return validator.is_valid(document)
    except ValueError:  # a value that JSON does not have, such as a tuple or NaN: the other validator names its place
        return False
