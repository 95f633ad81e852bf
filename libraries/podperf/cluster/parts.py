"""The programs of the cluster: those of Debian packages, unpacked and not installed, and those of Kubernetes, built.

Each part is made once. Its folder in the cache has the digest of its recipe as its name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from podperf.caches import half_made
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import CommandFailed, Host

CACHE = Path("/var/cache/podperf/cluster")
PACKAGES = ("busybox-static", "containerd", "containernetworking-plugins", "etcd-server", "runc")
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet")
MODULE = Path(__file__).with_name("kubernetes")  # a Go module that requires Kubernetes
OLDEST_GO = (1, 24)
DOWNLOAD_TIMEOUT, BUILD_TIMEOUT = 600.0, 7200.0  # seconds
# The lowest priority, because the build takes ten minutes of CPU time.
_UNOBTRUSIVELY = ("nice", "-n", "19", "ionice", "-c", "3")


@dataclass(frozen=True)
class ClusterPrograms:
    """Two folders with programs."""

    debian: Path  # the root of the unpacked packages
    kubernetes: Path

    def of_debian(self, program: str) -> str:
        """The path of a program of a Debian package."""
        found = next((self.debian / folder / program for folder in _FOLDERS if self._has(folder, program)), None)
        if found is None:
            raise PodperfError(f"{self.debian} has no {program}; remove that folder, and run this command again")
        return str(found)

    def _has(self, folder: str, program: str) -> bool:
        return (self.debian / folder / program).exists()

    def of_kubernetes(self, program: str) -> str:
        """The path of a program of Kubernetes."""
        return str(self.kubernetes / program)

    @property
    def plugins(self) -> str:
        """The folder with the CNI plug-ins."""
        return str(self.debian / "usr/lib/cni")


_FOLDERS = ("usr/bin", "usr/sbin", "bin", "sbin")


@dataclass(frozen=True)
class Build:
    """Everything that decides what Go builds."""

    version: str
    go: str
    module: Mapping[str, str]  # file and its digest
    flags: tuple[str, ...] = ("-trimpath",)

    @property
    def command(self) -> tuple[str, ...]:
        """The Go command that builds all programs into the folder that follows it."""
        linked = f"-s -w -X k8s.io/component-base/version.gitVersion=v{self.version}"
        return ("go", "build", *self.flags, "-ldflags", linked, "-o")

    @property
    def packages(self) -> tuple[str, ...]:
        """The Go packages of the programs."""
        return tuple(f"k8s.io/kubernetes/cmd/{program}" for program in PROGRAMS)


def kubernetes_version(module: str) -> str:
    """The version of Kubernetes that a go.mod requires."""
    found = re.search(r"^require k8s\.io/kubernetes v(\S+)$", module, re.MULTILINE)
    if found is None:
        raise PodperfError(f"{MODULE / 'go.mod'} does not require k8s.io/kubernetes")
    return found[1]


def go_version(said: str) -> str | None:
    """The version in the answer of `go version`. None if it is older than Kubernetes needs."""
    found = re.search(r"\bgo((\d+)\.(\d+)[\w.]*)", said)
    return found[1] if found and (int(found[2]), int(found[3])) >= OLDEST_GO else None


def digest_of(recipe: object) -> str:
    """Sixteen hexadecimal digits for a recipe of JSON types."""
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]


def ready_parts(host: Host, say: Callable[[str], None]) -> ClusterPrograms:
    """Both folders, from the cache, or made now. Unavailable with the remedy if something for it is missing here."""
    debian, build = _debian(host), _build(host)
    if not debian.exists():
        say(f"cluster: fetching the packages {', '.join(PACKAGES)}; none is installed")
        _unpack(host, debian)
    kubernetes = _kubernetes(build)
    if not kubernetes.exists():
        say(f"cluster: building Kubernetes {build.version}, once; this takes about ten minutes of CPU time")
        _compile(host, build, kubernetes)
    return ClusterPrograms(debian, kubernetes)


def are_ready(host: Host) -> bool:
    """Whether both folders are in the cache. Unavailable, with the remedy, if Go is missing or too old."""
    return _debian(host).exists() and _kubernetes(_build(host)).exists()


def _debian(host: Host) -> Path:
    return CACHE / f"debian-{digest_of([*PACKAGES, _distribution(host)])}"


def _kubernetes(build: Build) -> Path:
    return CACHE / f"kubernetes-{build.version}-{digest_of(asdict(build))}"


def _distribution(host: Host) -> str:
    lines = host.get("/etc/os-release").decode().splitlines()
    return " ".join(line for line in lines if line.startswith(("ID=", "VERSION_ID=")))


def _unpack(host: Host, folder: Path) -> None:
    with ExitStack() as undo:
        half = half_made(host, folder, undo)
        packages = half / "packages"
        packages.mkdir()
        _download(host, packages)
        for package in sorted(packages.glob("*.deb")):
            host.do("dpkg-deb", "--extract", str(package), str(half / "root"), timeout=DOWNLOAD_TIMEOUT)
        (half / "root").rename(folder)


def _download(host: Host, folder: Path) -> None:
    """Download the packages. If the machine's package lists do not serve, with lists of this download's own."""
    lists = folder / "lists"
    own = ("-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={folder / 'cache'}")
    download = 'cd "$1" && shift && exec apt-get "$@"'
    try:
        host.do("sh", "-c", download, "sh", str(folder), "download", *PACKAGES, timeout=DOWNLOAD_TIMEOUT)
    except CommandFailed:
        for each in (lists / "partial", folder / "cache"):
            each.mkdir(parents=True)
        try:
            host.do("apt-get", *own, "update", timeout=DOWNLOAD_TIMEOUT)
            host.do("sh", "-c", download, "sh", str(folder), *own, "download", *PACKAGES, timeout=DOWNLOAD_TIMEOUT)
        except CommandFailed as error:
            raise Unavailable(
                f"the cluster needs the Debian packages {', '.join(PACKAGES)}, and they cannot be downloaded: "
                f"{error.output.strip().splitlines()[-1:]}"
            ) from error


def _build(host: Host) -> Build:
    files = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in sorted(MODULE.iterdir())}
    return Build(kubernetes_version((MODULE / "go.mod").read_text(encoding="utf-8")), _go(host), files)


def _go(host: Host) -> str:
    remedy = "install one (https://go.dev/dl, or the package golang-go of Debian 13 or of bookworm-backports)"
    wanted = f"Go {'.'.join(map(str, OLDEST_GO))} or later builds Kubernetes for the cluster"
    if host.ask("which", "go", check=False).exit_code:
        raise Unavailable(f"{wanted}, and there is none here: {remedy}")
    said = host.ask("go", "version").stdout.strip()
    found = go_version(said)
    if found is None:
        raise Unavailable(f"{wanted}, and here is {said}: {remedy}")
    return found


def _compile(host: Host, build: Build, folder: Path) -> None:
    """Build the programs in a folder of their own. Go's caches are there, too, unless the environment names others."""
    with ExitStack() as undo:
        half = half_made(host, folder, undo)
        work = Path(undo.enter_context(tempfile.TemporaryDirectory(dir=half, ignore_cleanup_errors=True)))
        caches = {name: os.environ.get(name, str(work / name.lower())) for name in ("GOCACHE", "GOMODCACHE")}
        settings = {
            **caches,
            "GOPATH": str(work / "go"),
            "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false",
            "GOTOOLCHAIN": "local",
            "CGO_ENABLED": "0",
        }
        module = work / "module"
        module.mkdir()
        for each in MODULE.iterdir():
            (module / each.name).write_bytes(each.read_bytes())
        programs = half / "programs"
        go = (*_UNOBTRUSIVELY, "env", *(f"{name}={value}" for name, value in settings.items()))
        try:
            _in(host, module, *go, "go", "mod", "download")
        except CommandFailed as error:
            raise Unavailable(
                f"the modules of Kubernetes {build.version} cannot be downloaded from GOPROXY: "
                f"{_last_line(error.output)}"
            ) from error
        try:
            _in(host, module, *go, *build.command, f"{programs}/", *build.packages)
        except CommandFailed as error:
            raise PodperfError(
                f"Kubernetes {build.version} could not be built ({_last_line(error.output)}); the build needs 3 GB on "
                "the disk and 2 GB of memory"
            ) from error
        programs.rename(folder)


def _in(host: Host, folder: Path, *command: str) -> None:
    host.do("sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", str(folder), *command, timeout=BUILD_TIMEOUT)


def _last_line(output: str) -> str:
    return next(iter(output.strip().splitlines()[-1:]), "without a word")
