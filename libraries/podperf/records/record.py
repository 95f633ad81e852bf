"""The record of one test: its configuration, its trials and its result."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Literal

from podperf.cpu_plan import CpuPlan, roles_as_record
from podperf.experiments.claim import Finding
from podperf.figures import phase_words
from podperf.kernel.full_tables import FullTable
from podperf.metrics import Metric, Metrics
from podperf.model import AddressedTraffic, Chain, Latency, NetworkingModel, Placement
from podperf.noise import Noise, total, why_noisy
from podperf.records.json_values import (
    latency_summary,
    noise_to_json,
    plain,
    result_to_json,
    threshold_to_json,
    traffic_to_json,
)
from podperf.records.parameters import SetUp, on_each_worker, parameters_of, special_capabilities
from podperf.records.schema import SCHEMA_VERSION
from podperf.testbed.scenarios import Placed
from podperf.testers.base import TesterLimits
from podperf.thresholds import ThresholdVerdict
from podperf.topology import Threshold, Topology

Outcome = Literal["passed", "failed", "skipped", "interrupted"]


@dataclass(kw_only=True)
class Figures:
    """The figures that methods have found. `latency` is that of one trial, and `latency_of` tells which."""

    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # method name: MethodResult.as_record()
    metrics: Metrics = field(default_factory=dict)
    latency: Latency | None = None
    latency_of: str = ""
    noises: Mapping[str, Noise] = field(default_factory=dict)  # by phase: the noise of its valid trials
    # By phase and label of a metric: the noise of the trials that decided the figure. Without: that of the whole phase.
    decisive_noises: Mapping[str, Mapping[str, Noise]] = field(default_factory=dict)

    def noisy(self, metric: Metric) -> bool:
        """Whether foreign work disturbed the trials that decided this figure."""
        noise = self.decisive_noises.get(metric.method, {}).get(metric.label) or self.noises.get(metric.method)
        return noise is not None and noise.noisy


@dataclass
class TestRecord(Figures):
    """One test. The test fills its fields in while it runs. An unknown value stays None, and is null in the document.

    The RecordWriter makes `id` unique. `started` and `ended` are seconds since the epoch. Ratios compare with
    the record that has the id `baseline`. `link_bits_per_second` is None if no port has a link speed. `log` is the
    test's place in Robot Framework's log, such as `log.html#s1-t1`.
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
    second_model: NetworkingModel | None = None  # if the set-up of the chain belongs to two models
    chain: Chain | None = None
    traffic: AddressedTraffic | None = None
    placement: Placement | None = None
    cpu_plans: Sequence[CpuPlan] = ()  # of each worker of the chain, from left to right
    data_plane: Mapping[str, Any] | None = None  # DataPlane.describe()
    tester: Mapping[str, Any] | None = None  # Tester.describe()
    limits: TesterLimits | None = None
    link_bits_per_second: float | None = None
    environment: Mapping[str, Any] | None = None  # podperf.hosts.host_facts.collect()
    interfaces: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # environment.interface_details() each
    full_tables: Sequence[FullTable] = ()  # what tables of the workers dropped and evicted in the test
    waited: float = 0.0  # seconds of waiting for a quiet machine, and of disturbed trials
    baseline: str | None = None
    thresholds: Sequence[Threshold] = ()
    verdict: ThresholdVerdict | None = None
    findings: Sequence[Finding] = ()
    log: str | None = None
    version_under_test: str | None = None  # as the user named it
    contenders: Mapping[str, tuple[Chain, Placed]] = field(default_factory=dict)  # of a comparison, by their names

    def to_json(self, trials: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """The document, in JSON types only (record.schema.json). `trials` come from `trial_to_json`."""
        return {
            "schema_version": SCHEMA_VERSION,
            "id": self.id,
            "test": {
                "name": self.name,
                "suite": self.suite,
                "tags": list(self.tags),
                "sections": self._sections(),
                "log": self.log,
            },
            "started": _timestamp(self.started),
            "ended": None if self.ended is None else _timestamp(self.ended),
            "outcome": self.outcome,
            "reason": self.reason,
            "version_under_test": self.version_under_test,
            "testbed": None if self.topology is None else _testbed(self.topology),
            "networking_model": self.model,
            "chain": None if self.chain is None else asdict(self.chain),
            "traffic": None if self.traffic is None else traffic_to_json(self.traffic),
            "placement": self.placement and self.placement.as_record(),
            "roles": roles_as_record(self.cpu_plans),
            "data_plane": plain(self.data_plane),
            "tester": plain(self.tester),
            "tester_limits": plain(self.limits),
            "link_bits_per_second": plain(self.link_bits_per_second),
            "special_capabilities": special_capabilities(self.data_plane or {}),
            "parameters": parameters_of(self._set_ups),
            "environment": plain(self.environment),
            "interfaces": plain(self.interfaces),
            "methods": plain(self.methods),
            "results": self._results(),
            "latency": None if self.latency is None else latency_summary(self.latency, self.latency_of),
            "quietness": self._quietness(),
            "waited_for_quietness": self.waited,
            "full_tables": plain(self.full_tables),
            "baseline": self.baseline,
            "thresholds": [threshold_to_json(threshold) for threshold in self.thresholds],
            "verdict": plain(self.verdict),
            "findings": plain(self.findings),
            "trials": list(trials),
        }

    def _sections(self) -> list[str]:
        """The sections that the tags name, and the section of the second networking model, if the set-up has one."""
        second = [self.second_model.section] if self.second_model is not None else []
        return list(dict.fromkeys([*sections_of(self.tags), *second]))

    @property
    def _set_ups(self) -> dict[str, SetUp]:
        """The chains of this test: its own chain, or all chains of a comparison. Without the tester's interfaces."""
        environment, descriptions = self.environment or {}, self.data_plane or {}
        if cluster := (self.tester or {}).get("cluster"):  # the tester's ports are pods of it
            environment = {**environment, "cluster": cluster}
        if not self.contenders:
            own = {name: each for name, each in self.interfaces.items() if not name.startswith("tester ")}
            return on_each_worker(self.chain, self.cpu_plans, (), descriptions, own, environment)
        found = {}
        for name, (chain, placed) in self.contenders.items():
            own = {
                key.removeprefix(f"{name}: "): each
                for key, each in self.interfaces.items()
                if key.startswith(f"{name}: ") and not key.startswith(f"{name}: tester ")
            }
            described = descriptions.get(name) or {}
            parts = on_each_worker(chain, placed.cpus, placed.shared, described, own, environment)
            found.update({", ".join(filter(None, (name, worker))): each for worker, each in parts.items()})
        return found

    def why_noisy(self) -> str | None:
        """The reason why figures of this test may describe foreign work, or None."""
        judged: dict[str, Noise] = {}
        for phase, noise in self.noises.items():
            judged |= self.decisive_noises.get(phase) or {phase_words(phase): noise}
        return why_noisy(judged)

    def _quietness(self) -> dict[str, Any] | None:
        """The noise of all phases together, and the verdict on each by itself."""
        together = noise_to_json(total(self.noises.values()))
        reason = self.why_noisy()
        return together and {**together, "noisy": reason is not None, "reason": reason}

    def _results(self) -> dict[str, Any]:
        if self.traffic is None:
            return {}
        return {
            metric: result_to_json(metric, measured, self.traffic, self.link_bits_per_second)
            for metric, measured in self.metrics.items()
        }


def record_id(*words: str) -> str:
    """A readable name for any file system, made of these words. Empty words are left out."""
    safe = (re.sub(r"[^A-Za-z0-9._]+", "-", word).strip("-.") for word in words)
    return "-".join(word for word in safe if word)[:120] or "test"


def sections_of(tags: Iterable[str]) -> tuple[str, ...]:
    """The draft sections that a test's tags name: `sec-4.1.1` is 4.1.1, `appendix-c` is C."""
    found = [tag[4:] for tag in tags if tag.startswith("sec-")]
    found += [tag[9:].upper() for tag in tags if tag.startswith("appendix-")]
    return tuple(dict.fromkeys(found))


def topology_digest(topology: Topology) -> str | None:
    """SHA-256 of the topology's file. None if the file is gone; the record has its name nevertheless."""
    try:
        return sha256(Path(topology.path).read_bytes()).hexdigest()
    except OSError:
        return None


def _testbed(topology: Topology) -> dict[str, Any]:
    return {
        "name": topology.name,
        "description": topology.description,
        "path": topology.path,
        "sha256": topology_digest(topology),
        "labels": dict(topology.labels),
        "not_comparable": topology.not_comparable or None,
    }


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
