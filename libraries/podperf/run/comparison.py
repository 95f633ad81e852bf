"""Compares several chains in one test by turns. Each chain has its own placement, limits and description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from secrets import randbits

from podperf.dataplanes import DATA_PLANES, with_forwarder
from podperf.errors import Unavailable
from podperf.methods.comparison import Comparison
from podperf.methods.trials import ValidTrials
from podperf.model import TrafficProfile
from podperf.run.comparison_verdict import judged
from podperf.run.contenders import Contenders
from podperf.run.equipment import Equipment
from podperf.run.limits import KnownLimits
from podperf.run.published_quantities import quantities_beside
from podperf.run.test_in_progress import TestInProgress
from podperf.testbed.scenarios import Placed
from podperf.verdicts.findings import Contender, Finding, Order


def compare(
    test: TestInProgress, order: Order, traffics: Mapping[str, TrafficProfile], equipment: Equipment, known: KnownLimits
) -> Finding:
    """Measure the contenders of an order, each with its traffic, and judge the order.

    The record also gets the figures of contenders from a published table beside the published ones.
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
    contenders = Contenders(test, known)
    by_name = {
        str(each): partial(_trials, contenders, each, traffics[str(each)], placed[str(each)], equipment)
        for each in order.contenders
    }
    result = Comparison().run(by_name, randbits(32))
    record.limits = contenders.limits[str(order.contenders[0])]
    setting = {
        "placements": {name: each.as_record() for name, each in placed.items()},
        "frames": {name: each.frame.name for name, each in traffics.items()},  # a trial's `phase` has the name
        "flows": {name: each.flows for name, each in traffics.items()},
        "cpus_of_neighbours": contenders.cpus_of_neighbours,
        "limits_of_pods": contenders.limits_of_pods,
        "limits_of_neighbours": contenders.limits_of_neighbours,
        "memory": {
            name: {process: pages.as_record() for process, pages in found.items()}
            for name, found in contenders.memory.items()
        },
    }
    record.methods = {"comparison": {"claim": order.name, **result.as_record(), **setting}}
    finding = judged(order, result, contenders.doubt)
    record.findings = [finding]
    measured = {each: result.rates(str(each)) for each in order.contenders}
    if beside := quantities_beside(measured, by_name, contenders, equipment.testbed.topology.method):
        record.methods = {**record.methods, "published": beside}
    return finding


@contextmanager
def _trials(
    contenders: Contenders, contender: Contender, traffic: TrafficProfile, placed: Placed, equipment: Equipment
) -> Iterator[ValidTrials]:
    """Trials across this contender. Its chain is set up while the context lasts."""
    name = str(contender)
    build = partial(equipment.testbed.build_placed, placed, contender.chain, contender.frame, traffic.directions)
    with contenders.standing(name, traffic, build, placed.pages) as sut:
        yield contenders.test.trials(sut, name, traffic, contenders.limits[name])


def _placed(contender: Contender, equipment: Equipment) -> Placed:
    chain, testbed = contender.chain, equipment.testbed
    if contender.pages is not None:
        testbed.demand_pages(chain, contender.pages)
    placed = (
        Placed(equipment.placement, testbed.cpu_plans(chain))
        if contender.scenario is None
        else testbed.place_scenario(contender.scenario, chain)
    )
    return replace(placed, pages=contender.pages)
