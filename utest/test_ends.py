"""The ends of a chain: ports of the tester, or pods with the tester's program in them."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import made_up_history
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.experiments.comparison_files import load_comparison
from podperf.frames import Headers, Vlan
from podperf.history.fingerprint import difference, fingerprint
from podperf.history.trends import doubt_of
from podperf.metrics import METRICS, Measured
from podperf.model import PORTS, Chain, End, Ends, FrameSize
from podperf.preflight.plan import SET_UP, plan
from podperf.records import Record
from podperf.records.schema import schema_errors
from podperf.report.results import remarks
from podperf.report.summary import pods_cell, summary_table
from podperf.run.measurement import bounds
from podperf.testbed.system_under_test import PROGRAM_AT_END
from podperf.topology import SCHEMA_PATH, PortSettings, WorkerPortSettings, load_topology

TOPOLOGIES = SCHEMA_PATH.parent
LOCAL, TWO_WORKERS = (load_topology(TOPOLOGIES / f"{name}.yaml", DATA_PLANES) for name in ("local", "two_workers"))
SMALL = FrameSize.parse(64)
POD_TO_POD, POD_TO_PORT, PORT_TO_POD = Ends(End.POD, End.POD), Ends(left=End.POD), Ends(right=End.POD)
PROGRAM = {"program": PROGRAM_AT_END}
WITH_PODS = (POD_TO_POD, POD_TO_PORT, PORT_TO_POD)
KERNEL = ("linux-bridge", "macvlan", "ovs-kernel", "ovs-netdev", "ptp", "routed", "routed-policy", "tc-redirect")


def commands(chain: Chain, topology: object = LOCAL) -> list[str]:
    """The commands that set up a chain, one a line, each behind the namespace where it runs."""
    made = plan(topology, chain, SMALL)  # type: ignore[arg-type]
    steps = [step for step in made.steps if step.phase == SET_UP]
    return [f"[{step.namespace}] {line}" for step in steps for line in (step.text, *step.content.splitlines())]


def opened(lines: list[str]) -> str:
    """The ends that the tester opens."""
    (started,) = (line for line in lines if "podperf-tester" in line and "--engine" in line)
    return " ".join(shlex.split(started.partition("] ")[2])[1:5])


def test_a_chain_says_where_its_traffic_begins_and_ends() -> None:
    assert str(Chain("linux-bridge", 0, ends=POD_TO_POD)) == "linux-bridge, from a pod to a pod"
    assert str(Chain("routed", 1, ends=PORT_TO_POD)) == "routed, 1 pod, from a port to a pod"
    assert str(Chain("routed", 0, workers=2, ends=POD_TO_POD)) == "routed on 2 workers, from a pod to a pod"
    assert str(Chain("routed", 1)) == "routed, 1 pod"


def test_the_ends_are_on_the_outermost_workers() -> None:
    parts = Chain("routed", 0, workers=3, ends=POD_TO_POD).parts
    assert [part.ends for part in parts] == [POD_TO_PORT, PORTS, PORT_TO_POD]
    assert Chain("routed", 1, ends=POD_TO_PORT).parts == [Chain("routed", 1, ends=POD_TO_PORT)]


def test_chains_beside_each_other_share_ports() -> None:
    with pytest.raises(ValueError, match="between ports of the tester"):
        Chain("linux-bridge", 1, chains=2, ends=POD_TO_POD)


@pytest.mark.parametrize("ends", WITH_PODS, ids=str)
@pytest.mark.parametrize("name", KERNEL)
def test_the_tester_sends_and_receives_in_the_pods(name: str, ends: Ends) -> None:
    places = [f"end-{side}" if end is End.POD else "tester" for side, end in ends.by_side.items()]
    left, right = (f"{side}@podperf-{place}" for side, place in zip(ends.by_side, places, strict=True))
    lines = commands(Chain(name, 0, ends=ends))
    assert opened(lines) == f"--left {left} --right {right}"
    assert not any("pod1" in line for line in lines), "no pod forwards"
    with_a_pod = commands(Chain(name, 1, ends=ends))
    assert opened(with_a_pod) == opened(lines)
    assert any("netns add podperf-pod1" in line for line in with_a_pod)


def test_a_data_plane_on_veth_pairs_has_the_same_ports_whatever_is_behind_them() -> None:
    between_ports, between_pods = (commands(Chain("tc-redirect", 0, ends=ends)) for ends in (PORTS, POD_TO_POD))
    on_worker = [[line for line in each if "[podperf-worker]" in line] for each in (between_ports, between_pods)]
    attached = [line for line in on_worker[1] if not re.search(r"link add name w-|ip -n podperf-end-", line)]
    assert attached == on_worker[0]


@pytest.mark.parametrize(
    ("ends", "parents"),
    [(POD_TO_POD, ["w-left", "w-left"]), (POD_TO_PORT, ["w-right"]), (PORT_TO_POD, ["w-left"])],
    ids=str,
)
def test_pods_at_both_ends_have_one_parent(ends: Ends, parents: list[str]) -> None:
    lines = commands(Chain("macvlan", 0, ends=ends))
    given = [json.loads(line.partition("] ")[2])["master"] for line in lines if '"type": "macvlan"' in line]
    assert given == parents
    assert "--engine packet-ring" in " ".join(lines)


def test_pods_at_the_ends_of_a_chain_with_pods_have_parents_of_their_own() -> None:
    lines = commands(Chain("macvlan", 1, ends=POD_TO_POD))
    given = [json.loads(line.partition("] ")[2])["master"] for line in lines if '"type": "macvlan"' in line]
    assert given == ["w-left", "w-right", "w-left", "w-right"]


def test_a_policy_is_for_pods_at_the_ends_too() -> None:
    (rules,) = (line for line in commands(Chain("routed-policy", 0, ends=POD_TO_PORT)) if "elements" in line)
    assert '"w-left" : goto pod' in rules
    assert "w-right" not in rules


def test_routers_between_pods_get_interfaces_for_vlans() -> None:
    tagged = replace(LOCAL, traffic=replace(LOCAL.traffic, headers=Headers(left=(Vlan(7),), right=(Vlan(7),))))
    assert any("type vlan" in line for line in commands(Chain("routed", 0, ends=POD_TO_POD), tagged))
    assert not any("type vlan" in line for line in commands(Chain("linux-bridge", 0, ends=POD_TO_POD), tagged))


def test_pods_of_two_workers_are_joined_as_their_chains_are() -> None:
    lines = commands(Chain("routed", 0, workers=2, join="vxlan", ends=POD_TO_POD), TWO_WORKERS)
    assert opened(lines) == "--left left@podperf-end-left --right right@podperf-worker2-end-right"
    assert sum(" name join-" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("vpp-l2patch", "ports in user space"),
        ("sriov", "existed before the run"),
        ("sriov-vpp", "existed before the run"),
        ("docker", "translates the addresses"),
        ("tc-redirect-peer", "behind the XDP hook"),
    ],
)
def test_what_cannot_end_in_a_pod_is_skipped_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(Unavailable, match=f"no end of {name} is in a pod: .*{reason}"):
        commands(Chain(name, 2, ends=POD_TO_POD))


def started(lines: list[str]) -> dict[str, str]:
    """The programs of the pods, by the pod: their command lines."""
    found = (re.match(r"\[podperf-(\S+)\] .*(dpdk-testpmd --.*)", line) for line in lines)
    return {each[1]: each[2] for each in found if each}


@pytest.mark.parametrize("pods", [0, 1])
@pytest.mark.parametrize("ends", WITH_PODS, ids=str)
def test_a_program_of_the_pod_carries_frames_to_the_vhost_user_port(ends: Ends, pods: int) -> None:
    lines = commands(Chain("ovs-dpdk", pods, "testpmd-mac", ends=ends))
    places = [f"end-{side}" if end is End.POD else "tester" for side, end in ends.by_side.items()]
    assert opened(lines) == "--left left@podperf-{} --right right@podperf-{}".format(*places)
    at_ends = {side for side, end in ends.by_side.items() if end is End.POD}
    programs = started(lines)
    for side in at_ends:
        program = programs.pop(f"end-{side}")
        assert re.findall(r"iface=(\S+)|path=(\S+?),", program) == [
            (f"w-{side}", ""),
            ("", f"/run/podperf/sockets/{side}.sock"),
        ]
        assert "--forward-mode=io" in program, "frames stay unchanged, whatever forwards in the pods between the ends"
        assert any(f"set dev w-{side} netns podperf-end-{side} name w-{side}" in line for line in lines)
    assert len(programs) == pods
    added = [line.partition("add-port ovs-br0 ")[2] for line in lines if "add-port" in line]
    assert [each.split()[0] for each in added] == ["left", *["pod1a", "pod1b"][: 2 * pods], "right"]
    of_sockets = {each.split()[0] for each in added if "type=dpdkvhostuserclient" in each}
    assert of_sockets >= at_ends and not of_sockets & ({"left", "right"} - at_ends)
    pollers = " ".join(line for line in lines if "podperf-rotation" in line or "renice" in line)
    assert pollers.count("of DPDK that poll") == len(at_ends) + pods


@pytest.mark.parametrize("pods", [0, 1])
def test_a_program_of_the_pod_carries_frames_to_the_memif(pods: int) -> None:
    lines = commands(Chain("memif", pods, "l2fwd", ends=POD_TO_POD))
    assert opened(lines) == "--left left@podperf-end-left --right right@podperf-end-right"
    programs = started(lines)
    assert sorted(programs) == ["end-left", "end-right"], "pods between the ends have the chain's forwarder"
    devices = [re.findall(r"iface=(\w+)|role=(\w+)", programs[f"end-{side}"]) for side in ("left", "right")]
    assert devices == [[("net1", ""), ("", "server")], [("", "client"), ("net2", "")]]
    assert sum("net_memif" in line for line in lines) == 2 + pods


@pytest.mark.parametrize(
    ("ends", "pods", "programs"),
    [
        (POD_TO_POD, 0, {"end-left": ["net1", "net2"], "end-right": ["net1", "net2"]}),
        (POD_TO_PORT, 0, {"end-left": ["net1", "net2"]}),
        (PORT_TO_POD, 0, {"end-right": ["net1", "net2"]}),
        (PORT_TO_POD, 1, {"pod1": ["net1", "net2"], "end-right": ["net1", "net2"]}),
    ],
)
def test_a_program_of_the_pod_carries_frames_to_its_sockets(
    ends: Ends, pods: int, programs: dict[str, list[str]]
) -> None:
    lines = commands(Chain("af-xdp", pods, "testpmd-macswap", ends=ends))
    found = started(lines)
    assert {name: re.findall(r"iface=(\w+)", line) for name, line in found.items()} == programs
    assert ["mode=io" in found[name] for name in programs] == [name.startswith("end") for name in programs]
    # The worker's two ports are in the outermost pods, and a veth pair is between two pods.
    assert sum(" netns podperf-" in line and " name net" in line for line in lines if " set dev w-" in line) == (
        2 - (pods > 0)
    )
    assert sum("name net2" in line and "peer name net1" in line for line in lines) == len(programs) - 1


CONTAINERS = Ends(End.CONTAINER, End.CONTAINER)


def test_two_containers_of_one_pod_share_its_network_and_a_memif() -> None:
    lines = commands(Chain("memif", 0, ends=CONTAINERS))
    assert opened(lines) == "--left left@podperf-end-left --right right@podperf-end-left"
    assert {name for line in lines if (name := line.partition("netns add podperf-")[2])} == {"worker", "end-left"}
    programs = [line for line in lines if "dpdk-testpmd --" in line]
    assert [line.partition("] ")[0] for line in programs] == ["[podperf-end-left"] * 2
    assert [re.findall(r"iface=(\w+)|role=(\w+)", line) for line in programs] == [
        [("net1", ""), ("", "server")],
        [("", "client"), ("net2", "")],
    ]
    bare = commands(Chain("wire", 0, ends=CONTAINERS))
    assert opened(bare) == "--left left@podperf-tester-left --right right@podperf-tester-left"


def test_both_containers_of_one_pod_have_a_vhost_user_port() -> None:
    lines = commands(Chain("ovs-dpdk", 0, ends=CONTAINERS))
    assert opened(lines) == "--left left@podperf-end-left --right right@podperf-end-left"
    assert sum("type=dpdkvhostuserclient" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("chain", "reason"),
    [
        (Chain("af-xdp", 0, workers=2, ends=POD_TO_PORT), "a worker has no pod"),
        (Chain("af-xdp", 1, workers=2, ends=POD_TO_PORT), "a worker has no pod"),
        (Chain("memif", 0, workers=2, ends=POD_TO_POD), "the worker has 1 pod"),
        (Chain("macvlan", 0, workers=2, ends=POD_TO_PORT), "a worker has no pod"),
        (Chain("macvlan", 0, workers=2, join="vxlan", ends=POD_TO_POD), "vxlan gives the worker an interface in place"),
    ],
    ids=str,
)
def test_a_worker_that_would_forward_nothing_is_refused(chain: Chain, reason: str) -> None:
    with pytest.raises(Unavailable, match=reason):
        commands(chain, TWO_WORKERS)


def test_pods_of_two_workers_have_the_join_on_their_way() -> None:
    lines = commands(Chain("macvlan", 2, workers=2, join="vxlan", ends=POD_TO_POD), TWO_WORKERS)
    masters = {json.loads(line.partition("] ")[2])["master"] for line in lines if '"type": "macvlan"' in line}
    assert masters == {"w-left", "w2-right", "join-left", "join-right"}


@pytest.mark.parametrize(
    ("chain", "refusal", "reason"),
    [
        (Chain("linux-bridge", 0, ends=CONTAINERS), Unavailable, "no containers of one pod: their frames do not leave"),
        (Chain("af-xdp", 0, ends=CONTAINERS), Unavailable, "no containers of one pod"),
        (Chain("memif", 1, ends=CONTAINERS), PodperfError, "no other pod and no second worker"),
        (Chain("memif", 0, ends=Ends(left=End.CONTAINER)), PodperfError, "both ends must be containers"),
    ],
    ids=str,
)
def test_what_is_not_between_two_containers_of_one_pod_is_refused(
    chain: Chain, refusal: type[PodperfError], reason: str
) -> None:
    with pytest.raises(refusal, match=reason):
        commands(chain)


def test_a_memif_needs_two_pods() -> None:
    with pytest.raises(
        Unavailable, match="memif, from a pod to a port: a memif joins two pods, and the worker has 1 pod"
    ):
        commands(Chain("memif", 0, ends=POD_TO_PORT))
    assert list(started(commands(Chain("memif", 1, ends=POD_TO_PORT)))) == ["end-left", "pod1"]


def test_a_rate_with_the_work_of_programs_at_the_ends_is_a_lower_bound_of_the_data_plane() -> None:
    found = {"mrr": Measured(2e5, 1e5, 3e5), "ndr": Measured(1e4, upper_bound=True), "latency_p50": Measured(9e3)}
    assert bounds(found) == {**found, "mrr": Measured(2e5, 1e5, 3e5, lower_bound=True)}


def test_each_report_says_that_the_rate_includes_programs_at_the_ends() -> None:
    document = made_up_history.record("linux-bridge", 0, 1.0)
    document["results"]["mrr"]["lower_bound"] = True
    tester, program = (Record.of({**document, "data_plane": {"ends": {"left": end}}}) for end in ({}, PROGRAM))
    for record, words in ((tester, "the tester was the limit"), (program, "programs in the pods at the ends")):
        assert words in " ".join(summary_table([record]).split())
        assert words in doubt_of(record, METRICS["mrr"])
    assert not any("as fast as these rates at least" in each for each in remarks(tester))
    assert any("as fast as these rates at least" in each for each in remarks(program))


def test_ends_in_pods_need_ports_that_podperf_makes() -> None:
    tester = replace(LOCAL.tester, left=PortSettings("a"), right=PortSettings("b"))
    worker = replace(LOCAL.workers[0], left=WorkerPortSettings("c"), right=WorkerPortSettings("d"))
    with pytest.raises(Unavailable, match="only where podperf makes its ports"):
        commands(Chain("linux-bridge", 0, ends=POD_TO_POD), replace(LOCAL, tester=tester, workers=(worker,)))
    with pytest.raises(PodperfError, match="needs 1 or more pods, not 0"):
        commands(Chain("linux-bridge", 0))


def test_the_bare_path_has_such_ends_too() -> None:
    lines = commands(Chain("wire", 0, ends=POD_TO_PORT))
    assert opened(lines) == "--left left@podperf-tester-left --right right@podperf-tester"
    assert sum("type veth" in line for line in lines) == 1


def test_variants_of_a_comparison_can_differ_in_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "ends.yaml"
    path.write_text(
        "version: 1\nname: ends\nchain: {data_plane: linux-bridge, pods: 0, ends: {left: pod}}\n"
        "variants:\n  - name: out\n  - name: in\n    chain: {ends: {right: pod}}\n"
    )
    assert [each.chain.ends for each in load_comparison(path).variants] == [POD_TO_PORT, PORT_TO_POD]
    path.write_text(
        "version: 1\nname: ends\nchain: {data_plane: memif, pods: 0}\nvariants:\n"
        "  - name: pods\n    chain: {ends: {left: pod, right: pod}}\n"
        "  - name: containers\n    chain: {ends: {left: container, right: container}}\n"
    )
    assert [each.chain.ends for each in load_comparison(path).variants] == [POD_TO_POD, CONTAINERS]


def test_ends_are_in_the_record_and_tell_series_apart() -> None:
    kept = []
    for ends in (PORTS, POD_TO_POD):
        document = made_up_history.record("linux-bridge", 1, 1.0)
        document["chain"] = json.loads(json.dumps(asdict(Chain("linux-bridge", 0, ends=ends))))
        assert schema_errors(document) == []
        kept.append(Record.of(document))
    assert [each.chain and each.chain.ends for each in kept] == [PORTS, POD_TO_POD]
    ports, pods = (fingerprint(each, METRICS["mrr"]) for each in kept)
    assert "ends from a pod to a pod" in difference(ports, pods)
    assert [pods_cell(each) for each in kept] == ["0", "0 from a pod to a pod"]
