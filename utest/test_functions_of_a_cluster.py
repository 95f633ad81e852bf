"""Virtual functions that a device plug-in of a cluster gives to pods: what podperf asks for, and what it believes."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
import yaml

from podperf.addressing import IPV4_ADDRESSES
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.virtual_functions import of_each_pod
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.namespaces import NetworkNamespace
from podperf.hosts.way_back import WayBack
from podperf.kernel.pci import ADDRESS
from podperf.kernel.sriov import PhysicalFunction, given_functions
from podperf.kubernetes.chain_pods import ChainPod, PlannedRun, WantedFunction
from podperf.kubernetes.pods import KubernetesPods
from podperf.kubernetes.running_pods import PodPlacement
from podperf.model import MOST_PODS, Chain, FrameSize, VirtualFunctionSettings
from podperf.pods import POD_RUNTIMES, runtime_of
from podperf.pods.base import Attachment, PodProgram
from podperf.preflight.plan import PlannedHost, plan
from podperf.topology import SCHEMA_PATH, Topology, load_topology
from scripted_host import ScriptedHost
from test_kubernetes_pods import Pods, settings_of
from test_kubernetes_pods import topology as chains

RESOURCES = {"left": "intel.com/left_port", "right": "intel.com/right_port"}
LEFT, RIGHT = (
    PhysicalFunction("podperf-worker", f"enp{3 + side}s0", f"0000:0{3 + side}:00.0", side) for side in (0, 1)
)
GIVEN = {"INTEL_COM_LEFT_PORT": "0000:03:10.0,0000:03:10.2", "INTEL_COM_RIGHT_PORT": "0000:04:10.4"}
SMALL = FrameSize.parse(64)


def runtime(devices: dict[str, str], driver: str = "vfio-pci", program: bool = True, **settings: Any) -> KubernetesPods:
    """A runtime whose containers tell these devices."""
    pods = Pods(replace(PodPlacement.of(""), devices=devices))
    host = ScriptedHost(answers={"sh -c": "4711\n", "readlink": f"../{driver}\n"}, patient=True)
    wanted = settings_of(**{"virtual_functions": RESOURCES, **settings})
    worker = NetworkNamespace("podperf-worker", host)
    return KubernetesPods(host, worker, wanted, lambda _: pods, lambda: "", PodProgram() if program else None)


def test_each_pod_gets_functions_of_the_ports_that_it_wants_and_is_started_once() -> None:
    pods = runtime(GIVEN)
    with ExitStack() as undo:
        given = pods.give_functions({"pod1": [LEFT, RIGHT, LEFT]}, undo)
        assert given == {"pod1": ["0000:03:10.0", "0000:04:10.4", "0000:03:10.2"]}
        assert pods.start("pod1", [], undo).name == "pod1"
        assert list(pods.describe()["pods"]) == ["pod1"], "the pod that runs, and no second one"


def test_a_pod_of_nobody_ends_too() -> None:
    pods = runtime(GIVEN)
    with ExitStack() as undo:
        pods.give_functions({"pod1": [LEFT, LEFT, RIGHT]}, undo)
    assert not pods.describe()["pods"]


def test_without_resources_podperf_makes_functions_itself() -> None:
    with ExitStack() as undo:
        assert runtime({}, virtual_functions=None).give_functions({"pod1": [LEFT]}, undo) is None


@pytest.mark.parametrize(
    "told", ["", "0000:03:10.0,0000:03:10.2", "03:10.0", "0000:03:10.0/../0000:04:00.0", "$(reboot)", "-x"]
)
def test_a_container_that_tells_other_devices_is_not_believed(told: str) -> None:
    said = r"pod1 asked for 1 of intel\.com/left_port, and its container tells "
    with pytest.raises(PodperfError, match=said), ExitStack() as undo:
        runtime({"INTEL_COM_LEFT_PORT": told}).give_functions({"pod1": [LEFT]}, undo)


def test_a_program_gets_no_function_that_the_kernel_drives() -> None:
    said = r"0000:04:10\.4, which intel\.com/right_port .* has the driver igbvf: the device plug-in must .* vfio-pci"
    with pytest.raises(Unavailable, match=said), ExitStack() as undo:
        runtime(GIVEN, driver="igbvf").give_functions({"pod1": [RIGHT]}, undo)
    with ExitStack() as undo:
        assert runtime(GIVEN, driver="igbvf", program=False).give_functions({"pod1": [RIGHT]}, undo)


def test_multus_cannot_attach_a_function_that_is_known_only_later() -> None:
    pods = runtime(GIVEN, program=False, attached_by="multus")
    with pytest.raises(Unavailable, match=r"attached_by: podperf"), ExitStack() as undo:
        pods.give_functions({"pod1": [RIGHT]}, undo)
        pods.start("pod1", [Attachment("net1", "segment0", [{"type": "host-device"}])], undo)


@pytest.mark.parametrize("name", ["INTEL_COM_LEFT_PORT", "INTEL-COM_LEFT_PORT", "INTEL.COM_LEFT_PORT"])
def test_the_devices_of_a_resource_are_found_however_its_plug_in_writes_the_name(name: str) -> None:
    said = f'device {name} 0000:03:10.0,0000:03:10.2\ndevice {name}_INFO {{"0000:03:10.0": {{"generic": 1}}}}\n'
    placement = PodPlacement.of(said)
    assert placement.of_resource("intel.com/left_port") == ["0000:03:10.0", "0000:03:10.2"]
    assert placement.of_resource("intel.com/left") == [] == placement.of_resource("intel.com/left_port_info")


def test_a_device_of_another_port_is_named_and_not_touched() -> None:
    host = ScriptedHost(answers={"sh -c": "0000:03:10.0\n0000:03:10.2\n"}, patient=True)
    said = r"the cluster gave a pod 0000:04:10\.4 for enp3s0 \(0000:03:00\.0\) of .*, which is no virtual function"
    with pytest.raises(PodperfError, match=said), ExitStack() as undo:
        settings = VirtualFunctionSettings()
        given_functions(host, LEFT, ["0000:03:10.0", "0000:04:10.4"], settings, WayBack(host, undo))
    with pytest.raises(PodperfError, match=r"0000:03:10\.0 .* which another pod has, too"), ExitStack() as undo:
        given_functions(host, LEFT, ["0000:03:10.0", "0000:03:10.0"], settings, WayBack(host, undo))
    assert not any(" vf " in command for command in host.commands)


def test_one_resource_for_both_ports_is_refused() -> None:
    with pytest.raises(PodperfError, match=r"names intel\.com/a for both ports"):
        runtime_of(chains(virtual_functions={"left": "intel.com/a", "right": "intel.com/a"}).pods)


def lab(**settings: Any) -> Topology:
    """A lab with a card that has virtual functions, whose pods are a cluster's."""
    found = load_topology(SCHEMA_PATH.parent / "appendix_b_sriov_dpdk.yaml", DATA_PLANES, POD_RUNTIMES)
    return replace(found, pods=chains(**settings).pods)


