"""The data planes. A new one needs one file and one line here, or an entry point of another package."""

from dataclasses import replace

from podperf.dataplanes.af_xdp import AfXdp, AfXdpBusyPoll
from podperf.dataplanes.base import DataPlane
from podperf.dataplanes.bpf_object import BpfObject
from podperf.dataplanes.docker import Docker
from podperf.dataplanes.external import External
from podperf.dataplanes.ipip import Ipip
from podperf.dataplanes.ipvlan import Ipvlan
from podperf.dataplanes.linux_bridge import LinuxBridge
from podperf.dataplanes.macvlan import Macvlan
from podperf.dataplanes.memif import Memif
from podperf.dataplanes.ovs_afxdp import OvsAfxdp
from podperf.dataplanes.ovs_dpdk import OvsDpdk
from podperf.dataplanes.ovs_kernel import OvsKernel
from podperf.dataplanes.ovs_netdev import OvsNetdev
from podperf.dataplanes.ptp import PointToPoint
from podperf.dataplanes.routed import Routed
from podperf.dataplanes.routed_policy import RoutedPolicy
from podperf.dataplanes.service import Service
from podperf.dataplanes.sriov import Sriov
from podperf.dataplanes.sriov_ovs_dpdk import SriovOvsDpdk
from podperf.dataplanes.sriov_vpp import SriovVpp
from podperf.dataplanes.tc_redirect import TcRedirect, TcRedirectPeer
from podperf.dataplanes.vpp_bridge_domain import VppBridgeDomain
from podperf.dataplanes.vpp_l2patch import VppL2Patch
from podperf.dataplanes.vpp_vrf import VppVrf
from podperf.dataplanes.wire import Wire
from podperf.dataplanes.xdp_offload import XdpOffload
from podperf.dataplanes.xdp_redirect import XdpRedirect
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
