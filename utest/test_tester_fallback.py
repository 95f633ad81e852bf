"""Between existing ports, a tester whose frames do not cross is replaced by its fallback. This holds for any tester."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from podperf.frames import AddressFamily, Headers
from podperf.model import Chain, Direction, DirectionResult, Trial, TrialResult
from podperf.testbed import existing_ports
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testers.base import PortFacts, TesterFacts
from podperf.topology import Engine

ENDS = PortFacts("02:00:00:00:00:01"), PortFacts("02:00:00:00:00:02")
HEADERS = Headers(AddressFamily.IPV6)
WAYS = (Direction.LEFT_TO_RIGHT,)


@dataclass
class SomeTester:
    """A tester. Either all of its frames cross, or none."""

    shortest_trial: ClassVar[float] = 0.0

    crosses: bool
    fallback: Engine | None = None
    closed: bool = False
    trials: list[Trial] = field(default_factory=list)

    @property
    def facts(self) -> TesterFacts:
        return TesterFacts("a vendor's", "1", "xdp", *ENDS, copies=False, fallback=self.fallback)

    def measure(self, trial: Trial) -> TrialResult:
        self.trials.append(trial)
        return TrialResult(trial, 0.0, (DirectionResult(WAYS[0], 20, 20, 20 * self.crosses, 0, 0, 0, trial.duration),))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def after(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that probes a chain. It returns the chain's tester, and the engine and reason of a replacement."""
    asked: list[Any] = []
    other = SomeTester(crosses=True)

    def made(_machines: Any, engine: Engine, _way_back: Any, _undo: Any, why: str) -> SomeTester:
        asked.extend((engine, why))
        return other

    monkeypatch.setattr(existing_ports, "PROBE_PATIENCE", 0.0)
    monkeypatch.setattr(existing_ports, "_tester", made)
    monkeypatch.setattr(existing_ports, "_await_links", lambda _: 0.0)

    def settled(tester: SomeTester) -> Any:
        sut = SystemUnderTest(Chain("external", 0), tester, [], {}, {})  # type: ignore[arg-type]
        nobody: Any = None
        return existing_ports._by_an_engine_that_sends(nobody, sut, WAYS, HEADERS, nobody, nobody).tester, asked

    return settled


def test_frames_that_cross_need_no_other_engine(after: Any) -> None:
    tester = SomeTester(crosses=True, fallback="packet-ring")
    assert after(tester) == (tester, [])
    assert {trial.traffic.profile.headers for trial in tester.trials} == {HEADERS}


def test_a_tester_without_a_fallback_is_not_even_tried(after: Any) -> None:
    tester = SomeTester(crosses=False)
    assert after(tester) == (tester, []) and not tester.trials


def test_frames_that_do_not_cross_are_sent_by_the_fallback_which_is_told_why(after: Any) -> None:
    tester = SomeTester(crosses=False, fallback="packet-ring")
    other, asked = after(tester)
    assert tester.closed and other is not tester
    assert asked == ["packet-ring", "no frame that XDP sent crossed in 0 s"]
