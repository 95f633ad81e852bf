"""Boots the counted machine, and describes it as a machine behind SSH that has both tester and worker."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from podperf.caches import half_made
from podperf.counted_machine.archive import ArchiveEntry, archive, parents, place
from podperf.counted_machine.image import counted_image
from podperf.counted_machine.inputs import missing_inputs, overlay
from podperf.counted_machine.kernel import Kernel, ready_kernel
from podperf.counted_machine.plugin import Plugin, plugin_for
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.programs import copy_of
from podperf.testers.software import TESTER_BINARY
from podperf.topology import CountedSettings, SshSettings, Topology
from podperf.virtual_worker.image import BUILD_COMMANDS, CACHE, Image, missing

QEMU = "qemu-system-x86_64"
COMMANDS = (*BUILD_COMMANDS, (QEMU, "qemu-system-x86"), ("depmod", "kmod"))
NAME = "counted-machine"
READY = "podperf counted machine: ready"  # the line that init.sh prints
PATIENCE = 600.0  # seconds from the start of QEMU to READY, which takes 15 s on a quiet machine
MEMORY_MIB = 1536
NOT_COMPARABLE = (
    "the machine's clock counts instructions, and one CPU does the work of tester and system under test, so only cost "
    "can be compared. An instruction is not a nanosecond: caches, memory and network cards are not in the cost"
)
KERNEL_WORDS = (
    "console=ttyS0 rdinit=/podperf-init quiet panic=-1 audit=0 net.ifnames=0 tsc=reliable random.trust_cpu=on",
    # The same addresses in each boot, and nothing that is done at random.
    "nokaslr norandmaps randomize_kstack_offset=off mitigations=off nopti",
    "init_on_alloc=0",  # it zeroes each page byte by byte, and an instruction that repeats counts once for each byte
    # With few objects in a slab, the figures of bursts depend on how full the slabs happen to be. And the kernel frees
    # an object of a slab's first page by two instructions less. In slabs of 128 pages, few objects are in the first.
    *("slab_min_order=7 slab_max_order=7", "slub_min_order=7 slub_max_order=7"),  # the words until Linux 6.6
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


@dataclass(frozen=True)
class QemuMachine:
    """All that QEMU needs to run one counted machine."""

    kernel: Path
    initramfs: Path
    socket: Path  # to the machine's SSH server
    version: str  # of QEMU. The machine has it in the name of its product, so that records tell it
    seed: int = 1
    words: str = ""  # further words of the kernel's command line


def unavailable(host: Host) -> str | None:
    """The reason why this machine cannot run the counted machine, with the remedy, or None."""
    return missing(host, COMMANDS)


def functions_unavailable(host: Host) -> str | None:
    """The reason why a counted machine of this host tells figures without their functions, or None."""
    return plugin_for(host, QEMU, CACHE).missing


def boot(host: Host, settings: CountedSettings, say: Callable[[str], None], undo: ExitStack) -> CountedMachine:
    """Boot the counted machine until `undo`. Builds its image first if there is none. `inputs.change` changes it then.

    Unavailable if a package is missing. PodperfError if a file of the settings does not exist, and with the last lines
    of the console if the machine does not come up.
    """
    if reason := unavailable(host):
        raise Unavailable(reason)
    if lines := missing_inputs(settings):
        raise PodperfError("\n".join(lines))
    kernel, image = ready_kernel(host, say, settings.kernel), counted_image(host, say, settings.packages)
    folder = half_made(host, image.folder.with_name("machine"), undo)  # a killed run leaves what `clean` removes
    folder.chmod(0o700)  # the initramfs has the users' files, and the private key of the machine's SSH server
    places = (kernel.image, folder / "initrd", folder / "ssh")
    machine = QemuMachine(*places, qemu_version(host), settings.seed, settings.kernel.words)
    join(machine.initramfs, image, kernel, settings)
    known_hosts = folder / "known_hosts"
    known_hosts.write_text(f"{NAME} {image.host_key}\n")
    plugin = plugin_for(host, QEMU, folder)
    if plugin.missing:
        say(f"counted machine: figures without their functions: {plugin.missing}")
    _switch_on(host, machine, plugin, say, undo)
    machine.initramfs.unlink()  # 150 MB, which the machine has read
    ssh = SshSettings(NAME, 22, "root", str(image.key), str(known_hosts), socket=str(machine.socket))
    return CountedMachine(ssh, plugin)


def qemu_version(host: Host) -> str:
    """The version of QEMU, such as `10.0.8`."""
    said = host.ask(QEMU, "--version").stdout
    found = re.search(r"version ([\w.]+)", said)
    return found[1] if found else "of an unknown version"


def join(initramfs: Path, image: Image, kernel: Kernel, settings: CountedSettings) -> None:
    """The machine's initramfs: the packages, the kernel's modules, the tester and the files of users, one archive after
    another."""
    with initramfs.open("wb") as file:
        for part in (image.initramfs, kernel.modules):
            with part.open("rb") as made:
                shutil.copyfileobj(made, file, 2**20)
        tester = place(copy_of(TESTER_BINARY))  # to send it through the serial port would take a second
        file.writelines(archive([*parents(tester), ArchiveEntry(tester, TESTER_BINARY)]))
        file.writelines(overlay(settings))


def _switch_on(host: Host, machine: QemuMachine, plugin: Plugin, say: Callable[[str], None], undo: ExitStack) -> None:
    began = time.monotonic()
    say("counted machine: booting it")
    process = host.spawn(*qemu_command(machine), *plugin.words)
    undo.callback(process.stop)
    last: list[str] = []
    try:
        while (line := process.receive(max(0.1, began + PATIENCE - time.monotonic())).strip()) != READY:
            last = [*last[-3:], line]
    except PodperfError as error:
        said = " / ".join([*process.errors().splitlines()[:1], *last]) or "nothing"
        raise PodperfError(f"the counted machine did not come up: {error}; it said: {said}") from error
    say(f"counted machine: up after {time.monotonic() - began:.0f} s")


def qemu_command(machine: QemuMachine) -> list[str]:
    """The command that runs the machine. Its standard output is the machine's console.

    The machine has no disk, no network card, no source of random numbers and no clock of the host. Only the serial
    port to its SSH server leads outside.
    """
    return list(_words(machine))


def _words(machine: QemuMachine) -> Iterator[str]:
    yield from (QEMU, "-name", "podperf-counted", "-nodefaults", "-no-user-config", "-no-reboot")
    yield from ("-display", "none", "-monitor", "none", "-serial", "stdio")
    yield from ("-smbios", f"type=1,manufacturer=QEMU,product=QEMU {machine.version}")
    yield from ("-machine", "q35", "-cpu", "max", "-smp", "1", "-m", str(MEMORY_MIB))
    # One instruction takes one nanosecond. A CPU that waits goes on at once with the time of the next event.
    yield from ("-accel", "tcg,thread=single,tb-size=512", "-icount", "shift=0,sleep=off")
    yield from ("-rtc", "base=2026-01-01T00:00:00,clock=vm", "-seed", str(machine.seed))
    yield from ("-device", "virtio-serial-pci", "-chardev", f"socket,id=ssh,path={machine.socket},server=on,wait=off")
    yield from ("-device", "virtserialport,chardev=ssh,name=podperf-ssh")
    words = " ".join((*KERNEL_WORDS, machine.words)).strip()
    yield from ("-kernel", str(machine.kernel), "-initrd", str(machine.initramfs), "-append", words)
