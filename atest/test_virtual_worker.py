"""A worker in QEMU, booted for real and reached over SSH. It has the parts of a lab's worker, and leaves nothing
behind."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from attempts import first
from chains import forward, send
from podperf.allocation import PodAllocation
from podperf.cpu_lists import parse_cpu_list
from podperf.hosts.base import Host
from podperf.hosts.linux import await_carrier, ip, module_loaded, unloading
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.kernel import control_groups
from podperf.model import BOTH_DIRECTIONS, Chain, FrameSize, Trial
from podperf.preflight.checks import FEATURES, missing_feature
from podperf.testbed.scenarios import SCENARIOS, Node, Scenario
from podperf.testbed.testbed import Testbed
from podperf.testers.base import UNPACED, Site, TesterPort
from podperf.testers.software import SoftwareTester
from podperf.topology import PortSettings, WorkerPortSettings, WorkerSettings
from podperf.virtual_worker.boot import ISOLATED, LEFT, QEMU, RIGHT
from robot_run import SETTINGS, Robot, podperf
from test_placement import LIMITS, both_queues_forward
from traffic import traffic_of
from virtual_lab import ONLY_ON_REQUEST, TOPOLOGY, Lab, booted, need_qemu

BOOT_TIMEOUT = 900  # with an image to build

pytestmark = [ONLY_ON_REQUEST, pytest.mark.usefixtures("machine_as_before")]


@pytest.fixture(autouse=True, scope="module")
def needs_qemu() -> None:
    need_qemu()


@pytest.fixture(scope="class")
def lab() -> Iterator[Lab]:
    with booted() as lab:
        yield lab


class TestInside:
    """One machine for all of these tests. A run beside it would take it for a leftover."""

    def test_it_has_two_nodes_with_memory_hugepages_and_a_port_each(self, lab: Lab) -> None:
        host = lab.worker
        for number, node in enumerate((LEFT, RIGHT)):
            folder = f"/sys/devices/system/node/node{number}"
            assert host.get(f"{folder}/cpulist").decode().strip() == f"{node.cpus[0]}-{node.cpus[-1]}"
            assert host.get(f"{folder}/hugepages/hugepages-2048kB/free_hugepages").decode().strip() == str(
                node.hugepages
            )
            assert host.get(f"/sys/class/net/{node.interface}/device/numa_node").decode().strip() == str(number)
            said = host.ask("ethtool", "-i", node.interface).stdout
            assert "driver: igb" in said and f"bus-info: {node.pci}" in said

    def test_virtual_functions_have_iommu_groups_of_their_own(self, lab: Lab) -> None:
        host = lab.worker
        device = f"/sys/bus/pci/devices/{LEFT.pci}"
        host.do("ip", "link", "set", "dev", LEFT.interface, "up")
        host.do("tee", f"{device}/sriov_numvfs", stdin="2")
        try:
            groups = {
                host.ask("readlink", f"{device}/virtfn{number}/iommu_group").stdout.strip().rpartition("/")[2]
                for number in range(2)
            }
        finally:
            host.do("tee", f"{device}/sriov_numvfs", stdin="0")
            host.do("ip", "link", "set", "dev", LEFT.interface, "down")
        assert len(groups - {""}) == 2

    @pytest.mark.parametrize("name", ["tc-redirect-peer", "xdp-redirect"])
    def test_a_card_takes_the_frames_that_ebpf_hands_on_to_others(self, lab: Lab, name: str) -> None:
        """The frames are for the pod's MAC or for the tester's other MAC, not for the card's own MAC."""
        assert len(forward(Chain(name, 1), testbed=lab.testbed)["pods"]) == 1
        assert "PROMISC" not in lab.worker.ask("ip", "link", "show", "dev", LEFT.interface).stdout

    @pytest.mark.parametrize("pods", [1, 2])
    @pytest.mark.parametrize("name", ["ipvlan", "ipip", "ovs-kernel"])
    def test_a_data_plane_that_this_kernel_may_lack_forwards(self, lab: Lab, name: str, pods: int) -> None:
        assert len(forward(Chain(name, pods), testbed=lab.testbed)["pods"]) == pods

    @pytest.mark.parametrize(("name", "module"), [("ipip", "ipip"), ("ovs-kernel", "openvswitch")])
    def test_a_module_that_a_data_plane_needs_is_gone_with_it(self, lab: Lab, name: str, module: str) -> None:
        """The module ipip makes an interface in every namespace."""
        lab.worker.do("sh", "-c", unloading(module))
        before = lab.worker.ask("ip", "-brief", "link").stdout
        assert not module_loaded(lab.worker, module) and "tunl0" not in before
        forward(Chain(name, 1), testbed=lab.testbed)
        assert not module_loaded(lab.worker, module)
        assert lab.worker.ask("ip", "-brief", "link").stdout == before

    def test_looking_for_what_a_kernel_has_leaves_no_module_behind(self, lab: Lab) -> None:
        modules = ("ipip", "openvswitch")
        for module in modules:
            lab.worker.do("sh", "-c", unloading(module))
        assert not any(module_loaded(lab.worker, module) for module in modules)
        assert [feature.name for feature in FEATURES if missing_feature(lab.worker, feature)] == []
        assert not any(module_loaded(lab.worker, module) for module in modules)

    def test_isolated_cpus_are_those_of_pods_where_the_topology_says_so(self, lab: Lab) -> None:
        isolated = parse_cpu_list(ISOLATED)
        worker = replace(lab.topology.workers[0], cpus=isolated, switch_cpus=isolated[:1])
        testbed = replace(lab, topology=replace(lab.topology, workers=(worker,))).testbed
        pollers = forward(Chain("memif", 2), testbed=testbed)["pollers"]
        assert {cpu for poller in pollers for cpu in poller["held_to"]} == {str(cpu) for cpu in isolated}

    def test_af_xdp_has_all_frames_of_a_card_with_many_queues(self, lab: Lab) -> None:
        before = lab.worker.ask("ethtool", "-l", LEFT.interface).stdout
        assert "Combined:\t\t1" not in before
        forward(Chain("af-xdp", 1), testbed=lab.testbed)
        assert lab.worker.ask("ethtool", "-l", LEFT.interface).stdout == before

    def test_a_card_divides_flows_among_the_queues_of_a_pod(self, lab: Lab) -> None:
        before = lab.worker.ask("ethtool", "-l", LEFT.interface).stdout
        scenario = Scenario("2 CPUs a pod", Node.ANY, (Node.ANY,), allocation=PodAllocation(cpus=2))
        placed = lab.testbed.place_scenario(scenario, Chain("af-xdp", 1))
        with lab.testbed.build_placed(placed, Chain("af-xdp", 1), FrameSize.parse(64)) as sut:
            send(sut)
            both_queues_forward(sut)
            assert len({poller["cpu"] for poller in sut.describe()["pollers"]}) == 2
        assert lab.worker.ask("ethtool", "-l", LEFT.interface).stdout == before

    def test_limits_of_version_2_hold_when_its_controllers_are_switched_on(self, lab: Lab) -> None:
        reason = control_groups.missing(lab.worker, LIMITS)
        if reason is not None:
            assert "controller of control groups is switched off on" in reason
            lab.worker.do("tee", "/sys/fs/cgroup/cgroup.subtree_control", stdin="+cpu +memory")
        with ExitStack() as undo:
            group = control_groups.make_group(lab.worker, "podperf-pod1", LIMITS, undo)
            undo.callback(lab.worker.spawn(*group.joining(["sha256sum", "/dev/zero"])).stop)
            deadline = time.monotonic() + 20
            while not ((told := group.describe())["processes"] and told.get("throttled_periods")):
                assert time.monotonic() < deadline, told
            assert (told["cpu_version"], told["memory_version"], told["processes"]) == (2, 2, 1)
            assert (told["cpu"], told["memory_mib"]) == (0.25, 192)
        assert "podperf" not in lab.worker.ask("ls", "/sys/fs/cgroup").stdout

    def test_af_xdp_busy_polls_where_the_kernel_tells_sockets_their_napi_context(self, lab: Lab) -> None:
        """veth of this kernel does, and joins the pods. With frames in both directions, each pod has such a socket."""
        description = forward(Chain("af-xdp-busy-poll", 2), testbed=lab.testbed)
        for application in description["applications"].values():
            assert all(socket["prefers_busy_polling"] for socket in application["sockets"])
            assert any(socket["has_napi"] for socket in application["sockets"])
        deferred = f"/sys/class/net/{LEFT.interface}/napi_defer_hard_irqs"
        assert lab.worker.ask("cat", deferred).stdout == "0\n"

    def test_a_tester_on_cards_counts_as_sent_what_they_took(self, lab: Lab) -> None:
        """A frame that finds a full transmit ring was not sent. Otherwise it would count as a loss of the system under
        test."""
        host, cpu = lab.worker, LEFT.cpus[1]
        with ExitStack() as undo:
            join(lab.topology.tester.left, lab.topology.tester.right, undo)
            for node in (LEFT, RIGHT):
                ipv6 = f"net.ipv6.conf.{node.interface}.disable_ipv6"  # with IPv6, the kernel itself would send frames
                host.do("sysctl", "-qw", f"{ipv6}=1")
                undo.callback(host.do, "sysctl", "-qw", f"{ipv6}=0")
                host.do("ip", "link", "set", "dev", node.interface, "up")
                undo.callback(host.do, "ip", "link", "set", "dev", node.interface, "down")
            ports = (TesterPort(LEFT.interface), TesterPort(RIGHT.interface))
            tester = undo.enter_context(SoftwareTester.at(Site(host, lab.topology.tester, "xdp", (cpu,), *ports)))
            assert {port["mode"] for port in tester.describe()["ports"].values()} == {"native"}
            assert await_carrier(host, LEFT.interface) and await_carrier(host, RIGHT.interface)
            traffic = traffic_of(64, BOTH_DIRECTIONS[:1])
            slow = Trial(traffic, load=200, duration=1.0)
            first(
                lambda each: (each.sent, each.received, each.invalid) == (200, 200, None), lambda: tester.measure(slow)
            )
            before = frames_out(host, LEFT.interface, cpu)
            sent = sum(tester.measure(Trial(traffic, UNPACED, 1.0)).sent for _ in range(3))
            assert frames_out(host, LEFT.interface, cpu) - before == sent

    def test_a_tester_on_cards_measures_a_chain_on_another_machine(self, lab: Lab) -> None:
        """The lab the other way round. Cards lose their links for seconds when they get the tester's program."""
        with ExitStack() as undo:
            left, right = (brought_out(port, undo) for port in (lab.topology.tester.left, lab.topology.tester.right))
            worker = WorkerSettings("local", None, left=WorkerPortSettings(left), right=WorkerPortSettings(right))
            near, far = PortSettings(LEFT.interface), PortSettings(RIGHT.interface)
            tester = replace(lab.topology.tester, cpus=LEFT.cpus[1:2], left=near, right=far)
            topology = replace(lab.topology, tester=tester, workers=(worker,))
            testbed = Testbed.on(topology, lab.worker, [LocalHost()])
            with testbed.build(Chain("macvlan", 1), FrameSize.parse(64)) as sut:
                send(sut)
                facts = sut.tester.describe()
        assert (facts["engine"], {port["driver"] for port in facts["ports"].values()}) == ("xdp", {"igb"})

    def test_from_inside_nothing_is_reached(self, lab: Lab) -> None:
        host = lab.worker
        assert "default" not in host.ask("ip", "route").stdout
        for address in ("10.0.2.2", "10.0.2.3"):  # this machine, and QEMU's name server
            connect = f"import socket; socket.create_connection(('{address}', 53), 2)"
            assert host.ask("python3", "-c", connect, check=False).exit_code, address

    @pytest.mark.parametrize("name", ["S1", "S5"])  # two minutes each; other scenarios only place pods elsewhere
    def test_switch_and_pods_poll_on_the_nodes_of_a_published_placement(self, lab: Lab, name: str) -> None:
        scenario, chain = SCENARIOS[name], Chain("ovs-dpdk", 2)
        placed = lab.testbed.place_scenario(scenario, chain)
        (cpus,) = placed.cpus
        described = forward(chain, testbed=lab.testbed, cpus=placed.cpus)
        nodes = {cpu: poller["numa_node"] for poller in described["pollers"] for cpu in poller["held_to"]}
        parts = zip((*cpus.switch, *cpus.pods), (scenario.switch, *scenario.pods), strict=True)
        assert nodes == {str(cpu): 0 if where is Node.NIC else 1 for cpu, where in parts}
        memory = [list(described["hugepages_mib"][pod]) for pod in ("pod1", "pod2")]
        assert memory == [[f"node{0 if where is Node.NIC else 1}"] for where in scenario.pods]


