"""Keyword library: measures the chain that is set up, and judges the figures."""

from __future__ import annotations

from robot.api import logger
from robot.api.deco import keyword, library

from podperf import __version__
from podperf.figures import kpps, percent
from Testbed import open_run, tell_verdict


@library(scope="GLOBAL", version=__version__, doc_format="MARKDOWN")
class Traffic:
    """Measurements of the chain that `Set Up Chain` of the library `Testbed` has built.

    ```robotframework
    *** Test Cases ***
    Linux Bridge
        Set Up Chain    linux-bridge    pods=1    frame=64
        Measure Maximum Receive Rate
        Search For NDR And PDR
        Thresholds Should Hold
    ```

    Rates are frames per second and per direction. Every trial is in the test's record when it ends.
    """

    @keyword
    def measure_maximum_receive_rate(self) -> float:
        """Send as fast as the tester can, and count the frames that come back (MRR). Returns the median in frames/s.

        The topology gives the number and duration of the trials.
        """
        result = open_run().measurement.mrr()
        logger.info(
            f"MRR {result.metrics['mrr'].bounded(kpps(result.rate))} kpps, {min(result.rates) / 1e3:,.0f} to "
            f"{max(result.rates) / 1e3:,.0f} in {len(result.trials)} trials, loss {percent(result.loss_ratio)}"
        )
        return result.rate

    @keyword("Search For NDR And PDR")
    def search_for_ndr_and_pdr(self) -> None:
        """Find the non-drop rate and the partial drop rate in one search (MLRsearch, RFC 9971), then the latency.

        The topology names the preset, which has the goals of the search. Latency and the CPU time of a frame are
        measured at half the PDR, or at half the NDR if the preset seeks no PDR.
        """
        result = open_run().measurement.ndr_and_pdr()
        for goal in result.goals:
            logger.info(goal.statement)
        for name, reason in result.missing.items():
            logger.warn(f"{name} {reason}")
        if result.incomplete and not result.missing:
            logger.warn(result.incomplete)
        latency = open_run().measurement.latency()
        if latency is None:
            logger.warn("latency is not measured: the search found no load that the system under test carries")
        for name, reason in latency.missing.items() if latency else ():
            logger.warn(f"{name} {reason}")
        open_run().measurement.cpu_time()

    @keyword
    def measure_chain(self) -> None:
        """Measure rates, latency and CPU time of the chain, or on a counted machine its cost.

        Calls `Measure Maximum Receive Rate` and `Search For NDR And PDR`, or on a counted machine `Measure Cost`.
        """
        if open_run().session.topology.counts_instructions:
            self.measure_cost()
        else:
            self.measure_maximum_receive_rate()
            self.search_for_ndr_and_pdr()

    @keyword
    def measure_cost(self) -> float:
        """Count the instructions that a frame takes, less those of the bare path.

        Returns the count with one frame in flight. The chain is built several times, and taken down after each time.
        If the testbed is not a counted machine, the test is skipped.
        """
        result = open_run().measurement.cost()
        for burst, reason in result.missing.items():
            logger.warn(f"no cost with {burst} frames in flight: {reason}")
        return result.cost(1)

    @keyword
    def thresholds_should_hold(self) -> None:
        """Compare the figures with the thresholds of the topology.

        Fails if a threshold is missed. If there is nothing to judge (no threshold, no baseline, a result that the
        tester limited), the test's message says so, and the test does not fail.
        """
        tell_verdict(open_run().measurement.judge())
