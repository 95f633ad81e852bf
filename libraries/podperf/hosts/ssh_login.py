"""Logs in on a machine over SSH, with one clear line for each reason why a login fails."""

from __future__ import annotations

import errno
import logging
import os
import pwd
import socket
import struct
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

from podperf.errors import PodperfError

PASSWORD_VARIABLE = "PODPERF_SSH_PASSWORD"
USUAL_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_LOG = "podperf.ssh"
_TRY_AGAIN = 0.1  # seconds

_taken: dict[str, str] = {}  # the password, after it was removed from the environment


def take_password() -> str | None:
    """The password from the environment. It is removed there, because child processes would inherit it."""
    if PASSWORD_VARIABLE in os.environ:
        _taken[PASSWORD_VARIABLE] = os.environ.pop(PASSWORD_VARIABLE)
    return _taken.get(PASSWORD_VARIABLE) or None


@dataclass(frozen=True)
class Timeouts:
    """The seconds that podperf waits for a machine behind SSH."""

    step: float = 10.0  # for each of TCP, host key, login and opening a channel
    lost: float = 15.0  # without any answer, until the connection counts as lost
    keepalive: float = 5.0  # between two keep-alive questions


@dataclass(frozen=True)
class Login:
    """The address of a login, and its method: `key`, or an agent and the usual keys; then `password`."""

    address: str
    port: int = 22
    user: str = "root"
    key: str | None = None
    known_hosts: str = "~/.ssh/known_hosts"  # the file of trusted host keys; podperf trusts no other
    password: str | None = field(default=None, repr=False)
    part: str = "worker"  # the part of the topology with this login
    socket: str = ""  # the path of a UNIX socket that leads to the SSH server; empty: the network does
    timeouts: Timeouts = Timeouts()

    @property
    def keys(self) -> list[str]:
        """The private keys to try. Raises PodperfError if the named key does not exist."""
        if self.key is None:
            return [path for name in USUAL_KEYS if Path(path := expanded(f"~/.ssh/{name}")).is_file()]
        if not Path(path := expanded(self.key)).is_file():
            raise PodperfError(
                f"there is no private key {path} to log in on {self.address}: correct {self.part}.ssh.key"
            )
        return [path]


def log_in(login: Login, client: paramiko.SSHClient | None = None) -> paramiko.SSHClient:
    """A connection that ends if the other side no longer answers. `client` is the client to connect, if given.

    Raises PodperfError with the reason if the login fails.
    """
    client = client or paramiko.SSHClient()
    client.set_log_channel(_LOG)
    logging.getLogger(_LOG).setLevel(logging.CRITICAL)  # podperf's own errors have the same content
    try:
        known = _known_hosts(Path(expanded(login.known_hosts)))
        client.set_missing_host_key_policy(_Refuse(known))
        for names, key in known.keys:
            for name in names:
                client.get_host_keys().add(name, key.get_name(), key)
        client.connect(
            login.address,
            login.port,
            login.user,
            password=login.password or None,
            key_filename=login.keys,  # type: ignore[arg-type]  # a list is as good, says its documentation
            look_for_keys=False,  # those are in `keys`
            sock=_reach(login),
            banner_timeout=login.timeouts.step,
            auth_timeout=login.timeouts.step,
        )
        transport = client.get_transport()
        assert transport is not None
        transport.set_keepalive(login.timeouts.keepalive)
    except (paramiko.SSHException, EOFError, OSError, ValueError) as error:
        client.close()
        raise PodperfError(_why_not(login, error)) from error
    except BaseException:
        client.close()
        raise
    return client


def _reach(login: Login) -> socket.socket:
    if login.socket:
        return _reach_locally(login.socket, login.timeouts.step)
    connected = socket.create_connection((login.address, login.port), login.timeouts.step)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Unanswered keep-alives end the connection. TCP itself would try for a quarter of an hour (tcp(7)).
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(login.timeouts.lost * 1000))
    return connected


def _reach_locally(path: str, timeout: float) -> socket.socket:
    """A connection to a UNIX socket. QEMU takes one connection at a time, and the next one waits in a short queue.

    With a full queue the kernel would wait without an end (unix(7)), or returns at once if the socket has a timeout.
    """
    deadline = time.monotonic() + timeout
    while True:
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(timeout)
        try:
            connected.connect(path)
        except BlockingIOError:
            connected.close()
            if time.monotonic() > deadline:
                raise TimeoutError from None
            time.sleep(_TRY_AGAIN)
        else:
            return connected


@dataclass(frozen=True)
class _KnownHosts:
    """The content of a file in the format of sshd(8), SSH_KNOWN_HOSTS. Keys in `revoked` are never trusted.

    Certificates are ignored.
    """

    keys: Sequence[tuple[Sequence[str], paramiko.PKey]] = ()  # each with the names of its hosts
    revoked: Collection[bytes] = ()
    names_authorities: bool = False


def _known_hosts(path: Path) -> _KnownHosts:
    """Read the file. Lines that podperf does not understand are left out, as ssh does."""
    keys, revoked, names_authorities = [], set(), False
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        words = line.split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        names_authorities |= marker == "@cert-authority"
        if not words or words[0].startswith("#") or marker not in {"", "@revoked"}:
            continue
        try:
            entry = HostKeyEntry.from_line(" ".join(words))
        except (paramiko.SSHException, InvalidHostKey, ValueError, IndexError, struct.error):
            continue
        if entry is None or entry.key is None:
            continue
        if marker:
            revoked.add(entry.key.asbytes())
        else:
            keys.append((entry.hostnames, entry.key))
    return _KnownHosts([each for each in keys if each[1].asbytes() not in revoked], revoked, names_authorities)


