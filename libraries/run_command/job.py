"""The command `podperf job`: podperf measures in a pod of a Kubernetes Job.

In an indexed Job, PODPERF_NODES has the names of all nodes, and each pod measures those of its JOB_COMPLETION_INDEX.
The cluster's scheduler starts the pods, and keeps pairs with a common node apart (`tester.settings.alone` of the
topology). Without PODPERF_NODES, the scheduler chooses the nodes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from podperf.documents.yaml_document import read_yaml
from podperf.errors import BadArguments, PodperfError
from podperf.kubernetes.api import log_in
from podperf.kubernetes.run_namespace import forget_killed
from podperf.kubernetes.settings import pods_of_tester
from podperf.terminal import say
from podperf.testers import TESTERS
from podperf.topology import load_topology
from run_command import run


def add_arguments(parser: ArgumentParser) -> None:
    parser.usage = "podperf job TOPOLOGY [arguments of podperf run]"
    parser.description = "Measure in a pod of a Kubernetes Job; of an indexed Job, the nodes of the index."
    parser.set_defaults(passed_on=[])


def main(options: Namespace) -> int:
    """Measure, and return the exit code of `podperf run`.

    The results are in `/results/NAME`. The name is that of the testbed: the topology's, and those of the index's nodes.
    """
    if not options.passed_on:
        raise BadArguments("name a topology: podperf job TOPOLOGY")
    named, *others = options.passed_on
    topology, folder = of_this_pod(Path(named), os.environ, say)
    options.passed_on = [str(topology), "--outputdir", str(folder), *others]
    return run.main(options, only_user=True)


INDEX, NODES = "JOB_COMPLETION_INDEX", "PODPERF_NODES"
RESULTS = Path("/results")
LONGEST_NAME = 64  # of a topology
_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def nodes_of_index(nodes: Sequence[str], number: int, index: int) -> tuple[str, ...]:
    """The one node, or the pair of nodes, that the pod with this index measures (`number`: 1 or 2).

    The nodes of a pair are in the order of `nodes`.
    """
    if len(set(nodes)) < len(nodes):
        raise PodperfError(f"the list of nodes names one of them twice: {' '.join(nodes)}")
    for node in nodes:
        if not _NAME.fullmatch(node):  # it becomes a part of the name of a folder
            raise PodperfError(f"{node[:100]!r} is no name of a node")
    every = [(node,) for node in nodes] if number == 1 else [*pairs(nodes)]
    what = "node" if number == 1 else "pair"
    if not 0 <= index < len(every):
        raise PodperfError(
            f"the pod's index is {index}, and {len(nodes)} nodes have {len(every)} {what}s: set `completions` of the "
            f"Job to {len(every)}"
        )
    return every[index]


def pairs(nodes: Sequence[str]) -> list[tuple[str, str]]:
    """Each pair of nodes once, in rounds. A round is half as many pairs as there are nodes, without a common node.

    A Job starts its pods in the order of their index. So pods that run at the same time mostly have no common node.
    (This is the circle method of tournaments: the first node stays, and the others turn.)
    """
    if not nodes:
        return []
    order = {name: number for number, name in enumerate(nodes)}
    first, *others = [*nodes, None] if len(nodes) % 2 else nodes
    found = []
    for _ in others:
        circle = [first, *others]
        for left, right in zip(circle[: len(circle) // 2], reversed(circle), strict=False):
            if left is not None and right is not None:
                found.append((left, right) if order[left] < order[right] else (right, left))
        others = [*others[-1:], *others[:-1]]
    return found


def of_this_pod(path: Path, environment: Mapping[str, str], say: Callable[[str], None]) -> tuple[Path, Path]:
    """The topology of this pod, with the nodes of its index if there are several, and the folder of its results."""
    kind = pods_of_tester(load_topology(path, testers=TESTERS))
    if kind is None:
        raise PodperfError(f"{path}: the tester of a Job is two pods (tester.type: kubernetes)")
    nodes = chosen_nodes(environment, kind.nodes)
    with closing(log_in(kind.kubeconfig, kind.context)) as api:
        for each in forget_killed(api, kind.namespace or api.namespace):  # of an earlier pod with this index
            say(f"removed what an earlier run left: {each}")
    content = read_yaml(path).data
    if nodes:
        content = measuring(content, nodes)
    folder = RESULTS / content["name"]
    folder.mkdir(parents=True, exist_ok=True)
    derived = folder / "topology.yaml"
    derived.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return derived, folder


def chosen_nodes(environment: Mapping[str, str], number: int) -> tuple[str, ...]:
    """The nodes that this pod measures. Empty: those that the scheduler chooses."""
    nodes, index = environment.get(NODES, "").split(), environment.get(INDEX, "")
    if not nodes and not index:
        return ()
    if not index.isdecimal():
        raise PodperfError(f"{INDEX} is not set: only a pod of an indexed Job has it (completionMode: Indexed)")
    return nodes_of_index(nodes, number, int(index))


def measuring(topology: Mapping[str, Any], nodes: Sequence[str]) -> dict[str, Any]:
    """The content of a topology with these nodes. Its name tells it from those with other nodes."""
    tester = topology["tester"]
    settings = {**tester.get("settings", {}), "node_names": list(nodes)}
    name = ".".join([topology["name"], *nodes])
    if len(name) > LONGEST_NAME:
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        name = f"{name[: LONGEST_NAME - len(digest) - 1]}-{digest}"
    description = f"{topology.get('description', '')} Nodes: {' and '.join(nodes)}.".strip()
    return {**topology, "name": name, "description": description, "tester": {**tester, "settings": settings}}
