"""The command `podperf check`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence

from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling
from podperf.hosts.local import LocalHost
from podperf.kernel.cpus import read_cpus
from podperf.model import Chain, FrameSize
from podperf.preflight.checks import check
from podperf.preflight.plan import plan
from podperf.preflight.plan import render as render_plan
from podperf.preflight.table import render
from podperf.testbed.scenarios import SCENARIOS
from podperf.topology import SCHEMA_PATH, load_topology

SMALLEST = FrameSize.parse(64)


def main(arguments: Sequence[str]) -> int:
    """`podperf check`: exit code 0 when the quick run can be measured, else 1. With `--plan` 0 when there is a plan."""
    parser = argparse.ArgumentParser("podperf check", description="What can be measured on a testbed, and what not.")
    parser.add_argument("topology", nargs="?", default=str(SCHEMA_PATH.parent / "local.yaml"), metavar="TOPOLOGY")
    parser.add_argument(
        "--plan",
        metavar="DATA_PLANE",
        choices=[*DATA_PLANES],
        help="only say which commands and files would set this data plane up, without touching a host",
    )
    parser.add_argument("--pods", type=int, metavar="N", help="pods of that plan (as few as the data plane can have)")
    parser.add_argument(
        "--frame", type=_frame, metavar="SIZE", help="the largest frame size of that plan, or IMIX (64)"
    )
    parser.add_argument("--forwarder", metavar="NAME", help="what moves frames within the pods of that plan")
    parser.add_argument(
        "--scenario", choices=[*SCENARIOS], metavar="NAME", help=f"a placement of that plan: {', '.join(SCENARIOS)}"
    )
    options = parser.parse_args(arguments)
    if options.pods is not None and options.pods < 0:
        parser.error("--pods is a number of pods")
    for option in ("pods", "frame", "forwarder", "scenario"):
        if getattr(options, option) is not None and not options.plan:
            parser.error(f"--{option} is that of a --plan")
    if options.plan:
        topology = load_topology(options.topology, DATA_PLANES)
        kind = DATA_PLANES[options.plan]
        as_asked = options.pods is not None and kind.cabling is Cabling.WORKER
        chain = Chain(options.plan, options.pods if as_asked else kind.least_pods, options.forwarder)
        cpus = read_cpus(LocalHost()) if topology.worker.connection == "local" else None
        scenario = SCENARIOS[options.scenario] if options.scenario else None
        print(render_plan(plan(topology, chain, options.frame or SMALLEST, cpus, scenario)))
        return 0
    findings = check(options.topology)
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    print(render(findings, width=width, colour=terminal and "NO_COLOR" not in os.environ))
    return int(any(each.in_the_way for each in findings))


def _frame(text: str) -> FrameSize:
    try:
        return FrameSize.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
