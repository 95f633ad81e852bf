"""Keyword library: claims of the draft and of others, held against measurements."""

from __future__ import annotations

from robot.api.deco import keyword, library

from podperf import __version__
from podperf.verdicts.claims import claim_named
from Testbed import measure_and_judge


@library(scope="GLOBAL", version=__version__, doc_format="MARKDOWN")
class Findings:
    """Measures the chains that a claim compares, in interleaved rounds, and judges the claim.

    ```robotframework
    *** Test Cases ***
    MACVLAN Over Linux Bridge
        Measure And Judge Claim    macvlan-over-bridge
    ```

    The claims are a table in `libraries/podperf/verdicts/claims.py`, which says of each who makes it. How a verdict
    comes about is told in `docs/findings.md`.
    """

    @keyword
    def measure_and_judge_claim(self, claim: str) -> None:
        """Set up the chains of the `claim` by turns, measure each in every round, and judge.

        The verdict (confirmed, refuted or inconclusive) becomes the test's message. None of them fails the test: a
        draft that errs is no fault of the testbed. Skipped, with the reason, when the testbed cannot offer a chain.
        """
        measure_and_judge(claim_named(claim))
