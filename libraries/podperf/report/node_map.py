"""A map of all pairs of nodes: a cell for each pair, the darker the slower. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podperf.figures import cut
from podperf.report import svg

_WIDTH, _TOP, _LABEL = 720, 44, 120
_LARGEST, _READABLE = 24.0, 10.0  # of a cell, in the unit of the drawing; a label needs the latter
_UNKNOWN, _SLOW = "#e4e7eb", "#b42318"


def node_map(nodes: Sequence[str], ratios: Mapping[tuple[str, ...], float]) -> str:
    """An SVG of the pairs of these nodes, the slowest first. Empty without pairs."""
    place = {name: number for number, name in enumerate(nodes)}
    pairs = {tuple(sorted(map(place.__getitem__, pair))): ratio for pair, ratio in ratios.items() if len(pair) == 2}
    if not pairs:
        return ""
    left = _LABEL if (_WIDTH - _LABEL) / len(nodes) >= _READABLE else 0
    size = min(_LARGEST, (_WIDTH - left) / len(nodes))
    shapes = [
        svg.text(0, 16, "A cell is a pair of nodes. The slowest node is on the left, and on top", weight="bold"),
        svg.text(0, 32, "white: the median rate or more; red: half of it or less; grey: not measured", fill=svg.MUTED),
    ]
    for row, name in enumerate(nodes):
        top = _TOP + row * size
        if left:
            shapes.append(svg.text(left - 6, top + size * 0.75, cut(name, 17), size=int(size * 0.7), anchor="end"))
        for column in range(row):
            ratio = pairs.get((column, row))
            words = f"{nodes[column]} and {name}: {'not measured' if ratio is None else f'{ratio:.2f}'}"
            shapes.append(svg.box(left + column * size, top, size, size, _shade(ratio), title=words))
    return svg.document(_WIDTH, round(_TOP + len(nodes) * size) + 8, "rates of all pairs of nodes", *shapes)


def _shade(ratio: float | None) -> str:
    """White at the median and above, the whole colour at half of it and below."""
    if ratio is None:
        return _UNKNOWN
    share = min(max(2 * (1 - ratio), 0.0), 1.0)
    mixed = [round(255 + (int(_SLOW[at : at + 2], 16) - 255) * share) for at in (1, 3, 5)]
    return "#" + "".join(f"{each:02x}" for each in mixed)
