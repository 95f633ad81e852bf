*** Settings ***
Documentation    Claims about networking models and chains of pods: do they hold on this testbed? Each row has the words
...              of its claim, and who makes it. A claim without a source is podperf's own expectation. A verdict is
...              confirmed, refuted or inconclusive. No verdict fails a test; see docs/findings.md.

Resource         ../../resources/finding.resource

Test Template    The First Should Forward 5 % More
Test Tags        finding


*** Test Cases ***                          FIRST               SECOND          PODS    FRAME
MACVLAN over Linux bridge                   macvlan             linux-bridge    1       64
    [Documentation]    MACVLAN forwards more than a Linux bridge, because its frames cross neither a veth pair nor a
    ...    bridge's table
    ...    Caveat: section 4.1.1 of the draft names both, and states no order between them
    [Tags]    sec-4.1    sec-4.1.1    kernel-space    macvlan    linux-bridge    64B
Shorter chains over longer ones
    [Documentation]    Increase number of pod slightly reduce throughput 2% at small packet size (64,128)
    ...    Source: BMWG: Containerized Infrastructure Benchmarking, IETF 113 hackathon, slide What we learned
    ...    Their figures: 2 % at 64 and 128 B
    ...    Caveat: the slide is about chains of 2, 4 and 6 pods with SR-IOV and VPP
    [Tags]    sec-4.2.4    kernel-space    linux-bridge    64B
    [Template]    Longer Chains Should Forward 5 % Less Of 64 B Frames
    linux-bridge    1    2    4
OVS-DPDK over Linux bridge                  ovs-dpdk            linux-bridge    1       64
    [Documentation]    it can achieve high-rate packet processing than a kernel-space network with limited packet
    ...    throughput
    ...    Source: the draft, section 4.1.2
    ...    Caveat: the polling threads of OVS-DPDK want a CPU each, and take turns where there are fewer
    [Tags]    sec-4.1.2    user-space    ovs-dpdk    linux-bridge    64B
VPP with memif over OVS-DPDK                vpp-l2patch         ovs-dpdk        2       1518
    [Documentation]    vpp-memif has better performance that OVS-DPDK, which is came from the difference in the way to
    ...    forward packets between vswitch and pod
    ...    Source: the draft, section C.5
    ...    Their figures: 59.96 to 33.47 % of line rate against 21.29 to 6.32 %, 2.6 to 7.1 times as much, in the six
    ...    placements of appendix C.3
    [Tags]    sec-4.1.2    appendix-c.5    user-space    vpp-l2patch    ovs-dpdk    1518B
Memif over vhost-user                       memif               ovs-dpdk        2       1518
    [Documentation]    vpp-memif has better performance that OVS-DPDK, which is came from the difference in the way to
    ...    forward packets between vswitch and pod
    ...    Source: the draft, section C.5
    ...    Caveat: C.5 is about VPP; here memif joins the pods without a switch between them, OVS-DPDK is one
    [Tags]    sec-4.1.2    user-space    memif    ovs-dpdk    1518B
TC redirect over Linux bridge               tc-redirect         linux-bridge    1       64
    [Documentation]    This design makes networking performance worse than other networking models which utilize packet
    ...    acceleration techniques
    ...    Source: the draft, section 4.1.1
    [Tags]    sec-4.1.1    sec-4.1.3    ebpf    tc-redirect    linux-bridge    64B
TC redirect to the peer over tc redirect    tc-redirect-peer    tc-redirect     1       64
    [Documentation]    In case of Cilium CNI, context-switching process to the pod network namespace can also be
    ...    bypassed
    ...    Source: the draft, section 4.1.3
    [Tags]    sec-4.1.3    ebpf    tc-redirect-peer    tc-redirect    64B
XDP redirect over Linux bridge              xdp-redirect        linux-bridge    1       64
    [Documentation]    This design makes networking performance worse than other networking models which utilize packet
    ...    acceleration techniques
    ...    Source: the draft, section 4.1.1
    [Tags]    sec-4.1.1    sec-4.1.3    ebpf    xdp-redirect    linux-bridge    64B
AF_XDP over AF_PACKET                       ovs-afxdp           ovs-netdev      1       64
    [Documentation]    This tunnel bypasses the network stack in kernel space to provide high-performance raw packet
    ...    networking
    ...    Source: the draft, section 4.1.3
    ...    Caveat: switch and pods are the same, but a thread polls AF_XDP ports; no thread polls AF_PACKET ports
    [Tags]    sec-4.1.3    ebpf    ovs-afxdp    ovs-netdev    64B
East/west by OVS-DPDK over the NIC          sriov-ovs-dpdk      sriov           2       64
    [Documentation]    For this type, user-space vSwitch models such as OVS-DPDK and VPP are preferred because packets
    ...    are routed within the user space only and not through the NIC
    ...    Source: the draft, section 4.1.5
    ...    Caveat: the switch has a CPU of its own, so the pods of the two chains may be on different CPUs
    [Tags]    sec-4.1.5    combination    sriov-ovs-dpdk    sriov    64B    needs-sriov
East/west by VPP over the NIC               sriov-vpp           sriov           2       64
    [Documentation]    For this type, user-space vSwitch models such as OVS-DPDK and VPP are preferred because packets
    ...    are routed within the user space only and not through the NIC
    ...    Source: the draft, section 4.1.5
    ...    Caveat: the switch has a CPU of its own, so the pods of the two chains may be on different CPUs
    [Tags]    sec-4.1.5    combination    sriov-vpp    sriov    64B    needs-sriov
North/south by the NIC over OVS-DPDK        sriov-ovs-dpdk      ovs-dpdk        2       64
    [Documentation]    For this traffic type, Smart-NIC model such as SR-IOV is preferred because packets always have to
    ...    pass the NIC. User-space vSwitch involvement in north-south traffic will create more bottlenecks
    ...    Source: the draft, section 4.1.5
    ...    Caveat: the same switch is between the pods of both chains; pods with virtual functions rewrite the MACs
    [Tags]    sec-4.1.5    combination    sriov-ovs-dpdk    ovs-dpdk    64B    needs-sriov
North/south by the NIC over VPP             sriov-vpp           vpp-l2patch     2       64
    [Documentation]    For this traffic type, Smart-NIC model such as SR-IOV is preferred because packets always have to
    ...    pass the NIC. User-space vSwitch involvement in north-south traffic will create more bottlenecks
    ...    Source: the draft, section 4.1.5
    ...    Caveat: the same switch is between the pods of both chains; pods with virtual functions rewrite the MACs
    [Tags]    sec-4.1.5    combination    sriov-vpp    vpp-l2patch    64B    needs-sriov
