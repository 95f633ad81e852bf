"""Two models in one chain: virtual functions to and from the network, Open vSwitch with DPDK between the pods."""

from __future__ import annotations

from typing import ClassVar

from podperf.dataplanes.ovs_dpdk import OvsDpdk
from podperf.dataplanes.sriov_ends import SriovAndSwitch, Switch


class SriovOvsDpdk(SriovAndSwitch):
    """The switch joins the pods by vhost-user."""

    name: ClassVar[str] = "sriov-ovs-dpdk"
    switch: ClassVar[type[Switch]] = OvsDpdk
