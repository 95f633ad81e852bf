"""The black box between two ports that exist already: nothing is set up, whatever stands there is measured."""

from __future__ import annotations

from typing import ClassVar

from podperf.dataplanes.base import Cabling
from podperf.dataplanes.wire import Wire


class External(Wire):
    """Any vendor's switch, CNI or appliance. How to address frames into it is said in the topology."""

    name: ClassVar[str] = "external"
    cabling: ClassVar[Cabling] = Cabling.EXISTING
    path: ClassVar[str] = "the tester's existing ports; what stands between them is not known to podperf"
