"""A made-up history: runs of several tests, with changes that a history must find.

`python utest/made_up_history.py FOLDER` writes one. So a person can look at its report.
"""

from __future__ import annotations

import copy
import json
import random
import re
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import made_up
from podperf.metrics import Measured

RATES = {"linux-bridge": 281e3, "ptp": 508e3, "macvlan": 816e3, "routed": 242e3, "docker": 231e3, "tc-redirect": 733e3}
FIRST, DAY = 1.7951e9, 86_400  # seconds
_NAME = "%Y-%m-%dT%H-%M-%S"  # of a results folder


def record(data_plane: str, run: int, factor: float, *, seed: int = 1, deviation: float = 0.01) -> dict[str, Any]:
    """A quiet record without trials, of the run on day `run`; every rate is `factor` times the usual one."""
    chance = random.Random(f"{data_plane} {run} {seed}")
    made, _ = made_up.forwarding_record(data_plane, RATES[data_plane], started=FIRST + run * DAY)
    document = dict(json.loads(json.dumps(made.to_json())))
    document["quietness"]["noisy"] = False
    for found in document["results"].values():
        for key in ("frames_per_second", "low_frames_per_second", "high_frames_per_second"):
            if key in found:
                found[key] *= factor * chance.gauss(1, deviation)
        if "nanoseconds" in found:
            found["nanoseconds"] *= chance.gauss(1, deviation * 3) / factor
    return document


def write(folder: Path, run: int, *records: Mapping[str, Any]) -> None:
    """One run."""
    target = folder / _started(run).strftime(_NAME) / "records"
    target.mkdir(parents=True)
    for each in records:
        (target / f"{each['id']}.json").write_text(json.dumps(each, indent=2) + "\n")


def write_history(folder: Path, runs: int = 24) -> None:
    """A regression, a known one, a suspicion, a progression, a new kernel, noise, a bound, failures and new tests."""
    kernel = {"release": "6.18.50", "version": "#1 SMP", "command_line": "quiet", "clocksource": "tsc"}
    for run in range(runs):
        left = runs - run  # runs from this one on
        found = {
            "linux-bridge": record("linux-bridge", run, 0.94 if left <= 4 else 1.0),
            "ptp": record("ptp", run, 0.85 if left == 1 else 1.0),
            "macvlan": record("macvlan", run, 1.12 if left <= 5 else 1.0),
            "routed": record("routed", run, 0.9 if left <= 8 else 1.0),
            "docker": record("docker", run, 1.0, deviation=0.02),
        }
        if left <= 3:
            found["tc-redirect"] = record("tc-redirect", run, 1.0)
        if run in {5, 11}:
            found["docker"] |= {"outcome": "failed", "reason": "no test frame crossed the chain", "results": {}}
        if run in {7, 12, 13}:
            found["docker"]["quietness"] |= {"noisy": True, "reason": "CPU 1: 12% of the time went to cc1"}
        if run == 9:
            found["macvlan"]["results"]["mrr"]["lower_bound"] = True
        for each in found.values():
            each["version_under_test"] = f"1.{run // 5}"
            if run >= 6:
                each["environment"] = copy.deepcopy(each["environment"]) | {"kernel": kernel}
        write(folder, run, *found.values())
    (folder / "acknowledged.yaml").write_text(
        'acknowledged:\n  - test: "Routed, 64 B"\n    at_most_percent: 15\n'
        "    reason: the route lookup takes a lock since 1.3 (issue 4711)\n    until: 2099-12-31\n"
    )


def write_many(folder: Path, runs: int, tests: int = 25) -> None:
    """Runs with a record of each of so many tests, with trials, as podperf writes it. Figures differ in each run."""
    texts: list[tuple[str, str]] = []
    for number in range(tests):
        plane = list(RATES)[number % len(RATES)]
        made, trials = made_up.forwarding_record(plane, RATES[plane], seed=number)
        made.id, made.name, made.started = f"{made.id}-{number}", f"{made.name}, {number}", FIRST
        made.metrics = {name: Measured(1234567.0) for name in made.metrics}
        document = made_up.document(made, trials, folder / "template")
        document["quietness"]["noisy"] = False
        texts.append((made.id, json.dumps(document, indent=2)))
    shutil.rmtree(folder / "template")
    chance, first = random.Random(1), _started(0).isoformat(timespec="milliseconds")
    for run in range(runs):
        started = _started(run)
        target = folder / started.strftime(_NAME) / "records"
        target.mkdir(parents=True)
        for name, text in texts:
            changed = re.sub("1234567.0", lambda _: f"{1234567.0 * chance.gauss(1, 0.01)}", text)
            assert changed.count(first) == 1
            changed = changed.replace(first, started.isoformat(timespec="milliseconds"))
            (target / f"{name}.json").write_text(f"{changed}\n")


def _started(run: int) -> datetime:
    return datetime.fromtimestamp(FIRST + run * DAY, UTC)


if __name__ == "__main__":
    write_history(Path(sys.argv[1]))
