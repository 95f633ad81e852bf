"""The detail that QEMU's plug-in writes if it is asked for: who calls whom, and the instructions in words. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from podperf.errors import PodperfError
from podperf.methods.functions import USER_SPACE, Functions, Listing

_TARGET = re.compile(r"^(?:call|j)\w* 0x([0-9a-f]+)$")  # a call or a jump to an address


@dataclass(frozen=True)
class CallNode:
    """A function in a stack of calls: the addresses of the block that called it, and of its first block."""

    parent: int
    caller: int
    entry: int


@dataclass(frozen=True)
class Detail:
    """The output of the plug-in with detail=on, in the chosen windows together (plugin/detail.h).

    `executions` has the node, and the address and the length of each block that ran in it. `code` has the address and
    the words of each instruction of a block. The node 0 is in no function.
    """

    nodes: Mapping[int, CallNode]
    executions: Mapping[tuple[int, int, int], int]
    code: Mapping[tuple[int, int], Sequence[tuple[int, str]]]


OF_DETAIL = {"node", "at", "code"}
"""The words that lines of the detail begin with."""

FunctionAt = Callable[[int], str]
"""The function with the instruction at an address."""


def read_detail(text: str, chosen: Collection[int]) -> Detail:
    """The detail in a file of the plug-in, empty without. PodperfError for a text of another form."""
    nodes, code = dict[int, CallNode](), dict[tuple[int, int], Sequence[tuple[int, str]]]()
    executions: dict[tuple[int, int, int], int] = defaultdict(int)
    try:
        for line in text.splitlines():
            kind, _, others = line.partition(" ")
            if kind == "node":
                number, parent, caller, entry = others.split()
                nodes[int(number)] = CallNode(int(parent), int(caller, 16), int(entry, 16))
            elif kind == "at":
                window, node, address, instructions, times = others.split()
                if int(window) in chosen:
                    executions[int(node), int(address, 16), int(instructions)] += int(times)
            elif kind == "code":
                block, *lines = others.split("\t")
                address, instructions = block.split()
                parts = [each.partition(" ") for each in lines]
                code[int(address, 16), int(instructions)] = [(int(at, 16), words) for at, _, words in parts]
    except ValueError as error:
        raise PodperfError(f"QEMU's plug-in wrote what is no detail of calls: {line[:100]!r}") from error
    return Detail(nodes, executions, code)


def stacks_of(detail: Detail, frames: int, function_at: FunctionAt) -> Functions:
    """Instructions a frame by stack of calls: the mean of this number of frames.

    A function that ends by a jump to another one is that one's caller, too. PodperfError for calls in a ring.
    """
    known: dict[int, tuple[str, ...]] = {0: ()}

    def path(number: int) -> tuple[str, ...]:
        way = []
        while number not in known:
            way.append(number)
            number = detail.nodes[number].parent
            if len(way) > len(detail.nodes):
                raise PodperfError("QEMU's plug-in wrote calls that have no beginning")
        for each in reversed(way):
            node = detail.nodes[each]
            above = _with(known[node.parent], function_at(node.caller))
            entry = function_at(node.entry)
            known[each] = _with(above, entry) if entry == USER_SPACE else (*above, entry)
        return known[way[0] if way else number]

    found: dict[str, int] = defaultdict(int)
    for (number, address, instructions), times in detail.executions.items():
        found[";".join(_with(path(number), function_at(address)))] += instructions * times
    return {stack: total / frames for stack, total in sorted(found.items())}


def _with(stack: tuple[str, ...], function: str) -> tuple[str, ...]:
    return stack if stack[-1:] == (function,) else (*stack, function)


def _with_target(said: str, function: str, function_at: FunctionAt) -> str:
    """`callq 0xffffffff8117b180 <__cond_resched>`: with the name of another function that a call or a jump leads to."""
    target = _TARGET.search(said)
    name = function_at(int(target[1], 16)) if target else function
    return said if name == function else f"{said} <{name}>"


def listings_of(detail: Detail, frames: int, function_at: FunctionAt) -> Mapping[str, Listing]:
    """The instructions of each kernel function that ran, in the order of their addresses."""
    words, times = dict[int, str](), defaultdict[int, int](int)
    for (_, address, instructions), executions in detail.executions.items():
        for at, said in detail.code.get((address, instructions), ()):
            words[at] = _with_target(said, function_at(at), function_at)
            times[at] += executions
    found: dict[str, list[tuple[int, str, float]]] = defaultdict(list)
    for at in sorted(words):
        found[function_at(at)].append((at, words[at], times[at] / frames))
    found.pop(USER_SPACE, None)
    return dict(found)
