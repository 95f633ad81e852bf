*** Settings ***
Documentation    Model combination (draft section 4.1.5):
...              frame sizes, directions and numbers of pods. Made by docs/make.py from the suites that people write.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.5    combination    full    mrr    ndrpdr    needs-sriov


*** Test Cases ***                                    DATA PLANE        PODS    FRAME    MORE
SR-IOV and OVS-DPDK, 128 B, 2 pods                    sriov-ovs-dpdk    2       128
    [Tags]    sriov-ovs-dpdk    128B
SR-IOV and VPP, 128 B, 2 pods                         sriov-vpp         2       128
    [Tags]    sriov-vpp    128B
SR-IOV and OVS-DPDK, 256 B, 2 pods                    sriov-ovs-dpdk    2       256
    [Tags]    sriov-ovs-dpdk    256B
SR-IOV and VPP, 256 B, 2 pods                         sriov-vpp         2       256
    [Tags]    sriov-vpp    256B
SR-IOV and OVS-DPDK, 512 B, 2 pods                    sriov-ovs-dpdk    2       512
    [Tags]    sriov-ovs-dpdk    512B
SR-IOV and VPP, 512 B, 2 pods                         sriov-vpp         2       512
    [Tags]    sriov-vpp    512B
SR-IOV and OVS-DPDK, 1024 B, 2 pods                   sriov-ovs-dpdk    2       1024
    [Tags]    sriov-ovs-dpdk    1024B
SR-IOV and VPP, 1024 B, 2 pods                        sriov-vpp         2       1024
    [Tags]    sriov-vpp    1024B
SR-IOV and OVS-DPDK, 1280 B, 2 pods                   sriov-ovs-dpdk    2       1280
    [Tags]    sriov-ovs-dpdk    1280B
SR-IOV and VPP, 1280 B, 2 pods                        sriov-vpp         2       1280
    [Tags]    sriov-vpp    1280B
SR-IOV and OVS-DPDK, 1518 B, 2 pods                   sriov-ovs-dpdk    2       1518
    [Tags]    sriov-ovs-dpdk    1518B
SR-IOV and VPP, 1518 B, 2 pods                        sriov-vpp         2       1518
    [Tags]    sriov-vpp    1518B
SR-IOV and OVS-DPDK, IMIX, 2 pods                     sriov-ovs-dpdk    2       IMIX
    [Tags]    sriov-ovs-dpdk    IMIX
SR-IOV and VPP, IMIX, 2 pods                          sriov-vpp         2       IMIX
    [Tags]    sriov-vpp    IMIX
SR-IOV and OVS-DPDK, 64 B, 2 pods, both directions    sriov-ovs-dpdk    2       64       bidirectional
    [Tags]    sriov-ovs-dpdk    64B    bidirectional
SR-IOV and VPP, 64 B, 2 pods, both directions         sriov-vpp         2       64       bidirectional
    [Tags]    sriov-vpp    64B    bidirectional
SR-IOV and OVS-DPDK, 64 B, 3 pods                     sriov-ovs-dpdk    3       64
    [Tags]    sriov-ovs-dpdk    64B
SR-IOV and VPP, 64 B, 3 pods                          sriov-vpp         3       64
    [Tags]    sriov-vpp    64B
SR-IOV and OVS-DPDK, 1518 B, 3 pods                   sriov-ovs-dpdk    3       1518
    [Tags]    sriov-ovs-dpdk    1518B
SR-IOV and VPP, 1518 B, 3 pods                        sriov-vpp         3       1518
    [Tags]    sriov-vpp    1518B
