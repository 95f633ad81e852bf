"""The CPUs and devices that a pod really has, as its container reads them, beside what it asked for. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from podperf.cpu_lists import format_cpu_list, parse_cpu_list
from podperf.errors import PodperfError

# Prints lines of a name and a value: the CPUs of the container's group (version 2, then version 1 of control groups),
# those of each thread of its program and of each NUMA node, how often the group waited for CPU time, and the devices
# that a device plug-in has named in the environment, as that of SR-IOV does.
READ = r"""
for each in cpuset.cpus.effective cpuset/cpuset.effective_cpus cpuset/cpuset.cpus; do
    [ -r /sys/fs/cgroup/$each ] && echo "group $(cat /sys/fs/cgroup/$each)" && break
done
for each in /proc/1/task/*; do
    echo "thread $(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' $each/status)"
done
for each in /sys/devices/system/node/node*; do
    [ -r $each/cpulist ] && echo "node ${each##*/node} $(cat $each/cpulist)"
done
for each in cpu.stat cpu/cpu.stat cpu,cpuacct/cpu.stat; do
    [ -r /sys/fs/cgroup/$each ] && sed -n 's/^nr_throttled/throttled/p' /sys/fs/cgroup/$each && break
done
env | sed -n 's/^PCIDEVICE_\([^=]*\)=/device \1 /p'
"""


def _variable(resource: str) -> str:
    """The name of a resource as in the environment. Plug-ins differ in the characters that they replace."""
    return re.sub(r"\W", "_", resource).upper()


@dataclass(frozen=True)
class PodPlacement:
    """The CPUs of a pod, and how often it waited because it had used up its CPU time.

    None stands for what the container cannot see. `group` has the CPUs of its control group, and `threads` those
    of the threads of its program. `nodes` are the NUMA nodes of these CPUs.
    """

    group: tuple[int, ...] | None
    threads: tuple[tuple[int, ...], ...]
    nodes: tuple[int, ...]
    throttled: int | None
    devices: Mapping[str, str] = field(default_factory=dict)  # by the name of the resource in the environment

    @classmethod
    def of(cls, said: str) -> PodPlacement:
        """The placement in the output of READ. ValueError for a list of CPUs that is none."""
        words = [line.split() for line in said.splitlines() if line.strip()]
        values = {kind: [each[1:] for each in words if each[0] == kind] for kind in ("group", "thread", "node")}
        groups, threads = ([parse_cpu_list(" ".join(each)) for each in values[kind]] for kind in ("group", "thread"))
        group = groups[0] if groups else None
        waits = [int(each[1]) for each in words if each[0] == "throttled"]
        # The plug-in of SR-IOV says more about the devices of X in X_INFO.
        devices = {
            each[1]: " ".join(each[2:]) for each in words if each[0] == "device" and not each[1].endswith("_INFO")
        }
        found = cls(group, tuple(threads), (), waits[0] if waits else None, devices)
        cpus = set(found.cpus)
        nodes = [int(number) for number, *each in values["node"] if cpus & set(parse_cpu_list(" ".join(each)))]
        return replace(found, nodes=tuple(sorted(nodes)))

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs of the control group, or those of all threads if the container cannot see its group."""
        return self.group if self.group is not None else tuple(sorted({cpu for each in self.threads for cpu in each}))

    def of_resource(self, resource: str) -> list[str]:
        """The devices of a resource of the cluster, such as intel.com/vf. Empty: the container tells of none."""
        said = (value for name, value in self.devices.items() if _variable(name) == _variable(resource))
        return [device for value in said for device in value.split(",") if device]

    def differs(self, cpus: int | None) -> str | None:
        """The asked and the given CPUs in words, if they differ. The pod asked for `cpus` CPUs alone, if for any."""
        asked = f"it asked for {cpus} {'CPU' if cpus == 1 else 'CPUs'} alone"
        if not cpus:
            return None
        if self.group is not None and len(self.group) != cpus:
            return f"{asked}, and its control group has the CPUs {format_cpu_list(self.group)}"
        for each in self.threads:
            if len(each) != cpus or each != self.cpus:
                return f"{asked}, and a thread of its program has the CPUs {format_cpu_list(each)}"
        return None

    def demand(self, cpus: int | None, pod: str) -> None:
        """PodperfError, which names the asked and the given CPUs of this `pod`, if they differ."""
        if differs := self.differs(cpus):
            raise PodperfError(
                f"{pod} is not placed as the topology says: {differs}; the CPU manager of the node must be `static`"
            )

    def describe(self) -> Mapping[str, Any]:
        """For a record."""
        return {
            "cpus": None if self.group is None else format_cpu_list(self.group),
            "cpus_of_threads": sorted({format_cpu_list(each) for each in self.threads}),
            "numa_nodes": list(self.nodes),
            "throttled": self.throttled,
            "devices": dict(self.devices),
        }
