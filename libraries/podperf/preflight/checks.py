"""Checks a testbed before a measurement: which tests can run there, which cannot, and why.

The checks try things out: they use kernel features in temporary namespaces, and send test frames across the bare path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from podperf.cpu_lists import format_cpu_list
from podperf.environment import take_password
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.linux import module_as_before, path_of
from podperf.hosts.local import LocalHost
from podperf.kernel import hugepages
from podperf.kernel.cpus import read_cpus
from podperf.kubernetes.checks import check_cluster, check_pods
from podperf.kubernetes.pods import clusters_named_in
from podperf.kubernetes.settings import in_pods_alone
from podperf.methods.application_tools import TOOLS
from podperf.model import PageSize, Placement
from podperf.observation import NEEDS_ROOT, Observation, State, of_worker
from podperf.pods import runtime_of
from podperf.pods.cni import PLUGIN_DIRECTORY
from podperf.preflight.counted import check_counted
from podperf.preflight.measuring import check_bare_path, check_measuring
from podperf.preflight.mistakes import look_for_mistakes
from podperf.quietness.watch import watch
from podperf.testbed.access import behind_ssh, lock, log_in, read_topology
from podperf.testbed.placement import nic_node, place, remarks
from podperf.testbed.run_lock import CHECK
from podperf.testbed.testbed import Testbed
from podperf.testers.software import TESTER_BINARY
from podperf.topology import Topology
from podperf.virtual_worker.boot import unavailable as virtual_worker_unavailable

_VETH = "ip link add name left type veth peer name right"


@dataclass(frozen=True)
class Feature:
    """One feature that a kernel may have. `script`, run by root, succeeds if the kernel has it.

    It runs in namespaces that end with its process. So it leaves nothing behind.
    """

    name: str
    script: str
    remedy: str
    isolation: tuple[str, ...] = ("unshare", "--net")
    module: str | None = None  # the probe may load this module, which would stay loaded


NAMESPACES = Feature("network namespaces, veth pairs", _VETH, "a kernel with CONFIG_NET_NS and CONFIG_VETH")
THREADED_NAPI = Feature(
    "threaded NAPI on veth",
    f"mount -t sysfs sysfs /sys; {_VETH}; ip link set left up; ethtool -K left gro on;"
    " echo 1 >/sys/class/net/left/threaded",
    "Linux 5.12 or newer, and ethtool",
    ("unshare", "--net", "--mount"),
)
FEATURES = (
    NAMESPACES,
    THREADED_NAPI,
    Feature("bridge", "ip link add name bridge type bridge", "modprobe bridge"),
    Feature(
        "nftables with NAT",
        "nft 'table ip t { chain c { type nat hook postrouting priority 100; masquerade; }; }'",
        "modprobe nft_masq, and the package nftables",
    ),
    Feature("macvlan", f"{_VETH}; ip link add link left name m type macvlan mode bridge", "modprobe macvlan"),
    Feature("ipvlan", f"{_VETH}; ip link add link left name i type ipvlan mode l2", "modprobe ipvlan"),
    Feature(
        "ipip",
        "ip link add ipip type ipip remote 10.254.255.2",
        "modprobe ipip",
        module="ipip",  # this module makes an interface in every namespace
    ),
    Feature(
        "openvswitch datapath",
        "genl ctrl get name ovs_datapath",
        "modprobe openvswitch",
        module="openvswitch",
    ),
)


def missing_feature(host: Host, feature: Feature) -> str | None:
    """The kernel's error for this feature, or None if the kernel has the feature. Needs root."""
    with module_as_before(host, feature.module) if feature.module else nullcontext():
        done = host.do(*feature.isolation, "--", "sh", "-ec", feature.script, check=False)
    if done.exit_code == 0:
        return None
    return " ".join((done.stderr or done.stdout).split()) or f"exit code {done.exit_code}"


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


def check(path: str, host: Host | None = None, *, root: bool | None = None) -> list[Observation]:
    """All observations about the testbed of a topology file. Nothing stays changed.

    If the file cannot be used, only its problems: checks would describe another testbed.
    Without `root` (by default: the rights of this process), checks that need root are reported as not checked.
    """
    take_password()
    host = host or LocalHost()
    root = os.geteuid() == 0 if root is None else root
    observations, topology = _check_topology(path)
    if topology is None:
        return observations
    with ExitStack() as undo:
        if in_pods_alone(topology):
            return [*observations, *_check_pods_of_tester(topology, host, undo)]
        observations.append(_check_rights(root))
        observations += _check_commands(host)
        observations.append(_check_tester(host))
        if not topology.existing_ports:
            observations += _check_tools(host)
        observations += _check_there(topology, host, root, undo)
    return observations


