"""The command `podperf cni-table`: what each network of podperf's own cluster costs, beside the network of its nodes.

Each step is a command of podperf that a user can call as well: `cluster up`, `compare`, `run` and `cluster down`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from podperf.cluster import lifecycle
from podperf.cluster.layout import ClusterNetwork
from podperf.cluster.parts import ALL_NETWORKS, network_named
from podperf.errors import ExitCode, PodperfError
from podperf.nearness import optional_path
from podperf.printable import printable
from podperf.records import read_records
from podperf.report.cni_page import Figures, NetworkRow, Share, cni_markdown, cni_page, cni_text
from podperf.report.files import write_file, write_report
from podperf.terminal import columns, say
from run_command.arguments import RESULTS, ROOT
from run_command.preparation import make_results_folder

NAME = "cni-table"
_NODES = ("--own", "--nodes", "2")
_ROUNDS, _TRIAL = 8, 0.5  # of each comparison; seconds


@dataclass(frozen=True)
class Way:
    """A way of frames through a cluster: the settings of the tester's pods, and of the traffic."""

    title: str
    pods: Mapping[str, Any]
    traffic: Mapping[str, Any] = field(default_factory=dict)  # keys of a comparison file


WAYS = (
    Way("pod to pod, two nodes", {"nodes": 2}),
    Way("the same, 1000 flows", {"nodes": 2}, {"flows": 1000}),
    Way("the same, IPv6, 84 B", {"nodes": 2}, {"frame": 84, "traffic": {"family": "ipv6"}}),
    Way("pod to Service, two nodes", {"nodes": 2, "destination": "service"}),
    Way("pod to pod, 100 policies", {"nodes": 2, "network_policies": 100}),
    Way("pod to pod, one node", {"nodes": 1}),
)
ROWS = {"one node": "Pod to pod on one node, 64 B", "two nodes": "Pod to pod on two nodes, 64 B"}
"""The rows of suites that give NDR, PDR and latency."""


def add_arguments(parser: ArgumentParser) -> None:
    titles = ", ".join(each.title for each in ALL_NETWORKS)
    parser.description = f"""What does each network of a cluster cost? Each one is started on podperf's own cluster of
two nodes, measured, and taken down. Each rate stands beside that of the nodes' own network.
The networks: {titles}."""
    parser.epilog = "docs/cni-comparison.md explains the table."
    parser.add_argument("networks", nargs="*", metavar="NAME[:MODE]", help="the networks (default: all)")
    parser.add_argument(
        "--output", type=optional_path, metavar="FOLDER", help="where all results go (default: results/<start time>)"
    )


def main(options: Namespace) -> int:
    """Measure, print the table, write the page. Exit code 0 if each network could be started."""
    networks = [network_named(name) for name in options.networks] or list(ALL_NETWORKS)
    if lifecycle.running():
        raise PodperfError("a cluster runs already, and this command starts its own: `podperf cluster down` ends it")
    results = options.output or RESULTS / f"{datetime.now():%Y-%m-%dT%H-%M-%S}"
    make_results_folder(results, {}, "output")
    began, found = time.monotonic(), list[NetworkRow]()
    try:
        for number, network in enumerate(networks, start=1):
            say(f"{NAME}: {network.title}, {number} of {len(networks)}")
            found.append(_measured(network, results / network.title.replace(":", "-")))
    finally:
        if found:
            _write(found, results, time.monotonic() - began)
    return ExitCode.NOT_DONE if any(row.reason for row in found) else ExitCode.FINE


def _write(rows: Sequence[NetworkRow], results: Path, seconds: float) -> None:
    print(cni_text(rows, columns(sys.stdout)), end="\n\n")
    write_file(results / f"{NAME}.md", cni_markdown(rows))
    data = {"seconds": seconds, "networks": [row.to_json() for row in rows]}
    print(printable(str(write_report(results.resolve(), NAME, data, cni_page(rows)))), flush=True)


