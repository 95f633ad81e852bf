*** Settings ***
Documentation    What an encapsulation between two workers costs (draft section 4.2.5): a chain forwards along both
...              workers, and the joins are measured by turns. The joins of the hackathon's plan are the cable (L2
...              underlay), VXLAN and BGP. No verdict fails a test; see docs/findings.md.

Resource         ../../resources/finding.resource

Test Template    Joins Of Two Workers Should Rank By 5 %
Test Tags        sec-4.2.5    finding    64B


*** Test Cases ***               DATA PLANE      FASTER    SLOWER
Cable over VXLAN                 routed          cable     vxlan
    [Documentation]    Different protocols from these technologies may cause performance differences in container
    ...    networking
    ...    Source: the draft, section 4.2.5
    [Tags]    kernel-space    routed
Cable over VXLAN, tc redirect    tc-redirect     cable     vxlan
    [Documentation]    Different protocols from these technologies may cause performance differences in container
    ...    networking
    ...    Source: the draft, section 4.2.5
    [Tags]    ebpf    tc-redirect
Cable over VLAN                  routed          cable     vlan
    [Documentation]    Different protocols from these technologies may cause performance differences in container
    ...    networking
    ...    Source: the draft, section 4.2.5
    [Tags]    kernel-space    routed
Cable over Geneve                routed          cable     geneve
    [Documentation]    Different protocols from these technologies may cause performance differences in container
    ...    networking
    ...    Source: the draft, section 4.2.5
    [Tags]    kernel-space    routed
Cable over GRE                   routed          cable     gre
    [Documentation]    Different protocols from these technologies may cause performance differences in container
    ...    networking
    ...    Source: the draft, section 4.2.5
    [Tags]    kernel-space    routed
Cable over IP in IP              routed          cable     ipip
    [Documentation]    Different protocols from these technologies may cause performance differences in container
    ...    networking
    ...    Source: the draft, section 4.2.5
    [Tags]    kernel-space    routed
Cable over WireGuard             routed          cable     wireguard
    [Documentation]    Different protocols from these technologies may cause performance differences in container
    ...    networking
    ...    Source: the draft, section 4.2.5
    [Tags]    kernel-space    routed
BGP over VXLAN                   routed          bgp       vxlan
    [Documentation]    Routes by BGP forward more than VXLAN. The plan of the hackathon names both, beside a layer 2
    ...    underlay, which is the cable
    [Tags]    kernel-space    routed
Cable and BGP                    routed
    [Documentation]    Routes that BGP brings forward as much as routes that are there from the beginning
    [Tags]    kernel-space    routed
    [Template]    Routes By BGP Should Forward As A Cable Within 5 %
