*** Settings ***
Documentation    User-space, kernel-bypass networking model (draft section 4.1.2).
...              Frames bypass the kernel: a process polls the ports, and shared memory joins the pods.
...              The other data planes, sizes, directions, chains and forwarders: 4.1.2_user_space_sweep.robot.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.2    user-space    64B    mrr    ndrpdr    quick    full


*** Test Cases ***     DATA PLANE
OVS-DPDK, 64 B         ovs-dpdk
    [Tags]    ovs-dpdk
Memif, 64 B, 2 pods    memif          pods=2
    [Tags]    memif
VPP L2 patch, 64 B     vpp-l2patch
    [Tags]    vpp-l2patch
