"""The drivers themselves make a plan, and no command of it reaches a machine."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling
from podperf.dataplanes.bpf_programs import OBJECTS
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Completed, Host, Process
from podperf.hosts.local import LocalHost
from podperf.hosts.network_namespace import NetworkNamespace
from podperf.kernel.cpus import Cpus
from podperf.kernel.threads import threads_named
from podperf.model import Chain, FrameSize, VirtualFunctionSettings
from podperf.pods.forwarders.testpmd import POLLING_THREADS
from podperf.pods.runc import BUNDLES, RuncContainer
from podperf.preflight.command import main
from podperf.preflight.imaginary_host import ImaginaryHost
from podperf.preflight.plan import SET_UP, TEAR_DOWN, Plan, plan, render
from podperf.preflight.recording import Kind, Recording, RecordingHost, within
from podperf.report.draft import BY_CNI_PLUGINS
from podperf.testbed.scenarios import SCENARIOS, Node
from podperf.topology import (
    SCHEMA_PATH,
    BpfObjectSettings,
    PodSettings,
    PortSettings,
    SoftwareSettings,
    Topology,
    WorkerPortSettings,
    load_topology,
)
from podperf.verdicts.claims import CLAIMS
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


def text(made: Plan, phase: str = SET_UP) -> str:
    """All steps of a phase. A command stands before its standard input."""
    steps = [(each, each.content if each.kind is Kind.RUN else "") for each in made.steps if each.phase == phase]
    return "\n".join(f"[{each.namespace}] {each.kind}: {each.text} {given}".rstrip() for each, given in steps)


ON_FUNCTIONS = {"sriov", "sriov-ovs-dpdk", "sriov-vpp"}
ON_FUNCTIONS_OF_MELLANOX = {("appendix_a_contiv_vpp", name) for name in ON_FUNCTIONS}


@pytest.mark.parametrize("lab", ["local", *LABS])
@pytest.mark.parametrize("name", PLANNED)
def test_every_data_plane_has_a_plan_on_every_testbed(name: str, lab: str) -> None:
    try:
        made = plan(
            topology(lab), Chain(name, 0 if name == "xdp-offload" else max(1, DATA_PLANES[name].least_pods)), SMALL
        )
    except Unavailable as reason:
        assert lab == "local" or name == "xdp-offload" or (lab, name) in ON_FUNCTIONS_OF_MELLANOX, reason
        assert "PCI" in str(reason) or "NIC" in str(reason) or "virtual functions" in str(reason)
        return
    assert {each.phase for each in made.steps} == {SET_UP, TEAR_DOWN}
    assert "pod1" in text(made)
    where = {each.host for each in made.steps}
    assert where <= ({"this machine"} if lab == "local" else {"192.0.2.20", "this machine"})
    shown = render(made)
    assert f"on {topology(lab).name}" in shown
    assert all(f"on {host}" in shown for host in where)


@pytest.mark.parametrize("name", [each for each in CLAIMS if each.endswith("-by-length")])
def test_the_chains_of_section_4_2_4_have_plans(name: str) -> None:
    longest = CLAIMS[name].chains[-1]
    made = text(plan(topology("local"), longest, SMALL))
    assert longest.pods == 6
    assert {f"pod{number}" for number in range(1, 7)} <= set(re.findall(r"pod\d\b", made))


def test_the_report_names_the_data_planes_whose_pods_cni_plugins_attach() -> None:
    lab = topology("appendix_b_sriov_dpdk")
    calling = set()
    for name in PLANNED:
        pods = max(1, DATA_PLANES[name].least_pods)
        for forwarder in DATA_PLANES[name].forwarders:
            with suppress(Unavailable):
                calling |= {name} if "/usr/lib/cni/" in text(plan(lab, Chain(name, pods, forwarder), SMALL)) else set()
    assert set(BY_CNI_PLUGINS) == calling


def test_a_bpf_object_has_a_plan_if_the_topology_names_one() -> None:
    lab = topology("appendix_c_multi_pod")
    with pytest.raises(Unavailable, match="the topology names no BPF object"):
        plan(lab, Chain("bpf-object", 1), SMALL)
    named = replace(lab, bpf_object=BpfObjectSettings(str(OBJECTS / "xdp_redirect.bpf.o"), "xdp"))
    made = text(plan(named, Chain("bpf-object", 1), SMALL))
    assert made.count("xdp_redirect.bpf.o section xdp") == 4
    assert made.count("bpftool map update id '<map of that program>'") == 4


def test_redirects_have_a_plan_without_pods_too() -> None:
    for name, loads in (
        ("xdp-redirect", "xdpdrv object"),
        ("tc-redirect", "ingress bpf"),
        ("tc-redirect-peer", "ingress bpf"),
    ):
        for pods in (0, 1, 2):
            made = text(plan(topology("appendix_c_multi_pod"), Chain(name, pods), SMALL))
            assert len([line for line in made.splitlines() if loads in line]) == 2 + 2 * pods
            assert made.count("bpftool map update id '<map of that program>'") == 2 + 2 * pods
            first = "pod1a" if pods else "enp175s0f1"
            assert made.count(f"value '<index of {first}>'") == 1
            assert ("podperf-pod1" in made) == (pods > 0)


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
    assert [each.kind for each in box.steps] == [Kind.START, Kind.STOP]
    assert "--left l@box --right r@box" in text(box)
    for lab, name in ((first_lab, "wire"), (first_lab, "external"), (topology("local"), "external")):
        with pytest.raises(Unavailable):
            plan(lab, Chain(name, 0), SMALL)


def test_a_plan_has_what_an_engineer_looks_for() -> None:
    made = text(plan(topology("appendix_c_multi_pod"), Chain("ovs-dpdk", 2), SMALL))
    assert 'other_config:pmd-cpu-mask="0x300000"' in made  # switch_cpus: 20-21
    assert "type=dpdkvhostuserclient" in made
    assert len([line for line in made.splitlines() if "start: " in line and "dpdk-testpmd" in line]) == 2
    assert made.index("ovsdb-tool create") < made.index("add-br") < made.index("add-flow")
    assert "0000:af:00.0" in made


def test_every_open_vswitch_that_polls_does_so_where_the_topology_says() -> None:
    lab = topology("appendix_c_multi_pod")
    lab = replace(lab, workers=(replace(lab.workers[0], switch_cpus=(22, 23)),))  # of 20 to 24
    for name in ("ovs-dpdk", "ovs-afxdp"):
        made = text(plan(lab, Chain(name, 1), SMALL))
        assert re.search(r"pmd-cpu-mask=\S*0xc00000", made), name
        affinities = re.findall(r"pmd-rxq-affinity=\W*0:(\d+)", made)
        assert affinities == ["22", "22", "23", "23"], name
    made = text(plan(lab, Chain("ovs-netdev", 1), SMALL))
    assert "taskset --cpu-list --pid 22 " in made


@pytest.mark.parametrize(
    ("switch", "threads"),
    [((20,), "main-core 24 corelist-workers 20"), (range(20, 25), "main-core 20 corelist-workers 21,22,23,24")],
)
def test_vpp_has_no_worker_on_its_main_core(switch: Sequence[int], threads: str) -> None:
    lab = topology("appendix_c_multi_pod")
    lab = replace(lab, workers=(replace(lab.workers[0], switch_cpus=tuple(switch)),))  # of 20 to 24
    made = plan(lab, Chain("vpp-l2patch", 1), SMALL)
    (start_up,) = (each.content for each in made.steps if each.text.endswith("startup.conf"))
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


def test_a_chain_along_three_workers_has_a_plan() -> None:
    lab = topology("hackathon_113")
    last = replace(lab.workers[1], ssh=replace(lab.workers[1].ssh, address="192.0.2.22"), key="workers[2]")
    lab = replace(lab, workers=(*lab.workers, last))
    made = plan(lab, Chain("linux-bridge", 3, workers=3), SMALL)
    for host in ("192.0.2.20", "192.0.2.21", "192.0.2.22"):
        there = [step.text for step in made.steps if step.host == host and step.phase == SET_UP]
        assert sum("ip netns add podperf-pod" in line for line in there) == 1


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
    lab = replace(lab, workers=(replace(lab.workers[0], sriov=VirtualFunctionSettings(3, 100, True, False, queues=2)),))
    made = text(plan(lab, Chain("sriov", 1), SMALL))
    assert "0000:03:00.0 3" in made, "three of each port"
    for setting in ("vlan 100", "spoofchk off", "trust on"):
        assert re.search(rf"ip link set dev enp3s0f0 vf 2 .*{setting}", made), setting
    assert "--rxq=2 --txq=2" in made
    assert re.search(r"ethtool -L net1 combined 2", text(plan(lab, Chain("sriov", 1, "kernel"), SMALL)))
    for combination in ("sriov-ovs-dpdk", "sriov-vpp"):
        with pytest.raises(Unavailable, match=r"sriov\.queues of the worker must be 1 for it, not 2"):
            plan(lab, Chain(combination, 2), SMALL)


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


OWN_TREX = "trex: {server: {directory: /opt/trex, options: [--mlx5-so], low_end: no}, client: /c, interpreter: /py}"
AWAY = "workers: [{connection: ssh, ssh: {address: 192.0.2.20}, ports: {left: {interface: a}, right: {interface: b}}}]"
DEEDS = {
    "tester: {cpus: 3, engine: packet-ring}": ["podperf-tester .*--cpu 3 --engine packet-ring"],
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
    "tester: {type: trex, trex: {address: 192.0.2.9, port: 11, publisher_port: 12, ports: {left: 4, right: 6}}}\n"
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
    """The steps differ only in the start of a pod, and in the start of a program in it."""
    chain = Chain(name, max(1, DATA_PLANES[name].least_pods))
    steps: dict[str, list[str]] = {}
    for runtime in ("namespaces", "runc"):
        try:
            made = plan(replace(topology("local"), pods=PodSettings(runtime)), chain, SMALL)
        except Unavailable:  # on the local testbed, without a network card
            return
        texts = [f"[{each.namespace}] {each.kind}: {each.text}" for each in made.steps]
        for pattern, word in ((r"netns (add|attach) (\S+).*", r"netns \2"), (r"<(process|number)[^>]*>", "<process>")):
            texts = [re.sub(pattern, word, each) for each in texts]
        steps[runtime] = [each for each in texts if "runc" not in each and each != "[] stop: unshare"]
        started = [each for each in made.steps if each.kind is Kind.START]
        assert len(started) == len([each for each in made.steps if each.kind is Kind.STOP])
    assert steps["namespaces"] == steps["runc"]


def test_what_was_set_up_is_taken_down_in_the_opposite_order() -> None:
    made = plan(topology("local"), Chain("linux-bridge", 2), SMALL)
    added = [each.text.split()[-1] for each in made.steps if each.text.startswith("ip netns add")]
    removed = [each.text.split()[-1] for each in made.steps if each.text.startswith("ip netns del")]
    assert added == removed[::-1]
    assert {"podperf-tester", "podperf-worker", "podperf-pod1", "podperf-pod2"} == set(added)
    started = [each.text for each in made.steps if each.kind is Kind.START]
    assert len(started) == len([each for each in made.steps if each.kind is Kind.STOP])


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
    assert main([str(TOPOLOGIES / "local.yaml"), "--plan", "macvlan", "--pods", "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("macvlan, 2 pods, on local: what a run would do")
    assert "[pod2] sh -c <script of step 6> sh net/ipv4/ip_forward=1" in shown
    with pytest.raises(PodperfError, match=r"--plan: found 'brigde'; allowed: all, wire, .*; near: linux-bridge"):
        main([str(TOPOLOGIES / "local.yaml"), "--plan", "brigde"])
    assert main([str(TOPOLOGIES / "appendix_c_multi_pod.yaml"), "--plan", "ovs-dpdk", "--scenario", "S6"]) == 0
    assert capsys.readouterr().out.startswith("ovs-dpdk, 1 pod, placed as in S6, on appendix-c-multi-pod")
    with pytest.raises(SystemExit):
        main([str(TOPOLOGIES / "local.yaml"), "--plan", "ovs-dpdk", "--scenario", "S9"])
    assert "choose from" in (said := capsys.readouterr().err)
    assert all(name in said for name in SCENARIOS)
    for pods in (["--pods", "2"], ["--plan", "macvlan", "--pods", "-1"]):
        with pytest.raises(SystemExit):
            main([str(TOPOLOGIES / "local.yaml"), *pods])
        assert "--pods is " in capsys.readouterr().err
    with pytest.raises(PodperfError, match="macvlan needs 1 or more pods, not 0"):
        main([str(TOPOLOGIES / "local.yaml"), "--plan", "macvlan", "--pods", "0"])
    for name, pods_by_default in (("xdp-redirect", "0 pods"), ("memif", "2 pods"), ("wire", "0 pods")):
        assert main([str(TOPOLOGIES / "local.yaml"), "--plan", name]) == 0
        assert capsys.readouterr().out.startswith(f"{name}, {pods_by_default}, on local")


@pytest.mark.parametrize("lab", ["local", *LABS])
def test_the_command_line_shows_all_plans(lab: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(TOPOLOGIES / f"{lab}.yaml"), "--plan", "all"]) == 0
    shown = capsys.readouterr().out
    parts = dict(re.findall(r"^=== (\S+)\n\n(.*?)\n\n(?:(?==== )|\Z)", shown, re.MULTILINE | re.DOTALL))
    assert list(parts) == list(DATA_PLANES)
    without = {name for name, part in parts.items() if part.startswith("no plan: ")}
    assert not [name for name in without if "\n" in parts[name]]
    assert all(parts[name].startswith(f"{name}, ") for name in parts.keys() - without)
    wanted = {"external", "xdp-offload", "bpf-object", *(ON_FUNCTIONS if lab == "local" else {"wire"})}
    assert without == wanted | {name for where, name in ON_FUNCTIONS_OF_MELLANOX if where == lab}


def test_pods_of_all_plans_are_as_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(TOPOLOGIES / "local.yaml"), "--plan", "all", "--pods", "1"]) == 0
    shown = capsys.readouterr().out
    assert "tc-redirect, 1 pod, on" in shown
    assert "wire, 0 pods, on" in shown
    assert "=== memif\n\nno plan: memif needs 2 or more pods, not 1\n" in shown
    with pytest.raises(PodperfError, match="there is no plan for one"):
        main([str(TOPOLOGIES / "virtual.yaml"), "--plan", "all"])
    assert capsys.readouterr().out == ""


def test_the_command_line_names_frames_and_forwarders(capsys: pytest.CaptureFixture[str]) -> None:
    local = str(TOPOLOGIES / "local.yaml")
    assert main([local, "--plan", "linux-bridge", "--frame", "3000"]) == 0
    assert "mtu 2982" in capsys.readouterr().out
    assert main([local, "--plan", "ovs-dpdk", "--forwarder", "l2fwd", "--frame", "IMIX"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("ovs-dpdk, 1 pod with l2fwd, on local")
    assert "dpdk-l2fwd" in shown and "dpdk-testpmd" not in shown and "mtu 1500" in shown
    with pytest.raises(PodperfError, match=r"cannot forward by 'l3fwd'; known: .*l2fwd"):
        main([local, "--plan", "ovs-dpdk", "--forwarder", "l3fwd"])
    for wrong, said in ((["--plan", "ptp", "--frame", "63"], "outside 64 to 3000"), (["--frame", "64"], "of a --plan")):
        with pytest.raises(SystemExit):
            main([local, *wrong])
        assert said in capsys.readouterr().err


# --- the recording ----------------------------------------------------------------------------------------------------


# Commands that change something, by how they begin.
CHANGES = re.compile(
    r"(env \S+=\S+ )*"
    r"(ip (?!-json)(\S+ )*(add|del|set|replace)\b|ethtool -[A-Z] (?!\S+$)|sysctl -\w*w|tc \w+ add|nft -f|tee |rm |kill "
    r"|chmod |mkdir |renice |chrt |taskset --cpu-list --pid \S+ \d+$|modprobe (?!--dry-run)|bpftool map update"
    r"|env CNI_COMMAND=|ovs-vsctl (\S+ )*(add-|del-|set )|ovs-ofctl (add|del)-|vppctl -s \S+ (?!show ))"
)


@pytest.mark.parametrize("lab", ["local", *LABS])
def test_no_question_of_a_driver_changes_anything(lab: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    carried_out = ImaginaryHost.ask

    def listening(host: ImaginaryHost, *command: str, **how: Any) -> Completed:
        asked.append(" ".join(within(command)[1]))
        return carried_out(host, *command, **how)

    monkeypatch.setattr(ImaginaryHost, "ask", listening)
    for name in PLANNED:
        with suppress(Unavailable, PodperfError):
            plan(topology(lab), Chain(name, max(1, DATA_PLANES[name].least_pods)), SMALL)
    assert asked
    assert not [command for command in asked if CHANGES.match(command)]


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
    asked = ("unshare", "--mount", "sh", "-c", "echo", "exec", "podperf-pod1")
    assert within(asked) == ("", asked)


class Answers(LocalHost):
    """A host that answers everything alike."""

    def __init__(self, answer: str = '[{"ifname": "left", "address": "02:00:00:00:00:07"}]') -> None:
        super().__init__()
        self._answer = answer

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        return Completed(command, 0, self._answer, "")


def test_a_recording_has_what_is_done_and_not_what_is_asked() -> None:
    recording = Recording()
    host: Host = RecordingHost(Answers(), recording)
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
    host: Host = RecordingHost(Answers(), recording)
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
    host: Host = RecordingHost(Answers("17"), recording)
    assert threads_named(host, version, of=7) == [17]
    host.do("renice", "--priority", "-20", "--pid", "17")
    (step,) = recording.steps
    assert step.text == "renice --priority -20 --pid '<thread 1 of those of DPDK that poll>'"


@pytest.mark.parametrize("tool", ["bpftool", "/usr/lib/linux-tools/6.8.0-31-generic/bpftool"])
def test_bpftool_is_recorded_alike_wherever_the_distribution_has_it(tool: str) -> None:
    recording = Recording()
    host: Host = RecordingHost(Answers('[{"ifname": "left", "ifindex": 3}]'), recording)
    host.ask("ip", "-json", "link", "show", "dev", "left")
    host.ask(tool, "--json", "prog", "show", "id", "1")
    index = map(str, (3).to_bytes(4, sys.byteorder))
    host.do(tool, "map", "update", "id", "1", "key", "0", "0", "0", "0", "value", *index)
    (step,) = recording.steps
    assert step.text == "bpftool map update id '<map of that program>' key 0 0 0 0 value '<index of left>'"


def test_an_imaginary_host_remembers() -> None:
    host = ImaginaryHost("worker", Cpus((0, 1), (0, 1)))
    host.put(b"content", "/x")
    assert host.get("/x") == b"content"
    with pytest.raises(FileNotFoundError):
        host.get("/y")
    host.do("tee", "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", stdin="7")
    assert host.get("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") == b"7"
