*** Settings ***
Documentation    Service function chains (draft section 4.2.4): chains of 1, 2, 4 and 6 pods of each data plane, by
...              turns. Does the rate fall with the length, and how much of it does each further pod take? No verdict
...              fails a test. One row of each networking model has the tag `resources`. docs/chain-length.md explains
...              the figures.

Resource         ../../resources/finding.resource

Test Template    Claim Should Be Judged
Test Tags        sec-4.2.4    chain-length    finding    64B


*** Test Cases ***                CLAIM
Linux bridge, 1 to 6 pods         linux-bridge-by-length
    [Tags]    kernel-space    linux-bridge    resources
PTP, 1 to 6 pods                  ptp-by-length
    [Tags]    kernel-space    ptp
MACVLAN, 1 to 6 pods              macvlan-by-length
    [Tags]    kernel-space    macvlan
IPVLAN, 1 to 6 pods               ipvlan-by-length
    [Tags]    kernel-space    ipvlan
Routed, 1 to 6 pods               routed-by-length
    [Tags]    kernel-space    routed
IPIP, 1 to 6 pods                 ipip-by-length
    [Tags]    kernel-space    ipip
Docker, 1 to 6 pods               docker-by-length
    [Tags]    kernel-space    docker
Service, 1 to 6 pods              service-by-length
    [Tags]    kernel-space    service
Policy, 1 to 6 pods               routed-policy-by-length
    [Tags]    kernel-space    routed-policy
OVS kernel, 1 to 6 pods           ovs-kernel-by-length
    [Tags]    kernel-space    ovs-kernel
OVS-DPDK, 1 to 6 pods             ovs-dpdk-by-length
    [Tags]    user-space    ovs-dpdk
OVS netdev, 1 to 6 pods           ovs-netdev-by-length
    [Tags]    user-space    ovs-netdev
VPP L2 patch, 1 to 6 pods         vpp-l2patch-by-length
    [Tags]    user-space    vpp-l2patch
VPP bridge domain, 1 to 6 pods    vpp-bridge-domain-by-length
    [Tags]    user-space    vpp-bridge-domain
VPP VRF, 1 to 6 pods              vpp-vrf-by-length
    [Tags]    user-space    vpp-vrf
TC redirect, 1 to 6 pods          tc-redirect-by-length
    [Tags]    ebpf    tc-redirect    resources
TC redirect peer, 1 to 6 pods     tc-redirect-peer-by-length
    [Tags]    ebpf    tc-redirect-peer
XDP redirect, 1 to 6 pods         xdp-redirect-by-length
    [Tags]    ebpf    xdp-redirect
AF_XDP, 1 to 6 pods               af-xdp-by-length
    [Tags]    ebpf    af-xdp
AF_XDP busy poll, 1 to 6 pods     af-xdp-busy-poll-by-length
    [Tags]    ebpf    af-xdp-busy-poll
OVS AF_XDP, 1 to 6 pods           ovs-afxdp-by-length
    [Tags]    ebpf    ovs-afxdp
Memif, 2 to 6 pods                memif-by-length
    [Tags]    user-space    memif    resources
