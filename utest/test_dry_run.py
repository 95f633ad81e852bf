"""The drivers themselves make a plan, and no command of it reaches a machine."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from finding_rows import TESTS, claims
from podperf.__main__ import call
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling
from podperf.dataplanes.bpf_object import BpfObjectSettings
from podperf.errors import BadArguments, PodperfError, Unavailable
from podperf.hosts.base import WRITTEN, Completed, Host, Process, Refusal
from podperf.hosts.linux import CARRIER_PATIENCE
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.kernel.control_groups import ControlGroup, Controller
from podperf.kernel.cpus import Cpus
from podperf.kernel.threads import threads_named
from podperf.model import Chain, FrameSize, NetworkingModel, Placement, VirtualFunctionSettings
from podperf.pods import POD_RUNTIMES
from podperf.pods.engines import EngineContainer
from podperf.pods.forwarders.testpmd import POLLING_THREADS
from podperf.pods.runc import BUNDLES, RuncContainer
from podperf.preflight.plan import SET_UP, TEAR_DOWN, Plan, PlannedHost, plan, render
from podperf.preflight.recording import Kind, Recording, RecordingHost, within
from podperf.testbed.machines import WorkerMachine
from podperf.testbed.scenarios import SCENARIOS, Node
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testbed.testbed import Testbed
from podperf.topology import (
    SCHEMA_PATH,
    PodSettings,
    PortSettings,
    SoftwareSettings,
    Topology,
    WorkerPortSettings,
    load_topology,
)
from scripted_host import ScriptedHost

TOPOLOGIES = SCHEMA_PATH.parent
SMALL = FrameSize.parse(64)
PLANNED = [name for name, kind in DATA_PLANES.items() if kind.cabling is Cabling.WORKER and name != "bpf-object"]
LABS = ["appendix_a_contiv_vpp", "appendix_b_sriov_dpdk", "appendix_c_multi_pod", "hackathon_113"]


def topology(name: str) -> Topology:
    return load_topology(TOPOLOGIES / f"{name}.yaml", DATA_PLANES)


@pytest.fixture(autouse=True)
def no_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A command that reaches a machine, this one or another, fails the test. Only `tmp_path` can be used."""

    def reached(*what: Any, **_: Any) -> None:
        raise AssertionError(f"a plan reached a machine: {what}")

    for owner, name in (
        (subprocess, "Popen"),
        (subprocess, "run"),
        (os, "system"),
        (socket, "create_connection"),
        (socket.socket, "connect"),
        (LocalHost, "_run"),
        (LocalHost, "spawn"),
        (LocalHost, "put"),
        (Path, "mkdir"),
        (Path, "write_bytes"),
        (Path, "write_text"),
    ):
        monkeypatch.setattr(owner, name, reached)


OF_KUBERNETES = load_topology(TOPOLOGIES / "kubernetes_chains.yaml", DATA_PLANES, POD_RUNTIMES).pods


def text(made: Plan, phase: str = SET_UP) -> str:
    """All steps of a phase. A command stands before its standard input."""
    steps = [(step, step.content if step.kind is Kind.RUN else "") for step in made.steps if step.phase == phase]
    return "\n".join(f"[{each.namespace}] {each.kind}: {each.text} {given}".rstrip() for each, given in steps)


ON_FUNCTIONS = {"sriov", "sriov-ovs-dpdk", "sriov-vpp"}
ON_FUNCTIONS_OF_MELLANOX = {("appendix_a_contiv_vpp", name) for name in ON_FUNCTIONS}


