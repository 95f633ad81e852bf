"""A chain along several workers: its part on each of them, set up towards the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from podperf.dataplanes.base import DataPlane, RunningDataPlane, Worker
from podperf.errors import Unavailable
from podperf.hosts.linux import configure, ip_json, static_neighbour
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

    The last part on the way of the frames is set up first, because the part before it needs its MAC. Frames of a second
    direction get the MACs of the parts when all parts stand. Without a second direction, such frames cross the last
    part only. The tester's learning frames do so, and a switch before the part learns the MACs of its pods.
    `tester_macs` are the MACs of the tester's left and right port. Raises Unavailable for data planes whose parts
    cannot be joined by MAC alone.
    """
    direction, last = directions[0], len(workers) - 1
    ahead = direction is Direction.LEFT_TO_RIGHT
    peers = {
        "left": [tester_macs[0], *(worker.right.mac for worker in workers[:-1])],
        "right": [*(worker.left.mac for worker in workers[1:]), tester_macs[1]],
    }
    on_the_way = range(last + 1) if ahead else range(last, -1, -1)
    running: dict[int, RunningDataPlane] = {}
    entries: Mapping[Direction, Entry] = {}
    for place in reversed(on_the_way):
        left, right = (
            replace(port, peer_mac=peers[side][place])
            for side, port in (("left", workers[place].left), ("right", workers[place].right))
        )
        part = replace(workers[place], left=left, right=right)
        running[place] = data_plane.set_up(part, chain.parts[place], undo)
        entries = running[place].entries
        if not last:
            break
        entry = _behind(running[place], direction, (right if ahead else left).peer_mac)
        entries = {direction: entry}
        before = place - 1 if ahead else place + 1
        if 0 <= before <= last:
            _refuse_addresses(chain, entry)
            peers["right" if ahead else "left"][before] = _mac(entry)
    if last and len(directions) > 1:
        back, towards = directions[1], peers["left" if ahead else "right"]
        entry = Entry()
        for place in on_the_way:
            assumed = towards[place]
            if place != on_the_way[0]:
                _refuse_addresses(chain, entry)
                _readdress(workers[place], running[place], chain, assumed, _mac(entry))
                towards[place] = _mac(entry)
            entry = _behind(running[place], back, towards[place])
            if entry.mac == assumed:  # of a part without pods, which forwards frames unchanged
                entry = replace(entry, mac=towards[place])
        entries = {**entries, back: entry}
    elif last:
        entries = {**_of_learning_frames(running[on_the_way[-1]], direction), **entries}
    return [running[place] for place in range(last + 1)], entries


def _behind(part: RunningDataPlane, direction: Direction, peer_mac: str) -> Entry:
    """The destination of frames that enter this part. A part without a MAC of its own forwards frames unchanged: they
    must be addressed to the next MAC behind it."""
    entry = part.entries.get(direction, Entry())
    return replace(entry, mac=entry.mac or peer_mac)


def _mac(entry: Entry) -> str:
    assert entry.mac is not None
    return entry.mac


def _refuse_addresses(chain: Chain, entry: Entry) -> None:
    if entry.address or entry.udp_port:
        raise Unavailable(f"{chain.data_plane} translates addresses: its parts cannot be joined by MAC alone")


def _readdress(worker: Worker, part: RunningDataPlane, chain: Chain, before: str, now: str) -> None:
    """Let each neighbour with the MAC `before` have the MAC `now`, on a worker and in its pods.

    Raises Unavailable if something else than the kernel sends the frames: it got the MAC at its start.
    """
    if before == now:
        return
    if part.parts:
        raise Unavailable(f"{chain}: its processes get the MACs of one direction at their start, so choose a direction")
    for host in (worker.host, *(pod.host for pod in worker.started)):
        known = [each for each in ip_json(host, "neigh", "show", assumed=[]) if each.get("lladdr") == before]
        if known:
            configure(host, *(static_neighbour(each["dev"], each["dst"], now) for each in known))


def _of_learning_frames(part: RunningDataPlane, direction: Direction) -> Mapping[Direction, Entry]:
    """The destination of frames against this direction, if it is a MAC of the part."""
    return {back: entry for back, entry in part.entries.items() if back is not direction and entry.mac is not None}
