"""The fixtures of all tests on the real machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from machine import left_as_before
from namespaces import remove_left_behind
from podperf.cleanup import put_back
from podperf.hosts.local import LocalHost
from podperf.kernel import hugepages
from podperf.model import PageSize
from podperf.testbed.frame_watch import FrameWatch, addresses_in_test_network
from robot_run import Robot, podperf
from ssh_machine import SshMachine, ssh_machine

pytest_plugins = ("chosen_tests",)


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


@pytest.fixture(scope="session")
def last_at_rest() -> list[dict[str, object]]:
    """The machine at rest, as the last test with `machine_as_before` saw it."""
    return [{}]


@pytest.fixture
def machine_as_before(last_at_rest: list[dict[str, object]]) -> Iterator[None]:
    """Check that the machine is the same before and after the test."""
    with left_as_before(last_at_rest):
        yield


@pytest.fixture
def no_reserved_hugepages() -> Iterator[None]:
    """Take the machine's free hugepages away until the end of the test. A run reserves none while enough are free."""
    file = Path(hugepages.folder(PageSize.TWO_MIB), "nr_hugepages")
    if not hugepages.offered(LocalHost()):
        yield
        return
    before = file.read_text()
    file.write_text("0")
    yield
    file.write_text(before)


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Check that the test has taken its chains down. If it has not, the next test does not find them."""
    yield
    assert put_back(LocalHost()) == [], "the testbed left something behind"


@pytest.fixture
def no_frame_leaves() -> Iterator[None]:
    """Check that no test frame, encapsulated or not, is on a link of this machine's own network during the test."""
    here = LocalHost()
    with ExitStack() as undo:
        watch = FrameWatch(here, undo, addresses_in_test_network(here))
        yield
        assert watch.stop() == []
