"""Keyword library: the methods beside MRR and the search for NDR and PDR."""

from __future__ import annotations

from robot.api import logger
from robot.api.deco import keyword, library
from robot.libraries.BuiltIn import BuiltIn

from podperf import __version__
from podperf.errors import PodperfError
from podperf.figures import kpps, microseconds, number, percent
from podperf.methods.soak import is_flat
from podperf.run import FurtherMethods, repeat_instantiation, soak
from podperf.verdicts.thresholds import Status
from Testbed import open_run


@library(scope="GLOBAL", version=__version__, doc_format="MARKDOWN")
class Methods:
    """Methods that say more of a chain than its throughput: the standards have each of them beside throughput.

    `Set Up Chain` of the library `Testbed` builds the chain. The topology's search preset gives the length of all
    trials: with `quick` they are short, and with all others as long as the standards want them.

    ```robotframework
    *** Test Cases ***
    Loss Curve Of Linux Bridge
        Set Up Chain    linux-bridge    pods=1    frame=64
        Measure Loss Curve
        Figures Should Hold
    ```
    """

    @keyword
    def measure_loss_curve(self) -> None:
        """Measure the loss ratio at falling loads, from the tester's maximum down (RFC 2544 section 26.3).

        Loads fall in steps of 10 % of the maximum, and of 1 % of it below 10 %. The curve ends after two trials in a
        row without loss.
        """
        for each in _methods().loss_curve().points:
            logger.info(f"{kpps(each.load)} kpps ({percent(each.share)}): loss {percent(each.trial.loss_ratio)}")

    @keyword
    def measure_back_to_back_frames(self) -> None:
        """Search for the longest burst of which no frame is lost, several times (RFC 9004).

        The buffer time needs the throughput. So the search for NDR and PDR goes first, unless the test has made it. If
        the tester sends no bursts, the test is skipped.
        """
        result = _methods().back_to_back()
        logger.info(f"bursts without loss: {', '.join(map(str, result.lengths))} frames")
        if result.buffer_time is None:
            logger.warn("no buffer time: the longest burst came through, or no throughput below their rate was found")

    @keyword
    def measure_latency_by_load(self) -> None:
        """Measure the latency at 10, 50 and 90 % of the PDR and at the NDR.

        The search for NDR and PDR goes first, unless the test has made it. If the preset seeks no PDR, the shares are
        those of the NDR.
        """
        result = _methods().latency_by_load()
        if result is None:
            logger.warn("latency is not measured: the search found no load that the system under test carries")
            return
        for each in result.by_load:
            if each.latency is not None:
                median, most = (microseconds(each.latency.percentile(percent)) for percent in (50, 99))
                logger.info(f"{each.statement}: p50 {median} us, p99 {most} us")

    @keyword
    def measure_system_recovery(self) -> None:
        """Measure for how long frames are still lost after an overload of 110 % of the NDR (RFC 2544 section 26.5).

        The search for NDR and PDR goes first, unless the test has made it. If the tester cannot lower its load within a
        trial, the test is skipped.
        """
        result = _methods().system_recovery()
        if result is None:
            logger.warn("system recovery is not measured: the search found no load without loss")
            return
        for name, reason in result.missing.items():
            logger.warn(f"{name} {reason}")
        for each in result.recoveries:
            logger.info(f"{number(each.seconds * 1e3)} ms, {each.lost} frames lost")

    @keyword
    def measure_repeated_instantiation(self, set_ups: int | None = None) -> None:
        """Set the chain up again and again, and measure its set-up time and its rate each time.

        `set_ups` is 2 or more, and 20 by default. No chain is left at the end.
        """
        if set_ups is not None and set_ups < 2:
            raise PodperfError(f"a variation needs 2 or more set-ups, not {set_ups}")
        result = repeat_instantiation(open_run().measurement, set_ups)
        for each in result.instances:
            logger.info(f"set up in {number(each.seconds)} s, {kpps(each.rate)} kpps")

    @keyword
    def measure_soak(self, hours: float | None = None) -> None:
        """Load the chain at 90 % of the NDR for `hours`, and bound its loss. Watch the memory of its processes.

        By default, the preset has the duration: a minute with `quick`, and six hours with all others. The search for
        NDR and PDR goes first, unless the test has made it.
        """
        if hours is not None and hours <= 0:
            raise PodperfError(f"a soak takes more than 0 hours, not {hours:g}")
        result = soak(open_run().measurement, None if hours is None else hours * 3600)
        if result is None:
            logger.warn("nothing is soaked: the search found no load without loss")
            return
        logger.info(
            f"{result.lost} of {result.sent:,} frames lost in {len(result.intervals)} intervals: at most "
            f"{percent(result.loss_bound)} with 95 % confidence"
        )
        for name, amounts in result.series.items():
            words = "flat" if is_flat(amounts) else "growing"
            logger.info(f"{name}: {amounts[0] >> 10:,} KiB to {amounts[-1] >> 10:,} KiB, {words}")

    @keyword
    def figures_should_hold(self) -> None:
        """Compare the figures with those thresholds of the topology that are for the methods of this test.

        Fails if a threshold is missed. Without such a threshold, the test's message says so.
        """
        verdict = _methods().judge()
        if verdict.failed:
            raise AssertionError(verdict.sentence)
        logger.info(verdict.sentence)
        if verdict.status is not Status.PASSED:
            BuiltIn().set_test_message(verdict.sentence)


def _methods() -> FurtherMethods:
    return FurtherMethods(open_run().measurement)
