"""Sets the variants of a comparison up: each on its CPUs, with its hooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest

from podperf.comparisons import Variant
from podperf.cpu_lists import format_cpu_list
from podperf.cpu_plan import plan_cpus
from podperf.dataplanes import DATA_PLANES, with_forwarder
from podperf.errors import Unavailable
from podperf.model import TrafficProfile
from podperf.run.equipment import Equipment
from podperf.run.hooks import run_after, run_before
from podperf.run.test_in_progress import TestInProgress
from podperf.testbed.scenarios import Placed
from podperf.testbed.system_under_test import SystemUnderTest


@dataclass
class VariantChains:
    """The chains of variants in one test."""

    test: TestInProgress
    traffic: TrafficProfile
    equipment: Equipment
    _placed: Mapping[str, Placed] = field(default_factory=dict)

    def prepare(self, variants: Sequence[Variant]) -> None:
        """Place these variants, and watch their CPUs. Raises Unavailable if the testbed cannot set one of them up."""
        for each in variants:
            self.equipment.testbed.demand(each.chain)
        record = self.test.record
        self._placed = {**self._placed, **{each.name: self._place(each) for each in variants}}
        known = {each.name: (with_forwarder(each.chain), self._placed[each.name]) for each in variants}
        record.contenders = {**record.contenders, **known}
        placed = [each.suts for each in self._placed.values()]
        suts = [set().union(*each) for each in zip_longest(*placed, fillvalue=set[int]())]
        self.test.quietness = self.equipment.watch(suts, self.test.undo)

    @contextmanager
    def built(self, variant: Variant) -> Iterator[SystemUnderTest]:
        """The chain of a variant that is prepared, with its hooks, while the context lasts."""
        chain, traffic, testbed = variant.chain, self.traffic, self.equipment.testbed
        first = partial(run_before, variant, testbed.workers[: chain.workers])
        placed = self._placed[variant.name]
        built = testbed.build_placed(placed, chain, traffic.frame, traffic.directions, first)
        with built as sut, ExitStack() as undo:
            run_after(variant, sut, undo)
            yield sut

    def _place(self, variant: Variant) -> Placed:
        wanted, testbed, usual = variant.placement, self.equipment.testbed, self.equipment.placement
        if wanted.scenario is not None:
            return testbed.place_scenario(wanted.scenario, variant.chain)
        if wanted.cpus is None:
            return Placed(usual, testbed.cpu_plans(variant.chain))
        taken = () if usual.apart else usual.tester
        allowed = [cpu for cpu in self.equipment.cpus[0].usable if cpu not in taken]
        if variant.chain.workers > 1:
            raise Unavailable(f"variant {variant.name!r} names CPUs of one worker, and its chain is on several")
        if wrong := set(wanted.cpus) - set(allowed):
            raise Unavailable(
                f"variant {variant.name!r} cannot have CPU {format_cpu_list(wrong)}; allowed for the system under "
                f"test: {format_cpu_list(allowed) or 'none'}"
            )
        neighbour = tuple(cpu for cpu in allowed if cpu not in wanted.cpus)
        placement = replace(usual, sut=wanted.cpus, named_switch=wanted.switch_cpus or (), neighbour=neighbour)
        with_switch = DATA_PLANES[variant.chain.data_plane].switch_has_cpus
        return Placed(placement, [plan_cpus(placement, variant.chain.pods, with_switch=with_switch)])
