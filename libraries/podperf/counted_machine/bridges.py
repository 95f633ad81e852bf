"""Makes a chain on a counted machine ready: no collision of addresses in a bridge then costs a frame instructions."""

from __future__ import annotations

from dataclasses import replace

from podperf.hosts.base import shell_script
from podperf.model import AddressedTraffic, TrafficProfile
from podperf.testbed.system_under_test import SystemUnderTest, addressed

_WIDEN = shell_script("widen_bridges.sh", beside=__file__)


def probed(sut: SystemUnderTest, profile: TrafficProfile) -> AddressedTraffic:
    """Traffic of this profile, addressed into a chain that forwards, and whose bridges are ready for closed loops.

    Frames go in both directions once: a bridge looks through a whole bucket for an address that it has not learnt.
    PodperfError if no frames cross.
    """
    _widen_bridges(sut)
    sut.probe(addressed(replace(profile, directions=tuple(sut.entries) or profile.directions), sut))
    return addressed(profile, sut)


def _widen_bridges(sut: SystemUnderTest) -> None:
    """Give each bridge of the chain's machine a table with many buckets, before the first frame of a trial.

    The kernel draws the seed of each table at random. In a small table, addresses often share a bucket, and each frame
    costs more by chance.
    """
    for machine in (part.site.worker.host for part in sut.parts if part.site is not None):
        machine.do("sh", "-ec", _WIDEN)
