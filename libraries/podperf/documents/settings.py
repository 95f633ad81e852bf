"""Settings as dataclasses. Each field says by `setting` what its key means; the JSON Schema follows from the fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

Settings = TypeVar("Settings")

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def setting(
    title: str, description: str = "", *, default: Any = MISSING, is_path: bool = False, **keywords: Any
) -> Any:
    """A field of settings. Messages about wrong values have its `title`. `keywords` are further ones of JSON Schema.

    A setting without a default is required. A relative path begins at the folder of the file that has the settings.
    """
    schema = {"title": title, **({"description": description} if description else {}), **keywords}
    return field(default=default, metadata={"schema": schema, "is_path": is_path})


def schema_of(kind: type) -> Mapping[str, Any]:
    """The JSON Schema of an object with the settings of this dataclass. Its docstring has the title."""
    hints, own = get_type_hints(kind), fields(kind)
    keys = {each.name: {**_schema_of(hints[each.name]), **each.metadata["schema"]} for each in own}
    for each in own:
        if each.default is not MISSING and each.default is not None:
            keys[each.name]["default"] = {} if is_dataclass(each.default) else each.default
    required = [each.name for each in own if each.default is MISSING]
    head = {"title": str(kind.__doc__).split(".")[0], "type": "object", "additionalProperties": False}
    return {**head, **({"required": required} if required else {"default": {}}), "properties": keys}


def _schema_of(hint: Any) -> Mapping[str, Any]:
    kind = next((each for each in get_args(hint) if each is not NoneType), hint) if NoneType in get_args(hint) else hint
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if isinstance(kind, type) and is_dataclass(kind):
        return schema_of(kind)
    return {"type": _TYPES.get(kind, "array")}


def usual_settings(kind: type[Settings] | None) -> Settings | None:
    """The settings of this dataclass without a word of the user. None if there are none, or if one is required."""
    if kind is None or any(each.default is MISSING for each in fields(kind)):  # type: ignore[arg-type]
        return None
    return kind()


def settings_of(kind: type[Settings], values: Mapping[str, Any], folder: Path) -> Settings:
    """The settings from values that satisfy the schema and have its defaults."""
    given = dict(values)
    hints = get_type_hints(kind)
    for each in fields(kind):  # type: ignore[arg-type]
        value = given.get(each.name)
        if each.metadata["is_path"] and value is not None:
            given[each.name] = str(folder / Path(value).expanduser())
        elif isinstance(value, Mapping):
            parts = (hints[each.name], *get_args(hints[each.name]))
            inner: Any = next(part for part in parts if is_dataclass(part))
            given[each.name] = settings_of(inner, value, folder)
        elif isinstance(value, list):
            given[each.name] = tuple(value)
    return kind(**given)
