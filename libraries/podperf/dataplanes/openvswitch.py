"""An Open vSwitch of a run's own: private database and run directory, nothing shared with one that the host runs."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
START_TIMEOUT = 10.0  # seconds; ovs-vswitchd answers after 0.2 to 1 s


class OpenVSwitch:
    """ovsdb-server and ovs-vswitchd of one set-up, in the host's network."""

    def __init__(self, host: Host, directory: str, undo: ExitStack) -> None:
        self._host, self._directory = host, directory
        self._database = f"{directory}/db.sock"
        self._control = f"{directory}/vswitchd.ctl"
        host.run("mkdir", "-p", directory)
        host.run("ovsdb-tool", "create", f"{directory}/conf.db", SCHEMA)
        server = host.spawn(
            "env",
            *self._environment,
            "ovsdb-server",
            f"{directory}/conf.db",
            f"--remote=punix:{self._database}",
            f"--unixctl={directory}/ovsdb.ctl",
        )
        undo.callback(server.stop)
        self._await(server, "ovs-appctl", "-t", f"{directory}/ovsdb.ctl", "version")
        self.vsctl("--no-wait", "init")
        switch = host.spawn("env", *self._environment, "ovs-vswitchd", self._remote, f"--unixctl={self._control}")
        undo.callback(switch.stop)
        self._await(switch, "ovs-appctl", "-t", self._control, "version")

    @property
    def _environment(self) -> list[str]:
        return [f"OVS_RUNDIR={self._directory}", f"OVS_LOGDIR={self._directory}", f"OVS_DBDIR={self._directory}"]

    @property
    def _remote(self) -> str:
        return f"unix:{self._database}"

    def _await(self, process: Process, *command: str) -> None:
        # `timeout` bounds the wait; the shell asks again until the daemon answers.
        done = self._host.run(
            *("timeout", str(START_TIMEOUT), "sh", "-c", 'until "$@" >/dev/null 2>&1; do sleep 0.05; done', "sh"),
            *command,
            check=False,
        )
        if done.exit_code != 0 or not process.alive():
            raise PodperfError(f"Open vSwitch did not start on {self._host.name}: {process.errors().strip()}")

    def vsctl(self, *arguments: str) -> str:
        """Configure through the database; waits until ovs-vswitchd has taken it in."""
        return self._host.run("ovs-vsctl", f"--db={self._remote}", "--timeout=10", *arguments).stdout

    def ofctl(self, *arguments: str) -> str:
        """Speak OpenFlow to a bridge."""
        return self._host.run("env", *self._environment, "ovs-ofctl", *arguments).stdout

    def appctl(self, *arguments: str) -> str:
        """Ask the running switch."""
        return self._host.run("ovs-appctl", "-t", self._control, *arguments).stdout

    def add_port(self, bridge: str, interface: str, **settings: str) -> int:
        """Add a port and return its OpenFlow number; an interface that the switch refused is an error."""
        options = [f"{name}={value}" for name, value in settings.items()]
        self.vsctl("add-port", bridge, interface, *(["--", "set", "Interface", interface, *options] if options else []))
        row = self.row("Interface", interface)
        number = row["ofport"]
        if not isinstance(number, int) or number < 0:  # an empty set while unknown, -1 when refused
            raise PodperfError(f"Open vSwitch refused the port {interface}: {row['error'] or 'no reason given'}")
        return number

    def connect(self, bridge: str, one: int, other: int) -> None:
        """Two flows: whatever comes in on one port leaves on the other."""
        for source, target in ((one, other), (other, one)):
            self.ofctl("add-flow", bridge, f"in_port={source},actions=output:{target}")

    def row(self, table: str, record: str) -> dict[str, Any]:
        """A database record, as data; an empty column is None (RFC 7047, section 5.1)."""
        answer = json.loads(self.vsctl("--format=json", "list", table, record))
        values = (None if value == ["set", []] else value for value in answer["data"][0])
        return dict(zip(answer["headings"], values, strict=True))