def _measured(network: ClusterNetwork, folder: Path) -> NetworkRow:
    """One network, which is up meanwhile."""
    began = time.monotonic()
    try:
        with _cluster(network) as state:
            ready, memory = time.monotonic() - began, state.memory
            folder.mkdir()
            topologies = {nodes: _topology(folder, state.kubeconfig, nodes) for nodes in (1, 2)}
            shares = {way.title: _compared(way, topologies[2], folder / f"way-{number}") for number, way in _numbered()}
            rows = zip(ROWS.items(), topologies.values(), strict=True)
            figures = {place: _row(name, topology, folder / place) for (place, name), topology in rows}
    except PodperfError as error:
        return NetworkRow(network.title, reason=str(error))
    return NetworkRow(network.title, ready, memory, shares, figures, time.monotonic() - began)


def _numbered() -> Iterator[tuple[int, Way]]:
    return enumerate(WAYS, start=1)


@contextmanager
def _cluster(network: ClusterNetwork) -> Iterator[lifecycle.ClusterState]:
    """podperf's own cluster with this network. PodperfError if it cannot be started here."""
    # It needs the option only where the network itself enforces no policies, and can stand beside what does.
    policies = ("--network-policies",) if "network-policies" in network.takes else ()
    try:
        if _podperf("cluster", "up", *_NODES, "--network", network.title, *policies):
            raise PodperfError("the cluster did not start (see above)")
        state = lifecycle.state()
        if state is None:
            raise PodperfError("the cluster has ended")
        yield state
    finally:
        _podperf("cluster", "down")


def _topology(folder: Path, kubeconfig: Path, nodes: int) -> Path:
    content = yaml.safe_load((ROOT / "topologies" / "kubernetes.yaml").read_text(encoding="utf-8"))
    content["tester"]["settings"] |= {"kubeconfig": str(kubeconfig), "nodes": nodes}
    path = folder / f"nodes-{nodes}.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def comparison_of(way: Way) -> str:
    """The comparison file of pods beside pods in the networks of the same nodes."""
    content = {
        "version": 1,
        "name": "pods",
        "description": f"{way.title}, beside the network of the nodes.",
        "rounds": _ROUNDS,
        "trial_seconds": _TRIAL,
        "chain": {"data_plane": "external", "pods": 0},
        **way.traffic,
        "variants": [
            {"name": "host network", "tester": {"nodes": 2, "host_network": True}},
            {"name": "pods", "tester": dict(way.pods)},
        ],
    }
    return yaml.safe_dump(content, sort_keys=False)


def _compared(way: Way, topology: Path, folder: Path) -> Share:
    path = folder.with_suffix(".yaml")
    path.write_text(comparison_of(way), encoding="utf-8")
    _podperf("compare", str(path), str(topology), "--output", str(folder))
    try:
        return Share.of(json.loads((folder / "comparison-pods.json").read_text(encoding="utf-8")))
    except OSError:
        return Share(reason=_reason(folder))


def _row(name: str, topology: Path, folder: Path) -> Figures:
    """The figures of one row of a suite."""
    _podperf("run", str(topology), "--test", name, "--outputdir", str(folder))
    records, _ = read_records(folder / "records", trials=False)
    for record in records:
        if record.test.name == name and record.outcome != "skipped":
            return Figures({metric: figure.value for metric, figure in record.figures.items()})
    return Figures(reason=_reason(folder))


def _reason(folder: Path) -> str:
    """The reason in the records of a folder why nothing was measured."""
    records, _ = read_records(folder / "records", trials=False)
    reasons = [record.reason for record in records if record.reason]
    return reasons[0] if reasons else "it ended without a record"


def _podperf(*arguments: str) -> int:
    """Run a command of podperf, which tells its progress itself. Returns its exit code."""
    return subprocess.run([ROOT / "podperf", "--no-install", *arguments], check=False).returncode
