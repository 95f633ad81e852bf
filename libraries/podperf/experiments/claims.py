"""Makes claims about networking models and resources (draft sections 4.1 and 4.2) from the columns of a suite's row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from types import MappingProxyType
from typing import TypeVar

from podperf.errors import PodperfError
from podperf.experiments.claim import Claim, Expectation
from podperf.experiments.contender import Contender, WantedPlacement
from podperf.experiments.published import published_table
from podperf.figures import short
from podperf.model import DRAFT, Chain, FrameSize, PageSize
from podperf.nearness import proposal
from podperf.testbed.neighbour import NeighbourKind
from podperf.testbed.scenarios import PLACEMENTS, CpuIsolation, Node, Scenario

LAYOUTS = ("1x1", "2x1", "1x2", "2x2", "4x1")  # chains, and pods in each chain

_LAYOUT = re.compile(r"([1-9]\d?)x([1-9]\d?)(-common)?")
_LONGER = "A longer chain forwards less, because every pod of it handles every frame"
_BETTER_PAGES = (
    "In the case of using the DPDK application, as reported in [Intel-EPA], it was verified to improve network "
    "performance because packet handling processes are running in the application together"
)
_NEGLIGIBLE_PAGES = (
    "From a network benchmark point of view, however, the impact on general packet processing can be relatively "
    "negligible"
)
_ISOLATION = "appendix_b_sriov_dpdk"  # the published figures of the isolation levels
_MODES = {CpuIsolation.EXCLUSIVE: "exclusive", CpuIsolation.SHARED: "shared", CpuIsolation.NONE: "without CMK"}

Member = TypeVar("Member", bound=Enum)


@dataclass(frozen=True)
class Words:
    """The words of a claim, its source, the source's figures, and other differences between the contenders."""

    text: str = ""
    source: str | None = None
    their_figures: str = ""
    caveat: str = ""

    @classmethod
    def parse(cls, documentation: str) -> Words:
        """The words in the documentation of a row: the text, then parts that begin with `Source:`, `Their figures:`
        and `Caveat:`. `the draft` as a source is the version of the draft that podperf uses."""
        text, *parts = re.split(r"\s*\b(Source|Their figures|Caveat): ", " ".join(documentation.split()))
        found = {key.lower().replace(" ", "_"): words for key, words in zip(parts[::2], parts[1::2], strict=True)}
        if "source" in found:
            found["source"] = re.sub("^the draft", DRAFT, found["source"])
        return cls(text, **found)


def chains(fast: str, slow: str, pods: str, frame: str, *, difference: str = "5", documentation: str = "") -> Claim:
    """A chain of the first data plane forwards more than one of the second. Both have this number of `pods`."""
    both = tuple(Chain(name, int(pods)) for name in (fast, slow))
    size = FrameSize.parse(frame)
    contenders = tuple(Contender(str(each), each, frame=size) for each in both)
    return _claim(f"{fast}-over-{slow}", f"{fast} forwards more than {slow}", contenders, difference, documentation)


def lengths(data_plane: str, *pods: str, frame: str, difference: str = "5", documentation: str = "") -> Claim:
    """Chains with these numbers of pods, the shortest first: each forwards more than the next one."""
    size, several = FrameSize.parse(frame), [Chain(data_plane, int(pod)) for pod in pods]
    contenders = tuple(Contender(str(each), each, frame=size) for each in several)
    return _claim(f"{data_plane}-by-length", _LONGER, contenders, difference, documentation)


def joins(data_plane: str, *names: str, difference: str = "5", alike: str = "", documentation: str = "") -> Claim:
    """Two pods on two workers, which these join (`podperf.testbed.joins.JOINS`): the pods forward more by each join
    than by the next one, or as much if they are `alike`."""
    several = [Chain(data_plane, 2, workers=2, join=name) for name in names]
    contenders = tuple(Contender(each.join, each) for each in several)
    expected, expectation = _order(alike)
    text = f"{expected} {', '.join(names)} between the workers"
    return _claim("-".join((data_plane, "joins", *names)), text, contenders, difference, documentation, expectation)


