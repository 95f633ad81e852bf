"""Makes the objects of a chain's pods in a cluster. A run starts, reads and deletes them, and a plan shows them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import yaml

from podperf.errors import Unavailable, understood
from podperf.hosts.base import Host
from podperf.hosts.run_directory import RUN_DIRECTORY, SOCKETS
from podperf.kernel.sriov import functions_there
from podperf.kubernetes import container_program, manifests, multus
from podperf.kubernetes.api import Api, ApiError
from podperf.kubernetes.commands_in_pods import execute
from podperf.kubernetes.multus import WantedNetwork
from podperf.kubernetes.pod_keys import amounts_of, lacks
from podperf.kubernetes.run_namespace import RunNamespace
from podperf.kubernetes.running_pods import READ, PodPlacement, await_phase, first_ended
from podperf.kubernetes.settings import ChainSettings
from podperf.pods.base import PodProgram

_ASLEEP = ("sleep", "2147483647")  # the kernel forwards, so the program of a pod only keeps the pod
_NUMBER = re.compile(r"[0-9a-f]{64}")  # of a container, for all runtimes
# DPDK binds hugepages to a NUMA node (mbind(2)). The usual seccomp profile of containers wants SYS_NICE for this.
_FOR_HUGEPAGES = ("SYS_NICE",)


@dataclass(frozen=True)
class StartedPod:
    """The facts that the cluster tells about a running pod. `container` is the number (ID) of its container.

    The number comes from the node that runs the pod, or from whoever may write the state of pods. It could be that of
    another container on podperf's machine, or a pattern.
    """

    name: str
    node: str
    image: str  # with its digest
    quality: str  # of service: BestEffort, Burstable or Guaranteed
    container: str
    pod: str  # the number (UID) of the pod, which is in the name of its control group, as that of its container

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> StartedPod:
        status = pod["status"]
        (container,) = status["containerStatuses"]
        number = container["containerID"].rpartition("://")[2]
        if not _NUMBER.fullmatch(number):
            raise ValueError(f"{number!r} is no number of a container")
        metadata = pod["metadata"]
        node, image = pod["spec"]["nodeName"], container["imageID"]
        return cls(metadata["name"], node, image, status["qosClass"], number, metadata["uid"])


@dataclass(frozen=True)
class WantedFunction:
    """A virtual function of the port at a PCI address, as a device of a resource of the cluster."""

    port: str
    resource: str


@dataclass(frozen=True)
class ChainPod:
    """A pod of a chain, by the name that its data plane gave it.

    With a `program`, its container waits for this program (container_program.py). Multus attaches the pod to
    the `networks`. The cluster gives it the `functions`.
    """

    name: str
    program: PodProgram | None = None
    networks: Sequence[WantedNetwork] = ()
    functions: Sequence[WantedFunction] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """The command of its container."""
        return _ASLEEP if self.program is None else container_program.waiting(self.name)


def manifests_of(
    pod: ChainPod, run: str, owners: list[dict[str, Any]], settings: ChainSettings
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The NetworkAttachmentDefinitions of a pod of a chain, and its own object."""
    name = f"{pod.name}-{run}"
    definitions = [multus.definition(name, network, run, owners) for network in pod.networks]
    found = _manifest_of(pod, name, run, owners, settings)
    found["metadata"].setdefault("annotations", {}).update(multus.annotations_of(name, pod.networks))
    return definitions, found


def _manifest_of(
    pod: ChainPod, name: str, run: str, owners: list[dict[str, Any]], settings: ChainSettings
) -> dict[str, Any]:
    devices = Counter(function.resource for function in pod.functions)
    further = {**settings.wishes.further, **{resource: str(number) for resource, number in devices.items()}}
    if pod.program is None:
        wishes = replace(settings.wishes, further=further)
        return manifests.pod(name, run, owners, pod.command, wishes, security=manifests.WITHOUT_RIGHTS)
    wishes = replace(settings.wishes, image=settings.program_image, further=further | amounts_of(settings.hugepages))
    needed = (*pod.program.capabilities, *(_FOR_HUGEPAGES if settings.pages else ()))
    security = manifests.with_capabilities(needed)
    for key, allowed in lacks(manifests.secured(security, wishes.security), needed):
        raise Unavailable(f"{settings.key}.security_context.{'.'.join(key)}: allowed: {allowed}")
    found = manifests.pod(name, run, owners, pod.command, wishes, security=security)
    # Of the node, the pod sees the sockets of all pods, and its own pipes. It can replace no pipe by a link, through
    # which root would write.
    _share(found, "sockets", RUN_DIRECTORY / SOCKETS)
    _share(found, "pipes", container_program.folder_of(pod.name), readOnly=True)
    return found


def _share(pod: dict[str, Any], name: str, folder: Path, **options: bool) -> None:
    """Let a pod see a folder of its node at the same path."""
    (container,) = pod["spec"]["containers"]
    container["volumeMounts"].append({"name": name, "mountPath": str(folder), **options})
    pod["spec"]["volumes"].append({"name": name, "hostPath": {"path": str(folder), "type": "Directory"}})


