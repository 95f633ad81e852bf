"""The agents of podperf's own cluster: who may have one restarted, and what is told if it does not become ready."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from podperf.cluster import layout
from podperf.cluster.inside import Inside
from podperf.cluster.layout import ClusterLayout, ClusterPrograms
from podperf.cluster.parts import DEFAULT
from podperf.errors import PodperfError
from podperf.kubernetes import own_agents


class Processes:
    """Stands in for the children of the first process of a cluster: numbers of processes, and those that have ended."""

    def __init__(self) -> None:
        self.ended: list[int] = []
        self.exit_code = 0

    def end(self, number: int) -> None:
        self.ended.append(number)

    def run(self, command: Sequence[str], log: Path) -> int:
        return self.exit_code


@pytest.fixture
def wanted(tmp_path: Path) -> ClusterLayout:
    return ClusterLayout(ClusterPrograms(tmp_path, tmp_path, DEFAULT), 1, layout.nodes(1), folder=tmp_path)


@pytest.fixture
def inside(wanted: ClusterLayout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Inside]:
    """The first process of a cluster, which has an agent on node1 with the number 7."""
    monkeypatch.setattr(own_agents, "SOCKET", tmp_path / "agents")
    assert not own_agents.can_restart()
    inside = Inside(wanted)
    monkeypatch.setattr(inside, "children", Processes())
    inside._agents["node1"] = 7, lambda: 8, ["ready"]
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(own_agents.SOCKET))
        listening.listen()

        def serve() -> None:
            with suppress(OSError):  # the socket is shut down
                inside.restart_agents(listening)

        serving = threading.Thread(target=serve)
        serving.start()
        yield inside
        listening.shutdown(socket.SHUT_RDWR)
        serving.join()


def ended(inside: Inside) -> list[int]:
    assert isinstance(inside.children, Processes)
    return inside.children.ended


def test_an_agent_is_restarted_for_the_word_of_its_cluster(inside: Inside, wanted: ClusterLayout) -> None:
    assert own_agents.can_restart()
    own_agents.restart_agent(wanted.word, "node1")
    own_agents.restart_agent(wanted.word, "node1")
    assert ended(inside) == [7, 8]


def test_nothing_is_restarted_for_another_cluster_or_a_node_without_an_agent(
    inside: Inside, wanted: ClusterLayout
) -> None:
    for word, node in (("", "node1"), ("another", "node1"), (wanted.word, "node2"), (wanted.word, "")):
        with pytest.raises(PodperfError, match="another cluster runs on this machine"):
            own_agents.restart_agent(word, node)
    assert not ended(inside)


def test_an_agent_that_does_not_become_ready_is_an_error(inside: Inside, wanted: ClusterLayout) -> None:
    assert isinstance(inside.children, Processes)
    inside.children.exit_code, inside._failed = 1, True
    with pytest.raises(PodperfError, match="on node1 was not restarted: it did not become ready"):
        own_agents.restart_agent(wanted.word, "node1")


def test_without_a_cluster_there_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(own_agents, "SOCKET", tmp_path / "agents")
    with pytest.raises(PodperfError, match=r"on node1 was not restarted: .*No such file"):
        own_agents.restart_agent("word", "node1")
