*** Settings ***
Documentation    CPU isolation (draft section 4.2.1): a pod on CPUs of its own, on a shared pool, and on any CPU, each
...              alone and beside a neighbour that computes, fills memory, or is another chain under load. The levels
...              are measured by turns. In two tests the neighbour has limits. No verdict fails a test.
...              docs/noisy-neighbours.md explains levels, neighbours and figures. Also switch and pod on the NIC's NUMA
...              node and on another one (docs/cpus-and-memory.md).

Resource         ../../resources/finding.resource

Test Template    Isolation Should Be Judged
Test Tags        sec-4.2.1    finding    64B


*** Test Cases ***                                             DATA PLANE          NEIGHBOUR     EXCLUSIVE OVER
AF_XDP, exclusive over none, busy                              af-xdp              BUSY          NONE
    [Tags]    ebpf    af-xdp    resources
AF_XDP, exclusive over none, memory hog                        af-xdp              MEMORY_HOG    NONE
    [Tags]    ebpf    af-xdp
AF_XDP, exclusive over none, chain under load                  af-xdp              CHAIN         NONE
    [Tags]    ebpf    af-xdp
AF_XDP busy poll, exclusive over none, busy                    af-xdp-busy-poll    BUSY          NONE
    [Tags]    ebpf    af-xdp-busy-poll
AF_XDP busy poll, exclusive over none, memory hog              af-xdp-busy-poll    MEMORY_HOG    NONE
    [Tags]    ebpf    af-xdp-busy-poll
AF_XDP busy poll, exclusive over none, chain under load        af-xdp-busy-poll    CHAIN         NONE
    [Tags]    ebpf    af-xdp-busy-poll
AF_XDP, exclusive over shared over none, busy                  af-xdp              BUSY          SHARED    NONE
    [Tags]    ebpf    af-xdp    resources
AF_XDP, exclusive over shared over none, memory hog            af-xdp              MEMORY_HOG    SHARED    NONE
    [Tags]    ebpf    af-xdp
AF_XDP, exclusive over shared over none, chain under load      af-xdp              CHAIN         SHARED    NONE
    [Tags]    ebpf    af-xdp
OVS-DPDK, exclusive over shared over none, busy                ovs-dpdk            BUSY          SHARED    NONE
    [Tags]    user-space    ovs-dpdk
OVS-DPDK, exclusive over shared over none, memory hog          ovs-dpdk            MEMORY_HOG    SHARED    NONE
    [Tags]    user-space    ovs-dpdk
OVS-DPDK, exclusive over shared over none, chain under load    ovs-dpdk            CHAIN         SHARED    NONE
    [Tags]    user-space    ovs-dpdk
AF_XDP, limit of the neighbour's CPU time
    [Tags]    ebpf    af-xdp
    [Template]    Placement Should Be Judged
    af-xdp-neighbour-cpu-time
AF_XDP, limit of the neighbour's memory
    [Tags]    ebpf    af-xdp
    [Template]    Placement Should Be Judged
    af-xdp-neighbour-memory
AF_XDP, pod on the NIC's NUMA node over another
    [Tags]    ebpf    af-xdp    resources
    [Template]    Placement Should Be Judged
    af-xdp-numa
OVS-DPDK, pod on the NIC's NUMA node over another
    [Tags]    user-space    ovs-dpdk    resources
    [Template]    Placement Should Be Judged
    ovs-dpdk-numa
OVS-DPDK, switch on the NIC's NUMA node over another
    [Tags]    user-space    ovs-dpdk    resources
    [Template]    Placement Should Be Judged
    ovs-dpdk-numa-of-switch
