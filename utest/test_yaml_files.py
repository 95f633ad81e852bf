"""Every YAML file that users write, with every value changed: a mistake is a line, and no text steers a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_place import Place, changed, places
from podperf.documents.yaml_document import read_yaml
from podperf.errors import PodperfError
from podperf.experiments.comparison_files import COMPARISON_SCHEMA, load_comparison
from podperf.experiments.published import FOLDER, load_table
from podperf.history.acknowledgements import read_acknowledgements
from podperf.testbed.access import read_topology
from podperf.topology import SCHEMA_PATH
from test_damaged_records import dropped, replaced

COMPARISON = {
    **{"version": 1, "name": "x", "description": "two", "topology": "t.yaml", "metric": "mrr", "relevant_percent": 5},
    **{"rounds": 40, "trial_seconds": 0.5, "frame": 64, "flows": 2, "directions": "bidirectional"},
    "chain": {"data_plane": "linux-bridge", "pods": 2, "forwarder": "kernel", "workers": 1},
    "variants": [
        {"name": "without", "chain": {"data_plane": "ptp"}, "placement": {"scenario": "S1"}},
        {
            **{"name": "with", "placement": {"cpus": "2-5", "switch_cpus": "2"}},
            "hooks": [{"when": "after set-up", "in": "pod 1", "run": "nft add table x", "undo": "true"}],
        },
    ],
}
ACKNOWLEDGED = {
    "acknowledged": [
        {
            **{"test": "Linux*", "testbed": "local", "metric": "mrr", "at_most_percent": 5, "reason": "r"},
            "until": "2026-12-31",
        }
    ]
}
Reader = Callable[[Path], object]


@lru_cache
def documents() -> dict[str, tuple[Reader, Any]]:
    """The readers and the content of files of each kind."""
    found: dict[str, tuple[Reader, Any]] = {
        "comparison": (load_comparison, COMPARISON),
        "acknowledged": (read_acknowledgements, ACKNOWLEDGED),
        "published": (load_table, read_yaml(FOLDER / "appendix_c_multi_pod.yaml").data),
    }
    for path in SCHEMA_PATH.parent.glob("*.yaml"):
        found[path.stem] = (read_topology, read_yaml(path).data)
    return found


STEERING = ("\x1b]0;title\x07", "\x1b[2J", "\u202egnp.exe", "\ud800", "\x00", "\x9b31m", "\u2028b")
VALUES = (None, True, -1, 1e30, 10**400, 0.5, "", "text", "9" * 10_000, [], [None], ["text"], {}, {"a": 1})
CHANGES = (dropped, *map(replaced, VALUES))
PLACES = [(kind, place) for kind, (_, document) in documents().items() for place in places(document)]


def problems_of(reader: Reader, path: Path, document: Any) -> list[str]:
    """The lines of the error. Empty if the file is read. Any other exception is a traceback for the user."""
    path.write_text(json.dumps(document))  # YAML reads JSON, with its escapes
    try:
        reader(path)
    except PodperfError as error:
        said = str(error).splitlines()
        assert said and all(each.isprintable() for each in said)
        return said
    return []


@given(st.sampled_from(PLACES), st.sampled_from(CHANGES))
@settings(max_examples=250, deadline=None)
def test_a_change_of_any_value_is_read_or_is_a_line(
    tmp_path_factory: pytest.TempPathFactory, where: tuple[str, Place], change: Callable[[Any, str | int], None]
) -> None:
    kind, place = where
    reader, document = documents()[kind]
    problems_of(reader, tmp_path_factory.getbasetemp() / f"{kind}.yaml", changed(document, place, change))


@pytest.mark.parametrize("kind", documents())
def test_a_text_that_steers_a_terminal_is_a_mistake_wherever_it_stands(kind: str, tmp_path: Path) -> None:
    """It is a mistake and not shown as a code, because commands of hooks and paths must stay as they are."""
    reader, document = documents()[kind]
    texts = [place for place in places(document) if isinstance(value_at(document, place), str)]
    for number, place in enumerate(texts):
        steering = STEERING[number % len(STEERING)]
        said = problems_of(reader, tmp_path / "file.yaml", changed(document, place, replaced(f"x{steering}")))
        code = ascii(steering)[1:-1]
        assert any("a character that steers a terminal" in each for each in said), (place, said)
        assert any(code[:4] in each for each in said), (place, said)


@pytest.mark.parametrize("steering", STEERING)
def test_a_key_that_steers_a_terminal_is_a_mistake(steering: str, tmp_path: Path) -> None:
    said = problems_of(load_comparison, tmp_path / "c.yaml", {**COMPARISON, steering: 1})
    assert any("a character that steers a terminal" in each for each in said)


def test_words_of_every_language_are_kept(tmp_path: Path) -> None:
    words = "näïve, 試験, 5\u202f%, עברית;\n\tsecond line"
    (tmp_path / "c.yaml").write_text(json.dumps({**COMPARISON, "description": words, "topology": "local.yaml"}))
    document = read_yaml(tmp_path / "c.yaml")
    assert document.data["description"] == words and not document.problems


@pytest.mark.parametrize("schema", [COMPARISON_SCHEMA, SCHEMA_PATH], ids=lambda path: path.stem)
def test_a_text_in_place_of_each_list_and_mapping_says_what_belongs_there(schema: Path, tmp_path: Path) -> None:
    for kind, (reader, document) in documents().items():
        if (reader is load_comparison) is (schema == COMPARISON_SCHEMA):
            for place in places(document):
                if isinstance(value_at(document, place), list | dict):
                    said = problems_of(reader, tmp_path / "f.yaml", changed(document, place, replaced("text")))
                    assert any("allowed: " in each for each in said), (kind, place, said)


def test_hooks_that_are_no_list_say_so(tmp_path: Path) -> None:
    wrong = {**COMPARISON, "variants": [{"name": "without"}, {"name": "with", "hooks": "nft add table x"}]}
    said = problems_of(load_comparison, tmp_path / "c.yaml", wrong)
    assert any("variants[1].hooks: found 'nft add table x'; allowed: a list of at most 32" in each for each in said), (
        said
    )


def value_at(document: Any, place: Place) -> Any:
    """The value there."""
    for step in place:
        document = document[step]
    return document
