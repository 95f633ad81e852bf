"""The command `podperf cluster up|down|status`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from podperf.cluster import lifecycle
from podperf.cluster.lifecycle import ClusterState
from podperf.cluster.parts import ready_parts
from podperf.cluster.pod_image import DPDK, POD, ready_image
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost

_TEXT = """A Kubernetes cluster on this machine, for trying podperf out and for its tests. It runs in namespaces of its
own; `down` leaves nothing but the cached programs, which `podperf clean --all` removes."""


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 if the cluster is as asked; 1 for `status` without a cluster."""
    parser = argparse.ArgumentParser("podperf cluster", description=_TEXT)
    parser.add_argument("what", choices=("up", "down", "status"))
    parser.add_argument("--nodes", type=int, choices=(1, 2), default=1, help="for up; 1 is the default")
    parser.add_argument(
        "--network-policies", action="store_true", help="for up; the cluster enforces NetworkPolicies (kube-router)"
    )
    parser.add_argument(
        "--multus", action="store_true", help="for up; pods can have further interfaces (NetworkAttachmentDefinitions)"
    )
    parser.add_argument(
        "--image", type=Path, action="append", default=[], help="for up: an archive of a further image for the nodes"
    )
    wanted = parser.parse_args(arguments)
    if wanted.what == "up":
        here = LocalHost()
        parts = ready_parts(here, _say, policies=wanted.network_policies, multus=wanted.multus)
        images = [ready_image(here, _say, each).path for each in (POD, DPDK)]
        began = time.monotonic()
        found = lifecycle.up(parts, wanted.nodes, [*images, *wanted.image], _say)
        print(_described(found))
        print(f"ready after {time.monotonic() - began:.1f} s; for other programs: export KUBECONFIG={found.kubeconfig}")
        return 0
    if wanted.what == "down":
        print("the cluster is down" if lifecycle.down() else "there was no cluster")
        return 0
    state = lifecycle.state()
    if state is None:
        raise PodperfError("no cluster runs here; to start one: sudo ./podperf cluster up")
    print(_described(state))
    return 0


def _described(state: ClusterState) -> str:
    nodes = "; ".join(f"{name}: {reason or 'ready'}" for name, reason in state.nodes.items())
    return f"Kubernetes {state.version}, {state.memory / 1e6:.0f} MB of memory: {nodes}"


def _say(text: str) -> None:
    print(f"podperf: {text}", file=sys.stderr, flush=True)
