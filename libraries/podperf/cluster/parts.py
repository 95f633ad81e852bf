"""The programs of the cluster: those of Debian packages, unpacked and not installed, and those that Go builds.

Each part is made once. Its folder in the cache has the digest of its recipe as its name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from podperf.caches import half_made
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import CommandFailed, Host

CACHE = Path("/var/cache/podperf/cluster")
PACKAGES = ("busybox-static", "containerd", "containernetworking-plugins", "etcd-server", "runc")
# For kube-router, which enforces NetworkPolicies by these programs.
PACKAGES_OF_POLICIES = (
    *("ipset", "iptables"),
    *("libip4tc2", "libip6tc2", "libipset13", "libmnl0", "libnetfilter-conntrack3", "libnfnetlink0", "libnftnl11"),
    "libxtables12",
)
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet")
OLDEST_GO = (1, 24)
_BRIDGED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")  # frames of a bridge pass iptables
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

    @property
    def folder(self) -> Path:
        """The folder with go.mod, go.sum, and a file that imports the programs."""
        return Path(__file__).with_name(self.name.lower().replace("-", "_"))

    @property
    def version(self) -> str:
        """The version of the module that go.mod requires."""
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
_KUBE_ROUTER = "github.com/cloudnativelabs/kube-router/v2"
KUBE_ROUTER = GoModule(
    "kube-router",
    _KUBE_ROUTER,
    (f"{_KUBE_ROUTER}/cmd/kube-router",),
    f"{_KUBE_ROUTER}/pkg/version.Version",
    "two minutes",
)

_MULTUS = "gopkg.in/k8snetworkplumbingwg/multus-cni.v4"
MULTUS = GoModule("Multus", _MULTUS, (f"{_MULTUS}/cmd/multus",), f"{_MULTUS}/pkg/multus.version", "two minutes")


@dataclass(frozen=True)
class PolicyPrograms:
    """Two folders with kube-router, which enforces NetworkPolicies, and the programs that it calls."""

    debian: Path  # the root of the unpacked packages
    kube_router: Path

    @property
    def environment(self) -> dict[str, str]:
        """Where kube-router finds its programs, and these their libraries. PATH is only the part before the node's."""
        extensions = next(self.debian.glob("usr/lib/*/xtables"), None)
        if extensions is None:
            raise PodperfError(f"{self.debian} has no iptables; remove that folder, and run this command again")
        return {
            "PATH": ":".join(str(self.debian / each) for each in (NAMES, "usr/sbin", "sbin")),
            "LD_LIBRARY_PATH": str(extensions.parent),
            "XTABLES_LIBDIR": str(extensions),
        }


@dataclass(frozen=True)
class ClusterPrograms:
    """Folders with programs."""

    debian: Path  # the root of the unpacked packages
    kubernetes: Path
    policies: PolicyPrograms | None = None  # None: the cluster does not enforce NetworkPolicies
    multus: Path | None = None  # None: pods have no further interfaces

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
NAMES = "names"  # a folder with the names of iptables, which Debian makes at an installation
_IPTABLES = tuple(f"{each}{of}" for each in ("iptables", "ip6tables") for of in ("", "-save", "-restore"))


@dataclass(frozen=True)
class Build:
    """Everything that decides what Go builds."""

    version: str
    go: str
    module: Mapping[str, str]  # file and its digest
    flags: tuple[str, ...] = ("-trimpath",)


def go_version(said: str) -> str | None:
    """The version in the answer of `go version`. None if it is older than Kubernetes needs."""
    found = re.search(r"\bgo((\d+)\.(\d+)[\w.]*)", said)
    return found[1] if found and (int(found[2]), int(found[3])) >= OLDEST_GO else None


def digest_of(recipe: object) -> str:
    """Sixteen hexadecimal digits for a recipe of JSON types."""
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]


