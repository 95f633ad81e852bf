"""Realistic records of draft section 4.2 and of the appendices that no machine measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from made_up import TOPOLOGY
from podperf.experiments.claim import Claim, judge
from podperf.experiments.claims import hugepages
from podperf.experiments.contender import beside_published
from podperf.experiments.published import published_table
from podperf.metrics import Measured
from podperf.model import FrameSize, Placement
from podperf.records import TestRecord
from podperf.testbed.scenarios import Placed

LOADS = (1e6, 5e5, 2e5, 1e5, 5e4)


def resources_records() -> list[TestRecord]:
    """Pages of three sizes, NUMA placements beside published figures, and two methods beside throughput."""
    pages = hugepages("af-xdp-busy-poll", "1", "ONE_GIB", "TWO_MIB", "NONE")
    table, names = published_table("appendix_c_multi_pod"), [f"OVS-DPDK S{number}" for number in range(1, 7)]
    numa = table.order_of_figures(FrameSize.parse(1518), *names)
    found = [
        _compared("pages", "AF_XDP busy poll, three sizes of pages", ("sec-4.2.2",), pages, (2.6e5, 2.55e5, 2.4e5)),
        _compared(
            "numa",
            "OVS-DPDK in S1 to S6, 1518 B",
            ("sec-4.2.1", "appendix-c.5"),
            numa,
            (6e5, 5.5e5, 4e5, 3.8e5, 2e5, 1.9e5),
        ),
    ]
    rows = []
    for contender in numa.contenders:
        assert contender.quantity is not None
        row = beside_published(
            contender.quantity, contender.name, contender.figure, contender.frame, Measured(3e5, 2.9e5, 3.1e5), 40e9
        )
        rows.append({**asdict(row), "frame": contender.frame.name, "measured_as": "NDR"})
    quantity = table.quantity
    published = {
        **{"quantity": quantity.name, "unit": quantity.unit, "frame": "1518B", "loss_ratio": None},
        **{"sought_loss_ratio": 0.0, "words": quantity.words, "rows": rows, "searches": {}},
    }
    found[1].methods = {**found[1].methods, "published": published}
    return [*found, *_methods()]


def _compared(identity: str, name: str, tags: Sequence[str], order: Claim, rates: Sequence[float]) -> TestRecord:
    """The record of a comparison in which each contender has one rate in nine rounds, and a lower one in the tenth."""
    found = [[*[Measured(rate)] * 9, Measured(rate * 0.9)] for rate in rates]
    names = [contender.name for contender in order.contenders]
    record = TestRecord(identity, name, "s", tags, 9, 10, "passed", topology=TOPOLOGY)
    record.methods = {
        "comparison": {
            "rates": {name: [value.value for value in values] for name, values in zip(names, found, strict=True)},
            "placements": {name: Placed(Placement((0,), (1,)), ()).as_record() for name in names},
            "frames": {contender.name: contender.frame.name for contender in order.contenders},
        }
    }
    record.findings = [judge(order, found)]
    return record


def _methods() -> list[TestRecord]:
    """A loss curve, and latency by load."""
    points = [
        {"share": load / 1e6, "load": load, "achieved_load": load, "sent": 1, "lost": 0, "loss_ratio": 1 - 5e4 / load}
        for load in LOADS
    ]
    curve: dict[str, Any] = {
        **{"method": "loss_curve", "source": "RFC 2544 section 26.3", "points": points, "not_delivered": []},
        **{"incomplete": None, "maximum_load": 1e6, "trial_duration": 0.5},
    }
    percentiles = ("minimum_ns", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "maximum_ns")
    steps = [
        {
            **{"share": share, "of": "PDR", "load": share * 1e5, "loss_ratio": 0.0},
            "latency": {name: 7000 * (place + 1) * (1 + share) for place, name in enumerate(percentiles)},
        }
        for share in (0.1, 0.5, 0.9)
    ]
    found = []
    for name, method in (("Loss curve", {"loss_curve": curve}), ("Latency", {"latency_by_load": {"steps": steps}})):
        record = TestRecord(name.split()[0], f"{name}, linux bridge", "s", ["sec-4.2"], 9, 10, "passed")
        record.topology, record.methods = TOPOLOGY, method
        found.append(record)
    return found
