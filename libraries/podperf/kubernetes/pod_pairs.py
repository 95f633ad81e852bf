"""Many pairs of pods that send at the same time, on the nodes of the tester's own two pods."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from threading import Barrier
from typing import Self

from podperf.frames import AddressFamily
from podperf.kubernetes.api import Api
from podperf.kubernetes.end_pair import EndPair
from podperf.kubernetes.ports import DISCARDED, PodFacts, PodPort
from podperf.kubernetes.run_namespace import RunNamespace
from podperf.kubernetes.running_pods import await_phase
from podperf.kubernetes.settings import KubernetesSettings
from podperf.kubernetes.tester_objects import SIDES, pair_pod
from podperf.model import Direction, Entry, Trial, TrialResult

# Prints the time of the node, in seconds since the epoch, at the beginning of a second. BusyBox knows no parts of one.
_CLOCK = 'now=$(date +%s); while [ "$(date +%s)" = "$now" ]; do sleep 0.01; done; date +%s'
LEAD, LEAD_OF_PAIR = 0.3, 0.02  # seconds from the last request of a trial to its first frames


class PodPairs:
    """Pairs of pods until `close`. See `testers.base.Pairs`.

    All left pods are on one node, and they send. So one clock tells when all of them begin.
    """

    def __init__(
        self, api: Api, place: RunNamespace, settings: KubernetesSettings, nodes: Sequence[str], numbers: Iterator[int]
    ) -> None:
        """`nodes` are those of the left and of the right pods. `numbers` are those of trials."""
        self._api, self._place, self._settings, self._nodes, self._numbers = api, place, settings, nodes, numbers
        self._pairs: list[tuple[EndPair, Entry]] = []
        self._clock: float | None = None  # seconds by which the clock of the senders' node is ahead of time.monotonic
        self._names: list[str] = []
        self._undo = ExitStack()
        # A connection to a pod that is gone closes at once. To one that runs, this takes a second.
        self._connections = self._undo.enter_context(ExitStack())
        self._undo.callback(lambda: self._place.await_gone(self._names))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def measure(self, trial: Trial, pairs: int) -> Sequence[TrialResult]:
        profile = replace(trial.traffic.profile, directions=(Direction.LEFT_TO_RIGHT,))
        self._start(pairs - len(self._pairs), profile.headers.family)
        clock, lead = self._clock, LEAD + LEAD_OF_PAIR * pairs
        assert clock is not None
        moments: list[float] = []
        meeting = Barrier(pairs, lambda: moments.append(time.monotonic() + clock + lead))
        failed: list[BaseException] = []

        def start() -> tuple[float, float]:
            meeting.wait()
            return moments[0], lead

        def measure(pair: EndPair, entry: Entry) -> TrialResult | None:
            entries = {Direction.LEFT_TO_RIGHT: entry}
            try:
                pair.connect()  # a connection may be lost since other pods started
                traffic = replace(trial.traffic, profile=profile, entries=entries)
                return pair.measure(replace(trial, traffic=traffic), entries, start)
            except BaseException as error:
                failed.append(error)  # before those that the next line lets fail
                meeting.abort()
                return None

        with ThreadPoolExecutor(pairs) as threads:
            try:
                found = list(threads.map(measure, *zip(*self._pairs[:pairs], strict=True)))
            except BaseException:  # Ctrl-C: some threads may not have begun, and the others wait for them
                meeting.abort()
                raise
        if failed:
            raise failed[0]
        return [each for each in found if each is not None]

    def _start(self, further: int, family: AddressFamily) -> None:
        """Start so many further pairs. The cluster starts their pods beside each other."""
        run, owners = self._place.run, self._place.owners
        numbers = range(len(self._pairs) + 1, len(self._pairs) + 1 + further)
        wanted = {
            (number, side): pair_pod(number, side, run, owners, self._settings, node)
            for number in numbers
            for side, node in zip(SIDES, self._nodes, strict=True)
        }
        for pod in wanted.values():
            self._place.start(pod)
            self._undo.callback(self._place.delete, pod["metadata"]["name"])
            self._names.append(pod["metadata"]["name"])
        for number in numbers:
            left, right = (self._port(side, wanted[number, side]["metadata"]["name"]) for side in SIDES)
            to, source = right.address(family), left.address(family)
            entry = Entry(left.next_hop(to), str(to), DISCARDED, str(source))
            self._pairs.append((EndPair({"left": left, "right": right}, self._numbers), entry))
            if self._clock is None:
                self._clock = float(left.execute("sh", "-c", _CLOCK)) - time.monotonic()

    def _port(self, side: str, name: str) -> PodPort:
        running = await_phase(self._place, name, timeout=self._settings.start_timeout)
        port = PodPort(self._api, self._place.name, side, PodFacts.of(running, self._settings.interface))
        self._connections.callback(port.close)
        return port
