"""Chains beside each other: their plan, the rate of each, their fairness, the record and the chart."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_up import TOPOLOGY, write
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import RunningDataPlane
from podperf.dataplanes.segments import network_of_segment, parallel_chains
from podperf.errors import PodperfError, Unavailable
from podperf.experiments.claim import Finding, judge
from podperf.experiments.claims import LAYOUTS, layout, service_density
from podperf.experiments.service_density import Layout, fairness_of
from podperf.metrics import Measured
from podperf.model import Chain, Direction, TrafficProfile, Trial, TrialResult
from podperf.preflight.plan import plan
from podperf.records import TestRecord, read_record, schema_errors
from podperf.report.command import write_reports
from podperf.report.section_pictures import density_charts
from podperf.testbed.system_under_test import PartOfChain, SystemUnderTest, addressed
from podperf.testers.base import Ability, PortFacts, Tester, TesterFacts
from traffic import SMALL, counted, traffic_of

ROUNDS = 10
CLAIM = service_density("linux-bridge")
CHAINS = [layout("linux-bridge", name) for name in LAYOUTS]
RATES = st.floats(1e-3, 1e9)


def even(total: float = 9e5) -> list[list[list[float]]]:
    """The rates of each layout in all rounds, all chains alike."""
    return [[[total / chains.chains] * chains.chains] * ROUNDS for chains in CHAINS]


NO_LIMIT = [False] * len(LAYOUTS)


def judge_density(rounds: list[list[list[float]]], limited: list[bool], doubt: str = "") -> Finding:
    """The finding, where the tester was the limit with some of the layouts."""
    both = zip(rounds, limited, strict=True)
    totals = [[Measured(sum(each), lower_bound=limit) for each in found] for found, limit in both]
    return judge(CLAIM, totals, by_chain=rounds, doubt=doubt)


# --- figures ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=16))
def test_jains_index_is_between_one_chain_having_all_and_all_having_the_same(rates: list[float]) -> None:
    assert 1 / len(rates) - 1e-9 <= fairness_of(rates) <= 1 + 1e-9


@given(st.integers(1, 16), st.integers(0, 15), RATES)
def test_jains_index_is_the_share_of_the_chains_that_forward(chains: int, dead: int, rate: float) -> None:
    dead = min(dead, chains - 1)
    assert fairness_of([rate] * (chains - dead) + [0.0] * dead) == pytest.approx((chains - dead) / chains)


@given(st.lists(RATES, min_size=2, max_size=8), RATES)
def test_jains_index_does_not_depend_on_unit_and_order(rates: list[float], factor: float) -> None:
    found = fairness_of(rates)
    assert fairness_of([rate * factor for rate in reversed(rates)]) == pytest.approx(found)


@given(st.lists(st.tuples(RATES, RATES, RATES), min_size=6, max_size=12))
def test_the_rates_of_a_layout_fit_each_other(rounds: list[tuple[float, float, float]]) -> None:
    found = Layout.of(Chain("macvlan", 2, chains=3), rounds, limited=False)
    assert (found.chains, found.pods, len(found.rates)) == (3, 2, 3)
    assert found.low - 1e-9 <= found.slowest <= found.high + 1e-9
    assert min(map(sum, rounds)) <= found.total <= max(map(sum, rounds))


def test_a_trial_has_the_rate_of_each_group_in_its_slower_direction() -> None:
    traffic = traffic_of(64, tuple(Direction), 2, further_entries=({},))
    ways = [
        counted(100, sum(counts), direction=way, duration=0.5, received_by_group=counts)
        for way, counts in zip(Direction, ((30, 50), (10, 0)), strict=True)
    ]
    result = TrialResult(Trial(traffic, 200.0, 0.5), 0.0, tuple(ways))
    assert result.rates_by_group == (20.0, 0.0)


# --- the verdict ------------------------------------------------------------------------------------------------------


def test_chains_with_the_same_rate_confirm_the_claim() -> None:
    found = judge_density(even(), NO_LIMIT)
    assert found.verdict == "confirmed"
    assert "4x1: Jain's index 1, the slowest chain has 100 % of the fastest one's rate" in found.detail
    assert "1x1" not in found.detail and "10 interleaved rounds of 64B frames" in found.detail
    assert found.service_density is not None
    assert [each.name for each in found.service_density.layouts] == ["1x1", "2x1", "1x2", "2x2", "4x1"]
    assert [each.total for each in found.service_density.layouts] == pytest.approx([9e5] * 5)


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.97, "confirmed"), (0.9, "refuted"), (0.0, "refuted"), (1 / 1.05, "inconclusive")]
)
def test_a_slower_chain_decides(share: float, verdict: str) -> None:
    rates = even()
    spread = (0.99, 1.01) if share == 1 / 1.05 else (1.0, 1.0)
    rates[-1] = [[225e3, 225e3, 225e3, 225e3 * share * spread[number % 2]] for number in range(ROUNDS)]
    found = judge_density(rates, NO_LIMIT)
    assert found.verdict == verdict, found.detail
    assert found.service_density is not None
    assert found.service_density.layouts[-1].slowest == pytest.approx(share, rel=0.02)


def test_where_the_tester_is_the_limit_no_chain_had_to_lose_frames() -> None:
    found = judge_density(even(), [False, True, False, False, False])
    assert found.verdict == "inconclusive"
    assert "the tester was the limit with 2x1, so that no chain had to lose frames" in found.detail


def test_a_chain_that_stops_in_one_round_leaves_it_open() -> None:
    rates = even()
    rates[1] = [[500e3, 0.0 if number == 3 else 500e3] for number in range(ROUNDS)]
    assert judge_density(rates, NO_LIMIT).verdict == "inconclusive"


def test_a_doubt_about_the_tester_is_told_first() -> None:
    found = judge_density(even(), NO_LIMIT, doubt="its clock is slow")
    assert found.verdict == "inconclusive" and found.detail.startswith("its clock is slow; ")


# --- the chains -------------------------------------------------------------------------------------------------------

BESIDE = [name for name, kind in DATA_PLANES.items() if kind.several_chains]


def test_a_chain_names_those_beside_it() -> None:
    assert str(Chain("macvlan", 1, chains=2)) == "macvlan, 2 chains of 1 pod"
    assert Chain("macvlan", 2, chains=3).all_pods == 6
    with pytest.raises(ValueError, match="1 to 16 chains stand beside each other, not 17"):
        Chain("macvlan", 1, chains=17)


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("words", [*LAYOUTS, "2x2-common", "3x3-common"])
def test_each_layout_has_a_plan(name: str, words: str) -> None:
    chain = layout(name, words)
    if chain.common_pod and name == "ovs-dpdk":
        with pytest.raises(PodperfError, match="ovs-dpdk has no pod that belongs to several chains"):
            plan(TOPOLOGY, chain, SMALL)
        return
    shown = "\n".join(map(str, plan(TOPOLOGY, chain, SMALL).steps))
    assert {f"pod{number}" for number in range(1, chain.all_pods + 1)} == set(re.findall(r"\bpod\d\b", shown))


@given(st.integers(1, 16), st.integers(1, 8), st.booleans())
def test_segments_of_chains_meet_only_at_the_ports(chains: int, pods: int, common: bool) -> None:
    common = common and chains > 1 and pods > 1
    chain = Chain("macvlan", pods, chains=chains, common_pod=common)
    lines = parallel_chains(chain)
    assert sum(line.own_pods for line in lines) + common == chain.all_pods
    segments = [segment for line in lines for segment in line.segments]
    assert segments == list(range(chains * (pods + 1)))
    networks = [[network_of_segment(chain, segment) for segment in line.segments] for line in lines]
    assert {(each[0], each[-1]) for each in networks} == {(0, pods)}
    inner = [network for each in networks for network in each[1:-1]]
    assert len(set(inner) | {0, pods}) == chains * (pods - 1) + 2
    assert len({line.into_common for line in lines} | {"net2"}) == chains + 1


def test_frames_to_a_common_pod_find_their_chain_by_the_address() -> None:
    shown = "\n".join(str(step) for step in plan(TOPOLOGY, layout("macvlan", "2x2-common"), SMALL).steps)
    assert re.findall(r"route replace (198\.18\.0\.\d/32) via (\S+) dev (\S+)", shown) == [
        ("198.18.0.1/32", "10.254.1.1", "net1"),
        ("198.18.0.2/32", "10.254.4.1", "net3"),
    ]


@pytest.mark.parametrize("words", ["2x", "0x1", "2x2common", "1x1-common", "17x1", "2x2-common-common"])
def test_a_word_that_is_no_layout_is_named(words: str) -> None:
    with pytest.raises(PodperfError, match=re.escape(words)):
        layout("macvlan", words)


def test_a_data_plane_without_several_chains_is_named() -> None:
    with pytest.raises(PodperfError, match="ptp has no several chains beside each other"):
        plan(TOPOLOGY, Chain("ptp", 1, chains=2), SMALL)


def system(abilities: frozenset[Ability], chains: int) -> SystemUnderTest:
    """Chains beside each other, and a tester with these abilities."""
    tester = SimpleNamespace(
        facts=TesterFacts(
            "t",
            "1",
            "xdp",
            PortFacts("02:00:00:00:00:01"),
            PortFacts("02:00:00:00:00:02"),
            copies=False,
            abilities=abilities,
        )
    )
    running = RunningDataPlane({}, {}, dict, further_entries=({},) * (chains - 1))
    return SystemUnderTest(Chain("macvlan", 1, chains=chains), cast(Tester, tester), [PartOfChain(running)], {})


def test_each_chain_gets_the_flows_of_the_test() -> None:
    traffic = traffic_of(64, flows=10)
    beside = addressed(traffic.profile, system(frozenset(Ability), 3))
    assert (beside.groups, beside.flows) == (3, 30)
    alone = addressed(traffic.profile, system(frozenset(), 1))
    assert (alone.groups, alone.flows) == (1, 10)


def test_a_tester_that_cannot_tell_chains_apart_is_named() -> None:
    with pytest.raises(Unavailable, match="a tester that sends to several chains beside each other, and counts"):
        addressed(TrafficProfile(SMALL), system(frozenset(), 2))


# --- the record and the report ----------------------------------------------------------------------------------------


def written(folder: Path, *findings: Finding) -> Path:
    """The record of a test of section 4.2.4 with these findings."""
    record = TestRecord("x", "beside", "s", ["sec-4.2.4"], 1, 2, "passed", topology=TOPOLOGY, findings=findings)
    return write(folder, record)


def test_the_record_has_each_chain(tmp_path: Path) -> None:
    path = written(tmp_path, judge_density(even(), NO_LIMIT))
    assert schema_errors(json.loads(path.read_text())) == []
    (found,) = read_record(path).document["findings"]
    layouts = found["service_density"]["layouts"]
    assert [f"{each['chains']}x{each['pods']}" for each in layouts] == list(LAYOUTS)
    assert not any(each["common_pod"] for each in layouts)
    assert layouts[-1]["rates"] == [225e3] * 4


def test_the_chart_has_a_part_for_each_chain(tmp_path: Path) -> None:
    found = judge_density(even(), [True, False, False, False, False])
    (drawn,) = density_charts([read_record(written(tmp_path, found))])
    parts = re.findall(r"<title>(\dx\d), chain (\d): (\S+) kpps</title>", drawn)
    assert [(name, number) for name, number, _ in parts] == [
        (name, str(number)) for name in LAYOUTS for number in range(1, int(name[0]) + 1)
    ]
    assert parts[-1][2] == "225"
    assert "slowest 100 % of fastest" in drawn
    assert [*density_charts([])] == []


def test_the_page_has_the_chart_in_the_section(tmp_path: Path) -> None:
    written(tmp_path, judge_density(even(), NO_LIMIT))
    page = write_reports(tmp_path).read_text()
    section = page[page.index("4.2.4 Service Function Chaining") :]
    assert section.index("linux-bridge: rate of chains beside each other") < section.index("<table")


def test_a_record_of_an_older_version_has_no_chart(tmp_path: Path) -> None:
    path = written(tmp_path, Finding("x", "confirmed", "so"))
    data = json.loads(path.read_text())
    del data["findings"][0]["service_density"]
    path.write_text(json.dumps(data))
    assert [*density_charts([read_record(path)])] == []
