*** Settings ***
Documentation    User-space, kernel-bypass networking model (draft section 4.1.2):
...              frame sizes, directions and numbers of pods. Made by docs/make.py from the suites that people write.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.2    full    mrr    ndrpdr    user-space


*** Test Cases ***                          DATA PLANE           PODS    FRAME    MORE
OVS-DPDK, 128 B                             ovs-dpdk             1       128
    [Tags]    ovs-dpdk    128B
Memif, 128 B, 2 pods                        memif                2       128
    [Tags]    memif    128B
VPP L2 patch, 128 B                         vpp-l2patch          1       128
    [Tags]    vpp-l2patch    128B
OVS netdev, 128 B                           ovs-netdev           1       128
    [Tags]    ovs-netdev    128B
VPP bridge domain, 128 B                    vpp-bridge-domain    1       128
    [Tags]    vpp-bridge-domain    128B
VPP VRF, 128 B                              vpp-vrf              1       128
    [Tags]    vpp-vrf    128B
OVS-DPDK, 256 B                             ovs-dpdk             1       256
    [Tags]    ovs-dpdk    256B
Memif, 256 B, 2 pods                        memif                2       256
    [Tags]    memif    256B
VPP L2 patch, 256 B                         vpp-l2patch          1       256
    [Tags]    vpp-l2patch    256B
OVS netdev, 256 B                           ovs-netdev           1       256
    [Tags]    ovs-netdev    256B
VPP bridge domain, 256 B                    vpp-bridge-domain    1       256
    [Tags]    vpp-bridge-domain    256B
VPP VRF, 256 B                              vpp-vrf              1       256
    [Tags]    vpp-vrf    256B
OVS-DPDK, 512 B                             ovs-dpdk             1       512
    [Tags]    ovs-dpdk    512B
Memif, 512 B, 2 pods                        memif                2       512
    [Tags]    memif    512B
VPP L2 patch, 512 B                         vpp-l2patch          1       512
    [Tags]    vpp-l2patch    512B
OVS netdev, 512 B                           ovs-netdev           1       512
    [Tags]    ovs-netdev    512B
VPP bridge domain, 512 B                    vpp-bridge-domain    1       512
    [Tags]    vpp-bridge-domain    512B
VPP VRF, 512 B                              vpp-vrf              1       512
    [Tags]    vpp-vrf    512B
OVS-DPDK, 1024 B                            ovs-dpdk             1       1024
    [Tags]    ovs-dpdk    1024B
Memif, 1024 B, 2 pods                       memif                2       1024
    [Tags]    memif    1024B
VPP L2 patch, 1024 B                        vpp-l2patch          1       1024
    [Tags]    vpp-l2patch    1024B
OVS netdev, 1024 B                          ovs-netdev           1       1024
    [Tags]    ovs-netdev    1024B
VPP bridge domain, 1024 B                   vpp-bridge-domain    1       1024
    [Tags]    vpp-bridge-domain    1024B
VPP VRF, 1024 B                             vpp-vrf              1       1024
    [Tags]    vpp-vrf    1024B
OVS-DPDK, 1280 B                            ovs-dpdk             1       1280
    [Tags]    ovs-dpdk    1280B
Memif, 1280 B, 2 pods                       memif                2       1280
    [Tags]    memif    1280B
VPP L2 patch, 1280 B                        vpp-l2patch          1       1280
    [Tags]    vpp-l2patch    1280B
OVS netdev, 1280 B                          ovs-netdev           1       1280
    [Tags]    ovs-netdev    1280B
VPP bridge domain, 1280 B                   vpp-bridge-domain    1       1280
    [Tags]    vpp-bridge-domain    1280B
VPP VRF, 1280 B                             vpp-vrf              1       1280
    [Tags]    vpp-vrf    1280B
OVS-DPDK, 1518 B                            ovs-dpdk             1       1518
    [Tags]    ovs-dpdk    1518B
Memif, 1518 B, 2 pods                       memif                2       1518
    [Tags]    memif    1518B
VPP L2 patch, 1518 B                        vpp-l2patch          1       1518
    [Tags]    vpp-l2patch    1518B
OVS netdev, 1518 B                          ovs-netdev           1       1518
    [Tags]    ovs-netdev    1518B
VPP bridge domain, 1518 B                   vpp-bridge-domain    1       1518
    [Tags]    vpp-bridge-domain    1518B
VPP VRF, 1518 B                             vpp-vrf              1       1518
    [Tags]    vpp-vrf    1518B
OVS-DPDK, IMIX                              ovs-dpdk             1       IMIX
    [Tags]    ovs-dpdk    IMIX
Memif, IMIX, 2 pods                         memif                2       IMIX
    [Tags]    memif    IMIX
VPP L2 patch, IMIX                          vpp-l2patch          1       IMIX
    [Tags]    vpp-l2patch    IMIX
OVS netdev, IMIX                            ovs-netdev           1       IMIX
    [Tags]    ovs-netdev    IMIX
VPP bridge domain, IMIX                     vpp-bridge-domain    1       IMIX
    [Tags]    vpp-bridge-domain    IMIX
VPP VRF, IMIX                               vpp-vrf              1       IMIX
    [Tags]    vpp-vrf    IMIX
OVS-DPDK, 64 B, both directions             ovs-dpdk             1       64       bidirectional
    [Tags]    ovs-dpdk    64B    bidirectional
Memif, 64 B, 2 pods, both directions        memif                2       64       bidirectional
    [Tags]    memif    64B    bidirectional
VPP L2 patch, 64 B, both directions         vpp-l2patch          1       64       bidirectional
    [Tags]    vpp-l2patch    64B    bidirectional
OVS netdev, 64 B, both directions           ovs-netdev           1       64       bidirectional
    [Tags]    ovs-netdev    64B    bidirectional
VPP bridge domain, 64 B, both directions    vpp-bridge-domain    1       64       bidirectional
    [Tags]    vpp-bridge-domain    64B    bidirectional
VPP VRF, 64 B, both directions              vpp-vrf              1       64       bidirectional
    [Tags]    vpp-vrf    64B    bidirectional
OVS-DPDK, 64 B, 2 pods                      ovs-dpdk             2       64
    [Tags]    ovs-dpdk    64B
VPP L2 patch, 64 B, 2 pods                  vpp-l2patch          2       64
    [Tags]    vpp-l2patch    64B
OVS netdev, 64 B, 2 pods                    ovs-netdev           2       64
    [Tags]    ovs-netdev    64B
VPP bridge domain, 64 B, 2 pods             vpp-bridge-domain    2       64
    [Tags]    vpp-bridge-domain    64B
VPP VRF, 64 B, 2 pods                       vpp-vrf              2       64
    [Tags]    vpp-vrf    64B
OVS-DPDK, 1518 B, 2 pods                    ovs-dpdk             2       1518
    [Tags]    ovs-dpdk    1518B
Memif, 1518 B, 4 pods                       memif                4       1518
    [Tags]    memif    1518B
VPP L2 patch, 1518 B, 2 pods                vpp-l2patch          2       1518
    [Tags]    vpp-l2patch    1518B
OVS netdev, 1518 B, 2 pods                  ovs-netdev           2       1518
    [Tags]    ovs-netdev    1518B
VPP bridge domain, 1518 B, 2 pods           vpp-bridge-domain    2       1518
    [Tags]    vpp-bridge-domain    1518B
VPP VRF, 1518 B, 2 pods                     vpp-vrf              2       1518
    [Tags]    vpp-vrf    1518B
