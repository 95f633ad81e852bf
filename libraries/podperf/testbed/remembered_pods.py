"""A pod runtime that remembers the pods it has started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from podperf.allocation import UNLIMITED, PodLimits
from podperf.kernel.sriov import PhysicalFunction
from podperf.pods.base import Attachment, Pod, PodRuntime, PodStarter


class RememberedPods(PodStarter):
    """Another runtime, whose pods are put into the list `started` in the order of their start.

    Each pod has the same `limits`.
    """

    def __init__(self, runtime: PodRuntime, started: list[Pod], limits: PodLimits = UNLIMITED) -> None:
        self._runtime, self._started, self._limits = runtime, started, limits

    def start(self, name: str, attachments: Sequence[Attachment], undo: ExitStack) -> Pod:
        limits = {"limits": self._limits} if self._limits else {}  # a runtime of others may not know them
        pod = self._runtime.start(name, attachments, undo, **limits)
        self._started.append(pod)
        return pod

    def give_functions(
        self, ports: Mapping[str, Sequence[PhysicalFunction]], undo: ExitStack
    ) -> Mapping[str, Sequence[str]] | None:
        return self._runtime.give_functions(ports, undo)

    def describe(self) -> Mapping[str, Any]:
        return self._runtime.describe()
