"""Every Python that podperf starts, here or on a worker, runs isolated. It imports nothing from the current folder."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_each_python_that_a_driver_starts() -> None:
    started = re.compile(r'\((?:"python3"|sys\.executable|(?:settings\.)?interpreter), ([^,)]+)')
    calls = [
        (path.name, argument)
        for path in (ROOT / "libraries").rglob("*.py")
        for argument in started.findall(path.read_text())
    ]
    assert len(calls) >= 5
    assert [call for call in calls if call[1] != '"-I"'] == []


def test_each_python_that_the_script_starts() -> None:
    script = (ROOT / "podperf").read_text()
    calls = re.findall(r'^.*"\$(?:venv/bin/)?python" (?!\]).*$', script, re.MULTILINE)
    assert len(calls) >= 4
    assert [call for call in calls if '"${isolated[@]}"' not in call and " -I " not in call] == []
    assert 'unset "${!PYTHON@}"' in script
