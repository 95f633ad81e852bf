"""SR-IOV on the virtual worker: frames cross virtual functions, and afterwards the ports are as before.

The machine boots once for all of these tests.
"""

from __future__ import annotations

import multiprocessing
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from attempts import first
from chains import forward
from machine import once_as
from podperf.cleanup import put_back
from podperf.dataplanes.segments import start_pods
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.linux import ip
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.kernel import sriov
from podperf.model import BOTH_DIRECTIONS, Chain, Direction, FrameSize, TrafficProfile, VirtualFunctionSettings
from podperf.pods.base import Pod
from podperf.testbed.access import log_in
from podperf.testbed.system_under_test import addressed
from podperf.topology import Topology
from podperf.virtual_worker.boot import LEFT, RIGHT
from virtual_lab import ONLY_ON_REQUEST, Lab, booted

pytestmark = [ONLY_ON_REQUEST, pytest.mark.usefixtures("ports_as_before")]
UP_TIMEOUT = 180  # seconds
FRAME_TIMEOUT = 20  # seconds
VLAN = 7

# A driver learns the MAC of a virtual function when it is bound. The port must be up at that moment.
_BIND_ANEW = """
for each in /sys/bus/pci/devices/$1/virtfn*; do
    driver=$(readlink -f $each/driver) address=$(basename $(readlink -f $each))
    echo $address >$driver/unbind; echo $address >$driver/bind
done
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with booted() as lab:
        yield lab


@pytest.fixture
def ports_as_before(lab: Lab) -> Iterator[None]:
    before = lab.state()
    yield
    assert once_as(before, lab.state) == before


@pytest.mark.parametrize("forwarder", ["testpmd-mac", "kernel"])
@pytest.mark.parametrize("pods", [1, 2])
def test_frames_cross_virtual_functions(lab: Lab, pods: int, forwarder: str) -> None:
    description = forward(Chain("sriov", pods, forwarder), testbed=lab.testbed)
    functions = description["virtual_functions"]
    assert len(functions) == 2 * pods
    driver = "igbvf" if forwarder == "kernel" else "vfio-pci"
    assert {function["driver"] for function in functions} == {driver}
    assert functions[0]["numa_node"] == 0 and functions[-1]["numa_node"] == 1
    assert len({function["iommu_group"] for function in functions}) == 2 * pods


@pytest.mark.parametrize("after", ["up", "down"])
def test_a_link_that_a_virtual_functions_driver_gave_up_is_had_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    """The driver gives the link up, for ten seconds or for good, if the port answers late. Here the port is down
    meanwhile."""
    port = partial(ip, NetworkNamespace("podperf-worker", lab.worker), "link", "set", "dev", RIGHT.interface)

    def start(*arguments: Any) -> list[Pod]:
        monkeypatch.setattr(sriov, "CARRIER_PATIENCE", 1)
        port("down")
        pods = start_pods(*arguments)
        port(after)
        return pods

    monkeypatch.setattr("podperf.dataplanes.virtual_functions.start_pods", start)
    with ExitStack() as undo:
        if after == "down":
            undo.enter_context(pytest.raises(PodperfError, match=r"net2 of .* has no carrier"))
        sut = undo.enter_context(lab.testbed.build(Chain("sriov", 1, "kernel"), FrameSize.parse(64)))
        traffic = addressed(TrafficProfile(FrameSize.parse(64), BOTH_DIRECTIONS), sut)
        first(bool, lambda: sut.forwards(traffic))


def test_large_frames_cross_too(lab: Lab) -> None:
    forward(Chain("sriov", 1, "testpmd-mac"), ["1518"], lab.testbed)


def assert_both_hops(description: dict[str, Any]) -> None:
    """All frames crossed both kinds of hops: in at one virtual function, through the switch, out at the other one."""
    north_south, east_west = (description["frames_by_hop"][hop] for hop in ("north_south", "east_west"))
    assert north_south["received"] >= east_west["sent"] >= east_west["received"] >= north_south["sent"] > 0


def test_north_south_on_virtual_functions_and_east_west_through_the_switch(lab: Lab) -> None:
    description = forward(Chain("sriov-ovs-dpdk", 2), testbed=lab.testbed)
    assert [virtual_function["driver"] for virtual_function in description["virtual_functions"]] == ["vfio-pci"] * 2
    assert set(description["applications"]) == {"pod1", "pod2"}
    # The switch is on the left port's node, the pods on the right one's, as the topology says.
    placed = {(poller["numa_node"], *poller["held_to"]) for poller in description["pollers"]}
    assert placed == {(0, "1"), (1, "4"), (1, "5")}
    assert_both_hops(description)


@pytest.fixture(scope="module")
def vpp(lab: Lab) -> None:
    """VPP on the worker. No distribution has VPP, so a build on this machine is copied to the worker."""
    program = shutil.which("vpp")
    if program is None:
        pytest.skip("VPP is not installed on this machine, from which the virtual worker could have it")
    build = Path(program).resolve().parents[1]
    binaries = [program, *map(str, build.glob("lib/**/*_plugin.so"))]
    needed = re.findall(r"=> (/\S+)", subprocess.check_output(["ldd", *binaries], text=True))
    create = ["tar", "--create", "--gzip", "--dereference", "--directory=/"]
    files = sorted({f".{each}" for each in (build / "bin", build / "lib", *needed)})
    lab.worker.put(subprocess.run([*create, *files], check=True, capture_output=True).stdout, "/vpp.tar.gz")
    extract = ["tar", "--extract", "--gzip", "--skip-old-files", "--directory=/", "--file=/vpp.tar.gz"]
    lab.worker.do(*extract, timeout=UP_TIMEOUT)
    lab.worker.do("ln", "-sf", f"{build}/bin/vpp", f"{build}/bin/vppctl", "/usr/local/bin/")


@pytest.mark.usefixtures("vpp")
def test_east_west_through_vpp(lab: Lab) -> None:
    description = forward(Chain("sriov-vpp", 2), testbed=lab.testbed)
    assert [virtual_function["driver"] for virtual_function in description["virtual_functions"]] == ["vfio-pci"] * 2
    assert set(description["applications"]) == {"pod1", "pod2"}
    assert not any("host-" in line for line in description["vpp"]["interfaces"]), "it has no port of the worker"
    assert any(thread["nodes"].get("l2-patch") for thread in description["vpp"]["runtime"])
    assert_both_hops(description)


@pytest.mark.usefixtures("vpp")
@pytest.mark.parametrize("name", ["vpp-l2patch", "vpp-bridge-domain", "vpp-vrf"])
def test_vpp_drives_the_cards_of_its_ports(lab: Lab, name: str) -> None:
    """testpmd uses these ports by DPDK's driver. A DPDK without this driver reaches them through the kernel."""
    description = forward(Chain(name, 1), testbed=lab.testbed)["vpp"]
    if not any("dpdk" in plugin for plugin in description["plugins"]):
        pytest.skip("this VPP was built without DPDK; frames crossed by way of the kernel")
    assert {"left", "right"} <= {line.split()[0] for line in description["interfaces"]}
    assert not any("host-" in line for line in description["interfaces"])


