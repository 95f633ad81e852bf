*** Settings ***
Documentation    The base line of a Kubernetes cluster: pods in the networks of two nodes (hostNetwork). The network of
...              the pods is beside it in the rows `Pod to pod on two nodes`. A cluster whose policies forbid such pods
...              skips these tests, and other topologies do, too.

Resource         ../../resources/networking_model.resource

Test Template    Cluster Base Line Should Forward
Test Tags        sec-4.1    kubernetes    cluster-base-line    external    mrr    ndrpdr    full


*** Test Cases ***                       FRAME
Host network on two nodes, 64 B          64
    [Tags]    64B
Host network on two nodes, 1518 B        1518
    [Tags]    1518B
Host network on two nodes, 84 B, IPv6    84       family=ipv6
    [Tags]    84B    ipv6
