"""Gives parts of the cluster the commands iptables and ipset, from unpacked Debian packages."""

from __future__ import annotations

from pathlib import Path

from podperf.cluster.layout import NODE_PATH
from podperf.errors import PodperfError, Unavailable

PACKAGES = (
    *("ipset", "iptables"),
    *("libip4tc2", "libip6tc2", "libipset13", "libmnl0", "libnetfilter-conntrack3", "libnfnetlink0", "libnftnl11"),
    "libxtables12",
)
_NAMES = tuple(f"{each}{of}" for each in ("iptables", "ip6tables") for of in ("", "-save", "-restore"))
LINKS = {f"names/{each}": "../usr/sbin/xtables-nft-multi" for each in _NAMES}
_BRIDGED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")


def demand_bridged() -> None:
    """Unavailable if frames of a bridge do not pass iptables here."""
    if not _BRIDGED.exists():
        raise Unavailable("rules for pods of one node need the kernel module: modprobe br_netfilter")


def environment(debian: Path) -> list[str]:
    """The words before a command that finds the programs in this root of packages."""
    extensions = next(debian.glob("usr/lib/*/xtables"), None)
    if extensions is None:
        raise PodperfError(f"{debian} has no iptables; remove that folder, and run this command again")
    own = (str(debian / each) for each in ("names", "usr/sbin", "sbin"))
    return [
        *("env", f"PATH={':'.join(own)}:{NODE_PATH}"),
        *(f"LD_LIBRARY_PATH={extensions.parent}", f"XTABLES_LIBDIR={extensions}"),
    ]
