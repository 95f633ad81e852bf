*** Settings ***
Documentation    The experiment of appendix C of the draft: two pods behind OVS-DPDK or VPP with memif. S1 to S6 are the
...              experiment's placements of switch, first and second pod on two NUMA nodes (C.3). The published figures
...              are in resources/published/appendix_c_multi_pod.yaml. The lab is topologies/appendix_c_multi_pod.yaml.
...              docs/appendices.md explains the comparison.

Resource         ../../resources/finding.resource

Test Template    Rows Of Appendix C Multi Pod Should Rank As Published
Test Tags        appendix-c    appendix-c.5    sec-4.2.1    sec-4.1.2    user-space    published


*** Variables ***
@{OVS_DPDK}     OVS-DPDK S1    OVS-DPDK S2    OVS-DPDK S3    OVS-DPDK S4    OVS-DPDK S5    OVS-DPDK S6
@{VPP_MEMIF}    vpp-memif S1    vpp-memif S2    vpp-memif S3    vpp-memif S4    vpp-memif S5    vpp-memif S6


*** Test Cases ***                       ROWS
VPP-memif over OVS-DPDK in S1, 1518 B    vpp-memif S1    OVS-DPDK S1
    [Tags]    appendix-c.3    vpp-l2patch    ovs-dpdk    1518B    needs-numa
VPP-memif over OVS-DPDK in S2, 1518 B    vpp-memif S2    OVS-DPDK S2
    [Tags]    appendix-c.3    vpp-l2patch    ovs-dpdk    1518B    needs-numa
VPP-memif over OVS-DPDK in S3, 1518 B    vpp-memif S3    OVS-DPDK S3
    [Tags]    appendix-c.3    vpp-l2patch    ovs-dpdk    1518B    needs-numa
VPP-memif over OVS-DPDK in S4, 1518 B    vpp-memif S4    OVS-DPDK S4
    [Tags]    appendix-c.3    vpp-l2patch    ovs-dpdk    1518B    needs-numa
VPP-memif over OVS-DPDK in S5, 1518 B    vpp-memif S5    OVS-DPDK S5
    [Tags]    appendix-c.3    vpp-l2patch    ovs-dpdk    1518B    needs-numa
VPP-memif over OVS-DPDK in S6, 1518 B    vpp-memif S6    OVS-DPDK S6
    [Tags]    appendix-c.3    vpp-l2patch    ovs-dpdk    1518B    needs-numa
OVS-DPDK in S1 to S6, 64 B               @{OVS_DPDK}     frame=64
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    64B    needs-numa
OVS-DPDK in S1 to S6, 128 B              @{OVS_DPDK}     frame=128
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    128B    needs-numa
OVS-DPDK in S1 to S6, 256 B              @{OVS_DPDK}     frame=256
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    256B    needs-numa
OVS-DPDK in S1 to S6, 512 B              @{OVS_DPDK}     frame=512
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    512B    needs-numa
OVS-DPDK in S1 to S6, 1024 B             @{OVS_DPDK}     frame=1024
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    1024B    needs-numa
OVS-DPDK in S1 to S6, 1280 B             @{OVS_DPDK}     frame=1280
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    1280B    needs-numa
OVS-DPDK in S1 to S6, 1518 B             @{OVS_DPDK}
    [Tags]    appendix-c.3    appendix-c.4    ovs-dpdk    1518B    needs-numa
VPP-memif in S1 to S6, 64 B              @{VPP_MEMIF}    frame=64
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    64B    needs-numa
VPP-memif in S1 to S6, 128 B             @{VPP_MEMIF}    frame=128
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    128B    needs-numa
VPP-memif in S1 to S6, 256 B             @{VPP_MEMIF}    frame=256
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    256B    needs-numa
VPP-memif in S1 to S6, 512 B             @{VPP_MEMIF}    frame=512
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    512B    needs-numa
VPP-memif in S1 to S6, 1024 B            @{VPP_MEMIF}    frame=1024
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    1024B    needs-numa
VPP-memif in S1 to S6, 1280 B            @{VPP_MEMIF}    frame=1280
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    1280B    needs-numa
VPP-memif in S1 to S6, 1518 B            @{VPP_MEMIF}
    [Tags]    appendix-c.3    appendix-c.4    vpp-l2patch    1518B    needs-numa
OVS-DPDK, 64 to 1518 B
    [Tags]    appendix-c.4    ovs-dpdk
    [Template]    Larger Frames Should Carry More Bits In Appendix C Multi Pod
    OVS-DPDK
VPP-memif, 64 to 1518 B
    [Tags]    appendix-c.4    vpp-l2patch
    [Template]    Larger Frames Should Carry More Bits In Appendix C Multi Pod
    vpp-memif
