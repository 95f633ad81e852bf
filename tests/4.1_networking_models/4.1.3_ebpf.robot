*** Settings ***
Documentation    eBPF acceleration model (draft section 4.1.3).
...              podperf's BPF programs at the tc and XDP hooks send frames past the worker's network stack, from port
...              to pod and from pod to pod. With AF_XDP the pods themselves take frames from the XDP hook.
...              The other data planes, sizes, directions, chains and forwarders: 4.1.3_ebpf_sweep.robot.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.3    ebpf    64B    mrr    ndrpdr    quick    full


*** Test Cases ***        DATA PLANE
TC redirect peer, 64 B    tc-redirect-peer
    [Tags]    tc-redirect-peer
XDP redirect, 64 B        xdp-redirect
    [Tags]    xdp-redirect
AF_XDP, 64 B              af-xdp
    [Tags]    af-xdp
