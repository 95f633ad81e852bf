"""Keyword library: compares variants that users write, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from robot.api import logger
from robot.api.deco import keyword, library
from robot.libraries.BuiltIn import BuiltIn

from podperf import __version__
from podperf.experiments.before_after import VariantVerdict
from podperf.experiments.comparison import ComparisonOutcome
from podperf.experiments.comparison_files import load_comparison
from podperf.experiments.host_share import ClusterWay
from podperf.frames import AddressFamily
from podperf.printable import printable
from podperf.report.comparison_page import drawings, write_comparison
from Testbed import frame_size, open_run, running_test, tell_verdict


@library(scope="GLOBAL", version=__version__, doc_format="MARKDOWN")
class Comparisons:
    """Measures the variants of a comparison file by turns, and compares each of them with the first one.

    ```robotframework
    *** Test Cases ***
    Ten Rules In The Firewall
        Variants Should Not Be Slower    comparisons/firewall-rules.yaml
    ```

    `docs/compare.md` explains the file and the verdicts.
    """

    @keyword
    def variants_should_not_be_slower(self, comparison: Path) -> None:
        """Measure the variants of this `comparison` file on the testbed of the run.

        The verdict becomes the test's message. The test fails if a variant is slower than the first one, by more than
        the difference that counts. It does not fail if nothing is decided. If the testbed cannot set a variant up, the
        test is skipped. Variants with a topology of their own are measured by the command `podperf compare` only.

        The run's folder of results gets a page and a JSON document of the comparison.
        """
        result = _measure(comparison)
        if result.verdict is VariantVerdict.SLOWER:
            raise AssertionError(result.sentence)
        BuiltIn().set_test_message(result.sentence)

    @keyword
    def compare_variants(self, comparison: Path) -> None:
        """Measure the variants of this `comparison` file, as `Variants Should Not Be Slower` does.

        The verdict becomes the test's message. No verdict fails the test. So this is for a comparison of which nobody
        knows the result, such as one that repeats a published experiment.
        """
        BuiltIn().set_test_message(_measure(comparison).sentence)

    @keyword
    def measure_beside_host_network(
        self,
        tester_pods: Mapping[str, Any],
        frame: str = "64",
        flows: int | None = None,
        family: AddressFamily | None = None,
        metric: Literal["mrr", "ndr", "pdr"] = "mrr",
    ) -> None:
        """Measure between two pods of a cluster, by turns with pods in the networks of the same nodes.

        `tester_pods` is a value of `Pods Of The Tester On`. `frame`, `flows` and `family` are those of `Set Up Chain`.
        The figures are shares of the host network's figures, with their intervals: of the rate that `metric` names,
        and beside `mrr` of the CPU time a frame and of the round-trip time. Fails if a threshold on one of them is
        missed. The test is skipped if the cluster allows no pods in the networks of its nodes.
        """
        run, test = open_run(), running_test()
        way = ClusterWay(test.name, tester_pods, frame_size(frame), flows, family, metric, further=metric == "mrr")
        result = run.measure_host_share(test, way)
        for plot in drawings(result):
            logger.info(plot, html=True)
        tell_verdict(run.shared.baselines.judge(run.current.record))


def _measure(comparison: Path) -> ComparisonOutcome:
    """The result of a comparison file. Its page is in the run's folder of results, and its plots are in the log."""
    wanted, run = load_comparison(comparison), open_run()
    result = run.compare_variants(running_test(), wanted)
    page = write_comparison(result, run.session.results)
    for plot in drawings(result):
        logger.info(plot, html=True)
    logger.info(f"the page of this comparison: {printable(str(page))}")
    return result
