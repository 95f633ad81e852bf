"""The suites that sweep frame sizes, directions, numbers of pods and headers of test frames.

A suite that people write, such as `4.1.1_kernel_space.robot`, has a row for each of its data planes. The sweep beside
it has the same data planes at all sizes, in both directions and in a longer chain, as far as that suite does not have
them. One more suite has IPv6 frames, tags and jumbo frames. `docs/make.py` writes the sweeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from robot.api import TestSuite
from robot.running import TestCase

from podperf.dataplanes import DATA_PLANES
from podperf.frames import PLAIN, AddressFamily, Headers
from podperf.model import NetworkingModel
from podperf.pods.forwarders import IN_KERNEL

FOLDER = Path(__file__).parents[1] / "tests" / "4.1_networking_models"
SUITES = tuple(sorted(each for each in FOLDER.glob("4.1.[1-5]_*.robot") if not each.stem.endswith("_sweep")))
COST = FOLDER / "4.1_cost_sweep.robot"
HEADERS = FOLDER / "4.1_headers_sweep.robot"
COUNTED = (NetworkingModel.KERNEL_SPACE, NetworkingModel.EBPF)
NOT_COUNTED = (
    "ovs-kernel",
    "ovs-afxdp",
    "bpf-object",
    "docker-bridge",
    "docker-default",
    "docker-macvlan",
    "docker-overlay",
    "podman-bridge",
)  # they need more than a counted machine has by itself
SIZES = ("64", "128", "256", "512", "1024", "1280", "1518", "IMIX")
SMALL, LARGE, JUMBO = "64", "1518", "9018"
SMALL_IPV6 = str(Headers(AddressFamily.IPV6).smallest_frame)
VLAN = 100
SMALL_TAGGED = str(PLAIN.changed(vlan=VLAN).smallest_frame)
WITH_TAGS = (  # a VLAN interface on a port, a switch with trunk and access ports, pods that pass tags on, VFs of a VLAN
    *("linux-bridge", "macvlan", "routed", "tc-redirect"),
    *("ovs-kernel", "ovs-netdev", "ovs-afxdp"),
    *("ovs-dpdk", "memif", "vpp-l2patch", "af-xdp"),
    "sriov",
)
WITH_JUMBO = ("ovs-dpdk", "memif", "sriov")  # and the kernel's data planes
LONGEST_LINE = 120
COLUMNS = ("DATA PLANE", "PODS", "FRAME", "MORE")


@dataclass(frozen=True)
class Series:
    """The rows of one data plane. `pods` are those of its shortest chain and of a longer one, if it has one.

    `forwarder` is the application in the pods, unless it is the usual one.
    """

    label: str
    data_plane: str
    forwarder: str | None
    tags: tuple[str, ...]
    pods: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """A test."""

    series: Series
    pods: int
    frame: str
    bidirectional: bool = False
    flows: int = 1
    family: AddressFamily = AddressFamily.IPV4
    vlan: int | None = None

    @property
    def name(self) -> str:
        """`Memif, 64 B, 2 pods, both directions`."""
        parts = [self.series.label, self.frame if self.frame == "IMIX" else f"{self.frame} B"]
        parts += [f"{self.pods} pods"] if self.pods > 1 else []
        parts += ["both directions"] if self.bidirectional else []
        parts += [f"{self.flows} flows"] if self.flows > 1 else []
        parts += ["IPv6"] if self.family is AddressFamily.IPV6 else []
        parts += [f"VLAN {self.vlan}"] if self.vlan else []
        return ", ".join(parts + ([self.series.forwarder] if self.series.forwarder else []))

    @property
    def cells(self) -> list[str]:
        """Its columns, without the name."""
        found = [self.series.data_plane, str(self.pods), self.frame]
        found += ["bidirectional"] if self.bidirectional else []
        found += [f"flows={self.flows}"] if self.flows > 1 else []
        found += [f"family={self.family}"] if self.family is AddressFamily.IPV6 else []
        found += [f"vlan={self.vlan}"] if self.vlan else []
        return found + ([f"forwarder={self.series.forwarder}"] if self.series.forwarder else [])

    @property
    def tags(self) -> list[str]:
        """Those that say what its columns say."""
        found = [self.series.data_plane, self.frame if self.frame == "IMIX" else f"{self.frame}B", *self.series.tags]
        found += ["bidirectional"] if self.bidirectional else []
        found += ["ipv6"] if self.family is AddressFamily.IPV6 else []
        found += ["vlan"] if self.vlan else []
        return found + (["jumbo"] if self.frame == JUMBO else [])


@cache
def tests_of(file: Path) -> tuple[TestCase, ...]:
    """The rows of a suite."""
    return tuple(TestSuite.from_file_system(file).all_tests)


def tags_of_all(file: Path) -> list[str]:
    """The tags of a suite that its sweep has, too."""
    common = set.intersection(*(set(test.tags) for test in tests_of(file))) - {"quick", f"{SMALL}B"}
    return sorted(common, key=lambda tag: (not tag.startswith("sec-"), tag))


def series_of(file: Path) -> list[Series]:
    """The data planes of a suite. Rows with another application in the pods have no series."""
    found: dict[tuple[str, ...], list[TestCase]] = {}
    for test in tests_of(file):
        data_plane, *options = map(str, test.body[0].args)
        forwarder = next((each.split("=")[1] for each in options if each.startswith("forwarder=")), "")
        if forwarder in {"", IN_KERNEL}:
            found.setdefault((test.name.split(", ")[0], data_plane, forwarder), []).append(test)
    made = []
    for (label, data_plane, forwarder), tests in found.items():
        cells = [str(each) for test in tests for each in test.body[0].args]
        pods = sorted({int(each[5:]) for each in cells if each.startswith("pods=")}) or [1]
        own = {"quick", data_plane, *tags_of_all(file), *(f"{size}B" for size in SIZES)}
        tags = tuple(tag for tag in tests[0].tags if tag not in own)
        longer = pods if len(pods) > 1 or pods == [0] else [pods[0], pods[0] + 1]
        made.append(Series(label, data_plane, forwarder or None, tags, tuple(longer)))
    return made


def rows_of(file: Path) -> Iterator[Row]:
    """Every row of a sweep, size by size, so that data planes alternate."""
    series = series_of(file)
    for frame in SIZES:
        yield from (Row(each, each.pods[0], frame) for each in series)
    yield from (Row(each, each.pods[0], SMALL, bidirectional=True) for each in series)
    for frame in (SMALL, LARGE):
        yield from (Row(each, pods, frame) for each in series for pods in each.pods[1:])


def sweep(file: Path) -> str:
    """The text of the sweep beside this suite."""
    beside = {test.name for test in tests_of(file)}
    about = TestSuite.from_file_system(file).doc.split(").")[0]
    rows = [row for row in rows_of(file) if row.name not in beside]
    return _suite(f"{about}):", "frame sizes, directions and numbers of pods", tags_of_all(file), rows)


def headers_sweep() -> str:
    """The text of the suite of other frames than untagged IPv4 frames of usual sizes."""
    usual = [
        replace(each, tags=(*tags_of_all(file), *each.tags))
        for file in SUITES
        for each in series_of(file)
        if each.forwarder is None
    ]
    rows = [
        Row(each, each.pods[0], frame, bidirectional=True, family=AddressFamily.IPV6)
        for frame in (SMALL_IPV6, LARGE)
        for each in usual
    ]
    rows += [Row(each, each.pods[0], SMALL_TAGGED, vlan=VLAN) for each in usual if each.data_plane in WITH_TAGS]
    rows += [Row(each, each.pods[0], JUMBO) for each in usual if _takes_jumbo(each.data_plane)]
    about, what = "Headers of test frames (draft sections 4.1.1 to 4.1.5):", "IPv6, a VLAN tag, and jumbo frames"
    return _suite(about, what, ["full", "mrr", "ndrpdr"], rows)


def _takes_jumbo(data_plane: str) -> bool:
    return DATA_PLANES[data_plane].model is NetworkingModel.KERNEL_SPACE or data_plane in WITH_JUMBO


def cost_sweep() -> str:
    """The text of the suite of what is measured on a counted machine only: longer chains, and many flows."""
    counted = [
        Series(each.label, each.data_plane, None, (model,), each.pods)
        for file in SUITES
        for model in COUNTED
        if model in tags_of_all(file)
        for each in series_of(file)
        if DATA_PLANES[each.data_plane].forwarders[0] == IN_KERNEL and each.data_plane not in NOT_COUNTED
    ]
    rows = [Row(each, pods, SMALL) for pods in (3, 4) for each in counted]
    rows += [Row(each, each.pods[0], SMALL, flows=1000) for each in counted]
    about, what = "Cost on a counted machine (draft sections 4.1.1 and 4.1.3):", "longer chains, and a thousand flows"
    return _suite(about, what, ["sec-4.1", "counted", "64B"], rows, "Chain Should Have A Cost", without=2)


def _suite(
    about: str,
    what: str,
    tags: Sequence[str],
    rows: Sequence[Row],
    template: str = "Chain Should Forward",
    without: int | None = None,
) -> str:
    """A suite with these rows. `without` is the place of a column that the template does not have."""
    settings = (
        "*** Settings ***",
        f"Documentation    {about}",
        f"...              {what}. Made by docs/make.py from the suites that people write.",
        "",
        "Resource         ../../resources/networking_model.resource",
        "",
        f"Test Template    {template}",
        f"Test Tags        {'    '.join(tags)}",
        "",
        "",
    )
    table = [["*** Test Cases ***", *COLUMNS], *([row.name, *row.cells] for row in rows)]
    table = [[cell for place, cell in enumerate(cells, -1) if place != without] for cells in table]
    widths = [max(len(cells[place]) for cells in table if place < len(cells)) for place in range(max(map(len, table)))]
    gap = 4 if sum(widths) + 4 * (len(widths) - 1) <= LONGEST_LINE else 2
    head, *lines = (_padded(cells, widths, gap) for cells in table)
    own = ([tag for tag in row.tags if tag not in tags] for row in rows)
    tagged = [f"{line}\n    [Tags]    {'    '.join(tags)}" for tags, line in zip(own, lines, strict=True)]
    return "\n".join((*settings, head, *tagged, ""))


def _padded(cells: Sequence[str], widths: Sequence[int], gap: int) -> str:
    return (" " * gap).join(cell.ljust(width) for cell, width in zip(cells, widths, strict=False)).rstrip()


def sweeps() -> Mapping[Path, str]:
    """The texts of all sweeps by their files."""
    beside = {file.with_name(f"{file.stem}_sweep.robot"): sweep(file) for file in SUITES}
    return {**beside, COST: cost_sweep(), HEADERS: headers_sweep()}
