"""A run loses its worker. The test fails with the reason, and the next test finds the worker in order."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import closing
from pathlib import Path

import pytest

from machine import once_as
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh import SshHost
from podperf.testbed.run_lock import FILE
from robot_run import Robot, mrr_suite
from ssh_machine import SHORT_TIMEOUTS, SshMachine
from test_ssh import lab, left_there, ports, topology  # noqa: F401 - lab is a fixture


def cut_connections(machine: SshMachine) -> None:
    """Kill the SSH server's processes for those who are logged in, as a reboot does."""
    children = LocalHost().ask("ps", "--no-headers", "-o", "pid", "--ppid", str(machine.server.pid)).stdout.split()
    assert children
    for process in children:
        os.kill(int(process), signal.SIGKILL)


def fall_silent(machine: SshMachine) -> None:
    """Drop all packets for longer than podperf needs to notice."""
    machine.drop_packets()
    time.sleep(SHORT_TIMEOUTS.lost + 2)
    machine.let_packets_in()


@pytest.mark.slow
@pytest.mark.parametrize("lose", [cut_connections, fall_silent])
def test_the_test_fails_and_the_next_one_passes(lab: SshMachine, tmp_path: Path, lose: object) -> None:  # noqa: F811
    assert callable(lose)
    before = ports(lab)
    suite = mrr_suite(tmp_path, PTP="ptp    1    64", MACVLAN="macvlan    1    64")
    shortened = ("--listener", str(Path(__file__).with_name("short_timeouts.py")))
    robot = Robot(tmp_path, *shortened, suite, topology=topology(lab, trials=20))
    robot.wait_for("PTP | offered load ")
    lose(lab)
    robot.wait_for("[2/2]")
    robot.wait_for("MACVLAN | offered load ")
    with closing(SshHost(lab.login)) as host:
        assert host.ask("flock", "--nonblock", FILE, "true", check=False).exit_code, "the worker is locked again"
    assert robot.wait() == 1, robot.output.read_text()
    first, second = sorted(robot.records(), key=lambda each: str(each["started"]))
    assert first["outcome"] == "failed"
    assert re.search("SSH connection to .* was lost|no answer from", first["reason"]), first["reason"]
    assert second["outcome"] == "passed", second["reason"]
    assert "an SSH connection was lost: logging in again" in robot.output.read_text()
    assert once_as(before, lambda: ports(lab)) == before
    assert left_there(lab) == []
