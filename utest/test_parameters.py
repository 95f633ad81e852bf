"""Parameters that the draft's newest version wants, and special capabilities: records and reports tell them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import made_up
from podperf.cpu_plan import plan_cpus
from podperf.dataplanes import DATA_PLANES
from podperf.hosts.base import Process
from podperf.kernel.cpus import Cpus
from podperf.kernel.poller_sharing import TurnsOnCpu
from podperf.model import Chain, Placement
from podperf.records import TestRecord, schema_errors
from podperf.records.parameters import PARAMETERS, SetUp, parameters_of, special_capabilities
from podperf.records.schema import SCHEMA_PATH
from podperf.report import command
from podperf.testbed.scenarios import SCENARIOS, Placed, place_scenario
from scripted_host import ScriptedHost
from test_report_page import Seen

TURNS = "podperf-rotation runs on CPU 1 of the worker and gives 3 polling threads turns of 100 us"
BRIDGE = {
    "runtime": {
        "kind": "network namespaces",
        "cni_plugins": "1.1.1",
        "cni_networks": [
            {"pod": "pod1", "interface": "net1", "network": "s0", "plugins": [{"type": "bridge", "mtu": 1500}]}
        ],
        "memory_limit": None,
    }
}
POLLED = {
    "runtime": {"kind": "network namespaces", "cni_networks": [], "memory_limit": None},
    "applications": {
        "pod1": {"hugepages_of_mib": 2, "sockets": [{"prefers_busy_polling": False}, {"prefers_busy_polling": False}]}
    },
    "pollers": [
        {"cpu": 1, "pollers": 3, "shared": "in turns of 100 us", "special_capability": TURNS},
    ],
}
INTERFACES = {
    "left": {"kind": None, "numa_node": 0, "offloads": {"rx-checksumming": True, "generic-receive-offload": False}},
    "right": {"kind": "veth", "numa_node": None, "offloads": None},
}
ENVIRONMENT = {**made_up.ENVIRONMENT, "cpu": {**made_up.ENVIRONMENT["cpu"], "isolated": "1"}}


def told(description: Any, chain: Chain, **others: Any) -> dict[str, str | None]:
    cpus = plan_cpus(Placement((0,), (1,)), chain.pods, with_switch=False)
    return parameters_of({"": SetUp(chain, cpus, (), description, INTERFACES, ENVIRONMENT, **others)})


def test_the_cluster_of_the_testers_pods_is_told() -> None:
    tester = {"name": "two pods", "cluster": {"server": "https://x", "version": "v1.34.4", "namespace": "n"}}
    record = TestRecord("id", "name", "suite", tester=tester)
    assert record._set_ups[""].environment["cluster"]["version"] == "v1.34.4"
    assert parameters_of(record._set_ups)["orchestration"] == "Kubernetes v1.34.4"


def test_a_chain_in_the_kernel_tells_every_parameter() -> None:
    found = told(BRIDGE, Chain("linux-bridge", 1, "kernel"))
    assert found == {
        "hosting": "virtual machine or container: kvm",
        "distribution": "Debian GNU/Linux 12 (bookworm), Linux 6.18.44",
        "orchestration": "none; pods are network namespaces",
        "cni_plugin": "bridge (containernetworking-plugins 1.1.1)",
        "cni_configuration": 'pod1 net1: [{"type": "bridge", "mtu": 1500}]',
        "nic_offloads": "left: rx-checksumming",
        "cpu_isolation": "pods and vSwitch share CPU 1; isolated by the kernel (isolcpus): CPU 1",
        "numa_of_pods": "node 0: CPU 1",
        "numa_of_switch": "node 0: CPU 1",
        "numa_of_nic": "left: node 0; right: no NIC (veth)",
        "hugepage_size": "none: the kernel forwards",
        "cores_of_pod": "none of its own: the kernel forwards on CPU 1",
        "memory_of_pod": "not limited",
        "af_xdp_busy_polling": "no AF_XDP socket",
        "chain_composition": "linux-bridge, 1 pod, each forwards by kernel",
        "chain_scheduling": "podperf places the pods in their order on 1 worker",
        "between_nodes": "none: one worker",
    }


def test_pods_that_poll_tell_their_pages_cores_sockets_and_turns() -> None:
    found = told(POLLED, Chain("af-xdp", 2, "testpmd-io"))
    assert found["cni_plugin"] == "none: podperf itself wires the pods"
    assert found["hugepage_size"] == "2 MiB"
    assert found["cores_of_pod"] == "2 pods share CPU 1"
    assert found["af_xdp_busy_polling"] == "off; the kernel fills the sockets and applications poll on 1 CPU"
    assert str(found["chain_scheduling"]).endswith("on 1 worker; 3 pollers on CPU 1: in turns of 100 us")


def on_two_cpus(description: Any, chain: Chain) -> list[str | None]:
    """The words for the placement of a chain on CPUs 1 and 2."""
    environment = {**ENVIRONMENT, "cpu": {"isolated": None}}
    with_switch = DATA_PLANES[chain.data_plane].switch_has_cpus
    cpus = plan_cpus(Placement((0,), (1, 2)), chain.pods, with_switch=with_switch)
    found = parameters_of({"": SetUp(chain, cpus, (), description, INTERFACES, environment)})
    return [str(found["cpu_isolation"]).split(";", maxsplit=1)[0], found["cores_of_pod"]]


def test_cpus_of_pods_and_switch_are_those_that_the_data_plane_uses() -> None:
    assert on_two_cpus(POLLED, Chain("ovs-dpdk", 1, "testpmd")) == [
        "pods and vSwitch have CPUs of their own",
        "1 (CPU 2)",
    ]
    assert on_two_cpus(POLLED, Chain("af-xdp", 1, "testpmd")) == ["no vSwitch beside the pods", "1 (CPU 1)"]
    assert on_two_cpus(BRIDGE, Chain("linux-bridge", 1, "kernel")) == [
        "pods and vSwitch share CPU 1-2",
        "none of its own: the kernel forwards on CPU 1-2",
    ]


def in_scenario(name: str) -> dict[str, str | None]:
    """The parameters in a record of two pods behind Open vSwitch, on a worker with two NUMA nodes of four CPUs each."""
    nodes = [{"node": 0, "cpus": "0-3"}, {"node": 1, "cpus": "4-7"}]
    worker = Cpus(tuple(range(8)), tuple(range(8)), nodes={cpu: cpu // 4 for cpu in range(8)})
    placed = place_scenario(SCENARIOS[name], 2, Placement((0,), (4, 5, 6, 7)), worker, nic_node=1, taken=(0,))
    record, _ = made_up.forwarding_record("ovs-dpdk", 3e5)
    record.contenders = {name: (Chain("ovs-dpdk", 2, "testpmd-io"), placed)}
    record.data_plane = {name: POLLED}
    record.environment = {**ENVIRONMENT, "numa_nodes": nodes}
    parameters: dict[str, str | None] = record.to_json()["parameters"]
    return parameters


def test_the_node_of_the_control_threads_is_not_the_pods() -> None:
    """In scenario S1 switch and control threads are on the NIC's node, and both pods on the other one."""
    found = in_scenario("S1")
    assert found["numa_of_switch"] == "node 1: CPU 4"
    assert found["numa_of_pods"] == "node 0: CPU 1-2"
    assert found["cores_of_pod"] == "1 (CPU 1-2)"


