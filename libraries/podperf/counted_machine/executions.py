"""What QEMU's plug-in counted in the windows of a closed loop (plugin/executions.c), and its sum by function. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from podperf.counted_machine.symbols import Symbols
from podperf.errors import PodperfError
from podperf.methods.functions import Functions
from podperf.model import Loop


@dataclass(frozen=True)
class Block:
    """Instructions that QEMU translated at once, and how often all of them ran in a window."""

    address: int
    instructions: int
    executions: int


Windows = Mapping[int, Sequence[Block]]  # by the number of the window, from 0


def read_executions(text: str) -> Windows:
    """The windows in a file of the plug-in. PodperfError for a text of another form."""
    windows: dict[int, list[Block]] = {}
    blocks: list[Block] = []
    try:
        for line in text.splitlines():
            first, second, *third = line.split()
            if first == "window":
                blocks = windows.setdefault(int(second), [])
            else:
                (executions,) = third
                blocks.append(Block(int(first, 16), int(second), int(executions)))
    except ValueError as error:
        raise PodperfError(f"QEMU's plug-in wrote what is no count of executions: {line[:100]!r}") from error
    return windows


def by_function(windows: Windows, chosen: Collection[int], symbols: Symbols) -> Functions:
    """Instructions a frame by function, the mean of the chosen windows. PodperfError if the file lacks one of them."""
    if lacking := [str(each) for each in chosen if each not in windows]:
        raise PodperfError(f"QEMU's plug-in counted {len(windows)} windows, and not number {', '.join(lacking)}")
    found: dict[str, int] = defaultdict(int)
    for number in chosen:
        for block in windows[number]:
            found[symbols.function(block.address)] += block.instructions * block.executions
    return {name: amount / (len(chosen) * Loop.WINDOW) for name, amount in sorted(found.items())}
