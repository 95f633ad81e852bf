*** Settings ***
Documentation    What a chain does beside its throughput, by the methods of RFC 2544, RFC 9004 and ETSI TST 009.
...              The search preset of the topology gives the length of the trials; docs/methods.md explains each method.

Resource         ../../resources/methods.resource

Test Template    Chain Should Be Measured By
Test Tags        sec-4.2    resources    64B


*** Test Cases ***                        METHOD                         DATA PLANE
Loss curve, linux bridge, 64 B            Measure Loss Curve             linux-bridge
    [Tags]    kernel-space    linux-bridge    loss-curve
Loss curve, AF_XDP, 64 B                  Measure Loss Curve             af-xdp
    [Tags]    ebpf    af-xdp    loss-curve    -resources
Back-to-back, linux bridge, 64 B          Measure Back To Back Frames    linux-bridge
    [Tags]    kernel-space    linux-bridge    back-to-back    -resources
Back-to-back, AF_XDP, 64 B                Measure Back To Back Frames    af-xdp
    [Tags]    ebpf    af-xdp    back-to-back
Latency by load, linux bridge, 64 B       Measure Latency By Load        linux-bridge
    [Tags]    kernel-space    linux-bridge    latency-by-load
Latency by load, AF_XDP, 64 B             Measure Latency By Load        af-xdp
    [Tags]    ebpf    af-xdp    latency-by-load    -resources
System recovery, linux bridge, 64 B       Measure System Recovery        linux-bridge
    [Tags]    kernel-space    linux-bridge    system-recovery    -resources
System recovery, AF_XDP, 64 B             Measure System Recovery        af-xdp
    [Tags]    ebpf    af-xdp    system-recovery
Repeated instantiation, linux bridge, 64 B    Measure Repeated Instantiation    linux-bridge
    [Tags]    kernel-space    linux-bridge    repeated-instantiation
Repeated instantiation, AF_XDP, 64 B      Measure Repeated Instantiation    af-xdp
    [Tags]    ebpf    af-xdp    repeated-instantiation    -resources
Soak, linux bridge, 64 B    Measure Soak    linux-bridge
    [Tags]    kernel-space    linux-bridge    soak    -resources
Soak, AF_XDP, 64 B    Measure Soak    af-xdp
    [Tags]    ebpf    af-xdp    soak    -resources
