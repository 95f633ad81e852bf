"""Instructions and use of memory a frame by function: what is taken off, and what differs between two variants. Pure
arithmetic.

A function's name is that of /proc/kallsyms: `nft_do_chain [nf_tables]` is of a module, `send_frames [bpf]` is a BPF
program. Counts of executions are whole, and a window has a power of two of frames. So sums and differences are exact.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from podperf.figures import count

Functions = Mapping[str, float]
"""Instructions a frame by function, or another quantity. Empty where they are not known."""

MEMORY: Mapping[str, str] = {"loads": "loads", "stores": "stores", "lines": "cache lines", "misses": "L1 misses"}
"""The quantities of the use of memory: their names in records, and in words."""

USER_SPACE = "(user space)"  # the instructions of all processes

TESTER = "(the tester's own work)"
# The sender runs in bpf_prog_test_run_xdp, which gives each of its calls a frame in a page of a page pool. If the
# system under test gives the page back to the pool, the pool hands it out again. If the system frees the page, the
# pool takes a new one from the kernel, in bulk, and a frame is made in it. All of that is work of the tester, although
# the system decides how much of it there is. The system itself gives the page back or frees it: that is its own work.
# The functions below the allocator of pages (get_page_from_freelist and others) serve both, and stay with the
# system.
_OF_TESTER = {
    *("bpf_prog_test_run_xdp", "bpf_test_run_xdp_live", "xdp_test_run_batch", "xdp_test_run_init_page"),
    "bpf_test_timer_continue",
    *("page_pool_alloc_pages", "page_pool_alloc_pages_slow", "page_pool_alloc_netmem", "page_pool_alloc_netmems"),
    *("page_pool_alloc_netmem_slow", "page_pool_alloc_netmems_slow", "page_pool_set_pp_info"),
    *("page_pool_refill_alloc_cache", "alloc_pages_bulk", "alloc_pages_bulk_noprof"),
}
_PROGRAMS_OF_TESTER = {
    f"{name} [bpf]" for name in ("send_frames", "send_unpaced", "sink_left", "sink_right", "count_refusals")
} | {"count_full_ring [bpf]"}  # the kernel knows 15 characters of a name

# A compiler adds this to the name of a function if it makes a variant or a part of it.
_BY_COMPILER = re.compile(r"\.(?:isra|constprop|part|cold|llvm|lto_priv)(?:\.\d+)*")
_MOST_PAIRS = 1_000_000  # of names that are compared, which takes a second; two kernels have some thousands
_LARGEST = 3  # functions that a sentence names
_ALIKE = 2.0  # a renamed function costs at most this multiple of its cost under the earlier name


@dataclass(frozen=True)
class FunctionOfOne:
    """A function that runs before, or after."""

    name: str
    ran_before: bool


@dataclass(frozen=True)
class FunctionChange:
    """A function in two variants: its names there, and its instructions a frame. A name is None where it is not run.

    `beside` is a function that runs in one variant only, and whose work this function does in the other one.
    """

    name_before: str | None
    name_after: str | None
    before: float
    after: float
    beside: FunctionOfOne | None = None

    @property
    def change(self) -> float:
        """Instructions a frame more than before."""
        return self.after - self.before

    @property
    def name(self) -> str:
        """`nft_do_chain`, `memset_erms, now memset`, `csum_fold (new)`, `csum_fold (gone)`, `memset, before also
        memset_erms`."""
        if self.name_before is None:
            return f"{self.name_after} (new)"
        if self.name_after is None:
            return f"{self.name_before} (gone)"
        if self.beside is not None:
            return f"{self.name_after}, {'before' if self.beside.ran_before else 'now'} also {self.beside.name}"
        renamed = self.name_before != self.name_after
        return f"{self.name_before}, now {self.name_after}" if renamed else self.name_before


Listing = Sequence[tuple[int, str, float]]
"""The address of each instruction of a function that ran, the instruction in words, and how often a frame runs it."""


@dataclass(frozen=True)
class Profile:
    """The work for a frame, by function: instructions, and each quantity of MEMORY. Empty where it is not known.

    If a user asks for the detail, `stacks` has the instructions by stack of calls (`a;b;c`: those of c, which b has
    called, which a has called), and `listings` the code of each function.
    """

    functions: Functions = field(default_factory=dict)
    memory: Mapping[str, Functions] = field(default_factory=dict)
    stacks: Functions = field(default_factory=dict)
    listings: Mapping[str, Listing] = field(default_factory=dict)

    def without(self, other: Profile) -> Profile:
        """This profile with all of `other` taken off. The detail stays, as a call cannot be left half."""
        memory = {name: without(found, other.memory.get(name, {})) for name, found in self.memory.items()}
        return replace(self, functions=without(self.functions, other.functions), memory=memory)


def without(functions: Functions, taken_off: Functions) -> Functions:
    """The functions with the instructions of `taken_off` taken off. One of which nothing is left has 0: it has run."""
    names = dict.fromkeys([*functions, *taken_off])
    return {name: functions.get(name, 0.0) - taken_off.get(name, 0.0) for name in names}


def is_testers(function: str) -> bool:
    """Whether a function does the tester's own work, and none of the system under test."""
    return function == TESTER or function in _PROGRAMS_OF_TESTER or _stem(function) in _OF_TESTER


