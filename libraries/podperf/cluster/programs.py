"""Provides the programs of the cluster: unpacks Debian packages without installing them, and builds Go modules.

Each part is made once. Its folder in the cache has the digest of its recipe as its name.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

from podperf.caches import digest_of, half_made
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import CommandFailed, Host

CACHE = Path("/var/cache/podperf/cluster")
PACKAGES = ("busybox-static", "containerd", "containernetworking-plugins", "etcd-server", "runc")
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet")
DOWNLOAD_TIMEOUT, BUILD_TIMEOUT = 600.0, 7200.0  # seconds
# The lowest priority, because the build takes ten minutes of CPU time.
_UNOBTRUSIVELY = ("nice", "-n", "19", "ionice", "-c", "3")


@dataclass(frozen=True)
class GoModule:
    """A Go module of this package that requires a module with programs."""

    name: str
    requires: str
    programs: tuple[str, ...]  # Go packages
    version_in: str  # the variable of the programs that has their version
    effort: str = "ten minutes"  # of CPU time
    cgo: bool = False  # whether a C compiler is needed
    data: tuple[str, ...] = ()  # folders of the required module that the programs read when they run

    @property
    def folder(self) -> Path:
        return Path(__file__).with_name(self.name.lower().replace("-", "_"))

    @property
    def files(self) -> Mapping[str, bytes]:
        """The files of the module, by their paths in its folder."""
        found = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    @property
    def oldest_go(self) -> tuple[int, int]:
        """The version of Go that go.mod asks for."""
        found = re.search(r"^go (\d+)\.(\d+)", self.files["go.mod"].decode(), re.MULTILINE)
        if found is None:
            raise PodperfError(f"{self.folder}/go.mod names no version of Go")
        return int(found[1]), int(found[2])

    @property
    def version(self) -> str:
        path = self.folder / "go.mod"
        found = re.search(rf"^require {re.escape(self.requires)} v(\S+)$", path.read_text("utf-8"), re.MULTILINE)
        if found is None:
            raise PodperfError(f"{path} does not require {self.requires}")
        return found[1]


KUBERNETES = GoModule(
    "Kubernetes",
    "k8s.io/kubernetes",
    tuple(f"k8s.io/kubernetes/cmd/{program}" for program in PROGRAMS),
    "k8s.io/component-base/version.gitVersion",
)


@dataclass(frozen=True)
class Build:
    """Everything that decides what Go builds."""

    version: str
    go: str
    module: Mapping[str, str]  # file and its digest; folders of data have none: the version decides what is in them
    flags: tuple[str, ...] = ("-trimpath",)


def go_version(said: str, oldest: tuple[int, int]) -> str | None:
    """The version in the answer of `go version`. None if it is older than the oldest one that serves."""
    found = re.search(r"\bgo((\d+)\.(\d+)[\w.]*)", said)
    return found[1] if found and (int(found[2]), int(found[3])) >= oldest else None


def unpacked(
    host: Host, packages: Sequence[str], say: Callable[[str], None], links: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """The root of these packages, with the links that their installation would make: from the cache, or made now."""
    folder = CACHE / f"debian-{digest_of([*packages, _distribution(host)])}"
    if not folder.exists():
        say(f"cluster: fetching the packages {', '.join(packages)}; none is installed")
        _unpack(host, packages, links, folder)
    return folder


def built(host: Host, module: GoModule, say: Callable[[str], None]) -> Path:
    """The programs of a module, from the cache, or built now. Unavailable, with the remedy, without a Go for it."""
    build = _build(host, module)
    folder = CACHE / f"{module.name.lower()}-{build.version}-{digest_of(asdict(build))}"
    if not folder.exists():
        effort = f"this takes about {module.effort} of CPU time"
        say(f"cluster: building {module.name} {build.version}, once; {effort}")
        _compile(host, module, build, folder)
    return folder


def _distribution(host: Host) -> str:
    lines = host.get("/etc/os-release").decode().splitlines()
    return " ".join(line for line in lines if line.startswith(("ID=", "VERSION_ID=")))


def _unpack(host: Host, wanted: Sequence[str], links: Mapping[str, str], folder: Path) -> None:
    with ExitStack() as undo:
        half = half_made(host, folder, undo)
        packages = half / "packages"
        packages.mkdir()
        _download(host, wanted, packages)
        for package in sorted(packages.glob("*.deb")):
            host.do("dpkg-deb", "--extract", str(package), str(half / "root"), timeout=DOWNLOAD_TIMEOUT)
        for name, to in links.items():
            link = half / "root" / name
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(to)
        (half / "root").rename(folder)


def _download(host: Host, packages: Sequence[str], folder: Path) -> None:
    """Download the packages. If the machine's package lists do not serve, with lists of this download's own."""
    lists = folder / "lists"
    own = ("-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={folder / 'cache'}")
    download = 'cd "$1" && shift && exec apt-get "$@"'
    try:
        host.do("sh", "-c", download, "sh", str(folder), "download", *packages, timeout=DOWNLOAD_TIMEOUT)
    except CommandFailed:
        for each in (lists / "partial", folder / "cache"):
            each.mkdir(parents=True)
        try:
            host.do("apt-get", *own, "update", timeout=DOWNLOAD_TIMEOUT)
            host.do("sh", "-c", download, "sh", str(folder), *own, "download", *packages, timeout=DOWNLOAD_TIMEOUT)
        except CommandFailed as error:
            raise Unavailable(
                f"the cluster needs the Debian packages {', '.join(packages)}, and they cannot be downloaded: "
                f"{error.output.strip().splitlines()[-1:]}"
            ) from error


def _build(host: Host, module: GoModule) -> Build:
    files = {name: hashlib.sha256(content).hexdigest() for name, content in module.files.items()}
    return Build(module.version, _go(host, module), {**files, **dict.fromkeys(module.data, "")})


def _go(host: Host, module: GoModule) -> str:
    remedy = "install one (https://go.dev/dl, or the package golang-go of Debian 13 or of bookworm-backports)"
    wanted = f"Go {'.'.join(map(str, module.oldest_go))} or later builds {module.name} for the cluster"
    if host.ask("which", "go", check=False).exit_code:
        raise Unavailable(f"{wanted}, and there is none here: {remedy}")
    said = host.ask("go", "version").stdout.strip()
    found = go_version(said, module.oldest_go)
    if found is None:
        raise Unavailable(f"{wanted}, and here is {said}: {remedy}")
    return found


def _compile(host: Host, wanted: GoModule, build: Build, folder: Path) -> None:
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
            "CGO_ENABLED": str(int(wanted.cgo)),
            "CC": "clang",  # which the set-up of podperf brings
        }
        module = work / "module"
        module.mkdir()
        for name, content in wanted.files.items():
            (module / name).parent.mkdir(parents=True, exist_ok=True)
            (module / name).write_bytes(content)
        programs = half / "programs"
        go = (*_UNOBTRUSIVELY, "env", *(f"{name}={value}" for name, value in settings.items()))
        try:
            _in(host, module, *go, "go", "mod", "download")
        except CommandFailed as error:
            raise Unavailable(
                f"the modules of {wanted.name} {build.version} cannot be downloaded from GOPROXY: "
                f"{_last_line(error.output)}"
            ) from error
        try:
            linked = f"-s -w -X {wanted.version_in}=v{build.version}"
            into = ("-ldflags", linked, "-o", f"{programs}/")
            _in(host, module, *go, "go", "build", *build.flags, *into, *wanted.programs)
        except CommandFailed as error:
            raise PodperfError(
                f"{wanted.name} {build.version} could not be built ({_last_line(error.output)}); the build needs 3 GB "
                "on the disk and 3 GB of memory"
            ) from error
        if wanted.data:
            required = _in(host, module, *go, "go", "list", "-m", "-f", "{{.Dir}}", wanted.requires).strip()
            host.do("cp", "--recursive", *(f"{required}/{each}" for each in wanted.data), str(programs))
        programs.rename(folder)


def _in(host: Host, folder: Path, *command: str) -> str:
    """The standard output of a command that runs in a folder."""
    done = host.do("sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", str(folder), *command, timeout=BUILD_TIMEOUT)
    return done.stdout


def _last_line(output: str) -> str:
    return next(iter(output.strip().splitlines()[-1:]), "without a word")
