*** Settings ***
Documentation    eBPF acceleration model (draft section 4.1.3):
...              frame sizes, directions and numbers of pods. Made by docs/make.py from the suites that people write.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.3    ebpf    full    mrr    ndrpdr


*** Test Cases ***                         DATA PLANE          PODS    FRAME    MORE
TC redirect peer, 128 B                    tc-redirect-peer    1       128
    [Tags]    tc-redirect-peer    128B
XDP redirect, 128 B                        xdp-redirect        1       128
    [Tags]    xdp-redirect    128B
AF_XDP, 128 B                              af-xdp              1       128
    [Tags]    af-xdp    128B
TC redirect, 128 B                         tc-redirect         1       128
    [Tags]    tc-redirect    128B
BPF object, 128 B                          bpf-object          1       128
    [Tags]    bpf-object    128B
AF_XDP busy poll, 128 B                    af-xdp-busy-poll    1       128
    [Tags]    af-xdp-busy-poll    128B
OVS AF_XDP, 128 B                          ovs-afxdp           1       128
    [Tags]    ovs-afxdp    128B
TC redirect peer, 256 B                    tc-redirect-peer    1       256
    [Tags]    tc-redirect-peer    256B
XDP redirect, 256 B                        xdp-redirect        1       256
    [Tags]    xdp-redirect    256B
AF_XDP, 256 B                              af-xdp              1       256
    [Tags]    af-xdp    256B
TC redirect, 256 B                         tc-redirect         1       256
    [Tags]    tc-redirect    256B
BPF object, 256 B                          bpf-object          1       256
    [Tags]    bpf-object    256B
AF_XDP busy poll, 256 B                    af-xdp-busy-poll    1       256
    [Tags]    af-xdp-busy-poll    256B
OVS AF_XDP, 256 B                          ovs-afxdp           1       256
    [Tags]    ovs-afxdp    256B
TC redirect peer, 512 B                    tc-redirect-peer    1       512
    [Tags]    tc-redirect-peer    512B
XDP redirect, 512 B                        xdp-redirect        1       512
    [Tags]    xdp-redirect    512B
AF_XDP, 512 B                              af-xdp              1       512
    [Tags]    af-xdp    512B
TC redirect, 512 B                         tc-redirect         1       512
    [Tags]    tc-redirect    512B
BPF object, 512 B                          bpf-object          1       512
    [Tags]    bpf-object    512B
AF_XDP busy poll, 512 B                    af-xdp-busy-poll    1       512
    [Tags]    af-xdp-busy-poll    512B
OVS AF_XDP, 512 B                          ovs-afxdp           1       512
    [Tags]    ovs-afxdp    512B
TC redirect peer, 1024 B                   tc-redirect-peer    1       1024
    [Tags]    tc-redirect-peer    1024B
XDP redirect, 1024 B                       xdp-redirect        1       1024
    [Tags]    xdp-redirect    1024B
AF_XDP, 1024 B                             af-xdp              1       1024
    [Tags]    af-xdp    1024B
TC redirect, 1024 B                        tc-redirect         1       1024
    [Tags]    tc-redirect    1024B
BPF object, 1024 B                         bpf-object          1       1024
    [Tags]    bpf-object    1024B
AF_XDP busy poll, 1024 B                   af-xdp-busy-poll    1       1024
    [Tags]    af-xdp-busy-poll    1024B
OVS AF_XDP, 1024 B                         ovs-afxdp           1       1024
    [Tags]    ovs-afxdp    1024B
TC redirect peer, 1280 B                   tc-redirect-peer    1       1280
    [Tags]    tc-redirect-peer    1280B
XDP redirect, 1280 B                       xdp-redirect        1       1280
    [Tags]    xdp-redirect    1280B
AF_XDP, 1280 B                             af-xdp              1       1280
    [Tags]    af-xdp    1280B
TC redirect, 1280 B                        tc-redirect         1       1280
    [Tags]    tc-redirect    1280B
BPF object, 1280 B                         bpf-object          1       1280
    [Tags]    bpf-object    1280B
AF_XDP busy poll, 1280 B                   af-xdp-busy-poll    1       1280
    [Tags]    af-xdp-busy-poll    1280B
OVS AF_XDP, 1280 B                         ovs-afxdp           1       1280
    [Tags]    ovs-afxdp    1280B
TC redirect peer, 1518 B                   tc-redirect-peer    1       1518
    [Tags]    tc-redirect-peer    1518B
