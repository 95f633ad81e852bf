"""The configuration items of a host that RFC 8204 section 3.3 and the draft ask for beside every result.

Everything is read through the Host. A value that a host does not have or does not show is null, never an error. Names
of hosts and interfaces are collected. Addresses of the management network and environment variables are not.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import podperf
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.linux import package_versions
from podperf.ownership import CHECKOUT

# Packages whose version can change a result.
PACKAGES = (
    "iproute2",
    "ethtool",
    "nftables",
    "iptables",
    "containernetworking-plugins",
    "openvswitch-switch",
    "openvswitch-switch-dpdk",
    "dpdk",
    "dpdk-dev",
    "vpp",
    "libbpf1",
    "libxdp1",
    "clang",
    "bird2",
    "frr",
    "docker.io",
    "containerd",
    "podman",
    "runc",
)
PYTHON_PACKAGES = ("robotframework", "MLRsearch", "jumpavg", "hdrhistogram", "jsonschema")


def collect(host: Host) -> dict[str, Any]:
    """The configuration of one host. JSON types only."""
    return {
        "host": _line(host, "uname", "-n"),
        "platform": _platform(host),
        "cpu": _cpu(host),
        "memory": _memory(host),
        "numa_nodes": _numa_nodes(host),
        "hugepages": _hugepages(host),
        "kernel": {
            "release": _line(host, "uname", "-r"),
            "version": _line(host, "uname", "-v"),
            "architecture": _line(host, "uname", "-m"),
            "command_line": _file(host, "/proc/cmdline"),
            "clocksource": _file(host, "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            "netdev_budget": _integer(_file(host, "/proc/sys/net/core/netdev_budget")),
        },
        "distribution": parse_os_release(_file(host, "/etc/os-release") or "").get("PRETTY_NAME"),
        "mitigations": _mitigations(host),
        "packages": package_versions(host, PACKAGES) or None,
    }


def interface_details(host: Host, interface: str) -> dict[str, Any]:
    """Driver, firmware, offloads, rings, channels, MTU, MAC and speed of one interface of the host."""
    link = _ip_link(host, interface)
    kind = link.get("linkinfo", {}).get("info_kind")  # veth, bridge, macvlan …; a real device has none
    driver = parse_ethtool(_output(host, "ethtool", "-i", interface))
    features = parse_ethtool(_output(host, "ethtool", "-k", interface))
    rings = parse_ethtool(_output(host, "ethtool", "-g", interface).partition("Current hardware settings")[2])
    channels = parse_ethtool(_output(host, "ethtool", "-l", interface).partition("Current hardware settings")[2])
    return {
        "kind": kind,
        "mac": link.get("address"),
        "mtu": link.get("mtu"),
        "queueing_discipline": link.get("qdisc"),
        "transmit_queue_length": link.get("txqlen"),
        "speed_bits_per_second": _speed(host, interface, kind),
        "driver": driver.get("driver") or None,
        "driver_version": driver.get("version") or None,
        "firmware": driver.get("firmware-version") or None,
        "bus": driver.get("bus-info") or None,
        "numa_node": _integer(_file(host, f"/sys/bus/pci/devices/{driver.get('bus-info')}/numa_node")),
        "offloads": offloads(features) or None,
        "rings": _integers(rings),
        "channels": _integers(channels),
    }


def _speed(host: Host, interface: str, kind: str | None) -> int | None:
    """The speed of an interface's link, in bit/s. None for an interface without a speed of its own."""
    if kind is not None:  # the 10 Gbit/s that a veth reports have no meaning
        return None
    # /sys/class/net shows the interfaces of the namespace in which /sys was mounted, so ask ethtool.
    speed = re.search(r"Speed: (\d+)Mb/s", _output(host, "ethtool", interface))
    return int(speed.group(1)) * 1_000_000 if speed else None


def offloads(features: Mapping[str, str]) -> dict[str, bool]:
    """Whether each feature of `ethtool -k` is on, without features that this driver never has."""
    return {name: state.startswith("on") for name, state in features.items() if state and state != "off [fixed]"}


