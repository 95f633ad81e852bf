"""A run whose tester makes errors reports these errors, and does not trust the tester. The testers are real ones."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from podperf.methods import presets
from podperf.model import Chain, FrameSize
from podperf.progress import Progress
from podperf.run import Run, Session, TestIdentity
from podperf.testers import software
from podperf.topology import MethodSettings, Threshold, load_topology

ROOT = Path(__file__).parents[1]
SMALL = FrameSize.parse(64)
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces"),
    pytest.mark.usefixtures("machine_as_before"),
    pytest.mark.slow,
]


@dataclass(frozen=True)
class Wrong:
    """A change to a file of tester/ that makes one frame in a thousand wrong, or the clock; and the words of the
    report."""

    file: str
    before: str
    after: str
    kind: str
    said: str


FRAME_IS_COUNTED = "\tif (!counters->received++)"
FRAME_IS_WRITTEN = "\treturn bpf_redirect_map(&port_map, direction, 0);"
CLOCK = "now = bpf_ktime_get_ns();"  # in both programs
TESTERS: Mapping[str, Wrong] = {
    "loses": Wrong(
        "sink.bpf.c",
        "\tif (!counters)",
        "\tif (bpf_get_prandom_u32() % 1000 == 0)\n\t\treturn XDP_DROP;\n\tif (!counters)",
        "loses",
        "the tester itself loses frames: at least 0.",
    ),
    "counts-twice": Wrong(
        "accounting.h",
        FRAME_IS_COUNTED,
        f"\tcounters->received += extended % 1000 == 0;\n{FRAME_IS_COUNTED}",
        "counts twice",
        "the tester itself counts frames twice: at least 0.",
    ),
    "sends-twice": Wrong(
        "sender.bpf.c",
        FRAME_IS_WRITTEN,
        f"\tif (bpf_get_prandom_u32() % 1000 == 0)\n\t\tstream->sent--;\n{FRAME_IS_WRITTEN}",
        "sends twice",
        "the tester itself sends or counts copies of frames: at least 0.",
    ),
    "corrupts": Wrong(
        "sender.bpf.c",
        FRAME_IS_WRITTEN,
        "\t__u8 *frame = (void *)(long)ctx->data;\n"
        "\tif (bpf_get_prandom_u32() % 1000 == 0 && (void *)frame + 60 <= (void *)(long)ctx->data_end)\n"
        f"\t\tframe[55] ^= 1;\n{FRAME_IS_WRITTEN}",
        "corrupts",
        "the tester itself corrupts frames: at least 0.",
    ),
    "fast-clock": Wrong(
        "sender.bpf.c", CLOCK, "now = bpf_ktime_get_ns() / 25 * 26;", "clock", "the tester's clock runs "
    ),
    "slow-clock": Wrong(
        "sender.bpf.c", CLOCK, "now = bpf_ktime_get_ns() / 26 * 25;", "clock", "the tester's clock runs "
    ),
}


STAMPS: Mapping[str, Wrong] = {
    "early": Wrong(
        "sink.bpf.c",
        "bpf_ktime_get_ns());",
        "bpf_ktime_get_ns() - 100000000);",  # Queues of an overloaded path hold frames for milliseconds.
        "stamps",
        "arrived before they were sent",
    ),
    "late": Wrong("sink.bpf.c", "bpf_ktime_get_ns());", "bpf_ktime_get_ns() + 2000000);", "stamps", ""),
    "slow": Wrong(
        "payload.h",
        "return now << 16 | trial;",
        "return (now / 51 * 50) << 16 | trial;",
        "stamps",
        "was on its way for",
    ),
}


def built(wrong: Wrong, folder: Path) -> Path:
    """The program with this change."""
    source = shutil.copytree(ROOT / "tester", folder / "tester")
    text = (source / wrong.file).read_text()
    assert text.count(wrong.before) == 1 + (wrong.before == CLOCK), (
        f"tester/{wrong.file} has changed: change this test as well"
    )
    (source / wrong.file).write_text(text.replace(wrong.before, wrong.after))
    subprocess.run(["make", "-s", "-C", source, f"BUILD={folder / 'build'}"], check=True)
    return folder / "build" / "podperf-tester"


@dataclass
class Outcome:
    """The text that a run printed during the measurement and at its end, and its records by test."""

    notes: str
    summary: str
    records: Mapping[str, Mapping[str, Any]]


@pytest.fixture
def run_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Measures the bare path and a bridge, shortly, with this program as the tester."""

    def measured(program: Path) -> Outcome:
        monkeypatch.setattr(software, "TESTER_BINARY", program)
        goals = tuple(replace(goal, duration_sum=0.4) for goal in presets.PRESETS["quick"].goals)
        short = replace(presets.PRESETS["quick"], goals=goals, search_duration_max=4.0)
        monkeypatch.setattr(presets, "PRESETS", {"quick": short})
        notes = io.StringIO()
        topology = replace(
            load_topology(ROOT / "topologies" / "local.yaml"),
            method=MethodSettings("quick", 2, 0.3),
            thresholds=(Threshold("mrr", "Mpps", minimum=1e-6), Threshold("ndr", "Mpps", minimum=1e-6)),
        )
        run = Run(Session(topology, tmp_path / "results", Progress(notes)))
        run.open()
        try:
            for name, chain in (("Bare path", Chain("wire", 0)), ("Linux bridge", Chain("linux-bridge", 1))):
                identity = TestIdentity(name, "faulty testers")
                run.begin_test(identity, chain, SMALL)
                run.measurement.mrr()
                run.measurement.ndr_and_pdr()
                run.measurement.latency()
                run.measurement.judge()
                run.end_test(identity, "passed")
        finally:
            summary = run.close()
        paths = (tmp_path / "results" / "records").glob("*.json")
        records = {(record := json.loads(path.read_text()))["test"]["name"]: record for path in paths}
        return Outcome(notes.getvalue(), summary, records)

    return measured


