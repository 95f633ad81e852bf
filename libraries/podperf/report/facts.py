"""A record's configuration as short lines for people. Pure. A null of the record has no line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podperf.figures import count
from podperf.records import Record

_GIB = 2**30
_SHOWN_PACKAGES = ("iproute2", "containernetworking-plugins", "openvswitch-switch", "dpdk", "vpp", "nftables")


def environment_facts(record: Record) -> dict[str, str]:
    """The facts of the worker that RFC 8204 section 3.3 wants beside a result. Further workers: only their names."""
    found = record.environment
    cpu, kernel, memory = found.get("cpu") or {}, found.get("kernel") or {}, found.get("memory") or {}
    platform, own = found.get("platform") or {}, found.get("podperf") or {}
    bios, packages, size = platform.get("bios") or {}, found.get("packages") or {}, memory.get("total_bytes")
    turbo = "" if cpu.get("turbo") is None else f"turbo {'on' if cpu['turbo'] else 'off'}"
    counts = [cpu.get(name) for name in ("sockets", "cores_per_socket", "threads_per_core")]
    facts = {
        "Host": found.get("host"),
        "Machine": _words(platform.get("vendor"), platform.get("product"), platform.get("board")),
        "BIOS": _words(bios.get("vendor"), bios.get("version"), bios.get("date")),
        "Virtualisation": _virtualisation(platform),
        "CPU": cpu.get("model"),
        "Sockets, cores, threads": " x ".join(map(str, counts)) if all(counts) else "",
        "Microcode": cpu.get("microcode"),
        "CPUs online": cpu.get("online"),
        "CPUs isolated": cpu.get("isolated"),
        "Governor, turbo": _words(cpu.get("governor"), turbo),
        "Memory": f"{size / _GIB:.1f} GiB" if size else "",
        "NUMA nodes": "; ".join(
            f"{numa_node['node']}: CPU {numa_node['cpus']}" for numa_node in found.get("numa_nodes") or ()
        ),
        "Hugepages": "; ".join(
            f"{_page(hugepage['of_mib'])}: {hugepage['free']} of {hugepage['total']} free"
            for hugepage in found.get("hugepages") or ()
        ),
        "Transparent hugepages": memory.get("transparent_hugepages"),
        "Distribution": found.get("distribution"),
        "Kernel": _words(kernel.get("release"), kernel.get("version")),
        "Kernel command line": kernel.get("command_line"),
        "Clock source": kernel.get("clocksource"),
        "Mitigations": _mitigations(found.get("mitigations") or {}),
        "Packages": ", ".join(f"{name} {packages[name]}" for name in _SHOWN_PACKAGES if name in packages),
        "Placement": placement_words(record),
        "Further workers": ", ".join(found.get("further_workers") or ()),
        "Placement remarks": "; ".join(found.get("placement_remarks") or ()),
        "podperf": _words(
            own.get("version"), (own.get("commit") or "")[:12], "modified" if own.get("modified") else ""
        ),
        "Python": own.get("python"),
    }
    if testbed := record.testbed:
        facts = {"Topology": f"{testbed.name} ({testbed.path}, sha256 {(testbed.sha256 or '?')[:12]})"} | facts
        facts |= {f"Label {name}": value for name, value in testbed.labels.items()}
    return {name: str(value) for name, value in facts.items() if value}


def flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """The description of a component, one line a value. The keys of nested objects make one name: `Ports left mac`.

    Empty values have no line. Each object of a list has one: `Worker links 2`: `name w-left, mtu 1500, master br0`.
    """
    facts: dict[str, str] = {}
    for key, value in data.items():
        name = f"{prefix} {key}".strip().replace("_", " ")
        if isinstance(value, Mapping):
            facts |= flat(value, name)
        elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
            for index, each in enumerate(value, 1):
                inner = flat(each) if isinstance(each, Mapping) else {"": str(each)}
                facts[f"{name[0].upper()}{name[1:]} {index}"] = ", ".join(
                    f"{key[:1].lower()}{key[1:]} {said}".strip() for key, said in inner.items()
                )
        elif value not in (None, "", []):
            facts[name[0].upper() + name[1:]] = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return facts


def placement_words(record: Record) -> str:
    """`tester CPU 0, system under test CPU 1`."""
    placement = record.placement
    if not placement:
        return ""
    words = f"tester CPU {_numbers(placement.tester)}, system under test CPU {_numbers(placement.sut)}"
    return words + (f"; shared: CPU {_numbers(placement.shared)}" if placement.shared else "")


def _numbers(cpus: Sequence[int]) -> str:
    return ", ".join(map(str, cpus)) or "-"


def _words(*words: str | None) -> str:
    return ", ".join(word for word in words if word)


def _page(mebibytes: float) -> str:
    return f"{mebibytes / 1024:g} GiB" if mebibytes >= 1024 else f"{mebibytes:g} MiB"


def _virtualisation(platform: Mapping[str, Any]) -> str:
    kind = platform.get("virtualisation")
    if kind == "none":
        return "bare metal"
    flag = "virtual machine (hypervisor flag is set)" if platform.get("hypervisor_flag") else ""
    return _words(kind, flag)


def _mitigations(found: Mapping[str, str | None]) -> str:
    active = [name for name, state in found.items() if state and state.startswith("Mitigation")]
    open_ones = [name for name, state in found.items() if state and state.startswith("Vulnerable")]
    parts = [f"{count(len(active), 'mitigation')} active ({', '.join(active)})"] if active else []
    return "; ".join(parts + ([f"vulnerable: {', '.join(open_ones)}"] if open_ones else []))
