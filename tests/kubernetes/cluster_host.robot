*** Settings ***
Documentation    The way out of a Kubernetes cluster. One port of the tester is a pod. The other one is a host outside
...              of the cluster, which the topology names. Frames go from the pod to the host. Other topologies skip
...              these tests.

Resource         ../../resources/networking_model.resource

Test Template    Cluster Host Should Forward
Test Tags        sec-4.1    kubernetes    cluster-host    external    mrr    ndrpdr    full


*** Test Cases ***                          FRAME
Pod to a host outside, 64 B                 64
    [Tags]    64B
Pod to a host outside, 64 B, 1000 flows     64       flows=1000
    [Tags]    64B    flows
Pod to a host outside, 1518 B               1518
    [Tags]    1518B
