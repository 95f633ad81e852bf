"""The chain of a test on a simulated device, for methods beside MRR and the search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from podperf.kernel.thread_time import CpuUser
from podperf.methods.base import StandingInstance
from podperf.methods.latency import LatencyAtShare, LatencyResult
from podperf.methods.presets import SHORT, FurtherSettings
from podperf.metrics import Measured, Metrics
from podperf.model import AddressedTraffic, Chain, ChangeUnderLoad, Trial, TrialResult
from podperf.testers.base import Ability, TesterLimits
from scripted_host import ScriptedHost
from simulated_dut import SimulatedDut
from simulated_ends import OneSecond, ends
from traffic import TRAFFIC

MEMORY = "/proc/5/status:Name:\ttestpmd\n/proc/5/status:Tgid:\t5\n/proc/5/status:VmRSS:\t1024 kB\n"


@dataclass
class SimulatedPairs:
    """Pairs that share a device. Its rate is the sum of theirs, and each pair has half the rate of the pair before."""

    dut: SimulatedDut

    def measure(self, trial: Trial, pairs: int) -> Sequence[TrialResult]:
        result = self.dut.measure(trial.load, trial.duration)
        (direction,) = result.directions
        parts = [direction.received >> number for number in range(1, pairs)]
        parts.append(direction.received - sum(parts))
        return [replace(result, directions=(replace(direction, received=part),)) for part in parts]


@dataclass
class SimulatedChain:
    """A MeasuredChain. `rates` are those that the search has found."""

    dut: SimulatedDut
    rates: Metrics
    further_settings: FurtherSettings = SHORT
    traffic: AddressedTraffic = TRAFFIC
    sut_differs: Mapping[str, Any] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    @property
    def sut(self) -> Any:
        """One worker, whose pod is a process. Recorded applications talk through it."""
        host = ScriptedHost(answers={"grep -HE": MEMORY, "grep ^SUnreclaim": "SUnreclaim: 100 kB\n"})
        part = SimpleNamespace(cpu_users=[CpuUser("pod1", host, lambda: [5])])
        known = {
            "parts": [SimpleNamespace(worker="local", data_plane=part)],
            "chain": Chain("linux-bridge", 1),
            "applications": (),
            "ends": ends,
            "changes": {"route-withdrawn": ChangeUnderLoad("a route is withdrawn", self._lose_frames)},
            "cpu_clock": OneSecond,
            "tester": SimpleNamespace(facts=SimpleNamespace(pairs=self._pairs)),
        }
        return SimpleNamespace(**{**known, **self.sut_differs})

    def tell(self, text: str) -> None:
        self.told.append(text)

    def _pairs(self, tell: Callable[[str], None]) -> AbstractContextManager[SimulatedPairs]:
        return nullcontext(SimulatedPairs(self.dut))

    def _lose_frames(self, undo: ExitStack) -> None:
        self.dut.outage = 0.1

    @property
    def metrics(self) -> Metrics:
        return self.rates

    def known_limits(self) -> TesterLimits:
        return TesterLimits(self.dut.maximum_load, 0.0, "made up")

    def demand(self, ability: Ability) -> None:
        pass

    def searched(self, name: str) -> Measured | None:
        return self.rates.get(name)

    def latency(self) -> LatencyResult | None:
        method = LatencyAtShare.below(self.rates)
        return method.run(self.dut) if method else None

    def trials(self, phase: str) -> SimulatedDut:
        return self.dut

    def instances(self, phase: str) -> Callable[[], AbstractContextManager[StandingInstance]]:
        return lambda: nullcontext(StandingInstance(self.dut, 0.25))
