"""The counted machine, booted for real: figures repeat, and a single rule of a firewall shows, with its function."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from counted_lab import ONLY_IF_ASKED, TOPOLOGY, CountedLab, demand
from counted_lab import booted as booted_lab
from podperf.counted_machine import boot
from podperf.counted_machine.bridges import probed
from podperf.counted_machine.plugin import Plugin
from podperf.counted_machine.profile import ChainProfiler
from podperf.counted_machine.snapshot import PREFIX as PREFIX_OF_SNAPSHOTS
from podperf.hosts.namespaces import PREFIX, NetworkNamespace
from podperf.methods.cost import CHANCE, Builds, Cost, StandingChain
from podperf.methods.functions import MEMORY, USER_SPACE, Profile, differences, rest
from podperf.model import AddressedTraffic, Chain, FrameSize, Loop, TrafficProfile, Trial, TrialResult
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testers.base import UNPACED
from podperf.virtual_worker.image import CACHE
from robot_run import ROOT, Robot

BETWEEN_BOOTS = 0.01 / 100
LINES_BETWEEN_BUILDS = 6  # a frame: a small object of the kernel is in one line or in two
RUN_TIMEOUT = 900  # with an image to build
TRAFFIC = TrafficProfile(FrameSize.parse("64"))
FIREWALL = "table ip t {{\nchain f {{\ntype filter hook forward priority 0; policy accept;\n{}\n}}\n}}\n"

pytestmark = [*ONLY_IF_ASKED]


@pytest.fixture(autouse=True, scope="module")
def needs_qemu() -> None:
    demand()


def begun(folder: Path) -> Robot:
    """A run of four rows."""
    folder.mkdir()
    rows = ("wire", "macvlan", "linux-bridge", "tc-redirect-peer")
    chosen = [word for row in rows for word in ("--include", f"{row} AND 64B AND quick NOT sec-5")]
    return Robot(folder, *chosen, str(ROOT / "tests"), topology=TOPOLOGY.read_text())


def records(run: Robot) -> list[dict[str, Any]]:
    """The records of a run, once it has ended."""
    assert run.wait(RUN_TIMEOUT) == 0, run.output.read_text()
    return run.records()


def figures(found: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The figures of a run, by the test's name."""
    return {
        each["test"]["name"]: [figure["instructions_per_frame"] for figure in each["results"].values()]
        for each in found
    }


def memory(found: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, float]]]:
    """The use of memory of each figure of a run, by the test's name."""
    return {
        each["test"]["name"]: [
            {what: used["per_frame"] for what, used in burst["memory"].items()}
            for burst in each["methods"]["cost"]["bursts"]
        ]
        for each in found
    }


def test_a_machine_that_boots_and_two_at_once_from_its_snapshot_give_the_same_figures(tmp_path: Path) -> None:
    for snapshot in CACHE.glob(f"{PREFIX_OF_SNAPSHOTS}*"):
        shutil.rmtree(snapshot)
    booted = records(begun(tmp_path / "booted"))
    at_once = [begun(tmp_path / name) for name in ("one", "other")]
    runs = booted, *map(records, at_once)
    starts = [{each["environment"]["counted_machine"]["start"] for each in run} for run in runs]
    assert starts == [{"booted"}, {"restored"}, {"restored"}]
    phases = [{trial["phase"] for each in run for trial in each["trials"]} for run in runs]
    assert ["bare-path" in phase for phase in phases] == [True, False, False], "it is kept beside the snapshot"
    one, *others = map(figures, runs)
    assert len(one) == 4 and all(len(each) == 2 for each in one.values())
    for name, found in one.items():
        for other in others:
            assert other[name] == pytest.approx(found, rel=BETWEEN_BOOTS), name
    used, *of_others = map(memory, runs)
    for name, bursts in used.items():
        for number, burst in enumerate(bursts):
            assert list(burst) == list(MEMORY)
            for other_used in of_others:
                for what, amount in other_used[name][number].items():
                    apart = LINES_BETWEEN_BUILDS if what in {"lines", "misses"} else 0
                    assert amount == pytest.approx(burst[what], rel=BETWEEN_BOOTS, abs=apart), (name, what)
    for burst in (burst for run in runs for record in run for burst in record["methods"]["cost"]["bursts"]):
        assert burst["functions_missing"] is None, "Debian's QEMU takes the plug-in"
        assert abs(burst["in_no_function"]) < 1, "the sum of the functions is the figure"
        least = min(burst["builds"])
        assert sum(build <= least + CHANCE for build in burst["builds"]) > 1, "one build alone may be a chance"
    (tc,) = (each for each in booted if "tc-redirect-peer" in each["test"]["tags"])
    assert "ip_forward" in tc["methods"]["cost"]["bursts"][0]["functions"], "the pod forwards"


@dataclass(frozen=True)
class Chained:
    """A chain that stands on a counted machine."""

    sut: SystemUnderTest
    traffic: AddressedTraffic
    profiler: ChainProfiler

    def loop(self, loop: Loop) -> TrialResult:
        result = self.sut.tester.measure(Trial(self.traffic, UNPACED, 10.0, loop))
        assert result.invalid is None
        return result

    def profile(self, windows: Sequence[int]) -> Profile:
        return self.profiler.profile(windows)


