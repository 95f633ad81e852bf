"""Waits for pods, and tells why they do not run. Reads their CPUs and their devices."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podperf.cpu_lists import format_cpu_list, parse_cpu_list
from podperf.errors import PodperfError, Unavailable
from podperf.kubernetes.api import ApiError
from podperf.kubernetes.run_namespace import RunNamespace

START_TIMEOUT = 120.0  # seconds; the image may have to be fetched
ENDED_TIMEOUT = 5.0  # seconds for a cluster to know that a pod has ended
_LOOK_AGAIN = 0.2  # seconds
_WAITS_LONG, _LOOK_SELDOM = 30.0, 2.0  # seconds: a pod that waits for so long is looked at so seldom
_MOST_TOLD = 1000  # characters of one message, which a pod or another tenant can have written
_HOPELESS = {
    *(
        "ErrImageNeverPull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    ),
    *("ErrImagePull", "ImagePullBackOff"),
}


_TOO_LONG = "DeadlineExceeded"  # of activeDeadlineSeconds


class PodDidNotStart(PodperfError):
    """A pod does not run, with the cause that the cluster gives."""

    def __init__(self, name: str, cause: str, events: Sequence[str]) -> None:
        super().__init__(f"pod {name} does not run: {cause}{_said(events)}")


def await_phase(
    place: RunNamespace, name: str, phase: str = "Running", timeout: float = START_TIMEOUT
) -> dict[str, Any]:
    """The pod when it runs, or has ended well (phase `Succeeded`).

    PodDidNotStart with the cause: at once if waiting is useless, else after `timeout`. Unavailable if the pod needs a
    second node, and the cluster has one.
    """
    began = time.monotonic()
    while True:
        pod, waited = place.pod(name), time.monotonic() - began
        if pod["status"].get("phase") == phase:
            return pod
        if _needs_second_node(pod):
            raise Unavailable("the pods must be on two nodes, and the cluster has one")
        cause, hopeless = why_not_running(pod)
        if hopeless or waited > timeout:
            raise PodDidNotStart(name, cause, place.events(name))
        time.sleep(_LOOK_SELDOM if waited > _WAITS_LONG else _LOOK_AGAIN)


class StartingPods:
    """Pods that start at the same time. One request looks at all of them."""

    def __init__(self, place: RunNamespace, timeout: float = START_TIMEOUT) -> None:
        """The pods have `timeout` seconds without a further one that runs."""
        self._place, self._timeout = place, timeout
        self._awaited: list[str] = []
        self._moved = time.monotonic()  # when the last pod ran

    def __len__(self) -> int:
        return len(self._awaited)

    def start(self, pod: Mapping[str, Any]) -> None:
        self._place.start(pod)
        self._awaited.append(pod["metadata"]["name"])

    def now_running(self) -> Mapping[str, Mapping[str, Any]]:
        """The pods that run now, and did not run at the last look, by their names. Raises PodDidNotStart, as
        `await_phase` does."""
        there = self._place.pods() if self._awaited else {}
        found = {name: there[name] for name in self._awaited if _phase(there.get(name, {})) == "Running"}
        self._awaited = [name for name in self._awaited if name not in found]
        if found or not self._awaited:
            self._moved = time.monotonic()
        late = time.monotonic() - self._moved > self._timeout
        for name in self._awaited:
            cause, hopeless = why_not_running(there[name]) if name in there else ("somebody deleted it", True)
            if hopeless or late:
                raise PodDidNotStart(name, cause, self._place.events(name))
        return found


def _phase(pod: Mapping[str, Any]) -> object:
    return pod.get("status", {}).get("phase")


def why_ended(place: RunNamespace, name: str) -> str | None:
    """The cause for the end of a pod that ran, with its last events. None if it runs."""
    try:
        pod = place.pod(name)
    except ApiError as error:
        if error.status != 404:
            raise
        cause = "somebody deleted or evicted it"
    else:
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]:
            return None
        deleted = "somebody deletes or evicts it" if "deletionTimestamp" in pod["metadata"] else ""
        cause = deleted or why_not_running(pod)[0]
    return cause + _said(place.events(name))


def first_ended(place: RunNamespace, names: Collection[str]) -> tuple[str, str] | None:
    """The first of these pods that has ended, and the cause. None if none has, or if the cluster does not answer.

    The cluster knows of an end after some seconds.
    """
    deadline = time.monotonic() + ENDED_TIMEOUT
    while True:
        for name in names:
            try:
                why = why_ended(place, name)
            except ApiError:
                return None  # the caller's first error says more
            if why is not None:
                return name, why
        if time.monotonic() > deadline:
            return None
        time.sleep(_LOOK_AGAIN)


def _said(events: Sequence[str]) -> str:
    return f"; events: {' | '.join(event[:_MOST_TOLD] for event in events[-3:])}" if events else ""


def _needs_second_node(pod: Mapping[str, Any]) -> bool:
    """Whether the scheduler has looked at the only node for a pod that must not be on the node of another one."""
    affinity = pod.get("spec", {}).get("affinity", {}).get("nodeAffinity", {})
    said = _said_by_scheduler(pod)
    return said is not None and said.startswith("0/1 nodes") and '"NotIn"' in json.dumps(affinity)


def _said_by_scheduler(pod: Mapping[str, Any]) -> str | None:
    """Why no node takes a pod. None if a node has it, or if the scheduler has not looked yet."""
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", condition.get("reason")))
    return None


def why_not_running(pod: Mapping[str, Any]) -> tuple[str, bool]:
    """The reason why a pod does not run, and whether waiting is useless."""
    status = pod["status"]
    if status.get("phase") in {"Failed", "Succeeded"}:
        remedy = " (`longest_run` in the settings of the topology)" if status.get("reason") == _TOO_LONG else ""
        return f"{_reason(status)}{remedy}{_ended(status)}" or f"it is {status['phase']}", True
    for each in status.get("containerStatuses", ()):
        waiting = each.get("state", {}).get("waiting")
        if waiting and waiting.get("reason") in _HOPELESS:
            return _reason(waiting), True
    if (said := _said_by_scheduler(pod)) is not None:
        return f"no node takes it ({said[:_MOST_TOLD]})", False
    if not status.get("startTime") and (node := pod.get("spec", {}).get("nodeName")):
        return f"the kubelet of node {node} has not taken it yet: does it run there?", False
    return "it has not started yet", False


def _reason(status: Mapping[str, Any]) -> str:
    return ": ".join(str(status[key])[:_MOST_TOLD] for key in ("reason", "message") if status.get(key))


def _ended(status: Mapping[str, Any]) -> str:
    """How the containers of a pod ended."""
    ended = (each.get("state", {}).get("terminated") for each in status.get("containerStatuses", ()))
    return "; ".join(f"its program ended with exit code {each['exitCode']} ({_reason(each)})" for each in ended if each)


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
        values = {kind: [word[1:] for word in words if word[0] == kind] for kind in ("group", "thread", "node")}
        groups, threads = ([parse_cpu_list(" ".join(each)) for each in values[kind]] for kind in ("group", "thread"))
        group = groups[0] if groups else None
        waits = [int(word[1]) for word in words if word[0] == "throttled"]
        # The plug-in of SR-IOV says more about the devices of X in X_INFO.
        devices = {
            word[1]: " ".join(word[2:]) for word in words if word[0] == "device" and not word[1].endswith("_INFO")
        }
        found = cls(group, tuple(threads), (), waits[0] if waits else None, devices)
        cpus = set(found.cpus)
        nodes = [int(number) for number, *each in values["node"] if cpus & set(parse_cpu_list(" ".join(each)))]
        return replace(found, nodes=tuple(sorted(nodes)))

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs of the control group, or those of all threads if the container cannot see its group."""
        return (
            self.group if self.group is not None else tuple(sorted({cpu for thread in self.threads for cpu in thread}))
        )

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
        for thread in self.threads:
            if len(thread) != cpus or thread != self.cpus:
                return f"{asked}, and a thread of its program has the CPUs {format_cpu_list(thread)}"
        return None

    def demand(self, cpus: int | None, pod: str) -> None:
        """PodperfError, which names the asked and the given CPUs of this `pod`, if they differ."""
        if differs := self.differs(cpus):
            raise PodperfError(
                f"{pod} is not placed as the topology says: {differs}; the CPU manager of the node must be `static`"
            )

    def describe(self) -> Mapping[str, Any]:
        return {
            "cpus": None if self.group is None else format_cpu_list(self.group),
            "cpus_of_threads": sorted({format_cpu_list(thread) for thread in self.threads}),
            "numa_nodes": list(self.nodes),
            "throttled": self.throttled,
            "devices": dict(self.devices),
        }
