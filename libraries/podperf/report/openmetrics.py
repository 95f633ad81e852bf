"""The figures of one run as OpenMetrics text, for Prometheus and all that read its formats. Pure.

All families are gauges without timestamps. So the same text is also in Prometheus' older text format, for which
`# UNIT` and `# EOF` are comments: the node exporter's textfile collector and the Pushgateway read no other format.
(https://prometheus.io/docs/specs/om/open_metrics_spec/)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from podperf.history.trends import doubt_of
from podperf.metrics import METRICS, Quantity
from podperf.records import Record

_BASE_UNITS = {"nanoseconds": ("seconds", 1e9)}  # Prometheus has seconds only
_ESCAPES = {"\\": r"\\", "\n": r"\n", '"': r"\""}

Labels = Mapping[str, str]


@dataclass
class Family:
    """One metric family: a gauge. Equal labels are one sample, and the last value counts."""

    name: str
    unit: str  # empty: it has none
    help: str
    samples: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)

    def add(self, labels: Labels, value: float) -> None:
        """One sample."""
        self.samples[tuple(labels.items())] = value

    def lines(self) -> Iterator[str]:
        """The family as text. None without a sample."""
        if not self.samples:
            return
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} gauge"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        for labels, value in self.samples.items():
            given = ",".join(f'{name}="{escaped(text)}"' for name, text in labels)
            yield f"{self.name}{{{given}}} {value!r}"


def openmetrics(records: Iterable[Record]) -> str:
    """The text, with its end mark. Tests without figures have an outcome only."""
    found = list(records)
    figures = {quantity: _family(quantity) for quantity in dict.fromkeys(each.quantity for each in METRICS.values())}
    doubtful = Family(
        "podperf_figure_doubtful", "", "1: the figure is noisy, in doubt, or a bound, and no history judges it."
    )
    failed = Family("podperf_test_failed", "", "1: the test failed. A test that was skipped is missing.")
    started = Family("podperf_test_start_time_seconds", "seconds", "When the test started, in Unix time.")
    for record in found:
        labels = _labels(record)
        for metric in METRICS.values():
            if metric.name in record.figures:
                of_figure = {**labels, "metric": metric.name}
                amount = record.figures[metric.name].value
                figures[metric.quantity].add(of_figure, amount / _base_unit(metric.quantity)[1])
                doubtful.add(of_figure, float(bool(doubt_of(record, metric))))
        if record.outcome in {"passed", "failed"}:
            failed.add(labels, float(record.outcome == "failed"))
            started.add(labels, datetime.fromisoformat(record.started).timestamp())
    families = (*figures.values(), doubtful, failed, started)
    return "\n".join([*(line for family in families for line in family.lines()), "# EOF", ""])


def escaped(text: str) -> str:
    """A label's value as it stands between quotation marks."""
    return "".join(_ESCAPES.get(each, each) for each in text)


def _labels(record: Record) -> Labels:
    """Suite and row tell tests apart. The other labels are there to choose by."""
    chain = record.chain
    return {
        "testbed": record.testbed_name,
        "suite": record.test.suite,
        "row": record.test.name,
        "data_plane": chain.data_plane if chain else "",
        "pods": str(chain.pods) if chain else "",
        "frame": record.traffic.frame.name if record.traffic else "",
        "version_under_test": record.version_under_test,
    }


def _family(quantity: Quantity) -> Family:
    unit, _ = _base_unit(quantity)
    noun = re.sub("[^a-z0-9]+", "_", quantity.noun.lower())
    names = ", ".join(metric.name for metric in METRICS.values() if metric.quantity is quantity)
    return Family(f"podperf_{noun}_{unit}", unit, f"The {quantity.noun} of a row: {names}.")


def _base_unit(quantity: Quantity) -> tuple[str, float]:
    """The unit in which Prometheus has this quantity, and how many of the record's units it is."""
    for ours, (theirs, many) in _BASE_UNITS.items():
        if quantity.key.startswith(ours):
            return quantity.key.replace(ours, theirs, 1), many
    return quantity.key, 1.0
