"""A benchmark that makes a claim exits with an error if the claim is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import api_calls_of_a_pair
import cost_and_cpu_time
import history_rates
import made_up
import tester_accounting
import waiting_of_pairs
from podperf.metrics import Measured
from podperf.model import BOTH_DIRECTIONS, DirectionResult, Trial, TrialResult
from tester_accounting import TRAFFIC, TRIALS

EXACT = TrialResult(
    Trial(TRAFFIC, 1e5, 1.0),
    0.0,
    tuple(DirectionResult(way, 1000, 1000, 1000, 0, 0, 0, 1.0) for way in BOTH_DIRECTIONS),
)


def with_a(**counts: int) -> TrialResult:
    """An exact trial, except for these counts of its second direction."""
    first, second = EXACT.directions
    return replace(EXACT, directions=(first, replace(second, **counts)))


@contextmanager
def nowhere() -> Iterator[None]:
    yield


def exit_code(monkeypatch: pytest.MonkeyPatch, *places: list[TrialResult]) -> int:
    """The exit code of tester_accounting, with these trials in its two places."""
    given = iter(places)
    monkeypatch.setattr(tester_accounting, "bare_wire", nowhere)
    monkeypatch.setattr(tester_accounting, "receive_in_the_sender", lambda _: None)
    monkeypatch.setattr(tester_accounting, "trials", lambda _: next(given))
    return tester_accounting.main()


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (with_a(received=999), "1 lost right-to-left"),
        (with_a(received=1001), "1 received but not sent right-to-left"),
        (with_a(duplicated=2), "2 duplicated right-to-left"),
        (with_a(reordered=3), "3 reordered right-to-left"),
        (with_a(corrupted=4), "4 corrupted right-to-left"),
        (replace(EXACT, stray=5), "5 stray"),
        (replace(EXACT, own_drops=6), "6 dropped by the tester"),
        (replace(EXACT, invalid="too slow"), "invalid: too slow"),
        (replace(EXACT, directions=()), "nothing was sent"),
    ],
)
@pytest.mark.parametrize("bad", [0, 1])
def test_one_inexact_trial_in_either_place_is_told_by_the_exit_code(
    result: TrialResult, said: str, bad: int, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    places = [[EXACT] * TRIALS, [EXACT] * TRIALS]
    places[bad][3] = result
    assert exit_code(monkeypatch, *places) == 1
    assert f"{said}\n" in capsys.readouterr().out


def test_exact_trials_in_both_places_are_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    assert exit_code(monkeypatch, [EXACT] * TRIALS, [EXACT] * TRIALS) == 0


def test_the_rates_of_a_history_are_those_of_its_verdicts(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(history_rates, "DEVIATIONS", (0.005,))
    assert history_rates.main(["4"]) == 0
    found = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert found[2][-5:] == ["0.0%", "100.0%", "0.0%", "0.0%", "0.0%"]  # a drop of 10 % in one run
    monkeypatch.setattr(history_rates, "verdict", lambda _: "regression")
    assert history_rates.main(["4"]) == 1


# --- the counted cost beside the CPU time -----------------------------------------------------------------------------


def rows(*pairs: tuple[float, float]) -> list[cost_and_cpu_time.Row]:
    return [cost_and_cpu_time.Row(f"row {cost:g}", cost, time) for cost, time in pairs]


def test_ranks_of_equal_values_are_their_mean() -> None:
    assert cost_and_cpu_time.ranks([30, 10, 20, 10]) == [4, 1.5, 3, 1.5]


@pytest.mark.parametrize(
    ("pairs", "rho"),
    [
        ([(1, 10), (2, 400), (3, 401)], 1.0),
        ([(1, 9), (2, 5), (3, 1)], -1.0),
        ([(1, 1), (2, 3), (3, 2), (4, 4)], 0.8),  # 1 - 6 * 2 / (4 * 15)
        ([(1, 1), (2, 2)], None),
        ([(1, 7), (2, 7), (3, 7)], None),
    ],
)
def test_the_rank_correlation_is_spearmans(pairs: list[tuple[float, float]], rho: float | None) -> None:
    found = cost_and_cpu_time.rank_correlation(rows(*pairs))
    assert found == (rho if rho is None else pytest.approx(rho))


def write_results(folder: Path, metric: str, figures: dict[str, float]) -> Path:
    for name, value in figures.items():
        record, trials = made_up.forwarding_record(name, 281e3)
        record.metrics = {metric: Measured(value)}
        made_up.write(folder, record, trials)
    return folder


def test_rows_that_both_testbeds_have_are_printed_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    costs = {"macvlan": 3000.0, "linux-bridge": 8000.0, "ptp": 9000.0, "docker": 1.0}
    counted = write_results(tmp_path / "counted", "cost", costs)
    times = {"macvlan": 900.0, "linux-bridge": 3100.0, "ptp": 2500.0, "routed": 2.0}
    once = write_results(tmp_path / "once", "cpu_time", times)
    again = write_results(tmp_path / "again", "cpu_time", {"macvlan": 1100})
    drawn = tmp_path / "plot.svg"
    words = ["cost_and_cpu_time.py", *map(str, (counted, once, again)), "--svg", str(drawn)]
    monkeypatch.setattr("sys.argv", words)
    assert cost_and_cpu_time.main() == 0
    said = capsys.readouterr().out
    assert "rank correlation of 3 rows: 0.500" in said
    assert "macvlan, 1 pod, 64B: 3 000 instructions, 1 000 ns" in drawn.read_text(), "the median of two runs"
    assert drawn.read_text().count("<circle") == 3


def test_too_few_rows_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [write_results(tmp_path / name, name, {"macvlan": 3000}) for name in ("cost", "cpu_time")]
    monkeypatch.setattr("sys.argv", ["cost_and_cpu_time.py", *map(str, folders)])
    with pytest.raises(SystemExit, match="fewer than 3 rows"):
        cost_and_cpu_time.main()


# --- requests to an API server ----------------------------------------------------------------------------------------

READINGS = [
    """# TYPE apiserver_request_total counter
