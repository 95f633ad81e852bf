"""The folders of podperf are its layers: a module imports from its own package and from the layers below it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import podperf
from podperf.pods.base import Pod, PodRuntime
from podperf.pods.forwarders.base import Application

PACKAGE = Path(podperf.__path__[0])
LAYERS = (  # from the bottom; parts of one layer do not import each other
    {"printable"},
    {"errors", "frames"},
    {
        "__init__",
        "addressing",
        "allocation",
        "cpu_lists",
        "environment",
        "figures",
        "nearness",
        "noise",
        "ownership",
        "terminal",
    },
    {"closed_paths"},
    {"http_login", "model", "third_party"},
    {"cpu_plan", "documents", "metrics", "progress"},
    {"topology"},
    {"hosts"},
    {"caches", "kernel", "observation", "quietness"},
    {"pods", "testers"},
    {"dataplanes", "kubernetes"},
    {"testbed"},
    {"experiments", "thresholds"},
    {"methods", "records"},
    {"history"},
    {"report", "virtual_worker"},
    {"cluster", "counted_machine"},
    {"cleanup", "preflight"},
    {"run"},
    {"__main__"},
)
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
MODULES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))


def top(module: str) -> str:
    """The module or package of podperf's top level that has this file."""
    return Path(module).parts[0].removesuffix(".py")


def imported(module: str) -> Iterator[str]:
    """What a module imports anywhere in its text: the names, each behind the dots of its module."""
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            of_module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from (f"{of_module}{each.name}" for each in node.names)


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_one_way(module: str) -> None:
    here = top(module)
    parts = {name.split(".")[1] for name in imported(module) if name.startswith("podperf.")}
    wrong = {name for name in parts - {here} if LAYER.get(name, -1) >= LAYER[here]}
    assert not wrong, f"{module} stands below {wrong}, or beside it"


OF_A_RUNTIME = r"(namespace|netns|container|pid|process)"


def test_only_runtimes_know_what_holds_a_pod_together() -> None:
    """A data plane cannot name the namespace or a process of a pod: the seam has no word for them, and mypy refuses
    others.

    A module outside of pods/ and kubernetes/ gets a runtime only from the list of runtimes.
    """
    seam = [name for kind in (Pod, PodRuntime, Application) for name in vars(kind) if not name.startswith("_")]
    assert not [name for name in seam if re.search(OF_A_RUNTIME, name)]
    allowed = r"podperf\.pods\.(\w+|(base|cni|memif|forwarders)\..*)"
    for module in MODULES:
        names = [name for name in imported(module) if name.startswith("podperf.pods.")]
        wrong = [each for each in names if not re.fullmatch(allowed, each)]
        assert top(module) in {"pods", "kubernetes"} or not wrong, f"{module} takes {wrong}"


def test_data_planes_make_no_namespaces_and_enter_none() -> None:
    for module in MODULES:
        if top(module) == "dataplanes":
            wrong = [each for each in imported(module) if re.match(r"podperf\.hosts\.(namespaces|local)\b", each)]
            assert not wrong, f"{module} takes {wrong}"


def test_the_layers_are_those_that_there_are() -> None:
    assert set(map(top, MODULES)) == set(LAYER)


def test_the_list_of_podperf_is_that_of_the_layers() -> None:
    rows = re.findall(r"^ {4}(\w+(?:, \w+)*) {2,}\S", str(podperf.__doc__), re.MULTILINE)
    listed = [name for row in rows for name in row.split(", ")]
    assert sorted(listed) == sorted(set(LAYER) - {"__init__"})
    layers = [LAYER[name] for name in listed]
    assert layers == sorted(layers, reverse=True), "the list begins with the top layer"


def test_one_name_is_one_class() -> None:
    classes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in ast.parse((PACKAGE / module).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes.setdefault(node.name, []).append(module)
    assert not {name: modules for name, modules in classes.items() if len(modules) > 1}


def test_each_python_that_a_driver_starts() -> None:
    """It runs isolated, here or on a worker: it imports nothing from the current folder."""
    started = re.compile(r'\((?:"python3"|sys\.executable|(?:settings\.)?interpreter), ([^,)]+)')
    calls = [(path.name, argument) for path in PACKAGE.rglob("*.py") for argument in started.findall(path.read_text())]
    assert len(calls) >= 5
    assert [call for call in calls if call[1] != '"-I"'] == []
