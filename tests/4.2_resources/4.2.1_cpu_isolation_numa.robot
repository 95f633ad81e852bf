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
    [Documentation]    A pod that shares its CPU forwards more if its neighbour has a limit of CPU time
    ...    Caveat: pod and neighbour are ordinary processes on the same CPUs
    [Tags]    ebpf    af-xdp
    [Template]    Placements Should Rank By 5 % With 64 B Frames
    af-xdp    neighbour with 25 % of a CPU    neighbour without a limit
AF_XDP, limit of the neighbour's memory
    [Documentation]    A pod forwards more if its neighbour has a limit of memory, and so takes less of the cache
    ...    Caveat: pod and neighbour are ordinary processes on the same CPUs; with the limit, the neighbour fills half
    ...    of it again and again
    [Tags]    ebpf    af-xdp
    [Template]    Placements Should Rank By 5 % With 64 B Frames
    af-xdp    memory hog with 16 MiB    memory hog without a limit
AF_XDP, pod on the NIC's NUMA node over another
    [Documentation]    Network performance can be changed depending on the location of the NUMA node whether it is the
    ...    same NUMA node where the physical network interface and CNF are attached to
    ...    Source: the draft, section 4.2.1
    [Tags]    ebpf    af-xdp    resources
    [Template]    Placements Should Rank By 5 % With 64 B Frames
    af-xdp    pod on the NIC's node    pod on another node
OVS-DPDK, pod on the NIC's NUMA node over another
    [Documentation]    Network performance can be changed depending on the location of the NUMA node whether it is the
    ...    same NUMA node where the physical network interface and CNF are attached to
    ...    Source: the draft, section 4.2.1
    ...    Caveat: S2 and S1 of appendix C.3, with one pod
    [Tags]    user-space    ovs-dpdk    resources
    [Template]    Placements Should Rank By 5 % With 64 B Frames
    ovs-dpdk    switch and pod on the NIC's node    pod on another node
OVS-DPDK, switch on the NIC's NUMA node over another
    [Documentation]    Network performance can be changed depending on the location of the NUMA node whether it is the
    ...    same NUMA node where the physical network interface and CNF are attached to
    ...    Source: the draft, section 4.2.1
    ...    Caveat: S2 and S4 of appendix C.3, with one pod
    [Tags]    user-space    ovs-dpdk    resources
    [Template]    Placements Should Rank By 5 % With 64 B Frames
    ovs-dpdk    switch and pod on the NIC's node    switch on another node
