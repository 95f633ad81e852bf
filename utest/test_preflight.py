"""The observations of `podperf check`, their words, and the exit code."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.__main__ import call
from podperf.dataplanes import xdp_redirect
from podperf.errors import PodperfError
from podperf.hosts.base import Completed
from podperf.hosts.local import LocalHost
from podperf.observation import Observation, State
from podperf.preflight import checks, command, counted
from podperf.preflight.checks import check
from podperf.preflight.command import conclusion, render
from podperf.preflight.measuring import check_data_planes
from podperf.topology import SCHEMA_PATH, load_topology
from scripted_host import ScriptedHost

LOCAL = str(SCHEMA_PATH.parent / "local.yaml")


class Without(LocalHost):
    """This machine, but commands that mention one of these words fail."""

    def __init__(self, *words: str) -> None:
        super().__init__()
        self.words = words
        self.asked: list[str] = []

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        line = " ".join(command)
        self.asked.append(line)
        if any(word in line for word in self.words):
            return Completed(command, 1, "", "no such\n  thing\n")
        return super()._run(*command, stdin=stdin, check=check, timeout=timeout)


def of(observations: Sequence[Observation], subject: str) -> Observation:
    (observation,) = (each for each in observations if each.subject == subject)
    return observation


def test_without_root_nothing_is_tried_that_needs_it() -> None:
    host = Without()
    observations = check(LOCAL, host, root=False)
    assert of(observations, "rights").in_the_way
    for subject in (*(feature.name for feature in checks.FEATURES), "test frames", "data planes"):
        observation = of(observations, subject)
        assert (observation.state, observation.detail) == (State.UNCHECKED, "needs root")
    assert not [line for line in host.asked if "unshare --net" in line or line.startswith("ip ")]
    assert of(observations, "placement").state is State.OK


def test_a_missing_command_comes_with_its_package() -> None:
    observations = check(LOCAL, Without("command -v ethtool", "command -v iptables"), root=False)
    ethtool, iptables = of(observations, "ethtool"), of(observations, "iptables")
    assert (ethtool.state, ethtool.remedy, ethtool.in_the_way) == (State.MISSING, "apt-get install ethtool", True)
    assert (iptables.state, iptables.in_the_way) == (State.MISSING, False)


def test_a_missing_pod_runtime_says_what_to_install(tmp_path: Path) -> None:
    topology = tmp_path / "t.yaml"
    topology.write_text("version: 1\nname: t\npods: {runtime: runc}\n")
    pods = of(check(str(topology), Without("which runc"), root=False), "pods: runc")
    assert (pods.state, pods.in_the_way) == (State.MISSING, True)
    assert pods.detail == "runc, which makes the pods, is not installed on this machine (Debian package runc)"
    assert of(check(LOCAL, Without("which runc"), root=False), "pods: namespaces").state is State.OK


def test_missing_plug_ins_and_tester_say_what_to_install() -> None:
    observations = check(LOCAL, Without("/usr/lib/cni", "podperf-tester"), root=False)
    assert of(observations, "CNI plug-ins").remedy == "apt-get install containernetworking-plugins"
    assert of(observations, "podperf-tester").in_the_way


def test_a_topology_with_problems_reports_each_and_nothing_besides(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(
        "version: 1\nname: t\nnmae: t\nthresholds: [{metric: mrr, minimum: 1, unit: Mpps, data_plane: wir}]\n"
    )
    observations = check(str(file), root=False)
    problems = [observation.detail for observation in observations]
    assert [problem.split(":")[1] for problem in problems] == ["3", "4"]
    assert problems[1].endswith("did you mean 'wire'?")
    assert "In the way: file" in conclusion(observations)


def test_a_topology_that_is_not_there_is_all_that_is_said(tmp_path: Path) -> None:
    (file,) = check(str(tmp_path / "t.yaml"), root=False)
    assert (file.area, file.subject, file.state) == ("topology", "file", State.MISSING)
    assert f"{tmp_path}/t.yaml" in file.detail
    assert conclusion([file]) == "The quick run cannot be measured here. In the way: file."


def test_a_file_that_is_there_and_wrong_is_not_missing(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("version: 2\n")
    wrong = check(str(tmp_path / "t.yaml"), root=False)
    assert {each.state for each in wrong} == {State.WRONG}
    wrong = check(str(tmp_path), root=False)
    assert {each.state for each in wrong} == {State.WRONG}, "a folder is there, too"


@pytest.mark.parametrize(
    ("ports", "reason"),
    [
        ({}, "a run makes the worker's ports as veths, and those have no NIC that could run an eBPF program"),
        ({"ens4": "nfp"}, "ens4 of scripted host runs no eBPF program on the NIC: Error: offload not supported"),
    ],
)
def test_a_port_that_runs_no_program_itself_is_named(
    ports: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xdp_redirect, "refusal", lambda *_: "Error: offload not supported")
    assert xdp_redirect.XdpOffload.refused(ScriptedHost(), ports) == reason
    monkeypatch.setattr(xdp_redirect, "refusal", lambda *_: None)
    assert xdp_redirect.XdpOffload.refused(ScriptedHost(), {"ens4": "nfp"}) is None


def test_check_asks_the_ports_of_the_worker() -> None:
    testbed = SimpleNamespace(
        demand=lambda chain: None,
        workers=[SimpleNamespace(settings=load_topology(LOCAL).workers[0], host=ScriptedHost())],
        topology=SimpleNamespace(external=False),
    )
    found = list(check_data_planes(testbed))  # type: ignore[arg-type]
    assert of(found, "xdp-offload").state is State.SKIPPED
    assert (of(found, "linux-bridge").state, of(found, "linux-bridge").detail) == (State.OK, "measurable")


def test_a_placement_that_cannot_be_is_in_the_way(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("version: 1\nname: t\nworkers: [{cpus: 8191}]\n")
    placement = of(check(str(file), root=False), "placement")
    assert placement.in_the_way
    assert "workers[0].cpus: CPU 8191 is not online" in placement.detail


def test_an_old_key_is_in_nobodys_way_and_has_a_line(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("version: 1\nname: t\nworker: {cpus: 0}\n")
    (found,) = [each for each in check(str(file), root=False) if each.subject == "file"]
    assert (found.area, found.state, found.in_the_way) == ("topology", State.WARNING, False)
    assert found.detail == f"{file}:3: worker: an old key; write this worker as the first item of the list `workers`"


def test_a_feature_says_what_the_kernel_said_in_one_line() -> None:
    host = Without("ipvlan")
    (ipvlan,) = (feature for feature in checks.FEATURES if feature.name == "ipvlan")
    assert checks.missing_feature(host, ipvlan) == "no such thing"


OBSERVED = [
    Observation("machine", "rights", State.OK, "root"),
    Observation("kernel", "ipvlan", State.SKIPPED, "the kernel said: no", "modprobe ipvlan"),
]


def test_the_table_reads_well_plain_and_on_a_terminal() -> None:
    assert render(OBSERVED) == (
        "machine\n"
        "  ok           rights  root\n"
        "kernel\n"
        "  skipped      ipvlan  the kernel said: no (remedy: modprobe ipvlan)\n"
        "\n"
        "The quick run can be measured here."
    )
    assert render(OBSERVED, width=45, colour=True).splitlines()[3:5] == [
        "  \033[33mskipped    \033[0m  ipvlan  the kernel said: no",
        "                       (remedy: modprobe",
    ]


states = st.sampled_from(State)
observations = st.lists(
    st.builds(Observation, st.sampled_from("ab"), st.sampled_from("cd"), states, needed=st.booleans())
)


@given(observations)
def test_only_what_is_needed_and_not_there_is_in_the_way(found: list[Observation]) -> None:
    missing, unchecked = (
        {each.subject for each in found if each.needed and each.state in states}
        for states in ({State.MISSING, State.WRONG}, {State.UNCHECKED})
    )
    bad = missing or unchecked
    said = conclusion(found)
    assert ("can be measured" in said) == (not bad)
    assert sorted(bad) == sorted(filter(None, said.partition("In the way: ")[2].rstrip(".").split(", ")))
    assert render(found).endswith(said)


def podperf(*arguments: str) -> subprocess.CompletedProcess[str]:
    libraries = Path(sys.modules["podperf"].__path__[0]).parent
    return subprocess.run(
        [sys.executable, "-m", "podperf", *arguments],
        env={**os.environ, "PYTHONPATH": str(libraries), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_line_checks_and_its_exit_code_is_its_conclusion(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("version: 2\n")
    done = podperf("check", str(file))
    assert done.returncode == 254, done.stderr
    assert f"{file}:1: version: found 2; allowed: 1" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("The quick run cannot be measured here. In the way: file")
    assert "\033" not in done.stdout
    assert done.stderr == ""


def test_an_empty_topology_is_this_machine_as_if_none_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    monkeypatch.setattr(command, "check", lambda path: checked.append(path) or [])
    assert call(["check"]) == call(["check", ""]) == 0
    assert checked == [LOCAL] * 2


@pytest.mark.parametrize("arguments", [(), ("chekc",), ("check", "a", "b")])
def test_a_wrong_command_line_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    done = podperf(*arguments)
    assert done.returncode == 252
    assert done.stderr.startswith("podperf: ") and "--help" in done.stderr


COUNTED = "{version: 1, name: t, workers: [{connection: counted%s}]}"


def check_of_counted(folder: Path, settings: str = "", *, root: bool = True) -> Observation:
    file = folder / "t.yaml"
    file.write_text(COUNTED % settings)
    return of(check(str(file), ScriptedHost(patient=True), root=root), "counted machine")


def test_without_root_no_counted_machine_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "boot", lambda *_: pytest.fail("it is started"))
    observation = check_of_counted(tmp_path, root=False)
    assert (observation.state, observation.detail, observation.in_the_way) == (State.UNCHECKED, "needs root", True)


def test_a_counted_machine_that_does_not_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def boot(*_: object) -> None:
        raise PodperfError("the counted machine did not come up: no kernel")

    monkeypatch.setattr(counted, "boot", boot)
    observation = check_of_counted(tmp_path)
    assert (observation.state, observation.in_the_way) == (State.MISSING, True)
    assert observation.detail == "the counted machine did not come up: no kernel"


def test_files_of_a_counted_machine_that_are_missing_are_told_without_root(tmp_path: Path) -> None:
    observation = check_of_counted(tmp_path, ", counted: {nftables: {pods: [a.nft]}}", root=False)
    assert observation.state is State.MISSING
    assert observation.detail.startswith(f"there is no file or folder {tmp_path}/a.nft")
