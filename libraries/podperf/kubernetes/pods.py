"""The pod runtime of a Kubernetes cluster: the pods of a chain are pods of the cluster, and their node is the worker.

The cluster starts the containers and gives them their CPUs and their memory. podperf, or Multus, gives them their
interfaces, in the network of the worker, by the same CNI plug-ins as pods of other runtimes. So no network of the
cluster changes. A program of a pod is the program of its container (container_program.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from podperf.allocation import UNLIMITED, PodLimits
from podperf.errors import PodperfError, Unavailable, understood
from podperf.hosts.base import ASSUMED_NUMBERS, Host, Process, shell_script
from podperf.hosts.namespaces import NetworkNamespace, name_namespace
from podperf.kernel import pci
from podperf.kernel.sriov import PhysicalFunction
from podperf.kubernetes.api import Api, log_in
from podperf.kubernetes.chain_pods import ChainPod, ChainPods, ClusterRun, PlannedRun, StartedPod, WantedFunction
from podperf.kubernetes.container_program import make_pipes, start_program, within
from podperf.kubernetes.multus import interface_of, wanted_network
from podperf.kubernetes.running_pods import PodPlacement
from podperf.kubernetes.settings import CHAIN_SCHEMA, ChainSettings, ClusterSettings
from podperf.model import PageSize
from podperf.pods import runtime_of
from podperf.pods.base import Attachment, PodProgram, PodRuntime, RuntimeOfTestbed
from podperf.pods.networks import NetworkedPod, PodNetworks
from podperf.topology import Topology

_FIRST_PROCESS = shell_script("first_process.sh", beside=__file__)
# $1: the numbers of containers, one a line. Each is in the path of its control group. Many processes can end meanwhile.
_PROCESSES = 'grep -lsF -e "$1" /proc/[0-9]*/cgroup'
# Waits until process $1 has the command line $2, whose words have no spaces.
_HAS_BECOME = 'until [ "$(tr "\\0" " " </proc/"$1"/cmdline)" = "$2 " ]; do sleep 0.02; done'
_BECOMES_IN = 10  # seconds
_NO_FUNCTIONS = (
    "programs in pods of Kubernetes drive virtual functions that a device plug-in of the cluster gives: name the "
    "resources with those of the worker's ports in pods.settings.virtual_functions of the topology"
)


_Start = Callable[[Sequence[str], ExitStack], Process]
"""Lets the container of a pod become a program."""


class KubernetesPod(NetworkedPod):
    """A pod of a cluster, whose network is a network namespace of the worker, too."""

    def __init__(self, name: str, host: NetworkNamespace, started: StartedPod, start: _Start) -> None:
        super().__init__(name, host)
        self.started, self._start = started, start
        self.functions: Sequence[str] = ()  # the PCI addresses of the virtual functions that the cluster gave to it

    def start_application(self, command: Sequence[str], undo: ExitStack) -> Process:
        return self._start(command, undo)


class KubernetesPods(PodRuntime):
    """A pod runtime whose pods a cluster runs."""

    settings_schema = CHAIN_SCHEMA

    def __init__(
        self,
        machine: Host,
        worker: NetworkNamespace,
        settings: ChainSettings,
        run: Callable[[Host], ChainPods],
        version: Callable[[], str],
        program: PodProgram | None = None,
        containers: set[str] | None = None,
    ) -> None:
        """`run(machine)` has the pods of the run. `version` tells that of the cluster. The pods have this `program`.

        `containers` has the numbers (IDs) of the containers that now run.
        """
        self._containers = set[str]() if containers is None else containers
        self._machine, self._worker, self._settings = machine, worker, settings
        self._networks = PodNetworks(machine, worker)
        self._run, self._version, self._program = run, version, program
        self._pods: list[KubernetesPod] = []
        self._with_functions: dict[str, KubernetesPod] = {}  # that run, and that nobody has asked for yet
        self._ending: list[str] = []
        self._names = ExitStack()

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return None  # KubernetesRuntime knows the cluster

    @staticmethod
    def within(command: Sequence[str]) -> tuple[str, Sequence[str]] | None:
        return within(command)

    @classmethod
    def of_testbed(cls, settings: Mapping[str, Any]) -> RuntimeOfTestbed:
        return KubernetesRuntime(ChainSettings.read(settings))

    def give_functions(
        self, ports: Mapping[str, Sequence[PhysicalFunction]], undo: ExitStack
    ) -> Mapping[str, Sequence[str]] | None:
        resources = self._settings.functions
        if resources is None:
            return None
        given = {}
        for name, of_pod in ports.items():
            wanted = [WantedFunction(port.address, resources[port.side % 2]) for port in of_pod]
            pod = self._start(ChainPod(name, self._program, functions=wanted), undo)
            if self._program is not None:
                self._demand_user_space(pod.functions, wanted)
            given[name] = pod.functions
            self._with_functions[name] = pod
            undo.callback(self._with_functions.pop, name, None)
        return given

    def start(
        self, name: str, attachments: Sequence[Attachment], undo: ExitStack, limits: PodLimits = UNLIMITED
    ) -> KubernetesPod:
        by_multus = self._settings.attached_by == "multus"
        networks = [wanted_network(each, self._worker) for each in attachments] if by_multus else []
        pod = self._with_functions.pop(name, None)
        if pod is not None and networks:
            raise Unavailable(
                "Multus attaches interfaces before a pod runs, and podperf learns only then which virtual functions "
                f"the cluster gave: {self._settings.key}.attached_by: podperf attaches them later"
            )
        if pod is None:
            pod = self._start(ChainPod(name, self._program, networks), undo)
        if not by_multus:
            self._networks.attach(pod, attachments, undo)
            return pod
        attached = self._run(self._machine).attached(pod.started.name)
        for attachment, network in zip(attachments, networks, strict=True):
            self._networks.has(pod, attachment, interface_of(network, attached, pod.host, self._worker), undo)
        return pod

    def _start(self, wanted: ChainPod, undo: ExitStack) -> KubernetesPod:
        """Start a pod until `undo`, with its interfaces of Multus and its devices."""
        run, name = self._run(self._machine), wanted.name
        if not self._pods:
            # Multus takes interfaces back while a pod ends. So the names of the pods' networks go after the pods.
            self._names = undo.enter_context(ExitStack())
            undo.callback(self._await_gone, run)  # all pods of a chain end at the same time
        if self._program is not None:
            make_pipes(self._machine, name)
        created = run.create(wanted)
        undo.callback(self._end, run, created)
        started = run.await_running(created)
        first = self._first_process(started)
        if self._settings.wishes.entrypoint:
            self._await_command(wanted, first)
        self._containers.add(started.container)
        undo.callback(self._containers.discard, started.container)
        host = name_namespace(self._machine, name, first, self._names if wanted.networks else undo)
        start = partial(start_program, self._machine, name, first, partial(run.why_ended, created))
        pod = KubernetesPod(name, host, started, start)
        if self._settings.wishes.cpus or wanted.functions:
            self._read_back(pod, wanted.functions)
        self._pods.append(pod)
        undo.callback(self._pods.remove, pod)
        return pod

    def _await_command(self, pod: ChainPod, first: int) -> None:
        """Wait until the first process of a container is podperf's command. PodperfError if it stays another one."""
        words = ("timeout", str(_BECOMES_IN), "sh", "-c", _HAS_BECOME, "sh", str(first), " ".join(pod.command))
        if self._machine.ask(*words, check=False, assumed="").exit_code:
            raise PodperfError(
                f"{self._settings.key}.command: the entrypoint of {pod.name} did not become podperf's command, which "
                f'are its arguments, in {_BECOMES_IN} s: let it end with `exec "$@"`'
            )

    def _read_back(self, pod: KubernetesPod, wanted: Sequence[WantedFunction]) -> None:
        """Give a pod its own CPUs and its functions, as its container tells them.

        PodperfError if they are not those that the pod asked for.
        """
        started = pod.started
        placement = self._run(self._machine).placement(started.name)
        if cpus := self._settings.wishes.cpus:
            placement.demand(cpus, f"{started.name} on {started.node}")
            pod.own_cpus = placement.cpus
        pod.functions = _functions(wanted, placement, started.name)

    def _demand_user_space(self, addresses: Sequence[str], wanted: Sequence[WantedFunction]) -> None:
        """Raises Unavailable if a program cannot drive these devices. Their container has them as they are now."""
        for address, function in zip(addresses, wanted, strict=True):
            driver = pci.link(self._machine, address, "driver", assumed=pci.FOR_USER_SPACE)
            if driver != pci.FOR_USER_SPACE:
                raise Unavailable(
                    f"{address}, which {function.resource} of the cluster gives, has the driver {driver or 'none'}: "
                    f"the device plug-in must offer functions with {pci.FOR_USER_SPACE}"
                )

    def _first_process(self, pod: StartedPod) -> int:
        command = ("sh", "-c", _FIRST_PROCESS, "sh", pod.container, pod.pod)
        found = self._machine.ask(*command, check=False, assumed=str(next(ASSUMED_NUMBERS))).stdout.strip()
        if not found:
            raise PodperfError(
                f"{pod.name} runs on {pod.node}, and that is not {self._machine.name}: name the node of the worker in "
                f"{self._settings.key}.node_selector (kubernetes.io/hostname), and run podperf where it sees the "
                "processes of the node"
            )
        return int(found)

    def _end(self, run: ChainPods, pod: str) -> None:
        run.delete(pod)
        self._ending.append(pod)

    def _await_gone(self, run: ChainPods) -> None:
        run.await_gone(self._ending)
        self._ending.clear()

    def describe(self) -> Mapping[str, Any]:
        run, wishes = self._run(self._machine), self._settings.wishes
        return {
            "kind": "pods of Kubernetes",
            "kubernetes": self._version(),
            "isolation": self._settings.isolation,
            "pods": {
                pod.name: {
                    "name": pod.started.name,
                    "node": pod.started.node,
                    "image": pod.started.image,
                    "quality_of_service": pod.started.quality,
                    **run.placement(pod.started.name).describe(),
                }
                for pod in self._pods
            },
            **self._networks.describe(),
            "attached_by": self._settings.attached_by,
            "memory_limit": None if wishes.cpus is None else wishes.memory,
        }


