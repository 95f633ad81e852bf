"""How much longer a Job of all pairs of nodes takes because pairs with a common node wait for each other. Simulated.

Usage: `.venv/bin/python benchmarks/waiting_of_pairs.py [NODES] [SPREAD]`, by default 200 nodes, and times of 0.9 to 1.1
(a SPREAD of 0.1). NODES / 2 runs are made at the same time, in the order of a Job. A run takes its left node, and then
its right one. It waits for a node until the runs that asked before have left it. Starting a pod takes no time.
"""

from __future__ import annotations

import heapq
import random
import sys
from collections import deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from run_command.job import pairs

Run = tuple[str, str]


def time_of_all(nodes: int, spread: float) -> tuple[float, int]:
    """The time of the Job, if a pair takes 1, and the number of pairs."""
    chance = random.Random(23)
    left = deque(pairs([f"node{each}" for each in range(1, nodes + 1)]))
    amount = len(left)
    waiting: dict[str, deque[tuple[Run, int]]] = {}  # the runs that ask for a taken node, and the side they ask for
    ends: list[tuple[float, Run]] = []
    now = 0.0

    def ask(run: Run, side: int) -> None:
        """Take a free node, and then the other one. Otherwise wait for it."""
        while side < 2:
            if run[side] in waiting:
                waiting[run[side]].append((run, side))
                return
            waiting[run[side]] = deque()
            side += 1
        heapq.heappush(ends, (now + chance.uniform(1 - spread, 1 + spread), run))

    def leave(node: str) -> None:
        """Give the node to the run that asked first."""
        others = waiting.pop(node)
        if others:
            run, side = others.popleft()
            ask(run, side)
            waiting[node].extend(others)

    for _ in range(nodes // 2):
        ask(left.popleft(), 0)
    while ends:
        now, ended = heapq.heappop(ends)
        for each in ended:
            leave(each)
        if left:
            ask(left.popleft(), 0)
    return now, amount


def main(nodes: int, spread: float) -> int:
    """Print the figures."""
    took, amount = time_of_all(nodes, spread)
    best = amount / (nodes // 2)
    print(f"{nodes} nodes, {amount} pairs, each takes {1 - spread:g} to {1 + spread:g}: {took:.0f}, at best {best:.0f}")
    print(f"    the Job takes {took / best:.2f} times as long as without waiting")
    return 0


if __name__ == "__main__":
    words = dict(enumerate(sys.argv))
    sys.exit(main(int(words.get(1, 200)), float(words.get(2, 0.1))))
