"""Shows the running test of `podperf test` and the remaining time.

Three parts of `podperf test` use this file:

- `podperf test` itself sets PODPERF_TEST_STAGES: the tox environments that it runs, in their order.
- tox calls `time_left.py STAGE` when an environment begins.
- pytest loads time_left_line.py as a plugin (conftest.py). It shows the running test and the remaining time.

The estimate comes from the last durations of the same tests on this machine (build/test-seconds.json). Before a first
run it comes from usual_seconds.json: a copy of build/test-seconds.json from a machine with two cores. The seconds that
this run has spent correct the rest of the estimate.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
USUAL = Path(__file__).with_name("usual_seconds.json")
LEARNED = ROOT / "build/test-seconds.json"
STAGES_VARIABLE = "PODPERF_TEST_STAGES"
UNKNOWN_TEST = 0.3  # seconds of a test without a figure, if a person chose it by hand
UNKNOWN_STAGE = 20.0  # seconds
TRUST = 30.0  # after this many seconds, the pace of this run counts as much as earlier figures


@dataclass(frozen=True)
class Expected:
    """How many seconds each stage and each test is expected to take. A test is named by its pytest node id."""

    stages: Mapping[str, float] = field(default_factory=dict)
    tests: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, *files: Path) -> Expected:
        """The figures of all these files. A later file counts more. A file that is missing or damaged has none."""
        stages: dict[str, float] = {}
        tests: dict[str, float] = {}
        for file in files:
            with suppress(OSError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
                found = json.loads(file.read_text())
                stages |= {str(name): _finite(seconds) for name, seconds in found["stages"].items()}
                tests |= {str(name): _finite(seconds) for name, seconds in found["tests"].items()}
        return cls(stages, tests)

    def of(self, tests: Sequence[str], stage: str, stages: Sequence[str], workers: int = 1) -> dict[str, float]:
        """Seconds of each test. In a planned stage, unknown tests share the seconds that known tests leave.

        With several `workers`, as many tests run at a time.
        """
        unknown = [each for each in tests if each not in self.tests]
        known = sum(self.tests[each] for each in tests if each in self.tests)
        left = max(0.0, workers * self.stage(stage) - known)
        share = left / max(1, len(unknown)) if stage in stages else UNKNOWN_TEST
        return {each: self.tests.get(each, share) for each in tests}

    def later_stages(self, stage: str, stages: Sequence[str]) -> float:
        """Seconds of the stages that follow this one."""
        after = stages[stages.index(stage) + 1 :] if stage in stages else ()
        return sum(self.stages.get(each, UNKNOWN_STAGE) for each in after)

    def stage(self, stage: str) -> float:
        return self.stages.get(stage, UNKNOWN_STAGE)

    def write(self, file: Path, *, stages: Mapping[str, float], tests: Mapping[str, float]) -> None:
        """Store these figures beside the known ones. Without the file, the next estimate is worse."""
        content = {"stages": {**self.stages, **stages}, "tests": {**self.tests, **tests}}
        rounded = {
            part: {name: round(seconds, 1) for name, seconds in sorted(content[part].items())} for part in content
        }
        with suppress(OSError):
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(rounded, indent=1) + "\n")


def _finite(seconds: str | float) -> float:
    if not math.isfinite(number := float(seconds)):
        raise ValueError(f"{seconds} is no number of seconds")
    return number


def estimate(rest: float, spent: float, expected: float) -> float:
    """`rest` multiplied by the pace of this run: the seconds spent divided by the seconds expected so far."""
    return rest * (spent + TRUST) / (expected + TRUST)


def written(seconds: float) -> str:
    """`7:05`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def planned_stages() -> list[str]:
    """The tox environments that `podperf test` runs. Empty if a person called tox or pytest."""
    return os.environ.get(STAGES_VARIABLE, "").split()


def main(stage: str) -> None:
    """An environment of tox begins."""
    stages, expected = planned_stages(), Expected.read(USUAL, LEARNED)
    if stage in stages:
        left = expected.stage(stage) + expected.later_stages(stage, stages)
        print(f"{stage}: {written(left)} left", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
