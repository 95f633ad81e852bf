*** Settings ***
Documentation    Several hosts (draft section 4.2.5): the pods of a chain are divided among two workers, whose ports are
...              cabled to each other. The topology lists both under `workers`.

Resource         ../../resources/networking_model.resource

Test Template    Chain On Two Workers Should Forward
Test Tags        sec-4.2.5    mrr    ndrpdr    full    needs-lab


*** Test Cases ***                        DATA PLANE      PODS    FRAME
Linux bridge, 64 B, 2 workers             linux-bridge    2       64
    [Tags]    kernel-space    linux-bridge    64B
Linux bridge, 1518 B, 2 workers           linux-bridge    2       1518
    [Tags]    kernel-space    linux-bridge    1518B
MACVLAN, 64 B, 2 workers                  macvlan         2       64
    [Tags]    kernel-space    macvlan    64B
Routed, 64 B, 2 workers                   routed          2       64
    [Tags]    kernel-space    routed    64B
XDP redirect, 64 B, 2 workers             xdp-redirect    2       64
    [Tags]    ebpf    xdp-redirect    64B
OVS-DPDK, 64 B, 2 workers                 ovs-dpdk        2       64
    [Tags]    user-space    ovs-dpdk    64B
OVS-DPDK, 1518 B, 2 workers               ovs-dpdk        2       1518
    [Tags]    user-space    ovs-dpdk    1518B
SR-IOV, 64 B, 2 workers                   sriov           2       64
    [Tags]    smart-nic    sriov    64B    needs-sriov
SR-IOV and VPP, 64 B, 2 workers           sriov-vpp       4       64
    [Tags]    combination    sriov-vpp    64B    needs-sriov
SR-IOV and VPP, 1518 B, 2 workers         sriov-vpp       4       1518
    [Tags]    combination    sriov-vpp    1518B    needs-sriov
