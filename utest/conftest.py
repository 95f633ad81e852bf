"""Fixtures of all unit tests."""

import pytest
from hypothesis import settings

pytest_plugins = ("time_left_line",)

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
    monkeypatch.setattr("podperf.quietness.machines.remember", lambda _best: None)
