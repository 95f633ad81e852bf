"""Writes all that follows from the code: sweeps, schemas, and parts of pages: `.venv/bin/python docs/make.py`.

Run it after a change of a data plane, a metric, a method or a suite. A unit test compares the files with its output.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import fill
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from robot.api import TestSuite

from podperf.dataplanes import DATA_PLANES
from podperf.errors import Unavailable
from podperf.experiments.comparison_files import COMPARISON_SCHEMA, choices
from podperf.metrics import METRICS, RATIO, by_quantity
from podperf.model import Chain, FrameSize
from podperf.preflight.plan import plan
from podperf.records.schema import SCHEMA_PATH as RECORD_SCHEMA
from podperf.records.schema import schemas_of_results
from podperf.report.cells import typeset
from podperf.testbed.scenarios import SCENARIOS
from podperf.topology import SCHEMA_PATH as TOPOLOGY_SCHEMA
from podperf.topology import load_topology
from podperf.topology.reading import schemas_of_data_planes, threshold_keys
from sweeps import sweeps

ROOT = Path(__file__).resolve().parents[1]


def table(*rows: Sequence[str]) -> str:
    """A Markdown table; the first row is its head."""
    head, *others = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *others))


def between_markers(page: str, made: str) -> str:
    """A page with this between its markers."""
    begin, end = "<!-- begin: made by docs/make.py -->", "<!-- end -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n\n{made}\n\n{end}", page, flags=re.DOTALL)


def with_metrics(page: str) -> str:
    """The page that explains the table of a run."""
    rows = (
        (
            each.head,
            typeset(each.quantity.unit),
            "more" if each.quantity.more_is_better else "less",
            each.meaning,
            f"`{each.name}`",
            f"`{each.method}`",
        )
        for each in METRICS.values()
    )
    return between_markers(
        page, table(("column", "unit", "better", "means", "in records and thresholds", "method"), *rows)
    )


def with_units(page: str) -> str:
    """The page that explains thresholds."""
    rows = [
        (", ".join(f"`{each.name}`" for each in metrics), f"`{quantity.bound}`", f"`{unit.name}`", unit.meaning)
        for quantity, metrics in by_quantity(METRICS.values()).items()
        for unit in quantity.units
    ]
    every = ("every metric", "as above", f"`{RATIO}`", "a share of the figure of the bare path")
    return between_markers(page, table(("metric", "bound", "unit", "means"), *rows, every))


def with_allowed_units(template: str) -> str:
    """The template of a topology."""
    lines = (
        f"{', '.join(each.name for each in metrics)}: a {quantity.bound}, in "
        f"{', '.join(each.name for each in quantity.units)}, {RATIO}"
        for quantity, metrics in by_quantity(METRICS.values()).items()
    )
    made = "".join(f"{fill(each, 120, initial_indent='# - ', subsequent_indent='#   ')}\n" for each in lines)
    return re.sub(r"(?<=allowed for them:\n)(# (- |  ).*\n)+", made, template)


def with_threshold_keys(text: str) -> str:
    """The schema of topologies, in which only these words change."""
    schema = json.loads(text)
    keys = schema["properties"]["thresholds"]["items"]["properties"]
    head, tail = text.split('"thresholds": {', 1)
    for key, words in threshold_keys(METRICS.values()).items():
        for word, now in words.items():
            old, new = (f'"{word}": {json.dumps(each)}' for each in (keys[key][word], now))
            before, after = tail.split(f'"{key}": {{', 1)
            tail = f'{before}"{key}": {{{after.replace(old, new, 1)}'
            keys[key][word] = now
    return unchanged_but_for(f'{head}"thresholds": {{{tail}', schema)


def with_data_planes(text: str) -> str:
    """The schema of topologies, in which only the settings of data planes change."""
    schema = json.loads(text)
    made = schema["properties"]["data_planes"]["properties"] = dict(schemas_of_data_planes(DATA_PLANES))
    lines = re.sub(
        r"\[\s+([^][{}]*?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", json.dumps(made, indent=2)
    )
    old = r'(?<=\n    "data_planes": \{\n)(.*?"properties": )\{.*?\}(?=\n    \},\n)'
    new = re.sub(old, lambda found: found[1] + lines.replace("\n", "\n      "), text, count=1, flags=re.DOTALL)
    return unchanged_but_for(new, schema)


def with_results(text: str) -> str:
    """The schema of records, in which only the results change."""
    schema = json.loads(text)
    results = schema["properties"]["results"]["properties"] = dict(schemas_of_results(METRICS.values()))
    lines = ",\n".join(f'        "{name}": {json.dumps(each)}' for name, each in results.items())
    old = r'(?<=\n    "results": \{\n)(.*?"properties": \{\n).*?(?=\n      \})'
    return unchanged_but_for(re.sub(old, lambda found: found[1] + lines, text, count=1, flags=re.DOTALL), schema)


def with_choices(text: str) -> str:
    """The schema of comparisons, in which only names of metrics, data planes and scenarios change."""
    schema = json.loads(text)
    for place, names in choices(schema, tuple(METRICS), tuple(DATA_PLANES), tuple(SCENARIOS)):
        old, place["enum"] = json.dumps(place["enum"]), list(names)
        text = text.replace(f'"enum": {old}', f'"enum": {json.dumps(place["enum"])}', 1)
    return unchanged_but_for(text, schema)


def unchanged_but_for(text: str, schema: Mapping[str, Any]) -> str:
    """The text of a schema. Raises ValueError if the text and the schema differ."""
    if json.loads(text) != schema:
        raise ValueError(f"the text of {schema.get('title')} is not laid out as this script expects")
    return text


PARTS_OF_PODS = {"memif": " (the outermost pods)", "sriov": " (pods that forward in their kernel)"}


def attached_by_plugins() -> Iterator[str]:
    """The data planes for which a CNI plug-in attaches pods, by their plans on a lab with network cards."""
    lab = load_topology(ROOT / "topologies" / "appendix_b_sriov_dpdk.yaml")
    for name, kind in DATA_PLANES.items():
        plans = []
        for forwarder in kind.forwarders:
            with suppress(Unavailable):
                plans.append(plan(lab, Chain(name, max(1, kind.least_pods), forwarder), FrameSize.parse(64)))
        if any("/usr/lib/cni/" in step.text for each in plans for step in each.steps):
            yield f"`{name}`{PARTS_OF_PODS.get(name, '')}"


def with_suites(page: str) -> str:
    """The page of the suites: its counts, and the names of the data planes."""
    tests = TestSuite.from_file_system(ROOT / "tests").all_tests
    tags = [set(test.tags) for test in tests]
    full, quick = (sum(tag in each for each in tags) for tag in ("full", "quick"))
    page = re.sub(r"(?<=--include full ).*# \d+ rows", lambda found: re.sub(r"\d+", str(full), found[0]), page)
    page = re.sub(r"There are \d+ tests\. \d+ of them", f"There are {len(tags)} tests. {quick} of them", page)
    for row in re.findall(r"^\| 4\.1\.\d .*$", page, re.MULTILINE):
        names = (f"`{name}`" for name, kind in DATA_PLANES.items() if row.startswith(f"| {kind.model.section} "))
        page = page.replace(row, f"{row[:-2]}{''.join(f', {name}' for name in names if name not in row)} |")
    *others, last = attached_by_plugins()
    said = (
        f"**CNI plug-ins** of the distribution attach the pods of {', '.join(others)} and {last}. Docker and "
        "Podman attach the pods of their own networks. podperf itself attaches the pods of all other data planes."
    )
    return re.sub(r"^\*\*CNI plug-ins\*\*(.+\n)+", lambda _: fill(said, 120) + "\n", page, flags=re.MULTILINE)


MADE: Mapping[Path, Callable[[str], str]] = {
    ROOT / "docs" / "reading-the-report.md": with_metrics,
    ROOT / "docs" / "topology.md": with_units,
    ROOT / "docs" / "suites.md": with_suites,
    ROOT / "topologies" / "template.yaml": with_allowed_units,
    TOPOLOGY_SCHEMA: lambda text: with_data_planes(with_threshold_keys(text)),
    RECORD_SCHEMA: with_results,
    COMPARISON_SCHEMA: with_choices,
}


def made() -> Iterator[tuple[Path, str]]:
    """Each file that follows from the code, with the text that it should have."""
    yield from sweeps().items()
    for path, text in MADE.items():
        yield path, text(path.read_text(encoding="utf-8"))


def main() -> None:
    """Write them all."""
    for path, text in made():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
