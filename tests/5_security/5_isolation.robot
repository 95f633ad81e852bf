*** Settings ***
Documentation    Security considerations (draft section 5): the test network is isolated from all other networks.
...              podperf refuses a port that anything else uses. No test frame leaves the test network.

Library          ../../libraries/Testbed.py
Library          ../../libraries/Traffic.py
Library          ../../libraries/Isolation.py

Test Tags        sec-5    isolation    quick    full


*** Test Cases ***
Ports Of This Testbed Are Isolated
    Ports Should Be Isolated

Port With A Default Route Is Refused
    Port Should Be Refused When It Carries    default route

Port With An Address Is Refused
    Port Should Be Refused When It Carries    address

Port With The SSH Session Is Refused
    Port Should Be Refused When It Carries    SSH session

No Test Frame Leaves The Testbed
    [Tags]    linux-bridge    64B
    Watch Machines For Test Frames
    Set Up Chain    linux-bridge    pods=1    frame=64
    Measure Maximum Receive Rate
    No Test Frame Should Have Left The Testbed
    [Teardown]    Run Keywords    Stop Watching    AND    Tear Down Chain

No Test Frame Leaves A Black Box
    [Documentation]    A switch that floods would bring test frames to each interface in their VLAN. It learns the
    ...    MACs of both ports from a frame each, while the chain is set up.
    [Tags]    external    64B    -quick
    Set Up Chain    external    pods=0    frame=64
    Watch Machines For Test Frames
    Measure Maximum Receive Rate
    No Test Frame Should Have Left The Testbed
    [Teardown]    Run Keywords    Stop Watching    AND    Tear Down Chain
