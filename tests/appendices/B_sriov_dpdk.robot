*** Settings ***
Documentation    The experiment of appendix B of the draft: pods run DPDK on virtual functions, on exclusive CPUs, on
...              shared CPUs or on any CPU. The published figures are in resources/published/appendix_b_sriov_dpdk.yaml.
...              The lab is topologies/appendix_b_sriov_dpdk.yaml. docs/appendices.md explains the comparison.

Resource         ../../resources/finding.resource

Test Template    Rows Of Appendix B SRIOV DPDK Should Rank As Published
Test Tags        appendix-b    appendix-b.2    sec-4.1.4    sec-4.2.1
...              smart-nic    sriov    1518B    published    needs-sriov


*** Test Cases ***                    MORE         LESS
SR-IOV: exclusive over shared CPUs    exclusive    shared
SR-IOV: shared CPUs over none         shared       without CMK
SR-IOV: exclusive CPUs over none      exclusive    without CMK
