"""The tester's ports in pods of a cluster, whose networks differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.cluster.parts.ovn import Ovn
from podperf.errors import PodperfError, Unavailable
from podperf.frames import PLAIN
from podperf.kubernetes.api import ApiError
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.pod_network import PodNetwork
from podperf.kubernetes.ports import PodFacts, PodPort
from podperf.kubernetes.settings import KubernetesSettings
from podperf.kubernetes.tester import KubernetesTester
from podperf.kubernetes.tester_objects import SIDES
from podperf.methods.trials import ignore
from podperf.model import CpuTime, Trial, TrialResult
from traffic import TRAFFIC


class OfMtu(PodPort):
    """A port in a pod whose interface has this MTU, in the words of the pod."""

    def __init__(self, said: str) -> None:
        self.said, self.facts = said, PodFacts("p", "node1", {}, "i")
        self.route, self._route_mtus = "", {}

    def execute(self, *words: str, timeout: float = 10.0) -> str:
        if words[0] == "/bin/ip":
            return self.route
        assert words[0] == "sh" and "/mtu" in words[-1]
        return self.said


@given(frame=st.integers(64, 9018), mtu=st.integers(68, 65535))
def test_a_frame_fits_or_the_reason_names_the_largest_that_does(frame: int, mtu: int) -> None:
    port = OfMtu(f"{mtu}\n")
    largest = mtu + 18  # Ethernet and FCS
    if frame <= largest:
        port.demand_mtu(frame, PLAIN)
        return
    said = rf"frames of {frame} B need an MTU of {frame - 18}, .* pod p on node1 {mtu}: .* has {largest} B"
    with pytest.raises(Unavailable, match=said):
        port.demand_mtu(frame, PLAIN)


@pytest.mark.parametrize(
    ("route", "largest"),
    [
        ("10.0.1.2 via 10.0.0.1 dev eth0 src 10.0.0.2 uid 0 \\    cache mtu 1450 \n", 1468),
        ("10.0.1.2 via 10.0.0.1 dev eth0 src 10.0.0.2 uid 0 \\    cache expires 300sec mtu lock 1400 \n", 1418),
        ("10.0.1.2 via 10.0.0.1 dev eth0 src 10.0.0.2 uid 0 \\    cache \n", 1518),
        ("\x1b mtu 99999999999 mtu x", 1518),
    ],
)
def test_between_nodes_the_mtu_of_the_route_counts(route: str, largest: int) -> None:
    """The routes are in the words of `ip -o route get`. Pods of one node have the whole MTU of their interface."""
    port, far = OfMtu("1500\n"), ip_address("10.0.1.2")
    port.route = route
    port.demand_mtu(1518, PLAIN)
    port.demand_mtu(largest, PLAIN, far)
    with pytest.raises(Unavailable, match=f"the largest frame that fits has {largest} B"):
        port.demand_mtu(largest + 1, PLAIN, far)


@pytest.mark.parametrize("said", ["", "cat: no such file", "-1", "9" * 5000, "\x1b[2J"])
def test_an_mtu_that_is_none_is_one_line(said: str) -> None:
    with pytest.raises(PodperfError, match="tells no MTU") as caught:
        OfMtu(said).demand_mtu(64, PLAIN)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("at=1764307200.5", "request: at is no word of a request"),
        ("part=exchange", "request: part=exchange: must be send or count"),
    ],
)
def test_an_image_that_does_not_know_a_request_is_older(word: str, complaint: str) -> None:
    class Older(OfMtu):
        def _pass_on(self, line: str, patience: float, busy: float = 0.0) -> str:
            return json.dumps({"error": complaint if word in line else "request: load=-1: must be 0 to 1e9 frames/s"})

    port = Older("")
    port._read = 0
    with pytest.raises(PodperfError, match=r"pod p cannot go on: its image is older.*: \./podperf image build$"):
        port.ask(f"load=1 {word}", {"trial"}, 1.0)
    with pytest.raises(PodperfError, match="must be 0 to 1e9"):
        port.ask("load=-1", {"trial"}, 1.0)


@pytest.mark.parametrize(
    "settings", [{"new_flows": True}, {"network_policies": 1}, {"receive_threads": True}, {"destination": "service"}]
)
def test_many_pairs_of_other_pods_are_refused_in_one_line(settings: Mapping[str, Any]) -> None:
    tester: Any = SimpleNamespace(
        pods=dict.fromkeys(SIDES), _settings=replace(KubernetesSettings(PodWishes("i")), **settings)
    )
    with pytest.raises(Unavailable, match=r"without Services, .* and new_flows"):
        KubernetesTester._pairs(tester, ignore).__enter__()


def test_counters_of_a_node_that_allows_no_pod_in_its_network_are_not_read() -> None:
    """The row is measured, and says why."""

    def refuse(_pod: object) -> None:
        raise ApiError("POST pods", 403, "violates PodSecurity baseline: hostNetwork")

    place = SimpleNamespace(run="r", owners=(), start=refuse)
    of_one_node = {side: SimpleNamespace(facts=PodFacts(side, "node1", {}, "i")) for side in SIDES}
    settings = KubernetesSettings(PodWishes("i"))
    tester: Any = SimpleNamespace(pods=of_one_node, _place=place, _settings=settings)
    assert KubernetesTester._start_readers(tester) == ([], None)
    tester._settings = replace(settings, new_flows=True)
    places, why = KubernetesTester._start_readers(tester)
    assert not places and "violates PodSecurity" in str(why)


@pytest.mark.parametrize(
    ("process", "settings", "known"),
    [
        ("", {}, True),
        (Ovn.process, {}, False),
        (Ovn.process, {"host_network": True}, True),
        (Ovn.process, {"networks": ("macvlan",)}, True),
    ],
)
def test_a_switch_in_user_space_forwards_in_no_time_of_the_pods(
    process: str, settings: Mapping[str, Any], known: bool
) -> None:
    """All else on the nodes, to which the switch belongs, keeps its CPU time."""
    times = CpuTime({"the port that sends": 5e6}, beside={"the rest of the node": 3e6})
    measured = TrialResult(Trial(TRAFFIC, 1000.0, 1.0, train=32), 0.0, (), cpu_time=times)

    class OfPair(KubernetesTester):
        network = PodNetwork(process=process)

        def __init__(self) -> None:
            self._settings = replace(KubernetesSettings(PodWishes("i")), **settings)
            self._pair: Any = SimpleNamespace(measure=lambda trial, entries: measured)

    found = OfPair()._measure(measured.trial, {}).cpu_time
    assert found is not None and found.beside == times.beside
    assert (found == times) is known
    if not known:
        assert found.total is None and not found.parts
        assert found.unread.startswith("ovs-vswitchd forwards the frames")
