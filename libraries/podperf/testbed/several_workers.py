"""Sets up chains on one or several workers. Each worker's part of the chain sends to the next part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from podperf.dataplanes.base import DataPlane, RunningDataPlane, Worker
from podperf.errors import Unavailable
from podperf.model import Chain, Direction, Entry


def set_up_along(
    workers: Sequence[Worker],
    data_plane: DataPlane,
    chain: Chain,
    directions: Sequence[Direction],
    tester_macs: tuple[str, str],
    undo: ExitStack,
) -> tuple[list[RunningDataPlane], Mapping[Direction, Entry]]:
    """The parts of the chain on their workers, from left to right, and the destination of frames.

    The last part on the way of the frames is set up first, because the part before it needs its MAC. So frames of the
    other direction cannot cross. `tester_macs` are the MACs of the tester's left and right port. Raises Unavailable for
    both directions at once, and for data planes whose parts cannot be joined by MAC alone.
    """
    direction, last = directions[0], len(workers) - 1
    if last and len(directions) > 1:
        raise Unavailable(
            f"{chain}: a chain on several workers is measured in one direction, as each part is set up towards the next"
        )
    ahead = direction is Direction.LEFT_TO_RIGHT
    peers = {
        "left": [tester_macs[0], *(worker.right.mac for worker in workers[:-1])],
        "right": [*(worker.left.mac for worker in workers[1:]), tester_macs[1]],
    }
    running: dict[int, RunningDataPlane] = {}
    entries: Mapping[Direction, Entry] = {}
    for place in reversed(range(last + 1)) if ahead else range(last + 1):
        left, right = (
            replace(port, peer_mac=peers[side][place])
            for side, port in (("left", workers[place].left), ("right", workers[place].right))
        )
        part = replace(workers[place], left=left, right=right)
        running[place] = data_plane.set_up(part, chain.parts[place], undo)
        entries = running[place].entries
        if not last:
            break
        entry = entries.get(direction, Entry())
        # A part without a MAC of its own forwards frames unchanged. They must be addressed to the next MAC behind it.
        mac = entry.mac or (right if ahead else left).peer_mac
        entries = {direction: replace(entry, mac=mac)}
        before = place - 1 if ahead else place + 1
        if 0 <= before <= last:
            if entry.address or entry.udp_port:
                raise Unavailable(f"{chain.data_plane} translates addresses: its parts cannot be joined by MAC alone")
            peers["right" if ahead else "left"][before] = mac
    return [running[place] for place in range(last + 1)], entries
