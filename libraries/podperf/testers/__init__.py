"""Testers send and receive the test traffic.

A new tester is one file and one line here, or an entry point of another package.
"""

from __future__ import annotations

from podperf.testers.base import TesterKind
from podperf.testers.software import SoftwareTester
from podperf.testers.trex import TrexTester
from podperf.third_party import with_third_party

_OWN: dict[str, TesterKind] = {"software": SoftwareTester, "trex": TrexTester}
_ABOVE = {"kubernetes": "podperf.kubernetes.tester:KubernetesTester"}
TESTERS = with_third_party("podperf.testers", _OWN, _ABOVE)  # by `tester.type` of a topology
