"""Makes the image of podperf's pods: programs of Debian packages, unpacked, and podperf's tester. Asks no registry.

A second image has the whole of podperf, too: its checkout, Debian's Python, and the locked Python packages as they are
in the environment that runs this command.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
import tarfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError
from importlib.metadata import distribution as distribution_named
from pathlib import Path

from podperf.caches import digest_of, half_made
from podperf.closed_paths import open_to_others
from podperf.cluster.oci_archive import Archive, ImageFile, layer_of, read_archive, write_archive
from podperf.errors import BadArguments, PodperfError, Unavailable
from podperf.hosts.base import CommandFailed, Host
from podperf.hosts.host_facts import parse_os_release
from podperf.hosts.local import LocalHost
from podperf.kubernetes.settings import DPDK_IMAGE, IMAGE, NETPERF_IMAGE, WHOLE_IMAGE, architecture
from podperf.terminal import say
from podperf.testers.software import TESTER_BINARY
from podperf.virtual_worker.image import MIRROR

ROOT = Path(__file__).parents[3]
_USERS_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
CACHE = (_USERS_CACHE if os.geteuid() else Path("/var/cache")) / "podperf/image"
# busybox is the shell, and iperf3 is for application traffic. The tester needs no library.
PACKAGES = ("busybox-static", "ethtool", "iperf3", "iproute2")
TESTER = "usr/bin/podperf-tester"
APPLETS = (
    *("cat", "echo", "env", "grep", "head", "ls", "mkdir", "mkfifo", "nproc", "ping", "sed", "sh", "sleep"),
    *("tail", "taskset", "test", "timeout", "wc"),
)
# podperf asks its machine by the programs of these.
WHOLE_PACKAGES = (
    *("coreutils", "dash", "debianutils", "ethtool", "findutils", "grep", "iproute2", "procps", "python3", "sed"),
    *("busybox-static", "util-linux"),
)
# A program of a pod is testpmd. `stdbuf`, of coreutils, makes it write each line at once.
DPDK_PACKAGES = ("busybox-static", "coreutils", "dpdk-dev")
HOME = "opt/podperf"
CHECKOUT = (  # without topologies of users
    *("libraries", "resources", "tests", "topologies/kubernetes.yaml", "topologies/topology.schema.json"),
    *("requirements.lock", "LICENSE"),
)
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_COMMAND = """#!/bin/sh
# podperf in its image: nothing is to be set up.
exec PYTHON -I -B -m podperf --no-install "$@"
"""
BUILD_TIMEOUT = 600.0  # seconds
_UNPACK = ("--mode=chrootless", "--variant=extract", "--format=tar", '--aptopt=APT::Install-Recommends "false"')
# Nothing in a pod reads these files and folders.
_LEFT_OUT = ("dev", "usr/share", "usr/lib/x86_64-linux-gnu/perl", "usr/lib/x86_64-linux-gnu/gconv", "var")
# DPDK's package for developers needs those of Python, of headers and of libraries for the linker.
_LEFT_OUT_BESIDE_DPDK = (*_LEFT_OUT, "*.a", "usr/include", "usr/lib/python3*", "usr/bin/python3*")


@dataclass(frozen=True)
class PodImage:
    """Everything that decides what is in an image, beside the distribution and the tester.

    `files` are beside the tester. `left_out` are files and folders of the packages, as patterns of fnmatch.
    `components` of the archive have the packages, by the distribution; by default the usual ones. `check` raises
    Unavailable if the archive of the unpacked packages does not fit this machine.
    """

    name: str
    packages: tuple[str, ...]
    files: Callable[[], Sequence[ImageFile]]
    left_out: tuple[str, ...] = _LEFT_OUT
    components: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Path], None] = lambda packages: None


def ready_image(host: Host, say: Callable[[str], None], wanted: PodImage) -> Archive:
    """The archive with the image, from the cache, or made now. The archive's name is the digest of its recipe.

    It has the tester of this checkout, and packages of this machine's distribution.
    """
    layer = layer_of([ImageFile(TESTER, _tester(), 0o755), *wanted.files()])
    packages = _packages(host, wanted, say)
    tag = digest_of([wanted.name, packages.name, hashlib.sha256(layer).hexdigest()])
    archive = CACHE / f"{tag}.tar"
    if archive.exists():
        return read_archive(archive)
    wanted.check(packages)
    with ExitStack() as undo:
        half = half_made(host, CACHE / tag, undo)
        command = ["/bin/busybox", "sleep", "2147483647"]
        layers = [packages.read_bytes(), layer]
        made = write_archive(half / "image.tar", wanted.name, layers, command, architecture())
        made.path.replace(archive)
    return read_archive(archive)


def _packages(host: Host, wanted: PodImage, say: Callable[[str], None]) -> Path:
    """An archive (tar) with the unpacked packages, from the cache, or made now. No change of podperf changes it."""
    distribution, names = _distribution(host), wanted.packages
    tag = f"packages-{digest_of([*_UNPACK, *names, *wanted.left_out, distribution['VERSION_CODENAME']])}"
    archive = CACHE / f"{tag}.tar"
    if archive.exists():
        return archive
    with ExitStack() as undo:
        half = half_made(host, CACHE / tag, undo)
        say(f"image: unpacking the packages {', '.join(names)} of {distribution['PRETTY_NAME']}; none is installed")
        _gather(host, distribution, wanted, half / "packages.tar")
        kept = half / "kept.tar"
        kept.write_bytes(filtered((half / "packages.tar").read_bytes(), wanted.left_out))
        kept.replace(archive)
    return archive


def _check_python(packages: Path) -> None:
    """Unavailable if the distribution has another Python than the environment from which the packages are taken."""
    with tarfile.open(packages) as tar:
        names = {each.removeprefix("./") for each in tar.getnames()}
    if f"usr/bin/{_PYTHON}" not in names:
        raise Unavailable(
            f"the image has the Python of the distribution, and podperf runs with {_PYTHON}: make the environment with "
            "the distribution's Python, without PODPERF_PYTHON"
        )


def podperf_files() -> list[ImageFile]:
    """The files of podperf for its own image: the checkout, the locked Python packages, and the command `podperf`."""
    packages = f"usr/local/lib/{_PYTHON}/dist-packages"
    checkout = (each for name in CHECKOUT for each in _files_of(ROOT / name))
    return [
        *(_copied(each, f"{HOME}/{each.relative_to(ROOT)}") for each in checkout),
        *(_copied(path, f"{packages}/{name}") for name, path in sorted(locked_files(ROOT / "requirements.lock"))),
        ImageFile(f"{packages}/podperf.pth", f"/{HOME}/libraries\n".encode()),
        ImageFile("bin/ping", link="busybox"),  # the only program of the tester's pods that is in none of the packages
        ImageFile("usr/bin/which", link="which.debianutils"),  # the package makes this link when it is installed
        ImageFile("usr/bin/podperf", _COMMAND.replace("PYTHON", _PYTHON).encode(), 0o755),
    ]


def _applets() -> list[ImageFile]:
    return [ImageFile(f"bin/{applet}", link="busybox") for applet in APPLETS]


POD = PodImage(IMAGE, PACKAGES, _applets)
_WITH_NON_FREE = {"debian": "main,non-free", "ubuntu": "main,universe,multiverse"}
WITH_NETPERF = PodImage(NETPERF_IMAGE, (*PACKAGES, "netperf"), _applets, components=_WITH_NON_FREE)
DPDK = PodImage(DPDK_IMAGE, DPDK_PACKAGES, _applets, _LEFT_OUT_BESIDE_DPDK)
WHOLE = PodImage(WHOLE_IMAGE, WHOLE_PACKAGES, podperf_files, check=_check_python)


def _files_of(path: Path) -> Iterator[Path]:
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return (each for each in found if each.is_file() and "__pycache__" not in each.parts)


def _copied(path: Path, target: str) -> ImageFile:
    return ImageFile(target, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)


def locked_files(lock: Path) -> Iterator[tuple[str, Path]]:
    """The files of the locked packages that are installed here: the path below their folder, and the path here.

    PodperfError if a package is missing here, or has another version. One with a condition (;) may be missing: it is
    for another Python.
    """
    locked = re.findall(r"^([\w.-]+)==(\S+)( ;)?", lock.read_text(encoding="utf-8"), re.MULTILINE)
    for name, version, condition in locked:
        try:
            found = distribution_named(name)
        except PackageNotFoundError:
            if condition:
                continue
            raise _other_environment(name, version, "is not installed") from None
        if found.version != version:
            raise _other_environment(name, version, f"is installed as {found.version}")
        for file in found.files or ():
            path = Path(str(file.locate()))
            if ".." not in file.parts and "__pycache__" not in file.parts and path.is_file():
                yield str(file), path


def _other_environment(name: str, version: str, found: str) -> PodperfError:
    return PodperfError(
        f"the image has the locked packages of {sys.prefix}, where {name} {version} {found}: requirements.lock is "
        "newer than that environment; once: sudo ./podperf set-up"
    )


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


def _gather(host: Host, distribution: Mapping[str, str], wanted: PodImage, tar: Path) -> None:
    """Unpack the packages, with those that they need, into an archive. No program of theirs runs, so nobody needs to be
    root for that."""
    if host.ask("which", "mmdebstrap", check=False).exit_code:
        raise Unavailable("the package mmdebstrap makes the image of the pods; once: apt-get install mmdebstrap")
    mirror = [MIRROR] if distribution["ID"] == "debian" else []
    include = [f"--include={','.join(wanted.packages)}"]
    if components := wanted.components.get(distribution["ID"]):
        include.append(f"--components={components}")
    command = ("mmdebstrap", *_UNPACK, *include, distribution["VERSION_CODENAME"], str(tar), *mirror)
    try:
        host.do("env", "SOURCE_DATE_EPOCH=0", *command, timeout=BUILD_TIMEOUT)
    except CommandFailed as error:
        said = [line for line in error.output.splitlines() if line.startswith("E: ")][:1]
        raise PodperfError(f"the image of the pods could not be made: mmdebstrap says {said} of {MIRROR}") from error


def filtered(archive: bytes, left_out: Sequence[str]) -> bytes:
    """An archive (tar) without files and folders that no pod reads, which are patterns of fnmatch. All others are
    root's, and no program gets the rights of its owner: so it is the same, whoever has unpacked the packages."""
    buffer = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as source,
        tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as sink,
    ):
        for member in _kept(source, left_out):
            sink.addfile(member, source.extractfile(member) if member.isreg() else None)
    return buffer.getvalue()


