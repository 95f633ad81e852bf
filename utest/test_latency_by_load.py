"""Latency at shares of the rates that a search found."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.methods.latency import LatencyAtShare
from podperf.methods.latency_by_load import LatencyByLoad
from podperf.metrics import Measured
from simulated_dut import SimulatedDut


@given(pdr=st.floats(1e4, 1e6), share=st.floats(0.1, 1.0))
def test_loads_are_shares_of_the_pdr_and_the_ndr_itself(pdr: float, share: float) -> None:
    dut, metrics = SimulatedDut(2e6), {"pdr": Measured(pdr), "ndr": Measured(pdr * share)}
    half = LatencyAtShare.below(metrics)
    assert half is not None
    method = LatencyByLoad.beside(half.run(dut), metrics, 0.2)
    assert method is not None
    result = method.run(dut)
    assert [trial.trial.load for trial in dut.trials] == pytest.approx([pdr / 2, pdr / 10, pdr * 0.9, pdr * share])
    loads = [step["load"] for step in json.loads(json.dumps(result.as_record()))["steps"]]
    assert loads == sorted(loads) and len(loads) == 4
    assert len(result.metrics) == 9 and not any(metric.unfinished for metric in result.metrics.values())


def test_without_a_pdr_the_shares_are_those_of_the_ndr_and_an_unfinished_rate_marks_its_figures() -> None:
    dut, metrics = SimulatedDut(2e6), {"ndr": Measured(1e5, unfinished=True)}
    method = LatencyByLoad.beside(LatencyAtShare(1e5, "NDR").run(dut), metrics, 0.2)
    assert method is not None
    found = method.run(dut).metrics
    assert [trial.trial.load for trial in dut.trials[1:]] == pytest.approx([1e4, 9e4, 1e5])
    assert all(each.unfinished for each in found.values())


def test_a_rate_that_is_only_an_upper_bound_has_no_step() -> None:
    dut = SimulatedDut(2e6)
    half, below = LatencyAtShare(1e5, "PDR").run(dut), Measured(1e3, upper_bound=True)
    method = LatencyByLoad.beside(half, {"pdr": Measured(1e5), "ndr": below}, 0.2)
    assert method is not None and list(method.trials) == ["10", "90"]
    assert LatencyByLoad.beside(half, {"ndr": below}, 0.2) is None


def test_a_step_that_returns_nothing_has_no_figure() -> None:
    dut = SimulatedDut(0.0)
    method = LatencyByLoad.beside(LatencyAtShare(1e5, "PDR").run(dut), {"pdr": Measured(1e5)}, 0.2)
    assert method is not None
    result = method.run(dut)
    assert result.metrics == {} and all(step["latency"] is None for step in result.as_record()["steps"])
