"""Reads the results of runs: their records, and the trials of interrupted tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import TypeVar

from podperf.dataplanes.wire import External, Wire
from podperf.errors import PodperfError
from podperf.experiments.claim import Finding
from podperf.experiments.host_share import NAME as HOST_SHARE
from podperf.experiments.host_share import HostShare
from podperf.figures import kpps, number, percent, short
from podperf.history.runs import PastRun
from podperf.methods import METHODS
from podperf.methods.consistency import loss_at_every_load
from podperf.methods.latency import ONE_WAY, ROUND_TRIP
from podperf.methods.many_pairs import ManyPairs
from podperf.metrics import IN_TEXT, METRICS, Measured, Metric, Quantity, Signs
from podperf.noise import OTHER_PROCESSES
from podperf.printable import printable
from podperf.records import KINDS, Counts, Record, counts_by_phase, read_records
from podperf.records.reading import UNFORESEEN, disagreement

_OF_THE_BLACK_BOX = "if a program is a part of the black box, name it in `black_box.programs` of the topology"
_PROGRAMS_AT_ENDS = (
    "a program of each pod at an end carries frames between the tester's interface and the pod's port in user space: "
    "the data plane itself is as fast as these rates at least, and its latency is no higher"
)
_NEEDS_NO_WORDS = ("passed", "measured")  # for these, a table needs no sentence about thresholds; the record has it


@dataclass(frozen=True)
class RunResults:
    """The results folder of one run. `problems` are files that could not be read, one sentence each."""

    directory: Path
    records: tuple[Record, ...]  # in the order in which the tests started
    problems: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The folder's name: the time at which the run started."""
        return printable(self.directory.name)

    @property
    def started(self) -> str:
        """The start of the first test (ISO 8601, UTC). Empty if no record could be read."""
        return self.records[0].started if self.records else ""

    def path_of(self, record: Record) -> Path:
        """The path of the record."""
        return self.directory / "records" / record.file_name


def read_runs(directories: Sequence[Path]) -> tuple[list[RunResults], list[PodperfError]]:
    """Several runs, the oldest first, each once, and the errors of others. Raises PodperfError if none can be read."""
    runs: dict[Path, RunResults] = {}
    unread: list[PodperfError] = []
    for directory in directories:
        try:
            run = read_run(directory)
            runs[run.directory] = run
        except PodperfError as error:
            unread.append(error)
    if not runs:
        raise unread[0]
    return sorted(runs.values(), key=lambda run: run.started), unread


def read_run(directory: Path, *, trials: bool = True) -> RunResults:
    """One run, or without `trials` its records without them. PodperfError if there is no folder, or no record in it."""
    directory = directory.resolve()  # results/latest is a link to the newest run
    if not directory.is_dir():
        raise PodperfError(f"{directory}: no such folder; give the results folder of a run, like results/latest")
    if directory.name == "records":
        directory = directory.parent
    run = RunResults(directory, *read_records(directory / "records", trials=trials))
    if not run.records and not run.problems:
        raise PodperfError(f"{directory}: no records in it (records/*.json); give the results folder of a run")
    return run


def is_bare_path(record: Record) -> bool:
    """Whether the tester's ports were plugged into each other. (A black box also has no category.)"""
    return record.chain is not None and record.chain.data_plane == Wire.name


def verdict_word(record: Record) -> str:
    """One word for the end of a table row: the outcome, or the judgement of a passed test."""
    return judgement(record) if record.outcome == "passed" else record.outcome


def judgement(record: Record) -> str:
    """The status by verdict or findings. `measured` if there was no threshold to miss."""
    compared = record.method("variants").get("verdict")
    if compared:
        return str(compared)
    if record.verdict is None:
        found = {finding.verdict for finding in record.findings}
        return next((word for word in ("refuted", "inconclusive", "confirmed") if word in found), "passed")
    status = record.verdict.status
    return "measured" if status == "no threshold" else status


def said_by(finding: Finding) -> str:
    """The source of a finding's claim, in words. Empty in an older record."""
    return "podperf's own expectation; no document says so" if finding.source is None else finding.source


def only_expected(record: Record) -> bool:
    """Whether all claims of this record are podperf's own. Their verdicts say nothing about the draft."""
    return bool(record.findings) and all(finding.source is None for finding in record.findings)


def noisy(record: Record) -> str | None:
    """The reason why the machine was too noisy for this test. None if it was quiet, or if podperf did not watch it."""
    if record.quietness is None or not record.quietness.noisy:
        return None
    return record.quietness.reason or "foreign load on the measuring CPUs"


