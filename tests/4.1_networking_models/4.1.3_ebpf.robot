*** Settings ***
Documentation    eBPF acceleration model (draft section 4.1.3).
...              podperf's BPF programs at the tc and XDP hooks send frames past the worker's network stack, from port
...              to pod and from pod to pod. With AF_XDP the pods themselves take frames from the XDP hook.
...              The other sizes, directions and chains: 4.1.3_ebpf_sweep.robot.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.3    ebpf    64B    mrr    ndrpdr    quick    full


*** Test Cases ***               DATA PLANE
TC redirect peer, 64 B           tc-redirect-peer
    [Tags]    tc-redirect-peer
XDP redirect, 64 B               xdp-redirect
    [Tags]    xdp-redirect
AF_XDP, 64 B                     af-xdp
    [Tags]    af-xdp
TC redirect, 64 B                tc-redirect
    [Tags]    tc-redirect    -quick
BPF object, 64 B                 bpf-object
    [Tags]    bpf-object    -quick
AF_XDP busy poll, 64 B           af-xdp-busy-poll
    [Tags]    af-xdp-busy-poll    -quick
OVS AF_XDP, 64 B                 ovs-afxdp
    [Tags]    ovs-afxdp    -quick
AF_XDP, 64 B, testpmd mac        af-xdp              forwarder=testpmd-mac
    [Tags]    af-xdp    testpmd-mac    -quick
AF_XDP, 64 B, testpmd macswap    af-xdp              forwarder=testpmd-macswap
    [Tags]    af-xdp    testpmd-macswap    -quick
AF_XDP, 64 B, l2fwd              af-xdp              forwarder=l2fwd
    [Tags]    af-xdp    l2fwd    -quick
