"""The software tester: drives `podperf-tester` (see tester/), which sends and counts frames on two interfaces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, ClassVar, Self

from podperf.addressing import mac_of
from podperf.errors import PodperfError, understood
from podperf.frames import AddressFamily, Headers, described
from podperf.hosts.base import Host, Process
from podperf.hosts.linux import assumed_mac
from podperf.hosts.programs import on_host
from podperf.model import MOST_GROUPS, AddressedTraffic, Direction, DirectionResult, Latency, Trial, TrialResult
from podperf.testers.answers import histogram, real, receive_answer, whole, wholes, words
from podperf.testers.base import UNPACED, Ability, PortFacts, Site, TesterFacts, TesterPort
from podperf.testers.headers import first_address, flows_of, own_addresses, templates_of
from podperf.testers.validity import Account, judged
from podperf.topology import Engine, SoftwareSettings

TESTER_BINARY = Path(__file__).parents[3] / "build" / "tester" / "podperf-tester"
NAME = "podperf software tester"
START_TIMEOUT = 15.0  # seconds until the front has loaded its programs
_A_DAY = 86400.0  # seconds: the longest trial of the front
# Without this capability nothing can give itself precedence (capabilities(7)).
_ORDINARY = ("setpriv", "--bounding-set=-sys_nice", "--")
_HEXADECIMAL = re.compile(r"([0-9a-f]{2}){60,84}", re.ASCII)
_MOST_WINDOWS = 64  # of a closed loop
_ANSWERS = {"ready", "trial", "neighbour", "error"}
_MOST_QUESTIONS = 4  # of neighbours
_ASK_TIMEOUT = 10.0  # seconds; the front asks for 3 s
ANSWER_TIMEOUT = 10.0  # seconds that an answer may take beyond the trial itself


class SoftwareTester:
    """Two interfaces of a host as tester ports.

    The `engine` "auto" uses XDP, or packet rings if BPF is not permitted. Packet rings are about ten times slower.
    `facts` name the engine and the reason for it, which can be the caller's `engine_remark`. While the tester sends, it
    uses the first of `cpus` fully. It holds the ports until `close()`.
    """

    shortest_trial: ClassVar[float] = 0.0
    settings_schema: ClassVar[Mapping[str, Any]] = SoftwareSettings.settings_schema
    read_settings = SoftwareSettings.read_settings

    def __init__(
        self,
        host: Host,
        left: TesterPort,
        right: TesterPort,
        *,
        binary: str,
        engine: Engine = "auto",
        cpus: Sequence[int] = (),
        settle: float = 0.05,
        engine_remark: str | None = None,
        ordinary: bool = False,
        launcher: Sequence[str] = (),
        joined: bool = False,
    ) -> None:
        """An `ordinary` tester has no precedence over other processes, and runs on any of `cpus`. Only its load counts
        then, and not its figures. `launcher` are the words of a command line that starts the rest of it.
        With `joined`, the ports are plugged into each other: the tester itself loses the frames that find no room in
        the other port's receive ring."""
        self._settle, self._asked = settle, engine
        self._addresses = {"left": left.address, "right": right.address}
        self._ready: Mapping[str, Any] = {}
        self._remark = engine_remark
        started = [*launcher, *(_ORDINARY if ordinary else ()), binary, "--left", str(left), "--right", str(right)]
        started += ["--cpu", str(cpus[0])] if cpus and not ordinary else []
        started += ["--joined"] if joined else []
        self._process: Process | None = None
        macs = {
            side: {"mac": assumed_mac(port.seen_from(host), port.interface)}
            for side, port in (("left", left), ("right", right))
        }
        for name in ("xdp", "packet-ring") if engine == "auto" else (engine,):
            self._process = host.spawn(*started, "--engine", name, cpus=cpus)
            try:
                answer = self._answer(START_TIMEOUT, {"ready": {"version": "", "engine": name, "ports": macs}})
                self._ready = answer.get("ready", {})
                if self._ready:
                    with understood("the software tester"):
                        _ = self.facts
            except BaseException:
                self.close()
                raise
            if self._ready:
                return
            self.close()
            self._remark = answer.get("error")
            if answer.get("kind") != "no-bpf":
                break
        raise PodperfError(f"the software tester cannot start: {self._remark}")

    @classmethod
    def at(cls, site: Site) -> Self:
        """The tester on two interfaces of a site."""
        assert site.left is not None and site.right is not None
        binary, remark = on_host(site.host, TESTER_BINARY), site.engine_remark
        ends = site.left, site.right
        return cls(site.host, *ends, binary=binary, engine=site.engine, cpus=site.cpus, engine_remark=remark)

    def measure(self, trial: Trial) -> TrialResult:
        """Send one trial and count. See `testers.base.Tester.measure`. UNPACED means: as fast as the tester can."""
        process = self._running()
        try:
            process.send(self._request(trial))
            answer = self._answer(trial.longest + self._settle + ANSWER_TIMEOUT)
        except BaseException:  # also Ctrl-C: the next answer would belong to this trial
            self.close()
            raise
        if "trial" not in answer:
            raise PodperfError(f"the software tester refused a trial: {answer.get('error')}")
        with understood("the software tester"):
            return trial_result(trial, answer["trial"], hidden_tags=self._hides_tags)

    def send_without_end(self, traffic: AddressedTraffic) -> Process:
        """Send as fast as the tester can for a day, or until `close`. Returns the process, which counts nothing."""
        process = self._running()
        process.send(self._request(Trial(traffic, UNPACED, _A_DAY)))
        return process

    def neighbour(self, side: str, address: str, headers: Headers) -> str:
        family = AddressFamily.IPV4 if ip_address(address).version == 4 else AddressFamily.IPV6
        own = self._addresses[side] or first_address(side, family)
        tags = b"".join(each.tag for each in (headers.left if side == "left" else headers.right))
        self._running().send(f"ask={side} {address} {own} {tags.hex()}".strip())
        answer = self._answer(_ASK_TIMEOUT)
        if "neighbour" not in answer:
            raise PodperfError(f"the gateway of the {side} port does not answer: {answer.get('error')}")
        with understood("the software tester"):
            return mac_of(answer["neighbour"]["mac"], f"{address} at the {side} port")

    def _request(self, trial: Trial) -> str:
        return " ".join([request_line(trial, self._settle, self._macs), *own_words(trial.traffic, self._addresses)])

    def _running(self) -> Process:
        if self._process is None:
            raise PodperfError("the software tester was stopped; make a new one")
        return self._process

    @property
    def broken(self) -> bool:
        """True if the front has ended. See `testers.base.Tester`."""
        return self._process is None or not self._process.alive()

    @property
    def facts(self) -> TesterFacts:
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

    @property
    def _hides_tags(self) -> bool:
        """True if the kernel may keep a VLAN tag beside the frame, where XDP does not see it: a veth does."""
        return self.facts.engine == "xdp" and any(
            port.get("driver") == "veth" for port in self._ready["ports"].values()
        )

    @property
    def _macs(self) -> tuple[str, str]:
        return self.facts.left.mac, self.facts.right.mac

    def describe(self) -> Mapping[str, Any]:
        """Name, version, engine (and why not XDP), ports with interface, namespace, driver, mode and MAC."""
        return {
            "name": NAME,
            **self._ready,
            "settle_seconds": self._settle,
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

    def _answer(self, timeout: float, assumed: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The next answer: an object with "ready", "trial", "neighbour" or "error"."""
        assert self._process is not None
        return receive_answer(self._process, timeout, _ANSWERS, "the software tester", assumed)


def request_line(trial: Trial, settle: float, macs: tuple[str, str], *, any_address: bool = False) -> str:
    """The request for a trial, as tester/request.c reads it. `macs` are those of the left and the right port.

    Raises PodperfError for a destination that no test frame may have. See `testers.headers.templates_of`.
    """
    words = [*_request_words(trial, settle), *_header_words(trial.traffic, macs, any_address=any_address)]
    return " ".join(f"{key}={value}" for key, value in words)


def own_words(traffic: AddressedTraffic, further: Mapping[str, str | None]) -> Iterator[str]:
    """The words of a request that name the own addresses of the ports. `further` has one more for each port."""
    for side, address in further.items():
        ranges = [f"{first}/{count}" for first, count in own_addresses(traffic, side)]
        yield f"{side}.own={','.join([*ranges, *([f'{address}/1'] if address else [])])}"


def _request_words(trial: Trial, settle: float) -> Iterator[tuple[str, str]]:
    traffic = trial.traffic
    yield "load", f"{trial.load:.6f}"
    yield "duration", f"{trial.duration:.6f}"
    yield "settle", f"{settle:.3f}"
    yield "sizes", ",".join(map(str, traffic.frame.sequence))
    yield "mtu", str(traffic.profile.headers.mtu(traffic.frame.largest))
    yield "directions", ",".join(traffic.directions)
    yield "flows", str(traffic.flows)
    if traffic.groups > 1:
        yield "groups", str(traffic.groups)
    if trial.train > 1:
        yield "train", str(trial.train)
    if trial.frames:
        yield "frames", str(trial.frames)
    if trial.overload is not None:
        yield "overload", f"{trial.overload.load:.6f}"
        yield "overload-duration", f"{trial.overload.duration:.6f}"
    if trial.loop is not None:
        yield "burst", str(trial.loop.burst)
        yield "windows", str(trial.loop.windows)
        yield "warm-up", str(trial.loop.warm_up)


def _header_words(traffic: AddressedTraffic, macs: tuple[str, str], *, any_address: bool) -> Iterator[tuple[str, str]]:
    """The headers of both directions, because both ports send learning frames, and what varies in them.

    Between any addresses, only the directions with an entry have headers: other frames would have no known destination.
    """
    made = {
        direction: templates_of(traffic, direction, ends, any_address=any_address)
        for direction, ends in zip(Direction, (macs, macs[::-1]), strict=True)
        if direction in traffic.entries or not any_address
    }
    if not made:
        return
    (layout, *_), *_ = made.values()
    flows = flows_of(traffic)
    yield "fields", ",".join(map(str, layout.fields))
    if layout.checksums:
        yield "checksums", ",".join(map(str, layout.checksums))
    yield "values", ",".join(f"{first}:{count}" for first, count in (flows.first, flows.second))
    if traffic.profile.headers.random:
        yield "order", "random"
    for direction, templates in made.items():
        for number, each in enumerate(templates, start=1):
            group = direction if number == 1 else f"{direction}.{number}"
            header = each.header  # the MACs in their usual form, which a plan can name
            yield f"{group}.header", f"{header[:6].hex(':')},{header[6:12].hex(':')},{header[12:].hex()}"
            if each.fixed:
                yield f"{group}.fixed", ",".join(map(str, each.fixed))


def trial_result(trial: Trial, answer: Mapping[str, Any], *, hidden_tags: bool = False) -> TrialResult:
    """The front's answer to a trial, judged for validity.

    With `hidden_tags`, it is not known what tags a frame has that arrives with fewer tags than it was sent with.
    """
    sent_tags = len(trial.traffic.profile.headers.left) if hidden_tags else 0
    result = TrialResult(
        trial=trial,
        started=real(answer, "started"),
        directions=tuple(direction_result(direction, sent_tags) for direction in answer["directions"]),
        stray=whole(answer, "stray"),
        own_drops=whole(answer, "own_drops"),
        elapsed=real(answer, "elapsed"),
        preparation=real(answer, "preparation") if "preparation" in answer else None,
        windows=wholes(answer, "windows_ns", _MOST_WINDOWS),
        unanswered=tuple(map(_question, answer.get("unanswered", ())[:_MOST_QUESTIONS])),
    )
    trouble = words(answer, "unready") or _why_open(result, answer)
    return judged(result, Account(trouble, words(answer, "own_drops_reason")))


def _question(told: Mapping[str, Any]) -> str:
    by, wanted = (ip_address(words(told, key)) for key in ("by", "for"))
    return f"{by} asks at the {'left' if told['port'] == 'left' else 'right'} port for {wanted}"


def _why_open(result: TrialResult, answer: Mapping[str, Any]) -> str:
    """The reason why a trial was no closed loop. Empty if it was one, or was not meant to be one."""
    if result.trial.loop is None:
        return ""
    if result.lost:
        return f"{result.lost} of {result.sent} frames of a closed loop were lost"
    if early := whole(answer, "early"):
        return f"{early} bursts of a closed loop began before the previous one had arrived"
    return ""


def direction_result(answer: Mapping[str, Any], least_tags: int = 0) -> DirectionResult:
    """The counts of a direction. With fewer tags than `least_tags`, the tags of the arrived frame are not known."""
    latency = None
    if "latency" in answer:
        found = answer["latency"]
        counts = histogram(found["counts"])
        mean = whole(found, "sum") / sum(counts.values())
        latency = Latency(whole(found, "min"), mean, whole(found, "max"), counts)
    return DirectionResult(
        direction=Direction(answer["direction"]),
        intended=whole(answer, "intended"),
        sent=whole(answer, "sent"),
        received=whole(answer, "received"),
        duplicated=whole(answer, "duplicated"),
        reordered=whole(answer, "reordered"),
        corrupted=whole(answer, "corrupted"),
        duration=real(answer, "duration_ns") / 1e9,
        late=whole(answer, "late"),
        hurried=whole(answer, "hurried", missing=0),  # an older image of pods does not tell
        last_lost=whole(answer, "last_lost") if "last_lost" in answer else None,
        received_by_group=wholes(answer, "received_by_group", MOST_GROUPS),
        negative_latencies=whole(answer, "negative_latencies", missing=0),
        latency=latency,
        arrived=_arrived(answer.get("arrived"), least_tags),
    )


def _arrived(told: object, least_tags: int) -> Mapping[str, Any] | None:
    """What the tester tells of the headers of the first test frame that arrived."""
    if told is None:
        return None
    text = str(told)
    if not _HEXADECIMAL.fullmatch(text):
        raise PodperfError(f"the headers of an arrived frame are {text[:100]!r}")
    found = described(bytes.fromhex(text))
    return found if len(found["vlans"]) >= least_tags else {**found, "vlans": None}
