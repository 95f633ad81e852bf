"""The frame of every page: its head with the style, no script, nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from podperf.report.html import Html, element, style

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
