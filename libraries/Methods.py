"""Keyword library: the methods beside MRR and the search for NDR and PDR."""

from __future__ import annotations

from typing import Any

from robot.api import logger
from robot.api.deco import keyword, library

from podperf import __version__
from podperf.errors import PodperfError
from podperf.figures import phase_words
from podperf.methods import METHODS
from podperf.methods.base import FurtherMethod
from podperf.methods.many_pairs import ManyPairs
from podperf.methods.reconfiguration import Reconfiguration
from Testbed import open_run, tell_verdict


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
    def measure_by_method(self, method: str, amount: float | None = None) -> None:
        """Measure by the method of this name, such as `loss_curve`. The search for NDR and PDR goes first if need be.

        `amount` says how long or how often. By default, the topology's preset says it.
        """
        if method not in METHODS:
            raise PodperfError(f"there is no method {method!r}; choose one of: {', '.join(METHODS)}")
        self._measure(METHODS[method], amount)

    def _measure(self, method: type[FurtherMethod[Any]], amount: float | None, **choices: Any) -> None:
        result = open_run().measurement.by(method, amount, **choices)
        if result is None:
            logger.warn(f"{phase_words(method.name)} is not measured: the search found no load that passes")
            return
        for name, reason in result.as_record().get("missing", {}).items():
            logger.warn(f"{name} {reason}")
        for line in result.said:
            logger.info(line)

    @keyword
    def measure_loss_curve(self) -> None:
        """Measure the loss ratio at falling loads, from the tester's maximum down (RFC 2544 section 26.3).

        Loads fall in steps of 10 % of the maximum, and of 1 % of it below 10 %. A load has trials until two of them
        agree on whether frames are lost. The curve ends after two loads in a row without loss.
        """
        self.measure_by_method("loss_curve")

    @keyword
    def measure_back_to_back_frames(self) -> None:
        """Search for the longest burst of which no frame is lost, several times (RFC 9004).

        The buffer time needs the throughput. So the search for NDR and PDR goes first, unless the test has made it. If
        the tester sends no bursts, the test is skipped.
        """
        self.measure_by_method("back_to_back")

    @keyword
    def measure_latency_by_load(self) -> None:
        """Measure the latency at 10, 50 and 90 % of the PDR and at the NDR.

        The search for NDR and PDR goes first, unless the test has made it. If the preset seeks no PDR, the shares are
        those of the NDR.
        """
        self.measure_by_method("latency_by_load")

    @keyword
    def measure_system_recovery(self) -> None:
        """Measure for how long frames are still lost after an overload of 110 % of the NDR (RFC 2544 section 26.5).

        The search for NDR and PDR goes first, unless the test has made it. If the tester cannot lower its load within a
        trial, the test is skipped. If frames are lost at half the load without an overload, too, there is no figure.
        """
        self.measure_by_method("system_recovery")

    @keyword
    def measure_reconfiguration(self, change: str = "", pairs: int | None = None) -> None:
        """Make one change in the middle of a trial, and measure what it costs: frames, and time until the rate is back.

        `change` is the name of a change that the chain offers, and by default the first one. `docs/methods.md` lists
        them. Without such a change, the test is skipped. The load is half the NDR, so the search for NDR and PDR goes
        first, unless the test has made it. A trial without a change goes before each trial with the change. `pairs` is
        the number of such pairs of trials, and 6 by default.
        """
        self._measure(Reconfiguration, pairs, change=change)

    @keyword
    def measure_repeated_instantiation(self, set_ups: int | None = None) -> None:
        """Set the chain up again and again, and measure its set-up time and its rate each time.

        `set_ups` is 2 or more, and 20 by default. No chain is left at the end.
        """
        self.measure_by_method("repeated_instantiation", set_ups)

    @keyword
    def measure_soak(self, hours: float | None = None) -> None:
        """Load the chain at 90 % of the NDR for `hours`, and bound its loss. Watch the memory of its processes.

        By default, the preset has the duration: a minute with `quick`, and six hours with all others. The search for
        NDR and PDR goes first, unless the test has made it.
        """
        if hours is not None and hours <= 0:
            raise PodperfError(f"a soak takes more than 0 hours, not {hours:g}")
        self.measure_by_method("soak", None if hours is None else hours * 3600)

    @keyword
    def measure_application_traffic(self, runs: int | None = None) -> None:
        """Measure TCP streams by iperf3, and requests by netperf, between the tester's ports.

        `runs` is the number of runs of each kind, and 6 by default. The figures are none of RFC 2544. The chain carries
        no test frames afterwards, so measure its rates before. The test is skipped without iperf3, if podperf has not
        made the ports, and for a data plane in user space.
        """
        self.measure_by_method("application_traffic", runs)

    @keyword
    def measure_many_pairs(self, most: int | None = None, first: int = 1, to_the_end: bool = False) -> None:
        """Measure many pairs of pods that send at the same time: the rate of each pair, their sum, and the fairness.

        There are `first` pairs, then twice as many, up to `most` of them (16 by default). The ramp ends earlier when
        the sum has not grown in two steps, unless it is to go `to_the_end`. If the tester's ports are no pods of a
        cluster, the test is skipped.
        """
        self._measure(ManyPairs, most, first=first, to_the_end=to_the_end)

    @keyword
    def figures_should_hold(self) -> None:
        """Compare the figures with those thresholds of the topology that are for the methods of this test.

        Fails if a threshold is missed. Without such a threshold, the test's message says so.
        """
        measurement = open_run().measurement
        measurement.drop_thresholds_of_other_methods()
        tell_verdict(measurement.judge())
