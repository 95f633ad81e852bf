"""The data planes. A new one needs one file and one line here, or an entry point of another package."""

from dataclasses import replace

from podperf.dataplanes.af_xdp import AfXdp, AfXdpBusyPoll
from podperf.dataplanes.base import DataPlane
from podperf.dataplanes.bpf_object import BpfObject
from podperf.dataplanes.docker import Docker, Service
from podperf.dataplanes.docker_bridge import DockerBridge, DockerDefaultBridge
from podperf.dataplanes.docker_macvlan import DockerMacvlan
from podperf.dataplanes.docker_overlay import DockerOverlay
from podperf.dataplanes.ipip import Ipip
from podperf.dataplanes.ipvlan import Ipvlan
from podperf.dataplanes.linux_bridge import LinuxBridge
from podperf.dataplanes.macvlan import Macvlan
from podperf.dataplanes.memif import Memif
from podperf.dataplanes.ovs_dpdk import OvsDpdk, SriovOvsDpdk
from podperf.dataplanes.ovs_kernel import OvsAfxdp, OvsKernel, OvsNetdev
from podperf.dataplanes.podman_bridge import PodmanBridge
from podperf.dataplanes.ptp import PointToPoint
from podperf.dataplanes.routed import Routed, RoutedPolicy
from podperf.dataplanes.sriov import Sriov
from podperf.dataplanes.tc_redirect import TcRedirect, TcRedirectPeer
from podperf.dataplanes.vpp_chain import SriovVpp, VppBridgeDomain, VppL2Patch, VppVrf
from podperf.dataplanes.wire import External, Wire
from podperf.dataplanes.xdp_redirect import XdpOffload, XdpRedirect
from podperf.model import Chain
from podperf.third_party import with_third_party

_OWN: dict[str, type[DataPlane]] = {
    each.name: each
    for each in (
        Wire,
        External,
        LinuxBridge,
        PointToPoint,
        Macvlan,
        Ipvlan,
        Routed,
        Ipip,
        Docker,
        DockerBridge,
        DockerDefaultBridge,
        DockerMacvlan,
        DockerOverlay,
        PodmanBridge,
        Service,
        RoutedPolicy,
        OvsKernel,
        OvsNetdev,
        OvsDpdk,
        Memif,
        VppL2Patch,
        VppBridgeDomain,
        VppVrf,
        OvsAfxdp,
        TcRedirect,
        TcRedirectPeer,
        XdpRedirect,
        BpfObject,
        AfXdp,
        AfXdpBusyPoll,
        Sriov,
        XdpOffload,
        SriovOvsDpdk,
        SriovVpp,
    )
}
DATA_PLANES = with_third_party("podperf.dataplanes", _OWN)


def with_forwarder(chain: Chain) -> Chain:
    """The chain with the name of its forwarder. A test that names none gets the default of the data plane."""
    kind = DATA_PLANES.get(chain.data_plane)
    return replace(chain, forwarder=chain.forwarder or kind.forwarders[0]) if kind else chain
