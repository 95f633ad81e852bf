*** Settings ***
Documentation    The experiment of appendix A of the draft: VPP with VRFs, and pods on exclusive CPUs, on shared CPUs
...              or on any CPU. The published figures are in resources/published/appendix_a_contiv_vpp.yaml. The lab is
...              topologies/appendix_a_contiv_vpp.yaml. docs/appendices.md explains the comparison.

Resource         ../../resources/finding.resource

Test Template    Rows Of Appendix A Contiv VPP Should Rank As Published
Test Tags        appendix-a    appendix-a.2    sec-4.2.1    user-space    vpp-vrf    1518B    published    needs-lab


*** Test Cases ***                                 MORE                    LESS
Contiv-VPP: exclusive over shared CPUs             exclusive, same node    shared, same node
Contiv-VPP: shared CPUs over none                  shared, same node       without CMK, any node
Contiv-VPP: exclusive, same node over different    exclusive, same node    exclusive, different node
    [Tags]    needs-numa
Contiv-VPP: shared, same node over different       shared, same node       shared, different node
    [Tags]    needs-numa
