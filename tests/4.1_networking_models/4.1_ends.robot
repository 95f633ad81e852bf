*** Settings ***
Documentation    Traffic that begins or ends in a pod: the scenarios Pod2Pod, Pod2External, External2Pod and
...              Container2Container (two containers of one pod) of versions 05 and 07 of the draft and of ETSI TST 009.
...              The tester's program sends and receives in the pods. Its port is a host outside of the worker. No pod
...              forwards between the two ends. A pod of ovs-dpdk, memif or af-xdp has a port in user space (vhost-user,
...              memif, AF_XDP). A program of the pod carries frames between this port and the tester's interface. So
...              the rates of such rows are lower bounds of the data plane.

Resource         ../../resources/networking_model.resource

Test Template    Traffic Between Ends Should Forward
Test Tags        sec-4.1    ends    mrr    ndrpdr    full


*** Test Cases ***                               DATA PLANE      LEFT END    RIGHT END    FRAME
Linux bridge, from pod to pod, 64 B              linux-bridge    pod         pod          64
    [Tags]    kernel-space    linux-bridge    pod2pod    64B
Linux bridge, from pod to pod, 1518 B            linux-bridge    pod         pod          1518
    [Tags]    kernel-space    linux-bridge    pod2pod    1518B
Linux bridge, from pod to host, 64 B             linux-bridge    pod         port         64
    [Tags]    kernel-space    linux-bridge    pod2external    64B
Linux bridge, from pod to host, 1518 B           linux-bridge    pod         port         1518
    [Tags]    kernel-space    linux-bridge    pod2external    1518B
Linux bridge, from host to pod, 64 B             linux-bridge    port        pod          64
    [Tags]    kernel-space    linux-bridge    external2pod    64B
Linux bridge, from host to pod, 1518 B           linux-bridge    port        pod          1518
    [Tags]    kernel-space    linux-bridge    external2pod    1518B
PTP, from pod to pod, 64 B                       ptp             pod         pod          64
    [Tags]    kernel-space    ptp    pod2pod    64B
PTP, from pod to pod, 1518 B                     ptp             pod         pod          1518
    [Tags]    kernel-space    ptp    pod2pod    1518B
PTP, from pod to host, 64 B                      ptp             pod         port         64
    [Tags]    kernel-space    ptp    pod2external    64B
PTP, from pod to host, 1518 B                    ptp             pod         port         1518
    [Tags]    kernel-space    ptp    pod2external    1518B
PTP, from host to pod, 64 B                      ptp             port        pod          64
    [Tags]    kernel-space    ptp    external2pod    64B
PTP, from host to pod, 1518 B                    ptp             port        pod          1518
    [Tags]    kernel-space    ptp    external2pod    1518B
MACVLAN, from pod to pod, 64 B                   macvlan         pod         pod          64
    [Tags]    kernel-space    macvlan    pod2pod    64B
MACVLAN, from pod to pod, 1518 B                 macvlan         pod         pod          1518
    [Tags]    kernel-space    macvlan    pod2pod    1518B
MACVLAN, from pod to host, 64 B                  macvlan         pod         port         64
    [Tags]    kernel-space    macvlan    pod2external    64B
MACVLAN, from pod to host, 1518 B                macvlan         pod         port         1518
    [Tags]    kernel-space    macvlan    pod2external    1518B
MACVLAN, from host to pod, 64 B                  macvlan         port        pod          64
    [Tags]    kernel-space    macvlan    external2pod    64B
MACVLAN, from host to pod, 1518 B                macvlan         port        pod          1518
    [Tags]    kernel-space    macvlan    external2pod    1518B
Routed, from pod to pod, 64 B                    routed          pod         pod          64
    [Tags]    kernel-space    routed    pod2pod    64B
Routed, from pod to pod, 1518 B                  routed          pod         pod          1518
    [Tags]    kernel-space    routed    pod2pod    1518B
Routed, from pod to host, 64 B                   routed          pod         port         64
    [Tags]    kernel-space    routed    pod2external    64B
Routed, from pod to host, 1518 B                 routed          pod         port         1518
    [Tags]    kernel-space    routed    pod2external    1518B
Routed, from host to pod, 64 B                   routed          port        pod          64
    [Tags]    kernel-space    routed    external2pod    64B
Routed, from host to pod, 1518 B                 routed          port        pod          1518
    [Tags]    kernel-space    routed    external2pod    1518B
OVS kernel datapath, from pod to pod, 64 B       ovs-kernel      pod         pod          64
    [Tags]    kernel-space    ovs-kernel    pod2pod    64B
OVS kernel datapath, from pod to pod, 1518 B     ovs-kernel      pod         pod          1518
    [Tags]    kernel-space    ovs-kernel    pod2pod    1518B
OVS kernel datapath, from pod to host, 64 B      ovs-kernel      pod         port         64
    [Tags]    kernel-space    ovs-kernel    pod2external    64B
OVS kernel datapath, from pod to host, 1518 B    ovs-kernel      pod         port         1518
    [Tags]    kernel-space    ovs-kernel    pod2external    1518B
