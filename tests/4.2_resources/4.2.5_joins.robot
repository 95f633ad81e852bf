*** Settings ***
Documentation    What an encapsulation between two workers costs (draft section 4.2.5): a chain forwards along both
...              workers, and the joins are measured by turns. No verdict fails a test; see docs/findings.md.

Resource         ../../resources/finding.resource

Test Template    Cable Between Workers Should Forward 5 % More
Test Tags        sec-4.2.5    finding    64B


*** Test Cases ***                    DATA PLANE      ENCAPSULATIONS
Cable over VXLAN                      routed          vxlan
    [Documentation]    Different protocols from these technologies may cause performance differences in container
    ...    networking
    ...    Source: the draft, section 4.2.5
    [Tags]    kernel-space    routed
Cable over VXLAN, tc redirect         tc-redirect     vxlan
    [Documentation]    Different protocols from these technologies may cause performance differences in container
    ...    networking
    ...    Source: the draft, section 4.2.5
    [Tags]    ebpf    tc-redirect
Cable over VLAN over VXLAN            routed          vlan        vxlan
    [Documentation]    Different protocols from these technologies may cause performance differences in container
    ...    networking
    ...    Source: the draft, section 4.2.5
    [Tags]    kernel-space    routed
Cable over GRE over Geneve            routed          gre         geneve
    [Documentation]    Different protocols from these technologies may cause performance differences in container
    ...    networking
    ...    Source: the draft, section 4.2.5
    [Tags]    kernel-space    routed
Cable over IP in IP over WireGuard    routed          ipip        wireguard
    [Documentation]    Different protocols from these technologies may cause performance differences in container
    ...    networking
    ...    Source: the draft, section 4.2.5
    [Tags]    kernel-space    routed
Cable and BGP                         routed
    [Documentation]    Routes that BGP brings forward as much as routes that are there from the beginning
    [Tags]    kernel-space    routed
    [Template]    Routes By BGP Should Forward As A Cable Within 5 %
