"""Makes the objects of the tester in two pods, as data. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from itertools import islice
from typing import Any

from podperf.frames import AddressFamily
from podperf.kubernetes import manifests, multus
from podperf.kubernetes.manifests import NodeOf, PodWishes
from podperf.kubernetes.new_flows import FIRST_PORT, SERVICE_PORTS
from podperf.kubernetes.ports import ADDRESS, DISCARDED, INTERFACE, command_of
from podperf.kubernetes.settings import KubernetesSettings

SIDES = ("left", "right")
SERVICE_PORT = 7  # UDP, as in RFC 2544 appendix C.2.6.4; the cluster translates it to the pods' own port
NOBODY = IPv4Address("198.18.0.0")  # the first one of the addresses for tests (RFC 2544), which no pod has

OF_PAIR = {"cpu": "10m", "memory": "16Mi"}  # what each pod of many pairs asks for

ADDED = "podperf/added"  # a label of the policies that a change under load adds; its value is the run
ADDED_POLICIES = 100

Owners = Sequence[Mapping[str, Any]]
# Finds the node's end of a pod's veth: its index is $1, and that of the pod's end is $2. GRO gives a veth its NAPI
# context, and the second write moves the work of this context into a kernel thread (kernel doc: networking/napi.rst).
# The state of the pod has the errors of these commands.
_START_THREAD = """exec 2>/dev/termination-log
for each in /sys/class/net/*; do
    test "$(cat "$each/ifindex")" = "$1" -a "$(cat "$each/iflink")" = "$2" || continue
    name=${each##*/}
    ethtool -i "$name" | grep -q '^driver: veth$' || continue
    ethtool -K "$name" gro on && echo 1 >"$each/threaded" && test "$(cat "$each/threaded")" = 1
    exit
done
echo "interface $1 of the node is no veth of this pod, and only a veth can have a receive thread" >&2
exit 1
"""
# In the pod. A veth gives frames of sockets to the NAPI context at its other end only if it has no TSO itself (the
# function veth_skb_is_eligible_for_gro of the kernel).
WITHOUT_TSO = ("ethtool", "-K", "eth0", "tso", "off")
# In the pod: the index of the other end of its interface, and its own index.
INDICES = ("cat", "/sys/class/net/eth0/iflink", "/sys/class/net/eth0/ifindex")
# The security context of a tester's pod that runs WITHOUT_TSO.
WITH_NET_ADMIN = manifests.secured(manifests.OF_TESTER, {"capabilities": {"add": ["NET_ADMIN"]}})
_PRIVILEGED: Mapping[str, Any] = {"privileged": True, "readOnlyRootFilesystem": True}


def tester_pod(
    side: str, run: str, owners: Owners, settings: KubernetesSettings, place: NodeOf | None, pair: int = 0
) -> dict[str, Any]:
    """The pod that is a port of the tester. `place` relates its node to the other pod's. `pair` is the number of one of
    many pairs."""
    security = WITH_NET_ADMIN if settings.receive_threads else manifests.OF_TESTER
    name, command = f"tester-{side}-{f'{pair}-' if pair else ''}{run}", command_of(side)
    found = manifests.pod(name, run, owners, command, settings.wishes, place, security)
    found["spec"]["hostNetwork"] = settings.host_network
    (container,) = found["spec"]["containers"]
    container["env"] = [{"name": ADDRESS, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    if settings.interface is not None:
        container["env"].append({"name": INTERFACE, "value": settings.interface})
        found["metadata"].setdefault("annotations", {})[multus.NETWORKS] = ", ".join(settings.networks)
    return found


def pair_pod(
    number: int, side: str, run: str, owners: Owners, settings: KubernetesSettings, node: str
) -> dict[str, Any]:
    """A pod of one of many pairs. All of them ask for the same small part of their node, so that many fit there."""
    found = tester_pod(side, run, owners, settings, NodeOf(node), number)
    (container,) = found["spec"]["containers"]
    limits = {"memory": settings.wishes.memory, **settings.wishes.further}
    container["resources"] = {"requests": {**limits, **OF_PAIR}, "limits": limits}
    return found


def pods_of(settings: KubernetesSettings) -> tuple[str, ...]:
    """The sides of the tester that are pods. The other side is a host outside of the cluster."""
    return SIDES if settings.host is None else SIDES[:1]


def service(
    side: str, pod: str, run: str, owners: Owners, family: AddressFamily, *, new_flows: bool = False
) -> dict[str, Any]:
    """For new flows, each of its further ports leads to the same port of the pod, so that no flow needs another one."""
    further = {port: port for port in range(FIRST_PORT, FIRST_PORT + SERVICE_PORTS) if new_flows}
    ports = {SERVICE_PORT: DISCARDED, **further}
    return manifests.service(f"service-{family}-{side}-{run}", run, owners, pod, ports, family)


def other_services(number: int, pod: str, run: str, owners: Owners, family: AddressFamily) -> Iterator[dict[str, Any]]:
    """`number` Services that lead to this pod of the tester. No frame is sent to their addresses."""
    for each in range(1, number + 1):
        yield manifests.service(f"other-{each}-{run}", run, owners, pod, {SERVICE_PORT: DISCARDED}, family)


def thread_starter(
    side: str, run: str, owners: Owners, wishes: PodWishes, node: str, indices: Sequence[str]
) -> dict[str, Any]:
    """The pod that gives the interface of one of the tester's pods a receive thread on its node. This is opt-in.

    It is in the node's network, and privileged: only such a pod may write to the node's /sys. It ends as soon as this
    is done. `indices` is the output of INDICES. Nothing is to be taken back: the veth goes with the measured pod.
    """
    command = ["sh", "-c", _START_THREAD, "sh", *indices]
    place = NodeOf(node)
    found = manifests.pod(f"thread-{side}-{run}", run, owners, command, wishes.of_helper, place, _PRIVILEGED)
    found["spec"]["hostNetwork"] = True
    return found


def node_reader(number: int, run: str, owners: Owners, wishes: PodWishes, node: str) -> dict[str, Any]:
    """A pod in the network of a node, where the counters of the node's tables can be read. It has no rights."""
    command, security = ["sleep", "infinity"], manifests.WITHOUT_RIGHTS
    found = manifests.pod(f"reader-{number}-{run}", run, owners, command, wishes.of_helper, NodeOf(node), security)
    found["spec"]["hostNetwork"] = True
    return found


