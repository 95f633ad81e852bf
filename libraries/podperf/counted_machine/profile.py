"""Where the instructions of a closed loop went, by function: the counts of QEMU's plug-in and the guest's symbols."""

from __future__ import annotations

import base64
import re
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from podperf.counted_machine.boot import CountedMachine
from podperf.counted_machine.detail import OF_DETAIL, Detail, listings_of, read_detail, stacks_of
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.methods.functions import MEMORY, USER_SPACE, Functions, Profile
from podperf.model import Loop

_KERNEL = 1 << 63  # addresses from here up are the kernel's
UNKNOWN = "(unknown kernel code)"
_END_OF_TEXT = "_etext"
_BPF_PROGRAM = re.compile(r"bpf_prog_[0-9a-f]{16}_(.+)")


@dataclass(frozen=True)
class Symbols:
    """The functions of a kernel in the order of their addresses."""

    addresses: tuple[int, ...]
    names: tuple[str, ...]

    def function(self, address: int) -> str:
        """The function with the instruction at this address, or USER_SPACE, or UNKNOWN."""
        if address < _KERNEL:
            return USER_SPACE
        index = bisect_right(self.addresses, address) - 1
        return self.names[index] if index >= 0 else UNKNOWN


def read_symbols(*texts: str) -> Symbols:
    """The functions of texts that have the form of /proc/kallsyms.

    BPF programs are known by their name without the digest, which changes with every change of the program. Of several
    names of one address the first by the alphabet counts that does not begin with an underscore.
    """
    best: dict[int, str] = {}
    for address, name in _functions(line for text in texts for line in text.splitlines()):
        there = best.get(address)
        if there is None or _rank(name) < _rank(there):
            best[address] = name
    ordered = sorted(best)
    return Symbols(tuple(ordered), tuple(best[each] for each in ordered))


