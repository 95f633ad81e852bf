"""The counted machine, booted for real: figures repeat, and a single rule of a firewall shows, with its function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from counted_lab import ONLY_IF_ASKED, TOPOLOGY, CountedLab, booted, demand
from podperf.counted_machine import boot
from podperf.counted_machine.bridges import probed
from podperf.counted_machine.plugin import Plugin
from podperf.counted_machine.profile import ChainProfiler
from podperf.hosts.namespaces import PREFIX
from podperf.hosts.network_namespace import NetworkNamespace
from podperf.methods.cost import CHANCE, Builds, Cost, StandingChain
from podperf.methods.functions import Functions, differences, rest
from podperf.model import Chain, FrameSize, Loop, TrafficProfile, Trial, TrialResult
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testers.base import UNPACED
from robot_run import ROOT, Robot

BETWEEN_BOOTS = 0.01 / 100
RUN_TIMEOUT = 900  # with an image to build
TRAFFIC = TrafficProfile(FrameSize.parse("64"))
FIREWALL = "table ip t {{\nchain f {{\ntype filter hook forward priority 0; policy accept;\n{}\n}}\n}}\n"

pytestmark = [*ONLY_IF_ASKED, pytest.mark.usefixtures("time_is_left")]


@pytest.fixture(autouse=True, scope="module")
def needs_qemu() -> None:
    demand()


def records(folder: Path) -> list[dict[str, Any]]:
    """The records of a run of four rows."""
    folder.mkdir()
    rows = ("wire", "macvlan", "linux-bridge", "tc-redirect-peer")
    chosen = [word for each in rows for word in ("--include", f"{each}AND64BANDquickNOTsec-5")]
    robot = Robot(folder, *chosen, str(ROOT / "tests"), topology=TOPOLOGY.read_text())
    assert robot.wait(RUN_TIMEOUT) == 0, robot.output.read_text()
    return robot.records()


def figures(found: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The figures of a run, by the test's name."""
    return {
        each["test"]["name"]: [figure["instructions_per_frame"] for figure in each["results"].values()]
        for each in found
    }


def test_the_same_command_twice_gives_the_same_figures_and_they_are_told_by_function(tmp_path: Path) -> None:
    twice = records(tmp_path / "one"), records(tmp_path / "other")
    one, other = map(figures, twice)
    assert len(one) == 4 and all(len(each) == 2 for each in one.values())
    for name, found in one.items():
        assert other[name] == pytest.approx(found, rel=BETWEEN_BOOTS), name
    for burst in (burst for run in twice for record in run for burst in record["methods"]["cost"]["bursts"]):
        assert burst["functions_missing"] is None, "Debian's QEMU takes the plug-in"
        assert abs(burst["in_no_function"]) < 1, "the sum of the functions is the figure"
        least = min(burst["builds"])
        assert sum(each <= least + CHANCE for each in burst["builds"]) > 1, "one build alone may be a chance"
    (tc,) = (each for each in twice[0] if "tc-redirect-peer" in each["test"]["tags"])
    assert "ip_forward" in tc["methods"]["cost"]["bursts"][0]["functions"], "the pod forwards"


@dataclass(frozen=True)
class Chained:
    """A chain that stands on a counted machine."""

    sut: SystemUnderTest
    traffic: TrafficProfile
    profiler: ChainProfiler

    def loop(self, loop: Loop) -> TrialResult:
        result = self.sut.tester.measure(Trial(self.traffic, UNPACED, 10.0, loop))
        assert result.invalid is None
        return result

    def functions(self, windows: Sequence[int]) -> Functions:
        return self.profiler.functions(windows)


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
        with booted() as up:
            return cost(up, partial(up.testbed.bare_path, TRAFFIC.frame))

    with_it = bare_path()
    monkeypatch.setattr(boot, "plugin_for", lambda *_: Plugin(missing="not wanted here"))
    without_it = bare_path()
    assert with_it.figures == without_it.figures
    assert abs(rest(with_it.least, with_it.functions.values())) < 0.1
    assert "send_frames [bpf]" in with_it.functions, "the tester's own programs are among them"
    assert not without_it.functions and without_it.functions_missing == "not wanted here"


@pytest.fixture(scope="module")
def machine() -> Iterator[CountedLab]:
    """A machine for the tests below."""
    with booted() as up:
        yield up


def test_one_rule_more_is_found_by_one_run_with_its_function(machine: CountedLab) -> None:
    nine, ten = with_rules(machine, 9), with_rules(machine, 10)
    more = ten.least - nine.least
    assert 50 < more < 90, "a rule costs about 70 instructions"
    found = differences(nine.functions, ten.functions)
    assert found[0].name == "nft_do_chain [nf_tables]" and 50 < found[0].change < 90
    assert all(abs(each.change) < 5 for each in found[1:]), "and nothing else"
    assert abs(rest(more, [each.change for each in found])) < 0.1, "the functions are the difference"
