"""Cleaning removes the leftovers of a killed run and takes the journal back, without knowledge of the journal's
content."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from podperf import cleanup
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.way_back import JOURNAL, WayBack, changes, takes_back
from scripted_host import ScriptedHost

NAMESPACES = "podperf-tester (id: 0)\npodperf-worker (id: 1)\nof-somebody\n"


class Machine(ScriptedHost):
    """A machine after a killed run: two namespaces, and the journal's entries."""

    def __init__(self) -> None:
        super().__init__(answers={"ip netns list": NAMESPACES, "ip netns pids": "17 18", "test -e": ""}, patient=True)
        self.journal = WayBack(self, ExitStack())

    def done(self) -> list[str]:
        """The commands that changed the machine, without those for the journal's own files."""
        return [
            command for command in self.commands if command.split()[0] in {"timeout", "kill"} or "netns del" in command
        ]


@takes_back
def port_back(host: Host, lost: bool) -> None:
    """Stands for a port's function."""
    if lost:
        raise PodperfError("there is no interface v0")
    host.do("timeout", "port-back")


def test_what_was_changed_last_is_put_back_first_between_processes_and_namespaces() -> None:
    """A device goes back to its driver before its port, and when no process has the device any more."""
    machine = Machine()
    machine.journal.note_call("ens4", port_back, {"lost": False}, in_namespace=True)
    machine.journal.note("hugepages", "pages-back")
    machine.journal.note("the driver of 0000:81:00.0", "driver-back")
    found = cleanup.put_back(machine)
    assert found[:5] == ["the driver of 0000:81:00.0", "hugepages", "ens4", "podperf-tester", "podperf-worker"]
    assert machine.done() == [
        "kill -KILL 17 18",
        "kill -KILL 17 18",
        "timeout 60 driver-back",
        "timeout 60 pages-back",
        "timeout port-back",
        "ip netns del podperf-tester",
        "ip netns del podperf-worker",
    ]
    assert changes(machine) == []


@pytest.mark.parametrize("keep", [False, True])
def test_what_cannot_be_put_back_is_said_once_unless_it_is_kept_for_the_next_time(keep: bool) -> None:
    """An entry that stayed in the journal would prevent every later run."""
    machine = Machine()
    machine.journal.note("the driver of 0000:81:00.0", "refuse")
    with pytest.raises(PodperfError, match=r"not everything is as it was before: the driver of 0000:81:00.0 \(no\)$"):
        cleanup.put_back(machine, keep=keep)
    assert (f"rm -rf {JOURNAL} /run/podperf" in machine.commands) is not keep
    assert [change.changed for change in changes(machine)] == (["the driver of 0000:81:00.0"] if keep else [])


@pytest.mark.parametrize("stuck", ["device", "port"])
def test_what_cannot_be_put_back_does_not_keep_the_rest_from_being(stuck: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the namespaces while one of them may have a port."""

    def broken(_: Host) -> None:
        raise PodperfError("no such device")

    monkeypatch.setattr(cleanup, "free_shared_memory", broken)
    machine = Machine()
    machine.journal.note_call("v0", port_back, {"lost": stuck == "port"}, in_namespace=True)
    machine.journal.note("driver", "refuse" if stuck == "device" else "driver-back")
    machine.journal.note("hugepages", "pages-back")
    with pytest.raises(PodperfError, match="no such device; on scripted host, not everything"):
        cleanup.put_back(machine, keep=True)
    assert "timeout 60 pages-back" in machine.commands
    removed = [command for command in machine.commands if "netns del" in command]
    assert len(removed) == (0 if stuck == "port" else 2)


@pytest.mark.parametrize("entry", ["[" * 100_000, '{"changed": "v0", "command": 7}'])
def test_a_bad_entry_is_one_line_and_keeps_nothing_from_being_put_back(entry: str) -> None:
    machine = Machine()
    machine.journal.note("hugepages", "pages-back")
    machine.files[f"{JOURNAL}/2"] = entry
    with pytest.raises(PodperfError) as error:
        cleanup.put_back(machine)
    assert str(error.value).count(f"{JOURNAL}/2 is no entry of podperf's journal: look at it, and delete it") == 1
    assert "timeout 60 pages-back" in machine.commands
    assert len([command for command in machine.commands if "netns del" in command]) == 2
    assert not machine.files, "so that the next clean has nothing to say"


def test_an_entry_of_another_version_keeps_the_namespace_that_may_have_a_port() -> None:
    """A virtual port would end with its namespace."""
    machine = Machine()
    machine.files[f"{JOURNAL}/1"] = json.dumps({"changed": "v0", "way": "new", "in_namespace": True})
    with pytest.raises(PodperfError, match="is no entry of podperf's journal"):
        cleanup.put_back(machine)
    assert not any("netns del" in command for command in machine.commands)


def test_a_second_clean_finishes_what_the_first_could_not() -> None:
    machine = Machine()
    machine.journal.note_call("v0", port_back, {"lost": True}, in_namespace=True)
    with pytest.raises(PodperfError, match="there is no interface v0"):
        cleanup.put_back(machine)
    assert not any("netns del" in command for command in machine.commands)
    assert cleanup.put_back(machine)[:2] == ["podperf-tester", "podperf-worker"]
