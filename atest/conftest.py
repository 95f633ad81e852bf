"""What every test against the real machine can ask for."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from machine import snapshot

PATIENCE = 30.0  # seconds: the kernel takes removed namespaces and large processes down in the background


@pytest.fixture
def machine_as_before() -> Iterator[None]:
    """Whatever the test did, the machine is as it was."""
    before = at_rest()
    yield
    deadline = time.monotonic() + PATIENCE
    while (after := snapshot()) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    for what, value in before.items():
        assert after[what] == value, f"{what} changed"


def at_rest() -> dict[str, object]:
    """The machine when nothing changes any more: what the test before took down may still be going."""
    deadline = time.monotonic() + PATIENCE
    last = snapshot()
    while time.monotonic() < deadline:
        time.sleep(0.2)
        if (now := snapshot()) == last:
            return now
        last = now
    return last
