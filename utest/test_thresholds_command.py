"""`podperf thresholds`: bounds from runs, as a topology file takes them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import made_up_history
from podperf.__main__ import main
from podperf.report.thresholds_command import _rounded, prediction
from podperf.topology import load_topology

LOCAL = Path(__file__).parents[1] / "topologies" / "local.yaml"


@pytest.mark.parametrize("least", [True, False])
def test_a_bound_is_missed_as_often_as_it_says(least: bool) -> None:
    chance, repetitions, missed = random.Random(1), 4000, 0
    for _ in range(repetitions):
        *figures, further = (chance.gauss(100, 2) for _ in range(11))
        bound = prediction(figures, 20, least=least)
        missed += further < bound if least else further > bound
    assert missed / repetitions == pytest.approx(1 / 20, abs=0.012)


@given(st.floats(1e-6, 1e9), st.booleans())
def test_rounding_never_makes_a_bound_stricter(value: float, up: bool) -> None:
    rounded = _rounded(value, 3, up=up)
    assert rounded == pytest.approx(value, rel=0.011)
    assert rounded >= value * (1 - 1e-12) if up else rounded <= value * (1 + 1e-12)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, list[dict[str, Any]]]:
    code = main(["thresholds", *map(str, arguments)])
    text = capsys.readouterr().out
    return code, text, yaml.safe_load(text)["thresholds"] if code == 0 else []


def test_they_are_those_of_a_topology_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up_history.write_history(tmp_path / "history")
    code, text, found = printed(capsys, tmp_path / "history")
    assert code == 0
    head, _, _ = LOCAL.read_text().partition("\nthresholds:")
    (tmp_path / "mine.yaml").write_text(f"{head}\n{text}")
    thresholds = load_topology(tmp_path / "mine.yaml").thresholds
    assert len(thresholds) == len(found) == 5 * 6
    assert "# Tc redirect, 64 B, MRR: 3 figures that can be judged; 5 are needed" in text
    (docker,) = (threshold for threshold in thresholds if (threshold.data_plane, threshold.metric) == ("docker", "mrr"))
    assert docker.unit == "Mpps"
    assert docker.minimum is not None and 0.18 < docker.minimum < 0.231
    (latency,) = (
        threshold for threshold in thresholds if (threshold.data_plane, threshold.metric) == ("docker", "latency_p99")
    )
    assert latency.maximum is not None and latency.maximum > 96


@pytest.mark.parametrize("runs", [1, 2, 6])
def test_a_counted_figure_may_differ_by_its_resolution(
    runs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten instructions more miss the bound, also where all runs have found the same. One run is enough."""
    for run in range(runs):
        record = made_up_history.record("docker", run, 1.0)
        record["results"] = {"cost": {"instructions_per_frame": 12345.625, "lower_bound": False}}
        made_up_history.write(tmp_path, run, record)
    (found,) = printed(capsys, tmp_path)[2]
    assert found["unit"] == "instructions"
    assert 12345.625 + 5 < found["maximum"] < 12345.625 + 10


def test_a_rate_is_in_the_unit_that_the_user_asks_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run in range(6):
        made_up_history.write(tmp_path, run, made_up_history.record("docker", run, 1.0))
    mpps, gbps = printed(capsys, tmp_path)[2], printed(capsys, tmp_path, "--unit", "Gbps")[2]
    assert {each["unit"] for each in mpps} == {"Mpps", "us"}
    assert {gbp["unit"] for gbp in gbps} == {"Gbps", "us"}
    assert gbps[0]["minimum"] == pytest.approx(mpps[0]["minimum"] * (64 + 20) * 8 / 1e3, rel=0.02)


def test_a_rarer_failure_is_a_weaker_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run in range(8):
        made_up_history.write(tmp_path, run, made_up_history.record("docker", run, 1.0))
    often = printed(capsys, tmp_path, "--once-in", "10")[2]
    rarely = printed(capsys, tmp_path, "--once-in", "1000")[2]
    for one, other in zip(often, rarely, strict=True):
        assert other.get("minimum", 0) <= one.get("minimum", 0)
        assert other.get("maximum", 0) >= one.get("maximum", 0)


def test_results_folders_may_be_named_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run in range(6):
        made_up_history.write(tmp_path, run, made_up_history.record("docker", run, 1.0))
    folders = sorted(tmp_path.iterdir())
    assert printed(capsys, *folders)[1] == printed(capsys, tmp_path)[1]
    assert printed(capsys, *folders[:4])[0] == 254


def test_two_testbeds_have_no_thresholds_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run, name in enumerate(("local", "lab")):
        record = made_up_history.record("docker", run, 1.0)
        record["testbed"]["name"] = name
        made_up_history.write(tmp_path, run, record)
    assert main(["thresholds", str(tmp_path)]) == 254
    assert "several testbeds (local, lab)" in capsys.readouterr().err
