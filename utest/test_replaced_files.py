"""Files that are replaced as a whole, in folders where others may write, too."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import made_up
from podperf.__main__ import main
from podperf.errors import ExitCode, PodperfError
from podperf.records import TestRecord, files
from podperf.records.files import replace_file
from podperf.report import command
from podperf.report import files as report_files
from podperf.report.files import write_file


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


@pytest.mark.parametrize("kind", ["a pipe", "a folder", "a device", "a link to a device"])
def test_nothing_but_a_file_is_replaced_by_a_file(kind: str, tmp_path: Path) -> None:
    """As root, `--openmetrics /dev/full` replaced the device for all programs of the machine."""
    path = tmp_path / "podperf.prom"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a device":
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 7))
        except PermissionError:
            pytest.skip("only root can make a device")
    else:
        path.symlink_to("/dev/full")
    before = path.lstat()
    with pytest.raises(PodperfError, match=r"podperf\.prom is no regular file; the records are untouched"):
        write_file(path, "text")
    assert (path.lstat().st_mode, path.lstat().st_ino) == (before.st_mode, before.st_ino)
    assert [*tmp_path.iterdir()] == [path]


def run_with_one_test(folder: Path, started: float) -> Path:
    made_up.write(folder, TestRecord("r", "A test", "s", ["sec-5"], started, started + 1, "passed"))
    return folder


def test_a_link_beside_results_leads_no_report_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever made the results can have put a link where the report of both would go."""
    elsewhere, evil = tmp_path / "elsewhere", tmp_path / "evil"
    elsewhere.mkdir()
    (elsewhere / "conformance.html").write_text("untouched")
    runs = [str(run_with_one_test(evil / name, started)) for name, started in (("a", 1.0), ("b", 2.0))]
    (evil / command.COMBINED).symlink_to(elsewhere)
    assert main(["report", *runs]) == ExitCode.NOT_DONE
    said = capsys.readouterr().err
    assert "evil/combined: it is a link; name another folder with --output" in said and said.count("\n") == 1
    assert [each.read_text() for each in elsewhere.iterdir()] == ["untouched"]
    assert main(["report", *runs, "--output", str(evil / command.COMBINED)]) == 0, "the user may name a link"
    assert "A test" in (elsewhere / "conformance.html").read_text()


def test_a_link_that_takes_the_place_of_a_folder_meanwhile_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, elsewhere, aside = tmp_path / "results", tmp_path / "elsewhere", tmp_path / "aside"
    elsewhere.mkdir()

    def replaced_first(path: Path, content: bytes) -> None:
        if not aside.exists():
            folder.rename(aside)
            folder.symlink_to(elsewhere)
        replace_file(path, content)

    monkeypatch.setattr(report_files, "replace_file", replaced_first)
    report_files.write_report(folder, "conformance", {}, "page")
    assert not [*elsewhere.iterdir()]
    assert sorted(each.name for each in aside.iterdir()) == ["conformance.html", "conformance.json"]
