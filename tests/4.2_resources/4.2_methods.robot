*** Settings ***
Documentation    What a chain does beside its throughput, by the methods of RFC 2544, RFC 9004 and ETSI TST 009.
...              The search preset of the topology gives the length of the trials; docs/methods.md explains each method.

Resource         ../../resources/methods.resource

Test Template    Chain Should Be Measured By
Test Tags        sec-4.2    64B


*** Test Cases ***                        METHOD                         DATA PLANE
Loss curve, linux bridge, 64 B            Measure Loss Curve             linux-bridge
    [Tags]    kernel-space    linux-bridge    loss-curve    resources
Loss curve, AF_XDP, 64 B                  Measure Loss Curve             af-xdp
    [Tags]    ebpf    af-xdp    loss-curve
Back-to-back, linux bridge, 64 B          Measure Back To Back Frames    linux-bridge
    [Tags]    kernel-space    linux-bridge    back-to-back
Back-to-back, AF_XDP, 64 B                Measure Back To Back Frames    af-xdp
    [Tags]    ebpf    af-xdp    back-to-back    resources
Latency by load, linux bridge, 64 B       Measure Latency By Load        linux-bridge
    [Tags]    kernel-space    linux-bridge    latency-by-load    resources
Latency by load, AF_XDP, 64 B             Measure Latency By Load        af-xdp
    [Tags]    ebpf    af-xdp    latency-by-load
System recovery, linux bridge, 64 B       Measure System Recovery        linux-bridge
    [Tags]    kernel-space    linux-bridge    system-recovery
System recovery, AF_XDP, 64 B             Measure System Recovery        af-xdp
    [Tags]    ebpf    af-xdp    system-recovery    resources
Reconfiguration, routed, route withdrawn, 64 B    Measure Reconfiguration    routed    change=route-withdrawn
    [Tags]    kernel-space    routed    reconfiguration    resources
Reconfiguration, routed, pod added, 64 B    Measure Reconfiguration    routed    change=pod-added
    [Tags]    kernel-space    routed    reconfiguration
Reconfiguration, policy, 100 policies added, 64 B    Measure Reconfiguration    routed-policy    change=policies-added
    [Tags]    kernel-space    routed-policy    reconfiguration
Reconfiguration, Service, pod added, 64 B    Measure Reconfiguration    service    change=endpoint-added
    [Tags]    kernel-space    service    reconfiguration
Reconfiguration, linux bridge, pod added, 64 B    Measure Reconfiguration    linux-bridge    change=pod-added
    [Tags]    kernel-space    linux-bridge    reconfiguration
Reconfiguration, linux bridge, MACs forgotten, 64 B    Measure Reconfiguration    linux-bridge    change=macs-forgotten
    [Tags]    kernel-space    linux-bridge    reconfiguration
Reconfiguration, routed, BGP withdraws a route, 64 B, 2 workers
    [Tags]    kernel-space    routed    bgp    reconfiguration
    [Template]    Routes By BGP Should Be Reconfigured
    bgp-route-withdrawn
Reconfiguration, routed, BGP agent restarted, 64 B, 2 workers
    [Tags]    kernel-space    routed    bgp    reconfiguration
    [Template]    Routes By BGP Should Be Reconfigured
    agent-restarted
Repeated instantiation, linux bridge, 64 B    Measure Repeated Instantiation    linux-bridge
    [Tags]    kernel-space    linux-bridge    repeated-instantiation    resources
Repeated instantiation, AF_XDP, 64 B      Measure Repeated Instantiation    af-xdp
    [Tags]    ebpf    af-xdp    repeated-instantiation
Soak, linux bridge, 64 B    Measure Soak    linux-bridge
    [Tags]    kernel-space    linux-bridge    soak
Soak, AF_XDP, 64 B    Measure Soak    af-xdp
    [Tags]    ebpf    af-xdp    soak
