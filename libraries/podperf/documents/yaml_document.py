"""A YAML file as plain data, with the line of each key.

This module reads scalars by the core schema of YAML 1.2, as an editor with a YAML language server does: `on` and `no`
are text, 1e6 is a number, 010 is ten, and a MAC address without quotes stays text (YAML 1.1 reads some MAC addresses as
numbers of base 60). Duplicate keys are problems. Aliases are refused, because a few lines of them can expand to
gigabytes. Texts are checked here, before anything else reads them: none may steer the terminal of its reader.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import yaml

from podperf.closed_paths import read_regular
from podperf.errors import PodperfError
from podperf.printable import printable

MAX_FILE_BYTES = 100_000

Pointer = tuple[str | int, ...]  # keys and list positions from the top of the document to a value

_TAG = "tag:yaml.org,2002:"


def key_path(pointer: Pointer) -> str:
    """A pointer as people write it: `thresholds[0].metric`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in pointer).removeprefix(".")


@dataclass(frozen=True)
class Problem:
    """A problem in one line of a file. The first line is 1."""

    line: int
    key: str
    text: str

    def render(self, path: str) -> str:
        """One line of text: file, line, key, problem."""
        said = f"{self.key}: {self.text}" if self.key else self.text
        # A key may contain every character, also line ends.
        return f"{path}:{self.line}: {''.join(each if each.isprintable() else ascii(each)[1:-1] for each in said)}"


@dataclass(frozen=True)
class Document:
    """A parsed YAML file: `data` has the values, `lines` the line of each value, `texts` each scalar as written.

    `renamed` says where in the file a value stands that has another place in `data`.
    """

    path: str
    data: Mapping[str, Any]
    lines: Mapping[Pointer, int]
    texts: Mapping[Pointer, str]
    problems: Sequence[Problem]
    renamed: Mapping[Pointer, Pointer] = field(default_factory=dict)

    def line(self, pointer: Pointer) -> int:
        """The line of this key or list item. If the file does not have it, the line of the nearest one around it."""
        while pointer and pointer not in self.lines:
            pointer = pointer[:-1]
        return self.lines.get(pointer, 1)

    def problem(self, pointer: Pointer, text: str) -> Problem:
        """A problem at this place of the document."""
        return Problem(self.line(pointer), self.key(pointer), text)

    def key(self, pointer: Pointer) -> str:
        """The key of this place, as the file has it."""
        for length in range(1, len(pointer) + 1):
            if pointer[:length] in self.renamed:
                return key_path((*self.renamed[pointer[:length]], *pointer[length:]))
        return key_path(pointer)

    def shown(self, pointer: Pointer, value: object) -> str:
        """The value at this place for a message: as written, text in quotes, shortened to 60 characters."""
        match value:
            case None:
                return "nothing"
            case dict():
                return "a mapping"
            case list():
                return "a list"
            case str():
                return repr(value if len(value) <= 60 else value[:57] + "...")
            case _:
                return self.texts.get(pointer, str(value))[:60]


def read_yaml(path: Path) -> Document:
    """Read a YAML file whose top level is a mapping. PodperfError (one line) if the file is not such a file."""
    text = _read_text(path)
    try:
        root = _compose(text)
    except yaml.MarkedYAMLError as error:
        raise PodperfError(_syntax_problem(error, text).render(str(path))) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise PodperfError(f"{path}:{line}: the character U+{ord(text[error.position]):04X} is not allowed") from error
    except RecursionError as error:
        raise PodperfError(f"{path}: nested too deeply") from error
    if root is None:
        raise PodperfError(f"{path}:1: the file says nothing; allowed: a mapping such as `version: 1`")
    if not isinstance(root, yaml.MappingNode):
        line = root.start_mark.line + 1
        raise PodperfError(f"{path}:{line}: the top level is not a mapping; allowed: keys such as `version: 1`")
    reading = _Reading()
    data = reading.value(root, ())
    return Document(str(path), data, reading.lines, reading.texts, reading.problems)


