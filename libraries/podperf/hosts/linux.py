"""Links, addresses and kernel settings of any Linux host."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from ipaddress import ip_interface
from typing import Any
from zlib import crc32

from podperf.addressing import mac_of
from podperf.errors import PodperfError
from podperf.hosts.base import Background, CommandFailed, Host, ProgramPlace, json_answer, shell_script

LONGEST_SOCKET_PATH = 107  # bytes
_FAILED_LINE = re.compile(r"^Command failed -:(\d+)$", re.MULTILINE)  # of `ip -batch`
CARRIER_PATIENCE = 15  # seconds; when a link comes up, its two ends negotiate speed and other settings

_CONFIGURE = shell_script("configure.sh", beside=__file__)
_UNTIL_SUCCESS = shell_script("until_success.sh", beside=__file__)

# `sh -c` runs this with an interface as $1.
_AWAIT_CARRIER = 'until ip link show dev "$1" | grep -q LOWER_UP; do sleep 0.05; done'
# `sh -c` runs this with interface, attribute and value. A sysfs shows the interfaces of the network namespace that
# mounted it. /sys belongs to the machine's own namespace. So this mounts another sysfs on /sys/class, because the
# kernel refuses to mount one on /sys itself. All sysfs of one namespace have the same state, and a container mounts its
# sysfs for reading only. So a write remounts this one. The container's own mount stays for reading only.
_SYSFS = "mount --make-rprivate / && mount -t sysfs sysfs /sys/class && "
_TO_INTERFACE = 'cd "/sys/class/class/net/$1" && '
_WRITE_ATTRIBUTE = f'{_SYSFS}mount -o remount,rw /sys/class && {_TO_INTERFACE}echo "$3" > "$2"'
_READ_ATTRIBUTE = f'{_SYSFS}{_TO_INTERFACE}{{ cat "$2" 2>/dev/null || echo 0; }}'


def ip(host: Host, *arguments: str) -> None:
    host.do("ip", *arguments)


def configure(host: Host, *changes: Sequence[str], ip_version: int | None = None, **settings: int) -> None:
    """Set kernel parameters, as `sysctl` does, and then change several things, all with one command.

    Each change is the arguments of `ip`. Changes end at the first one that fails. The error is then that of this change
    alone. A command costs milliseconds, so a chain is set up with few of them. Routing rules need `ip_version`, because
    `ip` does not know it from their addresses.
    """
    given = "".join(f"{' '.join(change)}\n" for change in changes)
    parameters = [f"{name.replace('__', '/')}={value}" for name, value in settings.items()]
    batch = ["ip", *([] if ip_version is None else [f"-{ip_version}"]), "-batch", "-"]
    command = ["sh", "-c", _CONFIGURE, "sh", *parameters, *batch] if parameters else batch
    try:
        host.do(*command, stdin=given)
    except CommandFailed as error:
        failed = _FAILED_LINE.search(error.output)
        if failed is None:
            raise
        said = error.output[: failed.start()]
        raise CommandFailed(error.host, ["ip", *changes[int(failed[1]) - 1]], error.exit_code, said) from None


def ip_json(host: Host, *arguments: str, check: bool = True, assumed: Sequence[Mapping[str, Any]] | None = None) -> Any:
    """The answer of `ip` as data. Without `check`, an empty list if the command fails."""
    answer = None if assumed is None else json.dumps(assumed)
    done = host.ask("ip", "-json", *arguments, check=check, assumed=answer)
    said = (done.stdout if done.exit_code == 0 else "").strip()
    return json_answer(host, f"ip -json {' '.join(arguments)}", said or "[]", _links)


def _links(answer: Any) -> list[dict[str, Any]]:
    if not isinstance(answer, list) or not all(isinstance(each, dict) for each in answer):
        raise TypeError
    return answer


def link_named(host: Host, interface: str, *options: str, **assumed: Any) -> dict[str, Any]:
    """One interface, as `ip` shows it with these options. A plan assumes these values of it beside the usual ones."""
    known = [assumed_link(host, interface, **assumed)]
    (link,) = ip_json(host, *options, "link", "show", "dev", interface, assumed=known)
    return dict(link)


def assumed_link(host: Host, interface: str, **known: Any) -> dict[str, Any]:
    """The interface that a plan assumes, with numbers of its own."""
    number = crc32(f"{interface} of {host.name}".encode())
    own = {"ifname": interface, "ifindex": number, "link_index": number - 1, "address": assumed_mac(host, interface)}
    return {**own, "flags": ["UP"], "mtu": 1500, "link_type": "ether", "addr_info": [], **known}


def assumed_mac(host: Host, interface: str) -> str:
    """The MAC of an interface that a plan assumes."""
    return f"02:{blake2b(f'{interface} of {host.name}'.encode(), digest_size=5).digest().hex(':')}"


def is_veth(link: Mapping[str, Any]) -> bool:
    """Whether a link, as `ip -json -details` shows it, is one end of a veth pair."""
    return bool(link.get("linkinfo", {}).get("info_kind") == "veth")


def await_carrier(host: Host, interface: str) -> bool:
    """Wait until an interface has a link. False if it has none after 15 s."""
    wait = ("timeout", str(CARRIER_PATIENCE), "sh", "-c", _AWAIT_CARRIER, "sh", interface)
    return host.ask(*wait, check=False, timeout=CARRIER_PATIENCE + 5, assumed="").exit_code == 0


def sysctl(host: Host, **settings: int) -> None:
    """Set kernel parameters. A double underscore in a name stands for a dot: `net__ipv4__ip_forward=1`.

    Parameters that the kernel lacks are left out, for example those of IPv6 in a kernel without IPv6.
    """
    host.do("sysctl", "-eqw", *(f"{name.replace('__', '.')}={value}" for name, value in settings.items()))


def mac_address(host: Host, interface: str) -> str:
    return mac_of(link_named(host, interface)["address"], f"{interface} of {host.name}")


def add_veth(
    host: Host, *, near: str, far: str, mtu: int, near_namespace: str | None = None, far_namespace: str | None = None
) -> None:
    """A veth pair with both ends up. An end without a namespace stays in the namespace of the host."""
    in_near, in_far = (["netns", each] if each else [] for each in (near_namespace, far_namespace))
    peer = ["peer", "name", far, "mtu", str(mtu), *in_far]
    pair = ["link", "add", "name", near, "mtu", str(mtu), "up", *in_near, "type", "veth", *peer]
    up = ["link", "set", "dev", far, "up"]  # the kernel makes the far end before the near one, so not up
    if far_namespace is None:
        configure(host, pair, up)
    else:
        ip(host, *pair)
        ip(host, "-n", far_namespace, *up)


def write_attribute(host: Host, interface: str, attribute: str, value: int) -> None:
    """Write an attribute of an interface (/sys/class/net/INTERFACE/ATTRIBUTE) in the host's network namespace."""
    host.do("unshare", "--mount", "sh", "-c", _WRITE_ATTRIBUTE, "sh", interface, attribute, str(value))


