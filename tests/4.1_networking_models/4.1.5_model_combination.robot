*** Settings ***
Documentation    Model combination (draft section 4.1.5).
...              North/south frames pass SR-IOV virtual functions, east/west frames a user-space switch between the pods.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.5    combination    mrr    ndrpdr    full


*** Test Cases ***                     DATA PLANE        PODS    FRAME
SR-IOV and OVS-DPDK, 64 B, 2 pods      sriov-ovs-dpdk    2       64
    [Tags]    sriov-ovs-dpdk    64B    needs-sriov    quick
SR-IOV and OVS-DPDK, 1518 B, 2 pods    sriov-ovs-dpdk    2       1518
    [Tags]    sriov-ovs-dpdk    1518B    needs-sriov
SR-IOV and OVS-DPDK, 64 B, 3 pods      sriov-ovs-dpdk    3       64
    [Tags]    sriov-ovs-dpdk    64B    needs-sriov