def policies(number: int, run: str, owners: Owners) -> Iterator[dict[str, Any]]:
    """`number` NetworkPolicies for the tester's pods. The last one admits test frames. Each other one admits the same
    frames from an address of its own that nobody has, so the cluster can answer no two of them by one rule."""
    for each in range(1, number):
        nobody = {"ipBlock": {"cidr": f"{NOBODY + each}/32"}}
        yield manifests.network_policy(f"other-{each}-{run}", run, owners, nobody, DISCARDED)
    if number:
        pods_of_the_run = {"podSelector": {"matchLabels": {manifests.RUN: run}}}
        yield manifests.network_policy(f"admitting-{run}", run, owners, pods_of_the_run, DISCARDED)


def added_policies(before: int, run: str, owners: Owners) -> Iterator[dict[str, Any]]:
    """ADDED_POLICIES more of the policies that admit nobody's frames, beside those of `policies`, with a label."""
    for each in islice(policies(before + ADDED_POLICIES, run, owners), before - 1, before + ADDED_POLICIES - 1):
        each["metadata"]["labels"][ADDED] = run
        yield each


def added_endpoint(pod: Mapping[str, Any], run: str, owners: Owners, settings: KubernetesSettings) -> dict[str, Any]:
    """A pod on the node of another one, to which the same Service leads. It does nothing."""
    wishes, node = settings.wishes.of_helper, NodeOf(pod["spec"]["nodeName"])
    found = manifests.pod(f"added-{run}", run, owners, ["sleep", "infinity"], wishes, node, manifests.WITHOUT_RIGHTS)
    found["metadata"]["labels"][manifests.POD] = pod["metadata"]["name"]
    return found


def named_nodes(settings: KubernetesSettings) -> tuple[NodeOf | None, NodeOf | None]:
    """The nodes that the topology names for the left and the right pod."""
    if not settings.node_names:
        return None, None
    return NodeOf(settings.node_names[0]), NodeOf(settings.node_names[-1])


def planned(settings: KubernetesSettings) -> list[dict[str, Any]]:
    """The objects that a run would make, for a run that is called `plan`. Only the cluster knows the first pod's node,
    and the number (uid) of the owner."""
    run, unnamed = "plan", (None, NodeOf("the-node-of-the-left-pod", other=settings.nodes > 1))
    nodes = named_nodes(settings) if settings.node_names else unnamed
    owner = manifests.anchor(run, {})
    owners = manifests.owned_by(owner["metadata"]["name"], "of-the-config-map")
    pods = [
        tester_pod(side, run, owners, settings, place) for side, place in zip(pods_of(settings), nodes, strict=False)
    ]
    services = [
        service(side, pod["metadata"]["name"], run, owners, AddressFamily.IPV4, new_flows=settings.new_flows)
        for side, pod in zip(pods_of(settings), pods, strict=True)
        if settings.destination == "service"
    ]
    last = pods[-1]["metadata"]["name"]
    services += other_services(settings.other_services, last, run, owners, AddressFamily.IPV4)
    starters = [
        thread_starter(
            side, run, owners, settings.wishes, "the-node-of-its-pod", ("index-of-its-end", "index-of-the-pods-end")
        )
        for side in pods_of(settings)
        if settings.receive_threads
    ]
    readers = [node_reader(1, run, owners, settings.wishes, "the-node-of-its-pod")] if settings.new_flows else []
    name = settings.namespace or f"{manifests.PREFIX}{run}"
    objects = [owner, *pods, *services, *starters, *readers, *policies(settings.network_policies, run, owners)]
    for each in objects:
        each["metadata"]["namespace"] = name
    return [*([] if settings.namespace else [manifests.namespace(name, run)]), *objects]
