*** Settings ***
Documentation    Cost on a counted machine (draft sections 4.1.1 and 4.1.3):
...              longer chains, and a thousand flows. Made by docs/make.py from the suites that people write.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Have A Cost
Test Tags        sec-4.1    counted    64B


*** Test Cases ***                    DATA PLANE          PODS    MORE
Linux bridge, 64 B, 3 pods            linux-bridge        3
    [Tags]    linux-bridge    kernel-space
PTP, 64 B, 3 pods                     ptp                 3
    [Tags]    ptp    kernel-space
MACVLAN, 64 B, 3 pods                 macvlan             3
    [Tags]    macvlan    kernel-space
Routed, 64 B, 3 pods                  routed              3
    [Tags]    routed    kernel-space
IPIP, 64 B, 3 pods                    ipip                3
    [Tags]    ipip    kernel-space
Docker, 64 B, 3 pods                  docker              3
    [Tags]    docker    kernel-space
IPVLAN, 64 B, 3 pods                  ipvlan              3
    [Tags]    ipvlan    kernel-space
Service, 64 B, 3 pods                 service             3
    [Tags]    service    kernel-space
Policy, 64 B, 3 pods                  routed-policy       3
    [Tags]    routed-policy    kernel-space
TC redirect peer, 64 B, 3 pods        tc-redirect-peer    3
    [Tags]    tc-redirect-peer    ebpf
XDP redirect, 64 B, 3 pods            xdp-redirect        3
    [Tags]    xdp-redirect    ebpf
TC redirect, 64 B, 3 pods             tc-redirect         3
    [Tags]    tc-redirect    ebpf
Linux bridge, 64 B, 4 pods            linux-bridge        4
    [Tags]    linux-bridge    kernel-space
PTP, 64 B, 4 pods                     ptp                 4
    [Tags]    ptp    kernel-space
MACVLAN, 64 B, 4 pods                 macvlan             4
    [Tags]    macvlan    kernel-space
Routed, 64 B, 4 pods                  routed              4
    [Tags]    routed    kernel-space
IPIP, 64 B, 4 pods                    ipip                4
    [Tags]    ipip    kernel-space
Docker, 64 B, 4 pods                  docker              4
    [Tags]    docker    kernel-space
IPVLAN, 64 B, 4 pods                  ipvlan              4
    [Tags]    ipvlan    kernel-space
Service, 64 B, 4 pods                 service             4
    [Tags]    service    kernel-space
Policy, 64 B, 4 pods                  routed-policy       4
    [Tags]    routed-policy    kernel-space
TC redirect peer, 64 B, 4 pods        tc-redirect-peer    4
    [Tags]    tc-redirect-peer    ebpf
XDP redirect, 64 B, 4 pods            xdp-redirect        4
    [Tags]    xdp-redirect    ebpf
TC redirect, 64 B, 4 pods             tc-redirect         4
    [Tags]    tc-redirect    ebpf
Linux bridge, 64 B, 1000 flows        linux-bridge        1       flows=1000
    [Tags]    linux-bridge    kernel-space
PTP, 64 B, 1000 flows                 ptp                 1       flows=1000
    [Tags]    ptp    kernel-space
MACVLAN, 64 B, 1000 flows             macvlan             1       flows=1000
    [Tags]    macvlan    kernel-space
Routed, 64 B, 1000 flows              routed              1       flows=1000
    [Tags]    routed    kernel-space
IPIP, 64 B, 1000 flows                ipip                1       flows=1000
    [Tags]    ipip    kernel-space
Docker, 64 B, 1000 flows              docker              1       flows=1000
    [Tags]    docker    kernel-space
IPVLAN, 64 B, 1000 flows              ipvlan              1       flows=1000
    [Tags]    ipvlan    kernel-space
Service, 64 B, 1000 flows             service             1       flows=1000
    [Tags]    service    kernel-space
Policy, 64 B, 1000 flows              routed-policy       1       flows=1000
    [Tags]    routed-policy    kernel-space
TC redirect peer, 64 B, 1000 flows    tc-redirect-peer    1       flows=1000
    [Tags]    tc-redirect-peer    ebpf
XDP redirect, 64 B, 1000 flows        xdp-redirect        1       flows=1000
    [Tags]    xdp-redirect    ebpf
TC redirect, 64 B, 1000 flows         tc-redirect         1       flows=1000
    [Tags]    tc-redirect    ebpf
