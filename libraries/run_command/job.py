"""The command `podperf job`: a pod of an indexed Kubernetes Job measures the nodes of its index.

    python -I -m run_command.job SCRIPT INSTALL TOPOLOGY [arguments of `podperf run`]

The Job sets JOB_COMPLETION_INDEX. PODPERF_NODES has the names of all nodes. The cluster's scheduler starts the pods,
and keeps pairs with a common node apart (`tester.settings.alone` of the topology).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from podperf.documents.yaml_document import read_yaml
from podperf.errors import PodperfError
from podperf.kubernetes.api import log_in
from podperf.kubernetes.job_index import nodes_of_index
from podperf.kubernetes.run_namespace import forget_killed
from podperf.testers import TESTERS
from podperf.testers.kubernetes_settings import KubernetesSettings
from podperf.topology import load_topology
from run_command.__main__ import NOT_STARTED, end, say
from run_command.__main__ import main as run

INDEX, NODES = "JOB_COMPLETION_INDEX", "PODPERF_NODES"
RESULTS = Path("/results")
LONGEST_NAME = 64  # of a topology


def main(arguments: Sequence[str]) -> int:
    """Measure the nodes of the pod's index, and return the exit code of `podperf run`.

    The results are in `/results/NAME`. The name is that of the testbed: the topology's, and those of the nodes.
    """
    script, install, *given = arguments
    if not given:
        say("podperf: name a topology: podperf job TOPOLOGY")
        return NOT_STARTED
    try:
        topology, folder = _of_this_pod(Path(given[0]), os.environ)
    except PodperfError as error:
        say(f"podperf: {error}")
        return NOT_STARTED
    return run([script, install, str(topology), "--outputdir", str(folder), *given[1:]], only_user=True)


def _of_this_pod(path: Path, environment: Mapping[str, str]) -> tuple[Path, Path]:
    """The topology with the nodes of this pod's index, and the folder of its results."""
    kind = load_topology(path, testers=TESTERS).tester.kind
    if not isinstance(kind, KubernetesSettings):
        raise PodperfError(f"{path}: the tester of a Job is two pods (tester.type: kubernetes)")
    index = environment.get(INDEX, "")
    if not index.isdecimal():
        raise PodperfError(f"{INDEX} is not set: only a pod of an indexed Job has it (completionMode: Indexed)")
    nodes = nodes_of_index(environment.get(NODES, "").split(), kind.nodes, int(index))
    with closing(log_in(kind.kubeconfig, kind.context)) as api:
        for each in forget_killed(api, kind.namespace or api.namespace):  # of an earlier pod with this index
            say(f"podperf: removed what an earlier run left: {each}")
    content = measuring(read_yaml(path).data, nodes)
    folder = RESULTS / content["name"]
    folder.mkdir(parents=True, exist_ok=True)
    derived = folder / "topology.yaml"
    derived.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return derived, folder


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


if __name__ == "__main__":
    end(main(sys.argv[1:]))
