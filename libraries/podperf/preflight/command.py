"""The command `podperf check`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence

import yaml

from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling
from podperf.dataplanes.external import External
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.kernel.cpus import read_cpus
from podperf.model import Chain, FrameSize
from podperf.nearness import proposal
from podperf.preflight.checks import check
from podperf.preflight.plan import plan, refuse_unknown_ports
from podperf.preflight.plan import render as render_plan
from podperf.preflight.table import render
from podperf.testbed.known_topology import read_topology
from podperf.testbed.scenarios import SCENARIOS
from podperf.testers.kubernetes_plan import planned
from podperf.testers.kubernetes_settings import KubernetesSettings
from podperf.topology import SCHEMA_PATH
from podperf.verdicts.placement_claims import SCENARIOS_OF_CLAIMS

SMALLEST = FrameSize.parse(64)
ALL = "all"
_SCENARIOS = {**SCENARIOS, **SCENARIOS_OF_CLAIMS}


def main(arguments: Sequence[str]) -> int:
    """`podperf check`. Exit code 0 if the quick run can be measured, or with `--plan` if there is a plan. Else 1."""
    parser = argparse.ArgumentParser("podperf check", description="What can be measured on a testbed, and what not.")
    parser.add_argument("topology", nargs="?", default=str(SCHEMA_PATH.parent / "local.yaml"), metavar="TOPOLOGY")
    parser.add_argument(
        "--plan",
        metavar="DATA_PLANE",
        help=f"only say which commands and files would set this data plane ({ALL}: each) up, without touching a host",
    )
    parser.add_argument("--pods", type=int, metavar="N", help="pods of that plan (as few as the data plane can have)")
    parser.add_argument("--workers", type=int, metavar="N", help="workers along which that plan divides its pods (1)")
    parser.add_argument(
        "--frame", type=_frame, metavar="SIZE", help="the largest frame size of that plan, or IMIX (64)"
    )
    parser.add_argument("--forwarder", metavar="NAME", help="the program that forwards in the pods of that plan")
    named = ", ".join(_SCENARIOS).replace("%", "%%")
    parser.add_argument("--scenario", choices=[*_SCENARIOS], metavar="NAME", help=f"a placement of that plan: {named}")
    options = parser.parse_args(arguments)
    if options.pods is not None and options.pods < 0:
        parser.error("--pods is a number of pods")
    if options.workers is not None and options.workers < 1:
        parser.error("--workers is a number of workers")
    for option in ("pods", "workers", "frame", "forwarder", "scenario"):
        if getattr(options, option) is not None and not options.plan:
            parser.error(f"--{option} is that of a --plan")
    if options.plan:
        return _show_plans(options)
    observations = check(options.topology)
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    print(render(observations, width=width, colour=terminal and "NO_COLOR" not in os.environ))
    return int(any(each.in_the_way for each in observations))


def _show_plans(options: argparse.Namespace) -> int:
    """Exit code 0 if there is a plan. Raises PodperfError with the reason if the only requested plan is impossible."""
    topology = read_topology(options.topology)
    if options.plan not in {ALL, *DATA_PLANES}:
        names = ", ".join([ALL, *DATA_PLANES])
        raise PodperfError(f"--plan: found {options.plan!r}; allowed: {names}{proposal(options.plan, DATA_PLANES)}")
    for line in topology.outdated:
        print(f"podperf: {line}", file=sys.stderr)
    if isinstance(topology.tester.kind, KubernetesSettings):
        return _show_manifests(topology.tester.kind, options.plan)
    cpus = read_cpus(LocalHost()) if topology.workers[0].connection == "local" else None
    scenario = _SCENARIOS[options.scenario] if options.scenario else None

    def shown(data_plane: str) -> str:
        kind = DATA_PLANES[data_plane]
        as_asked = options.pods is not None and kind.cabling is Cabling.WORKER
        workers = options.workers or 1
        chain = Chain(data_plane, options.pods if as_asked else workers * kind.least_pods, options.forwarder, workers)
        return render_plan(plan(topology, chain, options.frame or SMALLEST, cpus, scenario))

    if options.plan != ALL:
        print(shown(options.plan))
        return 0
    refuse_unknown_ports(topology)
    planned = 0
    for name in DATA_PLANES:
        try:
            text = shown(name)
            planned += 1
        except PodperfError as reason:
            text = f"no plan: {' '.join(str(reason).split())}"
        print(f"=== {name}\n\n{text}\n")
    return int(not planned)


def _show_manifests(settings: KubernetesSettings, data_plane: str) -> int:
    """Show the objects that a run would make in a cluster. No cluster is asked."""
    if data_plane not in {ALL, External.name}:
        raise PodperfError(f"the tester's ports are pods of a cluster: only {External.name} is measured between them")
    print(yaml.safe_dump_all(planned(settings), sort_keys=False), end="")
    return 0


def _frame(text: str) -> FrameSize:
    try:
        return FrameSize.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
