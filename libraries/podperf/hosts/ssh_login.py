"""The login on a machine by OpenSSH's client: its command, and one clear line for each reason why it fails."""

from __future__ import annotations

import math
import os
import pwd
import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

from podperf.environment import PASSWORD_VARIABLE
from podperf.errors import PodperfError

KNOWN_HOSTS = "~/.ssh/known_hosts"
ASK_PASSWORD = Path(__file__).with_name("ask_password.sh")
# Connects to a UNIX socket, and passes the connection to the client (ProxyUseFdpass). QEMU takes one connection at a
# time, so this can wait until the time for the login is over.
_PASS_CONNECTION = (
    "import socket, sys; there = socket.socket(socket.AF_UNIX); there.connect(sys.argv[1]); "
    "socket.send_fds(socket.socket(fileno=1), [b'0'], [there.fileno()])"
)
# `ask_password.sh` gives the password to the process with this number only. It is that of the client itself.
_WITH_PASSWORD = ("sh", "-c", 'export PODPERF_SSH_CLIENT=$$; exec "$@"', "sh")


@dataclass(frozen=True)
class Timeouts:
    """The seconds that podperf waits for a machine behind SSH. The client counts in whole seconds."""

    step: float = 10.0  # for each of TCP, host key, login and opening a session
    lost: float = 15.0  # without any answer, until the connection counts as lost
    keepalive: float = 5.0  # between two keep-alive questions

    @property
    def answer(self) -> float:
        """For the start of a command or of a copy. A lost connection is noticed before."""
        return 2 * self.lost

    @property
    def login(self) -> float:
        """For the whole login."""
        return 4 * self.step


@dataclass(frozen=True)
class Login:
    """The login on a machine. The user's configuration of SSH (~/.ssh/config) has all options that are not here."""

    address: str  # a name, an IP address, or a name of the configuration
    port: int = 22
    user: str = "root"
    key: str | None = None  # the only key to offer: a private key, or the public key of one that an agent has
    known_hosts: str = KNOWN_HOSTS  # the file of trusted host keys
    password: str | None = field(default=None, repr=False)
    part: str = "worker"  # the part of the topology with this login
    socket: str = ""  # the path of a UNIX socket that leads to the SSH server; empty: the network does
    timeouts: Timeouts = Timeouts()

    @property
    def by_hand(self) -> str:
        """A command with which a person logs in in the same way."""
        return shlex.join(["ssh", *self.options, f"{self.user}@{self.address}", "true"])

    @property
    def client_user(self) -> pwd.struct_passwd | None:
        """The caller of sudo, whose SSH client logs in; None for the user of this program, also with a key of root."""
        caller = _caller_of_sudo()
        key = Path(expanded(self.key)) if self.key is not None else None
        of_root = key is not None and key.is_file() and key.stat().st_uid == os.geteuid()
        return None if self.socket or of_root else caller

    @property
    def as_user(self) -> list[str]:
        """The beginning of a command that runs as this user."""
        user = self.client_user
        return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups", "--"] if user else []

    @property
    def options(self) -> list[str]:
        """The options that the topology asks for. The client's own configuration comes after them."""
        options = ["-p", str(self.port)] if self.port != 22 else []
        if self.key is not None:
            options += ["-i", _literal(expanded(self.key)), "-o", "IdentitiesOnly=yes"]
        if self.known_hosts != KNOWN_HOSTS:
            trusted = f'"{_literal(expanded(self.known_hosts))}"'
            options += ["-o", f"UserKnownHostsFile={trusted}", "-o", "GlobalKnownHostsFile=/dev/null"]
        return options

    def client_command(self, control: str) -> list[str]:
        """The command of a client that logs in, and has its control socket at this path.

        Raises PodperfError if the named key does not exist.
        """
        if self.key is not None and not Path(path := expanded(self.key)).is_file():
            raise PodperfError(
                f"there is no private key {path} to log in on {self.address}: correct {self.part}.ssh.key"
            )
        interval = max(1, round(self.timeouts.keepalive))
        options = {
            "ControlPersist": "no",
            "BatchMode": "no" if self.password else "yes",
            "NumberOfPasswordPrompts": 1,
            "StrictHostKeyChecking": "yes",
            "UpdateHostKeys": "no",
            "ConnectTimeout": math.ceil(self.timeouts.step),
            "ServerAliveInterval": interval,
            "ServerAliveCountMax": max(1, round(self.timeouts.lost / interval) - 1),
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "ClearAllForwardings": "yes",
            "PermitLocalCommand": "no",
        }
        if self.socket:
            command = [sys.executable, "-I", "-c", _PASS_CONNECTION, self.socket]
            options |= {"ProxyUseFdpass": "yes", "ProxyCommand": _literal(shlex.join(command))}
        return [
            *self.as_user,
            *(_WITH_PASSWORD if self.password else ()),
            *("ssh", "-v", "-N", "-M", "-S", control, *(("-F", "none") if self.socket else ())),
            *(word for key, value in options.items() for word in ("-o", f"{key}={value}")),
            *(*self.options, "-l", self.user, "--", self.address),
        ]

    def client_environment(self, ask_password: Path) -> dict[str, str]:
        """The environment of this client. It has the password, if there is one, and a program that tells it."""
        environment = dict(os.environ)
        if user := self.client_user:
            environment |= {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}
        if self.password:
            environment |= {"SSH_ASKPASS": str(ask_password), "SSH_ASKPASS_REQUIRE": "force"}
            environment[PASSWORD_VARIABLE] = self.password
        return environment