def join(left: PortSettings, right: PortSettings, undo: ExitStack) -> None:
    """A bridge between this machine's ends of the cables."""
    assert left.namespace and left.interface and right.interface
    here = NetworkNamespace(left.namespace)
    ip(here, "link", "add", "name", "join", "up", "type", "bridge")
    undo.callback(ip, here, "link", "del", "join")
    for interface in (left.interface, right.interface):
        ip(here, "link", "set", "dev", interface, "master", "join")


def brought_out(port: PortSettings, undo: ExitStack) -> str:
    """This machine's end of a cable, out of its namespace until `undo`."""
    assert port.namespace and port.interface
    out, root = f"worker-{port.interface}", "1"  # of the process with this number
    ip(NetworkNamespace(port.namespace), "link", "set", "dev", port.interface, "netns", root, "name", out)
    here = NetworkNamespace(port.namespace)
    undo.callback(ip, here, "link", "set", "dev", port.interface, "up")
    undo.callback(ip, LocalHost(), "link", "set", "dev", out, "netns", port.namespace, "name", port.interface)
    return out


def frames_out(host: Host, interface: str, queue: int) -> int:
    """The card's count of frames that it sent from this queue. A CPU uses the queue with its own number."""
    said = host.ask("ethtool", "-S", interface).stdout
    return int(said.partition(f"tx_queue_{queue}_packets: ")[2].split()[0])


