"""The journal of a machine: the last change is taken back first, also after a kill or after somebody else's changes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from killed import run_and_kill
from podperf.errors import PodperfError
from podperf.hosts.base import Completed, Host
from podperf.hosts.local import LocalHost
from podperf.hosts.way_back import (
    NotedChange,
    Thing,
    WayBack,
    changes,
    existing_interface,
    existing_namespace,
    existing_path,
    go_back,
    inside,
    takes_back,
)
from scripted_host import ScriptedHost

GONE = {
    "namespace": existing_namespace("podperf-no-such"),
    "interface": existing_interface("no-such-if"),
    "interface of a namespace that is gone": existing_interface("lo", "podperf-no-such"),
    "cgroup": existing_path("/sys/fs/cgroup/podperf-no-such"),
    "process": existing_path(f"/proc/{2**22 + 1}"),  # more than Linux has (kernel.pid_max)
}
THERE = {
    "interface": existing_interface("lo"),
    "cgroup": existing_path("/sys/fs/cgroup"),
    "process": existing_path(f"/proc/{os.getpid()}"),
    "nothing that could go away": (),
}


def note(journal: Path, thing: Thing, *back: str) -> None:
    """An entry of a run that was killed before it took the change back."""
    with ExitStack() as undo:
        WayBack(LocalHost(), undo, str(journal)).note("something", *back, of=thing)
        undo.pop_all()


def adds(line: str, file: Path) -> Sequence[str]:
    """A command that adds a line to a file."""
    return ("sh", "-c", 'echo "$1" >>"$2"', "sh", line, str(file))


# --- in the run that made the changes ---------------------------------------------------------------------------------


def test_the_last_change_is_taken_back_first() -> None:
    host = ScriptedHost(patient=True)
    with ExitStack() as undo:
        way_back = WayBack(host, undo, "/j")
        way_back.note("one", "first")
        way_back.note("two", "second")
        assert [change.changed for change in changes(host, "/j")] == ["one", "two"]
    assert [command.split()[-1] for command in host.commands if not command.startswith("ls")] == [
        "second",
        "/j/2",
        "first",
        "/j/1",
        "/j",
    ]
    assert host.files == {}
    assert go_back(host, "/j") == []


def test_one_that_cannot_be_taken_back_is_named_and_keeps_no_other() -> None:
    host = ScriptedHost(patient=True)
    undo = ExitStack()
    way_back = WayBack(host, undo, "/j")
    way_back.note("the first thing", "first")
    way_back.note("the second thing", "refuse")
    said = r"on scripted host, not everything is as it was before: the second thing \(no\)$"
    with pytest.raises(PodperfError, match=said):
        undo.close()
    assert any(command.endswith("first") for command in host.commands)
    assert changes(host, "/j") == [NotedChange("the second thing", ["refuse"])], "for podperf clean"


def test_what_an_earlier_set_up_could_not_take_back_is_left_to_the_next_clean() -> None:
    host = ScriptedHost({"/j/1": json.dumps({"changed": "what was before", "command": ["back"]})}, patient=True)
    with ExitStack() as undo:
        WayBack(host, undo, "/j").note("the same again", "again")
        assert [change.changed for change in changes(host, "/j")] == ["what was before", "the same again"]
    assert [change.changed for change in changes(host, "/j")] == ["what was before"]
    assert go_back(host, "/j") == ["what was before"]
    assert host.files == {}


def test_who_is_not_root_leaves_the_changes_of_roots_runs_alone() -> None:
    entry = json.dumps({"changed": "a port", "command": ["back"]})
    host = ScriptedHost({"/run/j/1": entry}, refused={"test -w /run": ""}, patient=True)
    assert go_back(host, "/run/j") == [] and list(host.files) == ["/run/j/1"]
    assert not any("back" in command for command in host.commands)


def test_set_ups_side_by_side_take_back_their_own_and_a_clean_takes_back_all_in_order() -> None:
    """As a port that a worker's set-up takes, and the driver that a data plane gives to the port."""
    host = ScriptedHost(patient=True)
    port, driver = ExitStack(), ExitStack()
    ports = WayBack(host, port, "/j")
    drivers = WayBack(host, driver, "/j")
    ports.note("port", "port-back")
    drivers.note("driver", "driver-back")
    ports.note("queues", "queues-back")
    killed = ScriptedHost(host.files, patient=True)
    driver.close()
    assert [change.changed for change in changes(host, "/j")] == ["port", "queues"]
    assert go_back(killed, "/j") == ["queues", "driver", "port"]


