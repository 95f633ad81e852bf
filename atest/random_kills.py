"""Ends runs at random instants and compares the machine afterwards with the machine before. Root, for nightly runs.

    .venv/bin/python atest/random_kills.py [runs, default 200] [seed, default 1] [data planes, default all]

Each run measures one of the data planes that work on this machine, in turns. It gets SIGINT, SIGTERM or SIGKILL, in
turns, after a random part of the time that an undisturbed run of that data plane takes. After a killed run, one clean
(`podperf clean`) is killed at a random instant, too, and a second one is not. The exit code is 1 if anything was left
behind. Each such run is printed with its leftovers. 200 runs take about half an hour on two CPUs.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from machine import at_rest, once_as, snapshot
from podperf.dataplanes import DATA_PLANES
from podperf.hosts.local import LocalHost
from robot_run import ROOT, SETTINGS, Robot, podperf

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
CLEAN = 2.0  # seconds in which a clean has put back nearly everything
END_PATIENCE = 60  # seconds that a run may take to end in order
PODS = {"wire": 0, "memif": 2}  # of the data planes whose shortest chain is not one pod
SUITE = f"""{SETTINGS}
*** Test Cases ***
Forwards
    Set Up Chain    ${{DATA_PLANE}}    ${{PODS}}    64
    Measure Maximum Receive Rate
    [Teardown]    Tear Down Chain
"""


def start(folder: Path, name: str) -> Robot:
    """A run of one row of this data plane, which has begun."""
    folder.mkdir(parents=True)
    suite = folder / "suite.robot"
    suite.write_text(SUITE)
    variables = ("--variable", f"DATA_PLANE:{name}", "--variable", f"PODS:{PODS.get(name, 1)}")
    return Robot(folder, *variables, str(suite), trials=5, whole_calibration=True)


def undisturbed(folder: Path, name: str) -> float:
    """Seconds that a run of this data plane takes from its start to its end."""
    began = time.monotonic()
    robot = start(folder, name)
    if robot.wait():
        sys.exit(f"{name} cannot be measured here: {robot.output.read_text()}")
    return time.monotonic() - began


def kill_a_clean(after: float) -> None:
    """Kill `podperf clean` this many seconds after its start, if it still runs."""
    command = [sys.executable, "-m", "podperf", "clean"]
    libraries = {**os.environ, "PYTHONPATH": str(ROOT / "libraries")}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=libraries) as clean:
        time.sleep(after)
        clean.kill()


def disturbed(folder: Path, name: str, number: signal.Signals, after: float, clean_after: float) -> str:
    """Send the signal this many seconds after the start. After SIGKILL, kill a clean this many seconds after its start.

    Returns a description of the leftovers. Empty if there are none.
    """
    before = at_rest()
    robot = start(folder, name)
    time.sleep(after)
    robot.process.send_signal(number)
    robot.process.wait(END_PATIENCE)
    cleaned = ""
    if number == signal.SIGKILL:
        kill_a_clean(clean_after)
        done = podperf("clean", check=False)
        cleaned = done.stderr if done.returncode else ""
    now = once_as(before, snapshot)
    changed = [f"{what} changed: {before[what]} -> {now[what]}" for what in before if before[what] != now[what]]
    return cleaned + "\n".join(changed)


def main(runs: int, seed: int, chosen: Sequence[str]) -> int:
    """Print a line a run, and at the end how many left something. Without `chosen` data planes, all are measured."""
    draw = random.Random(seed)
    host = LocalHost()
    names = [each for each, kind in DATA_PLANES.items() if each != "external" and kind.unavailable(host) is None]
    names = [each for each in names if each in chosen or not chosen]
    sent: Counter[str] = Counter()
    left = 0
    with tempfile.TemporaryDirectory() as scratch:
        length = {name: undisturbed(Path(scratch) / name, name) for name in names}
        for turn in range(1, runs + 1):
            past, place = divmod(turn - 1, len(names))  # each data plane gets another signal in each pass
            name, number = names[place], SIGNALS[(place + past) % len(SIGNALS)]
            after = draw.uniform(0, length[name])
            wrong = disturbed(Path(scratch) / str(turn), name, number, after, draw.uniform(0, CLEAN))
            sent[number.name] += 1
            left += bool(wrong)
            print(f"{turn}/{runs}: {name}, {number.name} after {after:.2f} s: {wrong or 'as before'}", flush=True)
    print(f"{runs} runs of {len(names)} data planes ended by {dict(sent)}: {left} left something behind")
    return int(left > 0)


if __name__ == "__main__":
    runs, seed = [*sys.argv[1:3], *("200", "1")[len(sys.argv) - 1 :]]
    sys.exit(main(int(runs), int(seed), sys.argv[3:]))
