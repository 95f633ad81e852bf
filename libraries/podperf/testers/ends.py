"""The two ends of a system under test as places with an address: programs of the field talk through it from there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from podperf.errors import Unavailable
from podperf.hosts.base import ProgramPlace


@dataclass(frozen=True)
class ChainEnd:
    """One end: the place of its port, the address of its port, and the CPUs for programs there. Empty: any of them.

    `cpu_time` reads the nanoseconds that all programs there have taken so far, or None if it cannot read them now. An
    end without it shares its place with other programs.
    """

    host: ProgramPlace
    address: str
    cpus: Sequence[int] = ()
    cpu_time: Callable[[], float | None] | None = None


EndHosts = Callable[[], AbstractContextManager[tuple[ChainEnd, ChainEnd]]]
"""Makes the left and the right end, for the time of the context. The tester may send no test frames afterwards."""


def no_ends() -> AbstractContextManager[tuple[ChainEnd, ChainEnd]]:
    """Raises Unavailable."""
    raise Unavailable(
        "application traffic needs ports that podperf makes, as with topologies/local.yaml, or two pods of a cluster"
    )
