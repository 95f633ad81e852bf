"""The record of one test: a JSON document with everything that led to its result, and each trial on disk as it ends.

While a test runs, `records/<id>.trials.jsonl` grows by a line a trial; its first line is the record as far as it is
known. When the test ends, `records/<id>.json` takes its place. `record.schema.json` beside this file is its schema.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import jsonschema

from podperf.errors import PodperfError
from podperf.model import (
    Chain,
    Direction,
    DirectionResult,
    Entry,
    FrameSize,
    Latency,
    NetworkingModel,
    Placement,
    Traffic,
    Trial,
    TrialResult,
    l1_bit_rate,
    l2_bit_rate,
    line_rate,
)
from podperf.noise import Noise
from podperf.records.files import replace_file, sync_folder, write_all
from podperf.records.histogram import to_hdr
from podperf.testers.base import UNPACED, TesterLimits
from podperf.topology import Threshold, Topology
from podperf.verdicts.findings import Finding
from podperf.verdicts.thresholds import Measured, Metrics, Verdict

SCHEMA_VERSION = 1
SCHEMA_PATH = Path(__file__).with_name("record.schema.json")
TRIALS_SUFFIX = ".trials.jsonl"

Outcome = Literal["passed", "failed", "skipped", "error", "interrupted"]


@dataclass
class TestRecord:
    """One test, filled in as it goes; what stays unknown stays None and is null in the document.

    `id` is made unique by the RecordWriter; `started` and `ended` are seconds since the epoch; `latency` is that of the
    reporting trial, which `latency_of` names in words; `baseline` is the id of the record whose figures the relative
    thresholds refer to; `link_bits_per_second` is set where a link speed exists.
    """

    __test__: ClassVar[bool] = False  # not a pytest class

    id: str
    name: str
    suite: str
    tags: Sequence[str] = ()
    started: float = field(default_factory=time.time)
    ended: float | None = None
    outcome: Outcome = "interrupted"  # until the test says how it ended
    reason: str = ""
    topology: Topology | None = None
    model: NetworkingModel | None = None
    chain: Chain | None = None
    traffic: Traffic | None = None
    placement: Placement | None = None
    data_plane: Mapping[str, Any] | None = None  # DataPlane.describe()
    tester: Mapping[str, Any] | None = None  # Tester.describe()
    limits: TesterLimits | None = None
    link_bits_per_second: float | None = None
    environment: Mapping[str, Any] | None = None  # podperf.hosts.environment.collect()
    interfaces: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # environment.interface_details() each
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # method name: MethodResult.as_record()
    metrics: Metrics = field(default_factory=dict)
    latency: Latency | None = None
    latency_of: str = ""
    noise: Noise | None = None  # of all valid trials together; None: not watched
    waited: float = 0.0  # seconds spent on waiting for a quiet machine, and on trials that were disturbed
    baseline: str | None = None
    thresholds: Sequence[Threshold] = ()
    verdict: Verdict | None = None
    findings: Sequence[Finding] = ()

    def to_json(self, trials: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """The document, with trials as `trial_to_json` gives them. JSON types only; see record.schema.json."""
        return {
            "schema_version": SCHEMA_VERSION,
            "id": self.id,
            "test": {
                "name": self.name,
                "suite": self.suite,
                "tags": list(self.tags),
                "sections": list(sections_of(self.tags)),
            },
            "started": _timestamp(self.started),
            "ended": None if self.ended is None else _timestamp(self.ended),
            "outcome": self.outcome,
            "reason": self.reason,
            "testbed": None if self.topology is None else _testbed(self.topology),
            "networking_model": self.model,
            "chain": None if self.chain is None else asdict(self.chain),
            "traffic": None if self.traffic is None else traffic_to_json(self.traffic),
            "placement": None if self.placement is None else _placement(self.placement),
            "data_plane": plain(self.data_plane),
            "tester": plain(self.tester),
            "tester_limits": plain(self.limits),
            "link_bits_per_second": plain(self.link_bits_per_second),
            "environment": plain(self.environment),
            "interfaces": plain(self.interfaces),
            "methods": plain(self.methods),
            "results": self._results(),
            "latency": None if self.latency is None else latency_summary(self.latency, self.latency_of),
            "quietness": noise_to_json(self.noise),
            "waited_for_quietness": self.waited,
            "baseline": self.baseline,
            "thresholds": [threshold_to_json(each) for each in self.thresholds],
            "verdict": plain(self.verdict),
            "findings": plain(self.findings),
            "trials": list(trials),
        }

    def _results(self) -> dict[str, Any]:
        results: dict[str, Any] = {}
        for metric, measured in self.metrics.items():
            if metric.startswith("latency"):
                results[metric] = {"nanoseconds": measured.value, "lower_bound": measured.lower_bound}
            elif self.traffic is not None:
                results[metric] = rate_to_json(measured, self.traffic, self.link_bits_per_second)
        return results


def record_id(*words: str) -> str:
    """A readable name that any file system takes, from the words that say what is measured; empty ones are left out."""
    safe = (re.sub(r"[^A-Za-z0-9._]+", "-", word).strip("-.") for word in words)
    return "-".join(word for word in safe if word)[:120] or "test"


def sections_of(tags: Iterable[str]) -> tuple[str, ...]:
    """The draft sections that a test's tags name: `sec-4.1.1` is 4.1.1, `appendix-c` is C."""
    found = [tag[4:] for tag in tags if tag.startswith("sec-")]
    found += [tag[9:].upper() for tag in tags if tag.startswith("appendix-")]
    return tuple(dict.fromkeys(found))


