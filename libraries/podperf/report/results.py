"""Reads the results of runs: their records, and the trials of interrupted tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from podperf import records
from podperf.dataplanes.wire import Wire
from podperf.errors import PodperfError
from podperf.figures import number, percent
from podperf.metrics import IN_TEXT, METRICS, Measured, Metric, Quantity, Signs
from podperf.printable import printable
from podperf.records import TRIALS_SUFFIX, read_record, record_files

Record = records.Record  # the main type of this package

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
        return self.directory.name

    @property
    def started(self) -> str:
        """The start of the first test (ISO 8601, UTC). Empty if no record could be read."""
        return str(self.records[0]["started"]) if self.records else ""

    def path_of(self, record: Record) -> Path:
        """The path of the record."""
        suffix = TRIALS_SUFFIX if record["outcome"] == "interrupted" and record["ended"] is None else ".json"
        return self.directory / "records" / f"{record['id']}{suffix}"


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
    paths = record_files(directory / "records")
    if not paths:
        raise PodperfError(f"{directory}: no records in it (records/*.json); give the results folder of a run")
    records, problems = [], []
    for path in paths:
        try:
            records.append(read_record(path, trials=trials))
        except PodperfError as error:
            problems.append(f"{printable(path.name)}: {error}")
    records.sort(key=lambda record: (record["started"], record["id"]))
    return RunResults(directory, tuple(records), tuple(problems))


def is_bare_path(record: Record) -> bool:
    """Whether the tester's ports were plugged into each other. (A black box also has no category.)"""
    return record["chain"] is not None and record["chain"]["data_plane"] == Wire.name


def verdict_word(record: Record) -> str:
    """One word for the end of a table row: the outcome, or the judgement of a passed test."""
    return judgement(record) if record["outcome"] == "passed" else str(record["outcome"])


def judgement(record: Record) -> str:
    """The status by verdict or findings. `measured` if there was no threshold to miss."""
    compared = record["methods"].get("variants", {}).get("verdict")
    if compared:
        return str(compared)
    if record["verdict"] is None:
        found = {each["verdict"] for each in record["findings"]}
        return next((word for word in ("refuted", "inconclusive", "confirmed") if word in found), "passed")
    status = str(record["verdict"]["status"])
    return "measured" if status == "no threshold" else status


def special_capabilities(record: Record) -> list[str]:
    """One sentence for each part of the system under test that runs only for the benchmark. Empty in older records."""
    return [str(each) for each in record.get("special_capabilities", ())]


def said_by(finding: Record) -> str:
    """The source of a finding's claim, in words. Empty in an older record."""
    if "source" not in finding:
        return ""
    return str(finding["source"] or "podperf's own expectation; no document says so")


def only_expected(record: Record) -> bool:
    """Whether all claims of this record are podperf's own. Their verdicts say nothing about the draft."""
    return bool(record["findings"]) and all("source" in each and each["source"] is None for each in record["findings"])


def noisy(record: Record) -> str | None:
    """The reason why the machine was too noisy for this test. None if it was quiet, or if podperf did not watch it."""
    quietness = record["quietness"]
    if not quietness or not quietness["noisy"]:
        return None
    return str(quietness.get("reason") or "foreign load on the measuring CPUs")


def preset(record: Record) -> str:
    """The name of the search's preset, and the differences from it with this tester. Empty without a search."""
    found = (record["methods"].get("ndrpdr") or {}).get("preset") or {}
    return " with ".join(filter(None, (str(found.get("name", "")), str(found.get("adapted", "")).partition(",")[0])))


def adapted(record: Record) -> str:
    """The differences from the preset, for example because a tester needs longer trials. Empty without a difference."""
    found = (record["methods"].get("ndrpdr") or {}).get("preset") or {}
    return f"preset {found['name']} has {found['adapted']}" if found.get("adapted") else ""


def not_comparable(record: Record) -> str | None:
    """The reason why figures of this record must not be compared with other testbeds, or None."""
    reason = (record["testbed"] or {}).get("not_comparable")
    return str(reason) if reason and (record["results"] or record["findings"]) else None


def tester_faults(record: Record) -> list[str]:
    """One sentence for each fault of the tester in this test."""
    return [str(each["sentence"]) for each in (record["tester_limits"] or {}).get("faults", ())]


def own_loss(record: Record) -> str:
    """The tester's own part of a loss ratio, in words. Empty for a tester without a fault."""
    loss = (record["tester_limits"] or {}).get("own_loss_ratio")
    return f"{percent(loss)} of the frames are the tester's own loss" if tester_faults(record) and loss else ""