def preset(record: Record) -> str:
    """The name of the search's preset, and the differences from it with this tester. Empty without a search."""
    found = record.method("ndrpdr").get("preset") or {}
    return " with ".join(filter(None, (str(found.get("name", "")), str(found.get("adapted", "")).partition(",")[0])))


def adapted(record: Record) -> str:
    """The differences from the preset, for example because a tester needs longer trials. Empty without a difference."""
    found = record.method("ndrpdr").get("preset") or {}
    return f"preset {found['name']} has {found['adapted']}" if found.get("adapted") else ""


def not_comparable(record: Record) -> str | None:
    """The reason why figures of this record must not be compared with other testbeds, or None."""
    reason = record.testbed and record.testbed.not_comparable
    return reason if reason and (record.figures or record.findings) else None


def tester_faults(record: Record) -> list[str]:
    """One sentence for each fault of the tester in this test."""
    return [each.sentence for each in (record.tester_limits.faults if record.tester_limits else ())]


def own_loss(record: Record) -> str:
    """The tester's own part of a loss ratio, in words. Empty for a tester without a fault."""
    loss = record.tester_limits and record.tester_limits.own_loss_ratio
    return f"{percent(loss)} of the frames are the tester's own loss" if tester_faults(record) and loss else ""


def missing(record: Record) -> list[str]:
    """The figures that a method wanted and did not find, with the reason: `NDR, PDR not found: …`."""
    reasons: dict[str, list[str]] = {}
    for method in ("ndrpdr", "latency", "cpu_time", HOST_SHARE, *METHODS):
        for name, reason in (record.method(method).get("missing") or {}).items():
            reasons.setdefault(str(reason), []).append(str(name))
    return [f"{', '.join(names)} {reason}" for reason, names in reasons.items()]


def polls(record: Record) -> bool:
    """Whether parts of the system under test poll, so that it has no CPU time a frame."""
    return bool(record.method("cpu_time").get("polls"))


def cpu_time_words(record: Record) -> str:
    """The parts of the CPU time a frame: `receive thread of w-left 812 ns; polls, not told: pod1`. Empty without."""
    found = record.method("cpu_time")
    words = [f"{name} {number(amount)} ns" for name, amount in (found.get("parts") or {}).items() if amount]
    words += [f"polls, not told: {', '.join(found['polls'])}"] if polls(record) else []
    return "; ".join(words)


def host_shares(record: Record) -> list[HostShare]:
    """The figures of pods beside those of the nodes' own network, if the test measured them."""
    found = record.method(HOST_SHARE)
    return HostShare.all_of(found) if found else []


def host_share_words(record: Record) -> str:
    """`pod network 0.87 of the host's (0.84 to 0.90): 207 beside 238 kpps; ...`. Empty without such a share."""
    return "; ".join(filter(None, (each.words for each in host_shares(record))))


def functions_missing(record: Record) -> list[str]:
    """The reasons why a cost is not told by function, one sentence each. Empty where it is, and without a cost."""
    bursts = record.method("cost").get("bursts") or ()
    reasons = dict.fromkeys(str(burst["functions_missing"]) for burst in bursts if burst.get("functions_missing"))
    return [f"the cost is not told by function: {reason}" for reason in reasons]


def caveats(record: Record) -> list[str]:
    """One or two words for each thing that limits the figures of this record."""
    search = record.method("ndrpdr")
    found = (
        ("faulty tester", tester_faults(record)),
        ("drifted", search.get("drifted")),
        ("hasty tester", search.get("hasty")),
        ("constant loss", search.get("constant_loss")),
        ("noisy", noisy(record)),
        ("not comparable", not_comparable(record)),
    )
    return [word for word, reason in found if reason]


def explanation(record: Record) -> str:
    """The sentence behind the verdict: the reason of a skip or a failure, or the result of the thresholds."""
    if record.reason:
        return record.reason
    return record.verdict.sentence if record.verdict else ""


def doubtful(record: Record) -> list[str]:
    """The figures that nothing may judge, with the reason: `NDR: drifted: …`."""
    reasons: dict[str, list[str]] = {}
    for name, each in record.figures.items():
        if each.doubt:
            reasons.setdefault(each.doubt, []).append(METRICS[name].label)
    lost = record.method("ndrpdr").get("constant_loss")
    found = [f"{', '.join(labels)}: {doubt}" for doubt, labels in reasons.items()]
    words = loss_at_every_load(lost) if lost else ""
    return found if words in "; ".join(found) else [*found, words]


