*** Settings ***
Documentation    Mixed chains (draft section 4.2.4): testpmd forwards in the first pods of a chain, and the kernel in
...              the pods behind them. One switch joins all of them. docs/chain-length.md explains them. Chains with
...              virtual functions at both ends are those of section 4.1.5.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.2.4    mixed-chain    user-space    ovs-dpdk    64B    mrr    ndrpdr    full


*** Test Cases ***                                      DATA PLANE    PODS    FRAME    MORE
OVS-DPDK, 64 B, 2 pods, kernel after testpmd            ovs-dpdk      2       64       forwarder=testpmd+kernel
