*** Settings ***
Documentation    Smart-NIC acceleration model (draft section 4.1.4):
...              frame sizes, directions and numbers of pods. Made by docs/make.py from the suites that people write.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.4    full    mrr    ndrpdr    smart-nic


*** Test Cases ***                       DATA PLANE     PODS    FRAME    MORE
SR-IOV, 128 B                            sriov          1       128
    [Tags]    sriov    128B    needs-sriov
SR-IOV, 128 B, kernel                    sriov          1       128      forwarder=kernel
    [Tags]    sriov    128B    needs-sriov
XDP offload, 128 B                       xdp-offload    0       128
    [Tags]    xdp-offload    128B
SR-IOV, 256 B                            sriov          1       256
    [Tags]    sriov    256B    needs-sriov
SR-IOV, 256 B, kernel                    sriov          1       256      forwarder=kernel
    [Tags]    sriov    256B    needs-sriov
XDP offload, 256 B                       xdp-offload    0       256
    [Tags]    xdp-offload    256B
SR-IOV, 512 B                            sriov          1       512
    [Tags]    sriov    512B    needs-sriov
SR-IOV, 512 B, kernel                    sriov          1       512      forwarder=kernel
    [Tags]    sriov    512B    needs-sriov
XDP offload, 512 B                       xdp-offload    0       512
    [Tags]    xdp-offload    512B
SR-IOV, 1024 B                           sriov          1       1024
    [Tags]    sriov    1024B    needs-sriov
SR-IOV, 1024 B, kernel                   sriov          1       1024     forwarder=kernel
    [Tags]    sriov    1024B    needs-sriov
XDP offload, 1024 B                      xdp-offload    0       1024
    [Tags]    xdp-offload    1024B
SR-IOV, 1280 B                           sriov          1       1280
    [Tags]    sriov    1280B    needs-sriov
SR-IOV, 1280 B, kernel                   sriov          1       1280     forwarder=kernel
    [Tags]    sriov    1280B    needs-sriov
XDP offload, 1280 B                      xdp-offload    0       1280
    [Tags]    xdp-offload    1280B
SR-IOV, 1518 B                           sriov          1       1518
    [Tags]    sriov    1518B    needs-sriov
SR-IOV, 1518 B, kernel                   sriov          1       1518     forwarder=kernel
    [Tags]    sriov    1518B    needs-sriov
XDP offload, 1518 B                      xdp-offload    0       1518
    [Tags]    xdp-offload    1518B
SR-IOV, IMIX                             sriov          1       IMIX
    [Tags]    sriov    IMIX    needs-sriov
SR-IOV, IMIX, kernel                     sriov          1       IMIX     forwarder=kernel
    [Tags]    sriov    IMIX    needs-sriov
XDP offload, IMIX                        xdp-offload    0       IMIX
    [Tags]    xdp-offload    IMIX
SR-IOV, 64 B, both directions            sriov          1       64       bidirectional
    [Tags]    sriov    64B    needs-sriov    bidirectional
SR-IOV, 64 B, both directions, kernel    sriov          1       64       bidirectional       forwarder=kernel
    [Tags]    sriov    64B    needs-sriov    bidirectional
XDP offload, 64 B, both directions       xdp-offload    0       64       bidirectional
    [Tags]    xdp-offload    64B    bidirectional
SR-IOV, 64 B, 2 pods                     sriov          2       64
    [Tags]    sriov    64B    needs-sriov
SR-IOV, 64 B, 2 pods, kernel             sriov          2       64       forwarder=kernel
    [Tags]    sriov    64B    needs-sriov
SR-IOV, 1518 B, 2 pods                   sriov          2       1518
    [Tags]    sriov    1518B    needs-sriov
SR-IOV, 1518 B, 2 pods, kernel           sriov          2       1518     forwarder=kernel
    [Tags]    sriov    1518B    needs-sriov
