"""The kernel of a counted machine: that of a Debian package, or one that a user has built, with its modules. It is kept
apart from the machine's packages, under the digest of its content or of its recipe, and machines share it."""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from podperf.caches import half_made, keep_newest, remove
from podperf.counted_machine.archive import ArchiveEntry, archive, parents, tree
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.topology import KernelSettings
from podperf.virtual_worker import image
from podperf.virtual_worker.image import Recipe, usual_recipe

MODULES = "usr/lib/modules"
PREFIX = "kernel-"
MOST = 8  # kernels in the cache, of 10 MB to 500 MB each
_BZIMAGE = b"HdrS"  # at 0x202 of the file (Documentation/arch/x86/boot.rst)
_ELF = b"\x7fELF"
_RELEASE = re.compile(rb"Linux version (\S+) \(")
# XEN_ELFNOTE_PHYS32_ENTRY: the entry of a vmlinux for QEMU, which CONFIG_PVH adds.
_PVH = re.compile(rb"\x04\0\0\0[\x04\x08]\0\0\0\x12\0\0\0Xen\0")
# The folder of modules also has links to the kernel's sources.
_NO_MODULES = ("build", "source", "vmlinux")


@dataclass(frozen=True)
class Kernel:
    """A kernel that QEMU boots, and the archive of its modules."""

    folder: Path

    @property
    def image(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def modules(self) -> Path:
        return self.folder / "modules"


def ready_kernel(host: Host, say: Callable[[str], None], settings: KernelSettings) -> Kernel:
    """The kernel of these settings. If the cache has none, it is made, which takes 20 s for a package.

    PodperfError if there is no such package, image or folder, or if QEMU cannot start the image.
    """
    own = None if settings.image is None else _own(Path(settings.image), settings.modules)
    package = settings.package if "/" in settings.package else f"{settings.package}/bookworm"
    digest = _digest_of_files(*own) if own else _digest_of(package, *usual_recipe().left_out)
    kernel = Kernel(image.CACHE / f"{PREFIX}{digest}")
    if not kernel.folder.exists():
        with ExitStack() as undo:
            half = half_made(host, kernel.folder, undo)
            if own is None:
                say(f"counted machine: getting the kernel of {package}, once")
            found, modules = own or _of_package(host, say, package, half / "root")
            half.chmod(0o700)  # from here on, as for an image: the kernel may be one that only its owner can read
            _pack(host, half, found, modules)
            half.replace(kernel.folder)
    keep_newest(host, kernel.folder, PREFIX, MOST)
    return kernel


def _own(path: Path, modules: str | None) -> tuple[Path, Path | None]:
    """An own image, and the folder lib/modules/RELEASE of its modules."""
    if not path.is_file():
        raise PodperfError(f"there is no kernel {path} (the key `kernel.image` of the counted machine)")
    release = _release(path)
    if modules is None:
        return path, None
    named = Path(modules)
    places = [named, *(named / below / release for below in ("lib/modules", MODULES))]
    for folder in places:
        if folder.name == release and ((folder / "modules.order").is_file() or (folder / "kernel").is_dir()):
            return path, folder
    there = sorted({each.parent.name for place in places for each in place.parent.glob("*/modules.order")})
    raise PodperfError(
        f"{path} is Linux {release}, and {named} has modules of {', '.join(there) or 'no kernel'}: name the folder of "
        "`make modules_install INSTALL_MOD_PATH=FOLDER` (the key `kernel.modules` of the counted machine)"
    )


def _release(path: Path) -> str:
    """The release of a bzImage or a vmlinux, such as `6.18.0-rc1`. PodperfError if QEMU cannot start it."""
    what = f"{path} (the key `kernel.image` of the counted machine)"
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size >= 0x210:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                if content[0x202:0x206] == _BZIMAGE:
                    at = 0x200 + struct.unpack_from("<H", content, 0x20E)[0]
                    if words := content[at : at + 256].partition(b"\0")[0].split():
                        return words[0].decode(errors="replace")
                elif content[:4] == _ELF and (found := _RELEASE.search(content)):
                    if not _PVH.search(content):
                        remedy = "switch CONFIG_PVH on, or name arch/x86/boot/bzImage"
                        raise PodperfError(f"QEMU cannot start the vmlinux {what}, which has no entry for it: {remedy}")
                    return found[1].decode(errors="replace")
    raise PodperfError(f"{what} is no kernel for x86-64: name vmlinux or arch/x86/boot/bzImage of a build")


def _digest_of(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def _digest_of_files(kernel: Path, modules: Path | None) -> str:
    with kernel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    for chunk in archive(_of_modules(modules)) if modules is not None else ():
        digest.update(chunk)
    return digest.hexdigest()[:16]


def _of_package(host: Host, say: Callable[[str], None], package: str, root: Path) -> tuple[Path, Path]:
    """Extract a package with all that it depends on, as it may be an empty package that names the newest kernel."""
    suite = package.partition("/")[2]
    base = suite.partition("-")[0]
    recipe = Recipe(base, () if base == suite else (suite,), (package,))
    image.gather_packages(host, image.mmdebstrap_command(recipe, root, "extract"), say)
    found = sorted((root / "boot").glob("vmlinuz-*"))
    if len(found) != 1:
        raise PodperfError(f"the package {package} has {len(found)} kernels; one is needed")
    release = found[0].name.removeprefix("vmlinuz-")
    folders = [root / below / release for below in ("lib/modules", MODULES)]  # newer suites have all below /usr
    return found[0], next(folder for folder in folders if folder.is_dir())


def _pack(host: Host, half: Path, kernel: Path, modules: Path | None) -> None:
    shutil.copyfile(kernel, half / "vmlinuz")
    entries: Iterator[ArchiveEntry] = iter(())
    if modules is not None:
        # A copy, because depmod writes into the folder, and must see the modules that are left only.
        copy = half / "depmod/lib/modules" / modules.name
        for module in _of_modules(modules):
            if module.path is not None:
                target = copy / Path(module.name).relative_to(f"{MODULES}/{modules.name}")
                if module.path.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                else:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(module.path, target)
        host.do("depmod", "-b", str(half / "depmod"), modules.name)
        entries = _of_modules(copy)
    with (half / "modules").open("wb") as file:
        file.writelines(archive(entries))
    for folder in ("root", "depmod"):
        remove(host, half / folder)


def _of_modules(folder: Path) -> Iterator[ArchiveEntry]:
    """The files of a folder of modules, without those for hardware and protocols that the machine does not have."""
    below = f"{MODULES}/{folder.name}"
    left_out = [each for each in usual_recipe().left_out if "/modules/" in each]

    def wanted(name: str) -> bool:
        path = f"/modules/{folder.name}/{name}"
        return name not in _NO_MODULES and not any(
            fnmatch(f"{path}/", each) or fnmatch(path, each) for each in left_out
        )

    yield from parents(f"{below}/any")
    yield from tree(folder, wanted, below)
