"""TRex's own client from PyPI, and podperf's program around it, keep the testers' contract before a TRex 2.82.

The server was recorded on its sockets, frame counters and all, by `PODPERF_TREX=/opt/trex/v2.82 PODPERF_TREX_RECORD=1
PODPERF_TREX_CLIENT=trex-stl-lib PODPERF_TREX_PYTHON=… pytest atest/test_tester_contract.py -k trex`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from podperf.hosts.local import LocalHost
from podperf.testers.base import Tester
from podperf.testers.trex import TrexTester
from podperf.testers.trex_rpc import Endpoint
from podperf.topology import TrexSettings
from recorded_trex import FOLDER, RecordedTrex
from test_trex_contract import dialogue_of
from tester_contract import (  # noqa: F401
    test_a_trial_shows_nothing_of_the_one_before,
    test_closing_may_be_repeated_and_ends_it,
    test_everything_that_was_sent_is_received_in_both_directions,
    test_latency_is_there_and_its_figures_fit_each_other,
    test_one_direction_alone_in_either_way,
    test_the_tester_says_what_it_is,
    test_what_the_far_end_does_not_get_is_lost,
)

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("trex_stl_lib") is None, reason="trex-stl-lib of PyPI is not installed"
    ),
    pytest.mark.skipif(sys.version_info >= (3, 12), reason="trex-stl-lib of PyPI needs the module imp: Python < 3.12"),
]


class RecordedBench:
    """A recorded server, and podperf before it."""

    def __init__(self, server: RecordedTrex) -> None:
        endpoint = Endpoint("127.0.0.1", server.port)
        settings = TrexSettings(interpreter=sys.executable)
        self.tester: Tester = TrexTester(LocalHost(), settings, endpoint, server.publisher_port, None)

    def lose_one_in(self, number: int) -> None:
        """Lost already when it was recorded."""


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[RecordedBench]:
    recording = FOLDER / f"{dialogue_of(request.node.name).stem}.json.gz"
    with closing(RecordedTrex(recording)) as server:
        bench = RecordedBench(server)
        yield bench
        bench.tester.close()
        assert server.complaint is None
