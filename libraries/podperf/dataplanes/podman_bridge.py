"""Podman's own networks of the driver `bridge`, with published ports."""

from __future__ import annotations

from typing import ClassVar

from podperf.dataplanes.docker_bridge import DockerBridge
from podperf.dataplanes.engine_daemons import EngineDaemon, PodmanService


class PodmanBridge(DockerBridge):
    """One network of Podman for each segment. Its program netavark makes bridges and rules."""

    name: ClassVar[str] = "podman-bridge"
    daemon: ClassVar[type[EngineDaemon]] = PodmanService
