"""The identity of a test, and the name of its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podperf.dataplanes import DATA_PLANES, with_forwarder
from podperf.figures import count
from podperf.model import Chain, TrafficProfile
from podperf.records import TestRecord, record_id, sections_of
from podperf.topology import Topology
from podperf.verdicts.thresholds import applicable


@dataclass(frozen=True)
class TestIdentity:
    """A test as Robot Framework knows it. `log` is its place in Robot's log, or None without a log."""

    __test__ = False  # not a pytest class

    name: str
    suite: str
    tags: Sequence[str] = ()
    log: str | None = None

    def record(self, *words: str) -> TestRecord:
        """An empty record of this test. The section and `words` make the record's name."""
        section = next(iter(sections_of(self.tags)), "")
        return TestRecord(record_id(section, *words), self.name, self.suite, self.tags, log=self.log)


def chain_record(identity: TestIdentity, topology: Topology, chain: Chain, traffic: TrafficProfile) -> TestRecord:
    """The record of a test before its set-up: the requested chain, and its thresholds."""
    inside = chain.forwarder or ""
    where = count(chain.workers, "worker") if chain.workers > 1 else ""
    words = (chain.data_plane, count(chain.pods, "pod"), where, inside, traffic.frame.name, way(traffic))
    record, kind = identity.record(*words), DATA_PLANES.get(chain.data_plane)
    record.model = kind.model if kind else None
    record.chain = with_forwarder(chain)
    record.thresholds = applicable(topology.thresholds, chain, traffic.frame)
    return record


def way(traffic: TrafficProfile) -> str:
    """The difference of the traffic from the usual one, for the record's name."""
    words = ["both-ways"] if len(traffic.directions) > 1 else []
    return "-".join([*words, *([f"{traffic.flows}-flows"] if traffic.flows > 1 else [])])
