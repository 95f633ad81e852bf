"""The command `podperf cni-table`: what each network of podperf's own cluster costs, beside that of its nodes."""

from __future__ import annotations

import signal
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from podperf.cluster import hierarchies, lifecycle
from podperf.cluster.layout import ClusterNetwork
from podperf.cluster.parts import ALL_NETWORKS, network_named, ready_programs
from podperf.cluster.parts.network_policies import NetworkPolicies
from podperf.cluster.pod_image import POD, ready_image
from podperf.errors import ExitCode, PodperfError, Unavailable
from podperf.experiments.contender import SMALLEST
from podperf.experiments.host_share import CLUSTER, ClusterWay, HostShare
from podperf.frames import AddressFamily
from podperf.hosts.local import LocalHost
from podperf.kubernetes.pod_network import PodNetwork
from podperf.metrics import Measured
from podperf.model import FrameSize
from podperf.nearness import optional_path
from podperf.printable import printable
from podperf.progress import Progress
from podperf.records import Outcome
from podperf.report.cni_page import AgentUse, NetworkRow, RowFigures, cni_markdown, cni_page, cni_text
from podperf.report.comparison_page import write_comparison
from podperf.report.files import write_file, write_report
from podperf.run import Run, Session, TestIdentity
from podperf.terminal import columns, say
from podperf.testbed.access import read_topology
from run_command.preparation import results_folder

NAME = "cni-table"
INTERRUPTED = "interrupted"
_IDLE = 5.0  # seconds in which the agents of an idle cluster are watched


WAYS = (
    ClusterWay("pod to pod, two nodes", {"nodes": 2}),
    ClusterWay("pod to pod, 1000 flows", {"nodes": 2}, flows=1000),
    ClusterWay("pod to pod, IPv6, 84 B", {"nodes": 2}, FrameSize.parse(84), family=AddressFamily.IPV6),
    ClusterWay("pod to Service, two nodes", {"nodes": 2, "destination": "service"}),
    ClusterWay("pod to pod, one node", {"nodes": 1}),
    ClusterWay("pod to pod, 100 policies", {"nodes": 2, "network_policies": 100}),
)
PLACES: Mapping[str, Mapping[str, Any]] = {
    "host network": {"host_network": True},
    "two nodes": {},
    "one node": {"nodes": 1},
}
"""Where NDR, PDR, latency and CPU time are measured, with the pods' settings that differ from those of the run."""


def add_arguments(parser: ArgumentParser) -> None:
    titles = ", ".join(each.title for each in ALL_NETWORKS)
    parser.description = f"""What does each network of a cluster cost? Each one is started on podperf's own cluster of
two nodes, measured, and taken down. Each rate stands beside that of the nodes' own network.
The command needs root. It takes about four minutes for each network, and 40 for all of them, on two CPUs.
The first time, podperf also builds the programs: about ten minutes for Kubernetes, and ten more for Cilium.
The networks: {titles}."""
    parser.epilog = "docs/cni-comparison.md explains the table."
    parser.add_argument("networks", nargs="*", metavar="NAME[:MODE]", help="the networks (default: all)")
    parser.add_argument(
        "--output", type=optional_path, metavar="FOLDER", help="where all results go (default: results/<start time>)"
    )