def _functions(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    for line in lines:
        address, kind, name, *module = line.split()
        if kind not in "tTwW":
            continue
        if name == _END_OF_TEXT:
            yield int(address, 16), UNKNOWN  # what is behind it has symbols of its own: modules, and BPF programs
            continue
        if module == ["[bpf]"] and (program := _BPF_PROGRAM.fullmatch(name)):
            name = program[1]
        yield int(address, 16), " ".join([name, *module])


def _rank(name: str) -> tuple[bool, str]:
    return name.startswith("_"), name


@dataclass(frozen=True)
class Block:
    """Instructions that QEMU translated at once, how often all of them ran in a window, and their use of memory.

    `lines` are the cache lines that no block had touched before in the same burst. `misses` are those of the plug-in's
    model of a cache.
    """

    address: int
    instructions: int
    executions: int
    loads: int = 0
    stores: int = 0
    lines: int = 0
    misses: int = 0


Windows = Mapping[int, Sequence[Block]]  # by the number of the window, from 0


def read_executions(text: str, chosen: Collection[int] | None = None) -> Windows:
    """The windows in a file of the plug-in, those that are not `chosen` without their blocks, because reading all takes
    a fifth of a second. PodperfError for a text of another form."""
    windows: dict[int, list[Block]] = {}
    blocks: list[Block] | None = []
    try:
        for line in text.splitlines():
            first, *others = line.split()
            if first in OF_DETAIL:
                break
            if first == "window":
                (number,) = map(int, others)
                found = windows.setdefault(number, [])
                blocks = found if chosen is None or number in chosen else None
            elif blocks is not None:
                instructions, executions, loads, stores, lines, misses = map(int, others)
                blocks.append(Block(int(first, 16), instructions, executions, loads, stores, lines, misses))
    except ValueError as error:
        raise PodperfError(f"QEMU's plug-in wrote what is no count of executions: {line[:100]!r}") from error
    return windows


def profile_of(windows: Windows, chosen: Collection[int], symbols: Symbols) -> Profile:
    """The work for a frame, by function: the mean of the chosen windows. PodperfError if the file lacks one of them.

    The use of memory is that of the chosen windows without the first of the loop: there the plug-in's cache was empty.
    """
    if lacking := [str(each) for each in chosen if each not in windows]:
        raise PodperfError(f"QEMU's plug-in counted {len(windows)} windows, and not number {', '.join(lacking)}")
    warm = {number: windows[number] for number in chosen if number > 0}
    return Profile(
        _by_function(
            [windows[number] for number in chosen], symbols, lambda block: block.instructions * block.executions
        ),
        {name: _by_function(list(warm.values()), symbols, attrgetter(name)) for name in MEMORY} if warm else {},
    )


def _by_function(windows: Sequence[Sequence[Block]], symbols: Symbols, amount: Callable[[Block], int]) -> Functions:
    """An amount a frame by function, the mean of these windows, without functions that have none of it."""
    found: dict[str, int] = defaultdict(int)
    for blocks in windows:
        for block in blocks:
            found[symbols.function(block.address)] += amount(block)
    return {name: total / (len(windows) * Loop.WINDOW) for name, total in sorted(found.items()) if total}


_MOST = 32 * 2**20  # bytes of a kernel's symbols; 155 000 of them take 7 million
_SECONDS = 120.0  # most, for a guest that lists its 155 000 symbols on a busy host
# Symbols of the kernel itself stay where they are. Those of modules and BPF programs come and go.
_OF_KERNEL = "grep -v '\\[' /proc/kallsyms | grep ' [tTwW] ' | gzip -1 | base64"
_OF_OTHERS = "grep '\\[' /proc/kallsyms || true"


class Profiler:
    """The functions of a machine that is up, and what earlier runs know of it. A user may have `changed` the machine
    since its boot. `inside` is its host."""

    def __init__(self, machine: CountedMachine, inside: Host, *, changed: bool = False) -> None:
        self.start = machine.start
        self._snapshot, self._changed = machine.snapshot, changed
        self._plugin, self._inside = machine.plugin, inside
        self._kernel: str | None = None

    def once(self, what: str, read: Callable[[], str]) -> str:
        """As `Snapshot.once`. A machine that a user has changed is read each time."""
        return read() if self._changed else self._snapshot.once(what, read)

    def has(self, what: str) -> bool:
        """Whether `once` would not read."""
        return not self._changed and self._snapshot.has(what)

    def counts(self, windows: Collection[int]) -> tuple[Windows, Detail]:
        """The counts of the plug-in in these windows of the last closed loop, and the detail, which is empty unless it
        is asked for. Unavailable with the reason where nothing was counted."""
        path = self._plugin.executions
        if path is None:
            raise Unavailable(self._plugin.missing or "QEMU has no plug-in")
        text = self._written(path)
        # Each look through the text takes as long as it is, so nobody looks for a detail that was not asked for.
        return read_executions(text, windows), read_detail(text if self._plugin.detail else "", windows)

    @staticmethod
    def _written(path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise Unavailable(f"QEMU's plug-in wrote no counts to {path}: {error.strerror}") from error

    def symbols(self) -> Symbols:
        """The functions that the machine has now. Unavailable with the reason where it tells none: its kernel may be
        anybody's."""
        others = self._inside.ask("sh", "-c", _OF_OTHERS, timeout=_SECONDS).stdout
        try:
            if self._kernel is None:
                self._kernel = _unpacked(self._snapshot.once("symbols of the kernel", self._symbols_of_kernel))
            return read_symbols(self._kernel, others)
        except (ValueError, zlib.error) as error:
            raise Unavailable(f"the counted machine's /proc/kallsyms has no list of functions ({error})") from error

    def _symbols_of_kernel(self) -> str:
        return self._inside.ask("sh", "-c", _OF_KERNEL, timeout=_SECONDS).stdout


def _unpacked(packed: str) -> str:
    """The text of a packed list. ValueError or zlib.error if there is none: a few bytes could unpack to gigabytes."""
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)  # with gzip's header
    text = unpacker.decompress(base64.b64decode(packed), _MOST)
    if not unpacker.eof:
        raise ValueError(f"it is cut, or has more than {_MOST} bytes")
    return text.decode()


class ChainProfiler:
    """The functions of a chain that stands. Its programs, and those of its tester, keep their addresses."""

    def __init__(self, machine: Profiler) -> None:
        self._machine = machine
        self._symbols: Symbols | None = None

    def profile(self, windows: Collection[int]) -> Profile:
        """The work for a frame, by function: the mean of these windows of the last closed loop.

        Unavailable with the reason where nothing was counted.
        """
        counts, detail = self._machine.counts(windows)
        if self._symbols is None:
            self._symbols = self._machine.symbols()
        function, frames = self._symbols.function, len(windows) * Loop.WINDOW
        stacks, listings = stacks_of(detail, frames, function), listings_of(detail, frames, function)
        return replace(profile_of(counts, windows, self._symbols), stacks=stacks, listings=listings)
