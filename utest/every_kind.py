"""One record of each kind, with the result of every method. Tests of damaged and hostile records change them."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_up
from made_up_resources import resources_records
from podperf.experiments.chain_length import by_length
from podperf.experiments.claim import Finding, PairRatio, judge
from podperf.experiments.claims import LAYOUTS, service_density
from podperf.experiments.comparison import VariantComparison, VariantResult, exact_outcome
from podperf.experiments.contender import Contender
from podperf.methods import METHODS
from podperf.methods.base import MethodResult
from podperf.methods.cpu_time import CpuTimeResult
from podperf.methods.latency import LatencyAtShare
from podperf.methods.mrr import Mrr
from podperf.methods.ndrpdr import NdrPdr
from podperf.methods.presets import preset
from podperf.metrics import METRICS, Measured
from podperf.model import Chain, CpuTime, FrameSize
from podperf.records import TestRecord
from podperf.records.schema import schema_errors
from simulated_chain import SimulatedChain
from simulated_dut import SimulatedDut

Document = dict[str, Any]


def every_kind() -> dict[str, Document]:
    """The documents by the words for their kind. Each fits the schema."""
    found = {
        "a measured chain": _measured(),
        "the bare path": _short(*made_up.forwarding_record("wire", 9e6, pods=0)),
        "a skipped test": _short(made_up.skipped_record("ipvlan", "none"), []),
        "every method": _of_every_method(),
        "a counted cost": _short(made_up.counted_record("linux-bridge", {"br_forward": 300.0, "fib [bpf]": 41.5}), []),
        "a cost without functions": _short(made_up.counted_record("ptp", {}, missing="no symbols"), []),
        "findings": _findings(),
        **{resources_record.name: _short(resources_record, []) for resources_record in resources_records()},
        **{f"variants that are {each}": _variants(each) for each in ("compared", "measured alone")},
    }
    wrong = {kind: errors for kind, each in found.items() if (errors := schema_errors(each))}
    assert not wrong, wrong
    return found


def _short(record: TestRecord, trials: list[Any]) -> Document:
    """A record with two trials: enough to be drawn."""
    with tempfile.TemporaryDirectory() as folder:
        return made_up.document(record, trials[:1] + trials[-1:], Path(folder))


def _measured() -> Document:
    document = _short(*made_up.forwarding_record("linux-bridge", 281e3))
    document["environment"] |= {"further_workers": {"w2": {}}, "placement_remarks": ["both CPUs are one core's"]}
    dut = SimulatedDut(281e3, directions=2, weaker=0.5)
    search = NdrPdr(preset("quick"), dut.clock).run(dut).as_record()
    search |= {"incomplete": "too slow", "missing": {"NDR": "not found"}}
    search["preset"]["adapted"] = "longer trials"
    document["methods"] |= {"mrr": Mrr(2).run(dut).as_record(), "ndrpdr": search}
    document["results"]["ndr"]["unfinished"] = True
    fault = {"kind": "loses", "ratio": 0.001, "sentence": "it loses 0.1 % of the frames by itself"}
    document["tester_limits"] |= {"own_loss_ratio": 0.001, "own_loss_bound": 0.002, "faults": [fault]}
    document["tester_limits"]["own_latencies"] = [{"load": 1e4, "p50_ns": 340}, {"load": 1e5, "p50_ns": 470}]
    document["quietness"]["workers"] = [dict(document["quietness"])]
    document["interfaces"] = {"left": {"kind": "veth", "offloads": {"gro": True}, "bus": None}}
    document["tester"]["pods"] = {"left": {"node": "node-1"}, "right": {"node": "node-2"}}
    document["test"]["log"] = "log.html#s1-s2-t3"
    return document


def _of_every_method() -> Document:
    """A test with every method that measures one chain."""
    dut = SimulatedDut(2.5e5, 1e6, buffer=750, recovery=0.02, seed=3)
    chain = SimulatedChain(dut, {"pdr": Measured(2e5), "ndr": Measured(1.5e5)})
    at_half = LatencyAtShare(2e5, "PDR").run(dut)
    with_cpu_time = replace(at_half.trial, cpu_time=CpuTime({"pod1": 9_000_000}, runs=7, polling=("ovs-vswitchd",)))
    further = {name: method.on(chain) for name, method in METHODS.items()}
    results: dict[str, MethodResult] = {
        "mrr": Mrr(2, 0.5).run(dut),
        "ndrpdr": NdrPdr(preset("quick"), dut.clock).run(dut),
        "latency": at_half,
        "cpu_time": CpuTimeResult(replace(at_half, trial=with_cpu_time)),
        **{name: each for name, each in further.items() if each is not None},
    }
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    record.methods = {name: each.as_record() for name, each in results.items()}
    metrics: dict[str, Measured] = {}
    for result in results.values():
        metrics |= result.metrics
    record.metrics, record.verdict, record.thresholds, record.baseline = metrics, None, (), None
    record.outcome, record.tags = "passed", ["sec-4.2", "resources"]
    return _short(record, trials)


def _findings() -> Document:
    rates = [[Measured(1e6 * 0.8 ** (pods - 1))] * 10 for pods in (1, 2)]
    lengths = by_length([Chain("macvlan", pods) for pods in (1, 2)], rates)
    chains = [int(name[0]) for name in LAYOUTS]
    by_chain = [[[9e5 / chain] * chain] * 10 for chain in chains]
    density = judge(service_density("linux-bridge"), [[Measured(9e5)] * 10] * 5, by_chain=by_chain)
    ratio = Finding("a", "refuted", "b", ratios=(PairRatio("a", "b", 0.9, 1.0, math.inf),))
    longer = Finding("longer chains", "confirmed", "so", chain_lengths=lengths)
    return _short(TestRecord("f", "Order", "s", ["sec-4.2.4"], 0, 1, "passed", findings=[ratio, longer, density]), [])


def _variants(how: str) -> Document:
    """A comparison on a counted machine: of both variants in one boot, or one variant in its own boot."""
    record = made_up.counted_record("linux-bridge", {"br_forward": 300.0})
    cost = METRICS["cost"]
    variants = (Contender("before", Chain("linux-bridge", 1)), Contender("after", Chain("ptp", 1)))
    figures = [Measured(9000.0), Measured(9100.0)]
    both = zip(variants, figures, strict=True)
    found = [VariantResult(variant, (figure,), None, "r", "counted") for variant, figure in both]
    comparison = VariantComparison(Path("c.yaml"), "c", "two", variants, FrameSize.parse(64), metric=cost)
    if how == "compared":
        outcome = exact_outcome(comparison, found, 1.79e9)
        record.methods = {"cost of before": record.methods["cost"], "variants": outcome.to_json()}
    else:
        record.methods = {**record.methods, "variant": {"comparison": "c", **found[0].as_record()}}
    return _short(record, [])