def test_an_entry_can_be_replaced_in_its_place() -> None:
    host = ScriptedHost(patient=True)
    way_back = WayBack(host, ExitStack(), "/j")
    first = way_back.note_call("port", _told, {"what": "a"})
    way_back.note("driver", "driver-back")
    assert way_back.note_call("port", _told, {"what": "b"}, instead_of=first) == first
    assert [(change.changed, change.arguments) for change in changes(host, "/j")] == [
        ("port", {"what": "b"}),
        ("driver", {}),
    ]


# --- after a kill -----------------------------------------------------------------------------------------------------


def test_a_kill_between_entry_and_change_leaves_an_entry_that_does_no_harm(tmp_path: Path) -> None:
    journal, changed = tmp_path / "journal", tmp_path / "changed"
    run_and_kill(
        "from contextlib import ExitStack",
        "from podperf.hosts.local import LocalHost",
        "from podperf.hosts.way_back import WayBack",
        "WayBack(LocalHost(), ExitStack(), sys.argv[1]).note('a file', 'rm', '-f', sys.argv[2])",
        arguments=(str(journal), str(changed)),
    )
    assert not changed.exists()
    assert go_back(LocalHost(), str(journal)) == ["a file"]
    assert not journal.exists()


@pytest.mark.parametrize("after", range(1, 9))
def test_a_kill_in_the_middle_of_a_clean_costs_nothing(tmp_path: Path, after: int) -> None:
    """At each of its commands. The change that is just taken back may be taken back twice."""
    journal, log = tmp_path / "journal", tmp_path / "log"
    way_back = WayBack(LocalHost(), ExitStack(), str(journal))
    for line in ("one", "two", "three"):
        way_back.note(line, *adds(line, log))
    with pytest.raises(KeyboardInterrupt):
        go_back(Killed(after), str(journal))
    go_back(LocalHost(), str(journal))
    assert list(dict.fromkeys(log.read_text().split())) == ["three", "two", "one"]
    assert len(log.read_text().split()) <= 4
    assert not journal.exists() or not list(journal.iterdir())
    assert go_back(LocalHost(), str(journal)) == []


