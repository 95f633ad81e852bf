"""Machines behind SSH: trust in host keys, messages for unreachable machines, the end of their commands, whole runs."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chains import forward, need, remote_testbed
from killed import gone
from machine import once_as
from namespaces import add_namespace
from podperf.dataplanes import DATA_PLANES
from podperf.environment import PASSWORD_VARIABLE
from podperf.errors import PodperfError
from podperf.hosts import programs
from podperf.hosts.base import CommandFailed
from podperf.hosts.linux import add_veth, configure, ip, ip_json
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh import ShellHost, SshHost
from podperf.hosts.ssh_connection import ConnectionLost, SshCommand
from podperf.hosts.ssh_login import Login, Timeouts
from podperf.model import Chain
from podperf.observation import State
from podperf.preflight.checks import check
from podperf.testbed.access import lock, log_in
from podperf.testbed.run_lock import CHECK, FILE, RunLock
from podperf.topology import SshSettings, load_topology
from robot_run import ROOT, Robot, mrr_suite, podperf
from ssh_machine import ADDRESS, NEAR_ADDRESS, PASSWORD, SHORT_TIMEOUTS, SshMachine, has_penalties, ssh_machine
from test_hosts import broken_off

pytestmark = pytest.mark.distribution
UNROUTABLE = "198.51.100.129"
LENIENT = "PerSourcePenalties no\n" if has_penalties() else ""
QUICK = Timeouts(step=1.0)  # for tests that wait for a timeout


@pytest.fixture
def host(there: SshMachine) -> Iterator[SshHost]:
    host = SshHost(there.login)
    yield host
    there.let_packets_in()
    host.close()


def refusal(login: Login, within: float = 12.0) -> str:
    """The message for an impossible login. It is one line and comes within `within` seconds."""
    host, began = SshHost(login), time.monotonic()
    with pytest.raises(PodperfError) as caught:
        host.ask("true")
    assert time.monotonic() - began < within
    with pytest.raises(PodperfError):  # podperf does not wait again
        host.ask("true")
    assert time.monotonic() - began < within + 1
    assert "\n" not in str(caught.value)
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


# --- host keys and logins --------------------------------------------------------------------------------------------


def test_of_several_changes_in_one_command_the_one_that_fails_is_named(there: SshMachine) -> None:
    wrong = ("link", "set", "dev", "no-such-link", "up")
    with closing(SshHost(there.login)) as host, pytest.raises(CommandFailed, match="`ip link set dev no-such-link up`"):
        configure(host, ("link", "show", "lo"), wrong, net__ipv4__no_such_parameter=1)


def test_an_unknown_host_key_is_not_trusted(there: SshMachine) -> None:
    said = refusal(replace(there.login, known_hosts=str(there.folder / "none")))
    fingerprint = subprocess.check_output(["ssh-keygen", "-lf", there.folder / "host_key.pub"], text=True).split()[1]
    assert f"(ssh-ed25519 {fingerprint}) is not in {there.folder}/none" in said


def test_the_remedy_for_an_unknown_host_key_works(there: SshMachine, tmp_path: Path) -> None:
    unknown = replace(there.login, known_hosts=str(tmp_path / "known"))
    remedy = refusal(unknown).partition("once: `")[2].partition("`")[0]
    yes = tmp_path / "yes"
    yes.write_text("#!/bin/sh\necho yes\n")
    yes.chmod(0o755)
    answering = {**os.environ, "SSH_ASKPASS": str(yes), "SSH_ASKPASS_REQUIRE": "force"}
    subprocess.run(["sh", "-c", remedy], check=True, capture_output=True, env=answering)
    with closing(SshHost(unknown)) as host:
        assert host.ask("echo", "in").stdout == "in\n"


def test_another_host_key_than_the_known_one_is_an_alarm(there: SshMachine, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text(f"{ADDRESS} {(there.folder / 'other_host_key.pub').read_text()}")
    said = refusal(replace(there.login, known_hosts=str(known)))
    assert "shows another host key" in said
    assert "somebody may stand in between" in said
    assert f"`sed -i 1d {known}`" in said


def test_a_login_that_is_refused_names_what_was_tried(there: SshMachine) -> None:
    stranger = str(there.folder / "stranger_key")
    said = refusal(replace(there.login, key=stranger))
    assert f"refuses the login of root by the key {stranger}" in said
    assert PASSWORD_VARIABLE in said
    said = refusal(replace(there.login_by_password, password="wrong"))
    assert f"by the key {stranger}, the password of {PASSWORD_VARIABLE}" in said
    assert "wrong" not in said.replace("wrongly", "")
    assert "there is no private key /nowhere" in refusal(replace(there.login, key="/nowhere"))


def test_a_password_lets_in(there: SshMachine) -> None:
    with closing(SshHost(there.login_by_password)) as host:
        assert host.ask("id", "-u").stdout == "0\n"
    assert PASSWORD not in repr(there.login_by_password)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An SSH agent that has no key yet."""
    address = tmp_path / "agent.sock"
    with subprocess.Popen(["ssh-agent", "-D", "-a", address], stdout=subprocess.DEVNULL) as process:
        while not address.exists():
            assert process.poll() is None
            time.sleep(0.01)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(address))
        yield
        process.terminate()


