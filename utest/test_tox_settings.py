"""The stages of tox: the arguments behind `--` choose the tests."""

from __future__ import annotations

import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def collected(stage: str, *arguments: str) -> list[str]:
    """The files from which a stage takes tests when `podperf test -e STAGE -- ARGUMENTS` is called."""
    settings = ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")
    program, *words = settings[f"testenv:{stage}"]["commands"].split()
    assert program == "pytest"
    at = words.index("{posargs}")
    command = [sys.executable, "-m", "pytest", *words[:at], *arguments, *words[at + 1 :], "--collect-only", "-qq"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    return [line.split(": ")[0] for line in done.stdout.splitlines() if ".py: " in line]


@pytest.mark.parametrize(
    ("stage", "file"), [("utest", "utest/test_forecast.py"), ("atest", "atest/test_third_party.py")]
)
def test_a_file_behind_the_dashes_is_the_only_one(stage: str, file: str) -> None:
    assert collected(stage, file) == [file]
    assert collected(stage, "-x", file, "-p", "no:cacheprovider") == [file]


def test_without_a_file_a_stage_has_all_of_its_folder() -> None:
    files = collected("atest", "-k", "third_party or namespaces")
    assert {"atest/test_third_party.py", "atest/test_namespaces.py"} <= set(files)
    assert all(each.startswith("atest/") for each in files)
