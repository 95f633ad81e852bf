"""Each keyword has documentation, and its page can be built."""

from __future__ import annotations

from pathlib import Path

from make_keywords import make_pages

RESOURCE = """*** Settings ***
Documentation    Keywords of a test.

*** Keywords ***
Explained
    [Documentation]    It does nothing.
    No Operation

Not Explained
    No Operation
"""


def test_a_page_is_made_and_a_keyword_without_documentation_is_named(tmp_path: Path) -> None:
    source = tmp_path / "some.resource"
    source.write_text(RESOURCE)
    assert list(make_pages([source], tmp_path)) == ["some.Not Explained"]
    assert "It does nothing." in (tmp_path / "some.html").read_text()
