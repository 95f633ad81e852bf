*** Settings ***
Documentation    Kernel-space, non-accelerated networking model (draft section 4.1.1):
...              frame sizes, directions and numbers of pods. Made by docs/make.py from the suites that people write.

Resource         ../../resources/networking_model.resource

Test Template    Chain Should Forward
Test Tags        sec-4.1.1    full    kernel-space    mrr    ndrpdr


*** Test Cases ***                               DATA PLANE        PODS    FRAME    MORE
Linux bridge, 128 B                              linux-bridge      1       128
    [Tags]    linux-bridge    128B
PTP, 128 B                                       ptp               1       128
    [Tags]    ptp    128B
MACVLAN, 128 B                                   macvlan           1       128
    [Tags]    macvlan    128B
Routed, 128 B                                    routed            1       128
    [Tags]    routed    128B
IPIP, 128 B                                      ipip              1       128
    [Tags]    ipip    128B
Docker, 128 B                                    docker            1       128
    [Tags]    docker    128B
IPVLAN, 128 B                                    ipvlan            1       128
    [Tags]    ipvlan    128B
OVS kernel, 128 B                                ovs-kernel        1       128
    [Tags]    ovs-kernel    128B
Docker bridge, 128 B                             docker-bridge     1       128
    [Tags]    docker-bridge    128B
Docker default, 128 B                            docker-default    1       128
    [Tags]    docker-default    128B
Docker MACVLAN, 128 B                            docker-macvlan    1       128
    [Tags]    docker-macvlan    128B
Docker overlay, 128 B, 3 pods                    docker-overlay    3       128
    [Tags]    docker-overlay    128B
Podman bridge, 128 B                             podman-bridge     1       128
    [Tags]    podman-bridge    128B
Service, 128 B                                   service           1       128
    [Tags]    service    128B
Policy, 128 B                                    routed-policy     1       128
    [Tags]    routed-policy    128B
Linux bridge, 256 B                              linux-bridge      1       256
    [Tags]    linux-bridge    256B
PTP, 256 B                                       ptp               1       256
    [Tags]    ptp    256B
MACVLAN, 256 B                                   macvlan           1       256
    [Tags]    macvlan    256B
Routed, 256 B                                    routed            1       256
    [Tags]    routed    256B
IPIP, 256 B                                      ipip              1       256
    [Tags]    ipip    256B
Docker, 256 B                                    docker            1       256
    [Tags]    docker    256B
IPVLAN, 256 B                                    ipvlan            1       256
    [Tags]    ipvlan    256B
OVS kernel, 256 B                                ovs-kernel        1       256
    [Tags]    ovs-kernel    256B
Docker bridge, 256 B                             docker-bridge     1       256
    [Tags]    docker-bridge    256B
Docker default, 256 B                            docker-default    1       256
    [Tags]    docker-default    256B
Docker MACVLAN, 256 B                            docker-macvlan    1       256
    [Tags]    docker-macvlan    256B
Docker overlay, 256 B, 3 pods                    docker-overlay    3       256
    [Tags]    docker-overlay    256B
Podman bridge, 256 B                             podman-bridge     1       256
    [Tags]    podman-bridge    256B
Service, 256 B                                   service           1       256
    [Tags]    service    256B
Policy, 256 B                                    routed-policy     1       256
    [Tags]    routed-policy    256B
Linux bridge, 512 B                              linux-bridge      1       512
    [Tags]    linux-bridge    512B
PTP, 512 B                                       ptp               1       512
    [Tags]    ptp    512B
MACVLAN, 512 B                                   macvlan           1       512
    [Tags]    macvlan    512B
Routed, 512 B                                    routed            1       512
    [Tags]    routed    512B
IPIP, 512 B                                      ipip              1       512
    [Tags]    ipip    512B
Docker, 512 B                                    docker            1       512
    [Tags]    docker    512B
IPVLAN, 512 B                                    ipvlan            1       512
    [Tags]    ipvlan    512B
OVS kernel, 512 B                                ovs-kernel        1       512
    [Tags]    ovs-kernel    512B
