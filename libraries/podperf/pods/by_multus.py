"""What podperf asks Multus for, and what the pod then has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.linux import configure, ip_json, is_veth
from podperf.hosts.network_namespace import NetworkNamespace
from podperf.kubernetes.multus import WantedNetwork, in_network
from podperf.pods.base import Attachment, PodInterface
from podperf.pods.cni import CNI_VERSION


def wanted_network(attachment: Attachment, worker: NetworkNamespace) -> WantedNetwork:
    """The network that Multus attaches, for one of a data plane. Its plug-ins run in the namespace of the worker."""
    plugins = in_network(worker.namespace, attachment.plugins)
    configuration = {"cniVersion": CNI_VERSION, "name": attachment.network, "plugins": plugins}
    return WantedNetwork(attachment.interface, configuration, attachment.capabilities)


def interface_of(
    network: WantedNetwork, attached: Mapping[str, Sequence[str]], pod: Host, worker: Host
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
    (link,) = ip_json(pod, "-details", "link", "show", "dev", name)
    return PodInterface(name, link["address"], asked[0] if asked else None, _other_end(link, worker))


def _other_end(link: Mapping[str, Any], worker: Host) -> str | None:
    """The worker's end of a veth pair. None if it is another kind of interface."""
    if not is_veth(link):
        return None
    ends = ip_json(worker, "-details", "link", "show", "type", "veth")
    pair = link["ifindex"], link.get("link_index")
    return next((each["ifname"] for each in ends if (each.get("link_index"), each["ifindex"]) == pair), None)
