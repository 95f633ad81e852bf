"""The fixtures of all tests on the real machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from machine import left_as_before
from namespaces import remove_left_behind
from robot_run import Robot, podperf
from ssh_machine import SshMachine, ssh_machine

pytest_plugins = ("time_left_line",)
BEGAN = time.monotonic()
EVERYTHING = os.environ.get("PODPERF_TESTS") == "all"  # asked for by `podperf test --all`
STAGE_SECONDS = float(os.environ.get("PODPERF_STAGE_SECONDS", "inf"))  # after which no test of a stage of CI begins


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the slow tests out of a run of all tests, unless that is asked for. A choice of tests includes them."""
    chosen = config.option.keyword or config.option.markexpr or not all(Path(each).is_dir() for each in config.args)
    if EVERYTHING or chosen:
        return
    slow = [each for each in items if each.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [each for each in items if each not in slow]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """End the runs of this test. A run of a failed test would make the next tests fail, too."""
    Robot.end_all()


@pytest.fixture(scope="session", autouse=True)
def nothing_left_by_a_killed_run() -> None:
    """Remove leftovers of killed runs. Otherwise the run of the first test would remove them, and so change the
    machine."""
    remove_left_behind()
    cleaned = podperf("clean", check=False)
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachine]:
    """A machine behind SSH."""
    with ssh_machine(tmp_path_factory.mktemp("ssh")) as machine:
        yield machine


@pytest.fixture
def time_is_left() -> None:
    """Skip, with the reason, when the time is up that there is for the tests of a slow stage of CI."""
    if time.monotonic() - BEGAN > STAGE_SECONDS:
        pytest.skip(f"the {STAGE_SECONDS:.0f} s of PODPERF_STAGE_SECONDS are over")


@pytest.fixture(scope="session")
def last_at_rest() -> list[dict[str, object]]:
    """The machine at rest, as the last test with `machine_as_before` saw it."""
    return [{}]


@pytest.fixture
def machine_as_before(last_at_rest: list[dict[str, object]]) -> Iterator[None]:
    """Check that the machine is the same before and after the test."""
    with left_as_before(last_at_rest):
        yield
