"""Two models in one chain: virtual functions to and from the network, VPP and memif between the pods."""

from __future__ import annotations

from typing import ClassVar

from podperf.dataplanes.sriov_ends import SriovAndSwitch, Switch
from podperf.dataplanes.vpp_l2patch import VppL2Patch


class SriovVpp(SriovAndSwitch):
    """memif joins the pods. The hackathon at IETF 113 measured this set-up as SR-IOV + VPP."""

    name: ClassVar[str] = "sriov-vpp"
    switch: ClassVar[type[Switch]] = VppL2Patch
