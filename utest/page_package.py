"""The package of docs/third-party.md as files. atest/ measures with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "third-party.md").read_text(encoding="utf-8")
MODULE = "acme_podperf"
TOPOLOGY = "acme-lab.yaml"


def block(language: str) -> str:
    """The page's only example in this language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def write_package(folder: Path) -> Path:
    """The folder of the package, in the folder that gets the topology."""
    package = folder / "acme-podperf"
    package.mkdir()
    (package / "pyproject.toml").write_text(block("toml"))
    (package / f"{MODULE}.py").write_text(block("python"))
    return package


def write_topology(folder: Path, text: str = "") -> Path:
    """The page's topology, or another text."""
    path = folder / TOPOLOGY
    path.write_text(text or block("yaml"))
    return path


def install(folder: Path) -> None:
    """Put the package into this folder, as pip does."""
    about = tomllib.loads(block("toml"))["project"]
    name, version = about["name"], about["version"]
    (folder / f"{MODULE}.py").write_text(block("python"))
    information = folder / f"{MODULE}-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = about["entry-points"].items()
    parts = (f"[{group}]\n" + "".join(f"{key} = {at}\n" for key, at in each.items()) for group, each in groups)
    (information / "entry_points.txt").write_text("".join(parts))