def _kept(members: Iterable[tarfile.TarInfo], left_out: Sequence[str]) -> Iterator[tarfile.TarInfo]:
    for member in members:
        path = f"{member.name.removeprefix('./')}/"
        if not any(fnmatchcase(path, f"{pattern}/*") for pattern in left_out):
            member.uid = member.gid = 0
            member.uname = member.gname = "root"
            member.mode &= 0o1777
            yield member


def add_arguments(parser: ArgumentParser) -> None:
    parser.description = (
        "Make the image of podperf's pods: as an archive for clusters without a registry, or in a registry."
    )
    parser.add_argument("what", choices=("build", "push"))
    which = parser.add_mutually_exclusive_group()
    for option, image, what in (
        ("--whole", WHOLE, "podperf itself, for a Job in the cluster"),
        ("--dpdk", DPDK, "DPDK's testpmd, for pods of chains that run a program"),
        ("--netperf", WITH_NETPERF, "the usual image with netperf, whose licence is not free: read it"),
    ):
        which.add_argument(option, dest="image", action="store_const", const=image, default=POD, help=what)
    parser.add_argument(
        "target",
        nargs="?",
        metavar="FILE | REGISTRY/NAME[:TAG]",
        help="build: a copy of the archive, for other machines; push: the place in a registry",
    )
    parser.add_argument("--plain-http", action="store_true", help="push: to a registry without TLS")


