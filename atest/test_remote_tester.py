"""A tester on another machine sends and counts there. Afterwards that machine is as before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from machine import once_as
from podperf.hosts.linux import add_veth, ip
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh import SshHost
from podperf.observation import State
from podperf.preflight.checks import check
from robot_run import Robot, mrr_suite, podperf
from ssh_machine import ADDRESS, SshMachine
from test_ssh import await_links, left_there, ports
from test_tester_contract import PYTHON, TREX


@pytest.fixture
def cabled(there: SshMachine) -> Iterator[SshMachine]:
    """The machine with two ports, which are cabled to two ports of this machine."""
    with ExitStack() as undo:
        for near, far in (("worker-left", "ens4"), ("worker-right", "ens5")):
            add_veth(LocalHost(), near=near, far=far, far_namespace=there.network.namespace, mtu=1500)
            undo.callback(ip, LocalHost(), "link", "del", near)
        await_links(there, "ens4", "ens5")
        yield there


def topology(there: SshMachine, *, cabled: bool, trials: int = 1, key: str = "user_key") -> str:
    """A topology with the tester on that machine. The worker is cabled to it: on this machine, or on that one."""
    address = {"address": ADDRESS, "key": f"{there.folder}/{key}", "known_hosts": f"{there.folder}/known_hosts"}
    behind_ssh = {"connection": "ssh", "ssh": address}
    cpus = os.sched_getaffinity(0)
    worker = {"connection": "local", **ports_of("worker-left", "worker-right")} if cabled else behind_ssh
    return json.dumps(  # JSON is YAML, too
        {
            "version": 1,
            "name": "sent-from-there",
            "tester": {**behind_ssh, "cpus": min(cpus), **(ports_of("ens4", "ens5") if cabled else {})},
            "workers": [{**worker, "cpus": max(cpus)}],
            "method": {"search": "quick", "mrr": {"trials": trials, "duration": 0.2}},
        }
    )


def ports_of(left: str, right: str) -> dict[str, object]:
    return {"ports": {"left": {"interface": left}, "right": {"interface": right}}}


def test_frames_are_sent_from_there_across_a_chain_here(cabled: SshMachine, tmp_path: Path) -> None:
    before = ports(cabled)
    robot = Robot(tmp_path, mrr_suite(tmp_path, MACVLAN="macvlan    1    64"), topology=topology(cabled, cabled=True))
    (record,) = robot.measured()
    assert record["outcome"] == "passed", record["reason"]
    assert record["results"]["mrr"]["frames_per_second"] > 1000
    assert record["placement"]["apart"]
    assert record["tester"]["ports"]["left"]["interface"] == "ens4"
    assert set(record["interfaces"]) == {"worker-left", "worker-right", "tester ens4", "tester ens5"}
    assert record["quietness"]["workers"][0]["cpus"] == record["placement"]["sut"]
    assert once_as(before, lambda: ports(cabled)) == before
    assert left_there(cabled) == []


@pytest.mark.slow
def test_tester_and_worker_may_be_one_machine_there(there: SshMachine, tmp_path: Path) -> None:
    before = ports(there)
    robot = Robot(tmp_path, mrr_suite(tmp_path, MACVLAN="macvlan    1    64"), topology=topology(there, cabled=False))
    (record,) = robot.measured()
    assert record["outcome"] == "passed", record["reason"]
    assert not record["placement"]["apart"]
    assert record["tester"]["ports"]["left"]["namespace"] == "podperf-tester"
    assert once_as(before, lambda: ports(there)) == before
    assert left_there(there) == []


def test_what_a_killed_run_left_there_the_next_one_removes(there: SshMachine, tmp_path: Path) -> None:
    robot = Robot(
        tmp_path, mrr_suite(tmp_path, MACVLAN="macvlan    1    64"), topology=topology(there, cabled=False, trials=1000)
    )
    robot.kill(after=2)
    assert "/run/netns/podperf-tester" in left_there(there)
    done = podperf("clean", str(tmp_path / "topology.yaml"))
    assert f"podperf-tester on {ADDRESS}" in done.stdout
    assert left_there(there) == []


@pytest.mark.skipif(TREX is None, reason="PODPERF_TREX names no TRex")
def test_a_trex_is_started_there_and_stopped_again(cabled: SshMachine, tmp_path: Path) -> None:
    with ExitStack() as undo:
        machine = SshHost(cabled.login)
        undo.callback(machine.close)
        in_there = ("ip", "-n", "trex-ports")
        machine.do("ip", "netns", "add", "trex-ports")
        undo.callback(machine.do, "ip", "netns", "del", "trex-ports")
        machine.do(*in_there, "link", "set", "lo", "up")
        for port in ("ens4", "ens5"):
            machine.do("ip", "link", "set", port, "netns", "trex-ports")
            undo.callback(machine.do, *in_there, "link", "set", port, "netns", str(cabled.server.pid))
            machine.do(*in_there, "link", "set", port, "up")
        lab = json.loads(topology(cabled, cabled=True))
        for port in lab["tester"]["ports"].values():
            port["namespace"] = "trex-ports"
        lab["tester"] |= {"type": "trex", "settings": {"server": {"directory": TREX}, "interpreter": PYTHON}}
        lab["tester"]["maximum_load"] = 20_000  # a tenth of the tester's rate on an idle CPU
        robot = Robot(tmp_path, "--test", "Linux bridge, 64 B", "tests", topology=json.dumps(lab))
        assert robot.wait(300) == 0, robot.output.read_text()
    (record,) = robot.records()
    assert record["outcome"] == "passed", record["reason"]
    assert record["tester"]["engine"] == "trex"
    assert record["placement"]["apart"]
    assert left_there(cabled) == []


def test_check_names_the_machines_and_what_they_can_do(cabled: SshMachine, tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(topology(cabled, cabled=True))
    observations = check(str(file))
    assert [(each.subject, each.state) for each in observations if each.area == "tester"] == [(ADDRESS, State.OK)]
    assert {each.state for each in observations if each.subject in {"tester ports", "worker ports"}} == {State.OK}
    assert any(each.area == "commands of the tester" for each in observations)
    file.write_text(topology(cabled, cabled=True, key="stranger_key"))
    (observation,) = [each for each in check(str(file)) if each.area == "tester"]
    assert observation.in_the_way
    assert "refuses the login" in observation.detail
