"""The command `podperf cluster up|down|status`."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from podperf.cluster import hierarchies, lifecycle, other_clusters
from podperf.cluster.lifecycle import ClusterState
from podperf.cluster.other_clusters import OtherCluster, Surroundings
from podperf.cluster.parts import ready_parts
from podperf.cluster.pod_image import DPDK, POD, ready_image
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.printable import printable

_TEXT = """A Kubernetes cluster, for trying podperf out and for its tests.

`up` uses the first of these:
  1. the cluster that KUBECONFIG names. sudo drops this variable unless you write it behind sudo:
     sudo KUBECONFIG=FILE ./podperf cluster up. ~/.kube/config does not count. Nothing in the cluster changes
  2. k3s, if its server runs on this machine. It gets the images of podperf's pods
  3. kind, if it works here (docker or podman). It makes a cluster named podperf
  4. podperf's own cluster, in namespaces of its own, from packages and a build of Kubernetes
With --own, `up` starts podperf's own cluster in any case. `down` ends the clusters that podperf made, and no others.
It leaves nothing but the cached programs, which `podperf clean --all` removes. `status` describes the cluster."""


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 if the cluster is as asked. Errors, also `status` without a cluster, are PodperfErrors."""
    parser = argparse.ArgumentParser(
        "podperf cluster", description=_TEXT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("up", "down", "status"))
    parser.add_argument("--own", action="store_true", help="for up: podperf's own cluster, whatever else is here")
    parser.add_argument(
        "--nodes", type=int, choices=(1, 2), default=1, help="for up, if podperf makes the cluster; 1 is the default"
    )
    parser.add_argument(
        "--network-policies",
        action="store_true",
        help="for up --own; the cluster enforces NetworkPolicies (kube-router)",
    )
    parser.add_argument(
        "--multus",
        action="store_true",
        help="for up --own; pods can have further interfaces (NetworkAttachmentDefinitions)",
    )
    parser.add_argument(
        "--image", type=Path, action="append", default=[], help="for up: an archive of a further image for the nodes"
    )
    wanted = parser.parse_args(arguments)
    around = Surroundings(LocalHost(), os.environ, _say)
    if wanted.what == "up":
        other = None if wanted.own or lifecycle.running() else other_clusters.used(around)
        if other is None:
            _up(around, wanted)
        else:
            _use(around, other, wanted)
        return 0
    if wanted.what == "down":
        ended = [lifecycle.down(), other_clusters.end_all(around)]
        print("the cluster is down" if any(ended) else "there was no cluster that podperf made")
        return 0
    state = lifecycle.state()
    if state is not None:
        print(printable(_described(state)))
    elif (found := other_clusters.existing(around)) is not None:
        _tell(found)
    else:
        raise PodperfError("no cluster runs here; to start one: sudo ./podperf cluster up")
    return 0


def _up(around: Surroundings, wanted: argparse.Namespace) -> None:
    """Start podperf's own cluster."""
    hierarchies.of_this_machine()  # before the long build
    parts = ready_parts(around.host, _say, policies=wanted.network_policies, multus=wanted.multus)
    images = _images(around)
    began = time.monotonic()
    found = lifecycle.up(parts, wanted.nodes, [*images, *wanted.image], _say)
    print(_described(found))
    print(f"ready after {time.monotonic() - began:.1f} s; for other programs: export KUBECONFIG={found.kubeconfig}")


def _use(around: Surroundings, other: OtherCluster, wanted: argparse.Namespace) -> None:
    """Use a cluster that is not podperf's own."""
    if wanted.network_policies or wanted.multus or (wanted.nodes > 1 and not other.makes):
        raise PodperfError(
            f"{other.name} is used here, and --network-policies, --multus and --nodes are for podperf's own cluster: "
            "add --own, or leave them out"
        )
    _say(f"cluster: {other.name} is used ({other.kubeconfig}); --own starts podperf's own cluster")
    if not other.makes:
        _tell(other)  # or refuses, before the images are made
    remark = other.up(wanted.nodes, [*_images(around), *wanted.image])
    if other.makes:
        _tell(other)
    print(f"{remark}; for other programs: export KUBECONFIG={shlex.quote(other.kubeconfig)}")


def _images(around: Surroundings) -> list[Path]:
    return [ready_image(around.host, _say, each).path for each in (POD, DPDK)]


def _tell(other: OtherCluster) -> None:
    state = other_clusters.state_of(other.kubeconfig)
    nodes = "this login may not read its nodes" if state.nodes is None else _nodes(state.nodes)
    print(printable(f"{other.name}: Kubernetes {state.version}: {nodes}"))


def _described(state: ClusterState) -> str:
    return f"Kubernetes {state.version}, {state.memory / 1e6:.0f} MB of memory: {_nodes(state.nodes)}"


def _nodes(nodes: Mapping[str, str | None]) -> str:
    return "; ".join(f"{name}: {reason or 'ready'}" for name, reason in nodes.items())


def _say(text: str) -> None:
    print(f"podperf: {printable(text)}", file=sys.stderr, flush=True)