def missing(record: Record) -> list[str]:
    """The figures that a method wanted and did not find, with the reason: `NDR, PDR not found: …`."""
    reasons: dict[str, list[str]] = {}
    for method in ("ndrpdr", "cpu_time", "system_recovery", "soak"):
        for name, reason in ((record["methods"].get(method) or {}).get("missing") or {}).items():
            reasons.setdefault(str(reason), []).append(str(name))
    return [f"{', '.join(names)} {reason}" for reason, names in reasons.items()]


def polls(record: Record) -> bool:
    """Whether parts of the system under test poll, so that it has no CPU time a frame."""
    return bool((record["methods"].get("cpu_time") or {}).get("polls"))


def cpu_time_words(record: Record) -> str:
    """The parts of the CPU time a frame: `receive thread of w-left 812 ns; polls, not told: pod1`. Empty without."""
    found = record["methods"].get("cpu_time") or {}
    words = [f"{name} {number(amount)} ns" for name, amount in (found.get("parts") or {}).items() if amount]
    words += [f"polls, not told: {', '.join(found['polls'])}"] if polls(record) else []
    return "; ".join(words)


def functions_missing(record: Record) -> list[str]:
    """The reasons why a cost is not told by function, one sentence each. Empty where it is, and without a cost."""
    bursts = (record["methods"].get("cost") or {}).get("bursts") or ()
    reasons = dict.fromkeys(str(each["functions_missing"]) for each in bursts if each.get("functions_missing"))
    return [f"the cost is not told by function: {each}" for each in reasons]


def caveats(record: Record) -> list[str]:
    """One or two words for each thing that limits the figures of this record."""
    found = (
        ("faulty tester", tester_faults(record)),
        ("noisy", noisy(record)),
        ("not comparable", not_comparable(record)),
    )
    return [word for word, reason in found if reason]


def explanation(record: Record) -> str:
    """The sentence behind the verdict: the reason of a skip or a failure, or the result of the thresholds."""
    if record["reason"]:
        return str(record["reason"])
    return str(record["verdict"]["sentence"]) if record["verdict"] else ""


def unfinished(record: Record) -> str | None:
    """The rates of an unfinished search, and why it ended early. None without such rates."""
    rates = [METRICS[name] for name, each in record["results"].items() if each.get("unfinished")]
    if not rates:
        return None
    reason = record["methods"].get(rates[0].method, {}).get("incomplete") or "the search was not finished"
    return f"{', '.join(each.label for each in rates)}: {reason}"


def remarks(record: Record) -> list[str]:
    """The remarks below a row: why it did not pass, and what limits its figures."""
    found = [] if verdict_word(record) in _NEEDS_NO_WORDS else [explanation(record)]
    noise, cut_short = noisy(record), unfinished(record)
    found += [below_the_row(record)]
    found += [f"{IN_TEXT.cut_short} {cut_short}"] if cut_short else []
    for each in (*missing(record), *tester_faults(record)):  # the verdict may contain some of them
        found += [] if each in "; ".join(found) else [each]
    found += functions_missing(record)
    found += [own_loss(record)]
    found += [adapted(record)] if record["results"] else []
    found += [f"noisy: {noise}"] if noise and noise not in "".join(found) else []
    return [each for each in found if each]


def figure_text(found: Record, quantity: Quantity, signs: Signs = IN_TEXT) -> str:
    """One of the record's results in its unit, with the signs of a bound."""
    bounds = {each: bool(found.get(each)) for each in ("lower_bound", "upper_bound", "unfinished")}
    measured = Measured(found[quantity.key], **bounds)
    return measured.written(number(measured.value / quantity.scale), signs)


def shown(records: Iterable[Record]) -> list[Metric]:
    """The metrics with a column in a table of these records: those found, and those that a method looked for."""
    known = {name for record in records for name in (*record["results"], *record["methods"])}
    return [each for each in METRICS.values() if each.column and known & {each.name, each.method}]


def below_the_row(record: Record) -> str:
    """The figures of a record that have no column: `back-to-back 1 023 frames; recovery 3.1 ms`. Empty without any."""
    found = [each for each in METRICS.values() if not each.column and each.name in record["results"]]
    return "; ".join(
        f"{each.label} {figure_text(record['results'][each.name], each.quantity)} {each.quantity.unit}"
        for each in found
    )
