"""The properties of each test case in xunit.xml, and verdicts as test cases."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

import made_up
from podperf.experiments.claim import Finding
from podperf.records import TestRecord
from podperf.report.xunit import Case, xunit
from run_command.listeners import XunitProperties

SUITE = "4.1 networking models.4.1.1 kernel space"
XUNIT = f"""<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="podperf" tests="4"><testsuite name="4.1.1 kernel space" tests="4">
<testcase classname="{SUITE}" name="Linux bridge, 64 B" time="20"/>
<testcase classname="{SUITE}" name="ipvlan, 64 B" time="0"><skipped message="no" type="SkipExecution"/></testcase>
<testcase classname="{SUITE}" name="Order" time="9"><failure message="x" type="AssertionError"/></testcase>
<testcase classname="{SUITE}" name="Not begun" time="0"/>
</testsuite></testsuite>
"""


def written(folder: Path) -> dict[str, ElementTree.Element]:
    """The test cases of that file, with the properties that the records beside it have."""
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    record.version_under_test = "6.12 <rc>"
    made_up.write(folder, record, trials)
    made_up.write(folder, made_up.skipped_record("ipvlan", "the kernel has no ipvlan"))
    finding = Finding("a is faster than b", "refuted", "b is 3 % faster")
    made_up.write(folder, TestRecord("f", "Order", SUITE, ["sec-4.1"], 0, 1, "passed", findings=[finding]))
    (folder / "records" / "damaged.json").write_text("{")
    (folder / "xunit.xml").write_text(XUNIT)
    XunitProperties(folder).xunit_file(folder / "xunit.xml")
    cases = ElementTree.parse(folder / "xunit.xml").iter("testcase")
    return {str(each.get("name")): each for each in cases}


def properties(case: ElementTree.Element) -> dict[str, str]:
    return {str(each.get("name")): str(each.get("value")) for each in case.iterfind("properties/property")}


def test_rates_intervals_and_the_verdict_are_properties(tmp_path: Path) -> None:
    found = properties(written(tmp_path)["Linux bridge, 64 B"])
    assert found["verdict"] == "passed"
    assert found["version_under_test"] == "6.12 <rc>"
    assert float(found["mrr_low_frames_per_second"]) <= float(found["mrr_frames_per_second"])
    assert float(found["mrr_frames_per_second"]) <= float(found["mrr_high_frames_per_second"])
    assert found["latency_p99_nanoseconds"] == "96000.0"
    assert (tmp_path / found["record"]).is_file()


def test_what_is_known_of_a_test_without_figures_is_a_property_too(tmp_path: Path) -> None:
    cases = written(tmp_path)
    assert properties(cases["ipvlan, 64 B"])["why"] == "the kernel has no ipvlan"
    assert properties(cases["Order"])["finding_1"] == "refuted: a is faster than b: b is 3 % faster"
    assert properties(cases["Not begun"]) == {}


def test_the_properties_stand_before_the_outcome(tmp_path: Path) -> None:
    assert [each.tag for each in written(tmp_path)["Order"]] == ["properties", "failure"]
    assert [each.tag for each in written(tmp_path)["Not begun"]] == []


def test_a_bound_says_that_it_is_one(tmp_path: Path) -> None:
    made_up.write(tmp_path, *made_up.forwarding_record("linux-bridge", 9e6))
    (tmp_path / "xunit.xml").write_text(XUNIT)
    XunitProperties(tmp_path).xunit_file(tmp_path / "xunit.xml")
    (found,) = (each for each in ElementTree.parse(tmp_path / "xunit.xml").iter("testcase") if properties(each))
    assert properties(found)["mrr_is"] == "lower bound"


@given(st.text())
def test_a_verdict_is_a_test_case_whatever_its_words_are(text: str) -> None:
    (case,) = ElementTree.fromstring(xunit(text, [Case(text, text, "slower", text, "failure")]))
    assert [each.tag for each in case] == ["failure"]
