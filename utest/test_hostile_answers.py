"""A machine that answers nonsense makes a run fail, with a line that says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import Testbed
from podperf.dataplanes.bpf_programs import bpftool_json
from podperf.errors import PodperfError
from podperf.hosts.linux import mac_address
from podperf.kernel.xdp_sockets import describe_sockets
from podperf.model import Direction, Entry, Trial
from podperf.observation import State
from podperf.pods.cni import interface_of
from podperf.preflight.mistakes import _in_switch, read_ovs_settings, read_vlans
from podperf.testbed.placement import device_of
from podperf.testers.answers import receive_answer
from podperf.testers.base import PortFacts
from podperf.testers.headers import templates_of
from podperf.testers.software import request_line
from podperf.testers.trex_rpc import Endpoint, server_version
from podperf.topology import WorkerPortSettings
from scripted_host import ScriptedHost
from traffic import TRAFFIC


def hostile(said: str) -> ScriptedHost:
    """A host whose every command says this."""
    return ScriptedHost(answers={"": said})


QUESTIONS: dict[str, Callable[[Any], object]] = {
    "settings of Open vSwitch": read_ovs_settings,
    "VLANs of virtual functions": lambda host: read_vlans(host, "ens4"),
    "a port's device": lambda host: device_of(host, WorkerPortSettings("ens4")),
    "BPF programs": lambda host: bpftool_json(host, "prog", "show"),
    "sockets of AF_XDP": lambda host: describe_sockets(host, 1),
    "a version of TRex": lambda host: server_version(host, Endpoint("192.0.2.1", 4501), 1.0),
}
NONSENSE = ["[" * 200_000, "{]", "7", "[7]", '[{"vfinfo_list": [{"vf": 0}]}]', '{"items": [7]}', "\x1b[2J", "9" * 5000]


# JSON without the values that these questions read, which is an answer.
ANSWERS = {"BPF programs": NONSENSE[2:6], "a port's device": NONSENSE[4:5], "sockets of AF_XDP": NONSENSE[4:5]}


@pytest.mark.parametrize(
    ("asked", "said"), [(asked, said) for asked in QUESTIONS for said in NONSENSE if said not in ANSWERS.get(asked, [])]
)
def test_nonsense_of_a_worker_is_one_line(asked: str, said: str) -> None:
    with pytest.raises(PodperfError, match=r"^on scripted host, `.*` gave no valid answer: ") as caught:
        QUESTIONS[asked](hostile(said))
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


@pytest.mark.parametrize("setting", [["pmd-cpu-mask", "all"], ["dpdk-socket-mem", "1024,much"]])
def test_a_setting_of_open_vswitch_that_is_no_number_is_unchecked(setting: list[str]) -> None:
    (found,) = _in_switch({"dpdk-init": "true", **dict([setting])}, node=0 if setting[0] == "dpdk-socket-mem" else None)
    assert found.state is State.UNCHECKED
    assert setting[1].split(",")[-1] in found.detail


CRAFTED = "02:00:00:00:00:02 left-to-right.source=198.18.0.1 left-to-right.address=203.0.113.9"
NO_MACS = [CRAFTED, "02:00:00:00:00:02\n", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "02:00:00:00:00", "", None, 7]


@pytest.mark.parametrize("told", NO_MACS)
def test_no_address_of_a_worker_is_more_than_a_mac(told: object) -> None:
    host = hostile(json.dumps([{"ifname": "ens4", "address": told}]))
    with pytest.raises(PodperfError, match=r"ens4 of scripted host: .* is not the MAC address of one interface"):
        mac_address(host, "ens4")
    result = {"interfaces": [{"name": "net1", "sandbox": "x", "mac": told}]}
    with pytest.raises(PodperfError, match=r"net1, in a CNI result: .* is not the MAC address of one interface"):
        interface_of(result, "net1")


@pytest.mark.parametrize("told", [no_mac for no_mac in NO_MACS if isinstance(no_mac, str)])
def test_no_mac_becomes_several_words_of_a_request(told: str) -> None:
    """Whichever way it came."""
    entries = {Direction.LEFT_TO_RIGHT: Entry(mac=told)}
    traffic = replace(TRAFFIC, entries=entries)
    with pytest.raises(PodperfError, match="the destination of test frames: "):
        request_line(Trial(traffic, 1000.0, 1.0), 0.05, ("02:00:00:00:00:01", "02:00:00:00:00:02"))
    for facts in (PortFacts, lambda mac: templates_of(TRAFFIC, Direction.LEFT_TO_RIGHT, (mac, mac))):
        if told:
            with pytest.raises(PodperfError, match="is not the MAC address of one interface"):
                facts(told)


@pytest.mark.parametrize("said", ["[" * 200_000, "[]", '{"trial": ' + "9" * 5000 + "}", '{"other": 1}', "\x1b[2J"])
def test_a_tester_whose_answer_is_none_is_one_line(said: str) -> None:
    process: Any = SimpleNamespace(receive=lambda *_: said)
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
