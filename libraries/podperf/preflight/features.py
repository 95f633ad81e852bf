"""Probes of kernel features: each one tries to use the feature.

A probe runs in namespaces that the kernel removes at the end of the probe's process. So it leaves nothing behind.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from podperf.hosts.base import Host
from podperf.hosts.linux import module_as_before

_VETH = "ip link add name left type veth peer name right"


@dataclass(frozen=True)
class Feature:
    """One feature that a kernel may have. `script`, run by root, succeeds if the kernel has it."""

    name: str
    script: str
    remedy: str
    isolation: tuple[str, ...] = ("unshare", "--net")
    module: str | None = None  # the probe may load this module, which would stay loaded


NAMESPACES = Feature("network namespaces, veth pairs", _VETH, "a kernel with CONFIG_NET_NS and CONFIG_VETH")
THREADED_NAPI = Feature(
    "threaded NAPI on veth",
    f"mount -t sysfs sysfs /sys; {_VETH}; ip link set left up; ethtool -K left gro on;"
    " echo 1 >/sys/class/net/left/threaded",
    "Linux 5.12 or newer, and ethtool",
    ("unshare", "--net", "--mount"),
)
FEATURES = (
    NAMESPACES,
    THREADED_NAPI,
    Feature("bridge", "ip link add name bridge type bridge", "modprobe bridge"),
    Feature(
        "nftables with NAT",
        "nft 'table ip t { chain c { type nat hook postrouting priority 100; masquerade; }; }'",
        "modprobe nft_masq, and the package nftables",
    ),
    Feature("macvlan", f"{_VETH}; ip link add link left name m type macvlan mode bridge", "modprobe macvlan"),
    Feature("ipvlan", f"{_VETH}; ip link add link left name i type ipvlan mode l2", "modprobe ipvlan"),
    Feature(
        "ipip",
        "ip link add ipip type ipip remote 10.254.255.2",
        "modprobe ipip",
        module="ipip",  # this module makes an interface in every namespace
    ),
    Feature(
        "openvswitch datapath",
        "genl ctrl get name ovs_datapath",
        "modprobe openvswitch",
        module="openvswitch",
    ),
)


def missing(host: Host, feature: Feature) -> str | None:
    """The kernel's error for this feature, or None if the kernel has the feature. Needs root."""
    with module_as_before(host, feature.module) if feature.module else nullcontext():
        done = host.run(*feature.isolation, "--", "sh", "-ec", feature.script, check=False)
    if done.exit_code == 0:
        return None
    return " ".join((done.stderr or done.stdout).split()) or f"exit code {done.exit_code}"
