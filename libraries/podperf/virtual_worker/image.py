"""The virtual worker's image: a small Debian with a worker's packages, built once. Its name is its recipe's digest."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from podperf.caches import digest_of, half_made, remove
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host

CACHE = Path("/var/cache/podperf/virtual-worker")
DISK_MIB = 3072  # sparse
BUILD_TIMEOUT = 1800.0  # seconds without a sign of life
DONE = "podperf: done"
LOG = "build.log"
MIRROR = os.environ.get("PODPERF_DEBIAN_MIRROR", "http://deb.debian.org/debian")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
INITRAMFS_MODULES = ("virtio_pci", "virtio_blk", "ext4", "crc32c_generic")

PACKAGES = (
    *("linux-image-amd64/bookworm-backports", "initramfs-tools", "kmod", "tini"),  # to boot
    *("openssh-server", "python3", "procps", "debianutils", "pciutils", "numactl"),  # for podperf to work on it
    *("iproute2", "ethtool", "nftables", "iptables", "tcpdump", "iputils-ping", "bpftool", "libbpf1"),
    *("containernetworking-plugins", "bird2", "wireguard-tools"),
    *("openvswitch-switch", "openvswitch-switch-dpdk", "dpdk", "dpdk-dev", "librte-mempool-ring23"),
    *(f"librte-net-{kind}23" for kind in ("e1000-", "virtio", "af-packet", "af-xdp", "tap", "memif", "vhost")),
)
SSHD = "UseDNS no\nUsePAM no\nPrintMotd no\nPasswordAuthentication no\nMaxSessions 100\nMaxStartups 100\n"


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the content of an image, except its keys and the versions of packages on that day."""

    suite: str = "bookworm"
    further_suites: tuple[str, ...] = ("bookworm-backports",)
    packages: tuple[str, ...] = PACKAGES
    left_out: tuple[str, ...] = ()  # patterns of paths
    initramfs_modules: tuple[str, ...] = INITRAMFS_MODULES
    sshd: str = SSHD
    init: str = ""
    disk_mib: int = DISK_MIB

    @property
    def digest(self) -> str:
        return digest_of(asdict(self))


def usual_recipe() -> Recipe:
    """The recipe of the image that topologies use."""
    init, left_out = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("init.sh", "left_out"))
    return Recipe(init=init, left_out=tuple(line for line in left_out.splitlines() if not line.startswith("#")))


@dataclass(frozen=True)
class Image:
    """A folder with all files that QEMU needs to boot the worker, and that SSH needs to reach the worker."""

    folder: Path

    @property
    def disk(self) -> Path:
        """The root file system as a raw image. QEMU never writes to it."""
        return self.folder / "disk.raw"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initramfs(self) -> Path:
        return self.folder / "initrd"

    @property
    def key(self) -> Path:
        """The private key for root's login on the worker."""
        return self.folder / "id_ed25519"

    @property
    def host_key(self) -> str:
        """The worker's public host key: type and key, as in known_hosts."""
        return " ".join((self.folder / "ssh_host_ed25519_key.pub").read_text().split()[:2])


# Each command, and the Debian package that has it.
BUILD_COMMANDS = (("mmdebstrap", "mmdebstrap"), ("mke2fs", "e2fsprogs"), ("ssh-keygen", "openssh-client"))
REMEDY = "once: sudo ./podperf set-up virtual-worker"


def missing(host: Host, commands: Sequence[tuple[str, str]]) -> str | None:
    """The reason why this machine cannot run a virtual machine, with the remedy, or None."""
    absent = [package for command, package in commands if host.ask("which", command, check=False).exit_code]
    return f"a virtual machine needs the Debian packages {', '.join(absent)}; {REMEDY}" if absent else None


# Puts a root into a folder in the form in which QEMU takes it: host, recipe, folder with `root`.
Pack = Callable[[Host, Recipe, Path], None]


def ready_image(
    host: Host, say: Callable[[str], None], recipe: Recipe | None = None, pack: Pack | None = None
) -> Image:
    """The image of this recipe. If the cache has none, it is built, which takes some minutes.

    Unavailable if the build lacks a package. PodperfError if the build fails.
    """
    recipe = recipe or usual_recipe()
    image = Image(CACHE / recipe.digest)
    if not image.folder.exists():
        if reason := missing(host, BUILD_COMMANDS):
            raise Unavailable(reason)
        build(host, recipe, image.folder, say, pack or disk_and_initramfs)
    return image


def build(host: Host, recipe: Recipe, folder: Path, say: Callable[[str], None], pack: Pack) -> None:
    """Build the image. The folder appears only when the image is complete."""
    with ExitStack() as undo:
        half = half_made(host, folder, undo)
        root = half / "root"
        say("virtual machine: building its image, once; this takes one to eight minutes")
        gather_packages(host, mmdebstrap_command(recipe, root), say)
        half.chmod(0o700)  # the folder now gets private keys; until here apt's own user needed access
        say("virtual machine: making its files and its keys")
        _adapt(host, recipe, half)
        pack(host, recipe, half)
        remove(host, root)
        (half / "recipe.json").write_text(json.dumps(asdict(recipe), indent=1))
        half.replace(folder)


