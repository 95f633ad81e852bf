*** Settings ***
Documentation    Model combination (draft section 4.1.5).
...              North/south frames pass SR-IOV virtual functions, east/west frames a user-space switch between
...              the pods.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.5    combination    mrr    ndrpdr    full    needs-sriov


*** Test Cases ***                     DATA PLANE        PODS    FRAME
SR-IOV and OVS-DPDK, 64 B, 2 pods      sriov-ovs-dpdk    2       64
    [Tags]    sriov-ovs-dpdk    64B    quick
SR-IOV and OVS-DPDK, 1518 B, 2 pods    sriov-ovs-dpdk    2       1518
    [Tags]    sriov-ovs-dpdk    1518B
SR-IOV and OVS-DPDK, 64 B, 3 pods      sriov-ovs-dpdk    3       64
    [Tags]    sriov-ovs-dpdk    64B
SR-IOV and VPP, 64 B, 2 pods           sriov-vpp         2       64
    [Tags]    sriov-vpp    64B
SR-IOV and VPP, 1518 B, 2 pods         sriov-vpp         2       1518
    [Tags]    sriov-vpp    1518B
SR-IOV and VPP, 64 B, 3 pods           sriov-vpp         3       64
    [Tags]    sriov-vpp    64B
