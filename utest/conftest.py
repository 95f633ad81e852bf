"""Fixtures of all unit tests."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

OTHER_USER, GROUP = 12345, 54321  # and a group of that user
AS_OTHER_USER = ("setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", f"--groups={GROUP}", "--")

# A deadline would measure the machine, which others may be using, and not the code.
settings.register_profile("podperf", deadline=None)
settings.load_profile("podperf")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All unit tests run in the bare root of another distribution, too: its Python and its folder are others."""
    for item in items:
        item.add_marker("distribution")


@pytest.fixture(autouse=True)
def _speeds_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not read the best speeds of this machine's CPUs: real runs are judged by them."""
    monkeypatch.setattr("podperf.quietness.watch.remember", lambda _best: None)


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that other users can enter. pytest's own they cannot."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)