def podperf_version(host: Host, folder: Path = CHECKOUT) -> dict[str, Any]:
    """Versions of podperf (with its git commit, when it runs from a clone) and of the Python it runs on."""
    # Root measures from a user's clone. git must not refuse it as "dubious". git must not write the clone's index,
    # because root would own the index afterwards.
    git = ("git", "--no-optional-locks", "-c", f"safe.directory={folder}", "-C", str(folder))
    return {
        "version": podperf.__version__,
        "commit": _line(host, *git, "rev-parse", "HEAD"),
        "modified": bool(_line(host, *git, "status", "--porcelain", "-uno")),
        "python": ".".join(map(str, sys.version_info[:3])),
        "packages": {name: _installed(name) for name in PYTHON_PACKAGES},
    }


def parse_os_release(text: str) -> dict[str, str]:
    """/etc/os-release as a mapping, quotes removed."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}


def parse_ethtool(text: str) -> dict[str, str]:
    """`name: value` lines as a mapping. Headings have no value and are left out."""
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def parse_meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo in bytes (counts, like HugePages_Total, as they are)."""
    found = re.findall(r"^([^:\n]+):\s+(\d+)( kB)?", text, re.MULTILINE)
    return {name: int(value) * (1024 if unit else 1) for name, value, unit in found}


def parse_lscpu(text: str) -> dict[str, str]:
    """`lscpu --json` as one flat mapping. Empty if `text` is not such JSON."""
    try:
        entries = json.loads(text)["lscpu"]
    except (ValueError, KeyError, TypeError):
        return {}
    return dict(_flat(entries))


