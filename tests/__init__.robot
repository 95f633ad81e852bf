*** Settings ***
Documentation     Benchmarks of container networking, one suite for each section of
...               draft-dcn-bmwg-containerized-infra-10. The variable TOPOLOGY names the file of the testbed.

Name              podperf

Library           RequestsLibrary
Library           ../libraries/Testbed.py
Library           ../libraries/ResultsServer.py

Suite Setup       Open Testbed    ${TOPOLOGY}    ${PASSWORD}    ${VERSION UNDER TEST}
Suite Teardown    Publish Results And Close Testbed


*** Variables ***
${TOPOLOGY}                 ${CURDIR}/../topologies/local.yaml
# What is measured, in the user's words: `podperf run --version-under-test` sets it.
${VERSION UNDER TEST}       ${None}
# Offered to machines behind SSH of which the topology says so (`login: password`).
${PASSWORD: Secret}         %{PODPERF_SSH_PASSWORD=}
# To which the records of the run are posted: by default the server that the topology names, if it names one.
${RESULTS SERVER}           ${None}
${RESULTS TOKEN: Secret}    %{PODPERF_RESULTS_TOKEN=}


*** Keywords ***
Publish Results And Close Testbed
    [Documentation]    A server that refuses the records is a warning: the results are on the disk.
    TRY
        Publish Results    ${RESULTS SERVER}    ${RESULTS TOKEN}
    EXCEPT    AS    ${reason}
        Log    ${reason}    WARN
    END
    [Teardown]    Close Testbed
