*** Settings ***
Documentation    Cost on a counted machine (draft sections 4.1.1 and 4.1.3):
...              chains of three and four pods, and a thousand flows. Made by docs/make_sweeps.py from a list.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Have A Cost
Test Tags        counted


*** Test Cases ***                    DATA PLANE          PODS    FRAME    MORE
Linux bridge, 64 B, 3 pods            linux-bridge        3       64
    [Tags]    linux-bridge    64B    sec-4.1.1    kernel-space
PTP, 64 B, 3 pods                     ptp                 3       64
    [Tags]    ptp    64B    sec-4.1.1    kernel-space
MACVLAN, 64 B, 3 pods                 macvlan             3       64
    [Tags]    macvlan    64B    sec-4.1.1    kernel-space
Routed, 64 B, 3 pods                  routed              3       64
    [Tags]    routed    64B    sec-4.1.1    kernel-space
IPIP, 64 B, 3 pods                    ipip                3       64
    [Tags]    ipip    64B    sec-4.1.1    kernel-space
Docker, 64 B, 3 pods                  docker              3       64
    [Tags]    docker    64B    sec-4.1.1    kernel-space
IPVLAN, 64 B, 3 pods                  ipvlan              3       64
    [Tags]    ipvlan    64B    sec-4.1.1    kernel-space
Service, 64 B, 3 pods                 service             3       64
    [Tags]    service    64B    sec-4.1.1    kernel-space
Policy, 64 B, 3 pods                  routed-policy       3       64
    [Tags]    routed-policy    64B    sec-4.1.1    kernel-space
TC redirect, 64 B, 3 pods             tc-redirect         3       64
    [Tags]    tc-redirect    64B    sec-4.1.3    ebpf
TC redirect peer, 64 B, 3 pods        tc-redirect-peer    3       64
    [Tags]    tc-redirect-peer    64B    sec-4.1.3    ebpf
XDP redirect, 64 B, 3 pods            xdp-redirect        3       64
    [Tags]    xdp-redirect    64B    sec-4.1.3    ebpf
Linux bridge, 64 B, 4 pods            linux-bridge        4       64
    [Tags]    linux-bridge    64B    sec-4.1.1    kernel-space
PTP, 64 B, 4 pods                     ptp                 4       64
    [Tags]    ptp    64B    sec-4.1.1    kernel-space
MACVLAN, 64 B, 4 pods                 macvlan             4       64
    [Tags]    macvlan    64B    sec-4.1.1    kernel-space
Routed, 64 B, 4 pods                  routed              4       64
    [Tags]    routed    64B    sec-4.1.1    kernel-space
IPIP, 64 B, 4 pods                    ipip                4       64
    [Tags]    ipip    64B    sec-4.1.1    kernel-space
Docker, 64 B, 4 pods                  docker              4       64
    [Tags]    docker    64B    sec-4.1.1    kernel-space
IPVLAN, 64 B, 4 pods                  ipvlan              4       64
    [Tags]    ipvlan    64B    sec-4.1.1    kernel-space
Service, 64 B, 4 pods                 service             4       64
    [Tags]    service    64B    sec-4.1.1    kernel-space
Policy, 64 B, 4 pods                  routed-policy       4       64
    [Tags]    routed-policy    64B    sec-4.1.1    kernel-space
TC redirect, 64 B, 4 pods             tc-redirect         4       64
    [Tags]    tc-redirect    64B    sec-4.1.3    ebpf
TC redirect peer, 64 B, 4 pods        tc-redirect-peer    4       64
    [Tags]    tc-redirect-peer    64B    sec-4.1.3    ebpf
XDP redirect, 64 B, 4 pods            xdp-redirect        4       64
    [Tags]    xdp-redirect    64B    sec-4.1.3    ebpf
Linux bridge, 64 B, 1000 flows        linux-bridge        1       64       flows=1000
    [Tags]    linux-bridge    64B    sec-4.1.1    kernel-space
PTP, 64 B, 1000 flows                 ptp                 1       64       flows=1000
    [Tags]    ptp    64B    sec-4.1.1    kernel-space
MACVLAN, 64 B, 1000 flows             macvlan             1       64       flows=1000
    [Tags]    macvlan    64B    sec-4.1.1    kernel-space
Routed, 64 B, 1000 flows              routed              1       64       flows=1000
    [Tags]    routed    64B    sec-4.1.1    kernel-space
IPIP, 64 B, 1000 flows                ipip                1       64       flows=1000
    [Tags]    ipip    64B    sec-4.1.1    kernel-space
Docker, 64 B, 1000 flows              docker              1       64       flows=1000
    [Tags]    docker    64B    sec-4.1.1    kernel-space
IPVLAN, 64 B, 1000 flows              ipvlan              1       64       flows=1000
    [Tags]    ipvlan    64B    sec-4.1.1    kernel-space
Service, 64 B, 1000 flows             service             1       64       flows=1000
    [Tags]    service    64B    sec-4.1.1    kernel-space
Policy, 64 B, 1000 flows              routed-policy       1       64       flows=1000
    [Tags]    routed-policy    64B    sec-4.1.1    kernel-space
TC redirect, 64 B, 1000 flows         tc-redirect         1       64       flows=1000
    [Tags]    tc-redirect    64B    sec-4.1.3    ebpf
TC redirect peer, 64 B, 1000 flows    tc-redirect-peer    1       64       flows=1000
    [Tags]    tc-redirect-peer    64B    sec-4.1.3    ebpf
XDP redirect, 64 B, 1000 flows        xdp-redirect        1       64       flows=1000
    [Tags]    xdp-redirect    64B    sec-4.1.3    ebpf
