"""Hugepages of machines with several NUMA nodes, as podperf reads them. This machine has one node."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.errors import PodperfError, Unavailable
from podperf.hosts.local import LocalHost
from podperf.hosts.way_back import changes
from podperf.kernel import hugepages
from podperf.model import PageSize
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
    files = {
        f"{hugepages.folder(PageSize.TWO_MIB)}/nr_hugepages": "8",
        f"{hugepages.folder(PageSize.TWO_MIB)}/free_hugepages": "3",
    }
    assert hugepages.free(ScriptedHost(files, patient=True)) == {0: (3, 8)}


def test_pages_are_noted_before_they_are_reserved_and_given_back() -> None:
    host = host_with((0,), patient=True)
    folder = f"/sys/devices/system/node/node0/{PAGES}"
    host.files |= {f"{folder}/nr_hugepages": "100", f"{folder}/surplus_hugepages": "1"}
    with pytest.raises(PodperfError, match="no 64 MiB of hugepages left"), ExitStack() as undo:
        hugepages.reserve(host, PageSize.TWO_MIB, [64], undo)
    (reserved,) = (at for at, each in enumerate(host.commands) if each == f"tee {folder}/nr_hugepages")
    (given_back,) = (at for at, each in enumerate(host.commands) if each.endswith(f"{folder} 99"))
    assert reserved < given_back
    assert changes(host) == []


def test_a_kill_before_pages_are_reserved_leaves_their_number(tmp_path: Path) -> None:
    """A kill can come before the reservation. The command that gives pages back must then change nothing."""
    host = LocalHost()
    for node, pages in ((0, 100), (1, 101)):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "nr_hugepages").write_text(f"{pages}\n")
    pairs = [str(tmp_path / "node0"), "100", str(tmp_path / "node1"), "101"]
    for _ in range(2):
        host.do("sh", "-c", hugepages._SET_BACK, "sh", *pairs)
    assert [(tmp_path / f"node{node}" / "nr_hugepages").read_text() for node in (0, 1)] == ["100\n", "101\n"]
    pairs[1] = "99"
    with pytest.raises(PodperfError, match="no-such/nr_hugepages"):
        host.do("sh", "-c", hugepages._SET_BACK, "sh", str(tmp_path / "no-such"), "7", *pairs)
    assert (tmp_path / "node0" / "nr_hugepages").read_text() == "99\n", "the other nodes get their numbers nevertheless"


@given(st.lists(st.integers(1, 4096), max_size=8), st.sampled_from([PageSize.TWO_MIB, PageSize.ONE_GIB]))
def test_no_two_processes_share_a_page(memories: list[int], size: PageSize) -> None:
    pages = hugepages.whole_pages(memories, size)
    assert len(memories) * (size >= max(memories, default=0)) <= pages
    assert sum(memories) <= pages * size < sum(memories) + size * len(memories) + 1


def test_three_pods_take_three_pages_of_a_gibibyte() -> None:
    folder = hugepages.folder(PageSize.ONE_GIB)
    files = {f"{folder}/{name}_hugepages": "0" for name in ("nr", "free", "surplus")}
    host = ScriptedHost(files, patient=True)
    with (
        pytest.raises(PodperfError, match="no 3072 MiB of hugepages left: 0 of 3 pages of 1 GiB are free"),
        ExitStack() as undo,
    ):
        hugepages.reserve(host, PageSize.ONE_GIB, [128, 128, 256], undo)
    assert f"tee {folder}/nr_hugepages" in host.commands


def test_pages_that_the_machine_cannot_give_are_unavailable_with_the_remedy() -> None:
    folder = hugepages.folder(PageSize.ONE_GIB)
    with pytest.raises(Unavailable, match=r"`hugepagesz=1G hugepages=2` on the kernel's command line.*pdpe1gb"):
        hugepages.try_to_reserve(ScriptedHost(refused={"test": ""}), PageSize.ONE_GIB, [128, 128])
    files = {f"{folder}/{name}_hugepages": "0" for name in ("nr", "free", "surplus")}
    full = ScriptedHost(files, patient=True)
    with pytest.raises(Unavailable, match="`hugepagesz=1G hugepages=1`"):
        hugepages.try_to_reserve(full, PageSize.ONE_GIB, [128])
    assert changes(full) == [], "a try gives back what it took"
