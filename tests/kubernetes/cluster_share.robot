*** Settings ***
Documentation    The network of a Kubernetes cluster beside that of its nodes, by turns: the share of the host network's
...              rate, with an interval. The base line are pods in the networks of two nodes. A cluster whose policies
...              forbid such pods skips these tests, and other topologies do, too.

Resource         ../../resources/comparison.resource

Test Template    Pods Should Be Measured Beside Host Network
Test Tags        sec-4.1    kubernetes    cluster-share    external    mrr    full


*** Test Cases ***                                               NODES    FRAME
Pod to pod beside host network, two nodes, 64 B                  2        64
    [Tags]    64B
Pod to pod beside host network, two nodes, 1280 B                2        1280
    [Tags]    1280B
Pod to pod beside host network, two nodes, 1518 B                2        1518
    [Tags]    1518B
Pod to pod beside host network, one node, 64 B                   1        64
    [Tags]    64B
Pod to Service beside host network, two nodes, 64 B              2        64       destination=service
    [Tags]    64B
100 NetworkPolicies beside host network, two nodes, 64 B         2        64       network_policies=100
    [Tags]    64B
NDR of pods beside host network, two nodes, 64 B                 2        64       metric=ndr
    [Tags]    64B    loss-free-share    -mrr    ndrpdr
PDR of pods beside host network, two nodes, 64 B                 2        64       metric=pdr
    [Tags]    64B    loss-free-share    -mrr    ndrpdr
