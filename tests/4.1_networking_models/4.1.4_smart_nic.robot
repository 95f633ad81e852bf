*** Settings ***
Documentation    Smart-NIC acceleration model (draft section 4.1.4).
...              Pods own SR-IOV virtual functions of the NIC, whose embedded switch takes frames to them by MAC, and
...              forward with DPDK or in their kernel; eBPF/XDP programs run on the NIC, where one can.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.4    smart-nic    mrr    ndrpdr    full


*** Test Cases ***                DATA PLANE     PODS    FRAME
SR-IOV, 64 B                      sriov          1       64
    [Tags]    sriov    64B    needs-sriov    quick
SR-IOV, 1518 B                    sriov          1       1518
    [Tags]    sriov    1518B    needs-sriov
SR-IOV, 64 B, kernel              sriov          1       64      forwarder=kernel
    [Tags]    sriov    64B    needs-sriov    quick
SR-IOV, 1518 B, kernel            sriov          1       1518    forwarder=kernel
    [Tags]    sriov    1518B    needs-sriov
SR-IOV, 64 B, 2 pods              sriov          2       64
    [Tags]    sriov    64B    needs-sriov
SR-IOV, 1518 B, 2 pods            sriov          2       1518
    [Tags]    sriov    1518B    needs-sriov
SR-IOV, 64 B, 2 pods, kernel      sriov          2       64      forwarder=kernel
    [Tags]    sriov    64B    needs-sriov
SR-IOV, 1518 B, 2 pods, kernel    sriov          2       1518    forwarder=kernel
    [Tags]    sriov    1518B    needs-sriov
SR-IOV, 64 B, both directions     sriov          1       64      bidirectional
    [Tags]    sriov    64B    needs-sriov    bidirectional
XDP offload, 64 B                 xdp-offload    0       64
    [Tags]    xdp-offload    64B
XDP offload, 1518 B               xdp-offload    0       1518
    [Tags]    xdp-offload    1518B
