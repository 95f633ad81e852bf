"""The functions of a kernel and their addresses, as /proc/kallsyms has them. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from podperf.methods.functions import USER_SPACE

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
