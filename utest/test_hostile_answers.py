"""A machine that answers nonsense makes a run fail, with a line that says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import Testbed
from podperf.dataplanes.bpf_programs import bpftool_json
from podperf.errors import PodperfError
from podperf.hosts.base import Completed
from podperf.hosts.linux import ip_json
from podperf.kernel.xdp_sockets import describe_sockets
from podperf.preflight.mistakes import _in_switch, read_ovs_settings, read_pods, read_vlans
from podperf.preflight.observation import State
from podperf.testbed.placement import device_of
from podperf.testers.answers import receive_answer
from podperf.testers.trex_rpc import Endpoint, server_version
from podperf.topology import WorkerPortSettings


class Hostile:
    """A host whose every command says this."""

    name = "worker1"

    def __init__(self, said: str) -> None:
        self._said = said

    def ask(self, *command: str, **_: object) -> Completed:
        return Completed(command, 0, self._said, "")


@pytest.mark.parametrize("said", ["[" * 200_000, "{}", "7", "[7]", "\x1b[2J", "[{]", "9" * 5000])
def test_an_answer_that_is_none_is_one_line(said: str) -> None:
    host: Any = Hostile(said)
    with pytest.raises(PodperfError, match="on worker1, `ip -json link show` gave no valid answer: ") as caught:
        ip_json(host, "link", "show")
    assert str(caught.value).isprintable() and len(str(caught.value)) < 300


QUESTIONS: dict[str, Callable[[Any], object]] = {
    "settings of Open vSwitch": read_ovs_settings,
    "pods of a cluster": read_pods,
    "VLANs of virtual functions": lambda host: read_vlans(host, "ens4"),
    "a port's device": lambda host: device_of(host, WorkerPortSettings("ens4")),
    "BPF programs": lambda host: bpftool_json(host, "prog", "show"),
    "sockets of AF_XDP": lambda host: describe_sockets(host, 1),
    "a version of TRex": lambda host: server_version(host, Endpoint("192.0.2.1", 4501), 1.0),
}
NONSENSE = ["[" * 200_000, "{]", "7", '[{"vfinfo_list": [{"vf": 0}]}]', '{"items": [7]}', "\x1b[2J", "9" * 5000]


@pytest.mark.parametrize("said", NONSENSE)
@pytest.mark.parametrize("asked", QUESTIONS)
def test_no_nonsense_of_a_worker_is_a_traceback(asked: str, said: str) -> None:
    host: Any = Hostile(said)
    try:
        QUESTIONS[asked](host)
    except PodperfError as error:
        assert re.match("on worker1, `.*` gave no valid answer: ", str(error))
        assert str(error).isprintable() and len(str(error)) < 400


@pytest.mark.parametrize("setting", [["pmd-cpu-mask", "all"], ["dpdk-socket-mem", "1024,much"]])
def test_a_setting_of_open_vswitch_that_is_no_number_is_unchecked(setting: list[str]) -> None:
    (found,) = _in_switch({"dpdk-init": "true", **dict([setting])}, node=0 if setting[0] == "dpdk-socket-mem" else None)
    assert found.state is State.UNCHECKED
    assert setting[1].split(",")[-1] in found.detail


class Answering:
    """A process that answers this."""

    def __init__(self, said: str) -> None:
        self._said = said

    def receive(self, timeout: float) -> str:
        return self._said


@pytest.mark.parametrize("said", ["[" * 200_000, "[]", '{"trial": ' + "9" * 5000 + "}", '{"other": 1}', "\x1b[2J"])
def test_a_tester_whose_answer_is_none_is_one_line(said: str) -> None:
    process: Any = Answering(said)
    with pytest.raises(PodperfError, match="the tester gave no valid answer: ") as caught:
        receive_answer(process, 1.0, {"trial"}, "the tester")
    assert str(caught.value).isprintable() and len(str(caught.value)) < 300


def test_a_testbed_that_cannot_be_opened_for_an_unforeseen_reason_says_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Robot Framework's console is silent, and its exception would stand in the log alone."""

    def fail(*_: object, **__: object) -> None:
        raise KeyError("ifname\x1b[2J")

    monkeypatch.setattr(Testbed.BuiltIn, "get_variable_value", lambda *_: str(tmp_path))
    monkeypatch.setattr(Testbed, "read_topology", lambda _: None)
    monkeypatch.setattr(Testbed, "Session", fail)
    monkeypatch.setattr("sys.__stderr__", None)  # otherwise the stream is not captured
    with pytest.raises(KeyError):
        Testbed.Testbed().open_testbed(tmp_path)
    assert capsys.readouterr().err == "podperf: KeyError: 'ifname\\x1b[2J'\n"
