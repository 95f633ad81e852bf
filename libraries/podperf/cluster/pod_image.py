"""The image of podperf's pods: programs of Debian packages, unpacked, and podperf's tester. No registry is asked."""

from __future__ import annotations

import argparse
import hashlib
import io
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from podperf.caches import half_made
from podperf.cluster.lifecycle import architecture
from podperf.cluster.oci_archive import Archive, ImageFile, layer_of, read_archive, write_archive
from podperf.cluster.parts import digest_of
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import CommandFailed, Host
from podperf.hosts.host_facts import parse_os_release
from podperf.hosts.local import LocalHost
from podperf.testers.kubernetes_settings import IMAGE
from podperf.testers.software import TESTER_BINARY
from podperf.virtual_worker.image import MIRROR

CACHE = Path("/var/cache/podperf/image")
# busybox is the shell, and iperf3 a peer that the tester is compared with. The tester needs no library.
PACKAGES = ("busybox-static", "ethtool", "iperf3", "iproute2")
TESTER = "usr/bin/podperf-tester"
APPLETS = (
    *("cat", "echo", "env", "grep", "head", "ls", "mkdir", "mkfifo", "nproc", "ping", "sed", "sh", "sleep"),
    *("tail", "taskset", "test", "wc"),
)
BUILD_TIMEOUT = 600.0  # seconds
# Nothing in a pod reads these.
_LEFT_OUT = ("dev", "usr/share", "usr/lib/x86_64-linux-gnu/perl", "usr/lib/x86_64-linux-gnu/gconv", "var")


def ready_image(host: Host, say: Callable[[str], None]) -> Archive:
    """The archive with the image, from the cache, or made now. The archive's name is the digest of its recipe.

    It has the tester of this checkout, and packages of this machine's distribution.
    """
    distribution = _distribution(host)
    tester = _tester()
    recipe = [
        IMAGE,
        *PACKAGES,
        *APPLETS,
        *_LEFT_OUT,
        distribution["VERSION_CODENAME"],
        hashlib.sha256(tester).hexdigest(),
    ]
    tag = digest_of(recipe)
    archive = CACHE / f"{tag}.tar"
    if archive.exists():
        return read_archive(archive)
    with ExitStack() as undo:
        half = half_made(host, CACHE / tag, undo)
        say(f"image: unpacking the packages {', '.join(PACKAGES)} of {distribution['PRETTY_NAME']}; none is installed")
        _gather(host, distribution, half / "packages.tar")
        ours = [ImageFile(TESTER, tester, 0o755), *(ImageFile(f"bin/{each}", link="busybox") for each in APPLETS)]
        layers = [filtered((half / "packages.tar").read_bytes()), layer_of(ours)]
        command = ["/bin/busybox", "sleep", "2147483647"]
        made = write_archive(half / "image.tar", IMAGE, layers, command, architecture())
        made.path.replace(archive)
    return read_archive(archive)


def _distribution(host: Host) -> Mapping[str, str]:
    found = parse_os_release(host.get("/etc/os-release").decode())
    if "VERSION_CODENAME" not in found:
        raise Unavailable("the image of the pods is made from the packages of Debian or Ubuntu, and this is neither")
    return found


def _tester() -> bytes:
    try:
        return TESTER_BINARY.read_bytes()
    except FileNotFoundError as error:
        raise PodperfError("the tester is not built yet; once: sudo ./podperf set-up") from error


def _gather(host: Host, distribution: Mapping[str, str], tar: Path) -> None:
    """Unpack the packages, with those that they need, into an archive. Equal packages give an equal archive."""
    if host.ask("which", "mmdebstrap", check=False).exit_code:
        raise Unavailable("the package mmdebstrap makes the image of the pods; once: apt-get install mmdebstrap")
    mirror = [MIRROR] if distribution["ID"] == "debian" else []
    options = ("--mode=root", "--variant=extract", "--format=tar", '--aptopt=APT::Install-Recommends "false"')
    include = f"--include={','.join(PACKAGES)}"
    command = ("mmdebstrap", *options, include, distribution["VERSION_CODENAME"], str(tar), *mirror)
    try:
        host.do("env", "SOURCE_DATE_EPOCH=0", *command, timeout=BUILD_TIMEOUT)
    except CommandFailed as error:
        said = [line for line in error.output.splitlines() if line.startswith("E: ")][:1]
        raise PodperfError(f"the image of the pods could not be made: mmdebstrap says {said} of {MIRROR}") from error


def filtered(archive: bytes) -> bytes:
    """An archive (tar) without the folders that no pod reads."""
    buffer = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as source,
        tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as sink,
    ):
        for member in _kept(source):
            sink.addfile(member, source.extractfile(member) if member.isreg() else None)
    return buffer.getvalue()


def _kept(members: Iterable[tarfile.TarInfo]) -> Iterator[tarfile.TarInfo]:
    left_out: Sequence[str] = [f"{each}/" for each in _LEFT_OUT]
    for each in members:
        if not f"{each.name.removeprefix('./')}/".startswith(tuple(left_out)):
            yield each


def main(arguments: Sequence[str]) -> int:
    """`podperf image build [FILE]`: make the image, and say how to load it."""
    text = "Make the image of podperf's pods, as an archive for clusters without a registry."
    parser = argparse.ArgumentParser("podperf image", description=text)
    parser.add_argument("what", choices=("build",))
    parser.add_argument("file", nargs="?", type=Path, help="a copy of the archive, for other machines")
    wanted = parser.parse_args(arguments)
    image = ready_image(LocalHost(), lambda said: print(f"podperf: {said}", file=sys.stderr, flush=True))
    path = image.path
    if wanted.file is not None:
        wanted.file.write_bytes(path.read_bytes())
        path = wanted.file
    print(f"{image.name} ({image.digest}, {path.stat().st_size / 1e6:.0f} MB) is in {path}. To load it:")
    for command in ("ctr --namespace k8s.io images import", "podman load --input", "docker load --input"):
        print(f"  {command} {path}")
    return 0
