"""Application traffic: TCP streams and requests by the tools that everybody knows. Its figures are none of RFC 2544.

TCP adapts its load to what it finds, sends segments that the kernel cuts late or never, and takes most of its CPU time
at the ends. So these figures stand beside throughput, and are never compared with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.experiments.ratio_interval import least_error
from podperf.figures import number, percent
from podperf.hosts.linux import package_versions
from podperf.methods.application_tools import IPERF3, KINDS, TOOLS, CpuClock, Traffic, TrafficKind
from podperf.methods.base import MeasuredChain, MethodTable
from podperf.methods.presets import FurtherSettings
from podperf.metrics import APPLICATION_WORDS, METRICS, Measured, Metrics
from podperf.model import CpuTime
from podperf.testers.ends import ChainEnd

NAME = "application_traffic"
BETWEEN = 0.5  # seconds that a run takes beside its traffic
OF_SYSTEM = "the system under test, without that of the ends"
OF_ENDS = "the two ends: of the tools, and of the network's work for a frame in their time (softirq)"


class EndsClock:
    """The CPU time of the two ends, where these have control groups of their own: those of a cluster."""

    def __init__(self, left: ChainEnd, right: ChainEnd) -> None:
        self._read = {"left": left.cpu_time, "right": right.cpu_time}
        self._before: Mapping[str, float | None] = {}

    @classmethod
    def of(cls, left: ChainEnd, right: ChainEnd) -> EndsClock | None:
        """None if the ends share their places with other programs."""
        return cls(left, right) if left.cpu_time and right.cpu_time else None

    def start(self) -> None:
        self._before = self._now()

    def stop(self) -> CpuTime:
        pairs = {side: (self._before[side], now) for side, now in self._now().items()}
        taken = {side: now - before for side, (before, now) in pairs.items() if before is not None and now is not None}
        unread = ", ".join(pairs.keys() - taken)
        return CpuTime(taken, unread=f"no CPU time of the control group of this end: {unread}" if unread else "")

    def _now(self) -> Mapping[str, float | None]:
        return {side: read() for side, read in self._read.items() if read is not None}


@dataclass(frozen=True)
class ApplicationRun:
    """One run: what it carried, and the CPU time that the system under test took meanwhile. None: nobody read it."""

    traffic: Traffic
    cpu: CpuTime | None = None

    @property
    def nanoseconds(self) -> float | None:
        """Nanoseconds of CPU time a byte or a transaction. None if the time of a part is not known."""
        total = None if self.cpu is None else self.cpu.total
        return total / self.traffic.amount if total and self.traffic.amount else None


@dataclass(frozen=True)
class Series:
    """All runs of one kind of traffic."""

    kind: TrafficKind
    runs: Sequence[ApplicationRun]

    @property
    def rate(self) -> Measured:
        """The median, between the slowest and the fastest run."""
        return Measured.median_of([run.traffic.rate for run in self.runs])

    @property
    def cpu_time(self) -> Measured | None:
        """The same of the CPU time. None if a run does not have it."""
        found = [run.nanoseconds for run in self.runs if run.nanoseconds is not None]
        return Measured.median_of(found) if len(found) == len(self.runs) else None

    def as_record(self) -> Mapping[str, Any]:
        """The figures of each run, and their medians. Rates are in the unit of the metric's quantity."""
        retransmits = [run.traffic.retransmits for run in self.runs if run.traffic.retransmits is not None]
        cpu = self.cpu_time
        return {
            "kind": self.kind.words,
            "metric": self.kind.metric,
            "tool": self.kind.tool.name,
            "rates": [run.traffic.rate for run in self.runs],
            "median": self.rate.value,
            "retransmits": retransmits,
            "cpu_nanoseconds": None if cpu is None else cpu.value,
            "cpu_nanoseconds_of_runs": [run.nanoseconds for run in self.runs],
        }


@dataclass(frozen=True)
class ApplicationTrafficResult:
    """The series of each kind that could be measured. `missing` has the reason for each figure that could not."""

    series: Sequence[Series]
    seconds: float  # of the traffic of a run
    versions: Mapping[str, str]  # of the tools
    missing: Mapping[str, str]
    cpu_time_of: str = OF_SYSTEM

    @property
    def runs(self) -> int:
        """The runs of each kind."""
        return len(self.series[0].runs)

    @property
    def metrics(self) -> Metrics:
        """The rate of each kind, and the CPU times that are known."""
        times = {each.kind.cpu_metric: each.cpu_time for each in self.series if each.kind.cpu_metric}
        rates = {each.kind.metric: each.rate for each in self.series}
        return {**rates, **{name: found for name, found in times.items() if found is not None}}

    @property
    def said(self) -> Sequence[str]:
        rows = (_row(each.as_record()) for each in self.series)
        return [APPLICATION_WORDS, *(f"{kind}: {rate} {unit}, {between}" for kind, rate, unit, between, *_ in rows)]

    def as_record(self) -> Mapping[str, Any]:
        """Each kind with its runs. `confidence` is that of the interval from the slowest to the fastest run."""
        return {
            "method": NAME,
            "statement": APPLICATION_WORDS,
            "runs": self.runs,
            "seconds": self.seconds,
            "confidence": 1 - least_error(self.runs),
            "versions": dict(self.versions),
            "congestion_control": self.series[0].runs[0].traffic.congestion_control,
            "cpu_time_of": self.cpu_time_of,
            "kinds": [each.as_record() for each in self.series],
            "missing": dict(self.missing),
        }


