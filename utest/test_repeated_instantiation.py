"""Repeated instantiation: the spread of rates and set-up times, and its two parts."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podperf.methods.repeated_instantiation import (
    TRIALS,
    Instance,
    RepeatedInstantiation,
    RepeatedInstantiationResult,
    StandingInstance,
)
from podperf.metrics import Measured
from simulated_dut import SimulatedDut


def test_each_instance_has_its_own_chain_and_trials() -> None:
    up: list[SimulatedDut] = []
    down: list[SimulatedDut] = []

    @contextmanager
    def build() -> Iterator[StandingInstance]:
        assert len(up) == len(down), "one at a time"
        up.append(SimulatedDut(1e5 * (1 + len(up)), 1e6))
        yield StandingInstance(up[-1], float(len(up)))
        down.append(up[-1])

    result = RepeatedInstantiation(3, 0.5).run(build)
    assert up == down
    assert [len(each.trials) for each in up] == [1 + TRIALS] * 3, "with a warm-up"
    assert result.rates == pytest.approx([1e5, 2e5, 3e5])
    assert result.metrics == {"set_up_time": Measured(2.0, 1.0, 3.0), "rate_variation": Measured(0.5)}
    record = json.loads(json.dumps(result.as_record()))
    assert record["rate"] == {"mean": 2e5, "deviation": 1e5, "minimum": 1e5, "maximum": 3e5}
    assert (record["variation_within"], record["variation_between"]) == (0, 0.5)


@given(within=st.floats(0.001, 0.1), between=st.floats(0.001, 0.1), seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_both_parts_are_found_again(within: float, between: float, seed: int) -> None:
    chance, number = random.Random(seed), 2000
    means = [chance.gauss(1e5, between * 1e5) for _ in range(number)]
    found = RepeatedInstantiationResult(
        tuple(Instance(1.0, tuple(chance.gauss(mean, within * 1e5) for _ in range(TRIALS))) for mean in means), 0.5
    )
    assert found.within / 1e5 == pytest.approx(within, rel=0.1)
    total = math.hypot(between, within / math.sqrt(TRIALS))
    assert found.metrics["rate_variation"].value == pytest.approx(total, rel=0.12)
    assert found.between / 1e5 == pytest.approx(between, rel=0.1, abs=0.2 * within)


def test_a_chain_that_passes_nothing_has_a_set_up_time_only() -> None:
    result = RepeatedInstantiationResult((Instance(1.0, (0.0, 0.0)), Instance(2.0, (0.0, 0.0))), 0.5)
    assert list(result.metrics) == ["set_up_time"]
    assert result.as_record()["variation_between"] is None
