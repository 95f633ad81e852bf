"""Sets up the chain of one test, and describes the chain in the test's record."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from podperf.errors import PodperfError
from podperf.model import Chain, TrafficProfile
from podperf.records import TestRecord
from podperf.run.cost import measure_cost
from podperf.run.interfaces import interfaces_of, link_speed
from podperf.run.kept import Kept
from podperf.run.measurement import Measurement
from podperf.run.session import Session
from podperf.run.test_in_progress import TestInProgress
from podperf.testbed.system_under_test import SystemUnderTest, addressed


def set_up(test: TestInProgress, chain: Chain, traffic: TrafficProfile, session: Session, kept: Kept) -> Measurement:
    """Build the chain, check that frames cross it, and describe it in the record. It stays until the test's `undo`."""
    record, equipment = test.record, session.equipment
    if chain.workers > 1:
        equipment.testbed.demand(chain)
        test.quietness = equipment.watch([each.sut for each in equipment.testbed.cpu_plans(chain)], test.undo)
    sut = test.undo.enter_context(equipment.testbed.build(chain, traffic.frame, traffic.directions))
    record.traffic = traffic = addressed(traffic, sut)
    sut.probe(traffic)
    record.cpu_plans, record.data_plane = sut.cpu_plans, sut.describe()
    record.second_model = sut.second_model
    record.tester = sut.tester.describe()
    record.interfaces = interfaces_of(sut)
    record.link_bits_per_second = link_speed(record.interfaces)
    if not session.topology.counts_instructions:  # where no rate is judged
        record.limits = kept.limits.on_link(record.link_bits_per_second, traffic, sut.tester.facts.engine)
    test.undo.callback(_last_look, record, sut)
    cost = partial(measure_cost, test, sut, equipment.testbed, traffic, kept.bare_paths, session.profiler)
    again = partial(equipment.testbed.build, chain, traffic.frame, traffic.directions)
    return Measurement(test, sut, traffic, record.limits, session.topology.method, kept.baselines, cost, build=again)


def _last_look(record: TestRecord, sut: SystemUnderTest) -> None:
    """Describe the data plane again before it is taken down, with the final counters of its processes."""
    if sut.counts:
        with suppress(PodperfError, OSError):  # if it has ended, the first description stays
            sut.check()
            record.data_plane = sut.describe()