Docker bridge, 512 B                             docker-bridge     1       512
    [Tags]    docker-bridge    512B
Docker default, 512 B                            docker-default    1       512
    [Tags]    docker-default    512B
Docker MACVLAN, 512 B                            docker-macvlan    1       512
    [Tags]    docker-macvlan    512B
Docker overlay, 512 B, 3 pods                    docker-overlay    3       512
    [Tags]    docker-overlay    512B
Podman bridge, 512 B                             podman-bridge     1       512
    [Tags]    podman-bridge    512B
Service, 512 B                                   service           1       512
    [Tags]    service    512B
Policy, 512 B                                    routed-policy     1       512
    [Tags]    routed-policy    512B
Linux bridge, 1024 B                             linux-bridge      1       1024
    [Tags]    linux-bridge    1024B
PTP, 1024 B                                      ptp               1       1024
    [Tags]    ptp    1024B
MACVLAN, 1024 B                                  macvlan           1       1024
    [Tags]    macvlan    1024B
Routed, 1024 B                                   routed            1       1024
    [Tags]    routed    1024B
IPIP, 1024 B                                     ipip              1       1024
    [Tags]    ipip    1024B
Docker, 1024 B                                   docker            1       1024
    [Tags]    docker    1024B
IPVLAN, 1024 B                                   ipvlan            1       1024
    [Tags]    ipvlan    1024B
OVS kernel, 1024 B                               ovs-kernel        1       1024
    [Tags]    ovs-kernel    1024B
Docker bridge, 1024 B                            docker-bridge     1       1024
    [Tags]    docker-bridge    1024B
Docker default, 1024 B                           docker-default    1       1024
    [Tags]    docker-default    1024B
Docker MACVLAN, 1024 B                           docker-macvlan    1       1024
    [Tags]    docker-macvlan    1024B
Docker overlay, 1024 B, 3 pods                   docker-overlay    3       1024
    [Tags]    docker-overlay    1024B
Podman bridge, 1024 B                            podman-bridge     1       1024
    [Tags]    podman-bridge    1024B
Service, 1024 B                                  service           1       1024
    [Tags]    service    1024B
Policy, 1024 B                                   routed-policy     1       1024
    [Tags]    routed-policy    1024B
Linux bridge, 1280 B                             linux-bridge      1       1280
    [Tags]    linux-bridge    1280B
PTP, 1280 B                                      ptp               1       1280
    [Tags]    ptp    1280B
MACVLAN, 1280 B                                  macvlan           1       1280
    [Tags]    macvlan    1280B
Routed, 1280 B                                   routed            1       1280
    [Tags]    routed    1280B
IPIP, 1280 B                                     ipip              1       1280
    [Tags]    ipip    1280B
Docker, 1280 B                                   docker            1       1280
    [Tags]    docker    1280B
IPVLAN, 1280 B                                   ipvlan            1       1280
    [Tags]    ipvlan    1280B
OVS kernel, 1280 B                               ovs-kernel        1       1280
    [Tags]    ovs-kernel    1280B
Docker bridge, 1280 B                            docker-bridge     1       1280
    [Tags]    docker-bridge    1280B
Docker default, 1280 B                           docker-default    1       1280
    [Tags]    docker-default    1280B
Docker MACVLAN, 1280 B                           docker-macvlan    1       1280
    [Tags]    docker-macvlan    1280B
Docker overlay, 1280 B, 3 pods                   docker-overlay    3       1280
    [Tags]    docker-overlay    1280B
Podman bridge, 1280 B                            podman-bridge     1       1280
    [Tags]    podman-bridge    1280B
Service, 1280 B                                  service           1       1280
    [Tags]    service    1280B
Policy, 1280 B                                   routed-policy     1       1280
    [Tags]    routed-policy    1280B
PTP, 1518 B                                      ptp               1       1518
    [Tags]    ptp    1518B
MACVLAN, 1518 B                                  macvlan           1       1518
    [Tags]    macvlan    1518B
Routed, 1518 B                                   routed            1       1518
    [Tags]    routed    1518B
