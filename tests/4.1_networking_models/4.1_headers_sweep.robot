*** Settings ***
Documentation    Headers of test frames (draft sections 4.1.1 to 4.1.5):
...              IPv6, a VLAN tag, and jumbo frames. Made by docs/make.py from the suites that people write.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        full    mrr    ndrpdr


*** Test Cases ***                                          DATA PLANE         PODS  FRAME  MORE
Linux bridge, 84 B, both directions, IPv6                   linux-bridge       1     84     bidirectional  family=ipv6
    [Tags]    linux-bridge    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
PTP, 84 B, both directions, IPv6                            ptp                1     84     bidirectional  family=ipv6
    [Tags]    ptp    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
MACVLAN, 84 B, both directions, IPv6                        macvlan            1     84     bidirectional  family=ipv6
    [Tags]    macvlan    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
Routed, 84 B, both directions, IPv6                         routed             1     84     bidirectional  family=ipv6
    [Tags]    routed    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
IPIP, 84 B, both directions, IPv6                           ipip               1     84     bidirectional  family=ipv6
    [Tags]    ipip    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
Docker, 84 B, both directions, IPv6                         docker             1     84     bidirectional  family=ipv6
    [Tags]    docker    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
IPVLAN, 84 B, both directions, IPv6                         ipvlan             1     84     bidirectional  family=ipv6
    [Tags]    ipvlan    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
OVS kernel, 84 B, both directions, IPv6                     ovs-kernel         1     84     bidirectional  family=ipv6
    [Tags]    ovs-kernel    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
Docker bridge, 84 B, both directions, IPv6                  docker-bridge      1     84     bidirectional  family=ipv6
    [Tags]    docker-bridge    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
Docker default, 84 B, both directions, IPv6                 docker-default     1     84     bidirectional  family=ipv6
    [Tags]    docker-default    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
Docker MACVLAN, 84 B, both directions, IPv6                 docker-macvlan     1     84     bidirectional  family=ipv6
    [Tags]    docker-macvlan    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
Docker overlay, 84 B, 3 pods, both directions, IPv6         docker-overlay     3     84     bidirectional  family=ipv6
    [Tags]    docker-overlay    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
Podman bridge, 84 B, both directions, IPv6                  podman-bridge      1     84     bidirectional  family=ipv6
    [Tags]    podman-bridge    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
Service, 84 B, both directions, IPv6                        service            1     84     bidirectional  family=ipv6
    [Tags]    service    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
Policy, 84 B, both directions, IPv6                         routed-policy      1     84     bidirectional  family=ipv6
    [Tags]    routed-policy    84B    sec-4.1.1    kernel-space    bidirectional    ipv6
OVS-DPDK, 84 B, both directions, IPv6                       ovs-dpdk           1     84     bidirectional  family=ipv6
    [Tags]    ovs-dpdk    84B    sec-4.1.2    user-space    bidirectional    ipv6
Memif, 84 B, 2 pods, both directions, IPv6                  memif              2     84     bidirectional  family=ipv6
    [Tags]    memif    84B    sec-4.1.2    user-space    bidirectional    ipv6
VPP L2 patch, 84 B, both directions, IPv6                   vpp-l2patch        1     84     bidirectional  family=ipv6
    [Tags]    vpp-l2patch    84B    sec-4.1.2    user-space    bidirectional    ipv6
OVS netdev, 84 B, both directions, IPv6                     ovs-netdev         1     84     bidirectional  family=ipv6
    [Tags]    ovs-netdev    84B    sec-4.1.2    user-space    bidirectional    ipv6
VPP bridge domain, 84 B, both directions, IPv6              vpp-bridge-domain  1     84     bidirectional  family=ipv6
    [Tags]    vpp-bridge-domain    84B    sec-4.1.2    user-space    bidirectional    ipv6
VPP VRF, 84 B, both directions, IPv6                        vpp-vrf            1     84     bidirectional  family=ipv6
    [Tags]    vpp-vrf    84B    sec-4.1.2    user-space    bidirectional    ipv6
TC redirect peer, 84 B, both directions, IPv6               tc-redirect-peer   1     84     bidirectional  family=ipv6
    [Tags]    tc-redirect-peer    84B    sec-4.1.3    ebpf    bidirectional    ipv6
XDP redirect, 84 B, both directions, IPv6                   xdp-redirect       1     84     bidirectional  family=ipv6
    [Tags]    xdp-redirect    84B    sec-4.1.3    ebpf    bidirectional    ipv6