def _check_pods_of_tester(topology: Topology, host: Host, undo: ExitStack) -> Iterator[Observation]:
    """The checks of a cluster, in which nothing of this machine has a part."""
    for cluster in clusters_named_in(topology):
        yield from check_cluster(cluster)
    testbed = Testbed.on(topology, host, [host] * len(topology.workers))
    undo.callback(testbed.close)
    yield from check_bare_path(topology, testbed)


def _check_there(topology: Topology, host: Host, root: bool, undo: ExitStack) -> Iterator[Observation]:
    if topology.counts_instructions:
        yield from check_counted(topology, host, root, undo)
        return
    reached, machines = _reach(topology, host, undo)
    yield from reached
    if machines is None:
        return
    try:
        for there in behind_ssh(machines):
            lock(there, undo, CHECK)
    except PodperfError as error:  # checks would disturb the trials of the run that has the machine
        yield Observation("measuring", "other machines", State.UNCHECKED, str(error), needed=True)
        return
    tester, *workers = machines
    clusters = [*clusters_named_in(topology)]
    for cluster in clusters:
        yield from check_cluster(cluster)
    for login in {(each.kubeconfig, each.context) for each in clusters} or {(None, None)}:
        yield from check_pods(*login)
    if tester is not host and tester not in workers:
        yield from (replace(check_command, area="commands of the tester") for check_command in _check_commands(tester))
    placements = []
    for settings, machine in zip(topology.workers, workers, strict=True):
        alone = replace(topology, workers=(settings,))
        observations, placement = _check_worker(alone, tester, machine, host, root)
        yield from of_worker(topology, settings, observations)
        placements.append(placement)
    if None not in placements:
        yield from _check_testbed(topology, tester, workers, root, undo)


def _check_worker(
    alone: Topology, tester: Host, worker: Host, here: Host, root: bool
) -> tuple[list[Observation], Placement | None]:
    """The checks of one worker, and its CPUs. `alone` is the topology with only this worker."""
    commands = _check_commands(worker) if worker is not here else ()
    observations = [replace(command, area="commands of the worker") for command in commands]
    observations += _check_machine(worker, root or worker is not here)
    placed, placement = _check_placement(alone, tester, worker)
    observations += [*placed, _check_hugepages(worker), _check_pods(alone, worker)]
    if placement is not None:
        observations += look_for_mistakes(alone, placement, read_cpus(worker), worker)
    return observations, placement


def _reach(topology: Topology, host: Host, undo: ExitStack) -> tuple[list[Observation], Sequence[Host] | None]:
    """Whether tester and workers can be reached, and their machines, the tester's first."""
    if topology.virtual:
        reason = virtual_worker_unavailable(host)
        there = Observation("worker", "virtual worker", State.OK, "the run boots it")
        lacking = Observation("worker", "virtual worker", State.MISSING, reason or "", needed=True)
        return [lacking if reason else there], None
    observations: list[Observation] = []
    machines: list[Host] = []
    workers = () if topology.one_machine else topology.workers
    parts = {"tester": topology.tester.ssh} | {worker.key: worker.ssh for worker in workers}
    for part, ssh in parts.items():
        try:
            machine = log_in(part, ssh, host, undo)
        except PodperfError as error:
            observations.append(Observation(part, str(ssh.address), State.MISSING, str(error), needed=True))
            continue
        machines.append(machine)
        if machine is not host:
            said = "root is logged in over SSH, and the host key is known"
            observations.append(Observation(part, machine.name, State.OK, said))
    if len(machines) < len(parts):
        return observations, None
    return observations, machines * (1 + len(topology.workers)) if topology.one_machine else machines


def _check_machine(worker: Host, root: bool) -> Iterator[Observation]:
    yield from _check_kernel(worker, root)
    yield from _check_plugins(worker)


def _check_testbed(
    topology: Topology, tester: Host, workers: Sequence[Host], root: bool, undo: ExitStack
) -> Iterator[Observation]:
    testbed = Testbed.on(topology, tester, workers)
    undo.callback(testbed.close)
    sut = [cpu for worker in testbed.workers if worker.host is tester for cpu in worker.placement.sut]
    quietness = watch(tester, sut=sut, tester=testbed.tester_cpus, black_box=topology.black_box, undo=undo)
    quietness.start()
    yield from check_measuring(testbed, root)
    reason = quietness.stop().reason
    quiet = Observation("machine", "quietness", State.OK, "nothing else kept the measuring CPUs busy during this check")
    remedy = "end other programs, or expect spread"
    if topology.external:
        remedy += "; if a program is a part of the black box, name it in `black_box.programs` of the topology"
    busy = Observation("machine", "quietness", State.WARNING, reason or "", remedy)
    yield busy if reason else quiet


