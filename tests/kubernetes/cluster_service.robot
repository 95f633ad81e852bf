*** Settings ***
Documentation    A Service (ClusterIP) of a Kubernetes cluster. The ports of the tester are two pods of the cluster, and
...              frames go to the address of a Service before the other pod. So the cluster translates the address of
...              each frame (kube-proxy, or what replaces it). Other topologies skip these tests.

Resource         ../../resources/networking_model.resource

Test Template    Cluster Service Should Forward
Test Tags        sec-4.1    kubernetes    cluster-service    external    mrr    ndrpdr    full


*** Test Cases ***                               NODES    FRAME
Pod to Service on one node, 64 B                 1        64
    [Tags]    64B
Pod to Service on one node, 64 B, 1000 flows     1        64       flows=1000
    [Tags]    64B    flows
Pod to Service among 100, 64 B                   1        64       other_services=99
    [Tags]    64B    many-services
Pod to Service among 1000, 64 B                  1        64       other_services=999
    [Tags]    64B    many-services
Pod to Service among 5000, 64 B                  1        64       other_services=4999
    [Tags]    64B    many-services
Pod to Service on one node, 1518 B               1        1518
    [Tags]    1518B
Pod to Service on one node, 84 B, IPv6           1        84       family=ipv6
    [Tags]    84B    ipv6
Pod to Service on two nodes, 64 B                2        64
    [Tags]    64B
Pod to Service on two nodes, 64 B, 1000 flows    2        64       flows=1000
    [Tags]    64B    flows
Pod to Service on two nodes, 1518 B              2        1518
    [Tags]    1518B
Pod to Service on two nodes, 84 B, IPv6          2        84       family=ipv6
    [Tags]    84B    ipv6
