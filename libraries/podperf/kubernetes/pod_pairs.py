"""Measures many pairs of pods that send at the same time, on the nodes of the tester's own two pods."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from threading import Barrier
from typing import Any, Self

from podperf.errors import PodperfError
from podperf.frames import AddressFamily
from podperf.kubernetes.api import Api
from podperf.kubernetes.commands_in_pods import execute
from podperf.kubernetes.end_pair import EndPair
from podperf.kubernetes.ports import DISCARDED, PodFacts, PodPort
from podperf.kubernetes.run_namespace import RunNamespace
from podperf.kubernetes.running_pods import StartingPods
from podperf.kubernetes.settings import KubernetesSettings
from podperf.kubernetes.tester_objects import SIDES, pair_pod
from podperf.model import Direction, Entry, Trial, TrialResult

# Prints the time of the node, in seconds since the epoch, at the beginning of a second. BusyBox knows no parts of one.
_CLOCK = 'now=$(date +%s); while [ "$(date +%s)" = "$now" ]; do sleep 0.01; done; date +%s'
LEAD, LEAD_OF_PAIR = 0.3, 0.02  # seconds from the last request of a trial to its first frames
# Pods that start at the same time. More of them only take each other's time: a command in a pod that runs already would
# then not start in its 10 s.
AT_ONCE = 16
_CONNECTING = 4  # pairs that are connected at the same time
_LOOK_AGAIN = 0.3  # seconds
PATIENCE = 60.0  # seconds for an answer: the senders of a small node leave the other pods little CPU time
Pair = tuple[EndPair, Entry]


class PodPairs:
    """Pairs of pods until `close`. See `testers.base.Pairs`.

    All left pods are on one node, and they send. So one clock tells when all of them begin.
    """

    def __init__(
        self,
        api: Api,
        place: RunNamespace,
        settings: KubernetesSettings,
        nodes: Sequence[str],
        numbers: Iterator[int],
        tell: Callable[[str], None],
    ) -> None:
        """`nodes` are those of the left and of the right pods. `numbers` are those of trials. `tell` shows the user how
        many pods are ready."""
        self._api, self._place, self._settings, self._nodes, self._numbers = api, place, settings, nodes, numbers
        self._tell = tell
        self._pairs: list[Pair] = []
        self._clock: float | None = None  # seconds by which the clock of the senders' node is ahead of time.monotonic
        self._names: list[str] = []
        self._undo = ExitStack()
        # A connection to a pod that is gone closes at once. To one that runs, this takes a second.
        self._connections = self._undo.enter_context(ExitStack())
        self._undo.callback(self._await_gone)

    def _await_gone(self) -> None:
        with suppress(PodperfError):  # on a busy node: the figures are there, and the end of the run deletes the rest
            self._place.await_gone(self._names)

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
        """Start `further` more pairs, some of them beside each other. Each pair is connected as soon as it runs."""
        if further <= 0:
            return
        wanted = len(self._pairs) + further
        pods = self._wanted(range(len(self._pairs) + 1, wanted + 1))
        names = {number: [pod["metadata"]["name"] for pod in pair] for number, pair in pods.items()}
        to_start = [pod for pair in pods.values() for pod in pair]
        starting = StartingPods(self._place, self._settings.start_timeout)
        running: dict[str, Mapping[str, Any]] = {}
        connecting: dict[int, Future[Pair]] = {}
        with ThreadPoolExecutor(_CONNECTING) as threads:
            try:
                while True:
                    while to_start and len(starting) < AT_ONCE:
                        pod = to_start.pop(0)
                        starting.start(pod)
                        self._undo.callback(self._place.delete, pod["metadata"]["name"])
                        self._names.append(pod["metadata"]["name"])
                    running |= starting.now_running()
                    for number, pair in names.items():
                        if number not in connecting and running.keys() >= set(pair):
                            connecting[number] = threads.submit(self._connect, [running[name] for name in pair], family)
                    ready = [each.result() for each in connecting.values() if each.done()]
                    for each, _ in [*self._pairs, *ready]:
                        each.keep()
                    self._tell(f"{2 * (len(self._pairs) + len(ready))} of {2 * wanted} pods are ready")
                    if len(ready) == further:
                        break
                    time.sleep(_LOOK_AGAIN)
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise
        self._pairs += [connecting[number].result() for number in pods]
        if self._clock is None:
            said = execute(self._api, names[1][0], self._place.name, ["sh", "-c", _CLOCK])
            self._clock = float(said) - time.monotonic()

    def _wanted(self, numbers: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
        """The pods of each of these pairs."""
        run, owners, places = self._place.run, self._place.owners, [*zip(SIDES, self._nodes, strict=True)]
        return {
            number: [pair_pod(number, side, run, owners, self._settings, node) for side, node in places]
            for number in numbers
        }

    def _connect(self, running: Sequence[Mapping[str, Any]], family: AddressFamily) -> Pair:
        left, right = (self._port(side, pod) for side, pod in zip(SIDES, running, strict=True))
        to, source = right.address(family), left.address(family)
        entry = Entry(left.next_hop(to), str(to), DISCARDED, str(source))
        return EndPair({"left": left, "right": right}, self._numbers, PATIENCE), entry

    def _port(self, side: str, running: Mapping[str, Any]) -> PodPort:
        port = PodPort(self._api, self._place.name, side, PodFacts.of(running, self._settings.interface), PATIENCE)
        self._connections.callback(port.close)
        return port
