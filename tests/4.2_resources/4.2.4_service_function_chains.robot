*** Settings ***
Documentation    Service function chains (draft section 4.2.4): chains of 1, 2, 4 and 6 pods of each data plane, by
...              turns. Does the rate fall with the length, and how much of it does each further pod take? No verdict
...              fails a test. One row of each networking model has the tag `resources`. docs/chain-length.md explains
...              the figures.

Resource         ../../resources/finding.resource

Test Template    Longer Chains Should Forward 5 % Less Of 64 B Frames
Test Tags        sec-4.2.4    chain-length    finding    64B


*** Test Cases ***                DATA PLANE           PODS
Linux bridge, 1 to 6 pods         linux-bridge         1    2    4    6
    [Tags]    kernel-space    linux-bridge    resources
PTP, 1 to 6 pods                  ptp                  1    2    4    6
    [Tags]    kernel-space    ptp
MACVLAN, 1 to 6 pods              macvlan              1    2    4    6
    [Tags]    kernel-space    macvlan
IPVLAN, 1 to 6 pods               ipvlan               1    2    4    6
    [Tags]    kernel-space    ipvlan
Routed, 1 to 6 pods               routed               1    2    4    6
    [Tags]    kernel-space    routed
IPIP, 1 to 6 pods                 ipip                 1    2    4    6
    [Tags]    kernel-space    ipip
Docker, 1 to 6 pods               docker               1    2    4    6
    [Tags]    kernel-space    docker
Service, 1 to 6 pods              service              1    2    4    6
    [Tags]    kernel-space    service
Policy, 1 to 6 pods               routed-policy        1    2    4    6
    [Tags]    kernel-space    routed-policy
OVS kernel, 1 to 6 pods           ovs-kernel           1    2    4    6
    [Tags]    kernel-space    ovs-kernel
OVS-DPDK, 1 to 6 pods             ovs-dpdk             1    2    4    6
    [Tags]    user-space    ovs-dpdk
OVS netdev, 1 to 6 pods           ovs-netdev           1    2    4    6
    [Tags]    user-space    ovs-netdev
VPP L2 patch, 1 to 6 pods         vpp-l2patch          1    2    4    6
    [Tags]    user-space    vpp-l2patch
VPP bridge domain, 1 to 6 pods    vpp-bridge-domain    1    2    4    6
    [Tags]    user-space    vpp-bridge-domain
VPP VRF, 1 to 6 pods              vpp-vrf              1    2    4    6
    [Tags]    user-space    vpp-vrf
TC redirect, 1 to 6 pods          tc-redirect          1    2    4    6
    [Tags]    ebpf    tc-redirect    resources
TC redirect peer, 1 to 6 pods     tc-redirect-peer     1    2    4    6
    [Tags]    ebpf    tc-redirect-peer
XDP redirect, 1 to 6 pods         xdp-redirect         1    2    4    6
    [Tags]    ebpf    xdp-redirect
AF_XDP, 1 to 6 pods               af-xdp               1    2    4    6
    [Tags]    ebpf    af-xdp
AF_XDP busy poll, 1 to 6 pods     af-xdp-busy-poll     1    2    4    6
    [Tags]    ebpf    af-xdp-busy-poll
OVS AF_XDP, 1 to 6 pods           ovs-afxdp            1    2    4    6
    [Tags]    ebpf    ovs-afxdp
Memif, 2 to 6 pods                memif                2    4    6
    [Tags]    user-space    memif    resources
