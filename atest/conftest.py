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
    before = snapshot()
    yield
    deadline = time.monotonic() + PATIENCE
    while (after := snapshot()) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    for what, value in before.items():
        assert after[what] == value, f"{what} changed"