def read_attribute(host: Host, interface: str, attribute: str, assumed: int = 0) -> int:
    """The number in an attribute of an interface. 0 if the kernel does not have the attribute."""
    command = ("unshare", "--mount", "sh", "-c", _READ_ATTRIBUTE, "sh", interface, attribute)
    return int(host.ask(*command, assumed=str(assumed)).stdout)


def await_success(host: ProgramPlace, process: Background, timeout: float, *command: str) -> bool:
    """Wait until a command succeeds. False after `timeout` seconds, or if the process has ended."""
    wait = ("timeout", f"{timeout:g}", "sh", "-c", _UNTIL_SUCCESS, "sh", str(process.pid))
    return host.ask(*wait, *command, check=False, timeout=timeout + 5, assumed="").exit_code == 0 and process.alive()


def unix_socket(directory: str, name: str) -> str:
    """The path of a UNIX socket. Raises PodperfError if it is too long for the kernel (unix(7), sun_path)."""
    path = f"{directory}/{name}"
    if len(path.encode()) > LONGEST_SOCKET_PATH:
        raise PodperfError(
            f"the socket path {path} has {len(path.encode())} bytes, and a UNIX socket's has at most "
            f"{LONGEST_SOCKET_PATH}: use a shorter run directory"
        )
    return path


def add_address(host: Host, interface: str, address: str) -> None:
    """Give an interface an address such as `198.18.0.1/24`. An IPv6 address switches IPv6 on there, as CNI plug-ins
    do."""
    ipv6 = ip_interface(address).version == 6
    on = {f"net__ipv6__conf__{interface}__disable_ipv6": 0} if ipv6 else {}
    configure(host, ("address", "add", address, "dev", interface), **on)


def static_neighbour(interface: str, address: str, mac: str) -> Sequence[str]:
    """The arguments of `ip` that add a static MAC for an address, so that no question for it disturbs a trial."""
    return ("neigh", "replace", address, "lladdr", mac, "dev", interface, "nud", "permanent")


def missing_link_type(host: Host, kind: str, *settings: str) -> str | None:
    """The reason why the kernel cannot make links of this kind, or None. Tries it in a temporary namespace."""
    namespace = f"podperf-probe-{kind}"
    ip(host, "netns", "add", namespace)
    try:
        ip(host, "-n", namespace, "link", "add", "base", "type", "veth", "peer", "name", "far")
        probe = ("link", "add", "probe", "link", "base", "type", kind, *settings)
        done = host.do("ip", "-n", namespace, *probe, check=False)
    finally:
        ip(host, "netns", "del", namespace)
    return None if done.exit_code == 0 else f"the kernel of {host.name} has no {kind} links ({done.stderr.strip()})"


def module_loaded(host: Host, module: str) -> bool:
    """Whether this module is loaded, or built into the kernel and visible in sysfs."""
    return host.ask("test", "-e", f"/sys/module/{module}", check=False, assumed="").exit_code == 0


def unloading(module: str) -> str:
    """A command for `sh` that unloads a module, with the interfaces that it made in every namespace (`tunl0`)."""
    return f"modprobe --quiet --remove {module} || :"


@contextmanager
def module_as_before(host: Host, module: str) -> Iterator[None]:
    """At the end, unload this module if it was not loaded before. The code inside may load it."""
    loaded = module_loaded(host, module)
    yield
    if not loaded:
        host.do("sh", "-c", unloading(module))


def path_of(host: ProgramPlace, command: str) -> str | None:
    """Where a command is. None if it is not installed. On Debian only root has /usr/sbin in its PATH."""
    where = f"PATH=$PATH:/usr/sbin:/sbin command -v {shlex.quote(command)}"
    done = host.ask("sh", "-c", where, check=False, assumed="")
    return None if done.exit_code else done.stdout.strip()


def package_versions(host: ProgramPlace, packages: Sequence[str]) -> dict[str, str]:
    """Versions of the installed ones of these Debian packages. Empty without dpkg."""
    try:
        shown = "${db:Status-Status} ${Package} ${Version}\\n"
        done = host.ask("dpkg-query", "-W", "-f", shown, *packages, check=False)
    except PodperfError:
        return {}
    rows = (line.split() for line in done.stdout.splitlines())
    return {row[1]: row[2] for row in rows if len(row) == 3 and row[0] == "installed"}