def _check_topology(path: str) -> tuple[list[Observation], Topology | None]:
    try:
        topology = read_topology(path)
    except PodperfError as error:
        state = State.WRONG if Path(path).exists() else State.MISSING
        return [Observation("topology", "file", state, each, needed=True) for each in str(error).splitlines()], None
    old_keys = [Observation("topology", "file", State.WARNING, each) for each in topology.outdated]
    return [Observation("topology", topology.name, State.OK, topology.path), *old_keys], topology


def _check_rights(root: bool) -> Observation:
    if root:
        return Observation("machine", "rights", State.OK, "root")
    return Observation("machine", "rights", State.MISSING, "not root", "use sudo", needed=True)


def _check_commands(host: Host) -> Iterator[Observation]:
    for command, package, needed in COMMANDS:
        if (path := path_of(host, command)) is not None:
            yield Observation("commands", command, State.OK, path)
        else:
            yield Observation(
                "commands", command, State.MISSING, "not installed", f"apt-get install {package}", needed=needed
            )


def _check_tester(host: Host) -> Observation:
    if host.ask("test", "-x", str(TESTER_BINARY), check=False).exit_code == 0:
        return Observation("commands", TESTER_BINARY.name, State.OK, str(TESTER_BINARY))
    remedy = "sudo ./podperf set-up"
    return Observation("commands", TESTER_BINARY.name, State.MISSING, "the tester is not built", remedy, needed=True)


def _check_tools(host: Host) -> Iterator[Observation]:
    """The tools of application traffic, which no other test needs."""
    for tool in TOOLS:
        if tool.missing(host) is None:
            yield Observation("commands", tool.name, State.OK, "for application traffic")
        else:
            detail = "not installed; only application traffic needs it"
            yield Observation("commands", tool.name, State.SKIPPED, detail, tool.remedy)


def _check_kernel(host: Host, root: bool) -> Iterator[Observation]:
    for feature in FEATURES:
        needed = feature in {NAMESPACES, THREADED_NAPI}
        if not root:
            yield Observation("kernel", feature.name, State.UNCHECKED, NEEDS_ROOT, needed=needed)
            continue
        said = missing_feature(host, feature)
        if said is None:
            yield Observation("kernel", feature.name, State.OK)
        else:
            state = State.MISSING if needed else State.SKIPPED
            yield Observation("kernel", feature.name, state, f"the kernel said: {said}", feature.remedy, needed=needed)


def _check_plugins(host: Host) -> Iterator[Observation]:
    found = host.ask("ls", PLUGIN_DIRECTORY, check=False).stdout.split()
    if found:
        yield Observation("commands", "CNI plug-ins", State.OK, f"{PLUGIN_DIRECTORY}: {', '.join(found)}")
    else:
        remedy = "apt-get install containernetworking-plugins"
        yield Observation("commands", "CNI plug-ins", State.MISSING, f"none in {PLUGIN_DIRECTORY}", remedy)


def _check_placement(topology: Topology, host: Host, worker: Host) -> tuple[list[Observation], Placement | None]:
    try:
        cpus = read_cpus(worker)
        (settings,) = topology.workers
        near = nic_node(worker, settings)
        placement = place(topology, cpus) if worker is host else place(topology, read_cpus(host), cpus, near)
    except PodperfError as error:
        return [Observation("machine", "placement", State.MISSING, str(error), needed=True)], None
    tester, sut, usable = map(format_cpu_list, (placement.tester, placement.sut, cpus.usable))
    where = f"of CPU {usable}, the tester has {tester} and the system under test {sut}"
    if placement.apart:
        where = (
            f"of CPU {usable} of the worker, the system under test has {sut}; of {host.name}, the tester has {tester}"
        )
    said = remarks(placement, cpus, len(topology.traffic.directions))
    observations = [Observation("machine", "placement", State.OK, where)]
    return observations + [Observation("machine", "placement", State.WARNING, remark) for remark in said], placement


def _check_pods(topology: Topology, worker: Host) -> Observation:
    with closing(runtime_of(topology.pods)) as runtime:
        reason = runtime.unavailable(worker)
    state = State.OK if reason is None else State.MISSING
    return Observation("worker", f"pods: {topology.pods.runtime}", state, reason or "", needed=True)


def _check_hugepages(host: Host) -> Observation:
    """The hugepages of 2 MiB, which chains have as a rule, also if the kernel's default size is another one."""
    if not hugepages.offered(host):
        return Observation("machine", "hugepages", State.WARNING, "this kernel has none, or lets nobody reserve them")
    each_node = ", ".join(f"{free} of {total} on node {node}" for node, (free, total) in hugepages.free(host).items())
    detail = f"of {PageSize.TWO_MIB.value} MiB, free are {each_node}; more are reserved while they are needed"
    return Observation("machine", "hugepages", State.OK, detail)
