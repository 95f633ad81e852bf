*** Settings ***
Documentation    TCP streams and requests of applications between two pods of a Kubernetes cluster, by iperf3 and
...              netperf. The figures are none of RFC 2544: see docs/application-traffic.md. Other topologies skip
...              these tests.

Resource         ../../resources/methods.resource

Test Template    Cluster Network Should Carry Applications
Test Tags        application-traffic    cluster-applications    external


*** Test Cases ***                                 NODES
Application traffic, pod to pod on one node        1
Application traffic, pod to pod on two nodes       2
Application traffic, host network on two nodes     2        host_network=True
    [Tags]    cluster-base-line