@pytest.mark.parametrize(
    ("data_plane", "pods", "asked"),
    [
        ("sriov", 1, [(1, 1)]),
        ("sriov", 3, [(2, 0), (1, 1), (0, 2)]),
        ("sriov-ovs-dpdk", 3, [(1, 0), (0, 0), (0, 1)]),
        ("sriov-vpp", 2, [(1, 0), (0, 1)]),
    ],
)
def test_a_plan_shows_what_each_pod_asks_for_and_makes_no_functions(
    data_plane: str, pods: int, asked: list[tuple[int, int]]
) -> None:
    made = plan(lab(virtual_functions=RESOURCES), Chain(data_plane, pods), SMALL)
    found = {}
    for step in made.steps:
        for each in yaml.safe_load_all(step.content or "") if "kubectl create" in step.text else ():
            if each["kind"] == "Pod":
                limits = each["spec"]["containers"][0]["resources"].get("limits", {})
                found[each["metadata"]["name"]] = tuple(int(limits.get(name, 0)) for name in RESOURCES.values())
    assert [found[f"pod{number + 1}-plan"] for number in range(pods)] == asked
    text = "\n".join(each.text for each in made.steps)
    assert "sriov_numvfs" not in text
    assert len(set(re.findall(r" vf (\d+) mac 02:70:6f:64:00", text))) == sum(left for left, _ in asked)


def test_a_plan_gives_each_pod_of_the_longest_chain_its_own_functions_of_one_card() -> None:
    run = PlannedRun(PlannedHost("worker", {}), settings_of(virtual_functions=RESOURCES))
    functions = [WantedFunction(f"0000:03:00.{side}", name) for side, name in enumerate(RESOURCES.values())]
    given: list[str] = []
    for pod_name, sides in of_each_pod(MOST_PODS).items():
        placement = run.placement(run.create(ChainPod(pod_name, functions=[functions[side] for side in sides])))
        given += [address for name in RESOURCES.values() for address in placement.of_resource(name)]
    assert len(set(given)) == len(given) == 2 * MOST_PODS
    assert all(map(ADDRESS.fullmatch, given))


def test_a_chain_that_has_no_addresses_for_all_its_pods_is_refused() -> None:
    assert IPV4_ADDRESSES.left_of(MOST_PODS) == "10.254.255.1", "behind the last pod"
    assert [part.pods for part in Chain("sriov", 2 * MOST_PODS, workers=2).parts] == [MOST_PODS] * 2
    with pytest.raises(ValueError, match="0 to 255 pods on each worker, not 256"):
        Chain("sriov", MOST_PODS + 1)


def test_without_resources_a_program_is_skipped_with_the_key_to_set() -> None:
    with pytest.raises(Unavailable, match=r"pods\.settings\.virtual_functions"):
        plan(lab(), Chain("sriov", 1), SMALL)
