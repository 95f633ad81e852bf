"""`podperf check TOPOLOGY`: what can be measured on this testbed and what cannot, and why, before anything is measured.

What a probe can try, it tries: kernel features are used in throw-away namespaces, and test frames cross the bare path.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from podperf.cleanup import RUN_DIRECTORY
from podperf.cpu_lists import format_cpu_list
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import left_behind
from podperf.model import Chain, FrameSize, Placement, Traffic
from podperf.pods.cni import DEFAULT_PLUGIN_DIRECTORY
from podperf.preflight import features
from podperf.preflight.finding import Finding, State
from podperf.preflight.mistakes import look_for_mistakes
from podperf.preflight.plan import plan
from podperf.preflight.plan import render as render_plan
from podperf.quietness.watch import Quietness
from podperf.testbed.isolation import refuse_shared_ports, refuse_shared_worker_ports
from podperf.testbed.placement import nic_node, place, read_cpus, remarks
from podperf.testbed.run_lock import RunLock
from podperf.testbed.testbed import Testbed
from podperf.testbed.worker_machine import session_to, worker_machine
from podperf.testers.software import TESTER_BINARY
from podperf.topology import SCHEMA_PATH, Topology, load_topology
from podperf.virtual_worker.boot import unavailable as virtual_worker_unavailable

SMALLEST = FrameSize.parse(64)


NEEDS_ROOT = "needs root"

# Command, Debian package, and whether every run needs it.
COMMANDS = (
    ("ip", "iproute2", True),
    ("ethtool", "ethtool", True),
    ("nsenter", "util-linux", True),
    ("unshare", "util-linux", True),
    ("taskset", "util-linux", True),
    ("sysctl", "procps", True),
    ("nft", "nftables", False),
    ("iptables", "iptables", False),
)


def check(path: str, host: Host | None = None, *, root: bool | None = None) -> list[Finding]:
    """Everything that can be found out about the testbed of a topology file. Nothing stays changed.

    Without `root` (by default: the rights of this process) what needs it is reported as not checked.
    """
    host = host or LocalHost()
    root = os.geteuid() == 0 if root is None else root
    findings, topology = _check_topology(path)
    findings.append(_check_rights(root))
    findings += _check_commands(host)
    findings.append(_check_tester(host))
    with ExitStack() as undo:
        reached, worker = _check_worker(topology, host, undo) if topology is not None else ([], host)
        findings += reached
        if worker is not None:
            findings += _check_machines(topology, host, worker, root)
    return findings


def _check_worker(topology: Topology, host: Host, undo: ExitStack) -> tuple[list[Finding], Host | None]:
    """Whether the worker can be reached, and the machine that it is."""
    if topology.worker.connection == "virtual":
        reason = virtual_worker_unavailable(host)
        there = Finding("worker", "virtual worker", State.OK, "the run boots it")
        lacking = Finding("worker", "virtual worker", State.MISSING, reason or "", needed=True)
        return [lacking if reason else there], None
    try:
        worker = worker_machine(topology.worker, host, undo)
    except PodperfError as error:
        where = str(topology.worker.ssh.address)
        return [Finding("worker", where, State.MISSING, str(error), needed=True)], None
    if worker is host:
        return [], host
    return [Finding("worker", worker.name, State.OK, "root is logged in over SSH, and the host key is known")], worker


def _check_machines(topology: Topology | None, host: Host, worker: Host, root: bool) -> Iterator[Finding]:
    """What needs the worker to be within reach."""
    apart = worker is not host
    if apart:
        yield from (replace(each, area="commands of the worker") for each in _check_commands(worker))
    yield from _check_kernel(worker, root or apart)
    yield from _check_plugins(worker)
    if topology is None:
        return
    findings, placement = _check_placement(topology, host, worker)
    findings.append(_check_hugepages(worker))
    if placement is not None:
        findings += look_for_mistakes(topology, placement, read_cpus(worker), worker)
        quietness = Quietness((*placement.tester, *(() if apart else placement.sut)))
        quietness.start()
        findings += _check_measuring(Testbed(topology, placement, host, worker), root)
        reason = quietness.stop().reason
        quiet = Finding("machine", "quietness", State.OK, "nothing else kept the measuring CPUs busy during this check")
        busy = Finding("machine", "quietness", State.WARNING, reason or "", "end what else runs, or expect spread")
        findings.append(busy if reason else quiet)
    yield from findings


def _check_topology(path: str) -> tuple[list[Finding], Topology | None]:
    try:
        topology = load_topology(path, DATA_PLANES)
    except PodperfError as error:
        problems = str(error).splitlines()
        return [Finding("topology", "file", State.MISSING, problem, needed=True) for problem in problems], None
    return [Finding("topology", topology.name, State.OK, topology.path)], topology


def _check_rights(root: bool) -> Finding:
    if root:
        return Finding("machine", "rights", State.OK, "root")
    return Finding("machine", "rights", State.MISSING, "not root", "use sudo", needed=True)


def _check_commands(host: Host) -> Iterator[Finding]:
    for command, package, needed in COMMANDS:
        # Debian gives /usr/sbin to root only.
        done = host.run("sh", "-c", f"PATH=$PATH:/usr/sbin:/sbin command -v {command}", check=False)
        if done.exit_code == 0:
            yield Finding("commands", command, State.OK, done.stdout.strip())
        else:
            yield Finding(
                "commands", command, State.MISSING, "not installed", f"apt-get install {package}", needed=needed
            )


def _check_tester(host: Host) -> Finding:
    if host.run("test", "-x", str(TESTER_BINARY), check=False).exit_code == 0:
        return Finding("commands", TESTER_BINARY.name, State.OK, str(TESTER_BINARY))
    remedy = "sudo ./podperf set-up"
    return Finding("commands", TESTER_BINARY.name, State.MISSING, "the tester is not built", remedy, needed=True)


def _check_kernel(host: Host, root: bool) -> Iterator[Finding]:
    for feature in features.FEATURES:
        needed = feature in {features.NAMESPACES, features.THREADED_NAPI}
        if not root:
            yield Finding("kernel", feature.name, State.UNCHECKED, NEEDS_ROOT, needed=needed)
            continue
        said = features.missing(host, feature)
        if said is None:
            yield Finding("kernel", feature.name, State.OK)
        else:
            state = State.MISSING if needed else State.SKIPPED
            yield Finding("kernel", feature.name, state, f"the kernel said: {said}", feature.remedy, needed=needed)


def _check_plugins(host: Host) -> Iterator[Finding]:
    found = host.run("ls", DEFAULT_PLUGIN_DIRECTORY, check=False).stdout.split()
    if found:
        yield Finding("commands", "CNI plug-ins", State.OK, f"{DEFAULT_PLUGIN_DIRECTORY}: {', '.join(found)}")
    else:
        remedy = "apt-get install containernetworking-plugins"
        yield Finding("commands", "CNI plug-ins", State.MISSING, f"none in {DEFAULT_PLUGIN_DIRECTORY}", remedy)


def _check_placement(topology: Topology, host: Host, worker: Host) -> tuple[list[Finding], Placement | None]:
    try:
        cpus = read_cpus(worker)
        near = nic_node(worker, topology.worker)
        placement = place(topology, cpus) if worker is host else place(topology, read_cpus(host), cpus, near)
    except PodperfError as error:
        return [Finding("machine", "placement", State.MISSING, str(error), needed=True)], None
    tester, sut, usable = map(format_cpu_list, (placement.tester, placement.sut, cpus.usable))
    where = f"of CPU {usable}, the tester has {tester} and the system under test {sut}"
    if placement.apart:
        where = (
            f"of CPU {usable} of the worker, the system under test has {sut}; of this machine, the tester has {tester}"
        )
    said = remarks(placement, cpus, len(topology.traffic.directions))
    findings = [Finding("machine", "placement", State.OK, where)]
    return findings + [Finding("machine", "placement", State.WARNING, remark) for remark in said], placement


def _check_hugepages(host: Host) -> Finding:
    words = [line.split() for line in host.get("/proc/meminfo").decode().splitlines()]
    sizes = {line[0].removesuffix(":"): line[1] for line in words if len(line) > 1}
    total, free, size = (sizes.get(key, "0") for key in ("HugePages_Total", "HugePages_Free", "Hugepagesize"))
    detail = f"{free} of {total} free, {size} kB each; the kernel-space data planes need none"
    return Finding("machine", "hugepages", State.OK, detail)


def _check_measuring(testbed: Testbed, root: bool) -> Iterator[Finding]:
    topology, host, worker = testbed.topology, testbed.host, testbed.worker_host
    if not root:
        yield Finding("measuring", "test frames", State.UNCHECKED, NEEDS_ROOT, needed=True)
        yield Finding("measuring", "data planes", State.UNCHECKED, NEEDS_ROOT, needed=True)
        return
    try:
        with RunLock():
            yield from _check_left_behind(host)
            if worker is not host:
                yield from _check_left_behind(worker)
            if topology.existing_ports:
                yield from _check_ports(topology, host, worker)
            yield from _check_bare_path(topology, testbed)
            yield from _check_data_planes(testbed)
    except PodperfError as error:  # another run has the machine
        yield Finding("measuring", "test frames", State.UNCHECKED, str(error), needed=True)


def _check_left_behind(host: Host) -> Iterator[Finding]:
    directory = not host.run("test", "-e", str(RUN_DIRECTORY), check=False).exit_code
    left = [*left_behind(host), *([str(RUN_DIRECTORY)] if directory else [])]
    if left:
        detail = f"on {host.name}, an earlier run left {', '.join(left)}"
        yield Finding("machine", "left behind", State.WARNING, detail, "sudo ./podperf clean, or the next run does it")


def _check_ports(topology: Topology, host: Host, worker: Host) -> Iterator[Finding]:
    yield from _refusals("tester ports", lambda: refuse_shared_ports(topology, host))
    if topology.worker.left is not None:
        session = session_to(worker)
        yield from _refusals("worker ports", lambda: refuse_shared_worker_ports(topology, worker, session))


def _refusals(ports: str, refuse: Callable[[], None]) -> Iterator[Finding]:
    try:
        refuse()
    except PodperfError as error:
        for line in str(error).splitlines():
            yield Finding("measuring", ports, State.MISSING, line, needed=True)
    else:
        yield Finding("measuring", ports, State.OK, "nothing else uses them")


def _check_own_ports(testbed: Testbed) -> Iterator[Finding]:
    """A tester whose ports cannot be plugged into each other: it answers, and its links are up."""
    try:
        tester = testbed.tester_with_ports().describe()
    except PodperfError as error:
        yield Finding("measuring", "tester", State.MISSING, str(error), needed=True)
        return
    finally:
        testbed.close()
    detail = f"{tester['name']} {tester['version']} at {tester['server']}"
    down = [f"the link of its {side} port is down" for side, port in tester["ports"].items() if not port["link_up"]]
    state = State.MISSING if down else State.OK
    yield Finding(
        "measuring", "tester", state, "; ".join([detail, *down]), "plug in the cable" if down else "", bool(down)
    )


def _check_bare_path(topology: Topology, testbed: Testbed) -> Iterator[Finding]:
    if topology.tester.has_ports_of_its_own:
        yield from _check_own_ports(testbed)
        return
    try:
        with testbed.bare_path(SMALLEST) as bare:
            bare.probe(Traffic(SMALLEST, topology.traffic.directions))
            tester = bare.tester.describe()
    except PodperfError as error:
        yield Finding("measuring", "test frames", State.MISSING, str(error), needed=True)
        return
    engine, why = tester["engine"], tester.get("engine_remark")
    detail = f"frames of {SMALLEST.name} crossed the bare path, engine {engine}"
    if why:
        yield Finding("measuring", "test frames", State.WARNING, f"{detail}, the slower one: {why}")
    else:
        yield Finding("measuring", "test frames", State.OK, detail)


def _check_data_planes(testbed: Testbed) -> Iterator[Finding]:
    measurable = 0
    for name, kind in DATA_PLANES.items():
        try:
            testbed.demand(Chain(name, kind.least_pods))
        except Unavailable as reason:
            yield Finding("data planes", name, State.SKIPPED, str(reason))
        else:
            measurable += kind.least_pods > 0 or testbed.topology.external
            yield Finding("data planes", name, State.OK, "measurable")
    if not measurable:
        yield Finding("data planes", "pods", State.MISSING, "no data plane with pods can be measured", needed=True)


# What the person sees.

_COLOURS = {State.OK: 32, State.MISSING: 31, State.WARNING: 33, State.SKIPPED: 33, State.UNCHECKED: 33}


def render(findings: Sequence[Finding], *, width: int | None = None, colour: bool = False) -> str:
    """The findings as a table by area, and the conclusion. With a `width`, details are wrapped to that many columns."""
    subject_width = max((len(each.subject) for each in findings), default=0)
    lines = []
    for area in dict.fromkeys(each.area for each in findings):
        lines.append(area)
        for each in findings:
            if each.area == area:
                lines += _row(each, subject_width, width, colour)
    return "\n".join([*lines, "", conclusion(findings)])


def _row(finding: Finding, subject_width: int, width: int | None, colour: bool) -> Iterable[str]:
    indent = 2 + max(map(len, State)) + 2 + subject_width + 2
    detail = finding.detail + (f" (remedy: {finding.remedy})" if finding.remedy else "")
    wrapped = textwrap.wrap(detail, max(20, width - indent), break_on_hyphens=False) if width else [detail]
    state = f"{finding.state:<{max(map(len, State))}}"
    if colour:
        state = f"\033[{_COLOURS[finding.state]}m{state}\033[0m"
    first, *others = wrapped or [""]
    yield f"  {state}  {finding.subject:<{subject_width}}  {first}".rstrip()
    for other in others:
        yield " " * indent + other


def conclusion(findings: Collection[Finding]) -> str:
    """One sentence: whether the quick run can be measured here, and if not, because of what."""
    in_the_way = [each for each in findings if each.in_the_way]
    if not in_the_way:
        return "The quick run can be measured here."
    # What is known to be missing comes first; it often is the reason why the rest could not be checked.
    causes = [each for each in in_the_way if each.state is State.MISSING] or in_the_way
    obstacles = dict.fromkeys(each.subject for each in causes)
    return f"The quick run cannot be measured here. In the way: {', '.join(obstacles)}."


def main(arguments: Sequence[str]) -> int:
    """`podperf check`: exit code 0 when the quick run can be measured, else 1. With `--plan` 0 when there is a plan."""
    parser = argparse.ArgumentParser("podperf check", description="What can be measured on a testbed, and what not.")
    parser.add_argument("topology", nargs="?", default=str(SCHEMA_PATH.parent / "local.yaml"), metavar="TOPOLOGY")
    parser.add_argument(
        "--plan",
        metavar="DATA_PLANE",
        choices=[name for name, kind in DATA_PLANES.items() if kind.least_pods],
        help="only say which commands and files would set this data plane up, without touching a host",
    )
    parser.add_argument("--pods", type=int, metavar="N", help="pods of that plan (as few as the data plane has)")
    options = parser.parse_args(arguments)
    if options.plan:
        topology = load_topology(options.topology, DATA_PLANES)
        chain = Chain(options.plan, options.pods or DATA_PLANES[options.plan].least_pods)
        cpus = read_cpus(LocalHost()) if topology.worker.connection == "local" else None
        print(render_plan(plan(topology, chain, SMALLEST, cpus)))
        return 0
    findings = check(options.topology)
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    print(render(findings, width=width, colour=terminal and "NO_COLOR" not in os.environ))
    return int(any(each.in_the_way for each in findings))
