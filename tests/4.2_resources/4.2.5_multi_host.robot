*** Settings ***
Documentation    Several hosts (draft section 4.2.5): the pods of a chain are divided among two workers. A cable joins
...              the workers, or an encapsulation on this cable. The topology lists both workers under `workers`: on
...              this machine (topologies/two_workers.yaml), or in a lab.

Resource         ../../resources/networking_model.resource

Test Template    Chain On Two Workers Should Forward
Test Tags        sec-4.2.5    mrr    ndrpdr    full


*** Test Cases ***                                 DATA PLANE      PODS    FRAME    DIRECTIONS        JOIN
Linux bridge, 64 B, 2 workers                      linux-bridge    2       64
    [Tags]    kernel-space    linux-bridge    64B
Linux bridge, 1518 B, 2 workers                    linux-bridge    2       1518
    [Tags]    kernel-space    linux-bridge    1518B
MACVLAN, 64 B, 2 workers                           macvlan         2       64
    [Tags]    kernel-space    macvlan    64B
Routed, 64 B, 2 workers                            routed          2       64
    [Tags]    kernel-space    routed    64B
Routed, 1280 B, 2 workers                          routed          2       1280
    [Tags]    kernel-space    routed    1280B
Routed, 1518 B, 2 workers                          routed          2       1518
    [Tags]    kernel-space    routed    1518B
Routed, IMIX, 2 workers                            routed          2       IMIX
    [Tags]    kernel-space    routed    IMIX
XDP redirect, 64 B, 2 workers                      xdp-redirect    2       64
    [Tags]    ebpf    xdp-redirect    64B
OVS-DPDK, 64 B, 2 workers                          ovs-dpdk        2       64
    [Tags]    user-space    ovs-dpdk    64B
OVS-DPDK, 1518 B, 2 workers                        ovs-dpdk        2       1518
    [Tags]    user-space    ovs-dpdk    1518B
SR-IOV, 64 B, 2 workers                            sriov           2       64
    [Tags]    smart-nic    sriov    64B    needs-sriov
SR-IOV and VPP, 64 B, 2 workers                    sriov-vpp       4       64
    [Tags]    combination    sriov-vpp    64B    needs-sriov
SR-IOV and VPP, 1518 B, 2 workers                  sriov-vpp       4       1518
    [Tags]    combination    sriov-vpp    1518B    needs-sriov
Linux bridge, 64 B, 2 workers, both directions     linux-bridge    2       64       bidirectional
    [Tags]    kernel-space    linux-bridge    64B    bidirectional
Linux bridge, 64 B, 2 workers, VXLAN               linux-bridge    2       64       join=vxlan
    [Tags]    kernel-space    linux-bridge    vxlan    64B
Linux bridge, 1518 B, 2 workers, VXLAN             linux-bridge    2       1518     join=vxlan
    [Tags]    kernel-space    linux-bridge    vxlan    1518B
MACVLAN, 64 B, 2 workers, VXLAN                    macvlan         2       64       join=vxlan
    [Tags]    kernel-space    macvlan    vxlan    64B
MACVLAN, 1518 B, 2 workers, VXLAN                  macvlan         2       1518     join=vxlan
    [Tags]    kernel-space    macvlan    vxlan    1518B
Routed, 64 B, 2 workers, VXLAN                     routed          2       64       join=vxlan
    [Tags]    kernel-space    routed    vxlan    64B
Routed, 1280 B, 2 workers, VXLAN                   routed          2       1280     join=vxlan
    [Tags]    kernel-space    routed    vxlan    1280B
Routed, 1518 B, 2 workers, VXLAN                   routed          2       1518     join=vxlan
    [Tags]    kernel-space    routed    vxlan    1518B
Routed, IMIX, 2 workers, VXLAN                     routed          2       IMIX     join=vxlan
    [Tags]    kernel-space    routed    vxlan    IMIX
TC redirect, 64 B, 2 workers, VXLAN                tc-redirect     2       64       join=vxlan
    [Tags]    ebpf    tc-redirect    vxlan    64B
