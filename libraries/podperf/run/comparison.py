"""Compares several chains in one test by turns. Each chain has its own placement, limits and description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from secrets import randbits
from typing import Any

from podperf.dataplanes import DATA_PLANES, with_forwarder
from podperf.errors import Unavailable
from podperf.methods.comparison import Comparison
from podperf.methods.trials import ValidTrials
from podperf.model import TrafficProfile
from podperf.run.equipment import Equipment
from podperf.run.interfaces import interfaces_of, link_speed
from podperf.run.limits import KnownLimits
from podperf.run.test_in_progress import TestInProgress
from podperf.testbed.scenarios import Placed
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testers.base import TesterLimits
from podperf.verdicts.findings import Contender, Finding, Order, judge


def compare(
    test: TestInProgress, order: Order, traffics: Mapping[str, TrafficProfile], equipment: Equipment, known: KnownLimits
) -> Finding:
    """Measure the contenders of an order, each with its traffic, and judge the order.

    Raises Unavailable before any measurement if the testbed cannot set a contender up.
    """
    equipment.refuse_cost_only()
    for contender in order.contenders:
        if contender.chain.data_plane not in DATA_PLANES:
            raise Unavailable(f"this version of podperf has no data plane {contender.chain.data_plane!r}")
        equipment.testbed.demand(contender.chain)
    placed = {str(each): _placed(each, equipment) for each in order.contenders}
    record = test.record
    record.contenders = {str(each): (with_forwarder(each.chain), placed[str(each)]) for each in order.contenders}
    suts = [set().union(*each) for each in zip_longest(*(each.suts for each in placed.values()), fillvalue=set[int]())]
    test.quietness = equipment.watch(suts, test.undo)
    contenders = _Contenders(test, equipment, known, traffics, placed)
    by_name = {str(each): partial(contenders.standing, each) for each in order.contenders}
    result = Comparison().run(by_name, randbits(32))
    record.limits = contenders.limits[str(order.contenders[0])]
    setting = {
        "placements": {name: each.as_record() for name, each in placed.items()},
        "frames": {name: each.frame.name for name, each in traffics.items()},  # a trial's `phase` has the name
    }
    record.methods = {"comparison": {"claim": order.name, **result.as_record(), **setting}}
    rates = [result.rates(str(each)) for each in order.contenders]
    finding = judge(order, rates, result.noisy_trials, doubt=contenders.doubt)
    record.findings = [finding]
    return finding


class _Contenders:
    """The contenders of one comparison, by name. The record describes each one when it is set up for the first time."""

    def __init__(
        self,
        test: TestInProgress,
        equipment: Equipment,
        known: KnownLimits,
        traffics: Mapping[str, TrafficProfile],
        placed: Mapping[str, Placed],
    ) -> None:
        self.limits: dict[str, TesterLimits] = {}
        self._described: dict[str, Mapping[str, Any]] = {}
        self._test, self._testbed, self._known = test, equipment.testbed, known
        self._traffics, self._placed = traffics, placed

    @property
    def doubt(self) -> str:
        """The reasons not to believe the tester, in the order of their appearance."""
        return "; ".join(dict.fromkeys(each.doubt for each in self.limits.values() if each.doubt))

    @contextmanager
    def standing(self, contender: Contender) -> Iterator[ValidTrials]:
        """Trials across this contender. Its chain is set up while the context lasts."""
        name = str(contender)
        traffic = self._traffics[name]
        ways = traffic.directions
        with self._testbed.build_placed(self._placed[name], contender.chain, contender.frame, ways) as sut:
            sut.probe(addressed(traffic, sut))
            if name not in self._described:
                self._describe(name, sut)
            yield self._test.trials(sut, name, traffic, self.limits[name])

    def _describe(self, name: str, sut: SystemUnderTest) -> None:
        record = self._test.record
        self._described[name] = sut.describe()
        record.data_plane, record.tester = self._described, sut.tester.describe()
        interfaces = interfaces_of(sut)
        named = {f"{name}: {interface}": each for interface, each in interfaces.items()}
        record.interfaces = {**record.interfaces, **named}
        engine = sut.tester.facts.engine
        self.limits[name] = self._known.on_link(link_speed(interfaces), self._traffics[name], engine)


def _placed(contender: Contender, equipment: Equipment) -> Placed:
    if contender.scenario is None:
        return Placed(equipment.placement, equipment.testbed.cpu_plans(contender.chain))
    return equipment.testbed.place_scenario(contender.scenario, contender.chain)
