"""The set-up of the chain that one test measures, with all that its record says of the chain."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Perishable
from podperf.errors import PodperfError
from podperf.figures import count
from podperf.model import Chain, Traffic
from podperf.records import TestRecord
from podperf.run.baselines import Baselines
from podperf.run.interfaces import interfaces_of, link_speed
from podperf.run.limits import KnownLimits
from podperf.run.measurement import Measurement
from podperf.run.session import Session
from podperf.run.test_in_progress import TestIdentity, TestInProgress, way
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.topology import Topology
from podperf.verdicts.thresholds import applicable


def chain_record(identity: TestIdentity, topology: Topology, chain: Chain, traffic: Traffic) -> TestRecord:
    """The record of a test before anything is set up: the chain, as it is asked for, and its thresholds."""
    inside = chain.forwarder or ""
    where = count(chain.workers, "worker") if chain.workers > 1 else ""
    words = (chain.data_plane, count(chain.pods, "pod"), where, inside, traffic.frame.name, way(traffic))
    record, kind = identity.record(*words), DATA_PLANES.get(chain.data_plane)
    record.model = kind.model if kind else None
    record.chain = replace(chain, forwarder=chain.forwarder or kind.forwarders[0]) if kind else chain
    record.thresholds = applicable(topology.thresholds, chain, traffic.frame)
    return record


def set_up(
    test: TestInProgress, chain: Chain, traffic: Traffic, session: Session, known: KnownLimits, baselines: Baselines
) -> Measurement:
    """Build the chain, see frames cross it, and describe it in the test's record. It stands until the test's `undo`."""
    record, equipment = test.record, session.equipment
    if chain.workers > 1:
        equipment.testbed.demand(chain)
        test.quietness = equipment.watch(equipment.placement.sut, test.undo, chain.workers)
    sut = test.undo.enter_context(equipment.testbed.build(chain, traffic.frame, traffic.directions))
    record.traffic = traffic = addressed(traffic, sut)
    sut.probe(traffic)
    record.data_plane = sut.describe()
    record.tester = sut.tester.describe()
    record.interfaces = interfaces_of(sut)
    record.link_bits_per_second = link_speed(record.interfaces)
    record.limits = limits = known.on_link(record.link_bits_per_second, traffic, record.tester["engine"])
    test.undo.callback(_last_look, record, sut)
    return Measurement(test, sut, traffic, limits, session.topology.method, baselines)


def _last_look(record: TestRecord, sut: SystemUnderTest) -> None:
    """Describe the data plane again, before it goes, with all that its processes have counted."""
    if isinstance(sut.data_plane, Perishable):
        with suppress(PodperfError, OSError):  # one that is gone stays described as it was when it stood
            sut.check()
            record.data_plane = sut.describe()
