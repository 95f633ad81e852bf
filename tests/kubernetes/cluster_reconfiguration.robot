*** Settings ***
Documentation    Changes of a Kubernetes cluster while frames cross its network: docs/methods.md, reconfiguration. The
...              ports of the tester are two pods. Other topologies skip these tests.

Resource         ../../resources/methods.resource

Test Template    Cluster Network Should Be Reconfigured
Test Tags        sec-4.1    kubernetes    cluster-reconfiguration    reconfiguration    external    64B


*** Test Cases ***                                CHANGE            PODS OF THE TESTER
Pod to pod, 100 NetworkPolicies added, 64 B       policies-added    network_policies=1
Pod to Service, a pod added to it, 64 B           endpoint-added    destination=service
Pod to pod, an agent restarted, 64 B              agent-restarted   nodes=2
