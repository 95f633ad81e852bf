"""Kernel parameters and nftables rules that a topology wants on a counted machine, and in the namespaces of a chain."""

from __future__ import annotations

from pathlib import Path

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Host
from podperf.hosts.namespaces import PREFIX, namespaces_named
from podperf.hosts.network_namespace import NetworkNamespace
from podperf.topology import CountedSettings, Place


def apply(host: Host, place: Place, settings: CountedSettings) -> None:
    """Set the parameters and rules of this place on a host. PodperfError, in one line, if the kernel refuses one."""
    for name, value in settings.sysctls.get(place, {}).items():
        _do(host, f"the kernel parameter {name}={value}", "sysctl", "-qw", f"{name}={value}")
    for file in settings.nftables.get(place, ()):
        rules = _read(file)
        _do(host, f"the rules of {file}", "nft", "-f", "-", stdin=rules)


def apply_to_chain(machine: Host, worker: Host, settings: CountedSettings) -> None:
    """Set those of the worker and of the pods, when a chain stands on a counted machine."""
    if settings.sysctls.get("worker") or settings.nftables.get("worker"):
        apply(worker, "worker", settings)
    if settings.sysctls.get("pods") or settings.nftables.get("pods"):
        for name in namespaces_named(machine, f"{PREFIX}pod"):
            apply(NetworkNamespace(name, machine), "pods", settings)


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise PodperfError(f"cannot read the rules of {file}: {error}") from error


def _do(host: Host, what: str, *command: str, stdin: str | None = None) -> None:
    try:
        host.do(*command, stdin=stdin)
    except CommandFailed as error:
        said = " ".join(error.output.split())[:300]
        raise PodperfError(f"{host.name} does not take {what}: {said}") from error
