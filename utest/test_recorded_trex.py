"""TRex's own client from PyPI and podperf's program around it fulfil the testers' contract with a TRex 2.82.

The server's answers were recorded on its sockets, with its frame counters, by `PODPERF_TREX=/opt/trex/v2.82
PODPERF_TREX_RECORD=1 PODPERF_TREX_CLIENT=trex-stl-lib PODPERF_TREX_PYTHON=… pytest atest/test_tester_contract.py -k
trex`.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.model import Trial
from podperf.testers.base import Tester
from podperf.testers.trex import TrexTester
from podperf.testers.trex_rpc import Endpoint, server_version
from podperf.topology import TrexSettings
from recorded_trex import FOLDER, RecordedTrex
from test_trex_contract import dialogue_of
from tester_contract import (  # noqa: F401
    LOW,
    SECONDS,
    test_a_trial_shows_nothing_of_the_one_before,
    test_closing_may_be_repeated_and_ends_it,
    test_everything_that_was_sent_is_received_in_both_directions,
    test_latency_is_there_and_its_figures_fit_each_other,
    test_one_direction_alone_in_either_way,
    test_the_tester_says_what_it_is,
    test_what_the_far_end_does_not_get_is_lost,
)
from traffic import TRAFFIC

NOBODY = 1  # a TCP port on which nothing listens


pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("trex_stl_lib") is None, reason="trex-stl-lib of PyPI is not installed"
    ),
    pytest.mark.skipif(sys.version_info >= (3, 12), reason="trex-stl-lib of PyPI needs the module imp: Python < 3.12"),
]


class RecordedBench:
    """A recorded server, with podperf's tester."""

    seconds = SECONDS  # the duration in the recording

    def __init__(self, server: RecordedTrex) -> None:
        self.tester: Tester = connected_to(server, server.publisher_port)

    def lose_one_in(self, number: int) -> None:
        """These frames were already lost in the recording."""


def connected_to(server: RecordedTrex, publisher_port: int) -> TrexTester:
    settings = TrexSettings(interpreter=sys.executable)
    return TrexTester(LocalHost(), settings, Endpoint("127.0.0.1", server.port), publisher_port, None)


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[RecordedBench]:
    recording = FOLDER / f"{dialogue_of(request.node.name).stem}.json.gz"
    with closing(RecordedTrex(recording)) as server:
        bench = RecordedBench(server)
        yield bench
        bench.tester.close()
        assert server.complaint is None


RECORDING = FOLDER / "one-direction-alone-in-either-way.json.gz"


def test_a_server_that_dies_in_mid_trial_is_named_at_once() -> None:
    """TRex's client would repeat its question for 12 s."""
    with ExitStack() as undo:
        server = undo.enter_context(closing(RecordedTrex(RECORDING)))
        tester = undo.enter_context(closing(connected_to(server, server.publisher_port)))
        death = threading.Timer(0.3, server.close)
        death.start()
        began = time.monotonic()
        with pytest.raises(PodperfError, match=r"is gone: since \d\d:\d\d:\d\d nobody answers at this port"):
            tester.measure(Trial(TRAFFIC, LOW, SECONDS))
        assert time.monotonic() - began < 10
        assert tester.broken


def test_a_server_that_dies_between_trials_is_named_in_the_next() -> None:
    with closing(RecordedTrex(RECORDING)) as server, closing(connected_to(server, server.publisher_port)) as tester:
        server.close()
        with pytest.raises(PodperfError, match="is gone: since"):
            tester.measure(Trial(TRAFFIC, LOW, SECONDS))


@pytest.mark.parametrize("wrong", ["nobody", "rpc"])
def test_a_publisher_port_of_somebody_else_is_noticed(wrong: str) -> None:
    with closing(RecordedTrex(RECORDING)) as server:
        port = {"nobody": NOBODY, "rpc": server.port}[wrong]
        with pytest.raises(PodperfError, match=f"publishes nothing at port {port}"):
            server_version(LocalHost(), Endpoint("127.0.0.1", server.port), port, timeout=2.0)