def main(options: Namespace) -> int:
    """Measure, print the table, write the page. Exit code 0 if each network could be started."""
    for each in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores SIGINT, if nobody handles it
        signal.signal(each, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        signal.signal(signal.SIGHUP, _hung_up)
    hierarchies.of_this_machine()  # before the long builds
    networks = chosen(options.networks)
    if lifecycle.running():
        raise PodperfError(lifecycle.RUNS_ALREADY)
    began, found = time.monotonic(), list[NetworkRow]()
    with results_folder(options.output) as results:
        try:
            for number, network in enumerate(networks, start=1):
                say(f"{NAME}: {network.title}, {number} of {len(networks)}")
                # Figures from before an interrupt stay.
                found.append(row := NetworkRow(network.title, reason=INTERRUPTED))
                _measure(network, results / network.title.replace(":", "-"), row)
        finally:
            if found:
                _write(found, results, time.monotonic() - began)
    return ExitCode.NOT_DONE if any(row.reason for row in found) else ExitCode.FINE


def _hung_up(*_: object) -> None:
    """Interrupt the command once: a terminal that is gone sends SIGHUP more than once."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt


def refused(way: ClusterWay, network: ClusterNetwork) -> str:
    """The reason why this network cannot be measured this way, or empty."""
    enforces = NetworkPolicies.name in network.replaces()
    return "" if enforces or "network_policies" not in way.pods else "this network enforces no NetworkPolicies"


def chosen(names: Sequence[str]) -> list[ClusterNetwork]:
    """The networks of these names, each once. All without names."""
    return list(dict.fromkeys(map(network_named, names))) or list(ALL_NETWORKS)


def _write(rows: Sequence[NetworkRow], results: Path, seconds: float) -> None:
    try:
        write_file(results / f"{NAME}.md", cni_markdown(rows))
        data = {"seconds": seconds, "networks": [row.to_json() for row in rows]}
        page = printable(str(write_report(results.resolve(), NAME, data, cni_page(rows))))
    except PodperfError:  # for example a full disk
        print(cni_text(rows, columns(sys.stdout)), flush=True)
        raise
    # Nobody may read it: the terminal may be gone.
    print(cni_text(rows, columns(sys.stdout)), page, sep="\n\n", flush=True)


def _measure(wanted: ClusterNetwork, folder: Path, row: NetworkRow) -> None:
    """Measure one network, which is up meanwhile, into its row."""
    here = LocalHost()
    try:
        programs, image = ready_programs(here, say, network=wanted), ready_image(here, say, POD).path
        began = time.monotonic()
        with ExitStack() as undo:
            state = lifecycle.up(programs, 2, [image], say, undo)
            row.ready, row.memory = time.monotonic() - began, state.memory
            with _used_by_agent(wanted, "idle", row):
                time.sleep(_IDLE)
            folder.mkdir()
            with _run(state.kubeconfig, folder) as run:
                with _used_by_agent(wanted, "under load", row):
                    for place, pods in PLACES.items():
                        row.figures[place] = searched(place, pods, run)
                _describe_network(run, row)
                for way in WAYS:
                    reason = refused(way, wanted)
                    row.shares[way.title] = HostShare(reason=reason) if reason else _compared(way, run, folder)
            row.seconds = time.monotonic() - began
        row.reason = ""
    except PodperfError as error:
        row.reason = str(error)


@contextmanager
def _used_by_agent(network: ClusterNetwork, load: str, row: NetworkRow) -> Iterator[None]:
    """Note what the network's own programs use meanwhile."""
    began, before = time.monotonic(), lifecycle.used_by(network.name)
    yield
    after = lifecycle.used_by(network.name)
    if before and after:
        cpus = (after.cpu_seconds - before.cpu_seconds) / (time.monotonic() - began)
        row.agent[load] = AgentUse(after.memory, cpus)


def topology(kubeconfig: Path) -> Mapping[str, Any]:
    """The topology of each network. topologies/kubernetes.yaml may have changes of the user."""
    return {
        "version": 1,
        "name": NAME,
        "description": "Two pods on podperf's own cluster of two nodes.",
        "tester": {"type": "kubernetes", "settings": {"kubeconfig": str(kubeconfig), "nodes": 2}},
        "traffic": {"directions": "left-to-right"},
        "method": {"search": "quick", "patience": 3},
    }


@contextmanager
def _run(kubeconfig: Path, folder: Path) -> Iterator[Run]:
    """A run on two nodes, whose records and reports are in the folder."""
    path = folder / "topology.yaml"
    path.write_text(yaml.safe_dump(topology(kubeconfig)), encoding="utf-8")
    run = Run(Session(read_topology(path), folder, Progress()))
    run.open()
    try:
        run.plan([])
        yield run
    finally:
        say(f"{NAME}: {run.close().splitlines()[-1]}")


def _describe_network(run: Run, row: NetworkRow) -> None:
    """Note the network as the cluster shows it, the MTU of frames between pods on two nodes, and their start."""
    tester = run.session.equipment.testbed.tester_with_ports().describe()
    pods, network = tester["pods"], PodNetwork.described(tester["cluster"]["network"])
    row.network, row.encapsulation_bytes = network.words, network.encapsulation_bytes
    row.mtu = pods["left"]["route_mtu"] or pods["left"]["mtu"]  # a route without an MTU has that of the interface
    row.pod_start = max(pod["start_seconds"] for pod in pods.values())


def _compared(way: ClusterWay, run: Run, folder: Path) -> HostShare:
    """The rate of pods, beside that of pods in the networks of the same nodes."""
    with _test(run, way.title) as ended:
        result = run.measure_host_share(TestIdentity(way.title, NAME, ("mrr",)), way)
        write_comparison(result, folder)
        return HostShare.of(result.to_json(), result.doubt)
    return HostShare(reason=ended.reason)


def searched(place: str, pods: Mapping[str, Any], run: Run) -> RowFigures:
    """NDR, PDR and CPU time a frame of pods, and the latency: between two nodes that of round trips."""
    found: dict[str, Measured] = {}
    with _test(run, name := f"pod to pod, {place}") as ended:
        run.begin_test(TestIdentity(name, NAME, ("ndrpdr",)), CLUSTER, SMALLEST, pods=pods)
        measurement = run.measurement
        # Round trips are last: two pods poll for them, and on a busy machine the sender is late first there.
        for measure in (measurement.ndr_and_pdr, measurement.cpu_time, measurement.latency):
            measure()
            found |= measurement.metrics
    return RowFigures(found, ended.reason)


@dataclass
class _Ended:
    reason: str = ""


@contextmanager
def _test(run: Run, name: str) -> Iterator[_Ended]:
    """One test of the run, which ends with its record. Its PodperfError becomes the `reason`."""
    ended = _Ended()
    outcome: Outcome = "interrupted"
    try:
        run.progress.test_begins(name)
        yield ended
        outcome = "passed"
    except PodperfError as error:
        ended.reason = str(error)
        outcome = "skipped" if isinstance(error, Unavailable) else "failed"
    finally:
        run.tear_down_chain()
        run.end_test(TestIdentity(name, NAME), outcome, ended.reason)
