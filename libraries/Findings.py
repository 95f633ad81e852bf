"""Keyword library: measures chains by turns, and judges claims of the draft and of others."""

from __future__ import annotations

from robot.api import logger
from robot.api.deco import keyword, library
from robot.libraries.BuiltIn import BuiltIn

from podperf import __version__
from podperf.experiments.claims import claim_of
from Testbed import open_run, running_test


@library(scope="GLOBAL", version=__version__, doc_format="MARKDOWN")
class Findings:
    """Measures the chains that a claim compares, in interleaved rounds, and judges the claim.

    ```robotframework
    *** Test Cases ***
    MACVLAN Over Linux Bridge
        Measure And Judge    chains    macvlan    linux-bridge    1    64    difference=5
    Longer Chains
        Measure And Judge    lengths    macvlan    1    2    4    frame=64
    Published Rows
        Measure And Judge    published figures    appendix_c_multi_pod    1518    vpp-memif S1    OVS-DPDK S1
    ```

    `resources/finding.resource` has a sentence for each kind of claim. `docs/findings.md` explains kinds and verdicts.
    """

    @keyword
    def measure_and_judge(self, kind: str, *columns: str, **settings: str) -> None:
        """Measure the contenders of a claim of this `kind` by turns, and judge the claim.

        The kinds are `chains`, `lengths`, `joins`, `placements`, `isolation`, `hugepages`, `reserved hugepages`,
        `service density`, `published figures`, `published statement` and `published sizes`. `docs/findings.md` has the
        `columns` and `settings` of each. A setting `documentation` has the words of the claim, its source and caveats.

        The verdict (confirmed, refuted or inconclusive) becomes the test's message. No verdict fails the test, because
        a wrong claim is no fault of the testbed. If the testbed cannot set a contender up, the test is skipped with the
        reason.
        """
        finding = open_run().compare(running_test(), claim_of(kind, *columns, **settings))
        logger.info(f"{finding.claim!r} ({finding.source or 'podperf expects it'}): {finding.detail}")
        BuiltIn().set_test_message(f"{finding.verdict}: {finding.detail}")