# Commands that change something, by how they begin.
CHANGES = re.compile(
    r"(env \S+=\S+ )*"
    r"(ip (?!-json)(\S+ )*(add|del|set|replace)\b|ethtool -[A-Z] (?!\S+$)|sysctl -\w*w|tc \w+ add|nft -f|tee |rm |kill "
    r"|chmod |mkdir |renice |chrt |taskset --cpu-list --pid \S+ \d+$|modprobe (?!--dry-run)|bpftool map update"
    r"|env CNI_COMMAND=|ovs-vsctl (\S+ )*(add-|del-|set )|ovs-ofctl (add|del)-|vppctl -s \S+ (?!show ))"
)


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that drivers ask while they make a plan."""
    asked: list[str] = []
    answered = PlannedHost.ask

    def listening(host: PlannedHost, *command: str, **how: Any) -> Completed:
        asked.append(" ".join(within(command)[1]))
        return answered(host, *command, **how)

    monkeypatch.setattr(PlannedHost, "ask", listening)
    return asked


@pytest.mark.parametrize("lab", ["local", *LABS])
@pytest.mark.parametrize("name", PLANNED)
def test_every_data_plane_has_a_plan_on_every_testbed(name: str, lab: str, questions: list[str]) -> None:
    try:
        made = plan(
            topology(lab), Chain(name, 0 if name == "xdp-offload" else max(1, DATA_PLANES[name].least_pods)), SMALL
        )
    except Unavailable as reason:
        assert lab == "local" or name == "xdp-offload" or (lab, name) in ON_FUNCTIONS_OF_MELLANOX, reason
        assert "PCI" in str(reason) or "NIC" in str(reason) or "virtual functions" in str(reason)
        return
    assert {step.phase for step in made.steps} == {SET_UP, TEAR_DOWN}
    assert "pod1" in text(made)
    where = {step.host for step in made.steps}
    assert where <= ({"this machine"} if lab == "local" else {"192.0.2.20", "this machine"})
    shown = render(made)
    assert f"on {topology(lab).name}" in shown
    assert all(f"on {host}" in shown for host in where)
    assert questions
    assert not [command for command in questions if CHANGES.match(command)], "a question changes nothing"


@pytest.mark.parametrize("name", [test.name for test in TESTS if "chain-length" in test.tags])
def test_the_chains_of_section_4_2_4_have_plans(name: str) -> None:
    longest = claims()[name].contenders[-1].chain
    made = text(plan(topology("local"), longest, SMALL))
    assert longest.pods == 6
    assert {f"pod{number}" for number in range(1, 7)} <= set(re.findall(r"pod\d\b", made))


def test_a_bpf_object_has_a_plan_if_the_topology_names_one(tmp_path: Path) -> None:
    file = tmp_path / "xdp_redirect.bpf.o"
    file.touch()
    lab = topology("appendix_c_multi_pod")
    with pytest.raises(Unavailable, match="the topology names no BPF object"):
        plan(lab, Chain("bpf-object", 1), SMALL)
    named = replace(lab, data_planes={"bpf-object": BpfObjectSettings(str(file), "xdp")})
    made = text(plan(named, Chain("bpf-object", 1), SMALL))
    assert made.count("xdp_redirect.bpf.o section xdp") == 4
    assert made.count("bpftool map update id '<map of that program>'") == 4


def test_programs_are_offloaded_to_cards_that_run_them(first_lab: Topology) -> None:
    cards = {side: WorkerPortSettings(side, driver="nfp") for side in ("left", "right")}
    lab = replace(first_lab, workers=(replace(first_lab.workers[0], **cards),))
    assert "ip link set dev left xdpoffload object" in text(plan(lab, Chain("xdp-offload", 0), SMALL))
    with pytest.raises(Unavailable, match="no eBPF program on the NIC: the driver i40e offloads none"):
        plan(first_lab, Chain("xdp-offload", 0), SMALL)


def test_the_bare_path_and_a_black_box_have_plans(first_lab: Topology) -> None:
    made = text(plan(topology("local"), Chain("wire", 0), SMALL))
    assert re.search(r"podperf-tester'? --left left@podperf-tester --right right@podperf-tester", made)
    ports = PortSettings("l", "box"), PortSettings("r", "box")
    tester = replace(topology("local").tester, left=ports[0], right=ports[1])
    box = plan(replace(topology("local"), tester=tester), Chain("external", 0), SMALL)
    assert [step.kind for step in box.steps] == [Kind.START, Kind.STOP]
    assert "--left l@box --right r@box" in text(box)
    for lab, name in ((first_lab, "wire"), (first_lab, "external"), (topology("local"), "external")):
        with pytest.raises(Unavailable):
            plan(lab, Chain(name, 0), SMALL)


@pytest.mark.parametrize(
    ("switch", "threads"),
    [((20,), "main-core 24 corelist-workers 20"), (range(20, 25), "main-core 20 corelist-workers 21,22,23,24")],
)
def test_vpp_has_no_worker_on_its_main_core(switch: Sequence[int], threads: str) -> None:
    lab = topology("appendix_c_multi_pod")
    lab = replace(lab, workers=(replace(lab.workers[0], switch_cpus=tuple(switch)),))  # of 20 to 24
    made = plan(lab, Chain("vpp-l2patch", 1), SMALL)
    (start_up,) = (step.content for step in made.steps if step.text.endswith("startup.conf"))
    assert f"cpu {{ {threads} }}" in start_up


def cpus_of(steps: Plan, pattern: str) -> list[int]:
    """The CPU that a pattern finds in the steps of a set-up, in their order."""
    return [int(each, 0) for each in re.findall(pattern, text(steps))]


def test_a_chain_along_two_workers_has_a_plan() -> None:
    """A set-up of the hackathon: the last pod of the first worker sends to the first pod of the second worker."""
    made = plan(topology("hackathon_113"), Chain("sriov-vpp", 4, workers=2), SMALL)
    first, second = (
        [step.text for step in made.steps if step.host == host and step.phase == SET_UP]
        for host in ("192.0.2.20", "192.0.2.21")
    )
    assert {f"ip netns add podperf-pod{number}" for number in (1, 2)} <= set(first) & set(second)
    given = [re.findall(r"vf 0 mac (\S+)", "\n".join(each)) for each in (first, second)]
    assert len({*given[0], *given[1]}) == 4, "they share a network"
    assert any("dpdk-testpmd" in line and f"--eth-peer=0,{given[1][0]}" in line for line in first)
    assert {step.host for step in made.steps if step.phase == TEAR_DOWN} == {"192.0.2.20", "192.0.2.21", "this machine"}
    assert "enp59s0f0 is taken to have 8 queues." in made.assumptions
    assert len(made.assumptions) == len(set(made.assumptions))


@pytest.mark.parametrize("name", [f"S{number}" for number in range(1, 7)])
@pytest.mark.parametrize("lab", ["appendix_c_multi_pod", "appendix_a_contiv_vpp"])
def test_a_placement_has_a_plan(name: str, lab: str) -> None:
    scenario = SCENARIOS[name]
    made = plan(topology(lab), Chain("ovs-dpdk", 2), SMALL, scenario=scenario)
    (mask,) = cpus_of(made, r'pmd-cpu-mask="(0x\w+)"')
    switch = [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1]
    pods = cpus_of(made, r"--lcores=\S+,\d+@(\d+)")
    on_node = set(topology(lab).workers[0].cpus or ())
    on_node |= {25, 26, 27} if lab == "appendix_c_multi_pod" else {7, 8}
    assert [cpu in on_node for cpu in switch] == [scenario.switch is Node.NIC] * 2
    assert [cpu in on_node for cpu in pods] == [node is Node.NIC for node in scenario.pods]
    assert len({*switch, *pods}) == 4
    shown = render(made)
    assert shown.startswith(f"ovs-dpdk, 2 pods, placed as in {name}, on ")
    assert "The worker is taken to have two NUMA nodes: that of the NIC with CPU " in shown
    assert 'dpdk-socket-mem="256,256"' in shown


def test_the_nodes_of_a_plan_are_said() -> None:
    shown = render(plan(topology("appendix_c_multi_pod"), Chain("ovs-dpdk", 2), SMALL, scenario=SCENARIOS["S1"]))
    assert "the NIC with CPU 20-27 (workers[0].cpus is there), another one with CPU 0-19." in shown
    assert "one NUMA node" in render(plan(topology("appendix_c_multi_pod"), Chain("ovs-dpdk", 2), SMALL))


def test_pods_that_share_cpus_are_let_onto_them() -> None:
    lab = topology("appendix_a_contiv_vpp")
    made = plan(lab, Chain("vpp-l2patch", 2), SMALL, scenario=SCENARIOS["shared-different-node"])
    for pod in ("pod1", "pod2"):
        assert f"taskset --all-tasks --cpu-list --pid 9,10 '<process of dpdk-testpmd in {pod}>'" in text(made)
    with pytest.raises(Unavailable, match="the kernel forwards for them"):
        plan(lab, Chain("linux-bridge", 2), SMALL, scenario=SCENARIOS["shared-same-node"])


def test_this_machine_has_the_nodes_that_it_has() -> None:
    with pytest.raises(Unavailable, match="the worker has one node"):
        cpus = tuple(range(8))
        plan(topology("local"), Chain("ovs-dpdk", 2), SMALL, Cpus(cpus, cpus), SCENARIOS["S1"])


def test_virtual_functions_are_made_as_the_topology_says() -> None:
    lab = topology("appendix_b_sriov_dpdk")
    wanted = VirtualFunctionSettings(3, (100, 200), True, False, queues=2)
    lab = replace(lab, workers=(replace(lab.workers[0], sriov=wanted),))
    made = text(plan(lab, Chain("sriov", 1), SMALL))
    assert "0000:03:00.0 3" in made, "three of each port"
    for setting in ("vlan 100", "spoofchk off", "trust on"):
        assert re.search(rf"ip link set dev enp3s0f0 vf 2 .*{setting}", made), setting
    assert re.search(r"ip link set dev enp3s0f1 vf 2 .*vlan 200", made)
    assert "--rxq=2 --txq=2" in made
    assert re.search(r"ethtool -L net1 combined 2", text(plan(lab, Chain("sriov", 1, "kernel"), SMALL)))
    for combination in ("sriov-ovs-dpdk", "sriov-vpp"):
        with pytest.raises(Unavailable, match=r"sriov\.queues of the worker must be 1 for it, not 2"):
            plan(lab, Chain(combination, 2), SMALL)


def test_buffers_hold_jumbo_frames_where_dpdk_drives_the_cards() -> None:
    chain = Chain("ovs-dpdk", 1)
    made = text(plan(topology("appendix_c_multi_pod"), chain, FrameSize.parse(9018)))
    assert "--max-pkt-len=9026 --mbuf-size=9154" in made
    assert made.count("mtu_request=9000") == 4, "both ports and both sockets"
    assert "mtu_request" not in text(plan(topology("appendix_c_multi_pod"), chain, SMALL))
    with pytest.raises(Unavailable, match="one buffer of a device of DPDK on a port that the kernel keeps"):
        plan(topology("local"), chain, FrameSize.parse(9018))


@pytest.fixture
def first_lab(tmp_path: Path) -> Topology:
    """The lab with a TRex of the documentation: the least that there can be, without PCI addresses."""
    example = re.findall(r"^```yaml\n(.*?)^```", (TOPOLOGIES.parent / "docs/first-lab.md").read_text(), re.M | re.S)[-1]
    file = tmp_path / "first-lab.yaml"
    with file.open("w") as lab:
        lab.write(example)
    return load_topology(file)


def test_a_port_without_an_address_in_the_topology_is_that_of_a_card(first_lab: Topology) -> None:
    assert first_lab.workers[0].left is not None and first_lab.workers[0].left.pci is None
    made = plan(first_lab, Chain("ovs-dpdk", 1), SMALL)
    assert "iface=" not in text(made)  # DPDK has the cards by itself, and no AF_XDP device
    for address in ("0000:ff:00.0", "0000:ff:00.1"):
        assert re.search(rf"sh {address} vfio-pci$", text(made), re.MULTILINE)
        assert f"dpdk-devargs={address}" in text(made)
    shown = render(made)
    assert "The PCI address of enp175s0f0 is not in the topology: 0000:ff:00.0 stands for it." in shown
    assert "0000:ff:00.1 stands for it" in shown
    assert "sriov_numvfs" in text(plan(first_lab, Chain("sriov", 1), SMALL))
    assert "stands for it" not in render(plan(topology("appendix_b_sriov_dpdk"), Chain("sriov", 1), SMALL))


def test_a_card_whose_driver_keeps_it_is_not_taken_away(first_lab: Topology) -> None:
    made = plan(topology("appendix_a_contiv_vpp"), Chain("ovs-dpdk", 1), SMALL)
    assert "net_af_xdp_left,iface=enp24s0f0" in text(made)
    assert "vfio-pci" not in text(made)
    assert "not in the topology" not in render(made)
    assert "The driver of enp175s0f1 is not in the topology: it is taken to be i40e." in render(
        plan(first_lab, Chain("ovs-dpdk", 1), SMALL)
    )


def test_virtual_functions_of_such_a_card_forward_in_the_kernel_only() -> None:
    lab = topology("appendix_a_contiv_vpp")  # its ports have mlx5_core
    for data_plane in ON_FUNCTIONS:
        with pytest.raises(Unavailable, match=r"only together with mlx5_core.*forwarder=kernel"):
            plan(lab, Chain(data_plane, 2), SMALL)
    assert "vfio-pci" not in text(plan(lab, Chain("sriov", 2, "kernel"), SMALL))


def test_a_veth_as_the_port_of_a_worker_has_a_thread_of_the_kernel(first_lab: Topology) -> None:
    ports = {side: WorkerPortSettings(side[0], driver="veth") for side in ("left", "right")}
    lab = replace(first_lab, workers=(replace(first_lab.workers[0], **ports),))
    made = plan(lab, Chain("linux-bridge", 1), SMALL)
    assert "taskset --cpu-list --pid 20 '<thread 1 of those named napi/l-*>'" in text(made)
    assert "interrupt" not in text(made)
    assert "sh l threaded 0" in text(made, TEAR_DOWN)
    assert "0000:" not in render(made)
    with pytest.raises(Unavailable, match="is no NIC's port"):
        plan(lab, Chain("sriov", 1), SMALL)


def test_interrupts_of_a_card_are_served_by_the_cpus_of_the_worker(first_lab: Topology) -> None:
    made = plan(first_lab, Chain("linux-bridge", 1), SMALL)
    assert "sh '<each-interrupt-of-0000:ff:00.0>' 20\n" in text(made)
    assert "sh '<each-interrupt-of-0000:ff:00.1>' 24\n" in text(made)
    assert "'<each-interrupt-of-0000:ff:00.0>' '<CPUs-that-served-it-before>'" in text(made, TEAR_DOWN)
    assert "napi/" not in text(made)


def test_frames_for_the_software_tester_are_addressed_to_its_own_ports(first_lab: Topology) -> None:
    ports = PortSettings("enp3s0f0"), PortSettings("enp3s0f1", "cabled")
    tester = replace(first_lab.tester, kind=SoftwareSettings(), left=ports[0], right=ports[1])
    made = text(plan(replace(first_lab, tester=tester), Chain("linux-bridge", 1), SMALL))
    assert "lladdr <MAC of enp3s0f0> dev net1" in made
    assert "lladdr <MAC of enp3s0f1 in cabled> dev net2" in made


OWN_TREX = "settings: {server: {directory: /opt/trex, options: [--mlx5-so], low_end: no}, client: /c, interpreter: /py}"
AWAY = "workers: [{connection: ssh, ssh: {address: 192.0.2.20}, ports: {left: {interface: a}, right: {interface: b}}}]"
DEEDS = {
    "tester: {cpus: 3, settings: {engine: packet-ring}}": ["podperf-tester .*--cpu 3 --engine packet-ring"],
    "tester: {ports: {left: {interface: c, namespace: n}, right: {interface: d}}}\n" + AWAY: ["--left c@n --right d "],
    "workers: [{cpus: 4-6}]": [
        "lcores=0@.*,5@5'",
        'dpdk-lcore-mask="0x40"',
        "--cpu-list --pid 6 ",
        'pmd-cpu-mask="0x10"',
        "nr_hugepages",
        "--in-memory",
    ],
    "workers: [{cpus: 4-6, switch_cpus: 5}]": ["lcores=0@.*,4@4'", 'pmd-cpu-mask="0x20"'],
    # DPDK knows 128 lcores.
    "workers: [{cpus: 200-202}]": [r"--lcores=.*,\d+@201'", 'dpdk-extra=".*--lcores=0@202', "--cpu-list --pid 202 "],
    "workers: [{hugepages: none}]": ["testpmd .*--no-huge", "dpdk-extra=.*--no-huge"],
    f"tester: {{type: trex, cpus: 1-3, {OWN_TREX}}}": [
        "master_thread_id: 1\n.*latency_thread_id: 2\n",
        "sh /opt/trex .*--mlx5-so",
        '/py .*"client": "/c"',
    ],
    "tester: {type: trex, settings: {address: 192.0.2.9, port: 11, publisher_port: 12, ports: {left: 4, right: 6}}}\n"
    + AWAY: [
        '"address": "192.0.2.9", "port": 11, "publisher_port": 12, "ports": .4, 6.',
        "link set dev a netns podperf-worker",
    ],
}


@pytest.mark.parametrize("keys", DEEDS)
def test_what_a_file_says_is_done(keys: str, tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    with file.open("w") as lab:
        lab.write(f"version: 1\nname: lab\n{keys}\n")
    made = plan(load_topology(file), Chain("ovs-dpdk", 1), SMALL).steps
    done = "\n".join(f"{each.text} {each.content}" for each in made if each.phase == SET_UP)
    assert [each for each in DEEDS[keys] if not re.search(each, done)] == []
    assert ("nr_hugepages" in done) == ("hugepages: none" not in keys)


@pytest.mark.parametrize("name", PLANNED)
def test_a_data_plane_does_the_same_with_pods_that_are_containers(name: str) -> None:
    """The steps differ only in the start of a pod, and in the start of a program in it. A pod of Kubernetes has its
    memory, and the pipes of its program, in another way."""
    chain = Chain(name, max(1, DATA_PLANES[name].least_pods))
    steps: dict[str, list[str]] = {}
    runtimes = ("namespaces", "runc", "docker", "podman")
    for pods in (*map(PodSettings, runtimes), OF_KUBERNETES):
        try:
            made = plan(replace(topology("local"), pods=pods), chain, SMALL)
        except Unavailable:  # on the local testbed, without a network card
            return
        texts = [f"[{step.namespace}] {step.kind}: {step.text}" for step in made.steps]
        for pattern, word in ((r"netns (add|attach) (\S+).*", r"netns \2"), (r"<(process|number)[^>]*>", "<process>")):
            texts = [re.sub(pattern, word, each) for each in texts]
        own = re.compile(
            r"runc|\bdocker [^|]|] (tell|stop): (docker|podman)|\bpodman |sh (docker|podman)$|kubectl"
            r"|\[\] stop: unshare|/run/podperf-journal"
        )
        steps[pods.runtime] = [each for each in texts if not own.search(each)]
        started = [step for step in made.steps if step.kind is Kind.START]
        assert len(started) == len([step for step in made.steps if step.kind is Kind.STOP])
    assert steps["namespaces"] == steps["runc"] == steps["docker"] == steps["podman"]
    if not any("testpmd" in namespace for namespace in steps["namespaces"]):
        assert steps["namespaces"] == steps["kubernetes"]


def test_what_was_set_up_is_taken_down_in_the_opposite_order() -> None:
    made = plan(topology("local"), Chain("linux-bridge", 2), SMALL)
    added = [step.text.split()[-1] for step in made.steps if step.text.startswith("ip netns add")]
    removed = [step.text.split()[-1] for step in made.steps if step.text.startswith("ip netns del")]
    assert added == removed[::-1]
    assert {"podperf-tester", "podperf-worker", "podperf-pod1", "podperf-pod2"} == set(added)


def test_what_only_the_host_knows_has_a_name() -> None:
    made = text(plan(topology("local"), Chain("linux-bridge", 1), SMALL))
    assert "lladdr <MAC of left in tester> dev net1" in made
    assert "02:00:5e" not in made
    assert "taskset --cpu-list --pid 7 '<thread 1 of those named napi/w-left-*>'" in made
    assert "1000000" not in made


def test_a_plan_begins_with_the_role_of_each_cpu() -> None:
    local = topology("local")
    lab = replace(local, workers=(replace(local.workers[0], cpus=(2, 3, 4), switch_cpus=(2,)),))
    head = render(plan(lab, Chain("ovs-dpdk", 2), SMALL)).splitlines()[:8]
    assert (
        "CPUs of the worker: tester 0, receives left 2, receives right 4, switch 2, control 3-4, pod 1 3, pod 2 4, "
        "neighbour 1,5-7." in head
    )
    assert "CPU 4 of the worker has 3 roles: receives right, control, pod 2." in head
    assert not [line for line in render(plan(lab, Chain("wire", 0), SMALL)).splitlines() if line.startswith("CPU")]


def test_the_command_line_shows_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["check", str(TOPOLOGIES / "local.yaml"), "--plan", "macvlan", "--pods", "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("macvlan, 2 pods, on local: what a run would do")
    assert "[pod2] sh -c <script of step 6> sh net/ipv4/ip_forward=1" in shown
    with pytest.raises(PodperfError, match=r"--plan: found 'brigde'; allowed: all, wire, .*; near: linux-bridge"):
        call(["check", str(TOPOLOGIES / "local.yaml"), "--plan", "brigde"])
    assert call(["check", str(TOPOLOGIES / "appendix_c_multi_pod.yaml"), "--plan", "ovs-dpdk", "--scenario", "S6"]) == 0
    assert capsys.readouterr().out.startswith("ovs-dpdk, 1 pod, placed as in S6, on appendix-c-multi-pod")
    with pytest.raises(BadArguments, match="choose from") as refused:
        call(["check", str(TOPOLOGIES / "local.yaml"), "--plan", "ovs-dpdk", "--scenario", "S9"])
    said = str(refused.value)
    assert all(name in said for name in SCENARIOS)
    for pods in (["--pods", "2"], ["--plan", "macvlan", "--pods", "-1"]):
        with pytest.raises(BadArguments, match="--pods is "):
            call(["check", str(TOPOLOGIES / "local.yaml"), *pods])
    with pytest.raises(PodperfError, match="macvlan needs 1 or more pods, not 0"):
        call(["check", str(TOPOLOGIES / "local.yaml"), "--plan", "macvlan", "--pods", "0"])
    for name, pods_by_default in (("xdp-redirect", "0 pods"), ("memif", "2 pods"), ("wire", "0 pods")):
        assert call(["check", str(TOPOLOGIES / "local.yaml"), "--plan", name]) == 0
        assert capsys.readouterr().out.startswith(f"{name}, {pods_by_default}, on local")


@pytest.mark.parametrize("lab", ["local", *LABS])
def test_the_command_line_shows_all_plans(lab: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["check", str(TOPOLOGIES / f"{lab}.yaml"), "--plan", "all"]) == 0
    shown = capsys.readouterr().out
    parts = dict(re.findall(r"^=== (\S+)\n\n(.*?)\n\n(?:(?==== )|\Z)", shown, re.MULTILINE | re.DOTALL))
    assert list(parts) == list(DATA_PLANES)
    without = {name for name, part in parts.items() if part.startswith("no plan: ")}
    assert not [name for name in without if "\n" in parts[name]]
    assert all(parts[name].startswith(f"{name}, ") for name in parts.keys() - without)
    wanted = {"external", "xdp-offload", "bpf-object", *(ON_FUNCTIONS if lab == "local" else {"wire"})}
    assert without == wanted | {name for where, name in ON_FUNCTIONS_OF_MELLANOX if where == lab}


def test_pods_of_all_plans_are_as_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["check", str(TOPOLOGIES / "local.yaml"), "--plan", "all", "--pods", "1"]) == 0
    shown = capsys.readouterr().out
    assert "tc-redirect, 1 pod, on" in shown
    assert "wire, 0 pods, on" in shown
    assert "=== memif\n\nno plan: memif needs 2 or more pods, not 1\n" in shown
    with pytest.raises(PodperfError, match="there is no plan for one"):
        call(["check", str(TOPOLOGIES / "virtual.yaml"), "--plan", "all"])
    assert capsys.readouterr().out == ""


def test_the_command_line_names_frames_and_forwarders(capsys: pytest.CaptureFixture[str]) -> None:
    local = str(TOPOLOGIES / "local.yaml")
    assert call(["check", local, "--plan", "linux-bridge", "--frame", "3000"]) == 0
    assert "mtu 2982" in capsys.readouterr().out
    assert call(["check", local, "--plan", "ovs-dpdk", "--forwarder", "l2fwd", "--frame", "IMIX"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("ovs-dpdk, 1 pod with l2fwd, on local")
    assert "dpdk-l2fwd" in shown and "dpdk-testpmd" not in shown and "mtu 1500" in shown
    with pytest.raises(PodperfError, match=r"cannot forward by 'l3fwd'; known: .*l2fwd"):
        call(["check", local, "--plan", "ovs-dpdk", "--forwarder", "l3fwd"])
    for wrong, said in ((["--plan", "ptp", "--frame", "63"], "outside 64 to 9022"), (["--frame", "64"], "of a --plan")):
        with pytest.raises(BadArguments, match=re.escape(said)):
            call(["check", local, *wrong])


# --- facts of data planes: callers decide by these, and not by the category of a data plane's reports ---------------


def standing(data_plane: str, pods: int, driver: str = "nfp") -> SystemUnderTest:
    """A chain between existing ports on cards with this driver, by default one that runs eBPF programs on the card."""
    local, sides = topology("local"), ("left", "right")
    cards = {side: WorkerPortSettings(f"{side}-card", f"0000:81:00.{at}", driver) for at, side in enumerate(sides)}
    tester = replace(local.tester, kind=SoftwareSettings("xdp"), **{side: PortSettings(side) for side in sides})
    existing = replace(local, tester=tester, workers=(replace(local.workers[0], **cards),))
    host = PlannedHost("lab", {"/proc/self/status": b"Cpus_allowed_list: 0-7"})
    testbed = Testbed(existing, [WorkerMachine(existing.workers[0], host, Placement((0,), (1, 2)))], host)
    with ExitStack() as undo:
        return undo.enter_context(testbed.build(Chain(data_plane, pods), SMALL))


def test_links_are_waited_for_where_virtual_functions_are_used_and_only_there() -> None:
    """A program that a NIC runs is reported as SmartNIC, and makes no virtual function."""
    assert standing("sriov", 1).link_patience == CARRIER_PATIENCE
    assert standing("xdp-offload", 0).link_patience == 0


def test_ovs_dpdk_on_af_xdp_ports_is_of_two_models() -> None:
    """DPDK takes most cards from the kernel. It reaches Mellanox cards by AF_XDP sockets."""
    assert standing("ovs-dpdk", 1, driver="mlx5_core").second_model is NetworkingModel.EBPF
    assert standing("ovs-dpdk", 1).second_model is None


@pytest.mark.parametrize("data_plane", ["af-xdp", "ovs-dpdk", "ovs-netdev", "memif"])
def test_data_planes_that_poll_are_not_judged_on_a_counted_machine(data_plane: str) -> None:
    counted, host = topology("counted"), PlannedHost("inside", {})
    testbed = Testbed(counted, [WorkerMachine(counted.workers[0], host, Placement((0,), (0,)))], host)
    with pytest.raises(Unavailable, match=f"{data_plane} is not judged on a counted machine: its processes poll"):
        testbed.demand(Chain(data_plane, 2))


# --- the recording ----------------------------------------------------------------------------------------------------


def test_namespaces_are_told_from_commands() -> None:
    inside = ("nsenter", "--net=/run/netns/podperf-pod1", "--")
    assert within((*inside, "ip", "link")) == ("podperf-pod1", ("ip", "link"))
    assert within(("ip", "link")) == ("", ("ip", "link"))
    first = ("nsenter", "--net=/proc/1/ns/net", "--")
    assert within((*inside, *first, "ip", "link")) == ("", ("ip", "link"))


class Starting(ScriptedHost):
    """A host that remembers the process that it has started."""

    started: tuple[str, ...] = ()

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        self.started = command
        return Mock(pid=7)


def test_a_runtime_says_in_which_pod_its_command_runs_another_one() -> None:
    host = Starting({f"{BUNDLES}/pod1/application1.pid": "17"}, patient=True)
    pod = RuncContainer("pod1", NetworkNamespace("podperf-pod1", host), host)
    pod.start_application(["dpdk-testpmd", "-i"], ExitStack())
    assert within(host.started) == ("podperf-pod1", ("dpdk-testpmd", "-i"))
    host = Starting(answers={"timeout": "", "cat": "17"})
    group = ControlGroup(host, {Controller("cpu", 1, "/groups"): "/groups/docker/1"})
    for limited in (None, group):
        container = EngineContainer("pod1", NetworkNamespace("podperf-pod1", host), host, 16, limited, {})
        assert container.start_application(["dpdk-testpmd", "-i"], ExitStack()).pid == 17
        assert within(host.started) == ("podperf-pod1", ("dpdk-testpmd", "-i"))
    asked = ("unshare", "--mount", "sh", "-c", "echo", "exec", "podperf-pod1")
    assert within(asked) == ("", asked)


LEFT = '[{"ifname": "left", "address": "02:00:00:00:00:07", "ifindex": 3}]'


def recorded(recording: Recording, answer: str = LEFT) -> Host:
    """A host that answers everything alike, and records what is done there."""
    return RecordingHost(ScriptedHost(answers={"": answer}), recording)


def test_a_recording_has_what_is_done_and_not_what_is_asked() -> None:
    recording = Recording()
    host = recorded(recording)
    namespace = NetworkNamespace("podperf-pod1", host)
    for each in (host, namespace):
        each.ask("the same", "command")
        each.do("the same", "command")
    assert [(step.namespace, step.text) for step in recording.steps] == [
        ("", "'the same' command"),
        ("podperf-pod1", "'the same' command"),
    ]


def test_a_recording_passes_on_and_names_what_it_learns() -> None:
    recording = Recording()
    host = recorded(recording)
    assert "02:00" in host.ask("ip", "-json", "link", "show", "dev", "left").stdout
    host.do("ip", "neigh", "replace", "192.0.2.1", "lladdr", "02:00:00:00:00:07", "dev", "net1")
    (step,) = recording.steps
    assert step.text == "ip neigh replace 192.0.2.1 lladdr '<MAC of left>' dev net1"


def test_a_value_within_a_name_is_not_replaced_again() -> None:
    recording = Recording()
    recording.learn(17, "thread 2 of those that poll")
    recording.learn(2, "process of testpmd")
    recording.write("worker", "", Kind.RUN, ("renice", "--pid", "17"))
    assert recording.steps[0].text == "renice --pid '<thread 2 of those that poll>'"


@pytest.mark.parametrize("version", POLLING_THREADS)
def test_threads_of_dpdk_are_recorded_alike_whatever_its_version_calls_them(version: str) -> None:
    recording = Recording()
    host = recorded(recording, "17")
    assert threads_named(host, version, of=7) == [17]
    host.do("renice", "--priority", "-20", "--pid", "17")
    (step,) = recording.steps
    assert step.text == "renice --priority -20 --pid '<thread 1 of those of DPDK that poll>'"


@pytest.mark.parametrize("tool", ["bpftool", "/usr/lib/linux-tools/6.8.0-31-generic/bpftool"])
def test_bpftool_is_recorded_alike_wherever_the_distribution_has_it(tool: str) -> None:
    recording = Recording()
    host = recorded(recording)
    host.ask("ip", "-json", "link", "show", "dev", "left")
    host.ask(tool, "--json", "prog", "show", "id", "1")
    index = map(str, (3).to_bytes(4, sys.byteorder))
    host.do(tool, "map", "update", "id", "1", "key", "0", "0", "0", "0", "value", *index)
    (step,) = recording.steps
    assert step.text == "bpftool map update id '<map of that program>' key 0 0 0 0 value '<index of left>'"


def test_a_question_without_an_assumed_answer_is_named_with_its_line() -> None:
    worker = NetworkNamespace("podperf-worker", RecordingHost(PlannedHost("worker", {}), Recording()))
    process = worker.spawn("vpp")
    for question in (lambda: worker.ask("which", "vpp"), lambda: worker.get("/y"), lambda: process.receive(1.0)):
        with pytest.raises(PodperfError, match=r"a plan has no answer to `.*(vpp|/y)`.*test_dry_run\.py:\d+"):
            question()


def test_a_planned_host_reads_back_what_was_written() -> None:
    host = PlannedHost("worker", {"/x": b"before"})
    host.put(b"content", "/x")
    host.put(b"further", "/folder/1")
    assert host.get("/x", b"assumed") == b"content"
    assert host.ask("ls", "/folder", assumed=WRITTEN).stdout == "1"
    assert host.do("ip", "link", assumed=Refusal("no")) == Completed(("ip", "link"), 1, "", "no")