@pytest.mark.usefixtures("agent")
def test_a_key_with_a_passphrase_wants_the_agent(there: SshMachine, tmp_path: Path) -> None:
    assert there.login.key is not None
    key = tmp_path / "key"
    key.write_bytes(Path(there.login.key).read_bytes())
    key.chmod(0o600)
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "a passphrase", "-f", key], check=True, stdout=subprocess.DEVNULL)
    assert "has a passphrase: load it with ssh-add" in refusal(replace(there.login, key=str(key)))
    subprocess.run(["ssh-add", "-q", there.login.key], check=True)  # the same key
    for named in (str(key), None):
        with closing(SshHost(replace(there.login, key=named))) as host:
            assert host.ask("id", "-u").stdout == "0\n"


def make_keys(folder: Path, number: int) -> list[Path]:
    """New private keys, all of them in the agent."""
    keys = [folder / f"further-{each}" for each in range(number)]
    for key in keys:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    subprocess.run(["ssh-add", "-q", *keys], check=True)
    return keys


@pytest.mark.usefixtures("agent")
def test_an_agent_with_many_keys_offers_the_one_that_the_topology_names(there: SshMachine, tmp_path: Path) -> None:
    assert there.login.key is not None
    make_keys(tmp_path, 9)
    subprocess.run(["ssh-add", "-q", there.login.key], check=True)  # the last one
    public = tmp_path / "right_key.pub"
    public.write_bytes(Path(f"{there.login.key}.pub").read_bytes())
    for named in (there.login.key, str(public)):
        with closing(SshHost(replace(there.login, key=named))) as host:
            assert host.ask("id", "-u").stdout == "0\n"


@pytest.mark.usefixtures("agent")
def test_an_agent_with_many_wrong_keys_is_told(there: SshMachine, tmp_path: Path) -> None:
    make_keys(tmp_path, 9)
    said = refusal(replace(there.login, key=None))
    assert "refuses the login of root by 6 keys" in said
    assert "name the right key in worker.ssh.key" in said


@pytest.fixture
def chatty(tmp_path: Path) -> Iterator[SshMachine]:
    """A machine with two host keys, whose login shell prints."""
    folder = tmp_path / "chatty"
    folder.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", folder / "rsa_host_key"], check=True)
    (folder / ".bashrc").write_text("printf 'Welcome to the lab\\nNo new mail'\nprintf 'warning: no quota' >&2\n")
    settings = f"HostKey {folder}/rsa_host_key\n{LENIENT}"
    with ssh_machine(folder, second=True, settings=settings) as machine:
        yield machine


def test_a_login_shell_may_print(chatty: SshMachine) -> None:
    with ExitStack() as undo:
        ssh = SshSettings(chatty.address, key=chatty.login.key, known_hosts=chatty.login.known_hosts)
        host = log_in("worker", ssh, LocalHost(), undo)
        assert host.ask("echo", "one").stdout == "one\n"
        process = host.spawn("cat")
        process.send("two")
        assert process.receive(30) == "two"
        host.put(b"three", str(chatty.folder / "file"))
        assert host.get(str(chatty.folder / "file")) == b"three"


def test_a_login_shell_that_runs_no_command_is_told(tmp_path: Path) -> None:
    settings = LENIENT + "ForceCommand echo This account is currently not available.\n"
    with ssh_machine(tmp_path, second=True, settings=settings) as machine:
        said = refusal(machine.login)
        assert "the login shell of root on" in said
        assert "ran no command, and printed 'This account is currently not available.'" in said


