"""Tables of the methods beside MRR and the search, from a record. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from podperf.figures import kpps, percent
from podperf.report.html import Html, TableRow, element, table, together
from podperf.report.results import Record


def method_tables(record: Record) -> Iterator[Html]:
    """A table for each such method of the record."""
    for name, made in (("loss_curve", _loss_curve),):
        if found := record["methods"].get(name):
            yield made(found)


def _loss_curve(found: Record) -> Html:
    rows = (
        TableRow((kpps(each["load"]), percent(each["share"]), kpps(each["achieved_load"]), percent(each["loss_ratio"])))
        for each in found["points"]
    )
    heads = ("Load, kpps", "of the tester's maximum", "sent, kpps", "loss")
    left_out = ", ".join(map(kpps, found["not_delivered"]))
    return together(
        _title(f"Loss curve ({found['source']}), trials of {found['trial_duration']:g} s"),
        table(heads, rows, numeric=range(4)),
        *([element("p", f"The tester could not send {left_out} kpps.", class_="small")] if left_out else ()),
    )


def _title(words: str) -> Html:
    return element("p", element("b", words))