def _literal(path: str) -> str:
    """A path in a value in which the client replaces words that begin with a percent sign."""
    return path.replace("%", "%%")


# Patterns of the client's text (`ssh -v`). Each has the reason, with its remedy, in one line.
# The first pattern that is found counts.
_REASONS = (
    (
        r"Could not resolve hostname (\S+): ([^\r\n]*)",
        "cannot resolve the name {0} ({1}): correct {part}.ssh.address",
    ),
    (
        r"connect to host \S+ port \d+: Connection refused",
        "{where} refuses connections: is its SSH server running, and is the port right?",
    ),
    (
        r"connect to host \S+ port \d+: Connection timed out",
        "no answer from {where} in {step} s: is the machine up, and does no firewall drop what goes there?",
    ),
    (
        r"connect to host (\S+) port \d+: ((?:No route|Network is unreachable)[^\r\n]*)",
        "no route to {0} ({1}): look at `ip route get {0}`",
    ),
    (
        r"REVOKED HOST KEY DETECTED.*?host key for (\S+) is marked",
        "the host key of {0} ({shown}) is revoked: somebody else may have it; give it a new one",
    ),
    (
        r"fingerprint for the (\S+) key .*?Offending (?!\1)(\S+) key in (\S+):(\d+)",
        "{where} has no host key of the known type any more ({2} has one of type {1}), and shows {shown}: compare it "
        "with `ssh-keygen -lf` there; then `sed -i {3}d {2}` and `{by_hand}`",
    ),
    (
        r"fingerprint for the (\S+) key .*?Offending \S+ key in (\S+):(\d+)",
        "{where} shows another host key ({shown}) than {1} has: somebody may stand in between; if you know why it "
        "changed: `sed -i {2}d {1}` and `{by_hand}`",
    ),
    (
        r"No \S+ host key is known for (\S+) and",
        "the host key of {0} ({shown}) is not in {known}; once: `{by_hand}`, and compare it with `ssh-keygen -lf "
        "/etc/ssh/ssh_host_ed25519_key.pub` there",
    ),
    (
        r"timed out during banner exchange|banner exchange:.*invalid format|banner line contains|Bad remote protocol",
        "what listens at {where} is no SSH server, or a very slow one: is the port right?",
    ),
    (
        r"kex_exchange_identification: ",
        "{where} closed the connection before it named itself as an SSH server: it may refuse this address for a "
        "while, after failed logins (PerSourcePenalties, fail2ban) or with too many at once (MaxStartups). Wait some "
        "minutes, or look there at its log and at `sshd -T | grep -iE 'persource|maxstartups'`. If nobody failed to "
        "log in: is the port right?",
    ),
    (
        r"Too many authentication failures",
        "{where} refuses the login of {user} by {offered} keys, and a server ends a login after some (6 by default, "
        "MaxAuthTries): name the right key in {part}.ssh.key (for a key of the agent, the file of its public key is "
        "enough)",
    ),
    (
        r"with partial success.*Permission denied",
        "{where} refuses the login of {user} by {tried}: it wants a password beside the key",
    ),
    (
        r"Server accepts key.*Permission denied",
        "the private key for {where} has a passphrase: load it with ssh-add, and let sudo keep the agent",
    ),
    (r"Permission denied \(", "{where} refuses the login of {user} by {tried}: {remedy}"),
)


def why_not(login: Login, said: str) -> str:
    """The reason why a login failed, in one line with its remedy. `said` is the text of the client (`ssh -v`)."""
    reached = re.findall(r"Connecting to (\S+) .*port (\d+)\.", said)
    where = "{} port {}".format(*reached[-1]) if reached else login.address  # a proxy command reaches it otherwise
    for pattern, reason in _REASONS:
        if found := re.search(pattern, said, re.DOTALL):
            return reason.format(
                *found.groups(),
                where=where,
                shown=(re.findall(r"Server host key: (\S+ \S+)", said) or [""])[-1],
                offered=said.count("Offering public key"),
                known=expanded(login.known_hosts),
                user=login.user,
                part=login.part,
                step=math.ceil(login.timeouts.step),
                by_hand=login.by_hand,
                tried=_tried(login),
                remedy=_remedy(login),
            )
    own = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("debug1: ")]
    return f"cannot log in on {where}: {'; '.join(own[1:][-2:]) or 'ssh says nothing'} (`{login.by_hand}`)"


def _tried(login: Login) -> str:
    ways = [f"the key {expanded(login.key)}"] if login.key else ["the keys of ~/.ssh and of the agent"]
    return ", ".join([*ways, f"the password of {PASSWORD_VARIABLE}"] if login.password else ways)


def _remedy(login: Login) -> str:
    return (
        f"ssh-copy-id -p {login.port} {login.user}@{login.address}, or name a key in {login.part}.ssh.key, or set "
        f"{PASSWORD_VARIABLE} and {login.part}.ssh.login: password (sudo keeps neither that variable nor SSH_AUTH_SOCK "
        "unless told to by --preserve-env)"
    )


def _caller_of_sudo() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(os.environ.get("SUDO_USER", "")) if os.geteuid() == 0 else None
    except KeyError:  # no sudo, or a user that no longer exists
        return None


def expanded(path: str) -> str:
    """The path with the home of the caller of sudo for `~`. Root's home has neither his keys nor his known hosts."""
    caller = _caller_of_sudo()
    if caller is not None and (path == "~" or path.startswith("~/")):
        return caller.pw_dir + path[1:]
    return str(Path(path).expanduser())