@pytest.mark.parametrize("name", TESTERS)
def test_a_tester_that_errs_by_itself_is_not_believed(
    run_with: Callable[..., Outcome], tmp_path: Path, name: str
) -> None:
    wrong = TESTERS[name]
    outcome = run_with(built(wrong, tmp_path))
    print(outcome.notes, outcome.summary, sep="\n")
    said = outcome.notes.index(wrong.said)
    assert said < outcome.notes.index("MRR, trial 1"), "at the start, before anything is measured"
    for record in (outcome.records["Bare path"], outcome.records["Linux bridge"]):
        # A sender whose clock is wrong stamps its frames by that clock.
        kinds = [wrong.kind, "stamps"] if wrong.kind == "clock" else [wrong.kind]
        assert [fault["kind"] for fault in record["tester_limits"]["faults"]] == kinds
        assert "ndr" not in record["results"] and "mrr" in record["results"]
        missing = record["methods"]["ndrpdr"]["missing"]
        assert missing["NDR"].startswith(f"not judged: {wrong.said}")
        # A short search on a noisy machine may end before it has found PDR. The tester's error is not the reason then.
        assert "pdr" in record["results"] or not missing["PDR"].startswith("not judged")
        judged = {each["metric"]: each["status"] for each in record["verdict"]["outcomes"]}
        assert judged["ndr"] == "not judged"
        assert judged["mrr"] == ("passed" if wrong.kind in {"loses", "sends twice", "corrupts"} else "not judged")
    summary = " ".join(outcome.summary.split())
    assert "NDR not judged" in summary and wrong.said in summary
    assert outcome.summary.count("faulty tester") >= 2


@pytest.mark.parametrize("name", STAMPS)
def test_wrong_stamps_cost_the_latencies_and_no_rate(
    run_with: Callable[..., Outcome], tmp_path: Path, name: str
) -> None:
    wrong = STAMPS[name]
    outcome = run_with(built(wrong, tmp_path))
    print(outcome.notes, outcome.summary, sep="\n")
    fault = "the tester itself stamps frames with wrong times: at least "
    assert outcome.notes.index(fault) < outcome.notes.index("MRR, trial 1")
    for record in (outcome.records["Bare path"], outcome.records["Linux bridge"]):
        assert [each["kind"] for each in record["tester_limits"]["faults"]] == [wrong.kind]
        assert not [result for result in record["results"] if "latency" in result] and record["latency"] is None
        judged = {each["metric"]: each["status"] for each in record["verdict"]["outcomes"]}
        assert judged["mrr"] == "passed"
        assert not [why for why in record["methods"]["ndrpdr"]["missing"].values() if why.startswith("not judged")]
        assert all(wrong.said in trial["impossible_latency"] for trial in record["trials"])


def test_a_sound_tester_is_believed(run_with: Callable[..., Outcome]) -> None:
    outcome = run_with(software.TESTER_BINARY)
    for record in outcome.records.values():
        assert record["tester_limits"]["faults"] == []
        assert record["tester_limits"]["own_loss_bound"] < 0.001
        # A short search on a noisy machine may end before it has found NDR. An error of the tester is not the reason
        # then.
        missing = record["methods"]["ndrpdr"]["missing"]
        assert not [why for why in missing.values() if why.startswith("not judged")]
        assert "ndr" in record["results"] or missing["NDR"]
        assert {each["metric"]: each["status"] for each in record["verdict"]["outcomes"]}["mrr"] == "passed"
    assert "the tester itself" not in outcome.notes and "the tester's clock" not in outcome.notes