class Killed(LocalHost):
    """This machine. podperf is killed after `after` commands."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._left = after

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        done = super()._run(*command, stdin=stdin, check=check, timeout=timeout)
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt
        return done


def test_a_half_written_entry_is_none(tmp_path: Path) -> None:
    """A kill while the entry was written: the change was not made yet."""
    note(tmp_path, (), "true")
    (tmp_path / "2.new").write_text('{"changed": "half')
    assert go_back(LocalHost(), str(tmp_path)) == ["something"]


def test_entries_of_many_digits_are_in_their_order() -> None:
    host = ScriptedHost(patient=True)
    way_back = WayBack(host, ExitStack(), "/j")
    for number in range(12):
        way_back.note(str(number), "back")
    assert go_back(host, "/j") == [str(number) for number in reversed(range(12))]


# --- things that are gone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("thing", GONE.values(), ids=GONE)
def test_a_change_of_something_that_is_gone_is_off_the_record(thing: Thing, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = tmp_path / "done"
    note(folder, (), "touch", str(done))
    note(folder, thing, "false")
    assert go_back(LocalHost(), str(folder))
    assert done.exists(), "the others are put back all the same"
    assert not folder.exists()


@pytest.mark.parametrize("thing", THERE.values(), ids=THERE)
def test_a_change_of_something_that_is_there_stays_on_record(thing: Thing, tmp_path: Path) -> None:
    note(tmp_path, thing, "sh", "-c", "echo no >&2; exit 1")
    for _ in range(2):
        with pytest.raises(PodperfError, match=r"not everything is as it was before: something \(no\)$"):
            go_back(LocalHost(), str(tmp_path))


def test_whether_a_thing_is_there_is_asked_only_where_its_change_cannot_be_taken_back(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    note(tmp_path / "run", ("touch", str(asked)), "true")
    assert go_back(LocalHost(), str(tmp_path / "run"))
    assert not asked.exists()


def test_where_nobody_can_tell_whether_it_is_there_it_stays_on_record(tmp_path: Path) -> None:
    note(tmp_path, ("no-such-command",), "false")
    with pytest.raises(PodperfError, match=r"something \(on this machine, `no-such-command` is not installed\)"):
        go_back(LocalHost(), str(tmp_path))


def test_a_command_for_a_namespace_that_is_gone_finds_its_device_in_the_machines_own_network() -> None:
    assert LocalHost().ask(*inside("podperf-no-such", "echo", "one", "two words")).stdout == "one two words\n"


# --- functions --------------------------------------------------------------------------------------------------------


@takes_back
def _told(host: Host, what: str) -> None:
    if what == "wrong":
        raise PodperfError("it is lost")
    host.do("told", what)


def test_a_function_of_podperf_takes_a_change_back() -> None:
    host = ScriptedHost(patient=True)
    WayBack(host, ExitStack(), "/j").note_call("port", _told, {"what": "ens4"})
    assert go_back(host, "/j") == ["port"]
    assert "told ens4" in host.commands


def test_a_function_that_cannot_take_a_change_back_says_why() -> None:
    host = ScriptedHost(patient=True)
    WayBack(host, ExitStack(), "/j").note_call("port", _told, {"what": "wrong"})
    with pytest.raises(PodperfError, match=r"not everything is as it was before: port \(it is lost\)$"):
        go_back(host, "/j")
    assert len(changes(host, "/j")) == 1


@pytest.mark.parametrize(
    "function", ["podperf.hosts.way_back:go_back", "podperf.no_such:undo", "os:abort", ":", ".a:b"]
)
def test_a_function_that_takes_nothing_back_is_named_and_not_called(function: str) -> None:
    """Another version of podperf wrote the entry, or a worker that wants to run Python code here."""
    host = ScriptedHost({"/j/1": json.dumps({"changed": "port", "function": function})}, patient=True)
    with pytest.raises(PodperfError, match=rf"port \(this version of podperf has no {function}\)$"):
        go_back(host, "/j")


def test_a_module_that_is_not_podperfs_is_not_imported_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "anybodys.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    host = ScriptedHost({"/j/1": json.dumps({"changed": "port", "function": "anybodys:undo"})}, patient=True)
    with pytest.raises(PodperfError, match="this version of podperf has no anybodys:undo"):
        go_back(host, "/j")
    assert "anybodys" not in sys.modules


# --- entries of somebody else, or of another version ------------------------------------------------------------------

SOUND = json.dumps({"changed": "hugepages", "command": ["told"]})


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "[]",
        "{}",
        "\xff",
        "[" * 100_000,
        '{"changed": ' + "[" * 100_000,
        '{"changed": ' + "1" * 5000 + "}",
        '{"changed": "port"}',
        '{"changed": 7, "command": ["true"]}',
        '{"changed": "port", "more": 1, "command": ["true"]}',
        '{"changed": "port", "command": 7}',
        '{"changed": "port", "command": "true"}',
        '{"changed": "port", "command": [7]}',
        '{"changed": "port", "command": ["true"], "of": {"a": 1}}',
        '{"changed": "port", "function": 7}',
        '{"changed": "port", "function": "a:b", "arguments": [1]}',
        '{"changed": "port", "command": ["true"], "in_namespace": "yes"}',
    ],
    ids=lambda entry: entry[:60],
)
def test_an_entry_that_is_none_keeps_no_other_from_being_taken_back(entry: str) -> None:
    host = ScriptedHost({"/j/1": SOUND, "/j/2": entry}, patient=True)
    with pytest.raises(PodperfError) as error:
        go_back(host, "/j")
    assert str(error.value) == (
        "on scripted host, not everything is as it was before: "
        "/j/2 is no entry of podperf's journal: look at it, and delete it"
    )
    assert any("told" in command for command in host.commands)
    assert list(host.files) == ["/j/2"]


def test_an_entry_that_another_process_took_back_meanwhile_is_no_failure(tmp_path: Path) -> None:
    class Slow(LocalHost):
        """A machine where the entry goes between the list of the journal and the look at it."""

        def get(self, path: str, assumed: bytes | None = None) -> bytes:
            Path(path).unlink()
            return super().get(path, assumed)

    (tmp_path / "1").write_text('{"changed": "a thing", "command": ["false"]}')
    assert go_back(Slow(), str(tmp_path)) == []


def test_an_entry_that_is_a_folder_keeps_no_other_from_being_taken_back(tmp_path: Path) -> None:
    note(tmp_path, (), "true")
    (tmp_path / "2").mkdir()
    said = f"{tmp_path}/2 is no entry of podperf's journal: look at it, and delete it$"
    with pytest.raises(PodperfError, match=said):
        go_back(LocalHost(), str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["2"]


@pytest.mark.parametrize("name", ["\u0663", "\u00b2", "03", "3" * 5000, "-3"])
def test_a_file_whose_name_podperf_does_not_give_is_no_entry(name: str) -> None:
    host = ScriptedHost({"/j/1": SOUND, f"/j/{name}": SOUND}, patient=True)
    assert go_back(host, "/j") == ["hugepages"]


@pytest.mark.parametrize("arguments", [{}, {"what": "port", "more": 1}, {"host": "a"}, {"other": "port"}])
def test_arguments_of_another_version_are_named_and_keep_no_other_from_being_taken_back(arguments: object) -> None:
    """An update between a kill and a clean can change what a function takes."""
    entry = {"changed": "port", "function": f"{_told.__module__}:_told", "arguments": arguments}
    host = ScriptedHost({"/j/1": SOUND, "/j/2": json.dumps(entry)}, patient=True)
    with pytest.raises(PodperfError, match=r"before: port \(/j/2 is of another version of podperf: .*\)$"):
        go_back(host, "/j")
    assert list(host.files) == ["/j/2"]


@pytest.mark.parametrize("command", [["told\0more"], ["told", "\ud800"]])
def test_a_command_that_no_machine_can_run_is_named(command: list[str], tmp_path: Path) -> None:
    note(tmp_path, (), "true")
    (tmp_path / "2").write_text(json.dumps({"changed": "port", "command": command}))
    with pytest.raises(PodperfError, match=r"before: port \(/j/2 .*: \w+Error: .*\)$".replace("/j", str(tmp_path))):
        go_back(LocalHost(), str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["2"]


def test_a_function_that_stumbles_over_its_arguments_is_named() -> None:
    """As that of a port, which takes whatever it is given."""
    function = "podperf.testbed.worker_ports:give_back"
    entry = {"changed": "ens4", "function": function, "arguments": {"interface": "ens4", "no_such": 1}}
    host = ScriptedHost({"/j/1": SOUND, "/j/2": json.dumps(entry)}, patient=True)
    with pytest.raises(PodperfError, match=r"before: ens4 \(/j/2 cannot be taken back: TypeError: .*no_such.*\)$"):
        go_back(host, "/j")
    assert list(host.files) == ["/j/2"]
