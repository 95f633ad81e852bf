"""Boots the counted machine, and describes it as a machine behind SSH that has both tester and worker."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from podperf.caches import half_made, remove, used
from podperf.counted_machine.archive import ArchiveEntry, archive, parents, place, tree
from podperf.counted_machine.kernel import Kernel, ready_kernel
from podperf.counted_machine.plugin import LIBRARY, Plugin, plugin_for
from podperf.counted_machine.snapshot import Snapshot, Start, await_restored, snapshot_in, take
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.programs import copy_of
from podperf.testers.software import TESTER_BINARY
from podperf.topology import CountedSettings, SshSettings, Topology
from podperf.virtual_worker.image import BUILD_COMMANDS, CACHE, SSHD, Image, Recipe, missing, ready_image, usual_recipe


def missing_inputs(settings: CountedSettings) -> list[str]:
    """A line for each file or folder of the settings that does not exist."""
    kernel = settings.kernel
    named: dict[str, list[str | None]] = {
        "kernel.image": [kernel.image],
        "kernel.modules": [kernel.modules],
        "files": [file.source for file in settings.files],
        "nftables": [file for files in settings.nftables.values() for file in files],
        "hooks": [hook.program for hook in settings.hooks],
    }
    return [
        f"there is no file or folder {path} (the key `{key}` of the counted machine)"
        for key, paths in named.items()
        for path in paths
        if path is not None and not Path(path).exists()
    ]


def overlay(settings: CountedSettings) -> Iterator[bytes]:
    """The archive of the files that users put into the machine. Files keep their modes, and belong to root."""
    entries = list(_entries(settings))
    yield from archive({entry.name: entry for entry in entries}.values()) if entries else ()


def _entries(settings: CountedSettings) -> Iterator[ArchiveEntry]:
    for file in settings.files:
        name, source = place(file.target), Path(file.source)
        yield from parents(name)
        yield ArchiveEntry(name, source.resolve() if not source.is_dir() else None)
        if source.is_dir():
            yield from tree(source, below=name)


PACKAGES = (
    "kmod",
    *("openssh-server", "procps", "debianutils"),  # for podperf to work on it
    *("iproute2", "ethtool", "nftables", "iptables", "bpftool", "libbpf1", "containernetworking-plugins"),
)
# All of the image is copied into memory at each boot. Some files are needed until all packages are installed.
LEFT_OUT = ("/usr/share/zoneinfo/*", "/usr/lib/udev/hwdb.d/*", "/usr/lib/x86_64-linux-gnu/gconv/*", "/usr/lib/cni/dhcp")
NOT_PACKED = {
    *("boot", "usr/lib/modules", "usr/lib/x86_64-linux-gnu/perl", "usr/share/perl"),
    *("var/cache", "var/lib/apt", "var/lib/dpkg/info"),
}
# The clock of a waiting machine jumps to the next event. With a limit, the time to log in would be over at once.
COUNTED_SSHD = f"{SSHD}LoginGraceTime 0\n"


def recipe(further: Sequence[str] = ()) -> Recipe:
    init = Path(__file__).with_name("init.sh").read_text(encoding="utf-8")
    left_out = (*usual_recipe().left_out, *LEFT_OUT)
    suites = sorted({suite for each in further if (suite := each.partition("/")[2]) not in {"", "bookworm"}})
    return Recipe(
        packages=(*PACKAGES, *sorted(further)),
        further_suites=tuple(suites),
        left_out=left_out,
        initramfs_modules=(),
        sshd=COUNTED_SSHD,
        init=init,
    )


def counted_image(host: Host, say: Callable[[str], None], further: Sequence[str] = ()) -> Image:
    """The image with these further packages. See `ready_image`."""
    return ready_image(host, say, recipe(further), one_initramfs)


def one_initramfs(host: Host, recipe: Recipe, half: Path) -> None:
    """The root becomes the initramfs, uncompressed, as the counted machine would count its unpacking."""
    with (half / "initrd").open("wb") as file:
        file.writelines(archive(tree(half / "root", lambda name: name not in NOT_PACKED)))


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
    """A counted machine that is up, how to log in on it, and QEMU's plug-in in it.

    `snapshot` is the state of this machine just after its boot.
    """

    ssh: SshSettings
    plugin: Plugin
    snapshot: Snapshot
    start: Start

    def as_lab(self, topology: Topology) -> Topology:
        return replace(
            topology,
            tester=replace(topology.tester, ssh=self.ssh),
            workers=tuple(replace(worker, ssh=self.ssh) for worker in topology.workers),
            not_comparable=topology.not_comparable or NOT_COMPARABLE,
        )


@dataclass(frozen=True)
class QemuMachine:
    """All that QEMU needs to run one counted machine."""

    kernel: Path
    initramfs: Path | None  # None: the machine goes on from a snapshot, which has it in memory
    folder: Path  # of its two sockets
    version: str  # of QEMU. The machine has it in the name of its product, so that records tell it
    seed: int = 1
    words: str = ""  # further words of the kernel's command line

    @property
    def socket(self) -> Path:
        """Leads to the machine's SSH server."""
        return self.folder / "ssh"

    @property
    def control(self) -> Path:
        """Leads to QEMU's monitor."""
        return self.folder / "control"


