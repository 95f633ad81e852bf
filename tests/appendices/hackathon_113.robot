*** Settings ***
Documentation    The experiment of the IETF 113 hackathon: chains of 2, 4 and 6 pods on one node, and of 4 pods on two
...              nodes (1n2p, 1n4p, 1n6p, 2n4p), with virtual functions at their ends and VPP between the pods. Other
...              rows repeat the experiment with other data planes. The published statements are in
...              resources/published/hackathon_113.yaml. The lab is topologies/hackathon_113.yaml. docs/appendices.md
...              explains the comparison.

Resource         ../../resources/finding.resource

Test Template    Statement Of Hackathon 113 Should Hold
Test Tags        hackathon-113    sec-4.2.4    published


*** Test Cases ***                    STATEMENT       FRAME    MORE             LESS
VFs and VPP over VPP only, 64 B       SR-IOV helps    64       1n2p             1n2p VPP only
    [Tags]    sec-4.1.5    sriov-vpp    vpp-l2patch    64B    needs-sriov
VFs and VPP over VPP only, 1518 B     SR-IOV helps    1518     1n2p             1n2p VPP only
    [Tags]    sec-4.1.5    sriov-vpp    vpp-l2patch    1518B    needs-sriov
VFs and OVS over OVS only, 64 B       SR-IOV helps    64       1n2p VFs, OVS    1n2p OVS
    [Tags]    sec-4.1.5    sriov-ovs-dpdk    ovs-dpdk    64B    needs-sriov
VFs and OVS over OVS only, 1518 B     SR-IOV helps    1518     1n2p VFs, OVS    1n2p OVS
    [Tags]    sec-4.1.5    sriov-ovs-dpdk    ovs-dpdk    1518B    needs-sriov
VFs and VPP, 1n2p 1n4p 1n6p, 64 B     pods cost       64       1n2p             1n4p             1n6p
    [Tags]    sriov-vpp    64B    needs-sriov
VFs and VPP, 1n2p 1n4p 1n6p, 128 B    pods cost       128      1n2p             1n4p             1n6p
    [Tags]    sriov-vpp    128B    needs-sriov
VFs and OVS, 1n2p 1n4p, 64 B          pods cost       64       1n2p VFs, OVS    1n4p VFs, OVS
    [Tags]    sriov-ovs-dpdk    64B    needs-sriov
OVS-DPDK, 1n2p 1n4p 1n6p, 64 B        pods cost       64       1n2p OVS         1n4p OVS         1n6p OVS
    [Tags]    ovs-dpdk    64B
OVS-DPDK, 1n2p 1n4p 1n6p, 128 B       pods cost       128      1n2p OVS         1n4p OVS         1n6p OVS
    [Tags]    ovs-dpdk    128B
Memif, 1n2p 1n4p 1n6p, 64 B           pods cost       64       1n2p memif       1n4p memif       1n6p memif
    [Tags]    memif    64B
VFs and VPP, 1n2p 2n4p, 256 B         nodes cost      256      1n2p             2n4p
    [Tags]    sec-4.2.5    sriov-vpp    256B    needs-lab    needs-sriov
