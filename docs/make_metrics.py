"""Writes the parts of schemas, pages and the template that list metrics: `.venv/bin/python docs/make_metrics.py`.

The metrics come from libraries/podperf/metrics.py. A unit test compares the files with this script's output.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.comparisons import COMPARISON_SCHEMA
from podperf.comparisons.reading import choices
from podperf.dataplanes import DATA_PLANES
from podperf.metrics import METRICS, RATIO, by_quantity
from podperf.records.schema import SCHEMA_PATH as RECORD_SCHEMA
from podperf.records.schema import schemas_of_results
from podperf.report.cells import typeset
from podperf.testbed.scenarios import SCENARIOS
from podperf.topology import SCHEMA_PATH as TOPOLOGY_SCHEMA
from podperf.topology.reading import threshold_keys

ROOT = Path(__file__).resolve().parents[1]


def table(*rows: Sequence[str]) -> str:
    """A Markdown table; the first row is its head."""
    head, *others = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *others))


def between_markers(page: str, made: str) -> str:
    """A page with this between its markers."""
    begin, end = "<!-- begin: made by docs/make_metrics.py -->", "<!-- end -->"
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


MADE: Mapping[Path, Callable[[str], str]] = {
    ROOT / "docs" / "reading-the-report.md": with_metrics,
    ROOT / "docs" / "topology.md": with_units,
    ROOT / "topologies" / "template.yaml": with_allowed_units,
    TOPOLOGY_SCHEMA: with_threshold_keys,
    RECORD_SCHEMA: with_results,
    COMPARISON_SCHEMA: with_choices,
}


def main() -> None:
    """Write them all."""
    for path, made in MADE.items():
        path.write_text(made(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