def _flat(entries: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    for entry in entries:
        yield entry["field"].rstrip(":"), entry["data"]
        yield from _flat(entry.get("children", ()))


def parse_memory_devices(text: str) -> list[dict[str, str]]:
    """`dmidecode -t 17` as one mapping for each fitted DIMM: locator, size, type, speeds, rank. No serial numbers."""
    wanted = ("Locator", "Size", "Type", "Speed", "Configured Memory Speed", "Rank")
    blocks = (parse_ethtool(block) for block in text.split("Memory Device")[1:])
    return [
        {key: block[key] for key in wanted if key in block}
        for block in blocks
        if block.get("Size", "").split()[:1] != ["No"] and "Size" in block
    ]


def _platform(host: Host) -> dict[str, Any]:
    def dmi(name: str) -> str | None:
        return _file(host, f"/sys/class/dmi/id/{name}")

    flags = (_file(host, "/proc/cpuinfo") or "").partition("flags")[2].partition("\n")[0].split()
    detected = _line(host, "systemd-detect-virt")
    return {
        "vendor": dmi("sys_vendor"),
        "product": dmi("product_name"),
        "board": dmi("board_name"),
        "bios": {"vendor": dmi("bios_vendor"), "version": dmi("bios_version"), "date": dmi("bios_date")},
        "hypervisor_flag": "hypervisor" in flags if flags else None,
        "virtualisation": detected,  # "none" is bare metal; containers are named too
    }


def _cpu(host: Host) -> dict[str, Any]:
    facts = parse_lscpu(_output(host, "env", "LC_ALL=C", "lscpu", "--json"))
    cpuinfo = _file(host, "/proc/cpuinfo") or ""
    microcode = re.search(r"^microcode\s*:\s*(\S+)", cpuinfo, re.MULTILINE)
    system = "/sys/devices/system/cpu"
    no_turbo, boost = _file(host, f"{system}/intel_pstate/no_turbo"), _file(host, f"{system}/cpufreq/boost")
    return {
        "model": facts.get("Model name"),
        "microcode": microcode.group(1) if microcode else None,
        "sockets": _integer(facts.get("Socket(s)")),
        "cores_per_socket": _integer(facts.get("Core(s) per socket")),
        "threads_per_core": _integer(facts.get("Thread(s) per core")),
        "online": _file(host, f"{system}/online"),
        "isolated": _file(host, f"{system}/isolated"),
        "maximum_mhz": facts.get("CPU max MHz"),
        "caches": {name.split()[0]: size for name, size in facts.items() if re.fullmatch(r"L\d\w?( cache)?", name)},
        "governor": _file(host, f"{system}/cpu0/cpufreq/scaling_governor"),
        "frequency_driver": _file(host, f"{system}/cpu0/cpufreq/scaling_driver"),
        "turbo": (no_turbo == "0" if no_turbo is not None else boost == "1" if boost is not None else None),
        "idle_driver": _file(host, f"{system}/cpuidle/current_driver"),
        "smt": _file(host, f"{system}/smt/control"),
    }


def _memory(host: Host) -> dict[str, Any]:
    facts = parse_meminfo(_file(host, "/proc/meminfo") or "")
    return {
        "total_bytes": facts.get("MemTotal"),
        "available_bytes": facts.get("MemAvailable"),
        "swap_bytes": facts.get("SwapTotal"),
        "devices": parse_memory_devices(_output(host, "dmidecode", "-t", "17")) or None,
        "transparent_hugepages": _chosen(_file(host, "/sys/kernel/mm/transparent_hugepage/enabled")),
    }


def _numa_nodes(host: Host) -> list[dict[str, Any]]:
    root = "/sys/devices/system/node"
    names = sorted(_names(host, root, r"node\d+"), key=lambda name: int(name[4:]))
    nodes = []
    for name in names:
        total = re.search(r"MemTotal:\s+(\d+) kB", _file(host, f"{root}/{name}/meminfo") or "")
        nodes.append(
            {
                "node": int(name[4:]),
                "cpus": _file(host, f"{root}/{name}/cpulist"),
                "memory_bytes": int(total.group(1)) * 1024 if total else None,
            }
        )
    return nodes


def _hugepages(host: Host) -> list[dict[str, Any]]:
    root = "/sys/kernel/mm/hugepages"
    return [
        {
            "of_mib": int(name.removeprefix("hugepages-").removesuffix("kB")) / 1024,
            "total": _integer(_file(host, f"{root}/{name}/nr_hugepages")),
            "free": _integer(_file(host, f"{root}/{name}/free_hugepages")),
        }
        for name in sorted(_names(host, root, r"hugepages-\d+kB"))
    ]


def _mitigations(host: Host) -> dict[str, str | None]:
    root = "/sys/devices/system/cpu/vulnerabilities"
    return {name: _file(host, f"{root}/{name}") for name in sorted(_names(host, root, r"\w+"))}


def _ip_link(host: Host, interface: str) -> dict[str, Any]:
    try:
        links = json.loads(_output(host, "ip", "-json", "-details", "link", "show", "dev", interface))
    except ValueError:
        return {}
    return dict(links[0]) if links else {}


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _output(host: Host, *command: str) -> str:
    """Standard output. Empty if the command is missing or does not end. The exit code is ignored."""
    try:
        return host.ask(*command, check=False).stdout
    except PodperfError:
        return ""


def _line(host: Host, *command: str) -> str | None:
    return _output(host, *command).strip() or None


def _names(host: Host, folder: str, pattern: str) -> list[str]:
    return [name for name in _output(host, "ls", folder).split() if re.fullmatch(pattern, name)]


def _file(host: Host, path: str) -> str | None:
    try:
        return host.get(path).decode(errors="replace").strip() or None
    except (OSError, PodperfError):
        return None


def _chosen(text: str | None) -> str | None:
    """`madvise` of `always [madvise] never`."""
    found = re.search(r"\[(\w+)\]", text or "")
    return found.group(1) if found else None


def _integer(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None


def _integers(values: Mapping[str, str]) -> dict[str, int] | None:
    found = {name: _integer(value) for name, value in values.items()}
    return {name: value for name, value in found.items() if value is not None} or None
