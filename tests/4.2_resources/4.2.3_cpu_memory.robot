*** Settings ***
Documentation    CPU and memory allocation (draft section 4.2.3): a chain with several allocations of CPU time, memory,
...              queues and CPUs, by turns. No verdict fails a test. What needs more CPUs than the worker has is
...              skipped. docs/cpus-and-memory.md explains allocations and figures.

Resource         ../../resources/finding.resource
Resource         ../../resources/comparison.resource

Test Template    Placements Should Rank By 5 %
Test Tags        sec-4.2.3    finding


*** Test Cases ***                         DATA PLANE  FRAME   PLACEMENTS OR ALLOCATIONS
AF_XDP, 100, 50 and 25 % of a CPU          af-xdp      64      100 % of a CPU    50 % of a CPU    25 % of a CPU
    [Documentation]    A pod with less CPU time forwards less, because it waits for the next period when its time is
    ...    used up
    ...    Caveat: the pod is an ordinary process, because a limit of CPU time does not hold for real-time priority;
    ...    the receive threads of its ports have no limit
    [Tags]    ebpf    af-xdp    64B    resources
AF_XDP, 1024 and 192 MiB of memory         af-xdp      64      1024 MiB    192 MiB
    [Documentation]    Different RAM allocation to Pods also causes different throughput results
    ...    Source: the draft, section 4.2.3
    ...    Caveat: the draft does not say which amount is faster; memory in hugepages is beside the limit
    [Tags]    ebpf    af-xdp    64B
AF_XDP, busy polling over none
    [Documentation]    With preferred busy polling an AF_XDP pod forwards more, because its own calls run the driver
    [Tags]    ebpf    af-xdp    af-xdp-busy-poll    64B    resources
    [Template]    The First Should Forward 5 % More
    af-xdp-busy-poll    af-xdp    1    64
AF_XDP, 2048, 512 and 64 descriptors       af-xdp      64      2048 descriptors    512 descriptors    64 descriptors
    [Documentation]    With more descriptors more frames can wait while a port's receive thread or the pod has no CPU
    [Tags]    ebpf    af-xdp    64B
AF_XDP, 8192 and 32768 buffers             af-xdp      64      8192 buffers    32768 buffers
    [Documentation]    Different RAM allocation to Pods also causes different throughput results
    ...    Source: the draft, section 4.2.3
    ...    Caveat: the draft does not say which amount is faster: with more buffers, frames go through more memory
    [Tags]    ebpf    af-xdp    64B
OVS-DPDK, 4, 2 and 1 CPUs a pod, 1518 B    ovs-dpdk    1518    4 CPUs a pod    2 CPUs a pod    1 CPU a pod    flows=1000
    [Documentation]    With large packet frame sizes (over 1024), increasing CPU per pods significantly increases the
    ...    throughput
    ...    Source: the draft, section 4.2.3
    ...    Caveat: each CPU of a pod polls one queue of each port, and the switch divides 1000 flows among the queues
    [Tags]    user-space    ovs-dpdk    1518B    resources
AF_XDP, 4, 2 and 1 CPUs a pod              af-xdp      64      4 CPUs a pod    2 CPUs a pod    1 CPU a pod    flows=1000
    [Documentation]    2 CPUs per Pod is insufficient for all packet frame sizes
    ...    Source: the draft, section 4.2.3
    ...    Caveat: each CPU of the pod serves one queue of each port, and the card divides 1000 flows among the queues
    [Tags]    ebpf    af-xdp    64B    resources
AF_XDP, 2 queues, 1000 flows over 1 flow   af-xdp      64      1000 flows in 2 queues    1 flow in 2 queues
    [Documentation]    Several queues help only with several flows, because all frames of a flow go to one queue
    [Tags]    ebpf    af-xdp    64B    resources
OVS-DPDK, a CPU for the poller over none   ovs-dpdk    64      poller on its own CPU    poller on the pod's CPU
    [Documentation]    Not assigning dedicated CPU cores to DPDK PMD causes significant performance dropss
    ...    Source: the draft, section 4.2.3
    ...    Caveat: on the pod's CPU the poller is an ordinary process, as the pod is: they do not take turns
    [Tags]    user-space    ovs-dpdk    64B    resources
OVS-DPDK, 1, 2 and 4 pollers
    [Documentation]    Increasing CPU core allocation to OVS-DPDK vSwitch does not affect its performance
    ...    Source: the draft, section 4.2.3
    ...    Caveat: the ports along the chain are divided among the pollers, from left to right (pmd-rxq-affinity)
    [Tags]    user-space    ovs-dpdk    64B    resources
    [Template]    Placements Should Be Alike Within 5 %
    ovs-dpdk    64    1 poller    2 pollers    4 pollers
VPP bridge domain, latency with 1, 2 and 4 cores
    [Tags]    user-space    vpp-bridge-domain    64B
    [Template]    Variants Should Be Compared
    ${CURDIR}/../../comparisons/vpp-cores.yaml
