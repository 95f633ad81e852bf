"""Tables of the methods beside MRR and the search, from a record. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from podperf.figures import kpps, number, percent, short
from podperf.methods import METHODS
from podperf.metrics import Measured
from podperf.records import Data, Record
from podperf.report.html import NOTHING, Html, TableRow, element, facts, table, together


def method_tables(record: Record, names: Collection[str] = METHODS) -> Iterator[Html]:
    """A table for each of these methods that the record has."""
    for name in names:
        if found := record.method(name):
            made = METHODS[name].table(found)
            numeric = range(made.numbers, len(made.heads))
            rows = [TableRow(tuple(row)) for row in made.rows]
            yield together(
                element("p", element("b", made.title)),
                element("p", made.words) if made.words else NOTHING,
                table(made.heads, rows, numeric=numeric)
                if made.heads
                else facts((row[0], row[1]) for row in made.rows),
            )


_HEADS = ("Row", "Published", "Measured here", "Here to published", "As")


def published_tables(records: Sequence[Record], name_of: dict[str, str] | None = None) -> Html:
    """A table for each kind of published quantity. NOTHING if no record has one.

    `name_of` has the names of the tests by the ids of their records. Without it, rows have no test.
    """
    rows: dict[str, list[TableRow]] = {}
    for record in records:
        found = record.method("published")
        if found:
            tester = str(record.tester.get("name") or "the tester")
            title = f"Beside the published figures ({found['words']}), measured with {tester}"
            test = (name_of or {}).get(record.id, "")
            rows.setdefault(title, []).extend(_row(row, found, test) for row in found["rows"])
    tables = (
        together(element("p", element("b", title)), table(_HEADS, found, numeric=(1, 2, 3)))
        for title, found in rows.items()
    )
    return together(*tables) if rows else NOTHING


def _row(row: Data, found: Data, test: str) -> TableRow:
    unit = found["unit"]
    published = "no figure" if row["published"] is None else f"{row['published']:g} {_short_unit(unit)}"
    ratio = short(row["ratio"]) if row["ratio"] is not None else row["remark"]
    return TableRow((_row_name(row, test), published, _measured(row, unit), ratio, _measured_as(row, found)))


def _row_name(row: Data, test: str) -> str:
    frame = f"{row['name']}, {row['frame']}" if row["frame"] not in row["name"] else row["name"]
    return f"{frame} ({test})" if test else frame


def _short_unit(unit: str | None) -> str:
    return "% of line rate" if unit == "percent of line rate" else str(unit or "")


def _measured(row: Data, unit: str | None) -> str:
    rate = Measured.recorded(row["rate"], "value")
    gigabits = f"{number(row['l2_gigabits'])} Gbit/s (L1: {number(row['l1_gigabits'])})"
    if unit == "percent of line rate" and row["in_unit"] is not None:
        gigabits = f"{number(row['in_unit'])} {_short_unit(unit)}, {gigabits}"
    return f"{rate.written(gigabits)}, {kpps(rate.value)} kpps"


def _measured_as(row: Data, found: Data) -> str:
    if row["measured_as"] != "NDR":
        return "rate that comes back of all the tester can send (MRR, median of the rounds)"
    sought = found["sought_loss_ratio"]
    return f"NDR, loss of at most {percent(sought)}" if sought else "NDR without loss"