def test_what_the_topology_says_of_virtual_functions_is_in_force(lab: Lab) -> None:
    wanted = VirtualFunctionSettings(number=3, vlans=(VLAN, VLAN), trust=True, spoof_check=False)
    with lab.with_functions(wanted).testbed.build(Chain("sriov", 1, "testpmd-mac"), FrameSize.parse(64)) as sut:
        for port in sut.describe()["physical_functions"]:
            assert port["virtual_functions"] == 3
            assert [
                (setting["vlan"], setting["trust"], setting["spoof_check"]) for setting in port["settings"].values()
            ] == [(VLAN, True, False)] * 3


def test_pods_have_as_many_queues_as_the_topology_says(lab: Lab) -> None:
    testbed = lab.with_functions(VirtualFunctionSettings(queues=2)).testbed
    (application,) = forward(Chain("sriov", 1, "testpmd-mac"), testbed=testbed)["applications"].values()
    polled = {each for line in application["forwarding"] for each in re.findall(r"RX P=(\d)/Q=(\d)", line)}
    assert polled == {("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")}


def test_a_vlan_is_on_the_wire_and_not_in_the_pods(lab: Lab) -> None:
    """Frames without the VLAN's tag reach no virtual function. Frames that a pod sent have the tag."""
    ports = lab.topology.tester
    chain, settings = Chain("sriov", 1, "testpmd-mac"), VirtualFunctionSettings(vlans=(VLAN, VLAN))
    with lab.with_functions(settings).testbed.build(chain, FrameSize.parse(64)) as sut:
        entry = sut.entries[Direction.LEFT_TO_RIGHT]
        assert ports.left.interface and ports.left.namespace and ports.right.interface and entry.mac
        script = [sys.executable, str(Path(__file__).with_name("tagged_frames.py"))]
        arguments = [ports.left.interface, ports.right.interface, entry.mac, str(VLAN), str(FRAME_TIMEOUT)]
        said = NetworkNamespace(ports.left.namespace).do(*script, *arguments, timeout=2 * FRAME_TIMEOUT).stdout
    assert said.splitlines() == [f"tagged {VLAN}"]


