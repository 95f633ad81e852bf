"""Base class of data planes whose BPF programs redirect each frame to the next interface of the chain."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.bpf_programs import describe_program, missing
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.segments import forward_along, patches, start_pods_on_veth, take_all_frames
from podperf.hosts.base import Host
from podperf.model import Chain, NetworkingModel
from podperf.pods.base import Pod


class RedirectedPods(KernelPods):
    """Pods on veth pairs, and a program on each interface of the worker. The subclass chooses the program's hook."""

    model: ClassVar[NetworkingModel] = NetworkingModel.EBPF
    least_pods: ClassVar[int] = 0

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return missing(host)

    @abstractmethod
    def redirect(self, worker: Worker, source: str, target: str) -> None:
        """Redirect frames that arrive at the worker's interface `source` to `target`, a port or a pod's veth pair."""

    def make_ready(self, worker: Worker, pods: Sequence[Pod]) -> None:
        """Prepare the interfaces before frames are redirected to them. By default there is nothing to do."""

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        pods = start_pods_on_veth(worker, chain.pods, undo)
        take_all_frames(worker)
        self.make_ready(worker, pods)
        pairs = patches(worker, pods)
        for source, target in pairs:
            self.redirect(worker, source, target)

        def programs() -> dict[str, Any]:
            return {"programs": {source: describe_program(worker.host, source) for source, _ in pairs}}

        return running_pods(worker, pods, forward_along(pods, worker), programs)
