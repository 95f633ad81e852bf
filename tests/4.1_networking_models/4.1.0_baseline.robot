*** Settings ***
Documentation    The bare path, which every other result is compared with, and the black box of an external topology.
...              On the bare path the tester's ports are plugged into each other. Results show the tester's own limits.

Resource         ../../resources/networking_model.resource

Test Template    Path Should Forward
Test Tags        sec-4.1    mrr    ndrpdr    full


*** Test Cases ***       DATA PLANE    FRAME
Bare path, 64 B          wire          64
    [Tags]    wire    64B    quick
Bare path, 1518 B        wire          1518
    [Tags]    wire    1518B
Bare path, 128 B         wire          128
    [Tags]    wire    128B
Bare path, 256 B         wire          256
    [Tags]    wire    256B
Bare path, 512 B         wire          512
    [Tags]    wire    512B
Bare path, 1024 B        wire          1024
    [Tags]    wire    1024B
Bare path, 1280 B        wire          1280
    [Tags]    wire    1280B
Bare path, IMIX          wire          IMIX
    [Tags]    wire    IMIX
Black box, 64 B          external      64
    [Tags]    external    64B    quick
Black box, 1518 B        external      1518
    [Tags]    external    1518B
Black box, IMIX          external      IMIX
    [Tags]    external    IMIX
