"""Root writes results, and imports code, at no path that another user can change."""

from __future__ import annotations

import grp
import os
import pwd
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from conftest import AS_OTHER_USER, GROUP, OTHER_USER
from podperf import closed_paths
from podperf.__main__ import main
from podperf.closed_paths import content_open_to_others, open_to_others, ways_to
from run_command import run as command_line

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


def give_by_list(path: Path, *entries: tuple[int, int, int], mask: int = 7) -> None:
    """An access control list with these entries: tag, permissions, number."""
    nobody = 0xFFFFFFFF
    whole = sorted([(1, 7, nobody), *entries, (4, 5, nobody), (0x10, mask, nobody), (0x20, 5, nobody)])
    packed = b"".join(struct.pack("<HHI", *each) for each in whole)
    try:
        os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + packed)
    except OSError as error:
        pytest.skip(f"this file system has no access control lists: {error}")


def shared(path: Path, how: str) -> None:
    """Let the attacker make files in a folder of root."""
    os.chown(path, 0, GROUP)
    if how == "user in a list":
        give_by_list(path, (2, 7, OTHER_USER))
    elif how == "group in a list":
        give_by_list(path, (8, 7, GROUP))
    else:
        path.chmod(int(how, 8))


@as_root
@pytest.mark.parametrize("how", ["775", "2775", "1777", "user in a list", "group in a list"])
@pytest.mark.parametrize("option", ["--outputdir", "--log", "--debugfile"])
def test_a_link_that_another_user_plants_makes_root_overwrite_nothing(
    how: str, option: str, reachable: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The attack with its real rights. Robot Framework would follow the link."""
    monkeypatch.setattr(command_line, "run_robot", lambda *_: (folder / name).write_text("<robot>") and 0)
    (folder := reachable / "shared").mkdir()
    victim = reachable / "victim"
    victim.write_text("precious")
    shared(folder, how)
    name = "output.xml" if option == "--outputdir" else "link"
    subprocess.run([*AS_OTHER_USER, "ln", "-s", victim, folder / name], check=True)
    given = [folder] if option == "--outputdir" else [folder / name, "--outputdir", reachable / "mine"]
    for _ in range(2):
        assert main(["--no-install", "run", option, *map(str, given)]) == 252
        (line,) = capsys.readouterr().err.splitlines()
        assert str(folder) in line
        assert line.endswith(f", and could have root overwrite any file: choose another {option}")
        (folder / name).unlink(missing_ok=True)  # he can put it there again, at any moment
    assert victim.read_text() == "precious"


@as_root
def test_a_link_from_an_earlier_time_is_found_in_a_folder_that_is_closed_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_line, "run_robot", lambda *_: pytest.fail("it ran"))
    (tmp_path / "records").symlink_to("/etc")
    os.chown(tmp_path / "records", OTHER_USER, OTHER_USER, follow_symlinks=False)
    assert main(["--no-install", "run", "--outputdir", str(tmp_path)]) == 252
    assert f"the user {OTHER_USER} owns {tmp_path}/records, and could have root" in capsys.readouterr().err


@as_root
def test_root_makes_no_folder_where_another_user_chooses(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "link").symlink_to("victim")
    os.chown(tmp_path / "link", OTHER_USER, OTHER_USER, follow_symlinks=False)
    (tmp_path / "victim").mkdir()
    assert main(["--no-install", "run", "--outputdir", str(tmp_path / "link" / "new")]) == 252
    assert not list((tmp_path / "victim").iterdir())


def test_a_folder_of_results_that_cannot_be_made_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["--no-install", "run", "--outputdir", str(tmp_path / "file" / "new")]) == 252
    assert capsys.readouterr().err == (
        f"podperf: cannot make {tmp_path}/file/new, the folder of results (Not a directory): "
        "name another one with --outputdir\n"
    )


# --- groups -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The user alice (1000) with her private group (1000), and two groups: of both users, and of alice alone."""
    users = {"root": (0, 0), "alice": (1000, 1000), "bob": (1001, 1001), "carol": (1002, 300)}
    known = [SimpleNamespace(pw_name=name, pw_uid=user, pw_gid=group) for name, (user, group) in users.items()]
    members = {100: ["alice", "bob"], 200: ["alice"], 300: ["alice"], 500: ["gone"]}
    monkeypatch.setattr(pwd, "getpwall", lambda: known)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: {each.pw_uid: each for each in known}[number])
    monkeypatch.setattr(pwd, "getpwnam", lambda name: {each.pw_name: each for each in known}[name])
    monkeypatch.setattr(
        grp, "getgrgid", lambda number: SimpleNamespace(gr_name=f"g{number}", gr_mem=members.get(number, ()))
    )
    closed_paths._members.cache_clear()
    yield
    closed_paths._members.cache_clear()


