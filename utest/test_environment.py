"""No program that podperf starts inherits the secrets in podperf's environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from http_servers import kubeconfig_file
from podperf import __main__ as commands
from podperf import environment
from podperf.environment import PASSWORD_VARIABLE, RESULTS_TOKEN
from podperf.hosts.local import LocalHost
from run_command import preparation, run

LIBRARIES = Path(commands.__file__).parents[1]
VIRTUAL = LIBRARIES.parent / "topologies" / "virtual.yaml"
SECRETS = {PASSWORD_VARIABLE: "swordfish-42", RESULTS_TOKEN: "swordfish-43"}


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_taken", {})
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("command", commands.COMMANDS)
def test_children_of_a_command_do_not_have_the_secrets(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def environment_of_a_child(_: object) -> int:
        print(LocalHost().ask("env").stdout)
        return 0

    stand_in = SimpleNamespace(add_arguments=lambda _: None, main=environment_of_a_child)
    monkeypatch.setattr(commands, "import_module", lambda _: stand_in)
    assert commands.main([command]) == 0
    said = capsys.readouterr().out
    assert "PATH=" in said and "swordfish" not in said


def test_the_login_program_of_a_kubeconfig_does_not_get_the_secrets(tmp_path: Path) -> None:
    """The whole command `check`, which starts the program that the kubeconfig names."""
    program, said = tmp_path / "log-in", tmp_path / "env"
    program.write_text(f"#!/bin/sh\nenv >'{said}'\nexit 1\n")
    program.chmod(0o755)
    config = kubeconfig_file(
        tmp_path,
        "http://127.0.0.1:1",
        exec={"apiVersion": "client.authentication.k8s.io/v1", "command": str(program), "interactiveMode": "Never"},
    )
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": str(LIBRARIES), "KUBECONFIG": config}
    command = [sys.executable, "-m", "podperf", "check", str(VIRTUAL.with_name("kubernetes.yaml"))]
    done = subprocess.run(command, env=known | SECRETS, check=False, capture_output=True, text=True)
    assert "KUBECONFIG=" in said.read_text(), done.stderr
    assert "swordfish" not in said.read_text()


def test_robot_gets_the_secrets_and_the_set_up_before_it_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[dict[str, str]] = []

    def seen(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        found.append({name: value for name, value in os.environ.items() if name in SECRETS})
        return subprocess.CompletedProcess([], 0)

    monkeypatch.setattr(preparation.subprocess, "run", seen)
    monkeypatch.setattr(run, "run_robot", lambda *_: seen().returncode)
    monkeypatch.setattr(run, "make_results_folder", lambda *_: None)
    assert commands.main(["run", "--outputdir", str(tmp_path / "results"), str(VIRTUAL)]) == 0
    assert found == [{}, SECRETS]
    assert not set(SECRETS) & set(os.environ)
