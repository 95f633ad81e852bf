"""The share of the rate that a further pod takes, its place in the record, and the plot over the chain length."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finding_rows import claims
from made_up import TOPOLOGY, write
from podperf.dataplanes import DATA_PLANES
from podperf.experiments.chain_length import ChainLengths, by_length
from podperf.experiments.claim import Claim, Finding, judge
from podperf.experiments.claims import chains, lengths
from podperf.experiments.contender import Contender, WantedPlacement
from podperf.metrics import Measured
from podperf.model import Chain, FrameSize
from podperf.records import Record, TestRecord, read_record
from podperf.report.chain_length_plot import chain_length_plot, lines_of
from podperf.report.command import write_reports
from podperf.testbed.scenarios import SCENARIOS

ROUNDS = 10
LENGTHS = (1, 2, 4, 6)
CHAINS = [Chain("macvlan", each) for each in LENGTHS]
CLAIM = lengths("macvlan", "1", "2", "4", "6", frame="64")
CLAIMS = [claim for name, claim in claims().items() if re.search(r", [12] to 6 pods$", name)]


def falling(share: float, first: float = 1e6) -> list[list[Measured]]:
    """Rates of each length in all rounds. Each further pod takes this share."""
    return [[Measured(first * (1 - share) ** (pods - 1))] * ROUNDS for pods in LENGTHS]


@given(st.floats(-0.5, 0.95), st.floats(0.1, 1e7))
def test_the_share_of_a_further_pod_is_found(share: float, first: float) -> None:
    found = by_length(CHAINS, falling(share, first))
    assert found is not None
    assert (found.low, found.estimate, found.high) == pytest.approx((share, share, share))
    assert found.rates == pytest.approx([first * (1 - share) ** (pods - 1) for pods in LENGTHS])
    backwards = by_length(CHAINS[::-1], falling(share, first)[::-1])
    assert backwards == found


@given(st.lists(st.tuples(st.floats(1, 1e9), st.floats(1, 1e9)), min_size=6, max_size=12))
def test_the_estimate_is_in_its_interval(rounds: list[tuple[float, float]]) -> None:
    rates = [[Measured(each) for each in column] for column in zip(*rounds, strict=True)]
    found = by_length([Chain("memif", 2), Chain("memif", 6)], rates)
    assert found is not None
    assert found.low - 1e-9 <= found.estimate <= found.high + 1e-9 < 1 + 1e-8


@pytest.mark.parametrize("limited", [0, 3])
def test_an_interval_is_open_where_the_tester_was_the_limit(limited: int) -> None:
    """A shortest chain that could do more loses more with each pod; a longest one that could do more loses less."""
    rates = falling(0.2)
    rates[limited] = [replace(each, lower_bound=True) for each in rates[limited]]
    found = by_length(CHAINS, rates)
    assert found is not None
    assert (math.isinf(found.high), math.isinf(found.low)) == (limited == 0, limited == 3)
    assert ("20 % to open" in found.words) == (limited == 0)
    assert ("open to 20 %" in found.words) == (limited == 3)


@pytest.mark.parametrize(
    "chains",
    [
        [Chain("macvlan", 1), Chain("ptp", 2)],
        [Chain("af-xdp", 1), Chain("af-xdp", 2, "l2fwd")],
        [Chain("sriov", 2), Chain("sriov", 4, workers=2)],
        [Chain("xdp-redirect", 0), Chain("xdp-redirect", 1)],
        [Chain("macvlan", 2), Chain("macvlan", 2)],
        [Chain("macvlan", 2)],
    ],
)
def test_chains_that_differ_in_more_than_their_length_have_no_share(chains: list[Chain]) -> None:
    assert by_length(chains, [[Measured(1e5)] * ROUNDS for _ in chains]) is None


def test_a_finding_says_what_a_further_pod_takes() -> None:
    found = judge(CLAIM, falling(0.2))
    assert found.verdict == "confirmed"
    assert "from 1 to 6 pods, each further pod takes 20 % of the rate (95 % interval 20 % to 20 %)" in found.detail
    assert found.chain_lengths is not None and found.chain_lengths.pods == LENGTHS
    assert judge(CLAIM, falling(0.0)).verdict == "inconclusive"
    assert judge(CLAIM, falling(-0.2)).verdict == "refuted"
    assert judge(chains("macvlan", "linux-bridge", "1", "64"), falling(0.2)[:2]).chain_lengths is None


def test_frames_and_placements_must_be_the_same() -> None:
    frames = [FrameSize.parse(64), FrameSize.parse(1518)]
    small, large = (Contender(str(chain), chain, frame=frame) for chain, frame in zip(CHAINS, frames, strict=False))
    placed = replace(large, frame=small.frame, placement=WantedPlacement(SCENARIOS["S2"]))
    for other in (large, placed):
        order = Claim("made-up", "x", (small, other))
        assert judge(order, falling(0.2)[:2]).chain_lengths is None


def test_a_claim_has_all_lengths_that_its_data_plane_can_have() -> None:
    assert len(CLAIMS) > 20
    for claim in CLAIMS:
        chains_of_it = [contender.chain for contender in claim.contenders]
        least = DATA_PLANES[chains_of_it[0].data_plane].least_pods
        assert [each.pods for each in chains_of_it] == [length for length in LENGTHS if length >= least]


# --- the record and the report ----------------------------------------------------------------------------------------


def written(folder: Path, *findings: Finding) -> Record:
    """The record of a test of section 4.2.4 with these findings."""
    record = TestRecord("x", "1 to 6 pods", "s", ["sec-4.2.4"], 1, 2, "passed", topology=TOPOLOGY, findings=findings)
    return read_record(write(folder, record))


def test_the_record_has_the_rates_by_length(tmp_path: Path) -> None:
    rates = falling(0.2)
    rates[0] = [replace(each, lower_bound=True) for each in rates[0]]
    finding = judge(CLAIM, rates)
    (found,) = written(tmp_path, finding).document["findings"]
    assert found["chain_lengths"]["pods"] == [1, 2, 4, 6]
    assert found["chain_lengths"]["rates"] == pytest.approx([rate[0].value for rate in rates])
    assert found["chain_lengths"]["low"] == pytest.approx(0.2)
    assert found["chain_lengths"]["high"] is None
    (line,) = lines_of([written(tmp_path, finding)])
    assert line.words == "each further pod takes 20 % (20 % to open)"


def test_the_plot_has_a_line_for_each_data_plane(tmp_path: Path) -> None:
    several = [
        judge(lengths(name, "1", "2", "4", "6", frame="64"), falling(0.1, rate))
        for name, rate in (("ptp", 5e5), ("ipip", 4e5))
    ]
    shorter = lengths("ptp", "1", "2", frame="64")
    several.append(judge(shorter, falling(0.3)[:2]))
    drawn = chain_length_plot([written(tmp_path, *several)])
    assert re.findall(r"<title>(\S+), (\d) pods?: ", drawn) == [
        (name, str(pods)) for name in ("ptp", "ipip") for pods in LENGTHS
    ]
    assert "ptp, 6 pods: 295 kpps; each further pod takes 10 % (10 % to 10 %)" in drawn
    assert "kernel-space" in drawn and "ebpf" not in drawn


def test_names_beside_the_lines_do_not_touch(tmp_path: Path) -> None:
    alike = [judge(each, falling(0.2)[-len(each.contenders) :]) for each in CLAIMS]
    drawn = chain_length_plot([written(tmp_path, *alike)])
    heights = sorted(float(each) for each in re.findall(r"<text x='544\.0' y='([\d.]+)'", drawn))
    assert len(heights) == len(alike)
    assert all(below - above >= 13.9 for above, below in pairwise(heights))
    total = float(re.findall(r"viewBox='0 0 720 (\d+)'", drawn)[0])
    assert heights[0] > 20 and heights[-1] < total - 40


@pytest.mark.parametrize("found", [None, ChainLengths("ptp", (1, 2, 4), (1e5, 5e4), 0.1, 0.2, 0.3)])
def test_without_a_rate_for_each_length_there_is_no_plot(found: ChainLengths | None, tmp_path: Path) -> None:
    assert chain_length_plot([written(tmp_path, Finding("x", "confirmed", "so", None, found))]) == ""


def test_a_data_plane_of_another_package_is_drawn(tmp_path: Path) -> None:
    theirs = ChainLengths("acme <switch>", (1, 2), (1e5, 5e4), 0.4, 0.5, 0.6)
    drawn = chain_length_plot([written(tmp_path, Finding("x", "confirmed", "so", None, theirs))])
    assert "acme &lt;switch&gt;" in drawn and ">other<" in drawn


def test_the_page_has_the_plot_in_the_section(tmp_path: Path) -> None:
    written(tmp_path, judge(CLAIM, falling(0.2)))
    page = write_reports(tmp_path).read_text()
    section = page[page.index("4.2.4 Service Function Chaining") :]
    assert section.index("rate of each data plane by the number of pods") < section.index("<table")
