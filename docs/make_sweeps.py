"""Makes the suites that sweep frame sizes, directions and numbers of pods: `.venv/bin/python docs/make_sweeps.py`.

The list below says of each data plane what it is called and how many pods its chains have. Each data plane of a suite
gets the same rows. Rows of the suite beside it, which people write and read (`4.1.1_kernel_space.robot`), are left
out. utest/test_suites.py compares the files with the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from robot.api import TestSuite

FOLDER = Path(__file__).parents[1] / "tests" / "4.1_networking_models"
SIZES = ("64", "128", "256", "512", "1024", "1280", "1518", "IMIX")
SMALL, LARGE = "64", "1518"


@dataclass(frozen=True)
class Series:
    """The rows of one data plane. `pods` are those of its shortest chain and of a longer one.

    `forwarder` is the application in the pods, where it is not the usual one. With `only` there are rows of these frame
    sizes on the shortest chain, and no others.
    """

    label: str
    data_plane: str
    pods: tuple[int, int | None] = (1, 2)
    forwarder: str | None = None
    only: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A test."""

    series: Series
    pods: int
    frame: str
    bidirectional: bool = False
    flows: int = 1

    @property
    def name(self) -> str:
        """`Memif, 64 B, 2 pods, both directions`."""
        parts = [self.series.label, self.frame if self.frame == "IMIX" else f"{self.frame} B"]
        parts += [f"{self.pods} pods"] if self.pods > 1 else []
        parts += ["both directions"] if self.bidirectional else []
        parts += [f"{self.flows} flows"] if self.flows > 1 else []
        parts += [self.series.forwarder.replace("-", " ")] if self.series.forwarder else []
        return ", ".join(parts)

    @property
    def cells(self) -> list[str]:
        """Its columns, without the name."""
        found = [self.series.data_plane, str(self.pods), self.frame]
        found += ["bidirectional"] if self.bidirectional else []
        found += [f"flows={self.flows}"] if self.flows > 1 else []
        return found + ([f"forwarder={self.series.forwarder}"] if self.series.forwarder else [])

    @property
    def tags(self) -> list[str]:
        """Those that say what its columns say."""
        found = [self.series.data_plane, self.frame if self.frame == "IMIX" else f"{self.frame}B", *self.series.tags]
        found += ["bidirectional"] if self.bidirectional else []
        return found + ([self.series.forwarder] if self.series.forwarder not in {None, "kernel"} else [])


@dataclass(frozen=True)
class Sweep:
    """A suite: what it is about in words, the tags of all its tests, and its data planes."""

    about: str
    tags: tuple[str, ...]
    series: tuple[Series, ...] = field(default=())
    template: ClassVar[str] = "Chain Should Forward"
    methods: ClassVar[Sequence[str]] = ("mrr", "ndrpdr", "full")
    what: ClassVar[str] = "frame sizes, directions and numbers of pods"
    columns: ClassVar[Sequence[str]] = ("DATA PLANE", "PODS", "FRAME", "MORE")

    def rows(self) -> Iterator[Row]:
        """Every row, also those that stand in the suite beside it; size by size, so that data planes alternate."""
        usual = [each for each in self.series if not each.only]
        for frame in SIZES:
            yield from (Row(each, each.pods[0], frame) for each in usual)
        yield from (Row(each, each.pods[0], SMALL, bidirectional=True) for each in usual)
        for frame in (SMALL, LARGE):
            yield from (Row(each, more, frame) for each in usual if (more := each.pods[1]) is not None)
        yield from (Row(each, each.pods[0], frame) for each in self.series for frame in each.only)


class CostSweep(Sweep):
    """A suite of what is measured on a counted machine only: longer chains, and many flows."""

    template: ClassVar[str] = "Chain Should Have A Cost"
    methods: ClassVar[Sequence[str]] = ("sec-4.1", "counted", "64B")
    what: ClassVar[str] = "chains of three and four pods, and a thousand flows"
    columns: ClassVar[Sequence[str]] = ("DATA PLANE", "PODS", "MORE")

    def rows(self) -> Iterator[Row]:
        for pods in (3, 4):
            yield from (Row(each, pods, SMALL) for each in self.series)
        yield from (Row(each, each.pods[0], SMALL, flows=1000) for each in self.series)


def _forwarders(label: str, data_plane: str, *names: str, pods: int = 1) -> tuple[Series, ...]:
    """Rows that show what another application in the pods changes."""
    return tuple(Series(label, data_plane, (pods, None), each, (SMALL,)) for each in names)


_VIRTUAL = ("needs-sriov",)
_KERNEL, _EBPF = ("kernel-space",), ("ebpf",)

