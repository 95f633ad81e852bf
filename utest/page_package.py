"""The package of docs/third-party.md as files. atest/ measures with it."""

from __future__ import annotations

import re
import tomllib
import zipfile
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


def write_wheel(folder: Path) -> Path:
    """The package as a wheel: pip installs it without a build, which would want the network."""
    about = tomllib.loads(block("toml"))["project"]
    name, version = about["name"].replace("-", "_"), about["version"]
    information = f"{name}-{version}.dist-info"
    groups = about["entry-points"].items()
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{MODULE}.py", block("python"))
        archive.writestr(
            f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {version}\n"
        )
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(
            f"{information}/entry_points.txt",
            "".join(f"[{group}]\n" + "".join(f"{key} = {at}\n" for key, at in each.items()) for group, each in groups),
        )
        archive.writestr(f"{information}/RECORD", "")
    return wheel
