"""Measures trials between two ends of the tester: one process sends, and the other one counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from podperf.kubernetes.ports import OLDER_IMAGE, TesterEnd
from podperf.kubernetes.tester_objects import SIDES
from podperf.model import CpuTime, Direction, Entry, Trial, TrialResult
from podperf.testers.answers import real, whole, words
from podperf.testers.software import request_line, trial_result

SETTLE = 0.2  # seconds without a frame after which the rest counts as lost
ANSWER_TIMEOUT = 20.0  # seconds beyond the trial itself
SENDS, COUNTS = "the port that sends", "the port that counts"

Start = Callable[[], tuple[float, float]]
"""Waits until a trial may start. Returns the moment at which the first frame is due, by the sender's clock in seconds
since the epoch (0: at once), and the seconds until then."""


def at_once() -> tuple[float, float]:
    return 0.0, 0.0


class EndPair:
    """Two ends by their sides."""

    def __init__(self, ports: Mapping[str, TesterEnd], numbers: Iterator[int], timeout: float = ANSWER_TIMEOUT) -> None:
        """`numbers` are those of trials. Other pairs take theirs there, too, so their frames never count here. An end
        has `timeout` seconds for an answer, beyond the trial itself."""
        self.ports, self._numbers, self._timeout = ports, numbers, timeout

    def measure(self, trial: Trial, entries: Mapping[Direction, Entry], start: Start = at_once) -> TrialResult:
        """One trial. `start` is called when the counting end is ready, in a trial of one direction.

        Round trips load both directions by themselves.
        """
        if len(trial.traffic.directions) > 1:
            if not trial.round_trip:
                return self._exchange(trial, entries)
            profile = replace(trial.traffic.profile, directions=(Direction.LEFT_TO_RIGHT,))
            trial = replace(trial, traffic=replace(trial.traffic, profile=profile))
        (direction,) = trial.traffic.directions
        began = time.monotonic()
        sender, counter = (
            self.ports[each] for each in (SIDES if direction is Direction.LEFT_TO_RIGHT else SIDES[::-1])
        )
        number = next(self._numbers) % 65535 + 1
        (back,) = {*Direction} - {direction}  # of the learning frames of the one that counts
        sends, counts = ("round-trip", "return") if trial.round_trip else ("send", "count")
        asked = self._request(trial, entries, back, counter)
        counter.ask(f"{asked} trial={number} part={counts}", {"counting"}, self._timeout)
        at, ahead = start()
        due = f" at={at:.6f}" if at else ""
        send = f"{self._request(trial, entries, direction, sender)} trial={number} part={sends}{due}"
        before = time.monotonic() - began
        sent = sender.ask(send, {"trial"}, self._timeout, ahead + trial.longest)["trial"]
        (sending,) = sent["directions"]
        counted = counter.ask(f"sent={whole(sending, 'sent')}", {"trial"}, self._timeout)["trial"]
        if trial.round_trip:
            return round_trip(trial, sent, counted)
        # Clocks of two machines differ by more than a frame takes.
        result = combined(trial, sent, counted, same_clock=sender.machine == counter.machine)
        known = "preparation" in sent  # the pods' image may be older
        return replace(result, preparation=before + real(sent, "preparation") if known else None)

    def _exchange(self, trial: Trial, entries: Mapping[Direction, Entry]) -> TrialResult:
        """One trial in both directions: both ends send and count at the same time."""
        number = next(self._numbers) % 65535 + 1
        ends = {side: self.ports[side] for side in SIDES}
        for direction, end in zip(Direction, ends.values(), strict=True):
            asked = self._request(trial, entries, direction, end)
            end.ask(f"{asked} trial={number} part=exchange", {"counting"}, self._timeout)

        def go(end: TesterEnd) -> int:
            return whole(end.ask("go=1", {"sent"}, self._timeout, trial.longest), "sent")

        with ThreadPoolExecutor(len(ends)) as threads:
            sent = list(threads.map(go, ends.values()))
        told = [
            end.ask(f"sent={by_other}", {"trial"}, self._timeout)["trial"]
            for end, by_other in zip(ends.values(), reversed(sent), strict=True)
        ]
        same_clock = len({end.machine for end in ends.values()}) == 1
        return exchanged(trial, dict(zip(ends, told, strict=True)), same_clock=same_clock)

    def connect(self) -> None:
        """Make the connections of the next trial now. They are lost when they were silent for long."""
        for port in self.ports.values():
            port.connect()

    def keep(self) -> None:
        """Keep the connections while there is no trial."""
        for port in self.ports.values():
            port.keep()

    def _request(
        self, trial: Trial, entries: Mapping[Direction, Entry], direction: Direction, source: TesterEnd
    ) -> str:
        """The request to one end, which is the source of the frames of this direction."""
        traffic = trial.traffic
        if direction in entries:
            traffic = replace(traffic, entries={direction: entries[direction]})
        macs = self.ports["left"].mac, self.ports["right"].mac
        return request_line(replace(trial, traffic=traffic), SETTLE, macs, any_address=True)


def combined(
    trial: Trial, sent: Mapping[str, Any], counted: Mapping[str, Any], *, same_clock: bool = True
) -> TrialResult:
    """One result of the answers of the process that sent and of the one that counted. Without a common clock, the
    result has no latency."""
    (sending,), (counting,) = sent["directions"], counted["directions"]
    both = _of_direction(sending, counting, same_clock=same_clock)
    ends = {SENDS: sent, COUNTS: counted}
    result = _of_both(trial, ends, [both], real(counted, "elapsed"))
    if result.cpu_time is None:
        return result
    return replace(result, cpu_time=replace(result.cpu_time, beside=_rest_of_nodes(sent, counted)))


def exchanged(trial: Trial, told: Mapping[str, Mapping[str, Any]], *, same_clock: bool) -> TrialResult:
    """One result of the answers of two processes, by their sides. Both sent and counted."""
    left, right = (told[side]["directions"] for side in SIDES)
    directions = [
        _of_direction(sent, counted, same_clock=same_clock)
        for sent, counted in ((left[0], right[0]), (right[1], left[1]))
    ]
    ends = {f"the {side} port": told[side] for side in SIDES}
    return _of_both(trial, ends, directions, max(real(each, "elapsed") for each in told.values()))


def _of_direction(sending: Mapping[str, Any], counting: Mapping[str, Any], *, same_clock: bool) -> dict[str, Any]:
    """The counts of one direction: those of its sender, and those of the one that counts."""
    keys = ("received", "duplicated", "reordered", "corrupted")
    both = {**sending, **{key: counting[key] for key in keys}}
    both.pop("last_lost", None)  # of an older image, whose sender tells one
    told = ("last_lost", *(("latency", "negative_latencies") if same_clock else ()))
    return both | {key: counting[key] for key in told if key in counting}


def round_trip(trial: Trial, sent: Mapping[str, Any], returned: Mapping[str, Any]) -> TrialResult:
    """The result of the process that sent the frames, and got them back."""
    (direction,) = sent["directions"]
    ends = {SENDS: sent, "the port that returns": returned}
    return replace(_of_both(trial, ends, [direction], real(sent, "elapsed")), cpu_time=None)


def _of_both(
    trial: Trial, ends: Mapping[str, Mapping[str, Any]], directions: Sequence[Mapping[str, Any]], elapsed: float
) -> TrialResult:
    """The result with these directions. Stray frames, own drops and troubles are those of both processes."""
    answers = list(ends.values())
    answer = {
        "started": answers[0]["started"],
        "elapsed": elapsed,
        "directions": list(directions),
        "stray": sum(whole(each, "stray") for each in answers),
        "own_drops": sum(whole(each, "own_drops") for each in answers),
        "own_drops_reason": " and ".join(filter(None, (words(each, "own_drops_reason") for each in answers))),
        "unready": next(filter(None, (words(each, "unready") for each in answers)), ""),
    }
    result = trial_result(trial, answer)
    return replace(result, cpu_time=_cpu_time(ends)) if trial.train > 1 else result


def _cpu_time(ends: Mapping[str, Mapping[str, Any]]) -> CpuTime:
    """The CPU time of both processes, with what the kernel did for frames in their time (softirqs)."""
    if any("cpu_ns" not in each for each in ends.values()):
        return CpuTime(unread=f"the tester in a pod says nothing about its CPU time: {OLDER_IMAGE}")
    return CpuTime({name: float(whole(each, "cpu_ns")) for name, each in ends.items()})


def _rest_of_nodes(sent: Mapping[str, Any], counted: Mapping[str, Any]) -> Mapping[str, float]:
    """The CPU time of all else on the machines of the two processes. Empty if a kernel does not tell it.

    The process that counts begins first and ends last. So its look at a machine of both is that of the whole trial.
    """
    answers = {"the rest of the node that sends": sent, "the rest of the node that counts": counted}
    if any("machine_busy_ns" not in each for each in answers.values()):
        return {}
    rest = {name: real(each, "machine_busy_ns") - whole(each, "cpu_ns") for name, each in answers.items()}
    if words(sent, "boot_id") == words(counted, "boot_id"):
        return {"the rest of the node": rest["the rest of the node that counts"] - whole(sent, "cpu_ns")}
    return rest
