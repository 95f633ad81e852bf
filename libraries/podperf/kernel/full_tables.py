"""What the kernel dropped or evicted because one of its tables was full. Such a limit is a count and not a speed.

The kernel has counters of connection tracking in each network namespace (/proc/net/stat/nf_conntrack), and of the
neighbour tables once for the machine (arp_cache, ndisc_cache), which only the first network namespace shows. Each file
has a line of names, and a line of hexadecimal numbers for each CPU.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from podperf.hosts.base import Host, ProgramPlace

CONNECTIONS_LIMIT = "/proc/sys/net/netfilter/nf_conntrack_max"
_LINE = re.compile(r"^(/proc/[^:\n]+):(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class KernelTable:
    """A table of the kernel: its name, its counters, the columns that count, and the files of its limit and of the
    number of its entries."""

    name: str
    file: str
    dropped: Sequence[str]
    evicted: Sequence[str]
    limit: str
    entries: str | None = None

    @property
    def setting(self) -> str:
        """The name of the limit for sysctl(8)."""
        return self.limit.removeprefix("/proc/sys/").replace("/", ".")


CONNECTIONS = KernelTable(
    "tracked connections",
    "/proc/net/stat/nf_conntrack",
    ("drop", "insert_failed"),
    ("early_drop",),
    CONNECTIONS_LIMIT,
    "/proc/sys/net/netfilter/nf_conntrack_count",
)
NEIGHBOURS = KernelTable(
    "IPv4 neighbours",
    "/proc/net/stat/arp_cache",
    ("table_fulls",),
    (),
    "/proc/sys/net/ipv4/neigh/default/gc_thresh3",
)
NEIGHBOURS_6 = KernelTable(
    "IPv6 neighbours",
    "/proc/net/stat/ndisc_cache",
    ("table_fulls",),
    (),
    "/proc/sys/net/ipv6/neigh/default/gc_thresh3",
)


@dataclass(frozen=True)
class Place:
    """A network on a worker or on a node of a cluster, by its name for users, and the tables whose counters are read
    there."""

    name: str
    host: ProgramPlace
    tables: Sequence[KernelTable]


@dataclass(frozen=True)
class FullTable:
    """The counters of a table at this place: entries that it dropped and evicted so far, or in a test.

    `limit` is the largest number of entries, and `entries` is their number at the end. None: not known.
    """

    place: str
    table: str
    setting: str
    limit: int | None
    dropped: int
    evicted: int
    entries: int | None = None


def read_tables(places: Sequence[Place]) -> list[FullTable]:
    """The counts of each table at each place so far. A kernel without such a table has no counts."""
    return [each for place in places for each in _read(place)]


def _read(place: Place) -> Iterator[FullTable]:
    files = [file for table in place.tables for file in (table.file, table.limit, table.entries) if file]
    said = place.host.ask("grep", "-H", "", "/dev/null", *files, check=False, assumed="").stdout
    lines: dict[str, list[str]] = {}
    for file, line in _LINE.findall(said):
        lines.setdefault(file, []).append(line)
    for table in place.tables:
        if counts := sums(lines.get(table.file, [])):
            dropped, evicted = (sum(counts.get(name, 0) for name in names) for names in (table.dropped, table.evicted))
            limit, entries = (_number(lines.get(file or "", [])) for file in (table.limit, table.entries))
            yield FullTable(place.name, table.name, table.setting, limit, dropped, evicted, entries)


def _number(lines: Sequence[str]) -> int | None:
    return int(lines[0]) if lines and lines[0].isdigit() else None


def sums(lines: Sequence[str]) -> Mapping[str, int]:
    """The sum over all CPUs of each column of a file of counters. Empty if the file is not of this form."""
    if len(lines) < 2:
        return {}
    names, *rows = (line.split() for line in lines)
    try:
        numbers = [[int(word, 16) for word in row] for row in rows]
        return dict(zip(names, map(sum, zip(*numbers, strict=True)), strict=True))
    except ValueError:
        return {}


def since(before: Sequence[FullTable], now: Sequence[FullTable], asked: Collection[str] = ()) -> list[FullTable]:
    """The tables that dropped or evicted something between two readings, with the numbers of that time. Those at the
    places `asked` for are there in any case."""
    earlier = {(each.place, each.table): each for each in before}
    found = []
    for each in now:
        first = earlier.get((each.place, each.table))
        dropped = each.dropped - (first.dropped if first else 0)
        evicted = each.evicted - (first.evicted if first else 0)
        if dropped > 0 or evicted > 0 or each.place in asked:
            found.append(replace(each, dropped=max(0, dropped), evicted=max(0, evicted)))
    return found


def connections_limit(host: Host) -> int | None:
    """The most connections that this host's kernel tracks in a network. None if it tracks none yet."""
    said = host.ask("cat", CONNECTIONS_LIMIT, check=False, assumed="").stdout.strip()
    return int(said) if said.isdigit() else None