class ChainPods(Protocol):
    """Starts, reads and deletes the pods of chains, in a namespace of the run."""

    def create(self, pod: ChainPod) -> str:
        """Make a pod object. Returns its name in the cluster. It starts, or `await_running` says why it does not."""

    def await_running(self, pod: str) -> StartedPod:
        """Wait until a pod runs. Raises PodDidNotStart with the cluster's cause."""

    def attached(self, pod: str) -> Mapping[str, Sequence[str]]:
        """The addresses of each interface that Multus gave a running pod, by the interface's name."""

    def placement(self, pod: str) -> PodPlacement:
        """The CPUs and devices of a pod, as its container reads them."""

    def why_ended(self, pod: str) -> str | None:
        """The reason that the cluster gives for the end of a pod. None if it runs, or nobody knows the reason."""

    def delete(self, pod: str) -> None:
        """Let the cluster end a pod, and do not wait."""

    def await_gone(self, pods: Collection[str]) -> None:
        """Wait until the nodes have given back all that these pods had."""

    def close(self) -> None:
        """Delete everything of the run. Safe to repeat."""


class ClusterRun:
    """The chain pods of a run on a cluster."""

    def __init__(self, api: Api, settings: ChainSettings) -> None:
        self._api, self._settings = api, settings
        self._place = RunNamespace(api, settings.namespace, settings.key)

    def create(self, pod: ChainPod) -> str:
        place = self._place
        definitions, manifest = manifests_of(pod, place.run, place.owners, self._settings)
        for definition in definitions:
            place.define(definition)
        try:
            place.start(manifest)
        except ApiError as error:
            if "violates PodSecurity" in error.message:
                raise Unavailable(error.message) from error
            raise
        return str(manifest["metadata"]["name"])

    @understood("the cluster")
    def await_running(self, pod: str) -> StartedPod:
        return StartedPod.of(await_phase(self._place, pod))

    @understood("the cluster")
    def attached(self, pod: str) -> Mapping[str, Sequence[str]]:
        return multus.attached(self._place.pod(pod))

    @understood("a pod of the cluster")
    def placement(self, pod: str) -> PodPlacement:
        return PodPlacement.of(execute(self._api, pod, self._place.name, ("sh", "-c", READ)))

    @understood("the cluster")
    def why_ended(self, pod: str) -> str | None:
        ended = first_ended(self._place, [pod])
        return None if ended is None else ended[1]

    def delete(self, pod: str) -> None:
        self._place.delete(pod)

    def await_gone(self, pods: Collection[str]) -> None:
        self._place.await_gone(pods)

    def close(self) -> None:
        self._place.close()


class PlannedRun:
    """The chain pods of a plan. It asks no cluster: its `machine` records the objects that a run would make."""

    def __init__(self, machine: Host, settings: ChainSettings) -> None:
        self._machine, self._settings = machine, settings
        self._run = "plan"
        self._namespace = settings.namespace or f"{manifests.PREFIX}{self._run}"
        anchor = manifests.anchor(self._run, {})
        self._anchor = anchor["metadata"]["name"]
        self._owners = manifests.owned_by(self._anchor, "of-the-config-map")
        own = [] if settings.namespace else [manifests.namespace(self._namespace, self._run)]
        self._create(*own, anchor)
        self._pods: dict[str, ChainPod] = {}
        self._devices: dict[str, dict[str, str]] = {}  # of each pod, by their resource
        self._unused: dict[str, list[str]] = {}  # virtual functions of each port

    def _create(self, *objects: dict[str, Any]) -> None:
        for each in objects:
            if each["kind"] != "Namespace":
                each["metadata"]["namespace"] = self._namespace
        text = yaml.safe_dump_all(objects, sort_keys=False)
        self._machine.do("kubectl", "create", "--filename=-", *self._settings.of_kubectl, stdin=text)

    def create(self, pod: ChainPod) -> str:
        definitions, manifest = manifests_of(pod, self._run, self._owners, self._settings)
        self._create(*definitions, manifest)
        name = str(manifest["metadata"]["name"])
        self._pods[name], self._devices[name] = pod, self._give(pod.functions)
        return name

    def _give(self, functions: Sequence[WantedFunction]) -> dict[str, str]:
        """The next functions that no other pod has, by their resource, as a container tells them."""
        given: dict[str, list[str]] = {}
        for function in functions:
            if function.port not in self._unused:
                self._unused[function.port] = functions_there(self._machine, function.port)
            given.setdefault(function.resource, []).append(self._unused[function.port].pop(0))
        return {resource: ",".join(addresses) for resource, addresses in given.items()}

    def await_running(self, pod: str) -> StartedPod:
        return StartedPod(pod, "", "", "", pod.removesuffix(f"-{self._run}"), pod)

    def attached(self, pod: str) -> Mapping[str, Sequence[str]]:
        return {network.interface: network.addresses for network in self._pods[pod].networks}

    def placement(self, pod: str) -> PodPlacement:
        return PodPlacement(None, (), (), None, self._devices[pod])

    def why_ended(self, pod: str) -> str | None:
        return None

    def delete(self, pod: str) -> None:
        self._delete("pod", pod)

    def _delete(self, kind: str, name: str) -> None:
        options = self._settings.of_kubectl
        self._machine.do("kubectl", "delete", f"--namespace={self._namespace}", kind, name, *options)

    def await_gone(self, pods: Collection[str]) -> None:
        """Nothing is there."""

    def close(self) -> None:
        if self._settings.namespace:
            self._delete("configmap", self._anchor)
        else:
            self._machine.do("kubectl", "delete", "namespace", self._namespace, *self._settings.of_kubectl)
