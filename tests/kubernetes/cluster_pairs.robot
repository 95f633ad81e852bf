*** Settings ***
Documentation    Many pairs of pods of a Kubernetes cluster that send at the same time: docs/kubernetes.md, many pairs.
...              Other topologies skip these tests.

Resource         ../../resources/methods.resource

Test Template    Cluster Network Should Carry Many Pairs
Test Tags        sec-4.1    kubernetes    many-pairs    external    64B


*** Test Cases ***                              NODES    PAIRS
Many pairs on one node, 64 B                    1        16
Many pairs on two nodes, 64 B                   2        16
From 20 to 150 pods on two nodes, 64 B          2        75       first=10    to_the_end=True
    [Tags]    many-pods
