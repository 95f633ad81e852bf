"""Checks a document by a JSON Schema (draft 2020-12). Each error names the value that was found and the allowed values.

The schema is also the only place with defaults: `with_defaults` fills them in.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators

from podperf.documents.yaml_document import Document, Pointer, Problem

Schema = Mapping[str, Any]


def suggestion(word: str, known: Iterable[object]) -> str:
    """`"; did you mean 'xdp'?"` if a known word is similar, else an empty text."""
    near = difflib.get_close_matches(word.lower(), [*map(str, known)], 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def schema_problems(document: Document, schema: Schema) -> dict[Pointer, Problem]:
    """The problems that the schema finds in the document: at most one for each place."""
    problems: dict[Pointer, Problem] = {}
    for error in _Validator(schema).iter_errors(document.data):
        for pointer, text in _explained(error, document):
            problems.setdefault(pointer, document.problem(pointer, text))
    return problems


def with_defaults(schema: Schema, value: Any, root: Schema | None = None) -> Any:
    """A copy of the value, with the schema's default for each missing key. Integers such as `5.0` are of type int."""
    root = root or schema
    schema = _resolved(schema, root)
    if isinstance(value, list) and "items" in schema:
        return [with_defaults(schema["items"], each, root) for each in value]
    if not isinstance(value, Mapping) or "properties" not in schema:
        return int(value) if schema.get("type") == "integer" and isinstance(value, float) else value
    filled = dict(value)
    for key, inner in schema["properties"].items():
        target = _resolved(inner, root)
        if key in filled or "default" in target:
            filled[key] = with_defaults(target, filled.get(key, target.get("default")), root)
    return filled


def _resolved(schema: Schema, root: Schema) -> Schema:
    reference = schema.get("$ref")
    return root["$defs"][reference.removeprefix("#/$defs/")] if reference else schema


def _full_match(_: Any, pattern: str, instance: Any, __: Schema) -> Iterator[ValidationError]:
    """Check `pattern` against the whole text. (In Python `$` also matches before a last line break.)"""
    if isinstance(instance, str) and not re.fullmatch(pattern, instance, re.ASCII):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


_Validator = validators.extend(  # type: ignore[no-untyped-call, unused-ignore]
    Draft202012Validator, {"pattern": _full_match}
)


def _explained(error: ValidationError, document: Document) -> Iterator[tuple[Pointer, str]]:
    pointer: Pointer = tuple(error.absolute_path)
    schema: Any = error.schema
    instance: Any = error.instance
    required: Any = error.validator_value
    if error.validator == "additionalProperties":
        known = schema["properties"]
        for key in instance:
            if key not in known:
                yield (*pointer, key), f"unknown key; allowed: {', '.join(known)}{suggestion(key, known)}"
    elif error.validator == "required":
        for key in required:
            if key not in instance:
                yield (*pointer, key), f"found nothing; allowed: {allowed(schema['properties'][key])}"
    else:
        text = f"found {document.shown(pointer, instance)}; allowed: {allowed(schema)}"
        if isinstance(instance, str) and "enum" in schema:
            text += suggestion(instance, schema["enum"])
        elif error.validator == "type" and isinstance(instance, bool | int | float) and "string" in schema["type"]:
            text += f"; as text it is '{document.texts.get(pointer, instance)}', in quotes"
        yield pointer, text


def allowed(schema: Schema) -> str:
    """The values that a schema allows, in words."""
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if choices:
        return ", ".join(map(str, choices))
    match schema.get("type"):
        case "object":
            keys = ", ".join(schema.get("properties", ()))
            return f"a mapping with the keys {keys}" if keys else "a mapping"
        case "array":
            return f"a list{_length(schema)}"
        case "boolean":
            return "true, false"
        case "integer" | "number" as kind:
            return f"{'an integer' if kind == 'integer' else 'a number'}{_range(schema)}"
    return str(schema.get("title") or "text")


def _length(schema: Schema) -> str:
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    if most is None:
        return f" of {least} or more" if least else ""
    if not least:
        return f" of at most {most}"
    return f" of {most}" if least == most else f" of {least} to {most}"


def _range(schema: Schema) -> str:
    above, least, most = (schema.get(each) for each in ("exclusiveMinimum", "minimum", "maximum"))
    up_to = "" if most is None else f", {most} or less"
    if above is not None:
        return f" above {above}{up_to}"
    if least is None:
        return up_to
    return f", {least} or more" if most is None else f" from {least} to {most}"