def unfinished(record: Record) -> str | None:
    """The rates of an unfinished search, and why it ended early. None without such rates."""
    rates = [METRICS[name] for name, each in record.figures.items() if each.unfinished]
    if not rates:
        return None
    reason = record.method(rates[0].method).get("incomplete") or "the search was not finished"
    return f"{', '.join(rate.label for rate in rates)}: {reason}"


def ended_early(record: Record) -> list[str]:
    """Why a ramp of many pairs did not reach its end."""
    reason = record.method(ManyPairs.name).get("incomplete")
    return [f"the ramp of pairs ended early: {reason}"] if reason else []


def counted(record: Record) -> Counts:
    """The frames of all valid trials of a record, in all directions."""
    return sum(counts_by_phase(record.trials).values(), Counts())


def full_tables(record: Record) -> list[str]:
    """One sentence for each table that was full in the test, or that the test is about."""
    found = []
    for each in record.full_tables:
        if each.entries is not None:
            most = "an unread number" if each.limit is None else short(each.limit)
            lost = f"{short(each.evicted)} entries evicted, {short(each.dropped)} frames dropped"
            where = f"the table of {each.table} of {each.place}"
            found.append(f"{where} filled to {short(each.entries)} of {most} ({each.setting}); {lost}")
            continue
        what = [f"{short(each.dropped)} frames dropped"] if each.dropped else []
        what += [f"{short(each.evicted)} entries evicted"] if each.evicted else []
        limit = f"{each.setting} is {short(each.limit)}" if each.limit is not None else each.setting
        found.append(f"the table of {each.table} of {each.place} was full ({limit}): {' and '.join(what)}")
    return found


def late_share(record: Record) -> float:
    """The share of the frames that left more than 1 ms late, of all frames of trials with a load."""
    found = counted(record)
    return found.late / found.paced if found.paced else 0.0


def late_words(shares: Sequence[float]) -> str:
    """One sentence for one or several rows with late frames: `0.2 to 18 % of the frames left more than 1 ms late`."""
    least, most = percent(min(shares)), percent(max(shares))
    amount = least if least == most else f"{least.removesuffix(' %')} to {most}"
    return f"{amount} of the frames left the tester more than 1 ms late"


def counted_beside(record: Record) -> list[str]:
    """One sentence for each kind of frame that the trials counted beside the received ones, without the late ones."""
    found = counted(record)
    stray = f"stray frames: {short(found.stray)}, of another sender or rests of test frames"
    return found.said(KINDS) + ([stray] if found.stray else [])


def _may_be_the_black_box(record: Record, noise: str | None) -> bool:
    """Whether a process that made the figures noisy may belong to the black box, which podperf did not start."""
    return record.chain is not None and record.chain.data_plane == External.name and OTHER_PROCESSES in (noise or "")


def remarks(record: Record) -> list[str]:
    """The remarks below a row: why it did not pass, and what limits its figures."""
    found = [] if verdict_word(record) in _NEEDS_NO_WORDS else [explanation(record)]
    noise, cut_short = noisy(record), unfinished(record)
    found += [host_share_words(record), below_the_row(record)]
    found += [_PROGRAMS_AT_ENDS] if record.programs_at_ends and record.figures else []
    found += [each for each in counted_beside(record) if each not in "; ".join(found)]
    found += [*full_tables(record), *ended_early(record)]
    found += directions_that_differ(record)
    found += [f"{IN_TEXT.cut_short} {cut_short}"] if cut_short else []
    # The verdict may contain some of these.
    for each in (*doubtful(record), *missing(record), *tester_faults(record)):
        found += [] if each in "; ".join(found) else [each]
    found += functions_missing(record)
    found += [own_loss(record)]
    found += [adapted(record)] if record.figures else []
    found += [f"noisy: {noise}"] if noise and noise not in "".join(found) else []
    found += [_OF_THE_BLACK_BOX] if _may_be_the_black_box(record, noise) else []
    found += [clock_set_back(record)]
    return [each for each in found if each]


def clock_set_back(record: Record) -> str:
    """Says that the times of a test contradict each other. Empty if they do not."""
    started, ended = record.started, record.ended
    if ended is None or datetime.fromisoformat(ended) >= datetime.fromisoformat(started):
        return ""
    return f"the machine's clock was set back during the test: it started at {started}, and ended at {ended}"


def figure_text(measured: Measured, quantity: Quantity, signs: Signs = IN_TEXT) -> str:
    """One of the record's results in its unit, with the signs of a bound."""
    return measured.written(number(measured.value / quantity.scale), signs)