def rate_to_json(measured: Measured, traffic: Traffic, link_bits_per_second: float | None) -> dict[str, Any]:
    """A rate in every unit the report needs; `aggregate_` is the sum of the directions, the rest is per direction."""
    rate, ways = measured.value, len(traffic.directions)
    share = rate / line_rate(link_bits_per_second, traffic.frame) * 100 if link_bits_per_second else None
    return {
        "frames_per_second": rate,
        "low_frames_per_second": measured.low,
        "high_frames_per_second": measured.high,
        "lower_bound": measured.lower_bound,
        "upper_bound": measured.upper_bound,
        "l1_bits_per_second": l1_bit_rate(rate, traffic.frame),
        "l2_bits_per_second": l2_bit_rate(rate, traffic.frame),
        "aggregate_frames_per_second": rate * ways,
        "aggregate_l1_bits_per_second": l1_bit_rate(rate * ways, traffic.frame),
        "aggregate_l2_bits_per_second": l2_bit_rate(rate * ways, traffic.frame),
        "percent_of_line_rate": share,
    }


def latency_summary(latency: Latency, of: str = "") -> dict[str, Any]:
    """Minimum, mean, percentiles and maximum in ns, and the whole distribution in HdrHistogram's base64 form."""
    return {
        "of": of,
        "minimum_ns": latency.minimum,
        "mean_ns": latency.mean,
        "p50_ns": latency.percentile(50),
        "p90_ns": latency.percentile(90),
        "p99_ns": latency.percentile(99),
        "p99_9_ns": latency.percentile(99.9),
        "maximum_ns": latency.maximum,
        "hdr_histogram": to_hdr(latency),
    }


def traffic_to_json(traffic: Traffic) -> dict[str, Any]:
    """Traffic as JSON; `traffic_from_json` is its inverse."""
    return {
        "frame": {"name": traffic.frame.name, "sequence": list(traffic.frame.sequence)},
        "directions": list(traffic.directions),
        "flows": traffic.flows,
        "entries": {direction: asdict(entry) for direction, entry in traffic.entries.items()},
    }


def traffic_from_json(data: Mapping[str, Any]) -> Traffic:
    """The Traffic that `traffic_to_json` wrote."""
    entries = {Direction(direction): Entry(**entry) for direction, entry in data["entries"].items()}
    frame = FrameSize(data["frame"]["name"], tuple(data["frame"]["sequence"]))
    directions = tuple(Direction(each) for each in data["directions"])
    return Traffic(frame, directions, data["flows"], MappingProxyType(entries))


def trial_to_json(result: TrialResult, phase: str) -> dict[str, Any]:
    """One trial as it happened, and its derived figures for readers that are not Python.

    `phase` says what asked for it (`mrr`, `ndrpdr`, `calibration` …). A `load` of null was as fast as the tester could.
    The traffic is the record's, so it is not repeated here.
    """
    return {
        "phase": phase,
        "started": result.started,
        "load": None if result.trial.load == UNPACED else result.trial.load,
        "duration": result.trial.duration,
        "elapsed": result.elapsed,
        "invalid": result.invalid,
        "stray": result.stray,
        "own_drops": result.own_drops,
        "loss_ratio": result.loss_ratio,
        "achieved_load": result.achieved_load,
        "receive_rate": result.receive_rate,
        "noise": noise_to_json(result.noise),
        "directions": [_direction_to_json(each) for each in result.directions],
    }