REMEDY = "chmod g-w ends that"
ALICE = {"SUDO_UID": "1000", "SUDO_GID": "1000"}


@as_root
@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize(
    ("group", "closed"), [(1000, True), (0, True), (200, True), (100, False), (300, False), (400, False), (500, False)]
)
def test_the_private_group_of_the_caller_of_sudo_is_no_other_user(group: int, closed: bool, tmp_path: Path) -> None:
    """With the umask 002 that Ubuntu gives users, all folders in a home have the mode 775."""
    (folder := tmp_path / "podperf" / "results").mkdir(parents=True)
    for each in (folder.parent, folder):
        os.chown(each, 1000, group)
        each.chmod(0o775)
    reason = open_to_others(folder, ALICE)
    assert reason == (None if closed else f"the members of the group g{group} can write to {folder.parent} ({REMEDY})")
    if group == 1000:
        assert open_to_others(folder, {}) == f"the user 1000 (alice) owns {folder.parent}", "for root's own run"
        os.chown(folder.parent, 0, 1001)
        assert (
            open_to_others(folder, ALICE) == f"the members of the group g1001 can write to {folder.parent} ({REMEDY})"
        )


@as_root
@pytest.mark.usefixtures("groups")
def test_an_access_control_list_counts_by_what_it_allows(tmp_path: Path) -> None:
    (folder := tmp_path / "folder").mkdir()
    give_by_list(folder, (2, 5, 1001), (8, 5, 100))  # reads only, as a web server may
    assert open_to_others(folder, ALICE) is None
    give_by_list(folder, (2, 7, 1001), mask=5)
    assert open_to_others(folder, ALICE) is None, "the mask takes it away"
    give_by_list(folder, (2, 7, 1000), (8, 7, 200))
    assert open_to_others(folder, ALICE) is None, "the caller"
    give_by_list(folder, (2, 7, 1001))
    assert (
        open_to_others(folder, ALICE)
        == f"the user 1001 (bob) can write to {folder} by its access control list ({REMEDY})"
    )
    give_by_list(folder, (8, 7, 100))
    assert open_to_others(folder, ALICE) == f"the members of the group g100 can write to {folder} ({REMEDY})"


# --- ways -------------------------------------------------------------------------------------------------------------


def test_all_links_of_a_chain_are_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "open" / "far").mkdir(parents=True)
    (tmp_path / "first").symlink_to("open/second")
    (tmp_path / "open" / "second").symlink_to(tmp_path / "third")
    (tmp_path / "third").symlink_to("open/far/../far")
    ways = ways_to(tmp_path / "first" / "output.xml")
    names = ["first", "open", "open/second", "third", "open", "open/far", "open/far", "open/far/output.xml"]
    assert [way for way in ways if tmp_path in way.parents and way in {tmp_path / name for name in names}] == [
        tmp_path / name for name in names
    ]


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    assert len(ways_to(tmp_path / "link")) < 100


@as_root
def test_a_link_in_the_middle_of_a_chain_is_not_overlooked(tmp_path: Path) -> None:
    (theirs := tmp_path / "theirs").mkdir()
    (mine := tmp_path / "mine").mkdir()
    (tmp_path / "first").symlink_to(theirs / "second")
    (theirs / "second").symlink_to(mine)
    assert open_to_others(tmp_path / "first", {}) is None
    os.chown(theirs, OTHER_USER, OTHER_USER)
    assert open_to_others(tmp_path / "first", {}) == f"the user {OTHER_USER} owns {theirs}"


@as_root
def test_a_folder_as_tmp_is_closed_above_a_folder_of_root_and_open_itself(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "mine").mkdir()
    assert open_to_others(tmp_path / "mine" / "new", {}) is None
    assert open_to_others(tmp_path, {}) == f"all users can write to {tmp_path}"
    assert open_to_others(tmp_path / "new", {}) == f"all users can write to {tmp_path}"
    assert open_to_others(tmp_path / "new.tar", {}, replaces=True) is None


@as_root
def test_all_that_is_in_a_folder_counts_also_behind_its_links(tmp_path: Path) -> None:
    package, elsewhere = tmp_path / "package", tmp_path / "elsewhere"
    for each in (package, elsewhere / "deep"):
        each.mkdir(parents=True)
    (elsewhere / "deep" / "code.py").touch()
    (package / "src").symlink_to(elsewhere)
    assert content_open_to_others(package, {}) is None
    (elsewhere / "deep" / "code.py").chmod(0o666)
    assert content_open_to_others(package, {}) == f"all users can write to {package}/src/deep/code.py"
    assert content_open_to_others(package, {}, depth=1) is None
    (elsewhere / "deep" / "code.py").chmod(0o644)
    (elsewhere / "deep").chmod(0o1777)  # a module of another user can stand beside the others
    assert content_open_to_others(package, {}) == f"all users can write to {package}/src/deep"
