"""The BPF object that a topology names: its program sees each frame that arrives at an interface of the worker.

The first entry of its map `target` gets the index of the next interface, for programs that redirect. A bridge joins
each two neighbours, for programs that pass frames on (TC_ACT_OK, XDP_PASS).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from podperf.dataplanes.base import Worker
from podperf.dataplanes.bpf_programs import attach_at_tc, attach_at_xdp, programs_in, set_target
from podperf.dataplanes.redirected_pods import RedirectedPods
from podperf.dataplanes.segments import patches
from podperf.dataplanes.xdp_redirect import take_redirected_frames
from podperf.documents.settings import setting
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import ip
from podperf.pods.base import Pod
from podperf.topology import WrongSetting


@dataclass(frozen=True)
class BpfObjectSettings:
    """The BPF object, and the hook of the kernel at which its program runs."""

    file: str = setting(
        "the path of an object file that clang made for the target bpf",
        "A relative path begins at the folder of this file.",
        is_path=True,
        pattern=r"^[^\x00-\x1f]+$",
        examples=["filter.bpf.o"],
    )
    hook: Literal["tc", "xdp"] = setting(
        "tc or xdp",
        "tc: the tc ingress hook. xdp: the XDP hook of the driver, or the generic one if the driver has none.",
    )
    section: str | None = setting(
        "the name of a section",
        "The section of the program. Default: named as the hook, unless `program` is given.",
        default=None,
        pattern="^[A-Za-z0-9_./-]{1,64}$",
        examples=["tc", "xdp"],
    )
    program: str | None = setting(
        "the name of a program",
        "The function of the program, where its section has several or another name.",
        default=None,
        pattern="^[A-Za-z_][A-Za-z0-9_]{0,127}$",
        examples=["filter"],
    )

    def __post_init__(self) -> None:
        if self.section is not None and self.program is not None:
            raise WrongSetting("section", allowed="either `section` or `program`")


class BpfObject(RedirectedPods):
    """Pods on veth pairs. Each interface of the worker has the program at the hook that the topology names."""

    name: ClassVar[str] = "bpf-object"
    settings: ClassVar[type] = BpfObjectSettings

    def make_ready(self, worker: Worker, pods: Sequence[Pod]) -> None:
        settings = _settings(worker)
        if settings.hook == "xdp":
            take_redirected_frames(pods)
        for number, (one, other) in enumerate(patches(worker, pods)[::2]):
            ip(worker.host, "link", "add", f"segment{number}", "type", "bridge", "stp_state", "0")
            ip(worker.host, "link", "set", f"segment{number}", "up")
            for interface in (one, other):
                ip(worker.host, "link", "set", interface, "master", f"segment{number}")

    def redirect(self, worker: Worker, source: str, target: str) -> None:
        settings = _settings(worker)
        attach = attach_at_tc if settings.hook == "tc" else attach_at_xdp
        file = Path(settings.file)
        try:
            attach(worker.host, file, _program(settings), source)
        except PodperfError as error:
            raise PodperfError(f"{file}: {error}{_remedy(worker.host, file, str(error))}") from error
        set_target(worker.host, source, target)


def _settings(worker: Worker) -> BpfObjectSettings:
    settings: BpfObjectSettings | None = worker.settings
    if settings is None:
        raise Unavailable("the topology names no BPF object (its key `data_planes.bpf-object`)")
    if not Path(settings.file).is_file():
        raise PodperfError(f"there is no BPF object {settings.file} (the key `data_planes.bpf-object.file`)")
    return settings


def _remedy(host: Host, file: Path, refusal: str) -> str:
    """The remedy for an object that the kernel or iproute2 refuses. Empty where their words must do."""
    with file.open("rb") as content:
        if content.read(4) != b"\x7fELF":
            return "; it is no BPF object: make one by `clang -O2 -g -target bpf -c`"
    if "doesn't contain" in refusal and (there := programs_in(host, file)):
        return f"; name one of its programs (`data_planes.bpf-object.program`): {', '.join(there)}"
    return ""


def _program(settings: BpfObjectSettings) -> tuple[str, str]:
    """The words by which iproute2 chooses a program of an object."""
    if settings.program is not None:
        return "program", settings.program
    return "section", settings.section or settings.hook
