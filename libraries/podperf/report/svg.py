"""The shapes of the plots, as escaped SVG text without external files. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import pairwise

INK, MUTED, GRID, PAPER = "#1f2933", "#616e7c", "#e4e7eb", "#ffffff"
FONT = "font-family='Helvetica Neue,Helvetica,Arial,sans-serif'"


def text(
    x: float, y: float, content: str, *, size: int = 12, fill: str = INK, anchor: str = "start", weight: str = "normal"
) -> str:
    """A line of text; `anchor` is start, middle or end."""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' fill='{fill}' text-anchor='{anchor}' "
        f"font-weight='{weight}' paint-order='stroke' stroke='{PAPER}' stroke-width='3'>{escape(content)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, stroke: str = GRID, *, width: float = 1, dash: str = "") -> str:
    """A straight line; `dash` as in stroke-dasharray."""
    dashes = f" stroke-dasharray='{dash}'" if dash else ""
    return (
        f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{stroke}' "
        f"stroke-width='{width:g}'{dashes}/>"
    )


def box(x: float, y: float, width: float, height: float, fill: str, *, title: str = "") -> str:
    """A filled rectangle; `title` is shown under the mouse."""
    return (
        f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(0.0, width):.1f}' height='{height:.1f}' fill='{fill}'>"
        f"<title>{escape(title)}</title></rect>"
    )


def dot(x: float, y: float, radius: float, *, fill: str, stroke: str, title: str) -> str:
    """A circle; `title` is shown under the mouse."""
    return (
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius:g}' fill='{fill}' stroke='{stroke}' stroke-width='1.2' "
        f"fill-opacity='0.75'><title>{escape(title)}</title></circle>"
    )


def path(points: Iterable[tuple[float, float]], stroke: str, *, width: float = 1, dash: str = "") -> Iterator[str]:
    """Straight lines from each point to the next one."""
    for one, other in pairwise(points):
        yield line(*one, *other, stroke, width=width, dash=dash)


def rows(labels: Iterable[tuple[float, str]], left: float, right: float) -> Iterator[str]:
    """The lines of a grid at these heights, with their labels on the left."""
    for y, label in labels:
        yield line(left, y, right, y)
        yield text(left - 6, y + 4, label, size=11, fill=MUTED, anchor="end")


def columns(labels: Iterable[tuple[float, str]], top: float, floor: float) -> Iterator[str]:
    """The lines of a grid at these places, with their labels below."""
    for x, label in labels:
        yield line(x, top, x, floor)
        yield text(x, floor + 16, label, size=11, fill=MUTED, anchor="middle")


def legend(colours: Mapping[str, str], left: float, base: float) -> Iterator[str]:
    """A dot with its name for each colour, by the names."""
    for name, colour in colours.items():
        yield dot(left + 4, base - 4, 4, fill=colour, stroke=INK, title=name)
        yield text(left + 12, base, name, size=11, fill=MUTED)
        left += 34 + 6.2 * len(name)


def document(width: int, height: int, label: str, *shapes: str) -> str:
    """The whole drawing. `label` describes it in words."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
        f"style='max-width:100%;height:auto' role='img' aria-label='{escape(label, quote=True)}' {FONT}>"
        f"<rect width='{width}' height='{height}' fill='{PAPER}'/>{''.join(shapes)}</svg>"
    )


def mixed(colour: str, share: float) -> str:
    """A mix of white and so much of a colour."""
    parts = [round(255 + (int(colour[at : at + 2], 16) - 255) * share) for at in (1, 3, 5)]
    return "#" + "".join(f"{part:02x}" for part in parts)


def ticks(highest: float, about: int = 5) -> list[float]:
    """About `about` round values from 0 to at least `highest` (above 0), in steps of 1, 2 or 5 times a power of ten."""
    raw = highest / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    return [index * step for index in range(math.ceil(highest / step - 1e-9) + 1)]


def log_ticks(lowest: float, highest: float) -> list[float]:
    """1, 2 and 5 times powers of ten between `lowest` and `highest` (both more than 0)."""
    powers = range(math.floor(math.log10(lowest)), math.ceil(math.log10(highest)) + 1)
    found = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    return [each for each in found if lowest <= each <= highest]


def range_ticks(lowest: float, highest: float, about: int = 4) -> list[float]:
    """Round values between `lowest` and `highest` (which is more), 1, 2 or 5 times a power of ten apart."""
    step = ticks(highest - lowest, about)[1]
    return [index * step for index in range(math.ceil(lowest / step - 1e-9), math.floor(highest / step + 1e-9) + 1)]
