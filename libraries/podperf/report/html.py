"""Safe HTML: this module makes the elements, and escapes everything else as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

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


def titled(title: str, main: Html, *below: Html, **attributes: str) -> Html:
    """The content under a heading with these attributes. NOTHING without the main content."""
    return together(element("h2", title, **attributes), main, *below) if main else NOTHING


def tiles(numbers: Mapping[str, object]) -> Html:
    """Numbers in large type, each with its words."""
    found = (element("div", element("b", str(each)), words, class_="tile") for words, each in numbers.items())
    return element("div", *found, class_="tiles")


def not_read(problems: Sequence[str]) -> Html:
    """The files that a report lacks. NOTHING without any."""
    words = "Files that could not be read, and are missing here:"
    items = (element("li", problem) for problem in problems)
    return element("div", words, element("ul", *items), class_="note") if problems else NOTHING


def plots(drawings: Iterable[str]) -> Html:
    """The plots that are there, each as wide as it is: a narrow screen scrolls it."""
    return together(*(element("div", drawing(each), class_="scroll") for each in drawings if each))


def moment(started: str) -> str:
    """`2026-11-20 23:39 UTC` of an ISO 8601 time."""
    return f"{started[:10]} {started[11:16]} UTC" if started else "?"


_STYLE = Path(__file__).with_name("style.css")
# The page has no script. This policy forbids the browser to run any, also if markup from a record gets into the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def framed(title: str, *body: Html) -> str:
    """The whole page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("title", title),
        style(_STYLE.read_text(encoding="utf-8")),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *body), lang='en').markup}\n"
