"""The cluster of two nodes, and the results of its Jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from api_calls_of_a_pair import PATHS
from own_cluster import apply, cluster
from podperf.cluster.layout import FOLDER
from podperf.cluster.pod_image import WHOLE, WITH_NETPERF, ready_image
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.kubernetes.api import Api
from podperf.kubernetes.rights import NAMESPACED_FILE


@pytest.fixture(scope="package")
def two_nodes() -> Iterator[Api]:
    """The API of a cluster of two nodes that have the image with podperf. The tests of this folder share it."""
    try:
        image = ready_image(LocalHost(), print, WHOLE)
    except PodperfError as reason:  # it is made from packages of the distribution's mirror
        pytest.skip(str(reason))
    further = []
    with suppress(PodperfError):  # the component non-free of the mirror
        further = ["--image", str(ready_image(LocalHost(), print, WITH_NETPERF).path)]
    with cluster("--nodes", "2", "--image", str(image.path), *further) as found:
        yield found


@pytest.fixture(scope="package")
def results(two_nodes: Api) -> Path:
    """The folder of the results of all Jobs, which the nodes have, too."""
    folder = FOLDER / "results"
    folder.mkdir()
    apply(two_nodes, NAMESPACED_FILE)
    volume = {
        "kind": "PersistentVolume",
        "metadata": {"name": "results"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "hostPath": {"path": str(folder)}},
    }
    two_nodes.ask("POST", PATHS["PersistentVolume"], volume)
    return folder