def test_pods_that_share_a_pool_have_one_cpu_of_it_at_a_time() -> None:
    assert in_scenario("shared-same-node")["cores_of_pod"] == "1 of CPU 5-6, which the pods share"
    assert in_scenario("no-isolation")["cores_of_pod"] == "1 of CPU 1-7, which the pods share"


def test_what_nobody_reads_is_not_read() -> None:
    box = told({"path": "unknown"}, Chain("external", 0, "none"))
    assert not any(box[name] for name in ("cpu_isolation", "numa_of_pods", "numa_of_switch", "cores_of_pod"))
    assert set(parameters_of({"": SetUp()}).values()) == {None}
    assert told({"runtime": "of another vendor"}, Chain("theirs", 1, "theirs"))["cni_plugin"] is None


def test_each_chain_of_a_comparison_tells_its_own_where_they_differ(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("linux-bridge", 3e5)
    placed = Placed(Placement((0,), (1,)), [plan_cpus(Placement((0,), (1,)), 1, with_switch=False)])
    record.chain = None
    record.contenders = {
        "one": (Chain("linux-bridge", 1, "kernel"), placed),
        "other": (Chain("af-xdp", 1, "io"), placed),
    }
    record.data_plane = {"one": BRIDGE, "other": POLLED}
    record.interfaces = {"one: left": INTERFACES["left"], "other: tester left": INTERFACES["right"]}
    document = made_up.document(record, trials, tmp_path)
    assert document["parameters"]["hosting"] == "virtual machine or container: kvm"
    assert document["parameters"]["hugepage_size"] == "one: none: the kernel forwards; other: 2 MiB"
    assert document["parameters"]["nic_offloads"] == "one: left: rx-checksumming; other: not read"
    assert document["special_capabilities"] == [TURNS]


def test_the_schema_has_each_parameter_and_older_records_have_none(tmp_path: Path) -> None:
    known = json.loads(SCHEMA_PATH.read_text())["properties"]["parameters"]
    assert known["required"] == list(PARAMETERS)
    document = made_up.document(*made_up.forwarding_record("linux-bridge", 3e5), tmp_path)
    assert schema_errors(document) == []
    del document["parameters"], document["special_capabilities"]
    assert schema_errors(document) == []


def test_pollers_that_take_turns_are_a_special_capability_and_one_alone_is_not() -> None:
    host = ScriptedHost(patient=True)
    alone = TurnsOnCpu(host, 1, (17,), None).describe()
    assert special_capabilities({"pollers": [alone]}) == []
    in_turns = TurnsOnCpu(host, 1, (17, 18, 19), Mock(spec=Process)).describe()
    assert special_capabilities({"far worker": {"pollers": [alone, in_turns]}}) == [TURNS]


def test_the_report_tells_both(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("af-xdp", 3e5)
    record.data_plane = POLLED
    made_up.write(tmp_path, record, trials)
    page = Seen(command.write_reports(tmp_path).read_text()).text
    assert "Special capabilities in the system under test" in page
    assert page.count(TURNS) == 3, "in the list, with the record, and in what the data plane says of itself"
    assert "Hugepage size2 MiB" in page
    assert "NIC offloads that are onnot read" in page


def test_the_parts_of_a_chain_on_two_workers_are_told_apart(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("af-xdp", 3e5, pods=2)
    record.chain = Chain("af-xdp", 2, "testpmd-io", workers=2)
    placements = Placement((0,), (1,), apart=True), Placement((0,), (2,), apart=True)
    record.cpu_plans = [plan_cpus(placement, 1, with_switch=False) for placement in placements]
    record.data_plane = {**POLLED, "further_workers": {"w2": {**POLLED, "applications": {}}}}
    record.environment = {**ENVIRONMENT, "further_workers": {"w2": {**ENVIRONMENT, "distribution": "another"}}}
    record.interfaces = {"left": INTERFACES["left"], "w2: left": INTERFACES["right"], "tester left": INTERFACES["left"]}
    document = made_up.document(record, trials, tmp_path)
    assert schema_errors(document) == []
    found = document["parameters"]
    assert found["cores_of_pod"] == "worker 1: 1 (CPU 1); worker 2: 1 (CPU 2)"
    assert found["numa_of_nic"] == "worker 1: left: node 0; worker 2: left: no NIC (veth)"
    assert str(found["distribution"]).endswith("; worker 2: another, Linux 6.18.44")
    assert found["chain_composition"] == "af-xdp, 2 pods, each forwards by testpmd-io"
    assert [role["pod 1"] for role in document["roles"]] == [[1], [2]]
