"""Published figures and the figures measured here, side by side, from a record. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from podperf.figures import kpps, number, percent, short
from podperf.metrics import Measured
from podperf.report.html import NOTHING, Html, TableRow, element, table, together
from podperf.report.results import Record

_HEADS = ("Row", "Published", "Measured here", "Here to published", "As")


def published_tables(records: Sequence[Record], name_of: dict[str, str] | None = None) -> Html:
    """A table for each kind of published quantity. NOTHING if no record has one.

    `name_of` has the names of the tests by the ids of their records. Without it, rows have no test.
    """
    rows: dict[str, list[TableRow]] = {}
    for record in records:
        found = record["methods"].get("published")
        if found:
            tester = str((record["tester"] or {}).get("name") or "the tester")
            title = f"Beside the published figures ({found['words']}), measured with {tester}"
            test = (name_of or {}).get(record["id"], "")
            rows.setdefault(title, []).extend(_row(each, found, test) for each in found["rows"])
    tables = (
        together(element("p", element("b", title)), table(_HEADS, found, numeric=(1, 2, 3)))
        for title, found in rows.items()
    )
    return together(*tables) if rows else NOTHING


def _row(row: Record, found: Record, test: str) -> TableRow:
    unit = found["unit"]
    published = "no figure" if row["published"] is None else f"{row['published']:g} {_short_unit(unit)}"
    ratio = short(row["ratio"]) if row["ratio"] is not None else row["remark"]
    return TableRow((_named(row, test), published, _measured(row, unit), ratio, _measured_as(row, found)))


def _named(row: Record, test: str) -> str:
    frame = f"{row['name']}, {row['frame']}" if row["frame"] not in row["name"] else row["name"]
    return f"{frame} ({test})" if test else frame


def _short_unit(unit: str | None) -> str:
    return "% of line rate" if unit == "percent of line rate" else str(unit or "")


def _measured(row: Record, unit: str | None) -> str:
    rate = Measured(**row["rate"])
    gigabits = f"{number(row['l2_gigabits'])} Gbit/s (L1: {number(row['l1_gigabits'])})"
    if unit == "percent of line rate" and row["in_unit"] is not None:
        gigabits = f"{number(row['in_unit'])} {_short_unit(unit)}, {gigabits}"
    return f"{rate.written(gigabits)}, {kpps(rate.value)} kpps"


def _measured_as(row: Record, found: Record) -> str:
    if row["measured_as"] != "NDR":
        return "rate that comes back of all the tester can send (MRR, median of the rounds)"
    sought = found["sought_loss_ratio"]
    return f"NDR, loss of at most {percent(sought)}" if sought else "NDR without loss"
