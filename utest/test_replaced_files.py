"""Files that are replaced as a whole, in folders where others may write, too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podperf.records import files
from podperf.records.files import replace_file


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "conformance.json"
    replace_file(path, b"old")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("planted", ["conformance.json", ".conformance.json.half", ".conformance.json.00.half"])
def test_a_planted_link_is_not_followed(planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even by one who knows the name of the file that is written first."""
    monkeypatch.setattr(files.secrets, "token_hex", lambda _: "00")
    victim, folder = tmp_path / "victim", tmp_path / "results"
    victim.write_text("untouched")
    folder.mkdir()
    (folder / planted).symlink_to(victim)
    if planted.endswith("00.half"):
        with pytest.raises(FileExistsError):
            replace_file(folder / "conformance.json", b"new")
    else:
        replace_file(folder / "conformance.json", b"new")
        assert (folder / "conformance.json").read_text() == "new"
    assert victim.read_text() == "untouched"


def test_two_who_write_at_once_each_write_a_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real_write = tmp_path / "conformance.json", os.write

    def write_while_another_does(file: int, content: bytes) -> int:
        monkeypatch.setattr(os, "write", real_write)
        replace_file(path, b"the other's")
        return real_write(file, content)

    monkeypatch.setattr(os, "write", write_while_another_does)
    replace_file(path, b"ours")
    assert path.read_bytes() == b"ours"
    assert list(tmp_path.iterdir()) == [path]
