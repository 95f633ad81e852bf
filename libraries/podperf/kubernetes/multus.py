"""Lets Multus attach further interfaces to pods: makes the objects that ask for them, and reads Multus's answer.

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

from podperf.addressing import mac_of
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.linux import configure, ip_json, is_veth, link_named
from podperf.hosts.namespaces import NetworkNamespace
from podperf.kubernetes.manifests import labels
from podperf.pods.base import Attachment, PodInterface
from podperf.pods.cni import CNI_VERSION, assumed_end

IN_NETWORK, PLUGIN = Path(__file__).with_name("in_network.sh"), "podperf-in-network"
GROUP, VERSION, PLURAL = "k8s.cni.cncf.io", "v1", "network-attachment-definitions"
API_PATH = f"/apis/{GROUP}/{VERSION}"
_KIND = "NetworkAttachmentDefinition"
NETWORKS, _STATUS = "k8s.v1.cni.cncf.io/networks", "k8s.v1.cni.cncf.io/network-status"  # annotations of a pod
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
        return [address["address"].split("/")[0] for address in ipam.get("addresses", ())]

    def definition_for(self, pod: str) -> str:
        """The name of its NetworkAttachmentDefinition."""
        return f"{pod}-{self.interface}"


def in_network(namespace: str, plugins: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The plug-ins of a configuration list, called in a network namespace of the machine with the node."""
    return [
        {**plugin, "type": PLUGIN, "podperfPlugin": plugin["type"], "podperfNetwork": namespace} for plugin in plugins
    ]


def definition(pod: str, network: WantedNetwork, run: str, owners: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The NetworkAttachmentDefinition of one interface of a pod."""
    metadata = {"name": network.definition_for(pod), "labels": labels(run), "ownerReferences": list(owners)}
    spec = {"config": json.dumps(network.configuration)}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": _KIND, "metadata": metadata, "spec": spec}


def annotations_of(pod: str, networks: Sequence[WantedNetwork]) -> dict[str, str]:
    """The annotations of a pod that wants these interfaces."""
    wanted = [
        {"name": network.definition_for(pod), "interface": network.interface, **network.capabilities}
        for network in networks
    ]
    return {NETWORKS: json.dumps(wanted)} if wanted else {}


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


def wanted_network(attachment: Attachment, worker: NetworkNamespace) -> WantedNetwork:
    """The network that Multus attaches, for one of a data plane. Its plug-ins run in the namespace of the worker."""
    plugins = in_network(worker.namespace, attachment.plugins)
    configuration = {"cniVersion": CNI_VERSION, "name": attachment.network, "plugins": plugins}
    return WantedNetwork(attachment.interface, configuration, attachment.capabilities)


def interface_of(
    network: WantedNetwork, attached: Mapping[str, Sequence[str]], pod: NetworkNamespace, worker: Host
) -> PodInterface:
    """An interface, read back from the pod and the worker. `attached` has the addresses that Multus tells.

    Kernels give a new interface the reverse path filter of the machine; here it has none, as in other pods of a run.
    PodperfError if the pod does not have what the data plane asked for.
    """
    name, asked = network.interface, network.addresses
    if name not in attached:
        raise PodperfError(f"Multus gave the pod no interface {name}: it tells {', '.join(attached) or 'none'}")
    if sorted(asked) != sorted(attached[name]):
        raise PodperfError(f"{name} was to have the addresses {asked}, and Multus tells {list(attached[name])}")
    settings = {f"net__ipv4__conf__{name}__{each}": 0 for each in ("rp_filter", "send_redirects")}
    configure(pod, **settings)
    link = link_named(pod, name, "-details", linkinfo={"info_kind": "veth"})
    return PodInterface(
        name, mac_of(link["address"], f"{name} of a pod"), asked[0] if asked else None, _other_end(link, pod, worker)
    )


def _other_end(link: Mapping[str, Any], pod: NetworkNamespace, worker: Host) -> str | None:
    """The worker's end of a veth pair. None if it is another kind of interface."""
    if not is_veth(link):
        return None
    assumed = [
        {"ifname": assumed_end(pod, link["ifname"]), "ifindex": link["link_index"], "link_index": link["ifindex"]}
    ]
    ends = ip_json(worker, "-details", "link", "show", "type", "veth", assumed=assumed)
    pair = link["ifindex"], link.get("link_index")
    return next((end["ifname"] for end in ends if (end.get("link_index"), end["ifindex"]) == pair), None)
