"""Bridges of a counted machine, in which no collision of addresses costs a frame instructions."""

from __future__ import annotations

from podperf.hosts.shell_script import shell_script
from podperf.testbed.system_under_test import SystemUnderTest

_WIDEN = shell_script("widen_bridges.sh", beside=__file__)


def widen_bridges(sut: SystemUnderTest) -> None:
    """Give each bridge of the chain's machine a table with many buckets, before the first frame of a trial.

    The kernel draws the seed of each table at random. In a small table, addresses often share a bucket, and each frame
    costs more by chance.
    """
    for machine in (part.site.worker.host for part in sut.parts if part.site is not None):
        machine.do("sh", "-ec", _WIDEN)
