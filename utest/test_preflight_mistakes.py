"""podperf finds each mistake and gives a remedy. With the remedy, or without the mistake, there is no warning."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from http_servers import http_server, kubeconfig_file
from podperf.cpu_plan import plan_cpus
from podperf.hosts.base import Completed
from podperf.hosts.local import LocalHost
from podperf.kernel.cpus import Cpus
from podperf.kubernetes.checks import KubernetesContainer, check_pods, parse_pods, unpinned_pods
from podperf.model import Placement
from podperf.observation import Observation, State
from podperf.preflight.measuring import _check_own_ports
from podperf.preflight.mistakes import (
    look_for_mistakes,
    overlapping_masks,
    planned,
    socket_memory,
    switch_beside_nic,
    trex_on_vfs,
    vlans_of_some,
)
from podperf.testbed.machines import WorkerMachine
from podperf.testbed.placement import place
from podperf.testers.base import PortFacts, TesterFacts
from podperf.topology import SCHEMA_PATH, load_topology

TWO_NODES = Cpus(tuple(range(8)), tuple(range(8)), nodes={cpu: cpu // 4 for cpu in range(8)})
WHOLE = {"cpu": "2", "memory": "1Gi"}


@pytest.mark.parametrize("memory", ["1024", "1024,0", "2048,,512"])
def test_memory_on_the_wrong_node_is_caught(memory: str) -> None:
    observation = socket_memory({"dpdk-socket-mem": memory}, node=1)
    assert observation.state is State.WARNING
    assert f"dpdk-socket-mem={memory} has nothing on NUMA node 1" in observation.detail
    remedy = observation.remedy.rsplit("=", 1)[1]
    assert socket_memory({"dpdk-socket-mem": remedy}, node=1).state is State.OK


@pytest.mark.parametrize(("memory", "node"), [("0,1024", 1), ("1024,1024", 1), ("1024", 0)])
def test_memory_beside_the_nic_is_sound(memory: str, node: int) -> None:
    assert socket_memory({"dpdk-socket-mem": memory}, node).state is State.OK
    assert socket_memory({}, node).state is State.OK


def test_masks_that_overlap_are_caught() -> None:
    observation = overlapping_masks({"dpdk-lcore-mask": "0x2", "pmd-cpu-mask": "0x6"})
    assert observation.state is State.WARNING
    assert "CPU 1 is in dpdk-lcore-mask=0x2 and in pmd-cpu-mask=0x6" in observation.detail
    assert overlapping_masks({"dpdk-lcore-mask": "1", "pmd-cpu-mask": "6"}).state is State.OK
    assert overlapping_masks({"pmd-cpu-mask": "0x6"}).state is State.OK


def test_a_switch_away_from_the_nic_is_caught() -> None:
    observation = switch_beside_nic((2, 3), TWO_NODES, node=1)
    assert observation.state is State.WARNING
    assert "CPU 2-3 of NUMA node 0, and the NIC is on node 1" in observation.detail
    assert observation.remedy == "switch_cpus of 4-7"
    assert switch_beside_nic((4, 5), TWO_NODES, node=1).state is State.OK
    assert switch_beside_nic((3, 4), TWO_NODES, node=1).state is State.WARNING, "one of two is enough"


@pytest.mark.parametrize(
    ("container", "why"),
    [
        (KubernetesContainer({}, {}), "no cpu limit"),
        (KubernetesContainer(WHOLE, {"memory": "1Gi"}), "no cpu limit"),
        (KubernetesContainer(WHOLE, {"cpu": "2"}), "no memory limit"),
        (KubernetesContainer({"cpu": "1", "memory": "1Gi"}, WHOLE), "requests 1 of 2 cpu"),
        (KubernetesContainer({}, {"cpu": "1500m", "memory": "1Gi"}), "a part of a CPU"),
    ],
)
def test_pods_that_cannot_be_pinned_are_caught(container: KubernetesContainer, why: str) -> None:
    observation = unpinned_pods({"sound": [KubernetesContainer(WHOLE, WHOLE)], "vnf": [container]})
    assert observation.state is State.WARNING
    assert f"vnf {'asks' if 'part' in why else 'is'}" in observation.detail
    assert why in observation.detail
    assert "sound" not in observation.detail
    assert "limits for cpu" in observation.remedy


def test_guaranteed_pods_are_sound() -> None:
    assert unpinned_pods({"vnf": [KubernetesContainer(WHOLE, WHOLE), KubernetesContainer({}, WHOLE)]}).state is State.OK


def test_vlans_on_some_virtual_functions_are_caught() -> None:
    observation = vlans_of_some({"ens4": {0: 100, 1: 100, 2: 0, 3: 0}})
    assert observation.state is State.WARNING
    assert "virtual function 0-1 of ens4 has a VLAN and 2-3 of ens4 has none" in observation.detail
    assert observation.remedy.startswith("ip link set dev ens4 vf 2 vlan 100")
    assert vlans_of_some({"ens4": {0: 100, 1: 100}}).state is State.OK
    assert vlans_of_some({"ens4": {0: 0, 1: 0}}).state is State.OK


def test_vlans_on_one_port_alone_are_caught() -> None:
    observation = vlans_of_some({"ens4": {0: 0, 1: 100}, "ens5": {0: 0, 1: 0}})
    assert observation.state is State.WARNING
    assert "virtual function 1 of ens4 has a VLAN and 0 of ens4, 0-1 of ens5 has none" in observation.detail
    observation = vlans_of_some({"ens4": {0: 100, 1: 100}, "ens5": {0: 0, 1: 0}})
    assert observation.state is State.WARNING, "each port is at one with itself, but not with the other"
    assert observation.remedy.startswith("ip link set dev ens5 vf 0 vlan 100")
    assert vlans_of_some({"ens4": {0: 100}, "ens5": {0: 100}}).state is State.OK


@pytest.mark.parametrize("version", ["2.92", "v2.92"])
def test_a_trex_that_drops_on_virtual_functions_is_caught(version: str) -> None:
    assert trex_on_vfs(version, virtual_functions=True).state is State.WARNING
    assert "TRex 2.73" in trex_on_vfs(version, virtual_functions=True).remedy
    assert trex_on_vfs(version, virtual_functions=False).state is State.OK
    assert trex_on_vfs("2.73", virtual_functions=True).state is State.OK


def test_what_podperf_itself_would_configure_is_sound() -> None:
    """On the draft's lab of appendix C, whose NIC is on node 1: read off the plan, not described a second time."""
    topology = load_topology(SCHEMA_PATH.parent / "appendix_c_multi_pod.yaml")
    numbers = tuple(range(40))
    cpus = Cpus(numbers, numbers, nodes={cpu: cpu // 20 for cpu in numbers})
    settings = planned(topology, cpus)
    assert settings["pmd-cpu-mask"] == hex(0b11 << 20)
    assert overlapping_masks(settings).state is State.OK
    assert socket_memory(settings, node=1).state is State.OK
    switch = plan_cpus(place(topology, cpus), 1, with_switch=True).switch
    assert switch_beside_nic(switch, cpus, node=1).state is State.OK


# --- reading the values
# ------------------------------------------------------------------------------------------------


def test_only_pods_with_further_interfaces_are_looked_at() -> None:
    def pod(name: str, **annotations: str) -> dict[str, object]:
        resources = {"limits": WHOLE}
        return {
            "metadata": {
                "name": name,
                "annotations": {key.replace("__", "/"): each for key, each in annotations.items()},
            },
            "spec": {"containers": [{"resources": resources}, {}]},
        }

    networks = {"k8s.v1.cni.cncf.io__networks": "sriov-1, sriov-2"}
    found = parse_pods({"items": [pod("coredns"), pod("vnf", **networks)]})
    assert found == {"vnf": [KubernetesContainer({}, WHOLE), KubernetesContainer({}, {})]}


SWAPPED = {cpu: cpu % 2 for cpu in range(40)}  # CPU 20 is on node 0, and the NIC on node 1


class Lab(LocalHost):
    """A worker where every mistake was made that can be read there."""

    def __init__(self, functions: Sequence[Mapping[str, int]] = ()) -> None:
        super().__init__()
        self._functions = functions

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        settings = [
            ["dpdk-init", "true"],
            ["dpdk-lcore-mask", "2"],
            ["pmd-cpu-mask", "6"],
            ["dpdk-socket-mem", "1024,0"],
        ]
        answers = {
            "ovs-vsctl": {"headings": ["other_config"], "data": [[["map", settings]]]},
            "ip": [{"vfinfo_list": [{"address": "02:00:00:00:00:01", **function} for function in self._functions]}],
        }
        return Completed(command, 0, json.dumps(answers.get(command[0], "")), "")

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        known = {"numa_node": b"1\n", "sriov_totalvfs": b"64\n"}
        return known[path.removeprefix("/sys/bus/pci/devices/0000:af:00.0/")]


def found_on(lab: Lab, nodes: Mapping[int, int] = SWAPPED) -> list[Observation]:
    """The observations on this worker, with the topology of appendix C. Its label says TRex 2.92."""
    topology = load_topology(SCHEMA_PATH.parent / "appendix_c_multi_pod.yaml")
    cpus = Cpus(tuple(nodes), tuple(nodes), nodes=dict(nodes))
    return list(look_for_mistakes(topology, place(topology, cpus), cpus, lab))


def test_every_mistake_is_found_on_a_worker_where_it_was_made() -> None:
    found = found_on(Lab(functions=[{"vf": 0, "vlan": 100}, {"vf": 1}]))
    mistakes = [each.subject for each in found if each.state is State.WARNING]
    assert mistakes == ["switch CPUs", "CPU masks", "socket memory", "interrupts", "VLANs", "TRex, by label"]
    assert all(each.remedy for each in found if each.state is State.WARNING)
    sound = [each.subject for each in found if each.state is State.OK]
    assert sound == ["CPU masks, planned", "socket memory, planned", "connections"], "podperf's own switch makes none"


VNF = {
    "metadata": {"name": "vnf", "annotations": {"k8s.v1.cni.cncf.io/networks": "sriov-1"}},
    "spec": {"containers": [{}]},
}


@pytest.mark.parametrize(
    ("code", "answer", "states", "reason"),
    [
        (200, {"items": []}, [], ""),
        (200, {"items": [VNF]}, [State.WARNING], "not pinned to CPUs: vnf is Burstable or BestEffort"),
        (403, {"message": "no list for you"}, [State.UNCHECKED], "pods are pinned is not known: .*no list for you"),
    ],
)
def test_pods_of_a_cluster_are_looked_at_or_the_reason_is_told(
    code: int, answer: object, states: list[State], reason: str, tmp_path: Path
) -> None:
    with http_server(lambda _: (code, {}, json.dumps(answer).encode())) as server:
        found = list(check_pods(kubeconfig_file(tmp_path, server.url)))
    assert [each.state for each in found] == states
    assert re.search(reason, "".join(each.detail for each in found))


def test_a_trex_is_warned_of_where_a_run_could_make_virtual_functions() -> None:
    """A run makes its own virtual functions for each test. So there are none during this check."""
    (trex,) = [each for each in found_on(Lab()) if each.subject.startswith("TRex")]
    assert trex.state is State.WARNING


class OwnPorts:
    """The parts of a testbed that check_measuring uses. The tester is a TRex with its own ports."""

    def __init__(self, version: str) -> None:
        self.topology = load_topology(SCHEMA_PATH.parent / "appendix_c_multi_pod.yaml")
        self.workers = [WorkerMachine(self.topology.workers[0], Lab(), Placement((0,), (1,)))]
        self._version = version

    def tester_with_ports(self) -> OwnPorts:
        return self

    @property
    def facts(self) -> TesterFacts:
        ports = PortFacts("02:00:00:00:00:01", link_up=True), PortFacts("02:00:00:00:00:02", link_up=True)
        return TesterFacts("TRex", self._version, "trex", *ports, copies=True, server="192.0.2.10:4501")

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("version", "state"), [("v2.92", State.WARNING), ("v3.08", State.OK)])
def test_a_trex_that_answers_is_judged_by_its_own_word(version: str, state: State) -> None:
    (tester, trex) = _check_own_ports(OwnPorts(version))  # type: ignore[arg-type]
    assert tester.state is State.OK
    assert trex.subject == "TRex"
    assert trex.state is state
