*** Settings ***
Documentation    Model combination (draft section 4.1.5).
...              North/south frames cross SR-IOV virtual functions. East/west frames cross a user-space switch between
...              the pods. The other sizes, directions and chains: 4.1.5_model_combination_sweep.robot.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.5    combination    needs-sriov    64B    mrr    ndrpdr    quick    full


*** Test Cases ***                   DATA PLANE
SR-IOV and OVS-DPDK, 64 B, 2 pods    sriov-ovs-dpdk    pods=2
    [Tags]    sriov-ovs-dpdk
SR-IOV and VPP, 64 B, 2 pods         sriov-vpp         pods=2
    [Tags]    sriov-vpp    -quick
