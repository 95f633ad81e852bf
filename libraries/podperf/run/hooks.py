"""Runs the hooks of a variant: shell commands of the user before and after the set-up, and their undo commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

from podperf.comparisons import Hook, Moment, Variant
from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Host
from podperf.hosts.way_back import WayBack, existing_namespace, inside
from podperf.pods.base import Pod
from podperf.testbed.machines import WorkerMachine
from podperf.testbed.system_under_test import SystemUnderTest, WorkerSite

TIMEOUT = 60.0  # seconds, for one command
PORTS = "PODPERF_PORTS"  # the environment variable with the interfaces of a worker or of a pod


def run_before(variant: Variant, machines: Iterable[WorkerMachine], undo: ExitStack) -> None:
    """Run the hooks before the set-up, on the machines of the chain's workers. Their undo commands run at `undo`."""
    for hook in _at(variant, Moment.BEFORE):
        for machine in machines:
            ports = [port.interface for port in (machine.settings.left, machine.settings.right) if port is not None]
            if hook.undo is not None:
                WayBack(machine.host, undo).note(_name(variant, hook), *_command(hook.undo, ports))
            _run(variant, hook, machine.host, ports)


def run_after(variant: Variant, sut: SystemUnderTest, undo: ExitStack) -> None:
    """Run the hooks after the set-up, in the networks of the chain's workers and pods. The same of their undo."""
    sites = [part.site for part in sut.parts if part.site is not None]
    for hook in _at(variant, Moment.AFTER):
        if hook.place == "worker":
            for site in sites:
                _run_on_worker(variant, hook, site, undo)
        else:
            for pod in _pods(variant, hook, sites):
                if hook.undo is not None:
                    undo.callback(_run, variant, hook, pod.host, list(pod.interfaces), hook.undo)
                _run(variant, hook, pod.host, list(pod.interfaces))


def _at(variant: Variant, moment: Moment) -> Iterator[Hook]:
    return (each for each in variant.hooks if each.moment is moment)


def _run_on_worker(variant: Variant, hook: Hook, site: WorkerSite, undo: ExitStack) -> None:
    if hook.undo is not None:
        namespace = site.worker.namespace
        command = inside(namespace, *_command(hook.undo, site.ports))
        WayBack(site.machine, undo).note(_name(variant, hook), *command, of=existing_namespace(namespace))
    _run(variant, hook, site.worker.host, site.ports)


def _pods(variant: Variant, hook: Hook, sites: Iterable[WorkerSite]) -> Sequence[Pod]:
    """The pods in which the hook runs."""
    pods = [pod for site in sites for pod in site.pods]
    if hook.pod is None:
        return pods
    if hook.pod > len(pods):
        raise PodperfError(f"{_name(variant, hook)}: the chain {variant.chain} has no pod of this number")
    return [pods[hook.pod - 1]]


def _run(variant: Variant, hook: Hook, host: Host, ports: Sequence[str], command: str | None = None) -> None:
    try:
        host.do(*_command(command or hook.run, ports), timeout=TIMEOUT)
    except CommandFailed as error:
        how = "did not end in 60 s" if error.exit_code is None else f"ended with exit code {error.exit_code}"
        said = error.output.strip() or "it said nothing"
        raise PodperfError(f"{_name(variant, hook, command)} {how}: {said}") from error


def _command(shell: str, ports: Sequence[str]) -> tuple[str, ...]:
    return "env", f"{PORTS}={' '.join(ports)}", "sh", "-e", "-c", shell


def _name(variant: Variant, hook: Hook, command: str | None = None) -> str:
    """The hook in messages: its variant, its place in the file, and its moment."""
    undo = "the undo of " if command else ""
    return f"{undo}hook {variant.hooks.index(hook) + 1} of variant {variant.name!r} ({hook.moment}, in {hook.place})"