def test_virtual_functions_that_are_there_are_not_removed_by_taking_their_port(lab: Lab) -> None:
    wanted = f"/sys/bus/pci/devices/{LEFT.pci}/sriov_numvfs"
    lab.worker.do("tee", wanted, stdin="1")
    try:
        with pytest.raises(Unavailable, match="has 1 virtual functions"):
            forward(Chain("ovs-dpdk", 1), testbed=lab.testbed)
    finally:
        lab.worker.do("tee", wanted, stdin="0")


@pytest.mark.parametrize("forwarder", ["testpmd-mac", "kernel"])
def test_virtual_functions_that_are_there_are_used_and_left_as_they_were(lab: Lab, forwarder: str) -> None:
    with ExitStack() as undo:
        for port in (LEFT, RIGHT):
            wanted = f"/sys/bus/pci/devices/{port.pci}/sriov_numvfs"
            ip(lab.worker, "link", "set", "dev", port.interface, "up")
            undo.callback(ip, lab.worker, "link", "set", "dev", port.interface, "down")
            lab.worker.do("tee", wanted, stdin="2")
            undo.callback(lab.worker.do, "tee", wanted, stdin="0")
            of_somebody = ("mac", "02:11:22:33:44:55", "vlan", "9", "spoofchk", "off", "trust", "on")
            ip(lab.worker, "link", "set", "dev", port.interface, "vf", "0", *of_somebody)
            lab.worker.do("sh", "-ec", _BIND_ANEW, "sh", port.pci)
        before = lab.state()
        assert before.count("vlan 9, spoof checking off") == 2
        description = forward(Chain("sriov", 1, forwarder), testbed=lab.testbed)
        assert [
            physical_function["settings"]["0"]["vlan"] for physical_function in description["physical_functions"]
        ] == [0, 0]
        assert once_as(before, lab.state) == before


@pytest.mark.parametrize(
    "chain", [Chain("sriov", 1, "testpmd-mac"), Chain("sriov", 1, "kernel"), Chain("ovs-dpdk", 1)], ids=str
)
def test_what_a_killed_run_left_is_taken_back_by_the_next(lab: Lab, chain: Chain) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    run = context.Process(target=hold, args=(lab.topology, chain, theirs))
    run.start()
    theirs.close()
    assert ours.poll(UP_TIMEOUT) and ours.recv() == "up"
    run.kill()
    run.join()
    changed = "the driver of 0000:" if chain.data_plane == "ovs-dpdk" else "the virtual functions of "
    assert any(each.startswith(changed) for each in put_back(lab.worker))


def hold(topology: Topology, chain: Chain, pipe: Any) -> None:
    """The run that the test kills: it builds a chain, says so, and keeps the chain."""
    with ExitStack() as undo:
        lab = Lab(topology, [log_in("worker", topology.workers[0].ssh, LocalHost(), undo)])
        undo.enter_context(lab.testbed.build(chain, FrameSize.parse(64)))
        pipe.send("up")
        pipe.recv()
