*** Settings ***
Documentation    Service density (draft section 4.2.4): chains of a data plane beside each other on the same ports, told
...              apart by their flows. Layouts of 1 to 4 chains are measured by turns. What is the rate of each chain,
...              and do all chains have the same rate? No verdict fails a test. docs/service-density.md explains the
...              figures.

Resource         ../../resources/finding.resource

Test Template    Service Density Should Be Judged
Test Tags        sec-4.2.4    service-density    finding    64B


*** Test Cases ***                            DATA PLANE      LAYOUTS
Linux bridge, chains beside each other        linux-bridge
    [Tags]    kernel-space    linux-bridge
MACVLAN, chains beside each other             macvlan
    [Tags]    kernel-space    macvlan
Linux bridge, one chain and four chains       linux-bridge    1x1    4x1
    [Tags]    kernel-space    linux-bridge    resources
OVS-DPDK, chains beside each other            ovs-dpdk
    [Tags]    user-space    ovs-dpdk
Linux bridge, a pod in two chains             linux-bridge    1x2    2x2    2x2-common
    [Tags]    kernel-space    linux-bridge    common-pod
MACVLAN, a pod in two chains                  macvlan         1x2    2x2    2x2-common
    [Tags]    kernel-space    macvlan    common-pod