def disk_and_initramfs(host: Host, recipe: Recipe, half: Path) -> None:
    """The root becomes a disk. The kernel and its initramfs, which has the drivers for the disk, stand beside it."""
    root, disk = half / "root", half / "disk.raw"
    for name in ("vmlinuz", "initrd"):
        copy_from_boot(root, half, name)
    with disk.open("wb") as file:
        file.truncate(recipe.disk_mib * 2**20)
    options = ("-q", "-t", "ext4", "-O", "^has_journal", "-E", "lazy_itable_init=1,root_owner=0:0")
    host.do("mke2fs", *options, "-d", str(root), str(disk), timeout=BUILD_TIMEOUT)


def copy_from_boot(root: Path, half: Path, name: str) -> None:
    """Copy the kernel or its initramfs out of a root."""
    (found,) = (root / "boot").glob(f"{name}*-*")
    shutil.copyfile(found, half / name)


def mmdebstrap_command(recipe: Recipe, root: Path, variant: Literal["minbase", "extract"] = "minbase") -> list[str]:
    """The command that installs the recipe's packages into a new root, or only extracts them."""
    # These files must exist before the kernel's package makes its initramfs.
    settings, modules = "/etc/initramfs-tools/conf.d", "/usr/share/initramfs-tools/modules.d"
    prepare = (
        f'mkdir -p "$1{settings}" "$1{modules}"'
        f' && printf "MODULES=list\\nCOMPRESS=gzip\\nFSTYPE=ext4\\n" >"$1{settings}/podperf"'
        f' && printf "%s\\n" {" ".join(recipe.initramfs_modules)} >"$1{modules}/podperf"'
    )
    lines = [f"deb {MIRROR} {suite} main" for suite in (recipe.suite, *recipe.further_suites)]
    return [
        *("mmdebstrap", "--mode=root", f"--variant={variant}", "--format=directory", f"--keyring={KEYRING}"),
        '--aptopt=APT::Install-Recommends "false"',
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in recipe.left_out),
        f"--setup-hook={prepare}",
        f"--include={','.join(recipe.packages)}",
        *(recipe.suite, str(root), *lines),
    ]


def gather_packages(host: Host, mmdebstrap: Sequence[str], say: Callable[[str], None]) -> None:
    """Run mmdebstrap, and show its progress. PodperfError with its first complaint if it fails."""
    # A process instead of a single command, because its lines show the progress. It has namespaces of its own, so that
    # it leaves neither processes nor mounts if it is killed.
    apart = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    script = f'"$@" 2>&1 && echo "{DONE}"'
    process = host.spawn(*apart, "sh", "-c", script, "sh", *mmdebstrap)
    log = CACHE / LOG
    lines: list[str] = []
    try:
        while (line := process.receive(BUILD_TIMEOUT)) != DONE:
            lines.append(line)
            if line.startswith("I: ") and line.endswith("..."):
                say(f"virtual machine: {line.removeprefix('I: ')}")
    except PodperfError as error:
        raise PodperfError(
            f"the image of a virtual machine could not be built ({_complaint(lines) or error}; {log} has it all): it "
            f"needs the Debian mirror {MIRROR}, or the one in PODPERF_DEBIAN_MIRROR, and 2 GB in {CACHE}"
        ) from error
    finally:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("\n".join(lines))
        process.stop()


def _complaint(lines: Sequence[str]) -> str:
    """The first line that reports an error, without the command lines after it."""
    return next((line[:200] for line in lines if line.startswith(("E: ", "dpkg: error"))), "")


def _adapt(host: Host, recipe: Recipe, half: Path) -> None:
    """Add the files that no package has: the keys, sshd's configuration and the first process."""
    root = half / "root"
    for old in (root / "etc/ssh").glob("ssh_host_*"):
        old.unlink()
    for name in ("id_ed25519", "ssh_host_ed25519_key"):
        host.do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "podperf", "-f", str(half / name))
    (half / "ssh_host_ed25519_key").rename(root / "etc/ssh/ssh_host_ed25519_key")
    (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
    for name, content, mode in (
        ("root/.ssh/authorized_keys", (half / "id_ed25519.pub").read_text(), 0o600),
        ("etc/ssh/sshd_config.d/podperf.conf", recipe.sshd, 0o644),
        ("etc/hostname", "podperf-worker\n", 0o644),
        ("etc/hosts", "127.0.0.1 localhost podperf-worker\n", 0o644),
        ("etc/fstab", "/dev/vda / ext4 defaults,noatime 0 1\n", 0o644),
        ("podperf-init", recipe.init, 0o755),
    ):
        (root / name).write_text(content)
        (root / name).chmod(mode)
