"""Kernel parameters, nftables rules and hooks that a topology wants on a counted machine and in networks of a chain.

All are tried, and the error tells all that are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Host
from podperf.testbed.hooks import chosen, run_hook
from podperf.testbed.system_under_test import WorkerSite
from podperf.topology import CountedSettings, Hook, Place

MACHINE_TIMEOUT = 300.0  # seconds, for a hook that prepares the machine


class InputsRefused(PodperfError):
    """The machine does not take inputs of the user. `problems` has one for each: what, where, why and what to do."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def change_machine(machine: Host, settings: CountedSettings) -> None:
    """Set the parameters and rules of the machine itself, then run its hooks. InputsRefused if one is refused."""
    steps = [*_kernel(machine, "machine", settings)]
    for name, hook in _hooks(settings):
        if hook.place == "machine":
            steps.append(partial(run_hook, name, hook, machine, timeout=MACHINE_TIMEOUT))
    _take(steps)


def change_chain(sites: Sequence[WorkerSite], settings: CountedSettings) -> None:
    """The same for workers and pods of a chain that stands. A hook of a pod that the chain lacks is left out."""
    pods = [pod for site in sites for pod in site.pods]
    steps = [step for site in sites for step in _kernel(site.worker.host, "worker", settings)]
    for pod in pods:
        steps += _kernel(pod.host, "pods", settings)
    for name, hook in _hooks(settings):
        if hook.place == "worker":
            steps += (partial(run_hook, name, hook, site.worker.host, site.ports) for site in sites)
        elif hook.place != "machine":
            steps += (partial(run_hook, name, hook, pod.host, [*pod.interfaces]) for pod in chosen(hook, pods))
    _take(steps)


def _take(steps: Sequence[Callable[[], None]]) -> None:
    problems: dict[str, None] = {}  # each once, as all pods may say the same
    for step in steps:
        try:
            step()
        except PodperfError as error:
            problems[str(error)] = None
    if problems:
        raise InputsRefused([*problems])


def _hooks(settings: CountedSettings) -> Iterator[tuple[str, Hook]]:
    """The hooks with their names in messages."""
    for number, hook in enumerate(settings.hooks):
        what = f" {hook.program}" if hook.program is not None else ""
        yield f"the hook{what} (`hooks[{number}]` of the counted machine, in {hook.place})", hook


def _kernel(host: Host, place: Place, settings: CountedSettings) -> Iterator[Callable[[], None]]:
    for name, value in settings.sysctls.get(place, {}).items():
        yield partial(_set, host, place, name, value)
    for file in settings.nftables.get(place, ()):
        yield partial(_load, host, place, file)


def _set(host: Host, place: Place, name: str, value: str) -> None:
    try:
        host.do("sysctl", "-qw", f"{name}={value}")
    except CommandFailed as error:
        remedy = "correct the value"
        if "No such file" in error.output:
            elsewhere = (
                "or load its module and set it by a hook"
                if place == "machine"
                else "or write it under `sysctls.machine`, if it is none of a network namespace"
            )
            remedy = f"there is no such parameter: correct the name, {elsewhere}"
        text = f"the kernel does not take {name}={value} (`sysctls.{place}` of the counted machine)"
        raise PodperfError(f"{text}: {_said(error)}; {remedy}") from error


def _load(host: Host, place: Place, file: str) -> None:
    where = f"the rules of {file} (`nftables.{place}` of the counted machine)"
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise PodperfError(f"cannot read {where}: {error.strerror}") from error
    rules = content.decode(errors="replace")
    if "\0" in rules or "\N{REPLACEMENT CHARACTER}" in rules:
        what = "an ELF file" if content.startswith(b"\x7fELF") else "not text"
        raise PodperfError(f"nft cannot read {where}: it is {what}; name a file for `nft -f`")
    try:
        host.do("nft", "-f", "-", stdin=rules)
    except CommandFailed as error:
        said = _said(error).replace("/dev/stdin", Path(file).name)
        raise PodperfError(f"the kernel does not take {where}: {said}; correct it, or its place") from error


def _said(error: CommandFailed) -> str:
    return " ".join(error.output.split())[:300] or "it said nothing"
