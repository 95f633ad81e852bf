*** Settings ***
Documentation    eBPF acceleration model (draft section 4.1.3).
...              Own BPF programs at the tc and XDP hooks send frames past the worker's network stack, from port to pod
...              and from pod to pod; with AF_XDP the pods themselves take frames off the XDP hook.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.3    ebpf    mrr    ndrpdr    full


*** Test Cases ***                   DATA PLANE          PODS    FRAME
TC redirect, 64 B                    tc-redirect         1       64
    [Tags]    tc-redirect    64B
TC redirect peer, 64 B               tc-redirect-peer    1       64
    [Tags]    tc-redirect-peer    64B    quick
XDP redirect, 64 B                   xdp-redirect        1       64
    [Tags]    xdp-redirect    64B    quick
AF_XDP, 64 B                         af-xdp              1       64
    [Tags]    af-xdp    64B    quick
AF_XDP busy poll, 64 B               af-xdp-busy-poll    1       64
    [Tags]    af-xdp-busy-poll    64B
TC redirect, 1518 B                  tc-redirect         1       1518
    [Tags]    tc-redirect    1518B
TC redirect peer, 1518 B             tc-redirect-peer    1       1518
    [Tags]    tc-redirect-peer    1518B
XDP redirect, 1518 B                 xdp-redirect        1       1518
    [Tags]    xdp-redirect    1518B
AF_XDP, 1518 B                       af-xdp              1       1518
    [Tags]    af-xdp    1518B
AF_XDP busy poll, 1518 B             af-xdp-busy-poll    1       1518
    [Tags]    af-xdp-busy-poll    1518B
TC redirect, 64 B, 2 pods            tc-redirect         2       64
    [Tags]    tc-redirect    64B
TC redirect peer, 64 B, 2 pods       tc-redirect-peer    2       64
    [Tags]    tc-redirect-peer    64B
XDP redirect, 64 B, 2 pods           xdp-redirect        2       64
    [Tags]    xdp-redirect    64B
AF_XDP, 64 B, 2 pods                 af-xdp              2       64
    [Tags]    af-xdp    64B
AF_XDP busy poll, 64 B, 2 pods       af-xdp-busy-poll    2       64
    [Tags]    af-xdp-busy-poll    64B
TC redirect, 1518 B, 2 pods          tc-redirect         2       1518
    [Tags]    tc-redirect    1518B
TC redirect peer, 1518 B, 2 pods     tc-redirect-peer    2       1518
    [Tags]    tc-redirect-peer    1518B
XDP redirect, 1518 B, 2 pods         xdp-redirect        2       1518
    [Tags]    xdp-redirect    1518B
AF_XDP, 1518 B, 2 pods               af-xdp              2       1518
    [Tags]    af-xdp    1518B
AF_XDP busy poll, 1518 B, 2 pods     af-xdp-busy-poll    2       1518
    [Tags]    af-xdp-busy-poll    1518B
OVS AF_XDP, 64 B                     ovs-afxdp           1       64
    [Tags]    ovs-afxdp    64B
OVS AF_XDP, 1518 B                   ovs-afxdp           1       1518
    [Tags]    ovs-afxdp    1518B
OVS AF_XDP, 64 B, 2 pods             ovs-afxdp           2       64
    [Tags]    ovs-afxdp    64B
OVS AF_XDP, 1518 B, 2 pods           ovs-afxdp           2       1518
    [Tags]    ovs-afxdp    1518B
AF_XDP, 64 B, testpmd mac            af-xdp              1       64      forwarder=testpmd-mac
    [Tags]    af-xdp    64B    testpmd-mac
AF_XDP, 64 B, testpmd macswap        af-xdp              1       64      forwarder=testpmd-macswap
    [Tags]    af-xdp    64B    testpmd-macswap
AF_XDP, 64 B, l2fwd                  af-xdp              1       64      forwarder=l2fwd
    [Tags]    af-xdp    64B    l2fwd
