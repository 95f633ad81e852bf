*** Settings ***
Documentation    The experiment of appendix C of the draft: two pods behind OVS-DPDK or VPP with memif. S1 to S6 are its
...              placements of switch, first and second pod on two NUMA nodes (C.3). Its figures are in
...              resources/published/appendix_c_multi_pod.yaml, its lab is topologies/appendix_c_multi_pod.yaml;
...              docs/appendices.md says what is compared.

Resource         ../../resources/published_order.resource

Test Template    Order Should Be As Published
Test Tags        appendix-c    appendix-c.5    sec-4.2.1    sec-4.1.2    user-space    published


*** Variables ***
${LAB}    appendix_c_multi_pod


*** Test Cases ***                       TABLE     FRAME    ROWS
VPP-memif over OVS-DPDK in S1, 1518 B    ${LAB}    1518     vpp-memif S1    OVS-DPDK S1
    [Tags]    appendix-c.3    vpp-l2patch    ovs-dpdk    1518B    needs-numa
VPP-memif over OVS-DPDK in S2, 1518 B    ${LAB}    1518     vpp-memif S2    OVS-DPDK S2
    [Tags]    appendix-c.3    vpp-l2patch    ovs-dpdk    1518B    needs-numa
VPP-memif over OVS-DPDK in S3, 1518 B    ${LAB}    1518     vpp-memif S3    OVS-DPDK S3
    [Tags]    appendix-c.3    vpp-l2patch    ovs-dpdk    1518B    needs-numa
VPP-memif over OVS-DPDK in S4, 1518 B    ${LAB}    1518     vpp-memif S4    OVS-DPDK S4
    [Tags]    appendix-c.3    vpp-l2patch    ovs-dpdk    1518B    needs-numa
VPP-memif over OVS-DPDK in S5, 1518 B    ${LAB}    1518     vpp-memif S5    OVS-DPDK S5
    [Tags]    appendix-c.3    vpp-l2patch    ovs-dpdk    1518B    needs-numa
VPP-memif over OVS-DPDK in S6, 1518 B    ${LAB}    1518     vpp-memif S6    OVS-DPDK S6
    [Tags]    appendix-c.3    vpp-l2patch    ovs-dpdk    1518B    needs-numa
OVS-DPDK in S1 to S6, 64 B               ${LAB}    64       OVS-DPDK S*
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    64B    needs-numa
OVS-DPDK in S1 to S6, 128 B              ${LAB}    128      OVS-DPDK S*
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    128B    needs-numa
OVS-DPDK in S1 to S6, 256 B              ${LAB}    256      OVS-DPDK S*
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    256B    needs-numa
OVS-DPDK in S1 to S6, 512 B              ${LAB}    512      OVS-DPDK S*
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    512B    needs-numa
OVS-DPDK in S1 to S6, 1024 B             ${LAB}    1024     OVS-DPDK S*
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    1024B    needs-numa
OVS-DPDK in S1 to S6, 1280 B             ${LAB}    1280     OVS-DPDK S*
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    1280B    needs-numa
OVS-DPDK in S1 to S6, 1518 B             ${LAB}    1518     OVS-DPDK S*
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    1518B    needs-numa
VPP-memif in S1 to S6, 64 B              ${LAB}    64       vpp-memif S*
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    64B    needs-numa
VPP-memif in S1 to S6, 128 B             ${LAB}    128      vpp-memif S*
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    128B    needs-numa
VPP-memif in S1 to S6, 256 B             ${LAB}    256      vpp-memif S*
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    256B    needs-numa
VPP-memif in S1 to S6, 512 B             ${LAB}    512      vpp-memif S*
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    512B    needs-numa
VPP-memif in S1 to S6, 1024 B            ${LAB}    1024     vpp-memif S*
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    1024B    needs-numa
VPP-memif in S1 to S6, 1280 B            ${LAB}    1280     vpp-memif S*
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    1280B    needs-numa
VPP-memif in S1 to S6, 1518 B            ${LAB}    1518     vpp-memif S*
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    1518B    needs-numa
OVS-DPDK, 64 to 1518 B
    [Tags]    appendix-c.4    ovs-dpdk
    [Template]    Larger Frames Should Carry More Bits
    ${LAB}    OVS-DPDK    64    256    512    1024    1518
VPP-memif, 64 to 1518 B
    [Tags]    appendix-c.4    vpp-l2patch
    [Template]    Larger Frames Should Carry More Bits
    ${LAB}    vpp-memif    64    256    512    1024    1518
