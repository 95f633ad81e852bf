"""Application traffic: what iperf3 and netperf said, the figures of it, and their place in record and reports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Completed
from podperf.kernel.thread_time import ThreadClock
from podperf.methods.application_tools import IPERF3, KINDS, NETPERF, Traffic, read_iperf3, read_netperf
from podperf.methods.application_traffic import (
    OF_ENDS,
    ApplicationRun,
    ApplicationTraffic,
    ApplicationTrafficResult,
    EndsClock,
    Series,
)
from podperf.metrics import APPLICATION_WORDS, METRICS
from podperf.model import Chain, CpuTime
from podperf.testers.ends import ChainEnd, no_ends
from simulated_chain import SimulatedChain
from simulated_dut import SimulatedDut
from simulated_ends import OneSecond, RecordedTools, ends, recorded
from test_further_methods import reported

HOST = RecordedTools()


def said(text: str, code: int = 0, errors: str = "") -> Completed:
    return Completed(("netperf",), code, text, errors)


def measured(host: RecordedTools, clock: Any = None, runs: int = 3) -> ApplicationTrafficResult:
    with ends(host) as (left, right):
        return ApplicationTraffic(runs, 1.0).run(left, right, clock)


def test_what_iperf3_said() -> None:
    one, eight = (read_iperf3(HOST, said(recorded(f"iperf3{name}.json"))) for name in ("", "_8_streams"))
    assert one == Traffic(pytest.approx(5.03e7, rel=0.01), 6291456, 0, "bbr")
    assert eight == Traffic(pytest.approx(4.19e7, rel=0.01), 8 * 655360, 0, "bbr")


def test_what_netperf_said() -> None:
    assert read_netperf(HOST, said(recorded("netperf_TCP_RR.txt"))) == Traffic(23681.02, 23681.02)
    assert read_netperf(HOST, said(recorded("netperf_TCP_CRR.txt"))).rate == 3923.76
    assert read_netperf(HOST, said(recorded("netperf_UDP_RR.txt"))).rate == 21499.5


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"end": {}}', '{"end": {"sum_received": {"bytes": "many"}}}'])
def test_another_answer_of_iperf3_is_an_error(text: str) -> None:
    with pytest.raises(PodperfError, match="iperf3"):
        read_iperf3(HOST, said(text))


@pytest.mark.parametrize("text", ["", "THROUGHPUT=7", "THROUGHPUT=7\nTHROUGHPUT_UNITS=10^6bits/s\nELAPSED_TIME=1"])
def test_another_answer_of_netperf_is_an_error(text: str) -> None:
    with pytest.raises(PodperfError, match="netperf"):
        read_netperf(HOST, said(text))


def test_a_refused_connection_is_told_in_the_words_of_the_tool() -> None:
    with pytest.raises(PodperfError, match="unable to connect to server: Connection refused"):
        read_iperf3(HOST, said(recorded("iperf3_refused.json"), 1))
    with pytest.raises(PodperfError, match=r"exit code 255: .*could not establish the control connection"):
        read_netperf(HOST, said(recorded("netperf_refused.txt"), 255))


def test_each_kind_has_its_runs_and_the_kinds_take_turns() -> None:
    host = RecordedTools()
    result = measured(host)
    clients = [command for command in host.commands if "--client" in command or " -t " in command]
    kinds = [next(kind.metric for kind in KINDS if " ".join(kind.options) in command) for command in clients]
    assert kinds == [kind.metric for kind in KINDS] * 3
    assert all(command.startswith("taskset --cpu-list 0 ") for command in clients)
    assert host.servers == 0, "each server has ended"
    assert set(result.metrics) == {kind.metric for kind in KINDS}, "no CPU time without a clock"
    assert result.as_record()["confidence"] == 0.75


def test_ends_with_control_groups_of_their_own_tell_their_cpu_time() -> None:
    times = {"left": iter([1e9, 1.5e9]), "right": iter([0.0, 2e9])}
    left, right = (ChainEnd(HOST, "", cpu_time=partial(next, times[side])) for side in times)
    clock = EndsClock.of(left, right)
    assert clock is not None
    clock.start()
    assert clock.stop() == CpuTime({"left": 0.5e9, "right": 2e9})
    assert EndsClock.of(left, ChainEnd(HOST, "")) is None, "an end whose place has other programs, too"


def test_an_end_that_cannot_read_its_control_group_is_named() -> None:
    clock = EndsClock.of(*(ChainEnd(HOST, "", cpu_time=read) for read in (lambda: 1.0, lambda: None)))
    assert clock is not None
    clock.start()
    taken = clock.stop()
    assert taken.total is None and taken.unread.endswith(": right")


def series(*rates: float) -> Series:
    return Series(KINDS[0], [ApplicationRun(Traffic(rate, rate)) for rate in rates])


def test_a_figure_is_the_median_between_slowest_and_fastest_run() -> None:
    rate = series(3e9, 1e9, 9e9, 2e9, 4e9).rate
    assert (rate.low, rate.value, rate.high) == (1e9, 3e9, 9e9)


def test_cpu_time_is_that_of_a_byte_and_of_a_transaction() -> None:
    metrics = measured(RecordedTools(), OneSecond()).metrics
    assert metrics["tcp_stream_cpu_time"].value == pytest.approx(1e9 / 6291456)
    assert metrics["tcp_rr_cpu_time"].value == pytest.approx(1e9 / 23681.02)


@pytest.mark.parametrize(
    ("time", "why"), [(CpuTime(unread="no file"), "no file"), (CpuTime(polling=("vpp",)), "vpp polls")]
)
def test_a_cpu_time_that_cannot_be_read_says_why(time: CpuTime, why: str) -> None:
    result = measured(RecordedTools(), OneSecond(time))
    assert "tcp_stream_cpu_time" not in result.metrics
    assert result.missing[METRICS["tcp_rr_cpu_time"].label] == f"not read: {why}"


def test_without_netperf_its_kinds_are_missing_and_the_packages_are_named() -> None:
    result = measured(RecordedTools(absent={"netperf"}))
    assert set(result.metrics) == {"tcp_stream", "tcp_streams"}
    assert set(result.missing) == {"TCP_RR", "TCP_CRR", "UDP_RR"}
    assert "non-free" in result.missing["TCP_RR"] and "apt-get install netperf" in result.missing["TCP_RR"]
    with pytest.raises(Unavailable, match="apt-get install iperf3"):
        measured(RecordedTools(absent={"iperf3", "netperf"}))


def chain(**differs: Any) -> SimulatedChain:
    made = SimulatedChain(SimulatedDut(1e5, 1e6), {})
    made.sut_differs = differs
    return made


@pytest.mark.parametrize(
    ("differs", "why"),
    [
        ({"ends": no_ends}, "needs ports that podperf makes"),
        ({"applications": [SimpleNamespace(name="pod1")]}, "forwards in user space"),
        ({"chain": Chain("ovs-dpdk", 1)}, "forwards in user space"),
    ],
)
def test_a_chain_that_cannot_carry_it_says_why(differs: dict[str, Any], why: str) -> None:
    with pytest.raises(Unavailable, match=why):
        ApplicationTraffic.on(chain(**differs))


def test_cpu_time_of_ends_that_tell_it_stands_in_place_of_that_of_the_chain() -> None:
    @contextmanager
    def telling() -> Iterator[tuple[ChainEnd, ChainEnd]]:
        with ends(HOST) as both:
            left, right = (replace(each, cpu_time=count(step=1e9).__next__) for each in both)
            yield left, right

    unknown = ThreadClock((), "external does not tell which threads handle frames")
    result = ApplicationTraffic.on(chain(ends=telling, cpu_clock=lambda: unknown))
    assert result.cpu_time_of == OF_ENDS and not result.missing
    assert result.metrics["tcp_stream_cpu_time"].value == pytest.approx(2e9 / 6291456)


def test_less_than_one_run_is_refused() -> None:
    with pytest.raises(PodperfError, match="one run or more"):
        ApplicationTraffic.on(chain(), 0)


def test_reports_keep_it_apart(tmp_path: Path) -> None:
    result = ApplicationTraffic.on(chain())
    table, html, record = reported(tmp_path, "application_traffic", result, [])
    assert APPLICATION_WORDS in table and APPLICATION_WORDS in html
    assert "TCP x1" in table and "TCP_CRR" in table
    assert "MRR" not in table, "no table of throughput without throughput"
    assert "<h2>Application traffic</h2>" in html
    assert record["results"]["tcp_rr"] == {"transactions_per_second": 23681.02, "lower_bound": False}
    assert record["methods"]["application_traffic"]["kinds"][1]["rates"] == [pytest.approx(4.19e7, rel=0.01)] * 6


def test_the_tools_are_those_of_the_field() -> None:
    assert {kind.tool for kind in KINDS} == {IPERF3, NETPERF}
    assert IPERF3.client("a", "b", 2.0)[:3] == ("iperf3", "--client", "b")