def unavailable(host: Host) -> str | None:
    """The reason why this machine cannot run the counted machine, with the remedy, or None."""
    return missing(host, COMMANDS)


def functions_unavailable(host: Host) -> str | None:
    """The reason why a counted machine of this host tells figures without their functions, or None."""
    return plugin_for(host, QEMU, CACHE).missing


def boot(host: Host, settings: CountedSettings, say: Callable[[str], None], undo: ExitStack) -> CountedMachine:
    """Boot the counted machine until `undo`. Builds its image first if there is none. `change_machine` changes it then.

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
    plugin = plugin_for(host, QEMU, folder, detail=settings.detail)
    if plugin.missing:
        say(f"counted machine: figures without their functions: {plugin.missing}")
    machine = QemuMachine(kernel.image, None, folder, qemu_version(host), settings.seed, settings.kernel.words)
    snapshot = _snapshot(machine, image, kernel, settings, plugin)
    restored = snapshot.exists and _restored(host, machine, snapshot, plugin, say, undo)
    if not restored:
        machine = replace(machine, initramfs=folder / "initrd")
        join(folder / "initrd", image, kernel, settings)
        _switch_on(host, machine, plugin, say, undo)
        (folder / "initrd").unlink()  # 150 MB, which the machine has read
        try:
            take(host, machine.control, snapshot)
        except (PodperfError, OSError) as error:
            say(f"counted machine: the next one boots, too: there is no snapshot of this one ({error})")
    known_hosts = folder / "known_hosts"
    known_hosts.write_text(f"{NAME} {image.host_key}\n")
    ssh = SshSettings(NAME, 22, "root", str(image.key), str(known_hosts), socket=str(machine.socket))
    return CountedMachine(ssh, plugin, snapshot, "restored" if restored else "booted")


def _snapshot(
    machine: QemuMachine, image: Image, kernel: Kernel, settings: CountedSettings, plugin: Plugin
) -> Snapshot:
    """The snapshot of a machine with these parts. The digests of image, kernel and tester are in their names."""
    files = hashlib.sha256(b"".join(overlay(settings))).hexdigest()
    counts = hashlib.sha256(LIBRARY.read_bytes()).hexdigest() if plugin.executions else ""
    words = qemu_command(replace(machine, folder=Path("/")))
    parts = (image.folder.name, kernel.folder.name, copy_of(TESTER_BINARY))
    return snapshot_in(CACHE, [*words, *parts, files, counts])


def _restored(
    host: Host, machine: QemuMachine, snapshot: Snapshot, plugin: Plugin, say: Callable[[str], None], undo: ExitStack
) -> bool:
    """Whether the machine is up from its snapshot. A snapshot that QEMU does not take is removed."""
    began = time.monotonic()
    used(snapshot.folder)
    process = host.spawn(*qemu_command(machine), *plugin.words, "-incoming", f"file:{snapshot.state}")
    undo.callback(process.stop)
    try:
        await_restored(machine.control, process)
    except PodperfError as error:
        process.stop()
        say(f"counted machine: booting it, as its snapshot cannot be used: {error}")
        remove(host, snapshot.folder)
        return False
    say(f"counted machine: up after {time.monotonic() - began:.1f} s, from the snapshot of an earlier boot")
    return True


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
    yield from ("-qmp", f"unix:{machine.control},server=on,wait=off")
    yield from ("-smbios", f"type=1,manufacturer=QEMU,product=QEMU {machine.version}")
    yield from ("-machine", "q35", "-cpu", "max", "-smp", "1", "-m", str(MEMORY_MIB))
    # One instruction takes one nanosecond. A CPU that waits goes on at once with the time of the next event.
    yield from ("-accel", "tcg,thread=single,tb-size=512", "-icount", "shift=0,sleep=off")
    yield from ("-rtc", "base=2026-01-01T00:00:00,clock=vm", "-seed", str(machine.seed))
    yield from ("-device", "virtio-serial-pci", "-chardev", f"socket,id=ssh,path={machine.socket},server=on,wait=off")
    yield from ("-device", "virtserialport,chardev=ssh,name=podperf-ssh")
    words = " ".join((*KERNEL_WORDS, machine.words)).strip()
    yield from ("-kernel", str(machine.kernel), "-append", words)
    if machine.initramfs is not None:
        yield from ("-initrd", str(machine.initramfs))
