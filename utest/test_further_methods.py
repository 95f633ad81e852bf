"""Methods beside MRR and the search: their place in the record, below the row, and on the page."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import made_up
from podperf.methods.back_to_back import BackToBack
from podperf.methods.base import MethodResult
from podperf.methods.latency import LatencyAtShare
from podperf.methods.latency_by_load import LatencyByLoad
from podperf.methods.loss_curve import LossCurve
from podperf.methods.repeated_instantiation import RepeatedInstantiation, StandingInstance
from podperf.methods.soak import MemoryReading, Soak
from podperf.methods.system_recovery import SystemRecovery
from podperf.metrics import Measured
from podperf.model import TrialResult
from podperf.report.conformance import assess
from podperf.report.page import page
from podperf.report.results import read_run
from podperf.report.summary import summary_table
from simulated_dut import SimulatedDut


def reported(folder: Path, method: str, result: MethodResult, trials: list[TrialResult]) -> tuple[str, str, Any]:
    """Table, page and record of a run with one test, whose method had this result."""
    record, _ = made_up.forwarding_record("linux-bridge", 281e3)
    record.tags = ["sec-4.2", "resources"]
    record.methods, record.metrics, record.verdict = {method: result.as_record()}, result.metrics, None
    record.latency = record.baseline = None
    record.thresholds, record.outcome = (), "passed"
    made_up.write(folder, record, [(trial, method) for trial in trials])
    run = read_run(folder)
    assert run.problems == ()
    table = " ".join(summary_table(run.records, width=120).split())
    return table, page(assess([run], folder)), json.loads(run.path_of(run.records[0]).read_text())


def test_a_loss_curve_is_a_table_and_a_line(tmp_path: Path) -> None:
    dut = SimulatedDut(3.5e5, 1e6)
    table, html, record = reported(tmp_path, "loss_curve", LossCurve(0.5, 1000.0).run(dut), dut.trials)
    assert "loss-free load 300 kpps" in table
    assert "no loss" not in table.split("Verdict")[0]  # it has no column
    assert "Loss curve (RFC 2544 section 26.3), trials of 0.5 s" in html
    assert ">400<" in html
    assert record["results"]["loss_free_load"]["high_frames_per_second"] == 4e5
    assert "1 of the draft&#x27;s 17 sections with something to measure were measured" in html
    assert html.count("loss curve: ") == len(dut.trials) == 18  # a dot for each


def test_bursts_are_listed_and_have_no_dot_in_the_plot_of_loads(tmp_path: Path) -> None:
    dut = SimulatedDut(2.5e5, 1e6, buffer=750)
    result = BackToBack(3, 0.5, 2.5e5).run(dut)
    bursts = [replace(trial, trial=replace(trial.trial, frames=trial.sent)) for trial in dut.trials]
    table, html, record = reported(tmp_path, "back_to_back", result, bursts)
    assert "back-to-back 992 frames; buffer time 0.744 ms" in table
    assert "Back-to-back frames (RFC 9004)" in html and "0.992 ms, 0.744 ms" in html
    assert "<title>back-to-back: " not in html
    assert record["trials"][0]["frames"] == 64
    assert record["results"]["buffer_time"] == {"seconds": pytest.approx(0.75e-3, rel=0.02), "lower_bound": False}


def test_latency_by_load_has_a_row_for_each_step(tmp_path: Path) -> None:
    dut = SimulatedDut(3e5, 1e6)
    half, metrics = LatencyAtShare(3e5, "PDR"), {"pdr": Measured(3e5), "ndr": Measured(2e5)}
    method = LatencyByLoad.beside(half.run(dut), metrics, 0.5)
    assert method is not None
    table, html, record = reported(tmp_path, "latency_by_load", method.run(dut), dut.trials)
    assert "latency p50 at 10 % of PDR 1.00 us; latency p99 at 10 % of PDR 1.00 us; delay variation at 10 %" in table
    steps = ("10 % of the PDR", "50 % of the PDR", "100 % of the NDR", "90 % of the PDR")
    places = [html.index(step) for step in steps]
    assert places == sorted(places), "by load"
    assert record["results"]["latency_p99_at_ndr"]["nanoseconds"] == 1000
    assert record["results"]["delay_variation_at_ndr"]["nanoseconds"] == 0
    assert "PDV, µs" in html


def test_a_recovery_is_listed_and_one_without_overload_says_why_it_has_no_figure(tmp_path: Path) -> None:
    dut = SimulatedDut(1e5, 1e6, recovery=0.02)
    result = SystemRecovery(1e5, 3, 1.0, 1.0).run(dut)
    trials = [dut.after_overload(result.overload, result.load, 1.0)]
    table, html, record = reported(tmp_path / "a", "system_recovery", result, trials)
    assert "recovery time 20.0 ms" in table
    assert "1 s at 110 kpps (110 % of the NDR), then 1 s at 55.0 kpps" in html
    assert record["trials"][0]["overload"] == {"load": pytest.approx(1.1e5), "duration": 1.0}
    assert record["trials"][0]["directions"][0]["last_lost"] == pytest.approx(111_099, abs=1)
    idle = SystemRecovery(1e5, 3, 1.0, 1.0).run(SimulatedDut(1e6))
    table, _, _ = reported(tmp_path / "b", "system_recovery", idle, [])
    assert "recovery time not found: no overload: nothing was lost at 110,000 frames/s in any trial" in table


def test_instances_are_listed(tmp_path: Path) -> None:
    dut = SimulatedDut(1e5, 1e6, drift=0.02, seed=3)
    result = RepeatedInstantiation(4, 0.5).run(lambda: nullcontext(StandingInstance(dut, 0.25)))
    table, html, record = reported(tmp_path, "repeated_instantiation", result, dut.trials)
    assert "set-up time 250 ms; variation of the rate between set-ups" in table
    assert "version 05 of the draft): 4 set-ups" in html and "% from trial to trial, " in html
    assert len(record["methods"]["repeated_instantiation"]["instances"]) == 4


def test_a_soak_has_a_bound_and_the_memory_of_each_process(tmp_path: Path) -> None:
    dut, held = SimulatedDut(1e6, 1e6), iter(range(20, 100))

    def memory() -> MemoryReading:
        return MemoryReading({"testpmd (7)": next(held) << 20, "ovs-vswitchd (9)": 2**25}, {"local": 2**27})

    result = Soak(1e6, 30.0, 3.0, memory, dut.clock).run(dut)
    table, html, _ = reported(tmp_path / "a", "soak", result, dut.trials)
    assert "loss in a soak at most 1.11e-05 %; memory growth 7 168 KiB" in table
    assert "0 of 27 000 000 frames lost: at most 1.11e-05 % with 95 % confidence" in html
    assert "grows" in html and "flat" in html and "the kernel of local" in html
    kernel = Soak(1e6, 30.0, 3.0, lambda: MemoryReading({}, {"local": 2**27}), dut.clock).run(dut)
    table, _, _ = reported(tmp_path / "b", "soak", kernel, [])
    assert "memory growth not read: no process of the system under test handles frames" in table
