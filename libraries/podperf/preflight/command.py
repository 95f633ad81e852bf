"""The command `podperf check`."""

from __future__ import annotations

import sys
import textwrap
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Collection, Iterable, Sequence

import yaml

from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling
from podperf.dataplanes.wire import External
from podperf.errors import BadArguments, ExitCode, PodperfError
from podperf.hosts.local import LocalHost
from podperf.kernel.cpus import read_cpus
from podperf.kubernetes.settings import KubernetesSettings, pods_of_tester
from podperf.kubernetes.tester_objects import planned
from podperf.model import CABLE, Chain, End, Ends, FrameSize
from podperf.nearness import proposal
from podperf.observation import Observation, State
from podperf.preflight.checks import check
from podperf.preflight.plan import plan, refuse_unknown_ports
from podperf.preflight.plan import render as render_plan
from podperf.printable import printable
from podperf.terminal import columns, say, wants_colour
from podperf.testbed.access import read_topology
from podperf.testbed.joins import JOINS
from podperf.testbed.scenarios import PLACEMENTS
from podperf.topology import SCHEMA_PATH

SMALLEST = FrameSize.parse(64)
ALL = "all"


def add_arguments(parser: ArgumentParser) -> None:
    parser.description = "What can be measured on a testbed, and what not."
    parser.add_argument("topology", nargs="?", default="", metavar="TOPOLOGY")
    parser.add_argument(
        "--plan",
        metavar="DATA_PLANE",
        help=f"only say which commands and files would set this data plane ({ALL}: each) up, without touching a host",
    )
    parser.add_argument("--pods", type=int, metavar="N", help="pods of that plan (as few as the data plane can have)")
    parser.add_argument("--workers", type=int, metavar="N", help="workers along which that plan divides its pods (1)")
    parser.add_argument("--join", choices=[*JOINS], help=f"what joins these workers ({CABLE})")
    for side in ("left", "right"):
        parser.add_argument(f"--{side}-end", type=End, choices=[*End], help=f"the {side} end of that plan ({End.PORT})")
    parser.add_argument(
        "--frame", type=_frame, metavar="SIZE", help="the largest frame size of that plan, or IMIX (64)"
    )
    parser.add_argument("--forwarder", metavar="NAME", help="the program that forwards in the pods of that plan")
    named = ", ".join(PLACEMENTS).replace("%", "%%")
    parser.add_argument("--scenario", choices=[*PLACEMENTS], metavar="NAME", help=f"a placement of that plan: {named}")


def main(options: Namespace) -> int:
    """`podperf check`. Exit code 0 if the quick run can be measured, or with `--plan` if there is a plan."""
    options.topology = options.topology.strip() or str(SCHEMA_PATH.parent / "local.yaml")
    if options.pods is not None and options.pods < 0:
        raise BadArguments("--pods is a number of pods")
    if options.workers is not None and options.workers < 1:
        raise BadArguments("--workers is a number of workers")
    for option in ("pods", "workers", "join", "left_end", "right_end", "frame", "forwarder", "scenario"):
        if getattr(options, option) is not None and not options.plan:
            raise BadArguments(f"--{option.replace('_', '-')} is that of a --plan")
    if options.plan:
        return _show_plans(options)
    observations = check(options.topology)
    width = columns(sys.stdout) if sys.stdout.isatty() else None
    print(render(observations, width=width, colour=wants_colour(sys.stdout)))
    return ExitCode.NOT_DONE if any(observation.in_the_way for observation in observations) else ExitCode.FINE


def _show_plans(options: Namespace) -> int:
    """Exit code 0 if there is a plan. Raises PodperfError with the reason if the only requested plan is impossible."""
    topology = read_topology(options.topology)
    if options.plan not in {ALL, *DATA_PLANES}:
        names = ", ".join([ALL, *DATA_PLANES])
        raise PodperfError(f"--plan: found {options.plan!r}; allowed: {names}{proposal(options.plan, DATA_PLANES)}")
    for line in topology.outdated:
        say(line)
    if (pods := pods_of_tester(topology)) is not None:
        return _show_manifests(pods, options.plan)
    cpus = read_cpus(LocalHost()) if topology.workers[0].connection == "local" else None
    scenario = PLACEMENTS[options.scenario] if options.scenario else None

    def shown(data_plane: str) -> str:
        kind = DATA_PLANES[data_plane]
        as_asked = options.pods is not None and kind.cabling is Cabling.WORKER
        workers = options.workers or 1
        ends = Ends(options.left_end or End.PORT, options.right_end or End.PORT)
        least = 0 if ends.in_pods else workers * kind.least_pods
        pods = options.pods if as_asked else least
        chain = Chain(data_plane, pods, options.forwarder, workers, join=options.join or CABLE, ends=ends)
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
    return ExitCode.FINE if planned else ExitCode.NOT_DONE


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
        raise ArgumentTypeError(str(error)) from error


_LONGEST_SUBJECT = 120  # characters
_COLOURS = {State.OK: 32, State.MISSING: 31, State.WRONG: 31, State.WARNING: 33, State.SKIPPED: 33, State.UNCHECKED: 33}


def render(observations: Sequence[Observation], *, width: int | None = None, colour: bool = False) -> str:
    """The observations as a table by area, and the conclusion. Details are wrapped to `width` columns."""
    subject_width = max((len(_subject(observation)) for observation in observations), default=0)
    lines = []
    for area in dict.fromkeys(observation.area for observation in observations):
        lines.append(area)
        for observation in observations:
            if observation.area == area:
                lines += _row(observation, subject_width, width, colour)
    return "\n".join([*lines, "", conclusion(observations)])


def _row(observation: Observation, subject_width: int, width: int | None, colour: bool) -> Iterable[str]:
    indent = 2 + max(map(len, State)) + 2 + subject_width + 2
    detail = printable(observation.detail + (f" (remedy: {observation.remedy})" if observation.remedy else ""))
    wrapped = textwrap.wrap(detail, max(20, width - indent), break_on_hyphens=False) if width else [detail]
    state = f"{observation.state:<{max(map(len, State))}}"
    if colour:
        state = f"\033[{_COLOURS[observation.state]}m{state}\033[0m"
    first, *others = wrapped or [""]
    yield f"  {state}  {_subject(observation):<{subject_width}}  {first}".rstrip()
    for other in others:
        yield " " * indent + other


def _subject(observation: Observation) -> str:
    """The subject in one line. It can be a name that a machine or a cluster tells."""
    return printable(textwrap.shorten(observation.subject, _LONGEST_SUBJECT, placeholder=" …"))


def conclusion(observations: Collection[Observation]) -> str:
    """One sentence that says whether the quick run can be measured here. If not, it names the obstacles."""
    in_the_way = [observation for observation in observations if observation.in_the_way]
    if not in_the_way:
        return "The quick run can be measured here."
    # If something is known to be wrong, only that is named. It often is the reason why other things are not checked.
    causes = [each for each in in_the_way if each.state is not State.UNCHECKED] or in_the_way
    obstacles = dict.fromkeys(map(_subject, causes))
    return f"The quick run cannot be measured here. In the way: {', '.join(obstacles)}."
