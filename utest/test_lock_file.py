"""The lock file has the packages of requirements.txt, with hashes."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK = (ROOT / "requirements.lock").read_text()
PINNED = {
    canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", LOCK, re.MULTILINE)
}


def test_what_is_locked_satisfies_the_requirements() -> None:
    wanted = [Requirement(line) for line in (ROOT / "requirements.txt").read_text().splitlines()]
    assert [
        f"{each}, locked: {PINNED.get(canonicalize_name(each.name))}"
        for each in wanted
        if PINNED.get(canonicalize_name(each.name)) not in each.specifier
    ] == []


def test_everything_that_is_locked_has_hashes() -> None:
    entries = re.split(r"^(?=[\w.-]+==)", LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) == len(PINNED) > 9
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_documentation_says_how_the_lock_file_is_made() -> None:
    command = LOCK.splitlines()[1].removeprefix("#").strip()
    assert command.startswith("uv pip compile --universal --generate-hashes ")
    assert command in (ROOT / "docs" / "installation.md").read_text()