XDP redirect, 1518 B                       xdp-redirect        1       1518
    [Tags]    xdp-redirect    1518B
AF_XDP, 1518 B                             af-xdp              1       1518
    [Tags]    af-xdp    1518B
TC redirect, 1518 B                        tc-redirect         1       1518
    [Tags]    tc-redirect    1518B
BPF object, 1518 B                         bpf-object          1       1518
    [Tags]    bpf-object    1518B
AF_XDP busy poll, 1518 B                   af-xdp-busy-poll    1       1518
    [Tags]    af-xdp-busy-poll    1518B
OVS AF_XDP, 1518 B                         ovs-afxdp           1       1518
    [Tags]    ovs-afxdp    1518B
TC redirect peer, IMIX                     tc-redirect-peer    1       IMIX
    [Tags]    tc-redirect-peer    IMIX
XDP redirect, IMIX                         xdp-redirect        1       IMIX
    [Tags]    xdp-redirect    IMIX
AF_XDP, IMIX                               af-xdp              1       IMIX
    [Tags]    af-xdp    IMIX
TC redirect, IMIX                          tc-redirect         1       IMIX
    [Tags]    tc-redirect    IMIX
BPF object, IMIX                           bpf-object          1       IMIX
    [Tags]    bpf-object    IMIX
AF_XDP busy poll, IMIX                     af-xdp-busy-poll    1       IMIX
    [Tags]    af-xdp-busy-poll    IMIX
OVS AF_XDP, IMIX                           ovs-afxdp           1       IMIX
    [Tags]    ovs-afxdp    IMIX
TC redirect peer, 64 B, both directions    tc-redirect-peer    1       64       bidirectional
    [Tags]    tc-redirect-peer    64B    bidirectional
XDP redirect, 64 B, both directions        xdp-redirect        1       64       bidirectional
    [Tags]    xdp-redirect    64B    bidirectional
AF_XDP, 64 B, both directions              af-xdp              1       64       bidirectional
    [Tags]    af-xdp    64B    bidirectional
TC redirect, 64 B, both directions         tc-redirect         1       64       bidirectional
    [Tags]    tc-redirect    64B    bidirectional
BPF object, 64 B, both directions          bpf-object          1       64       bidirectional
    [Tags]    bpf-object    64B    bidirectional
AF_XDP busy poll, 64 B, both directions    af-xdp-busy-poll    1       64       bidirectional
    [Tags]    af-xdp-busy-poll    64B    bidirectional
OVS AF_XDP, 64 B, both directions          ovs-afxdp           1       64       bidirectional
    [Tags]    ovs-afxdp    64B    bidirectional
TC redirect peer, 64 B, 2 pods             tc-redirect-peer    2       64
    [Tags]    tc-redirect-peer    64B
XDP redirect, 64 B, 2 pods                 xdp-redirect        2       64
    [Tags]    xdp-redirect    64B
AF_XDP, 64 B, 2 pods                       af-xdp              2       64
    [Tags]    af-xdp    64B
TC redirect, 64 B, 2 pods                  tc-redirect         2       64
    [Tags]    tc-redirect    64B
BPF object, 64 B, 2 pods                   bpf-object          2       64
    [Tags]    bpf-object    64B
AF_XDP busy poll, 64 B, 2 pods             af-xdp-busy-poll    2       64
    [Tags]    af-xdp-busy-poll    64B
OVS AF_XDP, 64 B, 2 pods                   ovs-afxdp           2       64
    [Tags]    ovs-afxdp    64B
TC redirect peer, 1518 B, 2 pods           tc-redirect-peer    2       1518
    [Tags]    tc-redirect-peer    1518B
XDP redirect, 1518 B, 2 pods               xdp-redirect        2       1518
    [Tags]    xdp-redirect    1518B
AF_XDP, 1518 B, 2 pods                     af-xdp              2       1518
    [Tags]    af-xdp    1518B
TC redirect, 1518 B, 2 pods                tc-redirect         2       1518
    [Tags]    tc-redirect    1518B
BPF object, 1518 B, 2 pods                 bpf-object          2       1518
    [Tags]    bpf-object    1518B
AF_XDP busy poll, 1518 B, 2 pods           af-xdp-busy-poll    2       1518
    [Tags]    af-xdp-busy-poll    1518B
OVS AF_XDP, 1518 B, 2 pods                 ovs-afxdp           2       1518
    [Tags]    ovs-afxdp    1518B
