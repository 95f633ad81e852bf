"""The software tester: drives `podperf-tester` (see tester/), which sends and counts frames on two interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process
from podperf.hosts.programs import on_host
from podperf.model import Direction, DirectionResult, Latency, TrafficProfile, Trial, TrialResult
from podperf.testers.answers import receive_answer
from podperf.testers.base import UNPACED, Ability, PortFacts, Site, TesterFacts
from podperf.testers.validity import Account, judged
from podperf.topology import Engine, SoftwareSettings

TESTER_BINARY = Path(__file__).parents[3] / "build" / "tester" / "podperf-tester"
NAME = "podperf software tester"
START_TIMEOUT = 15.0  # seconds until the front has loaded its programs
_A_DAY = 86400.0  # seconds: the longest trial of the front
# Without this capability nothing can give itself precedence (capabilities(7)).
_ORDINARY = ("setpriv", "--bounding-set=-sys_nice", "--")
ANSWER_TIMEOUT = 10.0  # seconds that an answer may take beyond the trial itself


class SoftwareTester:
    """Two interfaces of a host as tester ports.

    `left` and `right` are interfaces, `left_namespace` and `right_namespace` their network namespaces. The `engine`
    "auto" uses XDP, or packet rings if BPF is not permitted. Packet rings are about ten times slower. `facts` name the
    engine and the reason for it. The reason can be the caller's `engine_remark`. While the tester sends, it uses the
    first of `cpus` fully. It holds the ports until `close()`.
    """

    shortest_trial: ClassVar[float] = 0.0
    settings_schema: ClassVar[None] = SoftwareSettings.settings_schema
    read_settings = SoftwareSettings.read_settings

    def __init__(
        self,
        host: Host,
        left: str,
        right: str,
        *,
        binary: str,
        engine: Engine = "auto",
        cpus: Sequence[int] = (),
        left_namespace: str | None = None,
        right_namespace: str | None = None,
        settle: float = 0.05,
        engine_remark: str | None = None,
        ordinary: bool = False,
        launcher: Sequence[str] = (),
    ) -> None:
        """An `ordinary` tester has no precedence over other processes, and runs on any of `cpus`. Only its load counts
        then, and not its figures. `launcher` are the words of a command line that starts the rest of it."""
        self._settle, self._asked = settle, engine
        self._ready: Mapping[str, Any] = {}
        self._remark = engine_remark
        ports = ["--left", _port(left, left_namespace), "--right", _port(right, right_namespace)]
        pinned = ["--cpu", str(cpus[0])] if cpus and not ordinary else []
        started = [*launcher, *(_ORDINARY if ordinary else ()), binary, *ports, *pinned]
        self._process: Process | None = None
        for name in ("xdp", "packet-ring") if engine == "auto" else (engine,):
            self._process = host.spawn(*started, "--engine", name, cpus=cpus)
            try:
                answer = self._answer(START_TIMEOUT)
            except BaseException:
                self.close()
                raise
            if "ready" in answer:
                self._ready = answer["ready"]
                return
            self.close()
            self._remark = answer["error"]
            if answer.get("kind") != "no-bpf":
                break
        raise PodperfError(f"the software tester cannot start: {self._remark}")

    @classmethod
    def at(cls, site: Site) -> Self:
        """The tester on two interfaces of a site."""
        assert site.left is not None and site.right is not None
        return cls(
            site.host,
            site.left.interface,
            site.right.interface,
            binary=on_host(site.host, TESTER_BINARY),
            engine=site.engine,
            cpus=site.cpus,
            left_namespace=site.left.namespace,
            right_namespace=site.right.namespace,
            engine_remark=site.engine_remark,
        )

    def measure(self, trial: Trial) -> TrialResult:
        """Send one trial and count. See `testers.base.Tester.measure`. UNPACED means: as fast as the tester can."""
        if self._process is None:
            raise PodperfError("the software tester was stopped; make a new one")
        try:
            self._process.send(request_line(trial, self._settle))
            answer = self._answer(trial.longest + self._settle + ANSWER_TIMEOUT)
        except BaseException:  # also Ctrl-C: the next answer would belong to this trial
            self.close()
            raise
        if "trial" not in answer:
            raise PodperfError(f"the software tester refused a trial: {answer['error']}")
        return trial_result(trial, answer["trial"])

    def send_without_end(self, traffic: TrafficProfile) -> Process:
        """Send as fast as the tester can for a day, or until `close`. Returns the process, which counts nothing."""
        if self._process is None:
            raise PodperfError("the software tester was stopped; make a new one")
        self._process.send(request_line(Trial(traffic, UNPACED, _A_DAY), self._settle))
        return self._process

    @property
    def broken(self) -> bool:
        """True if the front has ended. See `testers.base.Tester`."""
        return self._process is None or not self._process.alive()

    @property
    def facts(self) -> TesterFacts:
        """See `testers.base.TesterFacts`."""
        engine: Engine = self._ready["engine"]
        left, right = (PortFacts(self._ready["ports"][side]["mac"]) for side in ("left", "right"))
        return TesterFacts(
            NAME,
            self._ready["version"],
            engine,
            left,
            right,
            copies=engine != "xdp",  # XDP takes frames before the kernel's stack does
            engine_remark=self._remark,
            # Some drivers, and a veth whose peer has no receive ring, drop frames from XDP without an error.
            fallback="packet-ring" if (self._asked, engine) == ("auto", "xdp") else None,
            abilities=frozenset(Ability),
        )

    def describe(self) -> Mapping[str, Any]:
        """Name, version, engine (and why not XDP), ports with interface, namespace, driver, mode and MAC."""
        return {
            "name": NAME,
            **self._ready,
            **({"engine_remark": self._remark} if self._remark else {}),
        }

    def close(self) -> None:
        """Stop the front. The kernel then removes its programs from the ports. Safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, timeout: float) -> dict[str, Any]:
        """The next answer: an object with "ready", "trial" or "error"."""
        assert self._process is not None
        return receive_answer(self._process, timeout, {"ready", "trial", "error"}, "the software tester")


