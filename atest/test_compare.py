"""Before and after, measured for real: a slow-down is found, equal variants never are, hooks leave nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from podperf.counted_machine.boot import unavailable
from podperf.errors import ExitCode
from podperf.experiments import comparison as results
from podperf.hosts.local import LocalHost
from podperf.records import schema_errors
from robot_run import ROOT, SETTINGS, SHORT, Robot

SCHEMA = json.loads(Path(results.__file__).with_name("comparison.schema.json").read_text())
RULES = """
      - in: pod 1
        run: |
          nft 'add table ip t; add chain ip t f { type filter hook forward priority 0; }'
          for each in $(seq %d); do echo "add rule ip t f ip saddr 203.0.113.$each drop"; done | nft -f -
"""
COMPARISON = """version: 1
name: real
rounds: %d
trial_seconds: 0.2
chain: {data_plane: linux-bridge}
variants:
  - name: before
  - name: after
"""

# The tester's ceiling has no part in a comparison of two variants.
WITH_SHORT_CALIBRATION = """
import sys
import short_calibration
from podperf.__main__ import main
sys.exit(main(["--no-install", "compare", *sys.argv[1:]]))
"""

pytestmark = pytest.mark.usefixtures("machine_as_before")


def start(folder: Path, text: str, *more: str) -> subprocess.Popen[str]:
    """The command, as the script calls it once the set-up is there; ended with this process."""
    path = folder / "comparison.yaml"
    path.write_text(text)
    topology = folder / "topology.yaml"
    topology.write_text(SHORT % (1, 0.2))
    ended_with_us = ["setpriv", "--pdeathsig", "TERM"]
    command = [sys.executable, "-c", WITH_SHORT_CALIBRATION, str(path), *(more or (str(topology),))]
    return subprocess.Popen(
        [*ended_with_us, *command, "--output", str(folder / "results")],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'libraries'}:{Path(__file__).parent}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def compared(folder: Path, text: str, code: int | tuple[int, ...], *more: str) -> dict[str, Any]:
    """The document of a comparison that ends with this exit code, or one of these."""
    process = start(folder, text, *more)
    out, said = process.communicate(timeout=900)
    assert process.returncode in (code if isinstance(code, tuple) else (code,)), out + said
    document = json.loads((folder / "results" / "comparison-real.json").read_text())
    jsonschema.validate(document, SCHEMA)
    assert (folder / "results" / "comparison-real.html").exists()
    for path in (folder / "results" / "records").glob("*.json"):
        assert schema_errors(json.loads(path.read_text())) == []
    return dict(document)


def rounds_on_disk(results: Path) -> int:
    """Count the rounds of a running comparison of `before` and `after` that have ended.

    A figure has two valid trials. Disturbed trials, which are repeated, are on disk, too.
    """
    valid = Counter({"before": 0, "after": 0})
    for path in results.glob("records/*.trials.jsonl"):
        trials = path.read_text().rpartition("\n")[0].splitlines()[1:]  # the first line is the record
        valid.update(trial["phase"] for trial in map(json.loads, trials) if trial["invalid"] is None)
    return (min(valid.values()) - 1) // 2


@pytest.mark.slow
def test_two_hundred_rules_in_the_pod_are_found_slower(tmp_path: Path) -> None:
    document = compared(tmp_path, f"{COMPARISON % 27}    hooks:{RULES % 200}", ExitCode.WORSE)
    judged = document["variants"][1]["judgement"]
    assert judged["verdict"] == "slower" and judged["high"] < -0.05
    (record,) = (tmp_path / "results" / "records").glob("*.json")
    trials = json.loads(record.read_text())["trials"]
    assert {trial["phase"] for trial in trials} == {"before", "after"}
    assert len(document["orders"]) in {8, 12, 18, 27}, "it ends at a look"


@pytest.mark.slow
def test_hooks_run_where_they_say_and_are_taken_back(tmp_path: Path) -> None:
    """A hook notes in which network it runs, and with which interfaces; its undo notes that it ran."""
    notes = tmp_path / "notes"
    where = f"echo $PODPERF_PORTS: $(ls /sys/class/net 2>/dev/null | wc -l) $(ip -brief link | wc -l) >>{notes}"
    hooks = f"""    hooks:
      - {{when: before set-up, run: 'echo before >>{notes}', undo: 'echo undo-before >>{notes}'}}
      - {{in: worker, run: '{where}', undo: 'echo undo-worker $PODPERF_PORTS >>{notes}'}}
      - {{in: pods, run: '{where}'}}
