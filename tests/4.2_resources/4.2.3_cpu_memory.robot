*** Settings ***
Documentation    CPU and memory allocation (draft section 4.2.3): a chain with several allocations of CPU time, memory,
...              queues and CPUs, by turns. No verdict fails a test. What needs more CPUs than the worker has is
...              skipped. docs/cpus-and-memory.md explains allocations and figures.

Resource         ../../resources/finding.resource
Resource         ../../resources/comparison.resource

Test Template    Placement Should Be Judged
Test Tags        sec-4.2.3    finding


*** Test Cases ***                              CLAIM
AF_XDP, 100, 50 and 25 % of a CPU               af-xdp-cpu-time
    [Tags]    ebpf    af-xdp    64B    resources
AF_XDP, 1024 and 192 MiB of memory              af-xdp-memory
    [Tags]    ebpf    af-xdp    64B
AF_XDP, busy polling over none                  af-xdp-busy-polling
    [Tags]    ebpf    af-xdp    af-xdp-busy-poll    64B    resources
AF_XDP, 2048, 512 and 64 descriptors            af-xdp-descriptors
    [Tags]    ebpf    af-xdp    64B
AF_XDP, 8192 and 32768 buffers                  af-xdp-buffers
    [Tags]    ebpf    af-xdp    64B
OVS-DPDK, 4, 2 and 1 CPUs a pod, 1518 B         ovs-dpdk-cpus-of-pod
    [Tags]    user-space    ovs-dpdk    1518B    resources
AF_XDP, 4, 2 and 1 CPUs a pod                   af-xdp-cpus-of-pod
    [Tags]    ebpf    af-xdp    64B    resources
AF_XDP, 2 queues, 1000 flows over 1 flow        af-xdp-queues-by-flows
    [Tags]    ebpf    af-xdp    64B    resources
OVS-DPDK, a CPU for the poller over none        ovs-dpdk-dedicated-poller
    [Tags]    user-space    ovs-dpdk    64B    resources
OVS-DPDK, 1, 2 and 4 pollers                    ovs-dpdk-pollers
    [Tags]    user-space    ovs-dpdk    64B    resources
VPP bridge domain, latency with 1, 2 and 4 cores
    [Tags]    user-space    vpp-bridge-domain    64B
    [Template]    Variants Should Be Compared
    ${CURDIR}/../../comparisons/vpp-cores.yaml