def _functions(wanted: Sequence[WantedFunction], placement: PodPlacement, pod: str) -> list[str]:
    """The addresses of the wanted functions, as the container of a pod tells them. PodperfError if it tells others.

    The container is that of an image of somebody, so it can tell anything.
    """
    given = {each.resource: placement.of_resource(each.resource) for each in wanted}
    for resource, number in Counter(each.resource for each in wanted).items():
        told = given[resource]
        if len(told) != number or not all(map(pci.ADDRESS.fullmatch, told)):
            raise PodperfError(
                f"{pod} asked for {number} of {resource}, and its container tells {', '.join(told) or 'none'} (in "
                "PCIDEVICE_…), where podperf needs that many addresses of PCI devices"
            )
    return [given[each.resource].pop(0) for each in wanted]


class KubernetesRuntime(RuntimeOfTestbed):
    """The login to a cluster, and the namespace of the run there. The first chain makes the namespace."""

    def __init__(self, settings: ChainSettings) -> None:
        self.settings, self._planned = settings, False
        self._undo = ExitStack()
        self._login: tuple[Api, str] | None = None
        self._pods: ChainPods | None = None
        self._containers: dict[str, set[str]] = {}  # the numbers of those that now run, by the name of the machine

    def unavailable(self, host: Host) -> str | None:
        try:
            self._version()
        except PodperfError as error:
            return str(error)
        return None

    def lacks_program(self, missing: Callable[[Host], str | None], host: Host, *, drives_cards: bool) -> str | None:
        return _NO_FUNCTIONS if drives_cards and not self.settings.functions else None  # the image has the program

    def pages(self, offered: PageSize) -> PageSize:
        return self.settings.pages

    def on(self, machine: Host, worker: NetworkNamespace, program: PodProgram | None = None) -> KubernetesPods:
        containers = self._containers.setdefault(machine.name, set())
        return KubernetesPods(machine, worker, self.settings, self._run, self._version, program, containers)

    def processes(self, machine: Host) -> Collection[int]:
        """See RuntimeOfTestbed. The node's container runtime started them. A process that an exec started is a child of
        that runtime, too, and not of the container's first process. Its control group is the container's."""
        containers = self._containers.get(machine.name)
        if not containers:
            return ()
        said = machine.ask("sh", "-c", _PROCESSES, "sh", "\n".join(sorted(containers)), check=False, assumed="").stdout
        return {int(path.split("/")[2]) for path in said.split()}

    def _version(self) -> str:
        return "" if self._planned else self._logged_in()[1]

    @understood("the cluster")
    def _logged_in(self) -> tuple[Api, str]:
        if self._login is None:
            api = log_in(self.settings.kubeconfig, self.settings.context)
            self._undo.callback(api.close)
            self._login = api, api.ask("GET", "/version")["gitVersion"]
        return self._login

    def _run(self, machine: Host) -> ChainPods:
        if self._pods is None:
            settings, planned = self.settings, self._planned
            self._pods = PlannedRun(machine, settings) if planned else ClusterRun(self._logged_in()[0], settings)
            self._undo.callback(self._pods.close)
        return self._pods

    def planned(self) -> RuntimeOfTestbed:
        self._planned = True
        return self

    def close(self) -> None:
        self._undo.close()
        self._login = self._pods = None


def clusters_named_in(topology: Topology) -> Iterator[ClusterSettings]:
    """The clusters in which the ports of the tester and the pods of chains are."""
    if isinstance(topology.tester.kind, ClusterSettings):
        yield topology.tester.kind
    runtime = runtime_of(topology.pods)
    if isinstance(runtime, KubernetesRuntime):
        yield runtime.settings