def shown(records: Iterable[Record], *, application: bool = False) -> list[Metric]:
    """The metrics with a column in a table of these records: those found, and those that a method looked for.

    Those of application traffic have a table of their own.
    """
    sought = {name for record in records for name in (*record.figures, *_sought(record))}
    columns = (metric for metric in METRICS.values() if metric.column and metric.application == application)
    return [metric for metric in columns if metric.name in sought]


def with_applications(records: Iterable[Record], *, application: bool = True) -> list[Record]:
    """The records with figures of application traffic. With `application=False`, those with any other figures."""
    return [each for each in records if any(METRICS[name].application == application for name in each.figures)]


def _sought(record: Record) -> Iterator[str]:
    """The names of the metrics that the methods of a record looked for. A search looks for those of its goals. On a
    cluster, latencies are one way or round trips, and only the figures tell which. Elsewhere they are one way."""
    elsewhere = {*ONE_WAY, *ROUND_TRIP} if record.cluster else {*ROUND_TRIP}
    goals = {goal.get("name") for goal in (record.method("ndrpdr").get("preset") or {}).get("goals") or ()}
    for metric in METRICS.values():
        looked_for = metric.label in goals if metric.method == "ndrpdr" else metric.name not in elsewhere
        if metric.method in record.methods and looked_for:
            yield metric.name


def below_the_row(record: Record) -> str:
    """The figures of a record that have no column: `back-to-back 1 023 frames; recovery 3.1 ms`. Empty without any."""
    found = [metric for metric in METRICS.values() if not metric.column and metric.name in record.figures]
    return "; ".join(
        f"{each.label} {figure_text(record.figures[each.name], each.quantity)} {each.quantity.unit}" for each in found
    )


_DIFFERENT = 0.05  # directions differ if the slower one is slower by more than this share


def by_direction(record: Record) -> Mapping[str, str]:
    """The receive rate of the MRR's trials in each direction, kpps: `0.76 to 24.0`. Empty with one direction."""
    return {way: _range(rates) for way, rates in _rates(record).items()}


def directions_that_differ(record: Record) -> list[str]:
    """One sentence for each figure that differs between the directions: the figure in both. Empty without any."""
    return [*_mrr(record), *_searches(record)]


def _mrr(record: Record) -> Iterator[str]:
    medians = [median(rates) for rates in _rates(record).values()]
    if medians and min(medians) < (1 - _DIFFERENT) * max(medians):
        each = ", ".join(f"{way} {rates}" for way, rates in by_direction(record).items())
        yield f"{METRICS['mrr'].label} by direction, kpps: {each}"


def _searches(record: Record) -> Iterator[str]:
    """The direction that limits a goal of the search, if the other one had not too much loss at the upper bound."""
    for name, goal in (record.method("ndrpdr").get("goals") or {}).items():
        bound = goal.get("relevant_upper_bound") or {}
        losses = bound.get("loss_ratios") or {}
        if losses and min(losses.values()) <= goal["goal"]["loss_ratio"] < max(losses.values()):
            each = ", ".join(f"{way} {percent(loss)}" for way, loss in losses.items())
            yield f"{name} is that of {max(losses, key=losses.__getitem__)}: loss at {kpps(bound['load'])} kpps {each}"


def _rates(record: Record) -> Mapping[str, list[float]]:
    found = record.method("mrr").get("rates_by_direction") or {}
    return found if len(found) > 1 and all(found.values()) else {}


def _range(rates: list[float]) -> str:
    return kpps(rates[0]) if min(rates) == max(rates) else f"{kpps(min(rates))} to {kpps(max(rates))}"


Made = TypeVar("Made")
Run = TypeVar("Run", RunResults, PastRun)


def made_of(runs: Sequence[Run], make: Callable[[Sequence[Run]], Made]) -> tuple[Made, Sequence[Run]]:
    """A report of these runs, and the runs without the records that it cannot show. Each of those is a problem now.

    The schema knows the type of each value. It does not know whether the values agree with each other. `make` must
    write nothing. After an error, it is called again for each record alone.
    """
    try:
        return make(runs), runs
    except UNFORESEEN:
        kept = [_without_unshowable(run, make) for run in runs]
        if list(runs) == kept:
            raise
    return make(kept), kept


def _without_unshowable(run: Run, make: Callable[[Sequence[Run]], object]) -> Run:
    kept, problems = list[Record](), list(run.problems)
    for record in run.records:
        try:
            make([replace(run, records=(record,))])
            kept.append(record)
        except UNFORESEEN as error:
            problems.append(f"{printable(record.file_name)}: {disagreement(error)}")
    return replace(run, records=tuple(kept), problems=tuple(problems)) if len(kept) < len(run.records) else run