def placements(
    data_plane: str,
    frame: str,
    *names: str,
    difference: str = "5",
    flows: str = "",
    alike: str = "",
    documentation: str = "",
) -> Claim:
    """One pod with these placements, or allocations of CPUs and memory (`podperf.testbed.scenarios.PLACEMENTS`): it
    forwards more with each than with the next one, or as much if they are `alike`. `N flows in 2 queues` sends N flows.
    """
    contenders = []
    for name in names:
        if name not in PLACEMENTS:
            raise PodperfError(f"there is no placement {name!r}{proposal(name, PLACEMENTS)}")
        named = re.match(r"(\d+) flows? in ", name)
        number = named[1] if named else flows
        scenario, size = PLACEMENTS[name], FrameSize.parse(frame)
        contenders.append(
            Contender.in_scenario(name, Chain(data_plane, 1), scenario, size, int(number) if number else None)
        )
    expected, expectation = _order(alike)
    name, text = "-".join((data_plane, *names)), f"{expected} {', '.join(names)}"
    return _claim(name, text, tuple(contenders), difference, documentation, expectation)


def _order(alike: str) -> tuple[str, Expectation]:
    """The order that a claim expects of its contenders, in words, too. `alike` has any text if there is none."""
    if alike:
        return "The rate is the same with", Expectation.ALIKE
    return "The rate falls with", Expectation.RANK


def isolation(data_plane: str, neighbour: str, *levels: str) -> Claim:
    """A pod forwards most at the first of these isolation levels, and less at each next one, beside a neighbour.

    Each level is also measured without the neighbour. The claim does not order these rates.
    """
    kind, ranked = _member(NeighbourKind, neighbour), [_member(CpuIsolation, each) for each in levels]
    table = published_table(_ISOLATION)
    figures = {row.name: row.figure for row in table.rows}
    shown = ", ".join(f"{each.name.lower()} {short(figures[_MODES[each]] or 0)}" for each in ranked)
    return Claim(
        "-".join(("isolation", data_plane, kind.replace(" ", "-"), *(each.name.lower() for each in ranked))),
        'CPU pinning … This technology is very effective in avoiding the "noisy neighbor" problem',
        tuple(_isolated(data_plane, level, beside) for level in ranked for beside in (None, kind)),
        f"{DRAFT}, section 4.2.1",
        claimed_pairs=tuple((2 * one + 1, 2 * other + 1) for one, other in pairwise(range(len(ranked)))),
        their_figures=f"{shown} {table.quantity.unit} ({table.section}, SR-IOV with DPDK, without a word about "
        "neighbours)",
        caveat="at other levels than exclusive the pod is an ordinary process: its pollers do not take turns, and its "
        "receive threads have no precedence, as the rates without a neighbour show",
    )


def _isolated(data_plane: str, level: CpuIsolation, neighbour: NeighbourKind | None) -> Contender:
    word = level.name.lower()
    label = f"{word}, alone" if neighbour is None else f"{word}, beside a {neighbour}"
    label += " neighbour" if neighbour is NeighbourKind.BUSY else ""
    # A pod whose CPUs are its own goes before others there. Where nobody manages CPUs, it is one process of many.
    own = level is CpuIsolation.EXCLUSIVE
    scenario = Scenario(label, Node.ANY, (Node.ANY,), level, neighbour, precedence=own)
    return Contender.in_scenario(label, Chain(data_plane, 1), scenario)


def hugepages(data_plane: str, pods: str, *sizes: str) -> Claim:
    """A chain whose memory is in pages of the first of these sizes forwards more than with each next one."""
    caveat = "the kernel's own memory for frames is in ordinary pages with all sizes"
    return _of_pages(data_plane, pods, sizes, _BETTER_PAGES, caveat, Expectation.RANK)


def reserved_hugepages(data_plane: str, pods: str, *sizes: str) -> Claim:
    """Chains whose pods forward in the kernel, which uses no page of its own: the rates do not differ. The pages are
    reserved, as they are for pods that use them."""
    caveat = "the kernel forwards in the pods: pages are reserved, and no process uses them"
    return _of_pages(data_plane, pods, sizes, _NEGLIGIBLE_PAGES, caveat, Expectation.ALIKE)


