"""A receive thread for a pod's interface. A privileged pod on the node starts it. This is opt-in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from podperf.kubernetes import manifests
from podperf.kubernetes.manifests import NodeOf, PodWishes

# Finds the node's end of a pod's veth: its index is $1, and that of the pod's end is $2. GRO gives a veth its NAPI
# context, and the second write moves the work of this context into a kernel thread (kernel doc: networking/napi.rst).
# The state of the pod has the errors of these commands.
_START = """exec 2>/dev/termination-log
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
WITH_NET_ADMIN: Mapping[str, Any] = {
    **manifests.OF_TESTER,
    "capabilities": {**manifests.OF_TESTER["capabilities"], "add": ["NET_ADMIN"]},
}
_PRIVILEGED: Mapping[str, Any] = {"privileged": True, "readOnlyRootFilesystem": True}


def starter(
    name: str, run: str, owners: Sequence[Mapping[str, Any]], wishes: PodWishes, node: str, indices: Sequence[str]
) -> dict[str, Any]:
    """The pod that starts the receive thread. It is in the node's network, and privileged: only such a pod may write
    to the node's /sys. It ends as soon as this is done. `indices` is the output of INDICES.

    Nothing is to be taken back: the veth goes with the pod that is measured.
    """
    command = ["sh", "-c", _START, "sh", *indices]
    found = manifests.pod(name, run, owners, command, replace(wishes, cpus=0), NodeOf(node), _PRIVILEGED)
    found["spec"]["hostNetwork"] = True
    return found
