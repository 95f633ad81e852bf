*** Settings ***
Documentation    New flows through the network of a Kubernetes cluster. Each frame of a trial is a flow that the nodes
...              do not know yet, so connection tracking and the choice of a Service's pod work for each of them.
...              The rows with 1 flow are `Pod to pod on one node, 64 B` and `Pod to Service on one node, 64 B`. Other
...              topologies skip these tests.

Resource         ../../resources/networking_model.resource

Test Template    Cluster New Flows Should Forward
Test Tags        sec-4.1    kubernetes    new-flows    external    64B    flows    mrr    full


*** Test Cases ***                             DESTINATION
Pod to pod on one node, 64 B, new flows        pod
Pod to Service on one node, 64 B, new flows    service
