*** Settings ***
Documentation    User-space, kernel-bypass networking model (draft section 4.1.2).
...              Frames bypass the kernel: a process polls the ports, and shared memory joins the pods.
...              The other sizes, directions and chains: 4.1.2_user_space_sweep.robot.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.2    user-space    64B    mrr    ndrpdr    quick    full


*** Test Cases ***                      DATA PLANE
OVS-DPDK, 64 B                          ovs-dpdk
    [Tags]    ovs-dpdk
Memif, 64 B, 2 pods                     memif                pods=2
    [Tags]    memif
VPP L2 patch, 64 B                      vpp-l2patch
    [Tags]    vpp-l2patch
OVS netdev, 64 B                        ovs-netdev
    [Tags]    ovs-netdev    -quick
VPP bridge domain, 64 B                 vpp-bridge-domain
    [Tags]    vpp-bridge-domain    -quick
VPP VRF, 64 B                           vpp-vrf
    [Tags]    vpp-vrf    -quick
Memif, 64 B, 4 pods                     memif                pods=4
    [Tags]    memif    -quick
OVS-DPDK, 64 B, testpmd mac             ovs-dpdk             forwarder=testpmd-mac
    [Tags]    ovs-dpdk    testpmd-mac    -quick
OVS-DPDK, 64 B, testpmd macswap         ovs-dpdk             forwarder=testpmd-macswap
    [Tags]    ovs-dpdk    testpmd-macswap    -quick
OVS-DPDK, 64 B, l2fwd                   ovs-dpdk             forwarder=l2fwd
    [Tags]    ovs-dpdk    l2fwd    -quick
Memif, 64 B, 2 pods, testpmd macswap    memif                pods=2                       forwarder=testpmd-macswap
    [Tags]    memif    testpmd-macswap    -quick
Memif, 64 B, 2 pods, l2fwd              memif                pods=2                       forwarder=l2fwd
    [Tags]    memif    l2fwd    -quick