TC redirect, 1518 B, 2 workers, VXLAN              tc-redirect     2       1518     join=vxlan
    [Tags]    ebpf    tc-redirect    vxlan    1518B
Routed, 64 B, 2 workers, VLAN                      routed          2       64       join=vlan
    [Tags]    kernel-space    routed    64B
Routed, 1280 B, 2 workers, VLAN                    routed          2       1280     join=vlan
    [Tags]    kernel-space    routed    1280B
Routed, 1518 B, 2 workers, VLAN                    routed          2       1518     join=vlan
    [Tags]    kernel-space    routed    1518B
Routed, IMIX, 2 workers, VLAN                      routed          2       IMIX     join=vlan
    [Tags]    kernel-space    routed    IMIX
Routed, 64 B, 2 workers, Geneve                    routed          2       64       join=geneve
    [Tags]    kernel-space    routed    geneve    64B
Routed, 1280 B, 2 workers, Geneve                  routed          2       1280     join=geneve
    [Tags]    kernel-space    routed    geneve    1280B
Routed, 1518 B, 2 workers, Geneve                  routed          2       1518     join=geneve
    [Tags]    kernel-space    routed    geneve    1518B
Routed, IMIX, 2 workers, Geneve                    routed          2       IMIX     join=geneve
    [Tags]    kernel-space    routed    geneve    IMIX
Routed, 64 B, 2 workers, GRE                       routed          2       64       join=gre
    [Tags]    kernel-space    routed    gre    64B
Routed, 1280 B, 2 workers, GRE                     routed          2       1280     join=gre
    [Tags]    kernel-space    routed    gre    1280B
Routed, 1518 B, 2 workers, GRE                     routed          2       1518     join=gre
    [Tags]    kernel-space    routed    gre    1518B
Routed, IMIX, 2 workers, GRE                       routed          2       IMIX     join=gre
    [Tags]    kernel-space    routed    gre    IMIX
Routed, 64 B, 2 workers, IP in IP                  routed          2       64       join=ipip
    [Tags]    kernel-space    routed    64B
Routed, 1280 B, 2 workers, IP in IP                routed          2       1280     join=ipip
    [Tags]    kernel-space    routed    1280B
Routed, 1518 B, 2 workers, IP in IP                routed          2       1518     join=ipip
    [Tags]    kernel-space    routed    1518B
Routed, IMIX, 2 workers, IP in IP                  routed          2       IMIX     join=ipip
    [Tags]    kernel-space    routed    IMIX
Routed, 64 B, 2 workers, WireGuard                 routed          2       64       join=wireguard
    [Tags]    kernel-space    routed    wireguard    64B
Routed, 1280 B, 2 workers, WireGuard               routed          2       1280     join=wireguard
    [Tags]    kernel-space    routed    wireguard    1280B
Routed, 1518 B, 2 workers, WireGuard               routed          2       1518     join=wireguard
    [Tags]    kernel-space    routed    wireguard    1518B
Routed, IMIX, 2 workers, WireGuard                 routed          2       IMIX     join=wireguard
    [Tags]    kernel-space    routed    wireguard    IMIX
Routed, 64 B, 2 workers, BGP                       routed          2       64       join=bgp
    [Tags]    kernel-space    routed    bgp    64B
Routed, 1280 B, 2 workers, BGP                     routed          2       1280     join=bgp
    [Tags]    kernel-space    routed    bgp    1280B
Routed, 1518 B, 2 workers, BGP                     routed          2       1518     join=bgp
    [Tags]    kernel-space    routed    bgp    1518B
Routed, IMIX, 2 workers, BGP                       routed          2       IMIX     join=bgp
    [Tags]    kernel-space    routed    bgp    IMIX
Routed, 64 B, 2 workers, both directions           routed          2       64       bidirectional
    [Tags]    kernel-space    routed    64B    bidirectional
Routed, 64 B, 2 workers, VXLAN, both directions    routed          2       64       bidirectional     join=vxlan
    [Tags]    kernel-space    routed    vxlan    64B    bidirectional
Routed, 64 B, 2 workers, BGP, both directions      routed          2       64       bidirectional     join=bgp
    [Tags]    kernel-space    routed    bgp    64B    bidirectional
