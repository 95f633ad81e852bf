"""Boots the counted machine, and describes it as a machine behind SSH that has both tester and worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from podperf.counted_machine.image import counted_image
from podperf.counted_machine.plugin import Plugin, plugin_for
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.topology import SshSettings, Topology
from podperf.virtual_worker.image import BUILD_COMMANDS, CACHE, Image, missing

QEMU = "qemu-system-x86_64"
COMMANDS = (*BUILD_COMMANDS, (QEMU, "qemu-system-x86"))
NAME = "counted-machine"
READY = "podperf counted machine: ready"  # the line that init.sh prints
PATIENCE = 600.0  # seconds from the start of QEMU to READY, which takes 15 s on a quiet machine
MEMORY_MIB = 1024
SEED = 1  # of the machine's random numbers
NOT_COMPARABLE = (
    "the machine's clock counts instructions, and one CPU does the work of tester and system under test, so only "
    "cost can be compared, and rates cannot"
)
KERNEL_WORDS = (
    "console=ttyS0 rdinit=/podperf-init quiet panic=-1 audit=0 net.ifnames=0 tsc=reliable random.trust_cpu=on",
    # The same addresses in each boot, and nothing that is done at random.
    "nokaslr norandmaps randomize_kstack_offset=off mitigations=off nopti",
    "init_on_alloc=0",  # it zeroes each page byte by byte, and an instruction that repeats counts once for each byte
    # With few objects in a slab, the figures of bursts depend on how full the slabs happen to be.
    "slab_min_order=3 slab_min_objects=256",
)


@dataclass(frozen=True)
class CountedMachine:
    """A counted machine that is up, how to log in on it, and QEMU's plug-in in it."""

    ssh: SshSettings
    plugin: Plugin

    def as_lab(self, topology: Topology) -> Topology:
        """The topology with this machine as tester and worker."""
        return replace(
            topology,
            tester=replace(topology.tester, ssh=self.ssh),
            workers=tuple(replace(each, ssh=self.ssh) for each in topology.workers),
            not_comparable=topology.not_comparable or NOT_COMPARABLE,
        )


def unavailable(host: Host) -> str | None:
    """The reason why this machine cannot run the counted machine, with the remedy, or None."""
    return missing(host, COMMANDS)


def functions_unavailable(host: Host) -> str | None:
    """The reason why a counted machine of this host tells figures without their functions, or None."""
    return plugin_for(host, QEMU, CACHE).missing


def boot(host: Host, say: Callable[[str], None], undo: ExitStack) -> CountedMachine:
    """Boot the counted machine until `undo`. Builds its image first if there is none.

    Unavailable if a package is missing. PodperfError, with the last lines of the console, if it does not come up.
    """
    if reason := unavailable(host):
        raise Unavailable(reason)
    image = counted_image(host, say)
    socket, known_hosts = image.folder / "ssh", image.folder / "known_hosts"  # only one run at a time uses these
    host.put(f"{NAME} {image.host_key}\n".encode(), str(known_hosts))
    undo.callback(socket.unlink, missing_ok=True)
    began = time.monotonic()
    say("counted machine: booting it")
    plugin = plugin_for(host, QEMU, image.folder)
    if plugin.executions:
        undo.callback(plugin.executions.unlink, missing_ok=True)
    if plugin.missing:
        say(f"counted machine: figures without their functions: {plugin.missing}")
    process = host.spawn(*qemu_command(image, socket), *plugin.words)
    undo.callback(process.stop)
    last: list[str] = []
    try:
        while (line := process.receive(max(0.1, began + PATIENCE - time.monotonic())).strip()) != READY:
            last = [*last[-3:], line]
    except PodperfError as error:
        said = " / ".join([*process.errors().splitlines()[:1], *last]) or "nothing"
        raise PodperfError(f"the counted machine did not come up: {error}; it said: {said}") from error
    say(f"counted machine: up after {time.monotonic() - began:.0f} s")
    ssh = SshSettings(NAME, 22, "root", str(image.key), str(known_hosts), socket=str(socket))
    return CountedMachine(ssh, plugin)


def qemu_command(image: Image, socket: Path) -> list[str]:
    """The command that runs the machine. Its standard output is the machine's console.

    The machine has no disk, no network card, no source of random numbers and no clock of the host. Only the serial
    port to its SSH server leads outside.
    """
    return list(_words(image, socket))


def _words(image: Image, socket: Path) -> Iterator[str]:
    yield from (QEMU, "-name", "podperf-counted", "-nodefaults", "-no-user-config", "-no-reboot")
    yield from ("-display", "none", "-monitor", "none", "-serial", "stdio")
    yield from ("-machine", "q35", "-cpu", "max", "-smp", "1", "-m", str(MEMORY_MIB))
    # One instruction takes one nanosecond. A CPU that waits goes on at once with the time of the next event.
    yield from ("-accel", "tcg,thread=single,tb-size=512", "-icount", "shift=0,sleep=off")
    yield from ("-rtc", "base=2026-01-01T00:00:00,clock=vm", "-seed", str(SEED))
    yield from ("-device", "virtio-serial-pci", "-chardev", f"socket,id=ssh,path={socket},server=on,wait=off")
    yield from ("-device", "virtserialport,chardev=ssh,name=podperf-ssh")
    yield from ("-kernel", str(image.kernel), "-initrd", str(image.initramfs), "-append", " ".join(KERNEL_WORDS))
