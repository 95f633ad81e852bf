"""The folders of podperf are its layers: a module imports from its own package and from the layers below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import podperf

PACKAGE = Path(podperf.__path__[0])
LAYERS = (  # from the bottom; what stands in one layer does not know of each other
    {"printable"},
    {
        "__init__",
        "addressing",
        "cpu_lists",
        "errors",
        "figures",
        "forecast",
        "nearness",
        "noise",
        "ownership",
        "terminal",
        "third_party",
    },
    {"model"},
    {"documents", "metrics", "progress"},
    {"topology"},
    {"hosts"},
    {"kernel", "quietness"},
    {"pods", "testers"},
    {"dataplanes"},
    {"testbed"},
    {"verdicts"},
    {"methods", "records"},
    {"report", "virtual_worker"},
    {"counted_machine"},
    {"cleanup", "preflight"},
    {"run"},
    {"__main__"},
)
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
MODULES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))


def top(module: str) -> str:
    """The module or package of podperf's top level in which this file stands."""
    return Path(module).parts[0].removesuffix(".py")


def imported(module: str) -> Iterator[str]:
    """What a module imports of podperf's top level, wherever in its text it does so."""
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{each.name}" for each in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("podperf."))


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_one_way(module: str) -> None:
    here = top(module)
    wrong = {name for name in imported(module) if name != here and LAYER.get(name, -1) >= LAYER[here]}
    assert not wrong, f"{module} stands below {wrong}, or beside it"


def test_the_layers_are_those_that_there_are() -> None:
    assert set(map(top, MODULES)) == set(LAYER)
