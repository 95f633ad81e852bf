"""Changes under load, on real frames: an outage of known length is measured as that long, and no change as none."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from attempts import first
from chains import local_testbed, need
from podperf.dataplanes.host_routing import WITHDRAWN
from podperf.methods.reconfiguration import Outage
from podperf.methods.trials import ChangedTrial, ValidTrials
from podperf.model import BOTH_DIRECTIONS, NOTHING, Chain, ChangeUnderLoad, FrameSize, TrafficProfile
from podperf.records import schema_errors
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testers.base import TesterLimits
from robot_run import SETTINGS, Robot

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces"),
    pytest.mark.usefixtures("machine_as_before"),
]

LOAD, DURATION = 5000.0, 1.0  # frames/s and direction, seconds
OFFERED = [
    (name, change)
    for name, changes in {
        "linux-bridge": ("pod-added", "macs-forgotten"),
        "routed": ("route-withdrawn", "pod-added"),
        "routed-policy": ("policies-added", "route-withdrawn", "pod-added"),
        "service": ("endpoint-added",),
    }.items()
    for change in changes
]


def during(sut: SystemUnderTest, change: ChangeUnderLoad) -> ChangedTrial:
    """A trial in both directions with this change in its middle."""
    traffic = addressed(TrafficProfile(FrameSize.parse(64), BOTH_DIRECTIONS), sut)
    sut.probe(traffic)
    limits = TesterLimits(1e6, 0.0, "not asked")
    return ValidTrials(sut.tester, traffic, limits).during(change.make, LOAD, DURATION)


def test_a_route_that_is_withdrawn_costs_the_frames_of_that_time() -> None:
    with local_testbed().build(Chain("routed", 1), FrameSize.parse(64)) as sut:

        def measure() -> ChangedTrial:
            trial = during(sut, sut.changes["route-withdrawn"])
            there, back = trial.result.directions
            assert there.lost > back.lost, "only one way has no route"
            assert trial.seconds >= WITHDRAWN
            return trial

        first(as_long_as_the_change, measure)


def as_long_as_the_change(trial: ChangedTrial) -> bool:
    """Whether the outage is as long as the route was away.

    A late CPU of the worker makes an outage longer. A tester that had no CPU sends frames behind the outage that were
    due in it.
    """
    found, least = Outage.of(trial), 0.99 * WITHDRAWN
    assert found.restored is not None
    # Beside the pause, the change has only the commands that take the route away and give it back.
    longest = found.change_seconds + 0.02
    return found.ended and least <= min(found.blocked, found.restored) <= max(found.blocked, found.restored) <= longest


def test_without_a_change_nothing_is_lost() -> None:
    with local_testbed().build(Chain("routed", 1), FrameSize.parse(64)) as sut:
        found = first(lambda each: not each.lost, lambda: Outage.of(during(sut, NOTHING)))
    assert (found.blocked, found.restored, found.ended) == (0.0, 0.0, True)


@pytest.mark.parametrize(("name", "change"), OFFERED)
def test_frames_cross_again_after_each_change_and_after_its_undo(name: str, change: str) -> None:
    need(name)
    with local_testbed().build(Chain(name, 1), FrameSize.parse(64)) as sut:
        assert change in sut.changes
        for _ in range(2):  # the undo has left nothing that stands in the way
            found = first(lambda each: each.ended, lambda: Outage.of(during(sut, sut.changes[change])))
            assert found.restored is not None


def test_all_changes_are_tried_here() -> None:
    for name in {name for name, _ in OFFERED}:
        need(name)
        with local_testbed().build(Chain(name, 1), FrameSize.parse(64)) as sut:
            assert set(sut.changes) == {change for each, change in OFFERED if each == name}


def test_policies_are_in_force_while_frames_cross_and_gone_afterwards() -> None:
    need("routed-policy")
    with local_testbed().build(Chain("routed-policy", 1), FrameSize.parse(64)) as sut, ExitStack() as undo:
        site = sut.parts[0].site
        assert site is not None

        def chains() -> int:
            return site.worker.host.ask("nft", "list", "table", "ip", "podperf-policy").stdout.count("chain other")

        sut.changes["policies-added"].make(undo)
        assert chains() == 100
        undo.close()
        assert chains() == 0


def test_a_row_has_both_trials_of_each_pair_and_a_chain_without_a_change_is_skipped(tmp_path: Path) -> None:
    suite = tmp_path / "reconfiguration.robot"
    suite.write_text(
        SETTINGS.replace("networking_model", "methods")
        + """
*** Test Cases ***
Route
    [Tags]    sec-4.2
    Chain Should Be Measured By    Measure Reconfiguration    routed    change=route-withdrawn    pairs=2

None
    [Tags]    sec-4.2
    Chain Should Be Measured By    Measure Reconfiguration    macvlan
"""
    )
    run = Robot(tmp_path / "run", str(suite), short_search=True)
    assert run.wait() == 0, run.said()
    assert "macvlan, 1 pod does not offer a change while frames cross" in run.messages()
    record = next(each for each in run.records() if each["test"]["name"] == "Route")
    assert not schema_errors(record)
    found = record["methods"]["reconfiguration"]
    assert [sorted(pair) for pair in found["pairs"]] == [["changed", "without"]] * 2
    # Less than WITHDRAWN, if the tester was late: see as_long_as_the_change.
    assert all(pair["changed"]["restored"] >= 0.5 * WITHDRAWN for pair in found["pairs"])
    valid = [each for each in record["trials"] if each["phase"] == "reconfiguration" and not each["invalid"]]
    assert len(valid) == 4