def _port(interface: str, namespace: str | None) -> str:
    return f"{interface}@{namespace}" if namespace else interface


def request_line(trial: Trial, settle: float) -> str:
    """The request for a trial, as tester/request.c reads it."""
    return " ".join(_request_words(trial, settle))


def _request_words(trial: Trial, settle: float) -> Iterator[str]:
    traffic = trial.traffic
    yield f"load={trial.load:.6f}"
    yield f"duration={trial.duration:.6f}"
    yield f"settle={settle:.3f}"
    yield f"sizes={','.join(map(str, traffic.frame.sequence))}"
    yield f"directions={','.join(traffic.directions)}"
    yield f"flows={traffic.flows}"
    if traffic.groups > 1:
        yield f"groups={traffic.groups}"
    if trial.train > 1:
        yield f"train={trial.train}"
    if trial.frames:
        yield f"frames={trial.frames}"
    if trial.overload is not None:
        yield f"overload={trial.overload.load:.6f}"
        yield f"overload-duration={trial.overload.duration:.6f}"
    if trial.loop is not None:
        yield f"burst={trial.loop.burst}"
        yield f"windows={trial.loop.windows}"
        yield f"warm-up={trial.loop.warm_up}"
    for direction in traffic.directions:
        for number, entry in enumerate(traffic.entries_of(direction), start=1):
            group = direction if number == 1 else f"{direction}.{number}"
            if entry.mac is not None:
                yield f"{group}.mac={entry.mac}"
            if entry.address is not None:
                yield f"{group}.address={entry.address}"
            if entry.udp_port is not None:
                yield f"{group}.udp-port={entry.udp_port}"


def trial_result(trial: Trial, answer: Mapping[str, Any]) -> TrialResult:
    """The front's answer to a trial, judged for validity."""
    result = TrialResult(
        trial=trial,
        started=answer["started"],
        directions=tuple(direction_result(each) for each in answer["directions"]),
        stray=answer["stray"],
        own_drops=answer["own_drops"],
        elapsed=answer["elapsed"],
        windows=tuple(answer.get("windows_ns", ())),
    )
    return judged(result, Account(answer["unready"] or _why_open(result, answer), answer["own_drops_reason"]))


def _why_open(result: TrialResult, answer: Mapping[str, Any]) -> str:
    """The reason why a trial was no closed loop. Empty if it was one, or was not meant to be one."""
    if result.trial.loop is None:
        return ""
    if result.lost:
        return f"{result.lost} of {result.sent} frames of a closed loop were lost"
    if answer["early"]:
        return f"{answer['early']} bursts of a closed loop began before the previous one had arrived"
    return ""


def direction_result(answer: Mapping[str, Any]) -> DirectionResult:
    latency = None
    if "latency" in answer:
        found = answer["latency"]
        latency = Latency(found["min"], found["sum"] / answer["received"], found["max"], dict(found["counts"]))
    return DirectionResult(
        direction=Direction(answer["direction"]),
        intended=answer["intended"],
        sent=answer["sent"],
        received=answer["received"],
        duplicated=answer["duplicated"],
        reordered=answer["reordered"],
        corrupted=answer["corrupted"],
        duration=answer["duration_ns"] / 1e9,
        late=answer["late"],
        last_lost=answer.get("last_lost"),
        received_by_group=tuple(answer.get("received_by_group", ())),
        latency=latency,
    )