def main(wanted: Namespace) -> int:
    """`podperf image build [FILE]`: make the image, and say how to load it. `podperf image push REGISTRY/NAME[:TAG]`:
    make it, and push it."""
    if wanted.what == "push" and not all((wanted.target or "").partition("/")):
        raise BadArguments("image push needs a place in a registry: podperf image push REGISTRY/NAME[:TAG]")
    if wanted.what == "build" and wanted.plain_http:
        raise BadArguments("--plain-http is for image push")
    image = ready_image(LocalHost(), say, wanted.image)
    if wanted.what == "push":
        print(f"{image.name} is in the registry, as {push(image, wanted.target, plain_http=wanted.plain_http)}")
        return 0
    path = image.path
    if wanted.target is not None:
        path = _copied_to(path, Path(wanted.target))
    print(f"{image.name} ({image.digest}, {path.stat().st_size / 1e6:.0f} MB) is in {path}. To load it:")
    for command in ("ctr --namespace k8s.io images import", "podman load --input", "docker load --input"):
        print(f"  {command} {path}")
    return 0


def push(image: Archive, place: str, *, plain_http: bool = False) -> str:
    """Push an image to REGISTRY/NAME[:TAG], by default with the tag of its name. Returns what topologies call it.

    skopeo finds the login, as docker and podman do: `podman login REGISTRY`, or a credential helper.
    """
    host = LocalHost()
    if host.ask("which", "skopeo", check=False).exit_code:
        raise Unavailable("the package skopeo pushes images to registries; once: apt-get install skopeo")
    name, colon, tag = place.rpartition(":")
    if not colon or "/" in tag:  # a colon before the port of the registry
        name, tag = place, image.name.rpartition(":")[2]
    without_tls = ("--dest-tls-verify=false",) if plain_http else ()
    command = ("skopeo", "copy", "--quiet", *without_tls, f"oci-archive:{image.path}", f"docker://{name}:{tag}")
    try:
        host.do(*command, timeout=BUILD_TIMEOUT)
    except CommandFailed as error:
        said = re.findall(r'msg="(.*)"', error.output)[-1:] or [" ".join(error.output.split())]
        raise PodperfError(f"the image could not be pushed to {name}:{tag}: skopeo says {said[0]}") from error
    return f"{name}:{tag} and {name}@{image.digest}"


def _copied_to(archive: Path, file: Path) -> Path:
    """Copy an archive, which nodes will run. Nobody else can change the copy, or choose where root writes it."""
    at = file.absolute()
    if (reason := open_to_others(at, os.environ, replaces=True)) is not None:
        raise PodperfError(f"{reason}, and nodes would run the image in {file}; name another file")
    if at.exists() and not at.is_file():
        raise PodperfError(f"{file} is no regular file")
    LocalHost().put(archive.read_bytes(), str(at))  # a link with this name is replaced, and not followed
    return file