def trial_from_json(data: Mapping[str, Any], traffic: Traffic) -> TrialResult:
    """The TrialResult that `trial_to_json` wrote, with the record's traffic."""
    load = UNPACED if data["load"] is None else data["load"]
    return TrialResult(
        trial=Trial(traffic, load, data["duration"]),
        started=data["started"],
        directions=tuple(_direction_from_json(each) for each in data["directions"]),
        stray=data["stray"],
        own_drops=data["own_drops"],
        invalid=data["invalid"],
        elapsed=data["elapsed"],
        noise=noise_from_json(data["noise"]),
    )


def noise_to_json(noise: Noise | None) -> dict[str, Any] | None:
    """What `Noise.as_record` says, and what is needed to read it back."""
    if noise is None:
        return None
    worker = {} if noise.worker is None else {"worker": noise_to_json(noise.worker)}
    return {**noise.as_record(), "stolen_seconds": noise.stolen, "resolution": noise.resolution, **worker}


def noise_from_json(data: Mapping[str, Any] | None) -> Noise | None:
    """The Noise that `noise_to_json` wrote."""
    if data is None:
        return None
    return Noise(
        cpus=tuple(data["cpus"]),
        window=data["window"],
        stolen=data["stolen_seconds"],
        foreign=data["foreign"],
        context_switches=data["context_switches"],
        run_queue=data["run_queue"],
        resolution=data["resolution"],
        speed=data.get("speed"),
        worker=noise_from_json(data.get("worker")),
    )


def _direction_to_json(result: DirectionResult) -> dict[str, Any]:
    data = {each.name: getattr(result, each.name) for each in fields(result) if each.name != "latency"}
    latency = result.latency
    data["latency"] = latency and {
        "minimum_ns": latency.minimum,
        "mean_ns": latency.mean,
        "maximum_ns": latency.maximum,
        "counts": {str(index): count for index, count in sorted(latency.counts.items())},
    }
    return data


def _direction_from_json(data: Mapping[str, Any]) -> DirectionResult:
    latency = data["latency"] and Latency(
        data["latency"]["minimum_ns"],
        data["latency"]["mean_ns"],
        data["latency"]["maximum_ns"],
        {int(index): count for index, count in data["latency"]["counts"].items()},
    )
    return DirectionResult(**{**data, "direction": Direction(data["direction"]), "latency": latency})


def threshold_to_json(threshold: Threshold) -> dict[str, Any]:
    """A threshold with its selectors; the frame by its name."""
    return {**asdict(threshold), "frame": threshold.frame and threshold.frame.name}