"""
    compared(tmp_path, f"{COMPARISON % 6}{hooks}", (0, ExitCode.WORSE, ExitCode.UNDECIDED))
    lines = notes.read_text().splitlines()
    assert len(lines) % 5 == 0
    before, worker, pod, undo_worker, undo_before = lines[:5]
    assert before == "before" and undo_worker == "undo-worker w-left w-right" and undo_before == "undo-before"
    assert worker.startswith("w-left w-right: ") and pod.startswith("net1 net2: ")


@pytest.mark.parametrize("how", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_an_interrupted_comparison_reports_its_rounds_and_leaves_nothing(how: signal.Signals, tmp_path: Path) -> None:
    process = start(tmp_path, COMPARISON % 40)
    deadline = time.monotonic() + 180
    while rounds_on_disk(tmp_path / "results") < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(how)
    out, said = process.communicate(timeout=300)
    assert process.returncode == ExitCode.INTERRUPTED, said
    assert "it was interrupted" in " ".join(out.split()), out
    assert json.loads((tmp_path / "results" / "comparison-real.json").read_text())["ended"] == "interrupted"


@pytest.mark.slow
def test_a_suite_has_a_row_for_each_comparison(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(f"{COMPARISON % 27}    hooks:{RULES % 200}")
    equal = f"{COMPARISON % 8}relevant_percent: 50\n"  # a noisy machine makes no variant so slow in every round
    (tmp_path / "equal.yaml").write_text(equal.replace("name: real", "name: equal", 1))
    suite = tmp_path / "compare.robot"
    settings = SETTINGS.replace("networking_model.resource", "comparison.resource")
    rows = [
        f"Rules\n    Variants Should Hold    {tmp_path}/rules.yaml",
        f"Equal\n    Variants Should Hold    {tmp_path}/equal.yaml",
    ]
    suite.write_text(f"{settings}\n*** Test Cases ***\n" + "\n\n".join(rows) + "\n")
    robot = Robot(tmp_path, str(suite))
    assert robot.wait() == 1, robot.output.read_text()
    messages = robot.messages()
    assert "Rules: FAIL: after beside before: slower: -" in messages
    assert "Equal: PASS: after beside before: " in messages
    assert {each.name for each in robot.results.glob("comparison-*.html")} == {
        "comparison-real.html",
        "comparison-equal.html",
    }
    assert "slower" in robot.output.read_text()


@pytest.mark.skipif(os.environ.get("PODPERF_COUNTED") != "1", reason="takes minutes: only with PODPERF_COUNTED=1")
def test_counted_machines_of_their_own_find_ten_rules(tmp_path: Path) -> None:
    if reason := unavailable(LocalHost()):
        pytest.skip(reason)
    third = "  - name: same\n"
    text = f"{COMPARISON % 7}    hooks:{RULES % 10}{third}"
    document = compared(tmp_path, text, ExitCode.WORSE, str(ROOT / "topologies/counted.yaml"))
    _, rules, same = (variant["judgement"] for variant in document["variants"])
    assert rules["verdict"] == "slower" and rules["low"] == rules["high"] > 0.05
    assert same["verdict"] == "no difference"
    costs = json.loads((next(tmp_path.rglob("costs.json"))).read_text())
    of_rules, of_same = costs["tests"]
    assert of_rules["name"] == "before → after" and of_same["name"] == "before → same"
    assert of_rules["figures"][0]["functions"][0]["after"] == "nft_do_chain [nf_tables]"
    assert of_same["figures"][0]["functions"] == []