class _UnknownHostKey(paramiko.SSHException):
    """The file has no key of this host."""


class _RevokedHostKey(paramiko.SSHException):
    """This host's key is revoked."""


class _Refuse(paramiko.MissingHostKeyPolicy):
    """Refuse every unknown host."""

    def __init__(self, known: _KnownHosts) -> None:
        self._known = known

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        if key.asbytes() in self._known.revoked:
            raise _RevokedHostKey(f"{key.get_name()} {key.fingerprint}")
        certificates = "; a @cert-authority there does not count, as only keys are compared"
        raise _UnknownHostKey(
            f"{key.get_name()} {key.fingerprint}", certificates if self._known.names_authorities else ""
        )


def _why_not(login: Login, error: Exception) -> str:
    """The reason why a login failed, in one line with its remedy."""
    if isinstance(error, paramiko.SSHException):
        return _why_refused(login, error)
    where = f"{login.address} port {login.port}"
    match error:
        case socket.gaierror():
            text = f"cannot resolve the name {login.address} ({error.strerror}): correct {login.part}.ssh.address"
        case TimeoutError():
            text = (
                f"no answer from {where} in {login.timeouts.step:g} s: is the machine up, and does no firewall drop "
                "what goes there?"
            )
        case ConnectionRefusedError():
            text = f"{where} refuses connections: is its SSH server running, and is the port right?"
        case OSError(errno=errno.ENETUNREACH | errno.EHOSTUNREACH):
            text = f"no route to {login.address} ({error.strerror}): look at `ip route get {login.address}`"
        case EOFError() | ConnectionError():
            text = f"{where} ended the connection before the login: look at the log of its SSH server"
        case _:
            text = f"cannot log in on {where}: {_said(error)}"
    return text


def _why_refused(login: Login, error: paramiko.SSHException) -> str:
    """The reason why a machine that answers refused the login, in one line with its remedy."""
    where, known, said = f"{login.address} port {login.port}", expanded(login.known_hosts), _said(error)
    scan = f"ssh-keyscan -p {login.port} {login.address} >> {known}"
    match error:
        case paramiko.BadHostKeyException():
            listed = login.address if login.port == 22 else f"[{login.address}]:{login.port}"
            text = (
                f"{where} shows another host key ({error.key.get_name()} {error.key.fingerprint}) than {known} has "
                f"({error.expected_key.get_name()} {error.expected_key.fingerprint}): somebody may stand in between; "
                f"if you know why it changed: ssh-keygen -f {known} -R '{listed}' && {scan}"
            )
        case _UnknownHostKey():
            key, remark = error.args
            text = (
                f"the host key of {where} ({key}) is not in {known}; once: {scan}, after comparing it with "
                f"`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` there{remark}"
            )
        case _RevokedHostKey():
            text = (
                f"the host key of {where} ({said}) is revoked in {known}: somebody else may have it; give it a new one"
            )
        case paramiko.PasswordRequiredException():
            text = f"the private key for {where} has a passphrase: load it with ssh-add, and let sudo keep the agent"
        case paramiko.AuthenticationException():
            text = f"{where} refuses the login of {login.user} by {_tried(login)}: {_remedy(login)}"
        case _ if "authentication methods" in said:
            text = f"there is nothing to log in on {where} with, neither a key nor an agent: {_remedy(login)}"
        case paramiko.SSHException(__context__=EOFError() | ConnectionError()) if "banner" in said:
            text = (
                f"{where} closed the connection before it named itself as an SSH server: it may refuse this address "
                "for a while, after failed logins (PerSourcePenalties, fail2ban) or with too many at once "
                "(MaxStartups). Wait some minutes, or look there at its log and at `sshd -T | grep -iE "
                "'persource|maxstartups'`. If nobody failed to log in: is the port right?"
            )
        case _ if "banner" in said:
            text = f"what listens at {where} is no SSH server, or a very slow one ({said}): is the port right?"
        case _:
            text = f"cannot log in on {where}: {said}"
    return text


def _said(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _tried(login: Login) -> str:
    ways = [f"the key {key}" for key in login.keys]
    ways += ["the agent's keys"] if os.environ.get("SSH_AUTH_SOCK") else []
    ways += [f"the password of {PASSWORD_VARIABLE}"] if login.password else []
    return ", ".join(ways) or "nothing"


def _remedy(login: Login) -> str:
    return (
        f"ssh-copy-id -p {login.port} {login.user}@{login.address}, or name a key in {login.part}.ssh.key, or set "
        f"{PASSWORD_VARIABLE} and {login.part}.ssh.login: password (sudo keeps neither that variable nor SSH_AUTH_SOCK "
        "unless told to by --preserve-env)"
    )


def expanded(path: str) -> str:
    """The path with the home of the caller of sudo for `~`. Root's home has neither his keys nor his known hosts."""
    user = os.environ.get("SUDO_USER") if os.geteuid() == 0 else None
    if user and (path == "~" or path.startswith("~/")):
        try:
            return pwd.getpwnam(user).pw_dir + path[1:]
        except KeyError:  # a user that no longer exists
            pass
    return str(Path(path).expanduser())