def plain(value: Any) -> Any:
    """A value as JSON types: dataclasses and mappings become objects, sequences arrays, the rest text or null."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [plain(each) for each in value]
    return str(value)


def _testbed(topology: Topology) -> dict[str, Any]:
    try:
        digest = sha256(Path(topology.path).read_bytes()).hexdigest()
    except OSError:
        digest = None  # the file may have gone since it was read; its name still says which it was
    return {
        "name": topology.name,
        "description": topology.description,
        "path": topology.path,
        "sha256": digest,
        "labels": dict(topology.labels),
        "not_comparable": topology.not_comparable or None,
    }


def _placement(placement: Placement) -> dict[str, Any]:
    return {
        "tester": list(placement.tester),
        "sut": list(placement.sut),
        "switch": list(placement.switch),
        "pods": list(placement.pods),
        "shared": list(placement.shared),
        "hugepages": placement.hugepages,
        "apart": placement.apart,
    }


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


@functools.cache
def _validator() -> Any:
    draft = jsonschema.Draft202012Validator
    extend: Any = jsonschema.validators.extend
    quick = extend(draft, {"patternProperties": _pattern_properties})
    return quick(json.loads(SCHEMA_PATH.read_text(encoding="utf-8")))


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any) -> Iterator[Any]:
    """As the draft has it, but at once for a sound latency histogram: a run has a hundred thousand of its buckets."""
    counts = patterns.get("^[0-9]+$") == {"type": "integer", "minimum": 0} and isinstance(instance, dict)
    if counts and all(type(each) is int and each >= 0 for each in instance.values()):
        return
    yield from jsonschema.Draft202012Validator.VALIDATORS["patternProperties"](validator, patterns, instance, schema)


def schema_errors(document: Mapping[str, Any]) -> list[str]:
    """What keeps a document from being a record: one line each, with the place in it; empty when it is one."""
    errors = sorted(_validator().iter_errors(document), key=lambda each: each.json_path)
    return [f"{each.json_path}: {each.message[:300]}" for each in errors]


class RecordWriter:
    """Keeps one test's trials and record on disk.

    A disk that is full or a folder that is read-only never stops a measurement: what could not be written is kept, and
    `finish` says so in its PodperfError.
    """

    def __init__(self, directory: Path | str, record: TestRecord) -> None:
        """Open `<directory>/<id>.trials.jsonl`, the id made unique there (and set in the record).

        The record as it is now becomes the first line, so that an interrupted test can still be reported: fill in what
        is known before.
        """
        self.directory = Path(directory)
        self.trials: list[dict[str, Any]] = []
        self._pending: list[Mapping[str, Any]] = [record.to_json()]
        self._file: int | None = None
        with contextlib.suppress(OSError):  # `finish` tries again, and speaks
            self.directory.mkdir(parents=True, exist_ok=True)
            self._file = self._reserve(record)
            self._pending = [record.to_json()]  # with the id that it got
            self._flush()
            sync_folder(self.directory)

    def _reserve(self, record: TestRecord) -> int:
        wanted, copy = record.id, 1
        while True:
            path = self.directory / f"{record.id}{TRIALS_SUFFIX}"
            if not (self.directory / f"{record.id}.json").exists():
                with contextlib.suppress(FileExistsError):
                    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
            copy += 1
            record.id = f"{wanted}-{copy}"

    def trial(self, result: TrialResult, phase: str) -> None:
        """Put one trial on disk; it is there when this returns."""
        self.trials.append(trial_to_json(result, phase))
        self._pending.append(self.trials[-1])
        with contextlib.suppress(OSError):  # stays pending: the next trial tries again, and `finish` speaks
            self._flush()

    def _flush(self) -> None:
        while self._file is not None and self._pending:
            end = os.fstat(self._file).st_size
            try:
                write_all(self._file, _compact(self._pending[0]) + b"\n")
                os.fsync(self._file)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, end)  # half a line would spoil the next one
                raise
            del self._pending[0]

    def finish(self, record: TestRecord) -> Path:
        """Write the whole record and drop the trials' file; returns the record's path.

        PodperfError when it does not fit the schema (it is on disk all the same) or could not be written there: then it
        is in the system's temporary folder where that works, and the trials' file stays.
        """
        if record.ended is None:
            record.ended = time.time()
        document = record.to_json(self.trials)
        trials_path, path = self.directory / f"{record.id}{TRIALS_SUFFIX}", self.directory / f"{record.id}.json"
        self.close()
        try:
            replace_file(path, _readable(document))
        except OSError as error:
            raise PodperfError(f"cannot write {path}: {error.strerror}; {_rescue(document)}") from error
        with contextlib.suppress(OSError):
            trials_path.unlink(missing_ok=True)
        if problems := schema_errors(document):
            raise PodperfError(f"the record {path} does not fit its schema: {'; '.join(problems[:3])}")
        return path

    def close(self) -> None:
        """Leave the trials' file as it is. Safe to repeat."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _rescue(document: Mapping[str, Any]) -> str:
    try:
        folder = Path(tempfile.mkdtemp(prefix="podperf-record-"))
        replace_file(folder / f"{document['id']}.json", _readable(document))
    except OSError as error:
        return f"nor anywhere else ({error.strerror}): free some space and run the test again"
    return f"it is in {folder} instead: free some space, then move it there"


def _compact(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def _readable(document: Mapping[str, Any]) -> bytes:
    """Indented, but for the trials: one line each."""
    head = json.dumps({**document, "trials": []}, allow_nan=False, indent=2).encode()
    trials = b",\n".join(b"    " + _compact(each) for each in document["trials"])
    return head.removesuffix(b"]\n}") + (b"\n" + trials + b"\n  " if trials else b"") + b"]\n}\n"
