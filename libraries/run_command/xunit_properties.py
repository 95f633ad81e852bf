"""A listener that adds the figures of each test to `xunit.xml`, as properties of its test case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from podperf.errors import PodperfError
from podperf.metrics import METRICS
from podperf.records import Record, read_record, record_files
from podperf.records.files import replace_file
from podperf.report.results import caveats, explanation, verdict_word


class XunitProperties:
    """Used by `podperf run`. `results` is the folder of results, with the records."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, results: Path) -> None:
        self._results = results

    def xunit_file(self, path: Path) -> None:
        """Robot Framework's listener interface: the file is written."""
        found = {}
        for each in record_files(self._results / "records"):
            try:
                record = read_record(each, trials=False)
            except PodperfError:  # the report names it
                continue
            found[record["test"]["suite"], record["test"]["name"]] = (each.name, record)
        with suppress(OSError):  # the disk is full: Robot Framework's own file stays
            self._add(Path(path), found)

    @staticmethod
    def _add(path: Path, found: Mapping[tuple[str, str], tuple[str, Record]]) -> None:
        tree = ElementTree.parse(path)
        for case in tree.iter("testcase"):
            if known := found.get((case.get("classname", ""), case.get("name", ""))):
                name, record = known
                add_properties(case, {"record": f"records/{name}", **properties(record)})
        ElementTree.indent(tree)
        replace_file(path, ElementTree.tostring(tree.getroot(), encoding="UTF-8", xml_declaration=True))


def add_properties(case: ElementTree.Element, properties: Mapping[str, str]) -> None:
    """Put the properties before the outcome, where JUnit has them."""
    parent = ElementTree.Element("properties")
    parent.extend(ElementTree.Element("property", name=name, value=value) for name, value in properties.items())
    case.insert(0, parent)


def properties(record: Record) -> dict[str, str]:
    """Verdict, figures with their unit in the name, and intervals. A figure that is a bound says so."""
    found = {"verdict": verdict_word(record), "caveats": ", ".join(caveats(record)), "why": explanation(record)}
    found["version_under_test"] = str(record.get("version_under_test") or "")
    for metric in METRICS.values():
        if result := record["results"].get(metric.name):
            found |= _figure(metric.name, metric.quantity.key, result)
    for number, finding in enumerate(record["findings"], 1):
        found[f"finding_{number}"] = f"{finding['verdict']}: {finding['claim']}: {finding['detail']}"
    return {name: value for name, value in found.items() if value}


def _figure(name: str, key: str, result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield f"{name}_{key}", str(result[key])
    for end in ("low", "high"):
        if (amount := result.get(f"{end}_{key}")) is not None:
            yield f"{name}_{end}_{key}", str(amount)
    bounds = [word.replace("_", " ") for word in ("lower_bound", "upper_bound", "unfinished") if result.get(word)]
    if bounds:
        yield f"{name}_is", ", ".join(bounds)
