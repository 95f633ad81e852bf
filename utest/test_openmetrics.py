"""The figures of a run as OpenMetrics text, read again by the parsers of Prometheus' own client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as old_families

import made_up
import made_up_history
from podperf.__main__ import main
from podperf.errors import ExitCode
from podperf.records import Record
from podperf.report.openmetrics import openmetrics

BRIDGE = "linux-bridge"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def both(text: str) -> dict[str, Family]:
    """The families by their names. Both formats of Prometheus have the same samples in them."""
    found = {openmetrics_family.name: openmetrics_family for openmetrics_family in openmetrics_families(text)}
    older = {old_family.name: old_family for old_family in old_families(text)}
    assert {name: each.samples for name, each in found.items()} == {name: each.samples for name, each in older.items()}
    return found


def record(**changes: Any) -> dict[str, Any]:
    return made_up_history.record(BRIDGE, 0, 1.0, deviation=0) | changes


def test_every_figure_is_a_sample_with_its_unit_in_the_name() -> None:
    cost = {"cost": {"instructions_per_frame": 7984.375, "lower_bound": False}}
    results = record()["results"] | cost
    found = both(openmetrics([Record.of(record(version_under_test="6.12", results=results))]))
    assert found.pop("podperf_cost_instructions_per_frame").samples[0].value == 7984.375
    assert {name: each.unit for name, each in found.items()} == {
        "podperf_rate_frames_per_second": "frames_per_second",
        "podperf_latency_seconds": "seconds",
        "podperf_figure_doubtful": "",
        "podperf_test_failed": "",
        "podperf_test_start_time_seconds": "seconds",
    }
    rates = {sample.labels["metric"]: sample for sample in found["podperf_rate_frames_per_second"].samples}
    assert set(rates) == {"mrr", "ndr", "pdr"}
    assert rates["mrr"].value == record()["results"]["mrr"]["frames_per_second"]
    assert rates["mrr"].labels == {
        "testbed": "local",
        "suite": "4.1 networking models.4.1.1 kernel space",
        "row": "Linux bridge, 64 B",
        "data_plane": BRIDGE,
        "pods": "1",
        "frame": "64B",
        "version_under_test": "6.12",
        "metric": "mrr",
    }
    latencies = {sample.labels["metric"]: sample.value for sample in found["podperf_latency_seconds"].samples}
    assert latencies == pytest.approx({"latency_p50": 16e-6, "latency_p99": 96e-6, "delay_variation": 140e-6})
    assert found["podperf_test_start_time_seconds"].samples[0].value == made_up_history.FIRST


def test_a_figure_that_no_history_judges_is_doubtful() -> None:
    bound = record()
    bound["results"]["mrr"]["lower_bound"] = True
    samples = both(openmetrics([Record.of(bound)]))["podperf_figure_doubtful"].samples
    assert {sample.labels["metric"] for sample in samples if sample.value} == {"mrr"}
    noisy = record()
    noisy["quietness"] |= {"noisy": True, "reason": "CPU 1: 12% of the time went to cc1"}
    assert all(sample.value for sample in both(openmetrics([Record.of(noisy)]))["podperf_figure_doubtful"].samples)


@pytest.mark.parametrize(("outcome", "value"), [("passed", 0), ("failed", 1), ("skipped", None), ("interrupted", None)])
def test_an_outcome_is_no_figure(outcome: str, value: float | None) -> None:
    found = both(openmetrics([Record.of(record(outcome=outcome, results={}))]))
    assert set(found) == (set() if value is None else {"podperf_test_failed", "podperf_test_start_time_seconds"})
    if value is not None:
        assert found["podperf_test_failed"].samples[0].value == value


@given(TEXTS, TEXTS, TEXTS)
def test_any_name_is_read_as_it_was(name: str, testbed: str, version: str) -> None:
    named = record(version_under_test=version)
    named["test"]["name"], named["testbed"]["name"] = name, testbed
    for family in openmetrics_families(openmetrics([Record.of(named)])):
        for sample in family.samples:
            assert (sample.labels["row"], sample.labels["testbed"]) == (name, testbed)
            assert sample.labels["version_under_test"] == version


@given(st.lists(st.sampled_from(list(made_up_history.RATES)), min_size=1, max_size=8))
def test_no_sample_is_there_twice(planes: list[str]) -> None:
    found = both(openmetrics(Record.of(made_up_history.record(plane, 0, 1.0)) for plane in planes))
    assert len(found["podperf_test_failed"].samples) == len(set(planes))


def test_the_newest_of_several_runs_is_written(tmp_path: Path) -> None:
    for run, factor in ((1, 0.5), (0, 1.0)):
        made_up_history.write(tmp_path, run, made_up_history.record(BRIDGE, run, factor, deviation=0))
    folders = [str(each) for each in tmp_path.iterdir()]
    for arguments in ([*folders, "--output", str(tmp_path / "out")], ["--history", str(tmp_path)]):
        file = tmp_path / "podperf.prom"
        assert main(["report", *arguments, "--openmetrics", str(file)]) == 0
        (mrr,) = (
            sample
            for sample in both(file.read_text())["podperf_rate_frames_per_second"].samples
            if sample.labels["metric"] == "mrr"
        )
        assert mrr.value == pytest.approx(made_up_history.RATES[BRIDGE] * 0.5, rel=0.05)
        assert file.stat().st_mode & 0o777 == 0o644  # the node exporter is another user
        file.unlink()


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.write_run(tmp_path)
    file = tmp_path / "none" / "podperf.prom"
    assert main(["report", str(tmp_path), "--openmetrics", str(file)]) == ExitCode.NOT_DONE
    assert f"cannot write {tmp_path}/none/podperf.prom: No such file" in capsys.readouterr().err
