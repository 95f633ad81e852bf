"""Other Python packages add parts to podperf. A broken package only makes its own parts unusable."""

from __future__ import annotations

from pathlib import Path

import pytest

from podperf.third_party import with_third_party


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with four entry points. Two of them can be used."""
    (tmp_path / "acme.py").write_text("FAST, SLOW = 'fast', 'slow'\n")
    (tmp_path / "acme_broken.py").write_text("raise OSError('no licence')\n")
    installed = tmp_path / "acme-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[podperf.tests]\nslow = acme:SLOW\nfast = acme:FAST\nours = acme:FAST\nbroken = acme_broken:IT\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("package")
def test_parts_of_a_package_stand_behind_our_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(with_third_party("podperf.tests", {"ours": "ours"}).items()) == [
        ("ours", "ours"),
        ("fast", "fast"),
        ("slow", "slow"),
    ]
    assert capsys.readouterr().err.splitlines() == [
        "podperf: broken (podperf.tests) of the package acme is left out: OSError: no licence",
        "podperf: ours (podperf.tests) of the package acme is left out: there is another part of this name",
    ]


def test_without_such_a_package_there_is_nothing_to_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert with_third_party("podperf.tests", {"ours": 1}) == {"ours": 1}
    assert not capsys.readouterr().err