def _of_pages(
    data_plane: str, pods: str, sizes: tuple[str, ...], text: str, caveat: str, expectation: Expectation
) -> Claim:
    chain, found = Chain(data_plane, int(pods)), [_member(PageSize, size) for size in sizes]
    name = "-".join(("hugepages", data_plane, *(each.name.lower().replace("_", "-") for each in found)))
    contenders = tuple(
        Contender(f"{data_plane} with {each.words}", chain, WantedPlacement(pages=each)) for each in found
    )
    return Claim(name, text, contenders, f"{DRAFT}, section 4.2.2", caveat=caveat, expectation=expectation)


def service_density(data_plane: str, *layouts: str) -> Claim:
    """Chains of the same pods beside each other forward at the same rate. No order of the layouts is claimed.

    `2x1` are two chains of one pod each. In `2x2-common`, two chains have their last pod in common.
    """
    return Claim(
        "-".join(("service-density", data_plane, *(() if layouts in {(), LAYOUTS} else layouts))),
        "Chains of the same pods beside each other on the same ports forward at the same rate",
        tuple(Contender(each, layout(data_plane, each)) for each in layouts or LAYOUTS),
        expectation=Expectation.FAIR,
    )


def layout(data_plane: str, name: str) -> Chain:
    """The chains of a layout. Raises PodperfError for any other name."""
    found = _LAYOUT.fullmatch(name)
    if found is None:
        raise PodperfError(f"{name!r} is no layout of chains: 2x1 are two chains of one pod each")
    try:
        return Chain(data_plane, int(found[2]), chains=int(found[1]), common_pod=found[3] is not None)
    except ValueError as error:
        raise PodperfError(f"{name}: {error}") from error


def published_figures(table: str, frame: str, *rows: str) -> Claim:
    """Rows of a published table (a file of resources/published) rank here as their figures do, where these clearly
    differ."""
    return published_table(table).order_of_figures(FrameSize.parse(frame), *rows)


def published_statement(table: str, statement: str, frame: str, *rows: str) -> Claim:
    """Rows of a published table, the fastest first, rank here as a statement of the document says."""
    return published_table(table).order_of_statement(statement, FrameSize.parse(frame), *rows)


def published_sizes(table: str, row: str, *frames: str) -> Claim:
    """A row of a published table forwards more bits per second with larger frames."""
    return published_table(table).order_of_sizes(row, *map(FrameSize.parse, frames))


KINDS: Mapping[str, Callable[..., Claim]] = MappingProxyType(
    {
        each.__name__.replace("_", " "): each
        for each in (
            *(chains, lengths, joins, placements, isolation, hugepages, reserved_hugepages, service_density),
            *(published_figures, published_statement, published_sizes),
        )
    }
)
"""The kinds of claims by the words of the keyword `Measure And Judge`."""


def claim_of(kind: str, *columns: str, **settings: str) -> Claim:
    """The claim of a kind with the columns of a suite's row. PodperfError if the columns do not fit the kind."""
    if kind not in KINDS:
        raise PodperfError(f"there is no kind of claim {kind!r}; choose one of: {', '.join(KINDS)}")
    try:
        return KINDS[kind](*columns, **settings)
    except (TypeError, ValueError) as error:
        raise PodperfError(f"{kind}: {error}") from error


def _claim(
    name: str,
    text: str,
    contenders: tuple[Contender, ...],
    difference: str,
    documentation: str,
    expectation: Expectation = Expectation.RANK,
) -> Claim:
    said = Words.parse(documentation)
    return Claim(
        name,
        said.text or text,
        contenders,
        said.source,
        float(difference) / 100,
        said.their_figures,
        said.caveat,
        expectation,
    )


def _member(kind: type[Member], name: str) -> Member:
    try:
        return kind[name]
    except KeyError:
        raise PodperfError(f"{name!r} is none of {', '.join(each.name for each in kind)}") from None