AF_XDP, 84 B, both directions, IPv6                         af-xdp             1     84     bidirectional  family=ipv6
    [Tags]    af-xdp    84B    sec-4.1.3    ebpf    bidirectional    ipv6
TC redirect, 84 B, both directions, IPv6                    tc-redirect        1     84     bidirectional  family=ipv6
    [Tags]    tc-redirect    84B    sec-4.1.3    ebpf    bidirectional    ipv6
BPF object, 84 B, both directions, IPv6                     bpf-object         1     84     bidirectional  family=ipv6
    [Tags]    bpf-object    84B    sec-4.1.3    ebpf    bidirectional    ipv6
AF_XDP busy poll, 84 B, both directions, IPv6               af-xdp-busy-poll   1     84     bidirectional  family=ipv6
    [Tags]    af-xdp-busy-poll    84B    sec-4.1.3    ebpf    bidirectional    ipv6
OVS AF_XDP, 84 B, both directions, IPv6                     ovs-afxdp          1     84     bidirectional  family=ipv6
    [Tags]    ovs-afxdp    84B    sec-4.1.3    ebpf    bidirectional    ipv6
SR-IOV, 84 B, both directions, IPv6                         sriov              1     84     bidirectional  family=ipv6
    [Tags]    sriov    84B    sec-4.1.4    smart-nic    needs-sriov    bidirectional    ipv6
XDP offload, 84 B, both directions, IPv6                    xdp-offload        0     84     bidirectional  family=ipv6
    [Tags]    xdp-offload    84B    sec-4.1.4    smart-nic    bidirectional    ipv6
SR-IOV and OVS-DPDK, 84 B, 2 pods, both directions, IPv6    sriov-ovs-dpdk     2     84     bidirectional  family=ipv6
    [Tags]    sriov-ovs-dpdk    84B    sec-4.1.5    combination    needs-sriov    bidirectional    ipv6
SR-IOV and VPP, 84 B, 2 pods, both directions, IPv6         sriov-vpp          2     84     bidirectional  family=ipv6
    [Tags]    sriov-vpp    84B    sec-4.1.5    combination    needs-sriov    bidirectional    ipv6
Linux bridge, 1518 B, both directions, IPv6                 linux-bridge       1     1518   bidirectional  family=ipv6
    [Tags]    linux-bridge    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
PTP, 1518 B, both directions, IPv6                          ptp                1     1518   bidirectional  family=ipv6
    [Tags]    ptp    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
MACVLAN, 1518 B, both directions, IPv6                      macvlan            1     1518   bidirectional  family=ipv6
    [Tags]    macvlan    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
Routed, 1518 B, both directions, IPv6                       routed             1     1518   bidirectional  family=ipv6
    [Tags]    routed    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
IPIP, 1518 B, both directions, IPv6                         ipip               1     1518   bidirectional  family=ipv6
    [Tags]    ipip    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
Docker, 1518 B, both directions, IPv6                       docker             1     1518   bidirectional  family=ipv6
    [Tags]    docker    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
IPVLAN, 1518 B, both directions, IPv6                       ipvlan             1     1518   bidirectional  family=ipv6
    [Tags]    ipvlan    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
OVS kernel, 1518 B, both directions, IPv6                   ovs-kernel         1     1518   bidirectional  family=ipv6
    [Tags]    ovs-kernel    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
Docker bridge, 1518 B, both directions, IPv6                docker-bridge      1     1518   bidirectional  family=ipv6
    [Tags]    docker-bridge    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
Docker default, 1518 B, both directions, IPv6               docker-default     1     1518   bidirectional  family=ipv6
    [Tags]    docker-default    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
Docker MACVLAN, 1518 B, both directions, IPv6               docker-macvlan     1     1518   bidirectional  family=ipv6
    [Tags]    docker-macvlan    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
Docker overlay, 1518 B, 3 pods, both directions, IPv6       docker-overlay     3     1518   bidirectional  family=ipv6
    [Tags]    docker-overlay    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
Podman bridge, 1518 B, both directions, IPv6                podman-bridge      1     1518   bidirectional  family=ipv6
    [Tags]    podman-bridge    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
Service, 1518 B, both directions, IPv6                      service            1     1518   bidirectional  family=ipv6
    [Tags]    service    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
Policy, 1518 B, both directions, IPv6                       routed-policy      1     1518   bidirectional  family=ipv6
    [Tags]    routed-policy    1518B    sec-4.1.1    kernel-space    bidirectional    ipv6
