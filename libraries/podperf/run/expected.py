"""How long each test of a run may take: as long as it took here before, else as long as such tests usually take."""

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
from podperf.testbed.testbed import Testbed


def expected_seconds(session: Session, tests: Sequence[TestIdentity]) -> list[float]:
    """Seconds of each of these tests, in their order. A test that this testbed cannot offer is skipped at once."""
    topology, testbed = session.topology, session.equipment.testbed
    earlier = earlier_durations(session.results, topology_digest(topology))
    offered = {each: _offers(testbed, each) for each in DATA_PLANES if any(each in test.tags for test in tests)}

    def expected(test: TestIdentity) -> float:
        planes = [each for each in offered if each in test.tags]
        if not all(offered[each] for each in planes):
            return 0.0
        return earlier.get(test.name, usual_duration(test.tags, topology.method, planes, topology.counts_instructions))

    return [expected(each) for each in tests]


def _offers(testbed: Testbed, data_plane: str) -> bool:
    """Whether this testbed can offer the data plane at all. A test may need more, and finds that out when it runs."""
    with suppress(PodperfError):
        testbed.demand(Chain(data_plane, DATA_PLANES[data_plane].least_pods))
        return True
    return False
