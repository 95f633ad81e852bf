"""The counted machine's image: its root without a kernel, as an archive for an initramfs.

podperf builds and stores it in the same way as the virtual worker's image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from podperf.counted_machine.archive import archive, tree
from podperf.hosts.base import Host
from podperf.virtual_worker.image import SSHD, Image, Recipe, ready_image, usual_recipe

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
    """The recipe of the image, with further packages."""
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
