*** Settings ***
Documentation    The network of a Kubernetes cluster, whichever CNI it is. The ports of the tester are two pods of the
...              cluster. Other topologies skip these tests.

Resource         ../../resources/networking_model.resource

Test Template    Cluster Network Should Forward
Test Tags        sec-4.1    kubernetes    cluster-network    external    mrr    ndrpdr    full


*** Test Cases ***                                   NODES    FRAME
Pod to pod on one node, 64 B                         1        64
    [Tags]    64B
Pod to pod on one node, 64 B, 1000 flows             1        64       flows=1000
    [Tags]    64B    flows
Pod to pod on one node, 64 B, both directions        1        64       directions=bidirectional
    [Tags]    64B    bidirectional
Pod to pod on one node, 512 B                        1        512
    [Tags]    512B
Pod to pod on one node, 1518 B                       1        1518
    [Tags]    1518B
Pod to pod on one node, IMIX                         1        IMIX
    [Tags]    IMIX
Pod to pod on one node, 84 B, IPv6                   1        84       family=ipv6
    [Tags]    84B    ipv6
Pod to pod on one node, 1518 B, IPv6                 1        1518     family=ipv6
    [Tags]    1518B    ipv6
Pod to pod on two nodes, 64 B                        2        64
    [Tags]    64B
Pod to pod on two nodes, 64 B, 1000 flows            2        64       flows=1000
    [Tags]    64B    flows
Pod to pod on two nodes, 64 B, both directions       2        64       directions=bidirectional
    [Tags]    64B    bidirectional
Pod to pod on two nodes, 512 B                       2        512
    [Tags]    512B
Pod to pod on two nodes, 1280 B                      2        1280
    [Tags]    1280B
Pod to pod on two nodes, 1518 B                      2        1518
    [Tags]    1518B
Pod to pod on two nodes, IMIX                        2        IMIX
    [Tags]    IMIX
Pod to pod on two nodes, 84 B, IPv6                  2        84       family=ipv6
    [Tags]    84B    ipv6
Pod to pod on two nodes, 1518 B, IPv6                2        1518     family=ipv6
    [Tags]    1518B    ipv6