OVS-DPDK, 1518 B, both directions, IPv6                     ovs-dpdk           1     1518   bidirectional  family=ipv6
    [Tags]    ovs-dpdk    1518B    sec-4.1.2    user-space    bidirectional    ipv6
Memif, 1518 B, 2 pods, both directions, IPv6                memif              2     1518   bidirectional  family=ipv6
    [Tags]    memif    1518B    sec-4.1.2    user-space    bidirectional    ipv6
VPP L2 patch, 1518 B, both directions, IPv6                 vpp-l2patch        1     1518   bidirectional  family=ipv6
    [Tags]    vpp-l2patch    1518B    sec-4.1.2    user-space    bidirectional    ipv6
OVS netdev, 1518 B, both directions, IPv6                   ovs-netdev         1     1518   bidirectional  family=ipv6
    [Tags]    ovs-netdev    1518B    sec-4.1.2    user-space    bidirectional    ipv6
VPP bridge domain, 1518 B, both directions, IPv6            vpp-bridge-domain  1     1518   bidirectional  family=ipv6
    [Tags]    vpp-bridge-domain    1518B    sec-4.1.2    user-space    bidirectional    ipv6
VPP VRF, 1518 B, both directions, IPv6                      vpp-vrf            1     1518   bidirectional  family=ipv6
    [Tags]    vpp-vrf    1518B    sec-4.1.2    user-space    bidirectional    ipv6
TC redirect peer, 1518 B, both directions, IPv6             tc-redirect-peer   1     1518   bidirectional  family=ipv6
    [Tags]    tc-redirect-peer    1518B    sec-4.1.3    ebpf    bidirectional    ipv6
XDP redirect, 1518 B, both directions, IPv6                 xdp-redirect       1     1518   bidirectional  family=ipv6
    [Tags]    xdp-redirect    1518B    sec-4.1.3    ebpf    bidirectional    ipv6
AF_XDP, 1518 B, both directions, IPv6                       af-xdp             1     1518   bidirectional  family=ipv6
    [Tags]    af-xdp    1518B    sec-4.1.3    ebpf    bidirectional    ipv6
TC redirect, 1518 B, both directions, IPv6                  tc-redirect        1     1518   bidirectional  family=ipv6
    [Tags]    tc-redirect    1518B    sec-4.1.3    ebpf    bidirectional    ipv6
BPF object, 1518 B, both directions, IPv6                   bpf-object         1     1518   bidirectional  family=ipv6
    [Tags]    bpf-object    1518B    sec-4.1.3    ebpf    bidirectional    ipv6
AF_XDP busy poll, 1518 B, both directions, IPv6             af-xdp-busy-poll   1     1518   bidirectional  family=ipv6
    [Tags]    af-xdp-busy-poll    1518B    sec-4.1.3    ebpf    bidirectional    ipv6
OVS AF_XDP, 1518 B, both directions, IPv6                   ovs-afxdp          1     1518   bidirectional  family=ipv6
    [Tags]    ovs-afxdp    1518B    sec-4.1.3    ebpf    bidirectional    ipv6
SR-IOV, 1518 B, both directions, IPv6                       sriov              1     1518   bidirectional  family=ipv6
    [Tags]    sriov    1518B    sec-4.1.4    smart-nic    needs-sriov    bidirectional    ipv6
XDP offload, 1518 B, both directions, IPv6                  xdp-offload        0     1518   bidirectional  family=ipv6
    [Tags]    xdp-offload    1518B    sec-4.1.4    smart-nic    bidirectional    ipv6
SR-IOV and OVS-DPDK, 1518 B, 2 pods, both directions, IPv6  sriov-ovs-dpdk     2     1518   bidirectional  family=ipv6
    [Tags]    sriov-ovs-dpdk    1518B    sec-4.1.5    combination    needs-sriov    bidirectional    ipv6
SR-IOV and VPP, 1518 B, 2 pods, both directions, IPv6       sriov-vpp          2     1518   bidirectional  family=ipv6
    [Tags]    sriov-vpp    1518B    sec-4.1.5    combination    needs-sriov    bidirectional    ipv6
Linux bridge, 68 B, VLAN 100                                linux-bridge       1     68     vlan=100
    [Tags]    linux-bridge    68B    sec-4.1.1    kernel-space    vlan
MACVLAN, 68 B, VLAN 100                                     macvlan            1     68     vlan=100
    [Tags]    macvlan    68B    sec-4.1.1    kernel-space    vlan
Routed, 68 B, VLAN 100                                      routed             1     68     vlan=100
    [Tags]    routed    68B    sec-4.1.1    kernel-space    vlan
