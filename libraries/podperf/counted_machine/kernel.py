"""The kernel of a counted machine: that of a Debian package, or an own image with its modules. It is kept apart from
the machine's packages, under the digest of its content or of its recipe, and machines share it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from podperf.caches import half_made, remove
from podperf.counted_machine.archive import ArchiveEntry, archive, parents, tree
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.topology import KernelSettings
from podperf.virtual_worker import image
from podperf.virtual_worker.image import Recipe, usual_recipe

MODULES = "usr/lib/modules"
# The folder of modules also has links to the kernel's sources.
_NO_MODULES = ("build", "source", "vmlinux")


@dataclass(frozen=True)
class Kernel:
    """A kernel that QEMU boots, and the archive of its modules."""

    folder: Path

    @property
    def image(self) -> Path:
        """The bzImage."""
        return self.folder / "vmlinuz"

    @property
    def modules(self) -> Path:
        """The archive."""
        return self.folder / "modules"


def ready_kernel(host: Host, say: Callable[[str], None], settings: KernelSettings) -> Kernel:
    """The kernel of these settings. If the cache has none, it is made, which takes 20 s for a package.

    PodperfError if there is no such package, image or folder.
    """
    own = settings.image is not None
    package = settings.package if "/" in settings.package else f"{settings.package}/bookworm"
    digest = _digest_of_files(settings) if own else _digest_of(package, *usual_recipe().left_out)
    kernel = Kernel(image.CACHE / f"kernel-{digest}")
    if not kernel.folder.exists():
        with ExitStack() as undo:
            half = half_made(host, kernel.folder, undo)
            if own:
                found, modules = Path(settings.image or ""), settings.modules
            else:
                say(f"counted machine: getting the kernel of {package}, once")
                found, modules = _of_package(host, say, package, half / "root")
            half.chmod(0o700)  # from here on, as for an image: the kernel may be one that only its owner can read
            _pack(host, half, found, Path(modules) if modules is not None else None)
            half.replace(kernel.folder)
    return kernel


def _digest_of(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def _digest_of_files(settings: KernelSettings) -> str:
    digest = hashlib.sha256()
    kernel = Path(settings.image or "")
    if not kernel.is_file():
        raise PodperfError(f"there is no kernel {kernel} (the key `kernel.image` of the counted machine)")
    digest.update(kernel.read_bytes())
    if settings.modules is not None:
        folder = Path(settings.modules)
        if not (folder / "modules.order").is_file() and not (folder / "kernel").is_dir():
            raise PodperfError(
                f"{folder} is no folder of kernel modules, lib/modules/RELEASE, with a folder `kernel` in it (the key "
                "`kernel.modules` of the counted machine)"
            )
        for chunk in archive(_of_modules(folder)):
            digest.update(chunk)
    return digest.hexdigest()[:16]


def _of_package(host: Host, say: Callable[[str], None], package: str, root: Path) -> tuple[Path, str]:
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
    return found[0], str(next(each for each in folders if each.is_dir()))


def _pack(host: Host, half: Path, kernel: Path, modules: Path | None) -> None:
    shutil.copyfile(kernel, half / "vmlinuz")
    entries: Iterator[ArchiveEntry] = iter(())
    if modules is not None:
        # A copy, because depmod writes into the folder, and must see the modules that are left only.
        copy = half / "depmod/lib/modules" / modules.name
        for each in _of_modules(modules):
            if each.path is not None:
                target = copy / Path(each.name).relative_to(f"{MODULES}/{modules.name}")
                if each.path.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                else:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(each.path, target)
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
