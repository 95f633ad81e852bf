"""The pods of a chain in a cluster: how a run starts, reads and deletes them, and what a plan shows in its place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import yaml

from podperf.hosts.base import Host
from podperf.kubernetes import manifests
from podperf.kubernetes.api import Api
from podperf.kubernetes.execute import execute
from podperf.kubernetes.placement import READ, PodPlacement
from podperf.kubernetes.pods import await_phase
from podperf.kubernetes.run_namespace import RunNamespace
from podperf.kubernetes.settings import PROPERTIES, ClusterSettings, kubeconfig_of, wishes

Isolation = Literal["none", "shared", "exclusive"]

SCHEMA: Mapping[str, Any] = {
    "additionalProperties": False,
    "properties": {
        **PROPERTIES,
        "isolation": {
            "title": "the CPUs of the pods",
            "enum": ["none", "shared", "exclusive"],
            "default": "none",
        },
        "cpus": {
            "title": "whole CPUs for each pod alone, with `isolation: exclusive`",
            "type": "integer",
            "minimum": 1,
            "default": 1,
        },
    },
}
_COMMAND = ("sleep", "2147483647")  # the kernel forwards, so the program of a pod only keeps the pod


@dataclass(frozen=True)
class ChainSettings(ClusterSettings):
    """A login to a cluster, and the pods of the chains there."""

    isolation: Isolation = "none"

    key = "pods.settings"

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> ChainSettings:
        """The settings from `pods.settings` of a topology, which has the defaults of the schema."""
        isolation: Isolation = settings["isolation"]
        cpus = {"none": None, "shared": 0, "exclusive": settings["cpus"]}[isolation]
        return cls(
            wishes(settings, cpus),
            kubeconfig_of(settings),
            settings.get("context"),
            settings.get("namespace"),
            isolation,
        )


@dataclass(frozen=True)
class StartedPod:
    """The facts that the cluster tells about a running pod. `container` is the number (ID) of its container."""

    name: str
    node: str
    image: str  # with its digest
    quality: str  # of service: BestEffort, Burstable or Guaranteed
    container: str

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> StartedPod:
        """The facts in a pod object."""
        status = pod["status"]
        (container,) = status["containerStatuses"]
        number = container["containerID"].rpartition("://")[2]
        return cls(pod["metadata"]["name"], pod["spec"]["nodeName"], container["imageID"], status["qosClass"], number)


class ChainPods(Protocol):
    """Starts and deletes the pods of chains."""

    def create(self, name: str) -> str:
        """Make a pod object. Returns its name in the cluster. It starts, or `await_running` says why it does not."""

    def await_running(self, pod: str) -> StartedPod:
        """Wait until a pod runs."""

    def placement(self, pod: str) -> PodPlacement:
        """The CPUs of a pod, as its container reads them."""

    def delete(self, pod: str) -> None:
        """Let the cluster end a pod, and do not wait."""

    def await_gone(self, pods: Collection[str]) -> None:
        """Wait until the nodes have given back all that these pods had."""

    def close(self) -> None:
        """Delete everything of the run. Safe to repeat."""


def manifest_of(name: str, run: str, owners: list[dict[str, Any]], settings: ChainSettings) -> dict[str, Any]:
    """The object of a pod of a chain."""
    return manifests.pod(f"{name}-{run}", run, owners, _COMMAND, settings.wishes, security=manifests.WITHOUT_RIGHTS)


class RunInCluster(ChainPods):
    """The pods of a run in a namespace of its cluster."""

    def __init__(self, api: Api, settings: ChainSettings) -> None:
        self._api, self._settings = api, settings
        self._place = RunNamespace(api, settings.namespace, settings.key)

    def create(self, name: str) -> str:
        pod = manifest_of(name, self._place.run, self._place.owners, self._settings)
        self._place.start(pod)
        return str(pod["metadata"]["name"])

    def await_running(self, pod: str) -> StartedPod:
        return StartedPod.of(await_phase(self._place, pod))

    def placement(self, pod: str) -> PodPlacement:
        return PodPlacement.of(execute(self._api, pod, self._place.name, ("sh", "-c", READ)))

    def delete(self, pod: str) -> None:
        self._place.delete(pod)

    def await_gone(self, pods: Collection[str]) -> None:
        self._place.await_gone(pods)

    def close(self) -> None:
        self._place.close()


class PlannedRun(ChainPods):
    """Asks no cluster. Its `machine` records the objects that a run would make."""

    def __init__(self, machine: Host, settings: ChainSettings) -> None:
        self._machine, self._settings = machine, settings
        self._run = "plan"
        self._namespace = settings.namespace or f"{manifests.PREFIX}{self._run}"
        anchor = manifests.anchor(self._run, {})
        self._anchor = anchor["metadata"]["name"]
        self._owners = manifests.owned_by(self._anchor, "of-the-config-map")
        own = [] if settings.namespace else [manifests.namespace(self._namespace, self._run)]
        self._create(*own, anchor)

    def _create(self, *objects: dict[str, Any]) -> None:
        for each in objects:
            if each["kind"] != "Namespace":
                each["metadata"]["namespace"] = self._namespace
        text = yaml.safe_dump_all(objects, sort_keys=False)
        self._machine.do("kubectl", "create", "--filename=-", stdin=text)

    def create(self, name: str) -> str:
        pod = manifest_of(name, self._run, self._owners, self._settings)
        self._create(pod)
        return str(pod["metadata"]["name"])

    def await_running(self, pod: str) -> StartedPod:
        return StartedPod(pod, "", "", "", pod)

    def placement(self, pod: str) -> PodPlacement:
        return PodPlacement(None, (), (), None)

    def delete(self, pod: str) -> None:
        self._delete("pod", pod)

    def _delete(self, kind: str, name: str) -> None:
        self._machine.do("kubectl", "delete", f"--namespace={self._namespace}", kind, name)

    def await_gone(self, pods: Collection[str]) -> None:
        """Nothing is there."""

    def close(self) -> None:
        if self._settings.namespace:
            self._delete("configmap", self._anchor)
        else:
            self._machine.do("kubectl", "delete", "namespace", self._namespace)