def with_tester_apart(functions: Functions) -> Functions:
    """The functions of the system under test, and TESTER for those of the tester together, if one of them ran."""
    own = [amount for name, amount in functions.items() if is_testers(name)]
    others = {name: amount for name, amount in functions.items() if not is_testers(name)}
    return {**others, TESTER: sum(own)} if own else others


def most_first(functions: Functions) -> list[tuple[str, float]]:
    """The functions, those with the most instructions first."""
    return sorted(functions.items(), key=lambda each: (-each[1], each[0]))


def differences(before: Functions, after: Functions) -> list[FunctionChange]:
    """The functions whose instructions are not the same, the largest difference first.

    A function that has another name after is one row if its names tell: see `_renamed`. So is one that has taken the
    work of another one, or given work to it. The sum of the changes is the difference of the sums.
    """
    both = {name: FunctionChange(name, name, before[name], after[name]) for name in before if name in after}
    found = list[FunctionChange]()
    gone = {name: before[name] for name in before if name not in after}
    new = {name: after[name] for name in after if name not in before}
    for old, now in _renamed(gone, new):
        found.append(FunctionChange(old, now, gone.pop(old), new.pop(now)))
    grown = {name: each.change for name, each in both.items() if each.change > 0}
    for old, now in _unambiguous(gone, grown, _work_of(gone, grown)):
        both[now] = replace(both[now], before=before[now] + gone.pop(old), beside=FunctionOfOne(old, ran_before=True))
    shrunk = {name: each.change for name, each in both.items() if each.change < 0 and each.beside is None}
    for own, further in _unambiguous(shrunk, new, _work_of(shrunk, new)):
        beside = FunctionOfOne(further, ran_before=False)
        both[own] = replace(both[own], after=after[own] + new.pop(further), beside=beside)
    found += both.values()
    found += [FunctionChange(name, None, amount, 0.0) for name, amount in gone.items()]
    found += [FunctionChange(None, name, 0.0, amount) for name, amount in new.items()]
    changed = (each for each in found if each.change)
    return sorted(changed, key=lambda each: (-abs(each.change), each.name))


def _renamed(gone: Functions, new: Functions) -> Iterator[tuple[str, str]]:
    """Pairs of one function under two names.

    The names differ in the module, in what a compiler adds, in leading underscores, or one has further words
    (`memset_erms`, `memset`). In the last case they must cost about the same. A name that could be of several pairs is
    of none.
    """
    gone_left, new_left = dict(gone), dict(new)
    for alike in (_same_stem, _further_words(gone, new)):
        pairs = list(_unambiguous(gone_left, new_left, alike))
        for old, now in pairs:
            del gone_left[old], new_left[now]
        yield from pairs


def _unambiguous(
    gone: Collection[str], new: Collection[str], alike: Callable[[str, str], bool]
) -> Iterator[tuple[str, str]]:
    """The pairs of names that are alike, without names that could be of several pairs. None if there are more than
    _MOST_PAIRS to look at."""
    if len(gone) * len(new) > _MOST_PAIRS:
        return
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
        return long.startswith(f"{short}_") and _about_same(gone[old], new[now])

    return alike


def _work_of(one: Functions, other: Functions) -> Callable[[str, str], bool]:
    """Whether names are alike, and so are the amounts: those of a function, and the change of another one."""
    further = _further_words(one, other)
    return lambda old, now: further(old, now) or (_same_stem(old, now) and _about_same(one[old], other[now]))


def _about_same(one: float, other: float) -> bool:
    less, more = sorted((abs(one), abs(other)))
    return more <= _ALIKE * less


@lru_cache(maxsize=10_000)
def _stem(name: str) -> str:
    """The name without module, without what a compiler adds, and without leading underscores."""
    plain = _BY_COMPILER.sub("", name.partition(" [")[0])
    return plain.lstrip("_") or plain


def rest(figure: float, functions: Iterable[float]) -> float:
    """The instructions of a figure that no function has. Counts are whole and times are rounded, so it is seldom 0."""
    return figure - sum(functions)


def instructions(amount: float) -> str:
    """`9 936.375`. A window has 64 frames, so a figure is a multiple of a 64th or of a 128th."""
    return f"{amount:,.3f}".replace(",", " ")


def signed(amount: float) -> str:
    """`+69.000`, `-162.016`, `0.000`."""
    rounded = round(amount, 3)
    return f"{'+' if rounded > 0 else ''}{instructions(rounded)}" if rounded else "0.000"


def in_words(changes: Sequence[FunctionChange]) -> str:
    """The functions with the largest changes, and the sum of all others: `nft_do_chain [nf_tables] +69.000; 12 other
    functions -4.125`. Empty where no function differs."""
    words = [f"{each.name} {signed(each.change)}" for each in changes[:_LARGEST]]
    if others := changes[_LARGEST:]:
        words.append(f"{count(len(others), 'other function')} {signed(sum(each.change for each in others))}")
    return "; ".join(words)
