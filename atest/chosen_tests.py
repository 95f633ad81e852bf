"""A pytest plugin: which tests of atest run, and in which order."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent.resolve()
BEGAN = time.monotonic()
EVERYTHING = os.environ.get("PODPERF_TESTS") == "all"  # asked for by `podperf test --all`
STAGE_SECONDS = float(os.environ.get("PODPERF_STAGE_SECONDS", "inf"))  # after which no test of a stage of CI begins
FIRST = int(os.environ.get("PODPERF_FIRST_TEST", "0"))  # the number of the test that runs first, modulo their count


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the slow tests out of a run of all tests, unless that is asked for. A choice of tests includes them.

    A stage of CI that has no time for all tests begins each time with another test.
    """
    chosen = (
        config.option.keyword
        or config.option.markexpr
        or not all(HERE.is_relative_to(Path(each).resolve()) for each in config.args)
    )
    if not EVERYTHING and not chosen:
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    begin = FIRST % max(1, len(items))
    items[:] = items[begin:] + items[:begin]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Skip the test, with the reason, if the time for this stage of CI is up."""
    if time.monotonic() - BEGAN > STAGE_SECONDS:
        pytest.skip(f"the {STAGE_SECONDS:.0f} s of PODPERF_STAGE_SECONDS are over")
