*** Settings ***
Documentation    Kernel-space, non-accelerated networking model (draft section 4.1.1).
...              The kernel itself joins the pods, and frames cross its network stack at every hop.
...              The other frame sizes, both directions and longer chains: 4.1.1_kernel_space_sweep.robot.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.1    kernel-space    mrr    ndrpdr    quick    full


*** Test Cases ***      DATA PLANE
Linux bridge, 64 B      linux-bridge
    [Tags]    linux-bridge    64B
PTP, 64 B               ptp
    [Tags]    ptp    64B
MACVLAN, 64 B           macvlan
    [Tags]    macvlan    64B
Routed, 64 B            routed
    [Tags]    routed    64B
IPIP, 64 B              ipip
    [Tags]    ipip    64B
Docker, 64 B            docker
    [Tags]    docker    64B
IPVLAN, 64 B            ipvlan
    [Tags]    ipvlan    64B
OVS kernel, 64 B        ovs-kernel
    [Tags]    ovs-kernel    64B
Docker bridge, 64 B     docker-bridge
    [Tags]    docker-bridge    64B
Docker default, 64 B    docker-default
    [Tags]    docker-default    64B    -quick
Docker MACVLAN, 64 B    docker-macvlan
    [Tags]    docker-macvlan    64B    -quick
Docker overlay, 64 B, 3 pods    docker-overlay    pods=3
    [Tags]    docker-overlay    64B    -quick
Podman bridge, 64 B     podman-bridge
    [Tags]    podman-bridge    64B    -quick
Service, 64 B           service
    [Tags]    service    64B    -quick
Policy, 64 B            routed-policy
    [Tags]    routed-policy    64B    -quick
Linux bridge, 1518 B    linux-bridge    frame=1518
    [Tags]    linux-bridge    1518B
