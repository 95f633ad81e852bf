*** Settings ***
Documentation     Benchmarks of container networking, one suite for each section of
...               draft-dcn-bmwg-containerized-infra-10. The variable TOPOLOGY names the file of the testbed.

Name              podperf

Library           ../libraries/Testbed.py

Suite Setup       Open Testbed    ${TOPOLOGY}    ${PASSWORD}    ${VERSION UNDER TEST}
Suite Teardown    Close Testbed


*** Variables ***
${TOPOLOGY}              ${CURDIR}/../topologies/local.yaml
# What is measured, in the user's words: `podperf run --version-under-test` sets it.
${VERSION UNDER TEST}    ${None}
# Offered to machines behind SSH of which the topology says so (`login: password`).
${PASSWORD: Secret}      %{PODPERF_SSH_PASSWORD=}
