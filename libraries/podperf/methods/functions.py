"""Instructions a frame by function: what is taken off, and what differs between two variants. Pure arithmetic.

A function's name is that of /proc/kallsyms: `nft_do_chain [nf_tables]` is of a module, `send_frames [bpf]` is a BPF
program. Counts of executions are whole, and a window has a power of two of frames. So sums and differences are exact.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

Functions = Mapping[str, float]
"""Instructions a frame by function. Empty where they are not known."""

USER_SPACE = "(user space)"  # the instructions of all processes

# A compiler adds this to the name of a function if it makes a variant or a part of it.
_BY_COMPILER = re.compile(r"\.(?:isra|constprop|part|cold|llvm|lto_priv)(?:\.\d+)*")
_MOST_PAIRS = 1_000_000  # of names that are compared, which takes a second; two kernels have some thousands
_ALIKE = 2.0  # a renamed function costs at most so many times what it cost under its earlier name


@dataclass(frozen=True)
class FunctionChange:
    """A function in two variants: its names there, and its instructions a frame. A name is None where it is not run."""

    name_before: str | None
    name_after: str | None
    before: float
    after: float

    @property
    def change(self) -> float:
        """Instructions a frame more than before."""
        return self.after - self.before

    @property
    def name(self) -> str:
        """`nft_do_chain`, `memset_erms, now memset`, `csum_fold (new)`, `csum_fold (gone)`."""
        if self.name_before is None:
            return f"{self.name_after} (new)"
        if self.name_after is None:
            return f"{self.name_before} (gone)"
        renamed = self.name_before != self.name_after
        return f"{self.name_before}, now {self.name_after}" if renamed else self.name_before


def without(functions: Functions, taken_off: Functions) -> Functions:
    """The functions with the instructions of `taken_off` taken off, without those of which nothing is left."""
    names = dict.fromkeys([*functions, *taken_off])
    left = {name: functions.get(name, 0.0) - taken_off.get(name, 0.0) for name in names}
    return {name: amount for name, amount in left.items() if amount}


def most_first(functions: Functions) -> list[tuple[str, float]]:
    """The functions, those with the most instructions first."""
    return sorted(functions.items(), key=lambda each: (-each[1], each[0]))


def differences(before: Functions, after: Functions) -> list[FunctionChange]:
    """The functions whose instructions are not the same, the largest difference first.

    A function that has another name after is one row if its names tell: see `_renamed`. The sum of the changes is the
    difference of the sums.
    """
    found = [FunctionChange(name, name, before[name], after[name]) for name in before if name in after]
    gone = {name: before[name] for name in before if name not in after}
    new = {name: after[name] for name in after if name not in before}
    for old, now in _renamed(gone, new):
        found.append(FunctionChange(old, now, gone.pop(old), new.pop(now)))
    found += [FunctionChange(name, None, amount, 0.0) for name, amount in gone.items()]
    found += [FunctionChange(None, name, 0.0, amount) for name, amount in new.items()]
    changed = (each for each in found if each.change)
    return sorted(changed, key=lambda each: (-abs(each.change), each.name))


def _renamed(gone: Functions, new: Functions) -> Iterator[tuple[str, str]]:
    """Pairs of one function under two names.

    The names differ in the module, in what a compiler adds, in leading underscores, or one has further words
    (`memset_erms`, `memset`). In the last case they must cost about the same. A name that could be of several pairs is
    of none. No pair is looked for if there are more than _MOST_PAIRS.
    """
    if len(gone) * len(new) > _MOST_PAIRS:
        return
    gone_left, new_left = dict(gone), dict(new)
    for alike in (_same_stem, _further_words(gone, new)):
        pairs = list(_unambiguous(gone_left, new_left, alike))
        for old, now in pairs:
            del gone_left[old], new_left[now]
        yield from pairs


def _unambiguous(
    gone: Collection[str], new: Collection[str], alike: Callable[[str, str], bool]
) -> Iterator[tuple[str, str]]:
    partners: dict[str, list[str]] = defaultdict(list)
    for old in gone:
        for now in new:
            if alike(old, now):
                partners[old].append(now)
    chosen = Counter(now for several in partners.values() for now in several)
    for old, several in partners.items():
        if len(several) == 1 and chosen[several[0]] == 1:
            yield old, several[0]


def _same_stem(old: str, now: str) -> bool:
    return _stem(old) == _stem(now)


def _further_words(gone: Functions, new: Functions) -> Callable[[str, str], bool]:
    def alike(old: str, now: str) -> bool:
        short, long = sorted((_stem(old), _stem(now)), key=len)
        less, more = sorted((abs(gone[old]), abs(new[now])))
        return long.startswith(f"{short}_") and more <= _ALIKE * less

    return alike


@lru_cache(maxsize=10_000)
def _stem(name: str) -> str:
    """The name without module, without what a compiler adds, and without leading underscores."""
    plain = _BY_COMPILER.sub("", name.partition(" [")[0])
    return plain.lstrip("_") or plain


def rest(figure: float, functions: Iterable[float]) -> float:
    """The instructions of a figure that no function has. Counts are whole and times are rounded, so it is seldom 0."""
    return figure - sum(functions)
