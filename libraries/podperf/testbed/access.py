"""Access to the machines of tester and worker: this one, or others behind SSH."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from podperf.errors import PodperfError
from podperf.hosts import programs
from podperf.hosts.base import Host, Process
from podperf.hosts.shell_script import shell_script
from podperf.hosts.ssh import SshHost
from podperf.hosts.ssh_login import Login, take_password
from podperf.testbed.isolation import SshSession, ssh_session
from podperf.testbed.run_lock import FILE, FOLDER, OVER_SSH, RUN, Holder, Taken, once_no_check_has_it
from podperf.topology import SshSettings, Topology

# Two runs from two machines would measure each other. A server does not notice a connection that went silent, so what
# holds the lock there ends when it has heard nothing for a while.
_BEAT, _SILENCE = 10, 60  # seconds
_TAKEN = 99
_TAKE = shell_script("take_lock.sh", beside=__file__)
_HOLD = shell_script("hold_lock.sh", beside=__file__)


def machines_of(topology: Topology, here: Host, undo: ExitStack, password: str | None = None) -> tuple[Host, ...]:
    """The machines of the tester and of the workers, the same one twice where tester and worker share it. See
    `log_in`."""
    tester = log_in("tester", topology.tester.ssh, here, undo, password)
    if topology.one_machine:
        return tester, tester
    return tester, *(log_in(each.key, each.ssh, here, undo, password) for each in topology.workers)


def behind_ssh(machines: Iterable[Host]) -> list[SshHost]:
    """Those of the machines that are others than this one, each once."""
    return [each for each in dict.fromkeys(machines) if isinstance(each, SshHost)]


def login_to(host: Host) -> Login:
    """The login that podperf uses on a machine. PodperfError when that is this machine."""
    if not isinstance(host, SshHost):
        raise PodperfError("podperf runs on this machine itself: run commands here by the library Process")
    return host.login


def log_in(part: str, ssh: SshSettings, here: Host, undo: ExitStack, password: str | None = None) -> Host:
    """The machine of a part of the testbed; `here` is this one. Until `undo`.

    Where the topology wants a login by password, that is `password` or else the environment's. No other machine is
    offered it. PodperfError, in one line, when the machine cannot be reached or the login has not the rights of root.
    """
    if ssh.address is None:
        return here
    of_environment = take_password()
    offered = password or of_environment if ssh.login == "password" else None
    login = Login(ssh.address, ssh.port, ssh.user, ssh.key, ssh.known_hosts, offered, part, ssh.socket)
    host = SshHost(login)
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
    """Keep other runs off another machine, until `undo`, which also removes the programs that podperf copied there.
    Taken when there is one already."""
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
            holder = Holder.parse(host.ask("cat", FILE, check=False).stdout)
            advice = f"wait until it has ended; one that was cut off is given up after {silence:g} s"
            raise Taken(holder, host.name, advice) from error
        raise
    return process


def _beat(process: Process, seconds: float, ended: threading.Event) -> None:
    while not ended.wait(seconds):
        try:
            process.send("still here")
        except PodperfError:  # the connection is lost, which whoever uses it next will say
            return


def session_to(host: Host) -> SshSession | None:
    """The SSH session by which commands arrive at a machine; for this one, that of who runs podperf."""
    if not isinstance(host, SshHost):
        return ssh_session()
    return SshSession.parse(host.ask("sh", "-c", 'echo "$SSH_CONNECTION"').stdout)
