"""The counted machine's image: a kernel, and one initramfs with everything else.

podperf builds and stores it in the same way as the virtual worker's image.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from podperf.hosts.base import Host
from podperf.virtual_worker.image import SSHD, Image, Recipe, copy_from_boot, ready_image, usual_recipe

PACKAGES = (
    *("linux-image-cloud-amd64/bookworm-backports", "kmod"),  # the kernel for virtual machines is the smallest
    *("openssh-server", "procps", "debianutils"),  # for podperf to work on it
    *("iproute2", "ethtool", "nftables", "iptables", "bpftool", "libbpf1", "containernetworking-plugins"),
)
# All of the image is copied into memory at each boot. Some files are needed until all packages are installed.
LEFT_OUT = ("/usr/share/zoneinfo/*", "/usr/lib/udev/hwdb.d/*", "/usr/lib/x86_64-linux-gnu/gconv/*", "/usr/lib/cni/dhcp")
NOT_PACKED = {
    *("boot", "usr/lib/x86_64-linux-gnu/perl", "usr/share/perl"),
    *("var/cache", "var/lib/apt", "var/lib/dpkg/info"),
}
# The clock of a waiting machine jumps to the next event. With a limit, the time to log in would be over at once.
COUNTED_SSHD = f"{SSHD}LoginGraceTime 0\n"


def recipe() -> Recipe:
    """The recipe of the image."""
    init = Path(__file__).with_name("init.sh").read_text(encoding="utf-8")
    left_out = (*usual_recipe().left_out, *LEFT_OUT)
    return Recipe(packages=PACKAGES, left_out=left_out, initramfs_modules=(), sshd=COUNTED_SSHD, init=init)


def counted_image(host: Host, say: Callable[[str], None]) -> Image:
    """The image. See `ready_image`."""
    return ready_image(host, say, recipe(), one_initramfs)


def one_initramfs(host: Host, recipe: Recipe, half: Path) -> None:
    """The root becomes the initramfs, uncompressed, as the counted machine would count its unpacking."""
    root = half / "root"
    copy_from_boot(root, half, "vmlinuz")
    with (half / "initrd").open("wb") as file:
        for chunk in archive(root):
            file.write(chunk)


def archive(root: Path) -> Iterator[bytes]:
    """The root as a cpio archive in the format `newc`. The same files give the same bytes, whenever they were made."""
    for number, name in enumerate(_names(root), start=1):
        path = root / name
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            content = str(path.readlink()).encode()
        else:
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        device = os.major(status.st_rdev), os.minor(status.st_rdev)
        yield from _entry(name, content, number, status.st_mode, (status.st_uid, status.st_gid), device)
    yield from _entry("TRAILER!!!", b"", 0, 0, (0, 0), (0, 0))


def _names(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        inside = Path(folder).relative_to(root)
        folders[:] = sorted(each for each in folders if str(inside / each) not in NOT_PACKED)
        for name in sorted([*folders, *files]):
            yield str(inside / name)


def _entry(
    name: str, content: bytes, number: int, mode: int, owner: tuple[int, int], device: tuple[int, int]
) -> Iterator[bytes]:
    raw = name.encode() + b"\0"
    fields = (number, mode, *owner, 1, 0, len(content), 0, 0, *device, len(raw), 0)
    yield _padded(b"070701" + b"".join(b"%08x" % each for each in fields) + raw)
    yield _padded(content)


def _padded(chunk: bytes) -> bytes:
    return chunk + b"\0" * (-len(chunk) % 4)
