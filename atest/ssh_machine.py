"""A machine behind SSH for the tests: an SSH server with its own network namespace and its own /run."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from namespaces import add_namespace
from podperf.hosts.linux import add_veth, ip
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.hosts.ssh_login import Login, Timeouts
from robot_run import ROOT

ADDRESS, NEAR_ADDRESS = "198.51.100.2", "198.51.100.1"  # TEST-NET-2, RFC 5737
SECOND_ADDRESS, _SECOND_NEAR_ADDRESS = "198.51.100.6", "198.51.100.5"
PASSWORD = "correct-horse-battery-staple"
SHORT_TIMEOUTS = Timeouts(step=3.0, lost=4.0, keepalive=1.0)  # which a busy machine still keeps
# With its own /run, the machine has no namespaces of this machine. It also has its own passwords. It does not have the
# files that the set-up built here: a worker gets these files from the run.
_START = """
mount --make-rprivate /
[ "$3" = same ] || mount -t tmpfs tmpfs /run
mkdir -p /run/sshd
mount --bind "$1/shadow" /etc/shadow
[ ! -d "$2" ] || mount -t tmpfs tmpfs "$2"
exec /usr/sbin/sshd -D -e -f "$1/sshd_config"
"""
_CONFIGURATION = """
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication yes
SetEnv HOME={folder}
"""  # a home without the start-up files of who runs the tests, which may wait for something


@dataclass
class SshMachine:
    """The machine: its network, its folder with all keys, and how to log in."""

    network: NetworkNamespace
    folder: Path
    server: subprocess.Popen[bytes]
    address: str = ADDRESS

    @property
    def login(self) -> Login:
        """By key, as root."""
        return Login(self.address, key=str(self.folder / "user_key"), known_hosts=str(self.folder / "known_hosts"))

    @property
    def login_by_password(self) -> Login:
        """By password alone."""
        return replace(self.login, key=str(self.folder / "stranger_key"), password=PASSWORD)

    def drop_packets(self) -> None:
        """From now on nothing arrives there, and nobody is told."""
        rules = "table inet test { chain in { type filter hook input priority 0; tcp dport 22 drop; }; }"
        self.network.do("nft", rules)

    def let_packets_in(self) -> None:
        """Again."""
        self.network.do("nft", "delete", "table", "inet", "test", check=False)


def has_penalties() -> bool:
    """True where the SSH server refuses an address for a while after failed logins: OpenSSH from 9.8 on."""
    asked = ["/usr/sbin/sshd", "-G", "-f", "/dev/null", "-o", "PerSourcePenalties=no"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


@contextmanager
def ssh_machine(
    folder: Path, *, second: bool = False, settings: str = "", same_run: bool = False
) -> Iterator[SshMachine]:
    """The machine, or the second machine that a test may have, until the context ends.

    `settings` are additional lines for its sshd_config. Without them, the server allows
    failed logins without a penalty. With `same_run`, it has the /run of this machine, as this machine itself.
    """
    name = "ssh2" if second else "ssh"
    address, near = (SECOND_ADDRESS, _SECOND_NEAR_ADDRESS) if second else (ADDRESS, NEAR_ADDRESS)
    here, link = LocalHost(), f"test-{name}"
    with ExitStack() as undo:
        network = add_namespace(f"{name}-machine", undo)
        add_veth(here, near=link, far="eth0", far_namespace=network.namespace, mtu=1500)
        undo.callback(ip, here, "link", "del", link)  # a namespace is taken down in the background
        ip(here, "address", "add", f"{near}/30", "dev", link)
        ip(here, "link", "set", link, "up")
        ip(network, "address", "add", f"{address}/30", "dev", "eth0")
        for interface in ("lo", "eth0"):
            ip(network, "link", "set", interface, "up")
        _make_keys(folder, address)
        lenient = "PerSourcePenalties no\n" if has_penalties() else ""
        configuration = _CONFIGURATION.format(address=address, folder=folder)
        (folder / "sshd_config").write_text(configuration + (settings or lenient))
        machine = ["nsenter", f"--net=/run/netns/{network.namespace}", "unshare", "--mount"]
        inside = [*machine, "sh", "-ec", _START, "sh", str(folder), str(ROOT / "build"), "same" if same_run else "own"]
        with (folder / "sshd.log").open("wb") as log:
            server = subprocess.Popen(inside, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        undo.callback(server.wait)
        undo.callback(server.kill)
        _await(server, folder / "sshd.log")
        yield SshMachine(network, folder, server, address)


def _make_keys(folder: Path, address: str) -> None:
    for name in ("host_key", "user_key", "stranger_key", "other_host_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "authorized_keys").write_bytes((folder / "user_key.pub").read_bytes())
    (folder / "known_hosts").write_text(f"{address} {(folder / 'host_key.pub').read_text()}")
    hashed = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"], input=PASSWORD, capture_output=True, text=True, check=True
    ).stdout.strip()
    (folder / "shadow").write_text(f"root:{hashed}:19000:0:99999:7:::\n")
    (folder / "shadow").chmod(0o600)


def _await(server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while "Server listening" not in log.read_text():
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
