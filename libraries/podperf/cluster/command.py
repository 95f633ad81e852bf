"""Runs the command `podperf cluster up|down|status`."""

from __future__ import annotations

import os
import shlex
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from podperf.cluster import hierarchies, lifecycle, other_clusters
from podperf.cluster.lifecycle import ClusterState
from podperf.cluster.other_clusters import OtherCluster, Surroundings
from podperf.cluster.parts import ALL_NETWORKS, DEFAULT, PARTS, network_named, ready_programs
from podperf.cluster.pod_image import DPDK, POD, ready_image
from podperf.errors import BadArguments, PodperfError
from podperf.hosts.local import LocalHost
from podperf.printable import printable
from podperf.terminal import say

_TEXT = """A Kubernetes cluster, for trying podperf out and for its tests.

`up` uses the first of these:
  1. the cluster that KUBECONFIG names. sudo drops this variable unless you write it behind sudo:
     sudo KUBECONFIG=FILE ./podperf cluster up. ~/.kube/config does not count. Nothing in the cluster changes
  2. k3s, if its server runs on this machine. It gets the images of podperf's pods
  3. kind, if it works here (docker or podman). It makes a cluster named podperf
  4. podperf's own cluster, in namespaces of its own, from packages and a build of Kubernetes
With --own, `up` starts podperf's own cluster in any case. `down` ends the clusters that podperf made, and no others.
It leaves nothing but the cached programs, which `podperf clean --all` removes. `status` describes the cluster."""
_OPTIONS = dict(each.option for each in PARTS if each.option is not None)  # of podperf's own cluster


def add_arguments(parser: ArgumentParser) -> None:
    parser.description = _TEXT
    parser.add_argument("what", choices=("up", "down", "status"))
    parser.add_argument("--own", action="store_true", help="for up: podperf's own cluster, whatever else is here")
    parser.add_argument(
        "--nodes", type=int, choices=(1, 2), help="for up, if podperf makes the cluster; 1 is the default"
    )
    for option, text in _OPTIONS.items():
        parser.add_argument(
            f"--{option}", action="append_const", dest="options", const=option, help=f"for up --own; {text}"
        )
    parser.add_argument(
        "--network",
        metavar="NAME[:MODE]",
        help=f"for up --own; what connects the pods: {', '.join(each.title for each in ALL_NETWORKS)}; "
        f"{DEFAULT.title} is the default",
    )
    parser.add_argument(
        "--image", type=Path, action="append", default=[], help="for up: an archive of a further image for the nodes"
    )
    parser.set_defaults(options=[])


def main(wanted: Namespace) -> int:
    """Exit code 0 if the cluster is as asked. Errors, also `status` without a cluster, are PodperfErrors."""
    around = Surroundings(LocalHost(), os.environ, say)
    given = [each for each in ("own", "nodes", "network", "image") if getattr(wanted, each)] + wanted.options
    if given and wanted.what != "up":
        raise BadArguments(f"{', '.join(f'--{each}' for each in given)}: only `cluster up` has this option")
    wanted.nodes = wanted.nodes or 1
    if wanted.what == "up":
        other = None if wanted.own or lifecycle.running() else other_clusters.used(around)
        if other is None:
            _up(around, wanted)
        else:
            _use(around, other, wanted)
        return 0
    if wanted.what == "down":
        ended = [lifecycle.down(say), other_clusters.end_all(around)]
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


def _up(around: Surroundings, wanted: Namespace) -> None:
    network = network_named(wanted.network or DEFAULT.title)
    # Before the long build:
    if lifecycle.running():
        raise PodperfError(lifecycle.RUNS_ALREADY)
    hierarchies.of_this_machine()
    programs = ready_programs(around.host, say, wanted.options, network)
    images = _images(around)
    began = time.monotonic()
    found = lifecycle.up(programs, wanted.nodes, [*images, *wanted.image], say)
    print(_described(found))
    print(f"ready after {time.monotonic() - began:.1f} s; for other programs: export KUBECONFIG={found.kubeconfig}")


def _use(around: Surroundings, other: OtherCluster, wanted: Namespace) -> None:
    if wanted.options or wanted.network or (wanted.nodes > 1 and not other.makes):
        own = ", ".join(f"--{option}" for option in (*_OPTIONS, "network"))
        raise PodperfError(
            f"{other.name} is used here, and {own} and --nodes are for podperf's own cluster: add --own, or leave them "
            "out"
        )
    say(f"cluster: {other.name} is used ({other.kubeconfig}); --own starts podperf's own cluster")
    if not other.makes:
        _tell(other)  # or refuses, before the images are made
    remark = other.up(wanted.nodes, [*_images(around), *wanted.image])
    if other.makes:
        _tell(other)
    print(f"{remark}; for other programs: export KUBECONFIG={shlex.quote(other.kubeconfig)}")


def _images(around: Surroundings) -> list[Path]:
    return [ready_image(around.host, say, each).path for each in (POD, DPDK)]


def _tell(other: OtherCluster) -> None:
    print(printable(f"{other.name}: {other_clusters.state_of(other.kubeconfig)}"))


def _described(state: ClusterState) -> str:
    running = f"Kubernetes {state.version}, network {state.network}, {state.memory / 1e6:.0f} MB of memory"
    return f"{running}: {lifecycle.in_words(state.nodes)}"
