"""The machine of all tests that start clusters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from machine import once_as, snapshot
from own_cluster import need_programs
from podperf.cluster.layout import FOLDER
from podperf.cluster.pod_image import POD, ready_image
from podperf.errors import Unavailable
from podperf.hosts.local import LocalHost
from robot_run import podperf


@pytest.fixture(scope="package", autouse=True)
def machine_as_before() -> Iterator[None]:
    """The machine is as before all of these tests."""
    need_programs()
    try:
        ready_image(LocalHost(), print, POD)
    except Unavailable as reason:
        pytest.skip(str(reason))
    podperf("cluster", "down")
    before = snapshot()
    yield
    podperf("cluster", "down")
    assert once_as(before, snapshot) == before
    assert not FOLDER.exists()
