"""Safe HTML: this module makes the elements, and escapes everything else as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

_EMPTY = ("br", "meta")  # elements that have no content and no end


@dataclass(frozen=True)
class Html:
    """Markup. A text becomes a part of a page only through `element` or `together`, which escape it."""

    markup: str

    def __bool__(self) -> bool:
        return bool(self.markup)


Content = Html | str
NOTHING = Html("")


def element(name: str, /, *content: Content, **attributes: str | None) -> Html:
    """One element; `class_` is its class and `data_label` its data-label. An attribute that is None is left out."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}='{escape(value)}'"
        for key, value in attributes.items()
        if value is not None
    )
    end = "" if name in _EMPTY else f"</{name}>"
    return Html(f"<{name}{given}>{together(*content).markup}{end}")


def together(*content: Content) -> Html:
    """Several pieces, one after the other. Pieces that are text are escaped."""
    return Html("".join(each.markup if isinstance(each, Html) else escape(each) for each in content))


def drawing(svg: str) -> Html:
    """A plot made by `podperf.report.svg`, which has escaped its texts."""
    return Html(svg)


def style(css: str) -> Html:
    """A style sheet from podperf's own files."""
    return Html(f"<style>\n{css}</style>")


@dataclass(frozen=True)
class TableRow:
    """One row of a table: its cells, and a remark below it."""

    cells: Sequence[Content]
    remark: Content = ""


def table(heads: Sequence[str], rows: Iterable[TableRow], *, kind: str = "", numeric: Sequence[int] = ()) -> Html:
    """A table. A narrow screen shows it as a list, because each cell has its heading. NOTHING without rows.

    `numeric` columns are aligned to the right. The cells of the first column are the headings of the rows.
    """
    kinds = ["n" if index in numeric else None for index in range(len(heads))]
    body = []
    for row in rows:
        cells = [
            element("td", cell, class_=kind, data_label=head)
            for cell, kind, head in zip(row.cells, kinds, heads, strict=True)
        ]
        body.append(element("tr", *cells, class_="has-remark" if row.remark else None))
        if row.remark:
            body.append(element("tr", element("td", row.remark, colspan=str(len(heads))), class_="remark"))
    if not body:
        return NOTHING
    head = element("tr", *(element("th", each, class_=kind) for each, kind in zip(heads, kinds, strict=True)))
    return element("table", element("thead", head), element("tbody", *body), class_=kind or None)


def facts(found: Iterable[tuple[str, Content]]) -> Html:
    """Names and their values, side by side."""
    items = (element("div", element("dt", name), element("dd", value)) for name, value in found)
    return element("dl", *items, class_="facts")
