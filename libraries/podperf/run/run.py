"""One run of the suites on one testbed. The keyword libraries share it. It uses nothing of Robot Framework."""

from __future__ import annotations

from collections.abc import Sequence

from podperf.comparisons import ComparisonOutcome, VariantComparison
from podperf.errors import Unavailable
from podperf.model import Chain, Direction, FrameSize, TrafficProfile
from podperf.run.comparison import compare
from podperf.run.ending import give_back, reports
from podperf.run.expected import expected_seconds
from podperf.run.identity import TestIdentity, chain_record, way
from podperf.run.set_up import set_up
from podperf.run.test_in_progress import TestInProgress
from podperf.run.test_sequence import TestSequence
from podperf.run.variant_costs import VariantCosts
from podperf.run.variant_rounds import VariantRounds
from podperf.verdicts.findings import Finding, Order


class Run(TestSequence):
    """The tests of a run, one after the other. `close` writes the reports."""

    def open(self) -> None:
        """Take the machines. See `Session.open`."""
        self.session.open()

    def close(self) -> str:
        """Give the machine back and write the reports. Returns the summary table and the paths of the reports."""
        said = [*give_back(self.session), *self.lost]
        return "\n\n".join([*reports(self.session), *said])

    def plan(self, tests: Sequence[TestIdentity]) -> None:
        """Show how long the run may take. `tests` are all tests of the run, in their order."""
        self.progress.run_begins(expected_seconds(self.session, tests))

    def begin_test(
        self,
        identity: TestIdentity,
        chain: Chain,
        frame: FrameSize,
        directions: tuple[Direction, ...] | None = None,
        flows: int | None = None,
    ) -> None:
        """Open the record of a test, build its chain, and check that frames cross it."""
        traffic = self._traffic(frame, directions, flows)
        test = self._begin(chain_record(identity, self.session.topology, chain, traffic), traffic)
        self._measurement = set_up(test, chain, traffic, self.session, self.kept)

    def compare(self, identity: TestIdentity, order: Order) -> Finding:
        """Measure the contenders of an order by turns, in a separate test, and judge the order.

        Raises Unavailable before any measurement if the testbed cannot set a contender up.
        """
        traffics = {str(each): self._traffic(each.frame, flows=each.flows) for each in order.contenders}
        frames = "-".join(dict.fromkeys(each.frame.name for each in order.contenders))
        usual = traffics[str(order.contenders[0])]
        test = self._begin(identity.record(order.name, frames, way(usual)), usual)
        return compare(test, order, traffics, self.session.equipment, self.kept.limits)

    def compare_variants(self, identity: TestIdentity, comparison: VariantComparison) -> ComparisonOutcome:
        """Measure the variants of a comparison in a separate test: by turns, or on a counted machine each in this boot.

        Raises Unavailable before any measurement if the testbed cannot set a variant up.
        """
        if comparison.machines_of_their_own:
            raise Unavailable(
                f"variants have topologies of their own: ./podperf compare {comparison.path} measures them"
            )
        if self.session.topology.counts_instructions:
            return self.begin_costs(identity, comparison).measure()
        return self.begin_rounds(identity, comparison).measure()

    def begin_rounds(self, identity: TestIdentity, comparison: VariantComparison) -> VariantRounds:
        """Open the record of a test that measures variants by turns."""
        return VariantRounds(*self._begin_variants(identity, comparison), self.session, self.kept)

    def begin_costs(self, identity: TestIdentity, comparison: VariantComparison, *words: str) -> VariantCosts:
        """Open the record of a test of variants on a counted machine. `words` are parts of the record's name."""
        return VariantCosts(*self._begin_variants(identity, comparison, *words), self.session, self.kept)

    def _begin_variants(
        self, identity: TestIdentity, comparison: VariantComparison, *words: str
    ) -> tuple[TestInProgress, VariantComparison, TrafficProfile]:
        traffic = self._traffic(comparison.frame, comparison.directions, comparison.flows)
        record = identity.record(comparison.name, *words, traffic.frame.name, way(traffic))
        return self._begin(record, traffic), comparison, traffic