SUITE = f"""{SETTINGS}
*** Test Cases ***
Crosses
    Set Up Chain    linux-bridge    1    64
    Measure Maximum Receive Rate
    [Teardown]    Tear Down Chain
"""


def test_frames_cross_a_bridge_on_it_and_the_result_says_that_it_compares_with_nothing(tmp_path: Path) -> None:
    robot = run(tmp_path)
    assert robot.wait(BOOT_TIMEOUT) == 0, robot.output.read_text()
    (record,) = robot.records()
    assert "emulated" in record["testbed"]["not_comparable"]
    assert record["environment"]["host"] == "podperf-worker"
    assert {numa_node["node"]: numa_node["cpus"] for numa_node in record["environment"]["numa_nodes"]} == {
        0: "0-3",
        1: "4-7",
    }
    rate = record["results"]["mrr"]
    assert 0 < rate["frames_per_second"] <= 5100
    assert record["tester_limits"]["maximum_load"] == 5000
    output = robot.output.read_text()
    assert "not comparable" in output and "virtual worker: up after" in output
    assert "Not comparable: " in (robot.results / "conformance.html").read_text()


def test_a_killed_run_leaves_no_machine_no_tap_and_no_disk(tmp_path: Path) -> None:
    robot = run(tmp_path, trials=100)
    robot.wait_for("| offered load ", BOOT_TIMEOUT)
    machine = machines()
    assert machine
    robot.kill()
    deadline = time.monotonic() + 60
    while machines() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not machines(), "QEMU must end with the run that started it"
    assert "podperf-ports" in podperf("clean").stdout
    assert "nothing" in podperf("clean").stdout


def run(folder: Path, trials: int = 1) -> Robot:
    suite = folder / "suite.robot"
    suite.write_text(SUITE)
    topology = TOPOLOGY.read_text().replace("trials: 3", f"trials: {trials}")
    return Robot(folder, str(suite), topology=topology)


def machines() -> list[str]:
    """The processes of QEMU that have our virtual worker's name."""
    command = ["pgrep", "-f", f"^{QEMU} -name podperf-worker"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
