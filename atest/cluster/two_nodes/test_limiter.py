"""NDR and PDR find the rate of a limiter between the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from attempts import first
from cluster.runs import topology
from own_cluster import STARTS_A_CLUSTER, process_of
from podperf.hosts.local import LocalHost
from podperf.kubernetes.api import Api
from podperf.kubernetes.ports import DISCARDED
from robot_run import ROOT, Robot

pytestmark = STARTS_A_CLUSTER
LIMIT = 20_000  # frames/s through a limiter


def test_a_limiter_on_a_link_of_the_nodes_is_found_as_ndr_and_pdr(two_nodes: Api, tmp_path: Path) -> None:
    """A tester whose own bursts are the loss says so, and a machine that is busy for a whole search does not pass
    every time."""
    with ExitStack() as undo:
        for node in ("node1", "node2"):
            limited_link(node, LIMIT, undo)
        row, folders = ("--test", "Pod to pod on two nodes, 64 B", str(ROOT / "tests")), count()

        def measure() -> dict[str, Any]:
            run = Robot(tmp_path / str(next(folders)), *row, topology=topology(tmp_path).read_text())
            assert run.wait() == 0, run.messages()
            (record,) = run.records()
            rates = {name: record["results"][name] for name in ("mrr", "ndr", "pdr") if name in record["results"]}
            assert all(each["frames_per_second"] < 1.1 * LIMIT for each in rates.values()), rates
            return rates

        first(lambda rates: len(rates) == 3 and all(map(near_limit_or_doubted, rates.values())), measure)


def limited_link(node: str, rate: int, undo: ExitStack) -> None:
    """Let test frames of this rate pass from the link of a node to its pods, and 10 ms of them at once: a busy machine
    stands still for some milliseconds."""
    here, within = LocalHost(), ("nsenter", "--target", str(process_of("kubelet", node)), "--net", "nft")
    too_many = f"limit rate over {rate}/second burst {rate // 100} packets"
    undo.callback(here.do, *within, "delete table ip limiter")
    here.do(
        *within,
        "add table ip limiter; "
        "add chain ip limiter forward { type filter hook forward priority 0; }; "
        f"add rule ip limiter forward iifname eth0 udp dport {DISCARDED} {too_many} drop",
    )


def near_limit_or_doubted(found: Mapping[str, Any]) -> bool:
    """Whether a rate is that of the limiter, or the record says that the tester's own bursts may be the loss."""
    return found["frames_per_second"] > 0.85 * LIMIT or "caught up in haste" in found.get("doubt", "")