SWEEPS: Mapping[str, Sweep] = MappingProxyType(
    {
        "4.1.1_kernel_space": Sweep(
            "Kernel-space, non-accelerated networking model (draft section 4.1.1)",
            ("sec-4.1.1", "kernel-space"),
            (
                Series("Linux bridge", "linux-bridge"),
                Series("PTP", "ptp"),
                Series("MACVLAN", "macvlan"),
                Series("Routed", "routed"),
                Series("IPIP", "ipip"),
                Series("Docker", "docker"),
                Series("IPVLAN", "ipvlan"),
                Series("OVS kernel", "ovs-kernel"),
                Series("Service", "service"),
                Series("Policy", "routed-policy"),
            ),
        ),
        "4.1.2_user_space": Sweep(
            "User-space, kernel-bypass networking model (draft section 4.1.2)",
            ("sec-4.1.2", "user-space"),
            (
                Series("OVS-DPDK", "ovs-dpdk"),
                Series("OVS netdev", "ovs-netdev"),
                Series("Memif", "memif", (2, 4)),
                Series("VPP L2 patch", "vpp-l2patch"),
                Series("VPP bridge domain", "vpp-bridge-domain"),
                Series("VPP VRF", "vpp-vrf"),
                *_forwarders("OVS-DPDK", "ovs-dpdk", "testpmd-mac", "testpmd-macswap", "l2fwd"),
                *_forwarders("Memif", "memif", "testpmd-macswap", "l2fwd", pods=2),
            ),
        ),
        "4.1.3_ebpf": Sweep(
            "eBPF acceleration model (draft section 4.1.3)",
            ("sec-4.1.3", "ebpf"),
            (
                Series("TC redirect", "tc-redirect"),
                Series("TC redirect peer", "tc-redirect-peer"),
                Series("XDP redirect", "xdp-redirect"),
                Series("BPF object", "bpf-object"),
                Series("AF_XDP", "af-xdp"),
                Series("AF_XDP busy poll", "af-xdp-busy-poll"),
                Series("OVS AF_XDP", "ovs-afxdp"),
                *_forwarders("AF_XDP", "af-xdp", "testpmd-mac", "testpmd-macswap", "l2fwd"),
            ),
        ),
        "4.1.4_smart_nic": Sweep(
            "Smart-NIC acceleration model (draft section 4.1.4)",
            ("sec-4.1.4", "smart-nic"),
            (
                Series("SR-IOV", "sriov", tags=_VIRTUAL),
                Series("SR-IOV", "sriov", forwarder="kernel", tags=_VIRTUAL),
                Series("XDP offload", "xdp-offload", (0, None)),
            ),
        ),
        "4.1_cost": CostSweep(
            "Cost on a counted machine (draft sections 4.1.1 and 4.1.3)",
            (),
            (
                Series("Linux bridge", "linux-bridge", tags=_KERNEL),
                Series("PTP", "ptp", tags=_KERNEL),
                Series("MACVLAN", "macvlan", tags=_KERNEL),
                Series("Routed", "routed", tags=_KERNEL),
                Series("IPIP", "ipip", tags=_KERNEL),
                Series("Docker", "docker", tags=_KERNEL),
                Series("IPVLAN", "ipvlan", tags=_KERNEL),
                Series("Service", "service", tags=_KERNEL),
                Series("Policy", "routed-policy", tags=_KERNEL),
                Series("TC redirect", "tc-redirect", tags=_EBPF),
                Series("TC redirect peer", "tc-redirect-peer", tags=_EBPF),
                Series("XDP redirect", "xdp-redirect", tags=_EBPF),
            ),
        ),
        "4.1.5_model_combination": Sweep(
            "Model combination (draft section 4.1.5)",
            ("sec-4.1.5", "combination", "needs-sriov"),
            (
                Series("SR-IOV and OVS-DPDK", "sriov-ovs-dpdk", (2, 3)),
                Series("SR-IOV and VPP", "sriov-vpp", (2, 3)),
            ),
        ),
    }
)


def target(name: str) -> Path:
    """The file of this sweep."""
    return FOLDER / f"{name}_sweep.robot"


def suite(name: str) -> str:
    """The text of this sweep's file."""
    file = FOLDER / f"{name}.robot"
    beside = {test.name for test in TestSuite.from_file_system(file).all_tests} if file.exists() else set()
    sweep = SWEEPS[name]
    rows = [row for row in sweep.rows() if row.name not in beside]
    settings = (
        "*** Settings ***",
        f"Documentation    {sweep.about}:",
        f"...              {sweep.what}. Made by docs/make_sweeps.py from a list.",
        "",
        "Resource         ../../resources/networking_model.resource",
        "",
        f"Test Template    {sweep.template}",
        f"Test Tags        {'    '.join((*sweep.tags, *sweep.methods))}",
        "",
        "",
    )
    shown = [place for place, cell in enumerate(Sweep.columns) if cell in sweep.columns]
    cells = ([cell for place, cell in enumerate(row.cells) if place in shown] for row in rows)
    table = [
        ["*** Test Cases ***", *sweep.columns],
        *([row.name, *each] for row, each in zip(rows, cells, strict=True)),
    ]
    widths = [max(len(cells[place]) for cells in table if place < len(cells)) for place in range(max(map(len, table)))]
    head, *lines = (_padded(cells, widths) for cells in table)
    own = ([tag for tag in row.tags if tag not in sweep.methods] for row in rows)
    tagged = [f"{line}\n    [Tags]    {'    '.join(tags)}" for tags, line in zip(own, lines, strict=True)]
    return "\n".join((*settings, head, *tagged, ""))


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "    ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=False)).rstrip()


def main() -> None:
    for name in SWEEPS:
        target(name).write_text(suite(name), encoding="utf-8")


if __name__ == "__main__":
    main()
