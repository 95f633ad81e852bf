"""What is read of hugepages on machines with NUMA nodes that this one has not."""

import json
from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from podperf.errors import PodperfError
from podperf.kernel import hugepages
from scripted_host import ScriptedHost

PAGES = "hugepages/hugepages-2048kB"


def host_with(nodes: Sequence[int], *, patient: bool = False) -> ScriptedHost:
    """A host with 100 + N pages on each node N, N of them free; the shell sorts node10 before node2."""
    folders = sorted(f"/sys/devices/system/node/node{node}/{PAGES}" for node in nodes)
    files = {
        f"/sys/devices/system/node/node{node}/{PAGES}/{name}": str(pages)
        for node in nodes
        for name, pages in (("nr_hugepages", 100 + node), ("free_hugepages", node))
    }
    return ScriptedHost(files, {"sh -c ls": "\n".join(folders)}, patient=patient)


@pytest.mark.parametrize("nodes", [(0,), (0, 1), (0, 2), tuple(range(12))])
def test_pages_are_those_of_their_node_whatever_order_the_folders_have(nodes: Sequence[int]) -> None:
    assert hugepages.free(host_with(nodes)) == {node: (node, 100 + node) for node in nodes}
    assert hugepages.nodes(host_with(nodes)) == list(nodes)


def test_a_kernel_that_knows_of_no_nodes_has_one() -> None:
    files = {f"{hugepages.FOLDER}/nr_hugepages": "8", f"{hugepages.FOLDER}/free_hugepages": "3"}
    assert hugepages.free(ScriptedHost(files, patient=True)) == {0: (3, 8)}


def test_what_an_earlier_set_up_could_not_give_back_is_given_back_by_the_next() -> None:
    host = host_with((0,), patient=True)
    folder = f"/sys/devices/system/node/node0/{PAGES}"
    host.files |= {f"{folder}/surplus_hugepages": "0", f"/run/{hugepages.BEFORE}": json.dumps({folder: 7})}
    with pytest.raises(PodperfError, match="no 64 MiB of hugepages left"), ExitStack() as undo:
        hugepages.reserve(host, 64, "/run", undo)
    assert json.loads(host.files[f"/run/{hugepages.BEFORE}"]) == {folder: 7}
