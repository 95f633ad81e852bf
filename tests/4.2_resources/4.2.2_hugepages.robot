*** Settings ***
Documentation    Hugepages (draft section 4.2.2): pods and switch with their memory in pages of 2 MiB, of 1 GiB and in
...              ordinary pages, by turns. A data plane of the kernel is the control: it uses none of the pages. No
...              verdict fails a test. docs/hugepages.md explains what is configured, read back and judged.

Resource         ../../resources/finding.resource

Test Template    Hugepages Should Be Judged
Test Tags        sec-4.2.2    hugepages    finding    64B


*** Test Cases ***                               DATA PLANE      PODS    PAGES
Linux bridge, 2 MiB reserved as good as none     linux-bridge    1       TWO_MIB
    [Tags]    kernel-space    linux-bridge    resources
    [Template]    Reserved Hugepages Should Make No Difference
AF_XDP, 2 MiB over none                          af-xdp          1       TWO_MIB
    [Tags]    ebpf    af-xdp
AF_XDP, 1 GiB over none                          af-xdp          1       ONE_GIB
    [Tags]    ebpf    af-xdp    resources
Memif, 2 MiB over none                           memif           2       TWO_MIB
    [Tags]    user-space    memif
Memif, 1 GiB over none                           memif           2       ONE_GIB
    [Tags]    user-space    memif
OVS-DPDK, 2 MiB over none                        ovs-dpdk        1       TWO_MIB
    [Tags]    user-space    ovs-dpdk
OVS-DPDK, 1 GiB over none                        ovs-dpdk        1       ONE_GIB
    [Tags]    user-space    ovs-dpdk
VPP L2 patch, 2 MiB over none                    vpp-l2patch     1       TWO_MIB
    [Tags]    user-space    vpp-l2patch
VPP L2 patch, 1 GiB over none                    vpp-l2patch     1       ONE_GIB
    [Tags]    user-space    vpp-l2patch