apiserver_request_total{code="200",resource="pods",subresource="",verb="GET"} 10
apiserver_request_total{code="404",resource="pods",subresource="",verb="GET"} 1
apiserver_request_total{code="101",resource="pods",subresource="exec",verb="CONNECT"} 5
apiserver_request_total{code="200",resource="pods",subresource="",verb="WATCH"} 7
apiserver_request_total{code="200",resource="",subresource="/readyz",verb="GET"} 9
apiserver_flowcontrol_dispatched_requests_total{flow_schema="service-accounts",priority_level="workload-low"} 4
process_cpu_seconds_total 20.5
""",
    """apiserver_request_total{code="200",resource="pods",subresource="",verb="GET"} 40
apiserver_request_total{code="404",resource="pods",subresource="",verb="GET"} 3
apiserver_request_total{code="101",resource="pods",subresource="exec",verb="CONNECT"} 105
apiserver_request_total{code="200",resource="pods",subresource="",verb="WATCH"} 70
apiserver_flowcontrol_dispatched_requests_total{flow_schema="service-accounts",priority_level="workload-low"} 24
process_cpu_seconds_total 2.25e+01
""",
]


def test_requests_of_a_phase_are_those_beyond_an_idle_cluster() -> None:
    before, after = (api_calls_of_a_pair.Calls.of(text, 100.0 * at) for at, text in enumerate(READINGS))
    idle = api_calls_of_a_pair.Phase(50.0, {"GET pods": 4.0, "PUT leases": 2.0}, {"service-accounts": 1.0}, 0.25)
    found = api_calls_of_a_pair.Phase.between(before, after).beyond(idle)
    assert found.requests == {"GET pods": 32 - 8, "CONNECT pods/exec": 100, "PUT leases": -4}
    assert (found.of_podperf, found.cpu) == (20 - 2 + 100, 1.5)


def test_figures_of_all_pairs_are_those_of_one_pair_on_paper(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    for name, size in (("records/one.json", 3000), ("records/two.json", 1000), ("log.html", 6000)):
        (tmp_path / name).write_bytes(b"x" * size)
    pair = api_calls_of_a_pair.Phase(120.0, {"GET pods": 300.0}, {"service-accounts": 200.0}, 3.0)
    waiting = api_calls_of_a_pair.Phase(60.0, {"GET pods": 30.0}, {}, 0.0)
    said = api_calls_of_a_pair.on_paper(200, pair, 100.0, waiting, tmp_path)
    for words in (
        "19900 pairs, 100 at the same time",
        "takes 5.5 h",
        "300 requests a second, of which podperf's own are 200",
        "50 requests a second, if 100 pairs wait",
        "39800 records (2 of each pair), 0.08 GB; all files of the results: 0.2 GB",
    ):
        assert words in said, said


def test_pairs_of_equal_time_never_wait_in_vain_and_others_do() -> None:
    """At best all rounds follow each other: 12 nodes have 11 rounds of 6 pairs."""
    assert waiting_of_pairs.time_of_all(12, 0) == (11.0, 66)
    took, _ = waiting_of_pairs.time_of_all(12, 0.3)
    assert 11 < took < 20
