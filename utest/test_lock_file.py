"""The lock file names, with hashes, what requirements.txt asks for. The tests run with the locked versions."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK = (ROOT / "requirements.lock").read_text()
LOCKED = [Requirement(line.removesuffix("\\")) for line in re.findall(r"^\w.*==.*$", LOCK, re.MULTILINE)]
PINNED = {canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in LOCKED}
HERE = [each for each in LOCKED if each.marker is None or each.marker.evaluate()]


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


@pytest.mark.parametrize("locked", HERE, ids=str)
def test_the_tests_run_with_the_locked_version(locked: Requirement) -> None:
    """With another one, users would get versions that no test has seen."""
    assert version(locked.name) in locked.specifier