@dataclass(frozen=True)
class ApplicationTraffic:
    """`repetitions` runs of each kind, each with `seconds` of traffic. The kinds take turns."""

    repetitions: int
    seconds: float
    name: ClassVar[str] = NAME
    searches: ClassVar[bool] = False

    @classmethod
    def on(cls, chain: MeasuredChain, amount: float | None = None) -> ApplicationTrafficResult:
        """See FurtherMethod. `amount`: runs of each kind. The chain carries no test frames afterwards."""
        chain.known_limits()
        settings, sut = chain.further_settings, chain.sut
        runs = settings.application_runs if amount is None else round(amount)
        if runs < 1:
            raise PodperfError(f"application traffic needs one run or more, not {runs}")
        if sut.applications or DATA_PLANES[sut.chain.data_plane].switch_has_cpus:
            raise Unavailable(
                f"{sut.chain.data_plane} forwards in user space, where segments arrive without checksums and longer "
                "than its frames: application traffic crosses data planes of the kernel"
            )
        with sut.ends() as (left, right):
            method = cls(runs, settings.application_run)
            if of_ends := EndsClock.of(left, right):
                return replace(method.run(left, right, of_ends), cpu_time_of=OF_ENDS)
            return method.run(left, right, sut.cpu_clock())

    @staticmethod
    def usual_seconds(settings: FurtherSettings, between: float, set_up: float) -> float:
        return len(KINDS) * settings.application_runs * (settings.application_run + BETWEEN)

    @staticmethod
    def table(found: Mapping[str, Any]) -> MethodTable:
        tools = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
        confidence = percent(found["confidence"])
        words = (
            f"{found['statement']} Medians of {found['runs']} runs of {number(found['seconds'])} s each. With "
            f"{confidence} confidence the true median is between the slowest and the fastest run. The CPU time is that "
            f"of {found.get('cpu_time_of', OF_SYSTEM)}. Congestion control: {found['congestion_control']}."
        )
        heads = ("Traffic", "Median", "", "Slowest to fastest", "CPU time", "Retransmits")
        title = f"Application traffic ({tools})" if tools else "Application traffic"
        return MethodTable(title, [_row(each) for each in found["kinds"]], heads, words)

    def run(self, left: ChainEnd, right: ChainEnd, clock: CpuClock | None) -> ApplicationTrafficResult:
        """Measure. Raises Unavailable without iperf3. Without netperf, its kinds are missing."""
        absent = {tool.name: reason for tool in TOOLS if (reason := tool.missing(left.host))}
        if IPERF3.name in absent:
            raise Unavailable(absent[IPERF3.name])
        missing = {each.words: f"not measured: {absent[each.tool.name]}" for each in KINDS if each.tool.name in absent}
        kinds = [each for each in KINDS if each.tool.name not in absent]
        found: dict[str, list[ApplicationRun]] = {each.metric: [] for each in kinds}
        for _ in range(self.repetitions):
            for kind in kinds:
                found[kind.metric].append(ApplicationRun(*kind.run(left, right, self.seconds, clock)))
        series = [Series(kind, found[kind.metric]) for kind in kinds]
        versions = package_versions(left.host, [tool.name for tool in TOOLS])
        return ApplicationTrafficResult(series, self.seconds, versions, {**missing, **_unread(series)})


def _unread(series: Sequence[Series]) -> Mapping[str, str]:
    """The reason why the CPU time could not be read, by the label of its metric."""
    found: dict[str, str] = {}
    for each in series:
        for cpu in (run.cpu for run in each.runs if run.cpu is not None and each.kind.cpu_metric):
            if reason := cpu.unread or (f"{', '.join(cpu.polling)} polls" if cpu.polling else ""):
                found[METRICS[each.kind.cpu_metric].label] = f"not read: {reason}"
    return found


def _row(found: Mapping[str, Any]) -> tuple[str, ...]:
    """A kind in words: name, median, unit, slowest to fastest run, CPU time, retransmits."""
    metric = METRICS.get(found["metric"])  # a record of another version may have others
    scale, unit, one = (
        (metric.quantity.scale, metric.quantity.unit, metric.quantity.of_one) if metric else (1, "", "unit")
    )
    slowest, median, fastest = (
        number(rate / scale) for rate in (min(found["rates"]), found["median"], max(found["rates"]))
    )
    cpu, retransmits = found["cpu_nanoseconds"], found["retransmits"]
    cpu_words = "" if cpu is None else f"{number(cpu)} ns a {one}"
    return found["kind"], median, unit, f"{slowest} to {fastest}", cpu_words, ", ".join(map(str, retransmits))
