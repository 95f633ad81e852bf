"""The BPF object that a topology names: its program sees each frame that arrives at an interface of the worker.

The first entry of its map `target` gets the index of the next interface, for programs that redirect. A bridge joins
each two neighbours, for programs that pass frames on (TC_ACT_OK, XDP_PASS).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from podperf.dataplanes.base import Worker
from podperf.dataplanes.bpf_programs import attach_at_tc, attach_at_xdp, set_target
from podperf.dataplanes.redirected_pods import RedirectedPods
from podperf.dataplanes.segments import patches
from podperf.dataplanes.xdp_redirect import take_redirected_frames
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.linux import ip
from podperf.pods.base import Pod
from podperf.topology import BpfObjectSettings


class BpfObject(RedirectedPods):
    """Pods on veth pairs. Each interface of the worker has the program at the hook that the topology names."""

    name: ClassVar[str] = "bpf-object"

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
        attach(worker.host, Path(settings.file), _program(settings), source)
        set_target(worker.host, source, target)


def _settings(worker: Worker) -> BpfObjectSettings:
    if worker.bpf_object is None:
        raise Unavailable("the topology names no BPF object (its key `bpf_object`)")
    if not Path(worker.bpf_object.file).is_file():
        raise PodperfError(f"there is no BPF object {worker.bpf_object.file} (the key `bpf_object.file`)")
    return worker.bpf_object


def _program(settings: BpfObjectSettings) -> tuple[str, str]:
    """The words by which iproute2 chooses a program of an object."""
    if settings.program is not None:
        return "program", settings.program
    return "section", settings.section or settings.hook