OVS kernel, 68 B, VLAN 100                                  ovs-kernel         1     68     vlan=100
    [Tags]    ovs-kernel    68B    sec-4.1.1    kernel-space    vlan
OVS-DPDK, 68 B, VLAN 100                                    ovs-dpdk           1     68     vlan=100
    [Tags]    ovs-dpdk    68B    sec-4.1.2    user-space    vlan
Memif, 68 B, 2 pods, VLAN 100                               memif              2     68     vlan=100
    [Tags]    memif    68B    sec-4.1.2    user-space    vlan
VPP L2 patch, 68 B, VLAN 100                                vpp-l2patch        1     68     vlan=100
    [Tags]    vpp-l2patch    68B    sec-4.1.2    user-space    vlan
OVS netdev, 68 B, VLAN 100                                  ovs-netdev         1     68     vlan=100
    [Tags]    ovs-netdev    68B    sec-4.1.2    user-space    vlan
AF_XDP, 68 B, VLAN 100                                      af-xdp             1     68     vlan=100
    [Tags]    af-xdp    68B    sec-4.1.3    ebpf    vlan
TC redirect, 68 B, VLAN 100                                 tc-redirect        1     68     vlan=100
    [Tags]    tc-redirect    68B    sec-4.1.3    ebpf    vlan
OVS AF_XDP, 68 B, VLAN 100                                  ovs-afxdp          1     68     vlan=100
    [Tags]    ovs-afxdp    68B    sec-4.1.3    ebpf    vlan
SR-IOV, 68 B, VLAN 100                                      sriov              1     68     vlan=100
    [Tags]    sriov    68B    sec-4.1.4    smart-nic    needs-sriov    vlan
Linux bridge, 9018 B                                        linux-bridge       1     9018
    [Tags]    linux-bridge    9018B    sec-4.1.1    kernel-space    jumbo
PTP, 9018 B                                                 ptp                1     9018
    [Tags]    ptp    9018B    sec-4.1.1    kernel-space    jumbo
MACVLAN, 9018 B                                             macvlan            1     9018
    [Tags]    macvlan    9018B    sec-4.1.1    kernel-space    jumbo
Routed, 9018 B                                              routed             1     9018
    [Tags]    routed    9018B    sec-4.1.1    kernel-space    jumbo
IPIP, 9018 B                                                ipip               1     9018
    [Tags]    ipip    9018B    sec-4.1.1    kernel-space    jumbo
Docker, 9018 B                                              docker             1     9018
    [Tags]    docker    9018B    sec-4.1.1    kernel-space    jumbo
IPVLAN, 9018 B                                              ipvlan             1     9018
    [Tags]    ipvlan    9018B    sec-4.1.1    kernel-space    jumbo
OVS kernel, 9018 B                                          ovs-kernel         1     9018
    [Tags]    ovs-kernel    9018B    sec-4.1.1    kernel-space    jumbo
Docker bridge, 9018 B                                       docker-bridge      1     9018
    [Tags]    docker-bridge    9018B    sec-4.1.1    kernel-space    jumbo
Docker default, 9018 B                                      docker-default     1     9018
    [Tags]    docker-default    9018B    sec-4.1.1    kernel-space    jumbo
Docker MACVLAN, 9018 B                                      docker-macvlan     1     9018
    [Tags]    docker-macvlan    9018B    sec-4.1.1    kernel-space    jumbo
Docker overlay, 9018 B, 3 pods                              docker-overlay     3     9018
    [Tags]    docker-overlay    9018B    sec-4.1.1    kernel-space    jumbo
Podman bridge, 9018 B                                       podman-bridge      1     9018
    [Tags]    podman-bridge    9018B    sec-4.1.1    kernel-space    jumbo
Service, 9018 B                                             service            1     9018
    [Tags]    service    9018B    sec-4.1.1    kernel-space    jumbo
Policy, 9018 B                                              routed-policy      1     9018
    [Tags]    routed-policy    9018B    sec-4.1.1    kernel-space    jumbo
OVS-DPDK, 9018 B                                            ovs-dpdk           1     9018
    [Tags]    ovs-dpdk    9018B    sec-4.1.2    user-space    jumbo
Memif, 9018 B, 2 pods                                       memif              2     9018
    [Tags]    memif    9018B    sec-4.1.2    user-space    jumbo
SR-IOV, 9018 B                                              sriov              1     9018
    [Tags]    sriov    9018B    sec-4.1.4    smart-nic    needs-sriov    jumbo
