"""The topology of a testbed, and access to its machines: this one, or others behind SSH."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from podperf.dataplanes import DATA_PLANES
from podperf.environment import take_password
from podperf.errors import PodperfError
from podperf.hosts import programs
from podperf.hosts.base import Host, Process, shell_script
from podperf.hosts.ssh import ShellHost, SshHost
from podperf.hosts.ssh_login import Login
from podperf.pods import POD_RUNTIMES
from podperf.testbed.isolation import SshSession, ssh_session
from podperf.testbed.run_lock import FILE, FOLDER, OVER_SSH, RUN, Holder, Taken, once_no_check_has_it
from podperf.testers import TESTERS
from podperf.topology import SshSettings, Topology, load_topology

# Runs from two machines would disturb each other on a common worker. So a process on the worker holds a lock. An SSH
# server does not notice a silent connection. So the process ends if it receives nothing for _SILENCE seconds.
_BEAT, _SILENCE = 10, 60  # seconds
_TAKEN = 99
_TAKE = shell_script("take_lock.sh", beside=__file__)
_HOLD = shell_script("hold_lock.sh", beside=__file__)


def machines_of(topology: Topology, here: Host, undo: ExitStack, password: str | None = None) -> tuple[Host, ...]:
    """The machines of the tester and of the workers; see `log_in`. A machine that is both is there twice."""
    tester = log_in("tester", topology.tester.ssh, here, undo, password)
    if topology.one_machine:
        return tester, *[tester] * max(1, len(topology.workers))
    return tester, *(log_in(worker.key, worker.ssh, here, undo, password) for worker in topology.workers)


def behind_ssh(machines: Iterable[Host]) -> list[SshHost]:
    """The machines behind SSH among these machines, each once."""
    return [fromkey for fromkey in dict.fromkeys(machines) if isinstance(fromkey, SshHost)]


def login_to(host: Host) -> Login:
    """The login that podperf uses on a machine. Raises PodperfError for this machine, which needs no login."""
    if not isinstance(host, SshHost):
        raise PodperfError("podperf runs on this machine itself: run commands here by the library Process")
    return host.login


def log_in(part: str, ssh: SshSettings, here: Host, undo: ExitStack, password: str | None = None) -> Host:
    """Log in to the machine of a part of the testbed, until `undo`. Without an SSH address this is `here`.

    A login by password uses `password`, and otherwise the password in the environment. Logins of another kind do not
    get it. Raises PodperfError, in one line, if the machine does not answer or the login has not the rights of root.
    """
    if ssh.address is None:
        return here
    of_environment = take_password()
    offered = password or of_environment if ssh.login == "password" else None
    login = Login(ssh.address, ssh.port, ssh.user, ssh.key, ssh.known_hosts, offered, part, ssh.socket)
    host = ShellHost(login) if login.socket else SshHost(login)  # a socket leads to a counted machine
    undo.callback(host.close)
    if host.ask("id", "-u").stdout.strip() != "0":
        raise PodperfError(
            f"{ssh.user} has not the rights of root on {host.name}, which network namespaces and drivers need: "
            f"log in as root ({part}.ssh.user)"
        )
    return host


def lock(
    host: Host,
    undo: ExitStack,
    what: str = RUN,
    say: Callable[[str], None] = lambda _: None,
    beat: float = _BEAT,
    silence: float = _SILENCE,
) -> None:
    """Keep other runs off another machine until `undo`. `undo` also removes the programs that podperf copied there.

    Raises Taken if another run has the machine.
    """
    process = once_no_check_has_it(lambda: _take(host, what, silence), say)
    undo.callback(process.stop)
    undo.callback(programs.remove, host)
    ended = threading.Event()
    undo.callback(ended.set)
    threading.Thread(target=_beat, args=(process, beat, ended), daemon=True).start()


def _take(host: Host, what: str, silence: float) -> Process:
    arguments = (FOLDER, FILE, f"{silence:g}", _HOLD, f"{what} {OVER_SSH}", str(_TAKEN))
    process = host.spawn("sh", "-c", _TAKE, "sh", *arguments)
    try:
        process.receive(5)
    except PodperfError as error:
        process.stop()
        if getattr(error, "exit_code", None) == _TAKEN:
            if isinstance(host, SshHost) and _is_here(host):
                raise PodperfError(
                    f"{host.name} is this machine, on which podperf runs: write `connection: local` instead of "
                    f"{host.login.part}.ssh"
                ) from error
            holder = Holder.parse(host.ask("cat", FILE, check=False).stdout)
            advice = f"wait until it has ended; one that was cut off is given up after {silence:g} s"
            raise Taken(holder, host.name, advice) from error
        raise
    return process


def _is_here(host: Host) -> bool:
    """Whether the lock of that machine is the one that this process has."""
    with suppress(OSError):
        ours = Path(FILE).stat()
        theirs = host.ask("stat", "-c", "%d:%i", FILE, check=False).stdout.strip()
        return theirs == f"{ours.st_dev}:{ours.st_ino}" and programs.is_this_machine(host)
    return False


def _beat(process: Process, seconds: float, ended: threading.Event) -> None:
    while not ended.wait(seconds):
        try:
            process.send("still here")
        except PodperfError:  # the connection is lost; the next command says so
            return


def session_to(host: Host) -> SshSession | None:
    """The SSH session by which commands arrive at a machine. For this machine: the session of podperf's user."""
    if not isinstance(host, SshHost):
        return ssh_session()
    return SshSession.parse(host.ask("sh", "-c", 'echo "$SSH_CONNECTION"').stdout)


def read_topology(file: Path | str) -> Topology:
    """The testbed of a topology file. PodperfError has a line for each problem, with file, line and key.

    The password in the environment is removed from there, also if the file is wrong.
    """
    take_password()
    return load_topology(file, DATA_PLANES, POD_RUNTIMES, TESTERS)
