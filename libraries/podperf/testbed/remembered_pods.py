"""A pod runtime that remembers the pods it has started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from podperf.pods.base import Attachment, Pod, PodStarter


class RememberedPods(PodStarter):
    """Another runtime, whose pods are put into the list `started` in the order of their start."""

    def __init__(self, runtime: PodStarter, started: list[Pod]) -> None:
        self._runtime, self._started = runtime, started

    def start(self, name: str, attachments: Sequence[Attachment], undo: ExitStack) -> Pod:
        pod = self._runtime.start(name, attachments, undo)
        self._started.append(pod)
        return pod

    def describe(self) -> Mapping[str, Any]:
        return self._runtime.describe()
