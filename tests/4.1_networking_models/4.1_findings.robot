*** Settings ***
Documentation    Claims about networking models and chains of pods: do they hold on this testbed? The draft makes most
...              of them, the hackathon's slides make one, and one is podperf's own expectation. A verdict is confirmed,
...              refuted or inconclusive. No verdict fails a test; see docs/findings.md.

Resource         ../../resources/finding.resource

Test Template    Claim Should Be Judged
Test Tags        finding


*** Test Cases ***                           CLAIM
MACVLAN over Linux bridge                    macvlan-over-bridge
    [Tags]    sec-4.1    sec-4.1.1    kernel-space    macvlan    linux-bridge    64B
Shorter chains over longer ones              shorter-chains-over-longer
    [Tags]    sec-4.2.4    kernel-space    linux-bridge    64B
OVS-DPDK over Linux bridge                   ovs-dpdk-over-bridge
    [Tags]    sec-4.1.2    user-space    ovs-dpdk    linux-bridge    64B
VPP with memif over OVS-DPDK                 vpp-memif-over-ovs-dpdk
    [Tags]    sec-4.1.2    appendix-c.5    user-space    vpp-l2patch    ovs-dpdk    1518B
Memif over vhost-user                        memif-over-vhost-user
    [Tags]    sec-4.1.2    user-space    memif    ovs-dpdk    1518B
TC redirect over Linux bridge                tc-redirect-over-bridge
    [Tags]    sec-4.1.1    sec-4.1.3    ebpf    tc-redirect    linux-bridge    64B
TC redirect to the peer over tc redirect     tc-redirect-peer-over-tc-redirect
    [Tags]    sec-4.1.3    ebpf    tc-redirect-peer    tc-redirect    64B
XDP redirect over Linux bridge               xdp-redirect-over-bridge
    [Tags]    sec-4.1.1    sec-4.1.3    ebpf    xdp-redirect    linux-bridge    64B
AF_XDP over AF_PACKET                        af-xdp-over-af-packet
    [Tags]    sec-4.1.3    ebpf    ovs-afxdp    ovs-netdev    64B