def cost(machine: CountedLab, standing: Callable[[], AbstractContextManager[SystemUnderTest]]) -> Builds:
    """The builds of a chain with one frame in flight."""

    @contextmanager
    def build() -> Iterator[StandingChain]:
        with standing() as sut:
            yield Chained(sut, probed(sut, TRAFFIC), ChainProfiler(machine.profiler))

    found, _ = Cost().run(build)
    return found[1]


def with_rules(machine: CountedLab, rules: int) -> Builds:
    """A pod whose firewall has so many rules, none of which is about the frames."""
    drops = "\n".join(f"ip saddr 203.0.113.{number} drop" for number in range(1, rules + 1))

    @contextmanager
    def standing() -> Iterator[SystemUnderTest]:
        with machine.testbed.build(Chain("macvlan", 1), TRAFFIC.frame) as sut:
            pod = NetworkNamespace(f"{PREFIX}pod1", machine.inside)
            pod.do("nft", "-f", "-", stdin=FIREWALL.format(drops))
            yield sut

    return cost(machine, standing)


def test_the_bare_path_costs_the_same_with_the_plugin_as_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def bare_path() -> Builds:
        with booted_lab() as up:
            return cost(up, partial(up.testbed.bare_path, TRAFFIC.frame))

    with_it = bare_path()
    monkeypatch.setattr(boot, "plugin_for", lambda *_, **__: Plugin(missing="not wanted here"))
    without_it = bare_path()
    assert with_it.figures == without_it.figures
    assert abs(rest(with_it.least, with_it.profile.functions.values())) < 0.1
    assert "send_frames [bpf]" in with_it.profile.functions, "the tester's own programs are among them"
    assert not without_it.profile.functions and without_it.functions_missing == "not wanted here"


def test_the_detail_has_every_instruction_in_its_stack_of_calls_and_in_its_listing(tmp_path: Path) -> None:
    file = tmp_path / "detail.yaml"
    file.write_text("{version: 1, name: detail, workers: [{connection: counted, counted: {detail: true}}]}")
    with booted_lab(file) as up:
        found = cost(up, partial(up.testbed.build, Chain("macvlan", 1), TRAFFIC.frame)).profile
    by_stack, by_instruction = defaultdict[str, float](float), defaultdict[str, float](float)
    for stack, amount in found.stacks.items():
        by_stack[stack.rpartition(";")[2]] += amount
    for function, lines in found.listings.items():
        by_instruction[function] += sum(times for *_, times in lines)
    assert by_stack == found.functions, "a window has a power of two of frames, so sums are exact"
    assert by_instruction == {name: each for name, each in found.functions.items() if name != USER_SPACE}
    words = {said.split()[0] for _, said, _ in found.listings["ip_forward"]}
    assert "call" in words or "callq" in words, "QEMU has disassembled it"
    (sender,) = (stack for stack in found.stacks if stack.endswith("send_frames [bpf]"))
    assert "bpf_prog_test_run_xdp" in sender.split(";")
    forwarding = {tuple(stack.split(";")[:-1]) for stack in found.stacks if stack.endswith(";ip_forward")}
    assert all("net_rx_action" in stack or any("napi" in each for each in stack) for stack in forwarding)


def test_an_encapsulation_between_two_workers_costs_more_than_a_cable() -> None:
    with booted_lab(TOPOLOGY.with_name("counted_two_workers.yaml")) as up:
        cable, encapsulated = (
            cost(up, partial(up.testbed.build, Chain("routed", 2, workers=2, join=join), TRAFFIC.frame))
            for join in ("cable", "vxlan")
        )
    assert 5000 < encapsulated.least - cable.least < 15000, "both workers add the header, or take it off, once a frame"
    more = differences(cable.profile.functions, encapsulated.profile.functions)
    assert any("vxlan" in each.name for each in more[:20] if each.change > 0)


def test_a_bridge_of_the_first_of_two_workers_learns_from_frames_in_both_directions() -> None:
    with booted_lab(TOPOLOGY.with_name("counted_two_workers.yaml")) as up:
        assert cost(up, partial(up.testbed.build, Chain("linux-bridge", 2, workers=2), TRAFFIC.frame)).least > 0


@pytest.fixture(scope="module")
def machine() -> Iterator[CountedLab]:
    """A machine for the tests below."""
    with booted_lab() as up:
        yield up


def test_one_rule_more_is_found_by_one_run_with_its_function(machine: CountedLab) -> None:
    nine, ten = with_rules(machine, 9), with_rules(machine, 10)
    more = ten.least - nine.least
    assert 50 < more < 90, "a rule costs about 70 instructions"
    found = differences(nine.profile.functions, ten.profile.functions)
    assert found[0].name == "nft_do_chain [nf_tables]" and 50 < found[0].change < 90
    assert all(abs(each.change) < 5 for each in found[1:]), "and nothing else"
    assert abs(rest(more, [each.change for each in found])) < 0.1, "the functions are the difference"