def _read_text(path: Path) -> str:
    if path.is_dir():
        raise PodperfError(f"{path}: is a directory; allowed: a YAML file")
    if path.exists() and not path.is_file():
        raise PodperfError(f"{path}: is not a regular file; allowed: a YAML file")
    try:
        content = read_regular(path, MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise PodperfError(f"{path}: no such file; allowed: a YAML file") from None
    except OSError as error:
        raise PodperfError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise PodperfError(f"{path}: larger than the {MAX_FILE_BYTES} bytes that are read of a YAML file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PodperfError(
            f"{path}:{line}: byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from error


class _CoreLoader(yaml.SafeLoader):
    """Resolves plain scalars by the YAML 1.2 core schema, and refuses aliases."""

    yaml_implicit_resolvers: dict[str | None, Any] = {}  # noqa: RUF012 - replaces the table of YAML 1.1

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            alias = self.get_event()  # type: ignore[no-untyped-call, unused-ignore]
            raise yaml.composer.ComposerError(
                None, None, f"the alias *{alias.anchor} is not allowed; write the value out", alias.start_mark
            )
        return super().compose_node(parent, index)


for _name, _pattern in {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?",
}.items():
    _CoreLoader.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})\Z"), None)


def _compose(text: str) -> yaml.Node | None:
    loader = _CoreLoader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()  # type: ignore[no-untyped-call, unused-ignore]


def _syntax_problem(error: yaml.MarkedYAMLError, text: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    what = " ".join(filter(None, (error.problem, error.context))) or "not valid YAML"
    lines = text.splitlines()
    if line < len(lines) and "\t" in lines[line][: len(lines[line]) - len(lines[line].lstrip())]:
        return Problem(line + 1, "", "a tab in the indentation; indent with spaces")
    if "expected a single document" in what:
        return Problem(line + 1, "", "a second document (`---`); allowed: one document a file")
    return Problem(line + 1, "", f"column {column + 1}: {what}")


class _Reading:
    """Turns nodes into plain data, and collects lines, texts and problems."""

    def __init__(self) -> None:
        self.lines: dict[Pointer, int] = {(): 1}
        self.texts: dict[Pointer, str] = {}
        self.problems: list[Problem] = []

    def value(self, node: yaml.Node, pointer: Pointer) -> Any:
        if isinstance(node, yaml.MappingNode):
            return dict(self._members(node, pointer))
        if isinstance(node, yaml.SequenceNode):
            return [self._item(each, (*pointer, position)) for position, each in enumerate(node.value)]
        text = self.texts[pointer] = self._harmless(node, pointer)
        try:
            return _scalar(node.tag, text)
        except ValueError as error:
            self.problems.append(Problem(node.start_mark.line + 1, key_path(pointer), str(error)))
            return text

    def _harmless(self, node: yaml.Node, pointer: Pointer) -> str:
        """The text of a scalar, with codes for characters that steer a terminal, of which each is a problem.

        Reports and terminals show these texts. A shell runs some of them, so that podperf may not change them silently.
        """
        text = printable(node.value)
        if text != node.value:
            place = next(place for place, (one, other) in enumerate(zip_longest(text, node.value)) if one != other)
            found = (
                f"found a character that steers a terminal, {ascii(node.value[place])[1:-1]}; allowed: text without it"
            )
            self.problems.append(Problem(node.start_mark.line + 1, key_path(pointer), found))
        return text

    def _members(self, node: yaml.MappingNode, pointer: Pointer) -> Iterator[tuple[str, Any]]:
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem(line, key_path(pointer), "found a key that is not text; allowed: text"))
                continue
            key = self._harmless(key_node, pointer)
            inner = (*pointer, key)
            if inner in self.lines:
                first = self.lines[inner]
                self.problems.append(
                    Problem(line, key_path(inner), f"found a second time, first in line {first}; allowed: once")
                )
                continue
            self.lines[inner] = line
            yield key, self.value(value_node, inner)

    def _item(self, node: yaml.Node, pointer: Pointer) -> Any:
        self.lines[pointer] = node.start_mark.line + 1
        return self.value(node, pointer)


def _scalar(tag: str, text: str) -> Any:
    """The value of a scalar. ValueError if text and tag do not fit. A number that is too large stays text."""
    match tag.removeprefix(_TAG):
        case "str":
            return text
        case "null":
            return None
        case "bool" if text.lower() in {"true", "false"}:
            return text.lower() == "true"
        case "int" if len(text) < 1000:
            whole = int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
            return whole if abs(whole) <= sys.float_info.max else text
        case "float":
            number = float(text)
            return number if math.isfinite(number) else text
        case "int":
            return text
    raise ValueError(f"found the tag {tag.replace(_TAG, '!!')}; allowed: plain values without tags")