IPIP, 1518 B                                     ipip              1       1518
    [Tags]    ipip    1518B
Docker, 1518 B                                   docker            1       1518
    [Tags]    docker    1518B
IPVLAN, 1518 B                                   ipvlan            1       1518
    [Tags]    ipvlan    1518B
OVS kernel, 1518 B                               ovs-kernel        1       1518
    [Tags]    ovs-kernel    1518B
Docker bridge, 1518 B                            docker-bridge     1       1518
    [Tags]    docker-bridge    1518B
Docker default, 1518 B                           docker-default    1       1518
    [Tags]    docker-default    1518B
Docker MACVLAN, 1518 B                           docker-macvlan    1       1518
    [Tags]    docker-macvlan    1518B
Docker overlay, 1518 B, 3 pods                   docker-overlay    3       1518
    [Tags]    docker-overlay    1518B
Podman bridge, 1518 B                            podman-bridge     1       1518
    [Tags]    podman-bridge    1518B
Service, 1518 B                                  service           1       1518
    [Tags]    service    1518B
Policy, 1518 B                                   routed-policy     1       1518
    [Tags]    routed-policy    1518B
Linux bridge, IMIX                               linux-bridge      1       IMIX
    [Tags]    linux-bridge    IMIX
PTP, IMIX                                        ptp               1       IMIX
    [Tags]    ptp    IMIX
MACVLAN, IMIX                                    macvlan           1       IMIX
    [Tags]    macvlan    IMIX
Routed, IMIX                                     routed            1       IMIX
    [Tags]    routed    IMIX
IPIP, IMIX                                       ipip              1       IMIX
    [Tags]    ipip    IMIX
Docker, IMIX                                     docker            1       IMIX
    [Tags]    docker    IMIX
IPVLAN, IMIX                                     ipvlan            1       IMIX
    [Tags]    ipvlan    IMIX
OVS kernel, IMIX                                 ovs-kernel        1       IMIX
    [Tags]    ovs-kernel    IMIX
Docker bridge, IMIX                              docker-bridge     1       IMIX
    [Tags]    docker-bridge    IMIX
Docker default, IMIX                             docker-default    1       IMIX
    [Tags]    docker-default    IMIX
Docker MACVLAN, IMIX                             docker-macvlan    1       IMIX
    [Tags]    docker-macvlan    IMIX
Docker overlay, IMIX, 3 pods                     docker-overlay    3       IMIX
    [Tags]    docker-overlay    IMIX
Podman bridge, IMIX                              podman-bridge     1       IMIX
    [Tags]    podman-bridge    IMIX
Service, IMIX                                    service           1       IMIX
    [Tags]    service    IMIX
Policy, IMIX                                     routed-policy     1       IMIX
    [Tags]    routed-policy    IMIX
Linux bridge, 64 B, both directions              linux-bridge      1       64       bidirectional
    [Tags]    linux-bridge    64B    bidirectional
PTP, 64 B, both directions                       ptp               1       64       bidirectional
    [Tags]    ptp    64B    bidirectional
MACVLAN, 64 B, both directions                   macvlan           1       64       bidirectional
    [Tags]    macvlan    64B    bidirectional
Routed, 64 B, both directions                    routed            1       64       bidirectional
    [Tags]    routed    64B    bidirectional
IPIP, 64 B, both directions                      ipip              1       64       bidirectional
    [Tags]    ipip    64B    bidirectional
Docker, 64 B, both directions                    docker            1       64       bidirectional
    [Tags]    docker    64B    bidirectional
IPVLAN, 64 B, both directions                    ipvlan            1       64       bidirectional
    [Tags]    ipvlan    64B    bidirectional
OVS kernel, 64 B, both directions                ovs-kernel        1       64       bidirectional
    [Tags]    ovs-kernel    64B    bidirectional
Docker bridge, 64 B, both directions             docker-bridge     1       64       bidirectional
    [Tags]    docker-bridge    64B    bidirectional
Docker default, 64 B, both directions            docker-default    1       64       bidirectional
    [Tags]    docker-default    64B    bidirectional
