*** Settings ***
Documentation    The network of a Kubernetes cluster, whichever CNI it is: two pods of the cluster are the tester's ports.
...              Other topologies skip these tests.

Resource         ../../resources/networking_model.resource

Test Template    Cluster Network Should Forward
Test Tags        sec-4.1    kubernetes    cluster-network    external    mrr    ndrpdr    full


*** Test Cases ***                 FRAME
Pod to pod on one node, 64 B       64
    [Tags]    64B
Pod to pod on one node, 512 B      512
    [Tags]    512B
Pod to pod on one node, 1518 B     1518
    [Tags]    1518B
Pod to pod on one node, IMIX       IMIX
    [Tags]    IMIX
