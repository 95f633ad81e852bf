"""Testers send and receive the test traffic."""

from __future__ import annotations

from collections.abc import Mapping

from podperf.testers.base import TesterKind
from podperf.testers.software import SoftwareTester
from podperf.testers.trex import TrexTester

TESTERS: Mapping[str, TesterKind] = {"software": SoftwareTester, "trex": TrexTester}  # by tester.type of a topology