Docker MACVLAN, 64 B, both directions            docker-macvlan    1       64       bidirectional
    [Tags]    docker-macvlan    64B    bidirectional
Docker overlay, 64 B, 3 pods, both directions    docker-overlay    3       64       bidirectional
    [Tags]    docker-overlay    64B    bidirectional
Podman bridge, 64 B, both directions             podman-bridge     1       64       bidirectional
    [Tags]    podman-bridge    64B    bidirectional
Service, 64 B, both directions                   service           1       64       bidirectional
    [Tags]    service    64B    bidirectional
Policy, 64 B, both directions                    routed-policy     1       64       bidirectional
    [Tags]    routed-policy    64B    bidirectional
Linux bridge, 64 B, 2 pods                       linux-bridge      2       64
    [Tags]    linux-bridge    64B
PTP, 64 B, 2 pods                                ptp               2       64
    [Tags]    ptp    64B
MACVLAN, 64 B, 2 pods                            macvlan           2       64
    [Tags]    macvlan    64B
Routed, 64 B, 2 pods                             routed            2       64
    [Tags]    routed    64B
IPIP, 64 B, 2 pods                               ipip              2       64
    [Tags]    ipip    64B
Docker, 64 B, 2 pods                             docker            2       64
    [Tags]    docker    64B
IPVLAN, 64 B, 2 pods                             ipvlan            2       64
    [Tags]    ipvlan    64B
OVS kernel, 64 B, 2 pods                         ovs-kernel        2       64
    [Tags]    ovs-kernel    64B
Docker bridge, 64 B, 2 pods                      docker-bridge     2       64
    [Tags]    docker-bridge    64B
Docker default, 64 B, 2 pods                     docker-default    2       64
    [Tags]    docker-default    64B
Docker MACVLAN, 64 B, 2 pods                     docker-macvlan    2       64
    [Tags]    docker-macvlan    64B
Docker overlay, 64 B, 4 pods                     docker-overlay    4       64
    [Tags]    docker-overlay    64B
Podman bridge, 64 B, 2 pods                      podman-bridge     2       64
    [Tags]    podman-bridge    64B
Service, 64 B, 2 pods                            service           2       64
    [Tags]    service    64B
Policy, 64 B, 2 pods                             routed-policy     2       64
    [Tags]    routed-policy    64B
Linux bridge, 1518 B, 2 pods                     linux-bridge      2       1518
    [Tags]    linux-bridge    1518B
PTP, 1518 B, 2 pods                              ptp               2       1518
    [Tags]    ptp    1518B
MACVLAN, 1518 B, 2 pods                          macvlan           2       1518
    [Tags]    macvlan    1518B
Routed, 1518 B, 2 pods                           routed            2       1518
    [Tags]    routed    1518B
IPIP, 1518 B, 2 pods                             ipip              2       1518
    [Tags]    ipip    1518B
Docker, 1518 B, 2 pods                           docker            2       1518
    [Tags]    docker    1518B
IPVLAN, 1518 B, 2 pods                           ipvlan            2       1518
    [Tags]    ipvlan    1518B
OVS kernel, 1518 B, 2 pods                       ovs-kernel        2       1518
    [Tags]    ovs-kernel    1518B
Docker bridge, 1518 B, 2 pods                    docker-bridge     2       1518
    [Tags]    docker-bridge    1518B
Docker default, 1518 B, 2 pods                   docker-default    2       1518
    [Tags]    docker-default    1518B
Docker MACVLAN, 1518 B, 2 pods                   docker-macvlan    2       1518
    [Tags]    docker-macvlan    1518B
Docker overlay, 1518 B, 4 pods                   docker-overlay    4       1518
    [Tags]    docker-overlay    1518B
Podman bridge, 1518 B, 2 pods                    podman-bridge     2       1518
    [Tags]    podman-bridge    1518B
Service, 1518 B, 2 pods                          service           2       1518
    [Tags]    service    1518B
Policy, 1518 B, 2 pods                           routed-policy     2       1518
    [Tags]    routed-policy    1518B
