"""Data planes: what switches frames. A new one is one file and one line here."""

from podperf.dataplanes.base import DataPlane
from podperf.dataplanes.docker import Docker
from podperf.dataplanes.external import External
from podperf.dataplanes.ipvlan import Ipvlan
from podperf.dataplanes.linux_bridge import LinuxBridge
from podperf.dataplanes.macvlan import Macvlan
from podperf.dataplanes.ovs_kernel import OvsKernel
from podperf.dataplanes.ptp import PointToPoint
from podperf.dataplanes.routed import Routed
from podperf.dataplanes.wire import Wire

DATA_PLANES: dict[str, type[DataPlane]] = {
    each.name: each for each in (Wire, External, LinuxBridge, PointToPoint, Macvlan, Ipvlan, Routed, Docker, OvsKernel)
}
