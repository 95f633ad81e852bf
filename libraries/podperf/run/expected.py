"""The expected time of each test of a run: its time in earlier runs here, or the usual time of such tests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError
from podperf.methods.durations import usual_duration
from podperf.model import Chain
from podperf.records import earlier_durations, topology_digest
from podperf.run.identity import TestIdentity
from podperf.run.session import Session
from podperf.testbed.testbed import LiveTestbed


def expected_seconds(session: Session, tests: Sequence[TestIdentity]) -> list[float]:
    """The expected seconds of each test, in the order of `tests`. A test that the testbed must skip takes none."""
    topology, testbed = session.topology, session.equipment.testbed
    earlier = earlier_durations(session.results, topology_digest(topology))
    offered = {each: _offers(testbed, each) for each in DATA_PLANES if any(each in test.tags for test in tests)}

    def expected(test: TestIdentity) -> float:
        planes = [each for each in offered if each in test.tags]
        if not all(offered[each] for each in planes):
            return 0.0
        return earlier.get(test.name, usual_duration(test.tags, topology.method, planes, topology.counts_instructions))

    return [expected(each) for each in tests]


def _offers(testbed: LiveTestbed, data_plane: str) -> bool:
    """Whether the testbed can run the data plane. A test may need more than this, and checks it when it runs."""
    with suppress(PodperfError):
        testbed.demand(Chain(data_plane, DATA_PLANES[data_plane].least_pods))
        return True
    return False
