"""The nodes that a pod of an indexed Job measures. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence

from podperf.errors import PodperfError

_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def nodes_of_index(nodes: Sequence[str], number: int, index: int) -> tuple[str, ...]:
    """The one node, or the pair of nodes, that the pod with this index measures (`number`: 1 or 2).

    The nodes of a pair are in the order of `nodes`.
    """
    if len(set(nodes)) < len(nodes):
        raise PodperfError(f"the list of nodes names one of them twice: {' '.join(nodes)}")
    for each in nodes:
        if not _NAME.fullmatch(each):  # it becomes a part of the name of a folder
            raise PodperfError(f"{each[:100]!r} is no name of a node")
    every = [(each,) for each in nodes] if number == 1 else [*pairs(nodes)]
    what = "node" if number == 1 else "pair"
    if not 0 <= index < len(every):
        raise PodperfError(
            f"the pod's index is {index}, and {len(nodes)} nodes have {len(every)} {what}s: set `completions` of the "
            f"Job to {len(every)}"
        )
    return every[index]


def pairs(nodes: Sequence[str]) -> list[tuple[str, str]]:
    """Each pair of nodes once, in rounds. A round is half as many pairs as there are nodes, without a common node.

    A Job starts its pods in the order of their index. So pods that run at the same time mostly have no common node.
    (This is the circle method of tournaments: the first node stays, and the others turn.)
    """
    if not nodes:
        return []
    order = {name: number for number, name in enumerate(nodes)}
    first, *others = [*nodes, None] if len(nodes) % 2 else nodes
    found = []
    for _ in others:
        circle = [first, *others]
        for left, right in zip(circle[: len(circle) // 2], reversed(circle), strict=False):
            if left is not None and right is not None:
                found.append((left, right) if order[left] < order[right] else (right, left))
        others = [*others[-1:], *others[:-1]]
    return found
