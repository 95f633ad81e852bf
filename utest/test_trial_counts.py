"""Frames that arrived in another way than they were sent: they are shown, and too many of them fail a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import made_up
from podperf.metrics import Measured
from podperf.model import (
    BOTH_DIRECTIONS,
    IMIX,
    AddressedTraffic,
    Direction,
    DirectionResult,
    TrafficProfile,
    Trial,
    TrialResult,
)
from podperf.records import Counts, Record, RecordedTrial, badly_delivered, counts_by_phase, trials_of
from podperf.records.json_values import trial_to_json
from podperf.report.conformance import assess, to_json
from podperf.report.page import page
from podperf.report.results import RunResults
from podperf.report.summary import summary_table
from podperf.testers.base import UNPACED, TesterLimits
from podperf.testers.faults import Fault, FaultKind
from podperf.thresholds import Status, judge
from podperf.topology import Threshold

LEFT, RIGHT = BOTH_DIRECTIONS
PDR = 0.005


def trial(phase: str = "ndrpdr", load: float = 1e5, invalid: str | None = None, **counts: int) -> RecordedTrial:
    """A trial that lost nothing but the corrupted frames. Counts for the other direction begin with `back_`."""
    stray = counts.pop("stray", 0)
    back = {name.removeprefix("back_"): counts.pop(name) for name in list(counts) if name.startswith("back_")}
    ways = [way(LEFT, **counts), *([way(RIGHT, **back)] if back else [])]
    traffic = AddressedTraffic(TrafficProfile(IMIX, BOTH_DIRECTIONS[: len(ways)]))
    result = TrialResult(Trial(traffic, load, 1.0), 0.0, tuple(ways), stray=stray, invalid=invalid)
    (found,) = trials_of([trial_to_json(result, phase)])
    return found


def way(direction: Direction, sent: int = 1000, **counts: int) -> DirectionResult:
    found = {"duplicated": 0, "reordered": 0, "corrupted": 0, **counts}
    return DirectionResult(direction, sent, sent, sent - found["corrupted"], duration=1.0, **found)


@pytest.mark.parametrize(
    ("counts", "flows", "bad"),
    [
        ({"corrupted": 5}, 1, False),
        ({"corrupted": 6}, 1, True),
        ({"duplicated": 5}, 1, False),
        ({"duplicated": 6}, 1, True),
        ({"corrupted": 3, "duplicated": 3}, 1, True),
        ({"reordered": 6}, 1, True),
        ({"reordered": 500}, 2, False),  # of different flows, or of one: the tester does not tell
        ({"late": 500}, 1, False),  # the tester's own
        ({"stray": 500}, 1, False),  # of another sender
        ({"back_corrupted": 6}, 2, True),  # the other direction has none: 3 of 1000 together
    ],
)
def test_frames_that_arrive_in_another_way_than_they_were_sent_have_the_bound_of_the_loosest_goal(
    counts: dict[str, int], flows: int, bad: bool
) -> None:
    assert bool(badly_delivered([trial(**counts)], flows, PDR)) is bad


def test_a_phase_is_not_hidden_behind_others() -> None:
    """A search has many more trials than the latency."""
    trials = [trial()] * 100 + [trial("latency", corrupted=8)]
    assert badly_delivered(trials, 1, PDR) == (
        "latency, left-to-right: 8 of 1 000 frames arrived corrupted (0.8 %); the goals of the search allow 0.5 %"
    )


def test_an_invalid_trial_counts_nothing() -> None:
    assert not counts_by_phase([trial(corrupted=9, invalid="repeated")])
    assert badly_delivered([], 1, PDR) == "" == badly_delivered([trial(sent=0)], 1, PDR)


def test_counts_of_a_phase_are_summed_by_direction() -> None:
    trials = [trial(corrupted=2, late=4, stray=7), trial("ndrpdr", UNPACED, reordered=1, back_duplicated=3)]
    assert counts_by_phase(trials) == {
        ("ndrpdr", LEFT): Counts(2000, 1998, corrupted=2, reordered=1, late=4, paced=1000),
        ("ndrpdr", RIGHT): Counts(1000, 1000, duplicated=3),
        ("ndrpdr", ""): Counts(stray=7),
    }


@pytest.mark.parametrize(
    "thresholds", [(), (Threshold("mrr", "Mpps", minimum=0.01),), (Threshold("mrr", "Mpps", minimum=9),)]
)
def test_a_test_fails_by_its_frames_whatever_its_figures_are(thresholds: tuple[Threshold, ...]) -> None:
    metrics = {"mrr": Measured(1e6)}
    verdict = judge(thresholds, IMIX, metrics, None, badly_delivered="8.33 % corrupted")
    assert verdict.status is Status.FAILED and verdict.failed
    assert verdict.sentence.startswith("8.33 % corrupted")
    assert ("Mpps was asked for" in verdict.sentence) == any(threshold.minimum == 9 for threshold in thresholds)
    assert not judge(thresholds[:1], IMIX, {"mrr": Measured(1e7)}, None).failed


def test_a_tester_that_corrupts_frames_itself_leaves_the_chain_without_blame() -> None:
    faults = {kind: TesterLimits(1e6, 0.0, "", faults=(Fault(kind, 0.1, "broken"),)) for kind in FaultKind}
    assert {kind for kind, limits in faults.items() if limits.delivers_badly} == {
        FaultKind.CORRUPTS,
        FaultKind.SENDS_TWICE,
    }


@pytest.fixture
def imix(tmp_path: Path) -> RunResults:
    """A test whose frames arrive in every other way, too."""
    record, _ = made_up.forwarding_record("macvlan", 816e3, frame="IMIX")
    traffic = AddressedTraffic(TrafficProfile(IMIX))
    counts = way(LEFT, 174_913, corrupted=14_576, duplicated=3, reordered=2, late=1749)
    result = TrialResult(Trial(traffic, 1e5, 1.0), 1.7951e9, (counts,), stray=14_576)
    document = made_up.document(record, [(result, "ndrpdr")], tmp_path)
    return RunResults(tmp_path, (Record.of(document),))


KINDS = (
    "14 576 of 174 916 frames arrived corrupted (8.33 %)",
    "3 of 174 916 frames arrived a second time (0.00172 %)",
    "2 of 174 916 frames arrived after a later one (0.00114 %)",
    "stray frames: 14 576, of another sender",
    "1 % of the frames left the tester more than 1 ms late",
)


def test_all_that_was_counted_is_in_the_table_and_in_the_report(imix: RunResults) -> None:
    said = " ".join(summary_table(imix.records).split())
    conformance = assess([imix], imix.directory)
    shown = page(conformance)
    assert all(kind in shown and kind in said for kind in KINDS)
    cells = " ".join(re.sub("<[^>]*>", " ", shown).split())
    assert "Frames of valid trials direction sent received corrupted duplicated reordered late stray" in cells
    assert "NDR and PDR left-to-right 174 913 160 337 14 576 3 2 1 749 0" in cells
    assert "NDR and PDR - 0 0 0 0 0 0 14 576" in cells
    (section,) = (each for each in to_json(conformance)["sections"] if each["number"] == "4.1.1")
    assert section["tests"][0]["counted"]["corrupted"] == 14_576


def test_rows_with_late_frames_share_one_note(tmp_path: Path) -> None:
    records = []
    for number, (data_plane, late) in enumerate((("macvlan", 20), ("ptp", 300), ("docker", 0))):
        record, _ = made_up.forwarding_record(data_plane, 3e5)
        result = TrialResult(Trial(record.traffic, 1e3, 1.0), 0.0, (way(LEFT, late=late),))  # type: ignore[arg-type]
        records.append(Record.of(made_up.document(record, [(result, "ndrpdr")], tmp_path / str(number))))
    note = summary_table(records, width=120).split("\n\n")[1]
    assert note.splitlines() == [
        "Macvlan, 64 B; Ptp, 64 B",
        "    2 to 30 % of the frames left the tester more than 1 ms late",
    ]
