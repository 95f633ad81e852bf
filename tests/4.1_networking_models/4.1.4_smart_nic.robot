*** Settings ***
Documentation    Smart-NIC acceleration model (draft section 4.1.4).
...              Pods have SR-IOV virtual functions of the NIC. The NIC's embedded switch forwards frames to a pod by
...              MAC. Pods forward with DPDK or in the kernel. eBPF/XDP programs run on the NIC if it supports this.
...              The other sizes, directions and chains: 4.1.4_smart_nic_sweep.robot.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.4    smart-nic    64B    mrr    ndrpdr    full


*** Test Cases ***      DATA PLANE
SR-IOV, 64 B            sriov
    [Tags]    sriov    needs-sriov    quick
SR-IOV, 64 B, kernel    sriov          forwarder=kernel
    [Tags]    sriov    needs-sriov    quick
XDP offload, 64 B       xdp-offload    pods=0
    [Tags]    xdp-offload
