"""The machines of a run. A session takes them for this run alone, and again after a lost connection."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Literal

from podperf.cleanup import put_back
from podperf.counted_machine.profile import Profiler
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh_login import Login, take_password
from podperf.progress import Progress
from podperf.records import set_aside
from podperf.run.booting import booted, prepared
from podperf.run.equipment import Equipment
from podperf.testbed.access import behind_ssh, lock, login_to, machines_of
from podperf.testbed.run_lock import RUN, RunLock
from podperf.topology import Topology

MachineRole = Literal["tester", "worker"]


class Session:
    """The topology and the results folder. From `open` to `close` also the machines, with the `equipment` on them."""

    equipment: Equipment

    def __init__(
        self, topology: Topology, results: Path, progress: Progress | None = None, password: str | None = None
    ) -> None:
        """podperf offers `password` to machines whose login in the topology is by password. The default is the password
        in the environment, which podperf removes from the environment in any case."""
        take_password()
        self.topology = topology
        self.results = results
        self.progress = progress or Progress()
        self.profiler: Profiler | None = None  # of the counted machine
        self._host = LocalHost()
        self._password = password
        self._machines: tuple[Host, ...] = ()  # of tester and workers
        self._losses: list[int] = []  # of the connections over SSH, counted when the machines were taken
        self._undo = ExitStack()

    def open(self) -> None:
        """Take all machines for this run alone, or none. Remove the leftovers of earlier runs."""
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the machines back. Safe to repeat."""
        self._undo.close()

    def _open(self) -> None:
        if self.topology.uses_this_machine and os.geteuid() != 0:
            raise PodperfError(
                "measuring on this machine needs root, for network namespaces and BPF programs: run it with sudo"
            )
        for line in self.topology.outdated:
            self.progress.note(line)
        self._undo.enter_context(RunLock(RUN, self.progress.note))
        if earlier := set_aside(self.results):
            self.progress.note(f"records of an earlier run lay in {self.results}; they are in {earlier.name} now")
        self._undo.callback(put_back, self._host, keep=True)  # for chains that a signal left behind
        for leftover in put_back(self._host):
            self.progress.note(f"removed what an earlier run left: {leftover}")
        self.topology, plugin = booted(self.topology, self._host, self.progress.note, self._undo)
        self._machines = machines_of(self.topology, self._host, self._undo, self._password)
        self.profiler = prepared(self.topology, plugin, self._machines[0])
        self._take_machines()

    def _take_machines(self) -> None:
        undo = self._undo.enter_context(ExitStack())
        self._give_machines_back = undo.close
        # Nobody else reaches a counted machine, and all that is on it goes with the run.
        others = () if self.topology.counts_instructions else behind_ssh(self._machines)
        for machine in others:
            lock(machine, undo, RUN, self.progress.note)
            undo.callback(put_back, machine, keep=True)  # as for this machine
            for leftover in put_back(machine):
                self.progress.note(f"removed what an earlier run left on {machine.name}: {leftover}")
        self.equipment = Equipment.on(self.topology, self._machines, self._host, undo)
        self._losses = [each.losses for each in behind_ssh(self._machines)]

    def login(self, machine: MachineRole, number: int = 1) -> Login:
        """The login that podperf uses on the tester's machine, or on a worker. `number` counts workers from the left.

        Raises PodperfError if there is no such machine, or if it is the machine that runs podperf.
        """
        tester, *workers = self._machines
        machines = [tester] if machine == "tester" else workers
        if not 1 <= number <= len(machines):
            raise PodperfError(f"there is no {machine} {number}: the testbed has {len(machines)}")
        return login_to(machines[number - 1])

    def take_lost_machines_again(self) -> None:
        """Log in again if a connection was lost. The lock has ended, but the set-up of a test is still there."""
        machines = behind_ssh(self._machines)
        if [each.losses for each in machines] != self._losses:
            self.progress.note("an SSH connection was lost: logging in again")
            for machine in machines:
                machine.log_in_again()
            with suppress(PodperfError):
                self._give_machines_back()
            self._take_machines()
