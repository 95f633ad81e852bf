"""Finds the cluster that `podperf cluster` uses in place of podperf's own: the one of KUBECONFIG, k3s, or kind.

A further kind of cluster is a class here, and a line in KINDS. podperf ends only clusters that it made.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from podperf.cluster.layout import FOLDER
from podperf.cluster.lifecycle import NODES, RUNS_ALREADY, in_words, why_not_ready
from podperf.errors import PodperfError, understood
from podperf.hosts.base import Host
from podperf.kubernetes.api import ApiError, log_in
from podperf.ownership import Owner
from podperf.testbed.run_lock import CLUSTER, RunLock

K3S_KUBECONFIG = Path("/etc/rancher/k3s/k3s.yaml")  # a k3s server makes this file
KIND_CLUSTER = "podperf"  # the name of the cluster that kind makes for podperf
KIND_FOLDER = Path("/var/lib/podperf-kind")  # podperf makes it before the cluster; it has the cluster's kubeconfig
MAKE_TIMEOUT, LOAD_TIMEOUT = 900.0, 300.0  # seconds; kind may have to fetch the image of its nodes
_READY_TIMEOUT = "120s"  # for kind


@dataclass(frozen=True)
class Surroundings:
    """This machine, the environment of the caller, and a function that tells the caller a line."""

    host: Host
    environment: Mapping[str, str]
    say: Callable[[str], None]

    def has(self, program: str) -> bool:
        return not self.host.ask("which", program, check=False).exit_code

    def works(self, program: str, question: Callable[[], object]) -> bool:
        """Whether the machine has this program, and the question raises no PodperfError. Tells the caller the error."""
        if not self.has(program):
            return False
        try:
            question()
        except PodperfError as error:
            self.say(f"cluster: {program} is here, and is not used: {' '.join(str(error).split())}")
            return False
        return True


class OtherCluster(Protocol):
    """A kind of cluster."""

    name: ClassVar[str]
    makes: ClassVar[bool]  # whether podperf makes the cluster, with as many nodes as the caller wants
    kubeconfig: str

    def __init__(self, around: Surroundings) -> None:
        """Ask nobody yet."""

    def usable(self) -> bool:
        """Whether `up` uses this kind of cluster. Tells the caller the reason why a part that is here is of no use."""

    def exists(self) -> bool:
        """Whether the cluster exists, so that `status` describes it."""
        return self.usable()

    def up(self, nodes: int, images: Sequence[Path]) -> str:
        """Make the cluster, if podperf makes it, and load images into it. Returns a line about the images."""

    def down(self) -> bool:
        """End the cluster, if podperf made it. False otherwise."""
        return False


class NamedCluster(OtherCluster):
    """The cluster that the caller names in KUBECONFIG. Nothing in it changes, unless it is the k3s of this machine."""

    name = "the cluster that KUBECONFIG names"
    makes = False

    def __init__(self, around: Surroundings) -> None:
        self._k3s = K3sCluster(around)
        self.kubeconfig = around.environment.get("KUBECONFIG", "")

    def usable(self) -> bool:
        """A kubeconfig of a cluster that podperf made, which may be down by now, does not count."""
        files = [Path(each) for each in self.kubeconfig.split(os.pathsep) if each]
        return any(not file.is_relative_to(FOLDER) and not file.is_relative_to(KIND_FOLDER) for file in files)

    def up(self, nodes: int, images: Sequence[Path]) -> str:
        number = number_of(self.kubeconfig)
        if number is not None and self._k3s.usable() and number_of(self._k3s.kubeconfig) == number:
            return self._k3s.up(nodes, images)
        return "podperf changes nothing there; load the images of the pods on its nodes: `podperf image build`"


class K3sCluster(OtherCluster):
    """The k3s whose server runs on this machine. It gets images. Nothing else in it changes."""

    name = "k3s of this machine"
    makes = False

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self.kubeconfig = str(K3S_KUBECONFIG)

    def usable(self) -> bool:
        return K3S_KUBECONFIG.exists() and self._around.works("k3s", lambda: state_of(self.kubeconfig))

    def up(self, nodes: int, images: Sequence[Path]) -> str:
        with RunLock(CLUSTER, self._around.say):
            for image in images:
                command = ("k3s", "ctr", "--namespace", "k8s.io", "images", "import", str(image))
                self._around.host.do(*command, timeout=LOAD_TIMEOUT)
        return "the node on this machine has the images of the pods; other nodes do not"


class KindCluster(OtherCluster):
    """A cluster that kind makes for podperf, in containers of docker or podman."""

    name = "a cluster of kind"
    makes = True

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self.kubeconfig = str(KIND_FOLDER / "kubeconfig")

    def usable(self) -> bool:
        return self._around.works("kind", self._clusters)

    def _clusters(self) -> list[str]:
        """The names of all clusters of kind. PodperfError if neither docker nor podman works."""
        return self._around.host.ask("kind", "get", "clusters").stdout.split()

    def exists(self) -> bool:
        return KIND_FOLDER.exists() and self.usable() and KIND_CLUSTER in self._clusters()

    def up(self, nodes: int, images: Sequence[Path]) -> str:
        do = self._around.host.do
        with RunLock(CLUSTER, self._around.say), ExitStack() as undo:
            if KIND_CLUSTER in self._clusters():
                raise PodperfError(
                    RUNS_ALREADY
                    if KIND_FOLDER.exists()
                    else f"kind has a cluster {KIND_CLUSTER} that podperf did not make; name its kubeconfig in "
                    "KUBECONFIG, or start podperf's own cluster: podperf cluster up --own"
                )
            KIND_FOLDER.mkdir(mode=0o711, exist_ok=True)  # so `down` ends the cluster of a command that was killed
            undo.callback(self._end_half_made)
            make = ("create", "cluster", "--kubeconfig", self.kubeconfig, "--wait", _READY_TIMEOUT, "--config", "-")
            self._around.say(f"cluster: kind starts {nodes} {'node' if nodes == 1 else 'nodes'}")
            do("kind", *make, "--name", KIND_CLUSTER, stdin=_kind_settings(nodes), timeout=MAKE_TIMEOUT)
            for image in images:
                do("kind", "load", "image-archive", str(image), "--name", KIND_CLUSTER, timeout=LOAD_TIMEOUT)
            if (caller := Owner.caller(self._around.environment)) is not None:
                caller.take(Path(self.kubeconfig))
            undo.pop_all()
        return "its nodes have the images of the pods"

    def _end_half_made(self) -> None:
        with suppress(PodperfError):  # the first error says more, and `down` can try again
            self.down()

    def down(self) -> bool:
        if not KIND_FOLDER.exists():
            return False
        delete = ("kind", "delete", "cluster", "--name", KIND_CLUSTER, "--kubeconfig", self.kubeconfig)
        self._around.host.do(*delete, timeout=LOAD_TIMEOUT)
        shutil.rmtree(KIND_FOLDER)
        return True


def _kind_settings(nodes: int) -> str:
    """The configuration of kind, as JSON, which YAML includes."""
    roles = [{"role": "control-plane"}, *({"role": "worker"} for _ in range(nodes - 1))]
    return json.dumps({"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "nodes": roles})


KINDS: tuple[type[OtherCluster], ...] = (NamedCluster, K3sCluster, KindCluster)
"""All kinds, from the first choice to the last one."""


def used(around: Surroundings) -> OtherCluster | None:
    """The cluster that `up` uses. None: podperf makes its own."""
    return next((each for each in (kind(around) for kind in KINDS) if each.usable()), None)


def existing(around: Surroundings) -> OtherCluster | None:
    """The cluster that `status` describes, if there is one."""
    return next((each for each in (kind(around) for kind in KINDS) if each.exists()), None)


def end_all(around: Surroundings) -> bool:
    """End all clusters that podperf made by other programs. False if there was none."""
    ended = [kind(around).down() for kind in KINDS]
    return any(ended)


def state_of(kubeconfig: str) -> str:
    """The version and the nodes of a cluster, in words. PodperfError if it does not answer."""
    with closing(log_in(kubeconfig, None)) as api, understood(api.where):
        version = str(api.ask("GET", "/version")["gitVersion"])
        try:
            found = api.ask("GET", NODES)["items"]
        except ApiError as error:
            if error.status != 403:
                raise
            return f"Kubernetes {version}: this login may not read its nodes"
    return f"Kubernetes {version}: {in_words({each['metadata']['name']: why_not_ready(each) for each in found})}"


def number_of(kubeconfig: str) -> str | None:
    """The number (UID) that one cluster has at all of its addresses. None if the login may not read it."""
    with closing(log_in(kubeconfig, None)) as api, understood(api.where):
        try:
            return str(api.ask("GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"])
        except ApiError as error:
            if error.status not in {403, 404}:
                raise
            return None
