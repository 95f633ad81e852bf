"""Boots the virtual worker, and describes it as a worker in a lab: an address, a key, two ports."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host, Process
from podperf.hosts.linux import ip
from podperf.hosts.namespaces import add_namespace
from podperf.topology import PortSettings, SshSettings, Topology, WorkerPortSettings
from podperf.virtual_worker.image import BUILD_COMMANDS, REMEDY, Image, missing, ready_image
from podperf.virtual_worker.machine import LEFT, QEMU, RIGHT, Accelerator, Machine, qemu_command

COMMANDS = (*BUILD_COMMANDS, (QEMU, "qemu-system-x86"))
ADDRESS = "127.0.0.1"
NAMESPACE = "ports"  # has the tester's two ports
READY = "podperf virtual worker: ready"  # the line that init.sh prints
NOT_COMPARABLE = (
    "the worker is a virtual machine whose CPUs and network cards are emulated, so only that frames cross counts"
)
MAXIMUM_LOAD = 5000.0  # frames/s and direction; the emulated network cards lose frames above this load
ATTEMPTS = 3  # of booting: emulated CPUs may stand still on a busy machine
KVM = Path("/dev/kvm")
KVM_GAVE_UP = "KVM internal error"
PATIENCE: dict[Accelerator, float] = {"kvm": 30.0, "tcg": 120.0}  # seconds from the start of QEMU to READY


@dataclass(frozen=True)
class VirtualWorker:
    """A worker that is up: its SSH settings, its ports, and the tester's ports at the other ends of the cables."""

    ssh: SshSettings
    worker_ports: tuple[WorkerPortSettings, WorkerPortSettings]  # left, right
    tester_ports: tuple[PortSettings, PortSettings]
    process: Process

    @property
    def ssh_command(self) -> list[str]:
        """The command with which a person logs in."""
        options = (f"UserKnownHostsFile={self.ssh.known_hosts}", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes")
        words = [word for option in options for word in ("-o", option)]
        return ["ssh", "-p", str(self.ssh.port), "-i", str(self.ssh.key), *words, f"{self.ssh.user}@{self.ssh.address}"]

    def as_lab(self, topology: Topology) -> Topology:
        """The topology of a lab with this worker. The rest of podperf does not know that the worker is virtual.

        This topology limits the load to the maximum of the emulated cards, and says that figures are not comparable. A
        load or a reason in the given topology has precedence.
        """
        left, right = (
            replace(settings, interface=port.interface, namespace=port.namespace)
            for settings, port in zip((topology.tester.left, topology.tester.right), self.tester_ports, strict=True)
        )
        (settings,) = topology.workers
        left_port, right_port = self.worker_ports
        worker = replace(settings, connection="ssh", ssh=self.ssh, left=left_port, right=right_port)
        load = topology.tester.maximum_load or MAXIMUM_LOAD
        tester = replace(topology.tester, left=left, right=right, maximum_load=load)
        reason = topology.not_comparable or NOT_COMPARABLE
        return replace(topology, tester=tester, workers=(worker,), not_comparable=reason)


def unavailable(host: Host) -> str | None:
    """The reason why this machine cannot run the virtual worker, with the remedy, or None."""
    if reason := missing(host, COMMANDS):
        return reason
    if 'name "igb"' not in host.run(QEMU, "-device", "help").stdout:
        return f"this QEMU has no igb, a network card with virtual functions: version 8.0 or later has; {REMEDY}"
    return None


def boot(host: Host, say: Callable[[str], None], undo: ExitStack) -> VirtualWorker:
    """Boot the virtual worker until `undo`. Builds its image first if there is none.

    QEMU uses KVM if KVM really boots the worker, and otherwise emulates the CPUs. Unavailable if a package is missing.
    PodperfError, with the last lines of the console, if the worker does not come up.
    """
    if reason := unavailable(host):
        raise Unavailable(reason)
    image = ready_image(host, say)
    port = _free_port()
    namespace = add_namespace(host, NAMESPACE, undo).namespace
    process = _switch_on(host, image, port, say, undo)
    tester_ports = []
    for side, node in (("left", LEFT), ("right", RIGHT)):
        # After the start of QEMU, because QEMU looks for its taps in its own namespace. The taps end with QEMU.
        ip(host, "link", "set", "dev", node.tap, "netns", namespace, "name", side)
        ip(host, "-n", namespace, "link", "set", "dev", side, "up")
        tester_ports.append(PortSettings(side, namespace))
    return VirtualWorker(
        SshSettings(ADDRESS, port, "root", str(image.key), _known_hosts(image, port)),
        (WorkerPortSettings(LEFT.interface, LEFT.pci), WorkerPortSettings(RIGHT.interface, RIGHT.pci)),
        (tester_ports[0], tester_ports[1]),
        process,
    )


def _known_hosts(image: Image, port: int) -> str:
    path = image.folder / "known_hosts"  # only one run at a time uses this file
    path.write_text(f"[{ADDRESS}]:{port} {image.host_key}\n")
    return str(path)


def _free_port() -> int:
    """A free port of the loopback. If another program takes the port first, QEMU reports an error."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


def _switch_on(host: Host, image: Image, port: int, say: Callable[[str], None], undo: ExitStack) -> Process:
    """A machine that is ready. /dev/kvm may exist and not work, so only a boot shows whether KVM works."""
    gave_up = (
        image.folder / "kvm-gave-up"
    )  # counts until the next boot of this machine, because each attempt takes 15 s
    this_boot = host.get("/proc/sys/kernel/random/boot_id").decode()
    if KVM.exists() and not (gave_up.exists() and gave_up.read_text() == this_boot):
        try:
            return _started(host, Machine(image, "kvm", port), say, undo)
        except PodperfError as error:
            say(f"virtual worker: KVM cannot boot it here ({error}); emulating its CPUs, which is slower")
            if KVM_GAVE_UP in str(error):
                gave_up.write_text(this_boot)
    for _ in range(ATTEMPTS - 1):
        try:
            return _started(host, Machine(image, "tcg", port), say, undo)
        except PodperfError as error:
            say(f"{error}; once more")
    return _started(host, Machine(image, "tcg", port), say, undo)


def _started(host: Host, machine: Machine, say: Callable[[str], None], undo: ExitStack) -> Process:
    began = time.monotonic()
    say(f"virtual worker: booting it by {machine.accelerator.upper()}")
    process = host.spawn(*qemu_command(machine))
    undo.callback(process.stop)
    last: list[str] = []
    try:
        while (line := _console_line(process, began + PATIENCE[machine.accelerator])) != READY:
            last = [*last[-3:], line] if line else last
    except PodperfError as error:
        process.stop()
        errors = [each for each in process.errors().splitlines() if "warning" not in each]
        said = " / ".join([*errors[:1], *last]) or "nothing"
        raise PodperfError(f"the virtual worker did not come up: {error}; it said: {said}") from error
    say(f"virtual worker: up after {time.monotonic() - began:.0f} s")
    return process


def _console_line(process: Process, deadline: float) -> str:
    """The next line of the console. PodperfError at `deadline`, or as soon as QEMU cannot print another line."""
    while True:
        try:
            return process.receive(1).strip()
        except PodperfError as silence:
            if KVM_GAVE_UP in process.errors():  # QEMU stops such a guest, but QEMU itself goes on
                raise PodperfError(KVM_GAVE_UP) from silence
            if not process.alive():
                raise PodperfError("QEMU has ended") from silence
            if time.monotonic() > deadline:
                raise PodperfError("it took too long") from silence
