"""Multus as a part of the cluster: gives pods further interfaces (NetworkAttachmentDefinitions)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from podperf.cluster.layout import ADMINISTRATORS, CNI, CNI_OF_CONTAINERD, ClusterLayout, ClusterNode, ClusterPart
from podperf.cluster.programs import GoModule
from podperf.errors import PodperfError
from podperf.kubernetes import multus
from podperf.kubernetes.api import Api
from podperf.kubernetes.run_namespace import until

_MODULE = "gopkg.in/k8snetworkplumbingwg/multus-cni.v4"
_OWN_NETWORK = "own-network.conf"
_SERVED_TIMEOUT = 300.0  # seconds, on emulated CPUs


class Multus(ClusterPart):
    """A CNI plug-in that calls others: first the cluster's own network, then those of the pod's annotation."""

    name: ClassVar[str] = "multus"
    option: ClassVar[tuple[str, str]] = ("multus", "pods can have further interfaces (NetworkAttachmentDefinitions)")
    modules: ClassVar[tuple[GoModule, ...]] = (
        GoModule("Multus", _MODULE, (f"{_MODULE}/cmd/multus",), f"{_MODULE}/pkg/multus.version", "two minutes"),
    )
    login: ClassVar[tuple[str, str | None]] = ("multus", ADMINISTRATORS)

    def plugins(self) -> Mapping[str, Path]:
        return {"multus": self.program("multus"), multus.PLUGIN: multus.IN_NETWORK}

    def files(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, bytes]:
        """Multus 4.2.2 loses the addresses of a list at a pod's end, so its own network is no list."""
        folder = layout.of_node(node)
        settings = {
            "cniVersion": "0.4.0",
            "name": "multus",
            "type": "multus",
            "kubeconfig": str(self.kubeconfig(layout, node)),
            "confDir": f"{folder}/{CNI_OF_CONTAINERD}",
            "clusterNetwork": f"{folder}/{_OWN_NETWORK}",
            "binDir": str(layout.plugins),
            "cniDir": "/run/multus",
            "logFile": "/var/log/multus.log",
            "logLevel": "error",
        }
        own = {"cniVersion": "0.4.0", "name": "podperf", **layout.programs.network.plugin(layout, node)}
        found = {f"{CNI}/00-multus.conf": settings, _OWN_NETWORK: own}
        return {path: json.dumps(content, indent=1).encode() for path, content in found.items()}

    def prepare(self, api: Api) -> None:
        api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", multus.CUSTOM_RESOURCE)
        if not until(lambda: api.exists(multus.API_PATH), _SERVED_TIMEOUT):
            raise PodperfError(f"the API server does not serve {multus.API_PATH}")
