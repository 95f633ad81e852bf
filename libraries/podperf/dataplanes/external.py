"""The black box between two existing ports. podperf measures it and sets nothing up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from podperf.dataplanes.base import Cabling
from podperf.dataplanes.wire import Wire
from podperf.kernel.thread_time import CpuUser


class External(Wire):
    """Any vendor's switch, CNI or appliance. The topology gives the destination addresses of frames."""

    name: ClassVar[str] = "external"
    cabling: ClassVar[Cabling] = Cabling.EXISTING
    cpu_users: ClassVar[Sequence[CpuUser] | None] = None
    path: ClassVar[str] = "the tester's existing ports; podperf does not know the system between them"