OVS kernel datapath, from host to pod, 64 B      ovs-kernel      port        pod          64
    [Tags]    kernel-space    ovs-kernel    external2pod    64B
OVS kernel datapath, from host to pod, 1518 B    ovs-kernel      port        pod          1518
    [Tags]    kernel-space    ovs-kernel    external2pod    1518B
TC redirect, from pod to pod, 64 B               tc-redirect     pod         pod          64
    [Tags]    ebpf    tc-redirect    pod2pod    64B
TC redirect, from pod to pod, 1518 B             tc-redirect     pod         pod          1518
    [Tags]    ebpf    tc-redirect    pod2pod    1518B
TC redirect, from pod to host, 64 B              tc-redirect     pod         port         64
    [Tags]    ebpf    tc-redirect    pod2external    64B
TC redirect, from pod to host, 1518 B            tc-redirect     pod         port         1518
    [Tags]    ebpf    tc-redirect    pod2external    1518B
TC redirect, from host to pod, 64 B              tc-redirect     port        pod          64
    [Tags]    ebpf    tc-redirect    external2pod    64B
TC redirect, from host to pod, 1518 B            tc-redirect     port        pod          1518
    [Tags]    ebpf    tc-redirect    external2pod    1518B
XDP redirect, from pod to pod, 64 B              xdp-redirect    pod         pod          64
    [Tags]    ebpf    xdp-redirect    pod2pod    64B
XDP redirect, from pod to pod, 1518 B            xdp-redirect    pod         pod          1518
    [Tags]    ebpf    xdp-redirect    pod2pod    1518B
XDP redirect, from pod to host, 64 B             xdp-redirect    pod         port         64
    [Tags]    ebpf    xdp-redirect    pod2external    64B
XDP redirect, from pod to host, 1518 B           xdp-redirect    pod         port         1518
    [Tags]    ebpf    xdp-redirect    pod2external    1518B
XDP redirect, from host to pod, 64 B             xdp-redirect    port        pod          64
    [Tags]    ebpf    xdp-redirect    external2pod    64B
XDP redirect, from host to pod, 1518 B           xdp-redirect    port        pod          1518
    [Tags]    ebpf    xdp-redirect    external2pod    1518B
AF_XDP, from pod to pod, 64 B                    af-xdp          pod         pod          64
    [Tags]    ebpf    af-xdp    pod2pod    64B
AF_XDP, from pod to pod, 1518 B                  af-xdp          pod         pod          1518
    [Tags]    ebpf    af-xdp    pod2pod    1518B
AF_XDP, from pod to host, 64 B                   af-xdp          pod         port         64
    [Tags]    ebpf    af-xdp    pod2external    64B
AF_XDP, from pod to host, 1518 B                 af-xdp          pod         port         1518
    [Tags]    ebpf    af-xdp    pod2external    1518B
AF_XDP, from host to pod, 64 B                   af-xdp          port        pod          64
    [Tags]    ebpf    af-xdp    external2pod    64B
AF_XDP, from host to pod, 1518 B                 af-xdp          port        pod          1518
    [Tags]    ebpf    af-xdp    external2pod    1518B
OVS-DPDK, from pod to pod, 64 B                  ovs-dpdk        pod         pod          64
    [Tags]    user-space    ovs-dpdk    pod2pod    64B
OVS-DPDK, from pod to pod, 1518 B                ovs-dpdk        pod         pod          1518
    [Tags]    user-space    ovs-dpdk    pod2pod    1518B
OVS-DPDK, from pod to host, 64 B                 ovs-dpdk        pod         port         64
    [Tags]    user-space    ovs-dpdk    pod2external    64B
OVS-DPDK, from pod to host, 1518 B               ovs-dpdk        pod         port         1518
    [Tags]    user-space    ovs-dpdk    pod2external    1518B
OVS-DPDK, from host to pod, 64 B                 ovs-dpdk        port        pod          64
    [Tags]    user-space    ovs-dpdk    external2pod    64B
OVS-DPDK, from host to pod, 1518 B               ovs-dpdk        port        pod          1518
    [Tags]    user-space    ovs-dpdk    external2pod    1518B
OVS-DPDK, between containers of a pod, 64 B      ovs-dpdk        container   container    64
    [Tags]    user-space    ovs-dpdk    container2container    64B
OVS-DPDK, between containers of a pod, 1518 B    ovs-dpdk        container   container    1518
    [Tags]    user-space    ovs-dpdk    container2container    1518B
Memif, from pod to pod, 64 B                     memif           pod         pod          64
    [Tags]    user-space    memif    pod2pod    64B
Memif, from pod to pod, 1518 B                   memif           pod         pod          1518
    [Tags]    user-space    memif    pod2pod    1518B
Memif, between containers of a pod, 64 B         memif           container   container    64
    [Tags]    user-space    memif    container2container    64B
Memif, between containers of a pod, 1518 B       memif           container   container    1518
    [Tags]    user-space    memif    container2container    1518B
