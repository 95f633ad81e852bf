"""Further interfaces of pods, which Multus attaches: the objects that ask for them, and the answer.

Kubernetes Network Custom Resource Definition De-facto Standard, version 1.3. Multus calls CNI plug-ins in the network
of the node. The ports of a run are in a network namespace of their own. So Multus calls podperf's plug-in, and this one
calls the wanted plug-in there (in_network.sh).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podperf.errors import PodperfError
from podperf.kubernetes.manifests import labels

IN_NETWORK, PLUGIN = Path(__file__).with_name("in_network.sh"), "podperf-in-network"
GROUP, VERSION, PLURAL = "k8s.cni.cncf.io", "v1", "network-attachment-definitions"
API_PATH = f"/apis/{GROUP}/{VERSION}"
_KIND = "NetworkAttachmentDefinition"
_NETWORKS, _STATUS = "k8s.v1.cni.cncf.io/networks", "k8s.v1.cni.cncf.io/network-status"  # annotations of a pod
# The standard's own definition of the resource, section 3.1.
CUSTOM_RESOURCE: Mapping[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": PLURAL, "singular": _KIND.lower(), "kind": _KIND, "shortNames": ["net-attach-def"]},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"config": {"type": "string"}}},
                        },
                    }
                },
            }
        ],
    },
}


@dataclass(frozen=True)
class WantedNetwork:
    """One further interface of a pod: a CNI configuration list, and the capability arguments of its plug-ins."""

    interface: str
    configuration: Mapping[str, Any]
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    @property
    def addresses(self) -> list[str]:
        """The addresses that its plug-ins are asked for, without prefix lengths."""
        ipam = self.configuration["plugins"][0].get("ipam", {})
        return [each["address"].split("/")[0] for each in ipam.get("addresses", ())]

    def definition_for(self, pod: str) -> str:
        """The name of its NetworkAttachmentDefinition."""
        return f"{pod}-{self.interface}"


def in_network(namespace: str, plugins: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The plug-ins of a configuration list, called in a network namespace of the machine with the node."""
    return [{**each, "type": PLUGIN, "podperfPlugin": each["type"], "podperfNetwork": namespace} for each in plugins]


def definition(pod: str, network: WantedNetwork, run: str, owners: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The NetworkAttachmentDefinition of one interface of a pod."""
    metadata = {"name": network.definition_for(pod), "labels": labels(run), "ownerReferences": list(owners)}
    spec = {"config": json.dumps(network.configuration)}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": _KIND, "metadata": metadata, "spec": spec}


def annotations_of(pod: str, networks: Sequence[WantedNetwork]) -> dict[str, str]:
    """The annotations of a pod that wants these interfaces."""
    wanted = [{"name": each.definition_for(pod), "interface": each.interface, **each.capabilities} for each in networks]
    return {_NETWORKS: json.dumps(wanted)} if wanted else {}


def attached(pod: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """The addresses of each interface that Multus says it gave to a running pod, by the interface's name.

    PodperfError if it says nothing: then it has not seen the pod.
    """
    metadata = pod["metadata"]
    said = metadata.get("annotations", {}).get(_STATUS)
    if said is None:
        raise PodperfError(
            f"pod {metadata['name']} has no annotation {_STATUS}: Multus does not attach interfaces on node "
            f"{pod['spec'].get('nodeName')}"
        )
    return {each["interface"]: each.get("ips", []) for each in json.loads(said) if each.get("interface")}
