*** Settings ***
Documentation    NetworkPolicies of a Kubernetes cluster. The ports of the tester are two pods of the cluster, and so
...              many NetworkPolicies select them. One of these admits the frames. The row without NetworkPolicies is
...              `Pod to pod on one node, 64 B`. A cluster that does not enforce NetworkPolicies skips these tests, and
...              other topologies do, too.

Resource         ../../resources/networking_model.resource

Test Template    Cluster Policies Should Forward
Test Tags        sec-4.1    kubernetes    cluster-policies    external    64B    mrr    ndrpdr    full


*** Test Cases ***                                    POLICIES
Pod to pod on one node, 10 NetworkPolicies, 64 B      10
Pod to pod on one node, 1000 NetworkPolicies, 64 B    1000
