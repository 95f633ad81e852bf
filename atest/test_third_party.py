"""A package of somebody else brings a data plane: the one of docs/third-party.md is installed and measured."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from robot_run import ROOT, Robot

PAGE = (ROOT / "docs" / "third-party.md").read_text()
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces"),
    pytest.mark.usefixtures("machine_as_before"),
]


def block(language: str) -> str:
    """The page's only example in this language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The folder into which pip has installed the package. The test makes a wheel itself: a build needs the network."""
    about = tomllib.loads(block("toml"))["project"]
    name, version = about["name"].replace("-", "_"), about["version"]
    information = f"{name}-{version}.dist-info"
    groups = about["entry-points"].items()
    wheel = tmp_path / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("acme_podperf.py", block("python"))
        archive.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(
            f"{information}/entry_points.txt",
            "".join(f"[{group}]\n" + "".join(f"{key} = {at}\n" for key, at in each.items()) for group, each in groups),
        )
        archive.writestr(f"{information}/RECORD", "")
    site = tmp_path / "site"
    pip = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", site, wheel]
    subprocess.run(pip, check=True)
    return site


def test_a_data_plane_of_another_package_is_measured(installed: Path, tmp_path: Path) -> None:
    suite = tmp_path / "acme.robot"
    suite.write_text(block("robotframework").replace("podperf/resources", f"{ROOT}/resources"))
    robot = Robot(tmp_path, "--pythonpath", str(installed), "--test", "Acme switch, 64 B", str(suite))
    assert robot.wait() == 0, robot.output.read_text()
    (record,) = robot.records()
    assert record["chain"]["data_plane"] == "acme-switch"
    assert record["results"]["mrr"]["frames_per_second"] > 0
    assert any(link["name"] == "acme0" for link in record["data_plane"]["worker"]["links"]), record["data_plane"]


def test_a_check_lists_it(installed: Path) -> None:
    paths = f"{ROOT / 'libraries'}:{installed}"
    command = [sys.executable, "-m", "podperf", "check", "topologies/local.yaml"]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert re.search(r"ok +acme-switch +measurable", done.stdout), done.stdout + done.stderr