def ready_parts(
    host: Host, say: Callable[[str], None], *, policies: bool = False, multus: bool = False
) -> ClusterPrograms:
    """All folders, from the cache, or made now. With `policies`, the cluster can enforce NetworkPolicies; with
    `multus`, it can give pods further interfaces. Unavailable with the remedy if something for it is missing here."""
    debian, kubernetes = _unpacked(host, PACKAGES, say), _built(host, KUBERNETES, say)
    found = ClusterPrograms(debian, kubernetes, multus=_built(host, MULTUS, say) if multus else None)
    return replace(found, policies=_ready_policies(host, say)) if policies else found


def _ready_policies(host: Host, say: Callable[[str], None]) -> PolicyPrograms:
    if not _BRIDGED.exists():
        raise Unavailable("NetworkPolicies between pods of one node need the kernel module: modprobe br_netfilter")
    return PolicyPrograms(_unpacked(host, PACKAGES_OF_POLICIES, say), _built(host, KUBE_ROUTER, say))


def are_ready(host: Host, *, policies: bool = False, multus: bool = False) -> bool:
    """Whether all folders are in the cache. Unavailable, with the remedy, if Go is missing or too old."""
    folders = [_debian(host, PACKAGES), _folder(KUBERNETES, _build(host, KUBERNETES))]
    if policies:
        folders += [_debian(host, PACKAGES_OF_POLICIES), _folder(KUBE_ROUTER, _build(host, KUBE_ROUTER))]
    if multus:
        folders.append(_folder(MULTUS, _build(host, MULTUS)))
    return all(each.exists() for each in folders)


def _debian(host: Host, packages: Sequence[str]) -> Path:
    return CACHE / f"debian-{digest_of([*packages, _distribution(host)])}"


def _folder(module: GoModule, build: Build) -> Path:
    return CACHE / f"{module.name.lower()}-{build.version}-{digest_of(asdict(build))}"


def _unpacked(host: Host, packages: Sequence[str], say: Callable[[str], None]) -> Path:
    folder = _debian(host, packages)
    if not folder.exists():
        say(f"cluster: fetching the packages {', '.join(packages)}; none is installed")
        _unpack(host, packages, folder)
    return folder


def _built(host: Host, module: GoModule, say: Callable[[str], None]) -> Path:
    build = _build(host, module)
    folder = _folder(module, build)
    if not folder.exists():
        effort = f"this takes about {module.effort} of CPU time"
        say(f"cluster: building {module.name} {build.version}, once; {effort}")
        _compile(host, module, build, folder)
    return folder


def _distribution(host: Host) -> str:
    lines = host.get("/etc/os-release").decode().splitlines()
    return " ".join(line for line in lines if line.startswith(("ID=", "VERSION_ID=")))


def _unpack(host: Host, wanted: Sequence[str], folder: Path) -> None:
    with ExitStack() as undo:
        half = half_made(host, folder, undo)
        packages = half / "packages"
        packages.mkdir()
        _download(host, wanted, packages)
        for package in sorted(packages.glob("*.deb")):
            host.do("dpkg-deb", "--extract", str(package), str(half / "root"), timeout=DOWNLOAD_TIMEOUT)
        if "iptables" in wanted:
            names = half / "root" / NAMES
            names.mkdir()
            for each in _IPTABLES:
                (names / each).symlink_to("../usr/sbin/xtables-nft-multi")
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
    files = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in sorted(module.folder.iterdir())}
    return Build(module.version, _go(host), files)


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
            "CGO_ENABLED": "0",
        }
        module = work / "module"
        module.mkdir()
        for each in wanted.folder.iterdir():
            (module / each.name).write_bytes(each.read_bytes())
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
                "on the disk and 2 GB of memory"
            ) from error
        programs.rename(folder)


def _in(host: Host, folder: Path, *command: str) -> None:
    host.do("sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", str(folder), *command, timeout=BUILD_TIMEOUT)


def _last_line(output: str) -> str:
    return next(iter(output.strip().splitlines()[-1:]), "without a word")
