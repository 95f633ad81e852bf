*** Settings ***
Documentation    TCP streams and requests of applications, by iperf3 and netperf, through data planes of the kernel.
...              The figures are none of RFC 2544, and belong to no section of the draft: see
...              docs/application-traffic.md.

Resource         ../resources/methods.resource

Test Template    Chain Should Carry Applications
Test Tags        application-traffic


*** Test Cases ***                        DATA PLANE      PODS
Application traffic, bare path            wire            0
    [Tags]    wire
Application traffic, linux bridge         linux-bridge
    [Tags]    kernel-space    linux-bridge
Application traffic, PTP                  ptp
    [Tags]    kernel-space    ptp
Application traffic, MACVLAN              macvlan
    [Tags]    kernel-space    macvlan
Application traffic, IPVLAN               ipvlan
    [Tags]    kernel-space    ipvlan
Application traffic, routed               routed
    [Tags]    kernel-space    routed
Application traffic, OVS in the kernel    ovs-kernel
    [Tags]    kernel-space    ovs-kernel
Application traffic, TC redirect          tc-redirect
    [Tags]    ebpf    tc-redirect
