"""Keyword library: compares claims of the draft and of others with measurements."""

from __future__ import annotations

from robot.api.deco import keyword, library

from podperf import __version__
from podperf.model import Chain, PageSize
from podperf.testbed.neighbour import NeighbourKind
from podperf.testbed.scenarios import CpuIsolation
from podperf.verdicts.claims import claim_named
from podperf.verdicts.density_claim import LAYOUTS, DensityClaim
from podperf.verdicts.hugepages_claim import HugepagesClaim
from podperf.verdicts.isolation_claim import IsolationClaim
from podperf.verdicts.placement_claims import placement_claim_named
from Testbed import measure_and_judge


@library(scope="GLOBAL", version=__version__, doc_format="MARKDOWN")
class Findings:
    """Measures the chains that a claim compares, in interleaved rounds, and judges the claim.

    ```robotframework
    *** Test Cases ***
    MACVLAN Over Linux Bridge
        Measure And Judge Claim    macvlan-over-bridge
    ```

    The table `libraries/podperf/verdicts/claims.py` has all claims, each with its source. `docs/findings.md` explains
    the verdicts.
    """

    @keyword
    def measure_and_judge_claim(self, claim: str) -> None:
        """Set up the chains of the `claim` by turns, measure each in every round, and judge.

        The verdict (confirmed, refuted or inconclusive) becomes the test's message. No verdict fails the test, because
        a wrong claim is no fault of the testbed. If the testbed cannot run a chain, the test is skipped.
        """
        measure_and_judge(claim_named(claim))

    @keyword
    def measure_and_judge_isolation(self, data_plane: str, neighbour: NeighbourKind, *levels: CpuIsolation) -> None:
        """Measure a pod on a CPU of its own and at other isolation `levels`, alone and beside a `neighbour`, by turns.

        Levels are `SHARED` and `NONE`. Name the one first that should forward more beside the neighbour. A neighbour is
        `BUSY`, a `MEMORY_HOG` or another `CHAIN` under load. `docs/noisy-neighbours.md` explains them.

        The verdict becomes the test's message and does not fail the test. If the testbed cannot have one of the levels,
        the test is skipped with the reason.
        """
        measure_and_judge(IsolationClaim(data_plane, neighbour, (CpuIsolation.EXCLUSIVE, *levels)))

    @keyword
    def measure_and_judge_placement(self, claim: str) -> None:
        """Measure a chain with several placements and allocations of CPUs and memory by turns, and judge the `claim`.

        The table `libraries/podperf/verdicts/placement_claims.py` has all of these claims. `docs/cpus-and-memory.md`
        explains them.

        The verdict becomes the test's message and does not fail the test. If the testbed cannot have one of the
        allocations, the test is skipped with the reason.
        """
        measure_and_judge(placement_claim_named(claim))

    @keyword
    def measure_and_judge_hugepages(self, data_plane: str, pods: int, *sizes: PageSize) -> None:
        """Measure a chain whose pods and switch have their memory in pages of these `sizes`, by turns.

        Sizes are `NONE` (ordinary pages), `TWO_MIB` and `ONE_GIB`. Name the one first that should forward more.
        `docs/hugepages.md` explains what is configured and read back.

        The verdict becomes the test's message and does not fail the test. If the worker cannot give such pages, the
        test is skipped with the remedy.
        """
        measure_and_judge(HugepagesClaim(Chain(data_plane, pods), sizes))

    @keyword
    def measure_and_judge_hugepages_of_control(self, data_plane: str, pods: int, *sizes: PageSize) -> None:
        """Measure a chain whose pods forward in the kernel, while pages of these `sizes` are reserved, by turns.

        The rates should not differ. The interval shows how small a difference the testbed can see.
        """
        measure_and_judge(HugepagesClaim(Chain(data_plane, pods), sizes, control=True))

    @keyword
    def measure_and_judge_service_density(self, data_plane: str, *layouts: str) -> None:
        """Measure chains of a data plane beside each other on the same ports, by turns: do all have the same rate?

        The `layouts` are by default 1x1, 2x1, 1x2, 2x2 and 4x1: chains, and pods in each chain. In `2x2-common`, two
        chains have their last pod in common. `docs/service-density.md` explains the figures.

        The verdict becomes the test's message and does not fail the test. If the testbed cannot have one of the
        layouts, or if its tester cannot tell the frames of the chains apart, the test is skipped with the reason.
        """
        measure_and_judge(DensityClaim(data_plane, layouts or LAYOUTS))
