"""Verdicts as test cases in JUnit's format, which CI servers show in their table of tests. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from podperf.printable import printable


@dataclass(frozen=True)
class Case:
    """One verdict. `outcome` is `failure` if it is bad, and `skipped` if nothing is decided."""

    suite: str
    name: str
    verdict: str
    words: str
    outcome: Literal["passed", "failure", "skipped"]


def xunit(name: str, cases: Sequence[Case]) -> bytes:
    """The file. Its test suite has this name."""
    outcomes = [case.outcome for case in cases]
    numbers = {"tests": len(cases), "failures": outcomes.count("failure"), "skipped": outcomes.count("skipped")}
    suite = ElementTree.Element("testsuite", name=printable(name), errors="0")
    suite.attrib |= {key: str(number) for key, number in numbers.items()}
    for case in cases:
        words = printable(f"{case.verdict}: {case.words}" if case.words else case.verdict)
        element = ElementTree.SubElement(
            suite, "testcase", classname=printable(case.suite), name=printable(case.name), time="0"
        )
        if case.outcome == "passed":
            ElementTree.SubElement(element, "system-out").text = words
        else:
            ElementTree.SubElement(element, case.outcome, message=words, type=case.verdict)
    ElementTree.indent(suite)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode").encode()