@pytest.mark.parametrize("known_type", ["host_key", "rsa_host_key"])
def test_the_server_is_asked_for_a_host_key_that_is_known(chatty: SshMachine, known_type: str, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text(f"{chatty.address} {(chatty.folder / f'{known_type}.pub').read_text()}")
    with closing(SshHost(replace(chatty.login, known_hosts=str(known)))) as host:
        assert host.ask("id", "-u").stdout == "0\n"


def test_a_known_type_that_the_server_has_no_longer_is_no_alarm(there: SshMachine, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", tmp_path / "old"], check=True)
    known = tmp_path / "known"
    known.write_text(f"{there.address} {(tmp_path / 'old.pub').read_text()}")
    said = refusal(replace(there.login, known_hosts=str(known)))
    assert (
        f"has no host key of the known type any more ({known} has one of type RSA), and shows ssh-ed25519 SHA" in said
    )


def test_a_revoked_host_key_is_refused(there: SshMachine, tmp_path: Path) -> None:
    key, known = (there.folder / "host_key.pub").read_text(), tmp_path / "known"
    known.write_text(f"@cert-authority * {key}{ADDRESS} {key}rubbish\n@revoked\n")
    with closing(SshHost(replace(there.login, known_hosts=str(known)))) as host:
        assert host.ask("echo", "in").stdout == "in\n"
    known.write_text(f"{ADDRESS} {key}@revoked * {key}")
    assert "is revoked" in refusal(replace(there.login, known_hosts=str(known)))


# --- the configuration of the user -----------------------------------------------------------------------------------

CONFIGURATION = """
Host *
    IdentityFile ~/.ssh/lab
    User root
Host worker
    HostName {worker}
    ProxyJump jump
Host jump
    HostName {jump}
"""
# Runs a program where the user `caller` exists. Arguments: folder of that user's files, interpreter, program, password.
AS_CALLED_BY_SUDO = """
cp /etc/passwd "$1/passwd"
echo "caller:x:12345:12345::$1:/bin/sh" >>"$1/passwd"
mount --bind "$1/passwd" /etc/passwd
SUDO_USER=caller exec "$2" -c "$3"
"""


@pytest.fixture
def behind_a_jump_host(there: SshMachine, tmp_path: Path) -> Iterator[SshMachine]:
    """A machine that only the other machine behind SSH reaches."""
    with ssh_machine(tmp_path, second=True) as machine:
        ends = {"near_namespace": there.network.namespace, "far_namespace": machine.network.namespace}
        add_veth(LocalHost(), near="to-worker", far="to-jump", mtu=1500, **ends)
        for network, link, other in (
            (there.network, "to-worker", machine.address),
            (machine.network, "to-jump", there.address),
        ):
            ip(network, "link", "set", link, "up")
            ip(network, "route", "add", f"{other}/32", "dev", link)
        ip(machine.network, "link", "set", "eth0", "down")
        yield machine
        ip(there.network, "link", "del", "to-worker")


def test_names_and_jump_hosts_of_the_caller_of_sudo_are_known(
    there: SshMachine, behind_a_jump_host: SshMachine
) -> None:
    with tempfile.TemporaryDirectory() as home:
        own = Path(home, ".ssh")
        own.mkdir()
        (own / "config").write_text(CONFIGURATION.format(worker=behind_a_jump_host.address, jump=there.address))
        (own / "lab").write_bytes((there.folder / "user_key").read_bytes())
        for machine in (there, behind_a_jump_host):
            with (own / "known_hosts").open("a") as known:
                known.write((machine.folder / "known_hosts").read_text())
            (machine.folder / "authorized_keys").write_bytes((there.folder / "user_key.pub").read_bytes())
        for each in (home, own, own / "lab", own / "config"):
            os.chown(each, 12345, 12345)
        (own / "lab").chmod(0o600)
        program = (
            "from podperf.hosts.ssh import SshHost\nfrom podperf.hosts.ssh_login import Login\n"
            "host = SshHost(Login('worker'))\nprint(host.ask('sh', '-c', 'echo $SSH_CONNECTION; id -u').stdout)\n"
        )
        done = LocalHost().ask(
            *("unshare", "--mount", "env", f"PYTHONPATH={ROOT}/libraries", "sh", "-ec", AS_CALLED_BY_SUDO, "sh"),
            *(home, sys.executable, program),
        )
    client, _, server, _, user = done.stdout.split()
    assert (client, server, user) == (there.address, behind_a_jump_host.address, "0")


def test_a_server_behind_a_unix_socket_is_reached(there: SshMachine, tmp_path: Path) -> None:
    """As on a counted machine, which has one serial port: one connection at a time."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()

        def serve() -> None:
            connected, _ = listening.accept()
            # Within the machine, whose /run has the folder that SSH servers want.
            inside = ["nsenter", f"--target={there.server.pid}", "--mount", "--net", "--root"]
            server = ["/usr/sbin/sshd", "-i", "-f", str(there.folder / "sshd_config")]
            with connected:
                subprocess.run([*inside, *server], stdin=connected.fileno(), stdout=connected.fileno(), check=False)

        threading.Thread(target=serve, daemon=True).start()
        with closing(ShellHost(replace(there.login, socket=str(tmp_path / "socket")))) as host:
            assert host.ask("echo", "one").stdout == "one\n"
            host.put(b"two", str(tmp_path / "file"))
            assert host.get(str(tmp_path / "file")) == b"two"


# --- unreachable machines --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"address": UNROUTABLE}, f"no route to {UNROUTABLE}"),
        ({"port": 2222}, "port 2222 refuses connections"),
        ({"address": "nowhere.invalid"}, "cannot resolve the name nowhere.invalid"),
    ],
)
def test_why_a_machine_is_not_reached_is_said(there: SshMachine, wrong: dict[str, Any], said: str) -> None:
    ip(LocalHost(), "route", "add", "unreachable", f"{UNROUTABLE}/32")
    try:
        assert said in refusal(replace(there.login, **wrong))
    finally:
        ip(LocalHost(), "route", "del", "unreachable", f"{UNROUTABLE}/32")


def test_a_firewall_that_drops_is_said(there: SshMachine) -> None:
    there.drop_packets()
    try:
        assert f"no answer from {ADDRESS} port 22 in 1 s" in refusal(replace(there.login, timeouts=QUICK))
    finally:
        there.let_packets_in()


def test_what_is_no_ssh_server_is_said(there: SshMachine) -> None:
    with socket.create_server((NEAR_ADDRESS, 0)) as mute:
        port = mute.getsockname()[1]
        mute_login = replace(there.login, address=NEAR_ADDRESS, port=port, timeouts=QUICK)
        assert "is no SSH server" in refusal(mute_login)


CLOSED = "closed the connection before it named itself as an SSH server"


def test_a_server_that_closes_the_connection_before_its_banner_is_said(there: SshMachine) -> None:
    def close_connections() -> None:
        for said in (b"Not allowed at this time\r\n", b""):  # OpenSSH 9.9 says that, and 9.8 says nothing
            connection, _ = server.accept()
            with connection:
                connection.sendall(said)

    with socket.create_server((NEAR_ADDRESS, 0)) as server:
        threading.Thread(target=close_connections, daemon=True).start()
        for _ in range(2):
            said = refusal(replace(there.login, address=NEAR_ADDRESS, port=server.getsockname()[1]))
            assert CLOSED in said
            assert "PerSourcePenalties" in said


@pytest.mark.skipif(not has_penalties(), reason="this SSH server has no penalties: OpenSSH has them from 9.8 on")
def test_a_penalty_for_failed_logins_is_said(tmp_path: Path) -> None:
    with ssh_machine(tmp_path, second=True, settings="PerSourcePenalties authfail:60 min:1\n") as strict:
        stranger = replace(strict.login, key=str(strict.folder / "stranger_key"))
        deadline = time.monotonic() + 60
        # The server notes a failed login when the process of this login has ended.
        while "refuses the login" in (said := refusal(stranger)):
            assert time.monotonic() < deadline, "no penalty"
        assert CLOSED in said
        assert CLOSED in refusal(strict.login)


def test_a_server_that_permits_two_sessions_gets_more_connections(tmp_path: Path) -> None:
    few = LENIENT + "MaxSessions 2\n"
    with ssh_machine(tmp_path, second=True, settings=few) as machine, closing(SshHost(machine.login)) as host:
        processes = [host.spawn("cat") for _ in range(5)]
        for number, process in enumerate(processes):
            process.send(str(number))
        assert [process.receive(30) for process in processes] == [str(number) for number in range(5)]


# --- the end of a connection -----------------------------------------------------------------------------------------


def test_a_connection_that_is_cut_ends_the_command_at_once_and_the_next_one_connects_again(host: SshHost) -> None:
    process = host.spawn("sleep", "1000")
    (server,) = host.servers
    host.ask("true")
    began = time.monotonic()
    cutter = threading.Timer(0.5, os.kill, (server, signal.SIGKILL))
    cutter.start()
    with pytest.raises(ConnectionLost, match="was lost while `sleep 500` ran there"):
        host.ask("sleep", "500", timeout=60)
    assert time.monotonic() - began < 15  # 60 s without the loss
    assert gone(process.pid)
    assert not process.alive()
    with pytest.raises(ConnectionLost):
        process.receive(1)
    process.stop()
    assert host.ask("echo", "back").stdout == "back\n"
    assert host.get("/proc/sys/kernel/ostype") == b"Linux\n"


def test_a_machine_that_falls_silent_is_noticed_in_time(there: SshMachine) -> None:
    host = SshHost(replace(there.login, timeouts=SHORT_TIMEOUTS))
    process = host.spawn("sleep", "1000")
    host.get("/proc/version")
    threading.Timer(0.5, there.drop_packets).start()
    began = time.monotonic()
    try:
        with pytest.raises(ConnectionLost):
            host.ask("sleep", "500", timeout=120)
        assert time.monotonic() - began < SHORT_TIMEOUTS.lost + 20
        assert not process.alive()
        process.stop()
        with pytest.raises(PodperfError, match="no answer from"):
            host.get("/proc/version")
        assert time.monotonic() - began < SHORT_TIMEOUTS.lost + SHORT_TIMEOUTS.step + 30
    finally:
        there.let_packets_in()
        host.close()


def test_what_was_started_ends_with_the_program_that_started_it(there: SshMachine) -> None:
    program = (
        "import sys, time\n"
        "from podperf.hosts.ssh import SshHost\nfrom podperf.hosts.ssh_login import Login\n"
        f"host = SshHost(Login({ADDRESS!r}, key={there.login.key!r}, known_hosts={there.login.known_hosts!r}))\n"
        "print(*(host.spawn('sleep', '1000').pid for _ in range(3)), flush=True)\ntime.sleep(1000)\n"
    )
    before = set(Path("/tmp").glob("podperf-ssh-*"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "libraries")}
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
    assert run.stdout is not None
    started = [int(word) for word in run.stdout.readline().split()]
    assert len(started) == 3
    assert not any(gone(each, within=0.05) for each in started)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert all(gone(each) for each in started)
    assert once_as(before, lambda: set(Path("/tmp").glob("podperf-ssh-*"))) == before


def test_a_command_that_is_broken_off_before_its_number_is_here_is_killed(
    host: SshHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    await_begin = SshCommand.await_begin

    def late(session: SshCommand, timeout: float) -> None:
        time.sleep(0.5)
        await_begin(session, timeout)

    monkeypatch.setattr(SshCommand, "await_begin", late)
    assert gone(broken_off(host))


def test_closing_ends_what_runs(host: SshHost) -> None:
    process = host.spawn("sh", "-c", "trap '' TERM HUP; echo up; while :; do sleep 1; done")
    assert process.receive(30) == "up"
    host.close()
    assert gone(process.pid)


def test_a_slow_link_is_slow_and_nothing_else(there: SshMachine, host: SshHost) -> None:
    shape = ("qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "128kbit", "burst", "2000", "latency", "5s")
    there.network.do("tc", *shape)
    try:
        text = "x" * 20_000
        began = time.monotonic()
        assert host.ask("printf", text).stdout == text
        assert time.monotonic() - began > 1
        host.put(text.encode(), "/run/slow")
        assert host.get("/run/slow") == text.encode()
    finally:
        there.network.do("tc", "qdisc", "del", "dev", "eth0", "root")


# --- whole runs ------------------------------------------------------------------------------------------------------

BRIDGE = "linux-bridge    1    64"
TOPOLOGY = """
version: 1
name: behind-ssh
tester:
  ports:
    left: {{interface: left, namespace: test-lab}}
    right: {{interface: right, namespace: test-lab}}
workers:
  - connection: ssh
    ssh: {{address: {address}, key: {key}, known_hosts: {folder}/known_hosts}}
    ports:
      left: {{interface: ens4}}
      right: {{interface: ens5}}
    cpus: {cpu}
method: {{search: quick, mrr: {{trials: {trials}, duration: 0.2}}}}
"""


@pytest.fixture
def lab(there: SshMachine) -> Iterator[SshMachine]:
    """The machine with two ports, which are cabled to two ports of this machine."""
    with ExitStack() as undo:
        lab = add_namespace("lab", undo)
        for near, far in (("left", "ens4"), ("right", "ens5")):
            ends = {"near_namespace": lab.namespace, "far_namespace": there.network.namespace}
            add_veth(LocalHost(), near=near, far=far, mtu=1500, **ends)
        await_links(there, "ens4", "ens5")
        yield there


def await_links(there: SshMachine, *interfaces: str) -> None:
    """Wait until the machine reports its ports as up. The kernel reports this some time later than it happens."""
    for interface in interfaces:
        up = f"until ip link show dev {interface} | grep -q 'state UP'; do sleep 0.05; done"
        there.network.ask("timeout", "20", "sh", "-c", up)


def topology(there: SshMachine, key: str = "user_key", trials: int = 1) -> str:
    settings = {"address": ADDRESS, "folder": there.folder, "key": there.folder / key, "trials": trials}
    return TOPOLOGY.format(cpu=max(os.sched_getaffinity(0)), **settings)


def by_password(there: SshMachine) -> str:
    """The same topology with a login by password, and with a key that the machine does not know."""
    return topology(there, key="stranger_key").replace("{address:", "{login: password, address:")


def ports(there: SshMachine) -> list[Any]:
    """Everything of the machine's network that a run could leave changed."""
    links = ip_json(there.network, "-details", "link", "show")
    kept = ("ifname", "address", "flags", "mtu", "operstate", "master", "xdp", "qdisc", "ifalias", "altnames")
    return [{key: link.get(key) for key in kept} for link in links]


def left_there(there: SshMachine) -> list[str]:
    """Namespaces and files of podperf on the machine."""
    folders = "/run/podperf /run/podperf-journal /var/lib/podperf /run/netns/*"
    with closing(SshHost(there.login)) as host:
        return host.ask("sh", "-c", f"ls -d {folders} 2>/dev/null; :").stdout.split()


@pytest.mark.slow
def test_a_chain_on_a_machine_behind_ssh_is_measured_and_everything_is_as_before(
    lab: SshMachine, tmp_path: Path
) -> None:
    before = ports(lab)
    (record,) = Robot(tmp_path, "--test", "Linux bridge, 64 B", "tests", topology=topology(lab)).measured()
    assert record["outcome"] == "passed", record["reason"]
    assert record["results"]["mrr"]["frames_per_second"] > 1000
    assert record["results"]["pdr"]["frames_per_second"] > 1000
    assert record["placement"]["apart"]
    assert record["placement"]["shared"] == []
    assert set(record["interfaces"]) == {"ens4", "ens5", "tester left", "tester right"}
    assert "threaded NAPI" in record["interfaces"]["ens4"]["received_by"]
    assert {"ens4", "ens5", "br0", "br1"} <= {link["name"] for link in record["data_plane"]["worker"]["links"]}
    assert record["environment"]["tester"]["kernel"]
    assert record["quietness"]["workers"][0]["cpus"] == record["placement"]["sut"]
    assert once_as(before, lambda: ports(lab)) == before
    assert left_there(lab) == []


def forward_there(chain: Chain, topology: str, folder: Path) -> str:
    """Set the chain up on the worker of this topology and send frames across it. Returns the files brought along."""
    (folder / "topology.yaml").write_text(topology)
    settings = load_topology(folder / "topology.yaml", DATA_PLANES)
    with ExitStack() as undo:
        worker = log_in("worker", settings.workers[0].ssh, LocalHost(), undo)
        lock(worker, undo)
        forward(chain, testbed=remote_testbed(worker, settings))
        return worker.ask("ls", programs.FOLDER, check=False).stdout


# The files that a run must bring along for a data plane. The worker has nothing that the set-up built.
BROUGHT_ALONG = {
    Chain("macvlan", 1): "",
    Chain("docker", 1): "",
    Chain("tc-redirect-peer", 1): "tc_redirect_peer.bpf.o",
    Chain("xdp-redirect", 1): "xdp_redirect.bpf.o",
    Chain("memif", 2): "podperf-rotation",
    Chain("af-xdp", 1): "podperf-rotation",
    Chain("ovs-netdev", 1): "podperf-rotation",
    Chain("ovs-dpdk", 1): "podperf-rotation",
}


# The others are slow tests, because each of them brings along a file of the same kind.
QUICKLY = {"docker", "tc-redirect-peer", "memif"}


@pytest.mark.parametrize(
    "chain",
    [pytest.param(each, marks=[] if each.data_plane in QUICKLY else pytest.mark.slow) for each in BROUGHT_ALONG],
    ids=str,
)
def test_a_data_plane_on_a_machine_behind_ssh_forwards(lab: SshMachine, tmp_path: Path, chain: Chain) -> None:
    need(chain.data_plane)
    before = ports(lab)
    assert BROUGHT_ALONG[chain] in forward_there(chain, topology(lab), tmp_path)
    assert once_as(before, lambda: ports(lab)) == before
    assert left_there(lab) == []


def test_a_port_may_be_named_by_an_alternative_name(lab: SshMachine, tmp_path: Path) -> None:
    """systemd gives alternative names to a server's ports. podperf moves and renames a port by its main name."""
    lab.network.do("ip", "link", "property", "add", "dev", "ens4", "altname", "slot4")
    before = ports(lab)
    forward_there(Chain("linux-bridge", 1), topology(lab).replace("interface: ens4", "interface: slot4"), tmp_path)
    assert once_as(before, lambda: ports(lab)) == before


@pytest.mark.slow
def test_the_password_is_in_nothing_that_a_run_writes(
    lab: SshMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    robot = Robot(
        tmp_path,
        *("--loglevel", "TRACE", "--debugfile", "debug.txt", "--test", "Linux bridge, 64 B", "tests"),
        topology=by_password(lab),
    )
    assert robot.wait() == 0, robot.output.read_text()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"output.xml", "log.html", "debug.txt", "console.txt"} <= {path.name for path in written}
    assert any(path.suffix == ".json" and path.parent.name == "records" for path in written)
    for path in written:
        content = path.read_bytes()
        assert PASSWORD.encode() not in content, path
    assert b"&lt;secret&gt;" in (robot.results / "output.xml").read_bytes(), "the password did not pass Robot"


def test_a_machine_that_does_not_ask_for_the_password_is_not_offered_it(
    lab: SshMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    robot = Robot(tmp_path, "tests", topology=topology(lab, key="stranger_key"))
    assert robot.wait() != 0
    said = robot.output.read_text()
    assert f"refuses the login of root by the key {lab.folder}/stranger_key: " in said
    assert f"set {PASSWORD_VARIABLE} and workers[0].ssh.login: password" in said


def test_a_wrong_password_is_not_told_either(lab: SshMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "swordfish-42")
    robot = Robot(tmp_path, "--loglevel", "TRACE", "tests", topology=by_password(lab))
    assert robot.wait() != 0
    assert "refuses the login of root" in robot.output.read_text()
    assert not any(b"swordfish-42" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def kill_a_run(lab: SshMachine, folder: Path) -> None:
    """A run that was killed in the middle of measuring, and left its chain on the machine."""
    before = ports(lab)
    robot = Robot(folder, mrr_suite(folder, Bridge=BRIDGE), topology=topology(lab, trials=1000))
    robot.kill(after=2)
    assert ports(lab) != before
    assert "/run/netns/podperf-worker" in left_there(lab)


def test_what_a_killed_run_left_on_the_machine_is_put_back(lab: SshMachine, tmp_path: Path) -> None:
    before = ports(lab)
    kill_a_run(lab, tmp_path)
    done = podperf("clean", str(tmp_path / "topology.yaml"))
    assert f"ens4 from the system under test on {ADDRESS}" in done.stdout
    assert once_as(before, lambda: ports(lab)) == before
    assert left_there(lab) == []


@pytest.mark.slow
def test_the_next_run_puts_back_what_a_killed_one_left_on_the_machine(lab: SshMachine, tmp_path: Path) -> None:
    before = ports(lab)
    kill_a_run(lab, tmp_path)
    following = Robot(tmp_path / "next", mrr_suite(tmp_path, Bridge=BRIDGE), topology=topology(lab))
    assert following.wait() == 0, following.output.read_text()
    for left in ("ens4 from the system under test", "ens5 from the system under test", "podperf-worker"):
        assert f"removed what an earlier run left on {ADDRESS}: {left}" in following.output.read_text()
    assert once_as(before, lambda: ports(lab)) == before
    assert left_there(lab) == []


def test_a_second_run_on_the_same_worker_is_refused(lab: SshMachine, tmp_path: Path) -> None:
    host = SshHost(lab.login)
    with closing(host), ExitStack() as undo:
        lock(host, undo)
        host.put(b"of the first run", f"{programs.FOLDER}/a-program")
        robot = Robot(tmp_path, "tests", topology=topology(lab))
        assert robot.wait() != 0
        (holder,) = lockers(host)
        refusal = f"another podperf run is measuring on {ADDRESS} (process {holder}, from another machine)"
        assert refusal in robot.output.read_text()
        (tmp_path / "t.yaml").write_text(topology(lab))
        *_, last = check(str(tmp_path / "t.yaml"))
        assert (last.state, last.detail.startswith(refusal)) == (State.UNCHECKED, True)
        assert host.get(f"{programs.FOLDER}/a-program") == b"of the first run"


def lockers(host: SshHost) -> list[str]:
    """The processes that hold the lock of a machine, as the kernel reports them."""
    inode = host.ask("stat", "-c", "%i", FILE).stdout.strip()
    lines = [line.split() for line in host.get("/proc/locks").decode().splitlines()]
    return [words[4] for words in lines if words[1] == "FLOCK" and words[5].endswith(f":{inode}")]


def test_a_check_of_the_worker_is_waited_for(lab: SshMachine) -> None:
    host, other = SshHost(lab.login), SshHost(lab.login)
    said: list[str] = []
    with closing(host), closing(other), ExitStack() as undo, ExitStack() as checking:
        lock(host, checking, CHECK)

        def say(text: str) -> None:
            said.append(text)
            checking.close()

        lock(other, undo, say=say)
    assert len(said) == 1
    assert said[0].startswith(f"`podperf check` is looking at {ADDRESS} (process ")


def test_a_worker_is_locked_for_as_long_as_it_hears_from_its_run(lab: SshMachine) -> None:
    """A server notices a silent connection only after hours. The next run cannot wait so long."""
    host, other = SshHost(lab.login), SshHost(lab.login)
    free = ("flock", "--nonblock", FILE, "true")
    with closing(host), closing(other), ExitStack() as undo:
        lock(host, undo, beat=0.2, silence=3)
        time.sleep(5)
        with pytest.raises(PodperfError, match="one that was cut off is given up after"):
            lock(other, undo)
        assert other.ask(*free, check=False).exit_code
    with closing(host), closing(other), ExitStack() as undo:
        lock(host, undo, beat=1000, silence=1)
        other.ask("timeout", "20", "sh", "-c", 'until "$@"; do sleep 0.1; done', "sh", *free)


def test_a_run_on_the_worker_itself_and_one_from_elsewhere_exclude_each_other() -> None:
    here = LocalHost()
    with ExitStack() as undo:
        lock(here, undo)
        with (
            pytest.raises(PodperfError, match=r"is measuring on this machine \(process \d+, from another machine\)"),
            RunLock(),
        ):
            pass
    with RunLock(), ExitStack() as undo, pytest.raises(PodperfError, match="another podperf run is measuring on"):
        lock(here, undo)


def test_this_machine_by_ssh_is_recognised(tmp_path: Path) -> None:
    """Its lock is the one of the run that logs in."""
    with (
        ssh_machine(tmp_path, second=True, same_run=True) as machine,
        closing(SshHost(machine.login)) as host,
        RunLock(),
        ExitStack() as undo,
        pytest.raises(PodperfError, match="is this machine, on which podperf runs: write `connection: local` instead"),
    ):
        lock(host, undo)


def test_a_port_of_the_worker_that_is_in_use_is_refused(lab: SshMachine, tmp_path: Path) -> None:
    ip(lab.network, "address", "add", "192.0.2.1/24", "dev", "ens4")
    robot = Robot(tmp_path, "tests", topology=topology(lab).replace("ens5", "eth0"))
    assert robot.wait() != 0
    said = robot.output.read_text()
    assert f"workers[0].ports.left on {ADDRESS}: ens4 carries the address 192.0.2.1/24" in said
    assert f"workers[0].ports.right on {ADDRESS}: eth0 carries the SSH session from {NEAR_ADDRESS}" in said
    assert ip_json(lab.network, "link", "show", "dev", "ens4")


def test_check_says_whether_the_worker_can_be_reached(
    lab: SshMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)
    file = tmp_path / "t.yaml"
    file.write_text(topology(lab))
    observations = check(str(file))
    assert [each.state for each in observations if each.area == "workers[0]"] == [State.OK]
    assert [each.state for each in observations if each.subject == "worker ports"] == [State.OK]
    assert any(each.area == "commands of the worker" for each in observations)
    file.write_text(topology(lab, key="stranger_key"))
    (observation,) = [each for each in check(str(file)) if each.area == "workers[0]"]
    assert observation.in_the_way
    assert "refuses the login" in observation.detail
    assert "\n" not in observation.detail


OWN_COMMANDS = """*** Settings ***
Library    Testbed
Library    SSHLibrary
Suite Setup    Open Testbed    ${TOPOLOGY}
Suite Teardown    Run Keywords    Close All Connections    AND    Close Testbed

*** Test Cases ***
A Command Of The User
    ${index} =    Open Connection To Machine    worker    alias=mine
    Should Be Equal    ${index}    ${1}
    ${said} =    Execute Command    echo "$SSH_CONNECTION"
    Should Match    ${said}    NEAR * ADDRESS 22
    Close Connection

The Machine Of Podperf
    Run Keyword And Expect Error    *podperf runs on this machine itself*    Open Connection To Machine    tester

Another Host Key
    Evaluate    __import__("shutil").copy("FOLDER/other_known_hosts", "FOLDER/known_hosts")
    Run Keyword And Expect Error    *ADDRESS port 22 shows another host key*somebody may stand in between*
    ...    Open Connection To Machine    worker
    Run Keyword And Expect Error    No open connection.    Execute Command    true
"""


def test_a_suite_runs_commands_of_its_own_on_the_worker_by_ssh_library(lab: SshMachine, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text((lab.folder / "known_hosts").read_text())
    (tmp_path / "other_known_hosts").write_text(f"{ADDRESS} {(lab.folder / 'other_host_key.pub').read_text()}")
    suite = tmp_path / "own.robot"
    words = {"NEAR": NEAR_ADDRESS, "ADDRESS": ADDRESS, "FOLDER": str(tmp_path)}
    suite.write_text(re.sub("|".join(words), lambda found: words[found[0]], OWN_COMMANDS))
    robot = Robot(tmp_path, str(suite), topology=topology(lab).replace(f"{lab.folder}/known_hosts", str(known)))
    assert robot.wait() == 0, robot.messages()
