"""Checks of a topology file that a JSON Schema cannot express. Their messages use the words of the schema."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

from podperf.addressing import TEST_NETWORK
from podperf.cpu_lists import parse_cpu_list
from podperf.documents.schema_check import suggestion
from podperf.documents.yaml_document import Document, Pointer, Problem
from podperf.metrics import METRICS, RATIO
from podperf.model import FrameSize
from podperf.topology.settings import KindSettings

_SIDES = ("left", "right")
_TESTER: Pointer = ("tester",)


class Sound:
    """The part of a document that satisfies the schema. All other checks read only this part."""

    def __init__(self, document: Document, violations: Collection[Pointer], tester: KindSettings | None = None) -> None:
        """`tester` has the settings of the tester's type, unless they have problems."""
        self.document = document
        self.tester = tester
        self._violations = violations

    def whole(self, key: str) -> bool:
        """True if nothing below this key of the top level violates the schema."""
        return not any(pointer[:1] == (key,) for pointer in self._violations)

    def given(self, *pointer: str | int) -> bool:
        """True if the file has this key, with any value."""
        return pointer in self.document.lines

    def value(self, *pointer: str | int) -> Any:
        """The value at `pointer`. None if it is absent or violates the schema."""
        value: Any = self.document.data
        for length, step in enumerate(pointer, start=1):
            if pointer[:length] in self._violations:
                return None
            value = value.get(step) if isinstance(step, str) else value[step]
            if value is None:
                return None
        return value

    def cpus(self, *pointer: str | int) -> tuple[int, ...] | None:
        """The CPU list at `pointer`, as the file has it: YAML reads the mask 0xff0 as 4080. ValueError if it is wrong.

        None if it is absent, `auto` or violates the schema.
        """
        given = self.value(*pointer)
        return None if given in {None, "auto"} else parse_cpu_list(self.document.texts[pointer])

    def problem(self, pointer: Pointer, allowed: str, *, found: str = "") -> Problem:
        """The problem of the value at `pointer`, or of `found`, which describes it in words."""
        return self.document.problem(
            pointer, f"found {found or self.document.shown(pointer, self.value(*pointer))}; allowed: {allowed}"
        )


def disagreements(
    sound: Sound, data_planes: Collection[str] | None, pod_runtimes: Collection[str] | None, testers: Collection[str]
) -> Iterator[Problem]:
    """The problems that a schema cannot find: keys that contradict each other, wrong CPU lists, wrong addresses."""
    workers = _workers(sound)
    for pointer in ((*_TESTER, "cpus"), *((*worker, key) for worker in workers for key in ("cpus", "switch_cpus"))):
        try:
            sound.cpus(*pointer)
        except ValueError as error:
            yield sound.problem(pointer, f"auto or a list of CPUs such as 0 or 2-5,7, not a mask ({error})")
    for worker in workers:
        yield from _switch_disagreements(sound, worker)
    yield from _port_disagreements(sound)
    yield from _unknown_name(sound, (*_TESTER, "type"), testers)
    yield from _tester_type_disagreements(sound)
    yield from _tester_machine_disagreements(sound)
    for worker in workers:
        yield from _worker_disagreements(sound, worker, of_several=len(workers) > 1)
        yield from _counted_disagreements(sound, worker)
    yield from _black_box_disagreements(sound, workers)
    yield from _address_clashes(sound)
    yield from _cable_disagreements(sound)
    yield from _unknown_name(sound, ("pods", "runtime"), pod_runtimes)
    thresholds = sound.value("thresholds")
    for position in range(len(thresholds or ())):
        yield from _threshold_disagreements(sound, ("thresholds", position), data_planes)


def _workers(sound: Sound) -> list[Pointer]:
    """The workers, from left to right. There is one also if the file names none."""
    return [("workers", number) for number in range(max(1, len(sound.value("workers") or ())))]


def _switch_disagreements(sound: Sound, here: Pointer) -> Iterator[Problem]:
    pointer = (*here, "switch_cpus")
    cpus, worker = sound.value(*pointer), sound.value(*here, "cpus")
    if cpus in {None, "auto"}:
        return
    if worker in {None, "auto"}:
        yield sound.problem(pointer, "auto, unless `cpus` beside it names the worker's CPUs")
        return
    with suppress(ValueError):  # a malformed list is reported elsewhere
        if not set(sound.cpus(*pointer) or ()) <= set(sound.cpus(*here, "cpus") or ()):
            yield sound.problem(pointer, f"CPUs of `cpus` beside it, which are {worker}")


def _port_disagreements(sound: Sound) -> Iterator[Problem]:
    ports = [("tester", "ports", side) for side in _SIDES]
    existing = [sound.given(*port, "interface") for port in ports]
    for port, exists in zip(ports, existing, strict=True):
        for key in ("namespace", "destination_mac", "destination_address"):
            if sound.given(*port, key) and not any(existing) and (key == "namespace" or _has_kernel_ports(sound)):
                yield sound.problem((*port, key), "only beside `interface`, for an existing interface")
        address = sound.value(*port, "destination_address")
        if address is not None and not _in_test_network(address):
            yield sound.problem((*port, "destination_address"), f"an IPv4 address within {TEST_NETWORK}")
        for key in ("gateway", "own_address"):
            if (found := sound.value(*port, key)) is not None and not _is_address(found):
                yield sound.problem((*port, key), "an IPv4 or IPv6 address")
            if found is not None and not exists:
                yield sound.problem((*port, key), "only beside `interface`, for the software tester at a black box")
        if sound.given(*port, "gateway") and sound.given(*port, "destination_mac"):
            yield sound.problem((*port, "gateway"), "only without `destination_mac`: it is the gateway's")
        if exists and not all(existing):
            yield _only_one(sound, port)
    left, right = ([sound.value(*port, key) for key in ("namespace", "interface")] for port in ports)
    if left[1] is not None and left == right:
        yield sound.problem((*ports[1], "interface"), "another interface than the left port's")


def _only_one(sound: Sound, port: Pointer) -> Problem:
    found = "one for this port only"
    return sound.problem((*port, "interface"), "one for both ports, or for neither", found=found)


def _has_own_ports(sound: Sound) -> bool:
    """True if the tester's ports are no interfaces that podperf knows. False also where that is not known."""
    return sound.tester is not None and sound.tester.has_ports_of_its_own


def _black_box_disagreements(sound: Sound, workers: Collection[Pointer]) -> Iterator[Problem]:
    existing = sound.given(*_TESTER, "ports", "left", "interface") or not _has_kernel_ports(sound)
    if sound.given("black_box") and (not existing or any(sound.given(*worker, "ports") for worker in workers)):
        allowed = "only beside existing ports (`tester.ports`), without ports of a worker"
        yield sound.problem(("black_box",), allowed, found="a black box")


def _has_kernel_ports(sound: Sound) -> bool:
    """True if the tester's ports are interfaces of the kernel. False also where that is not known."""
    return sound.tester is not None and not sound.tester.has_ports_of_its_own


def _tester_type_disagreements(sound: Sound) -> Iterator[Problem]:
    """Ports of the kernel for a tester that has ports of its own."""
    named = next((side for side in _SIDES if sound.given("tester", "ports", side, "interface")), None)
    if named is not None and _has_own_ports(sound):
        pointer = ("tester", "ports", named, "interface")
        yield sound.problem(pointer, "nothing, as this tester has ports of its own (tester.settings)")


def _address_disagreements(sound: Sound, machine: Pointer) -> Iterator[Problem]:
    remote, address = sound.value(*machine, "connection") == "ssh", (*machine, "ssh", "address")
    if remote and not sound.given(*address):
        yield sound.problem(address, "a host name or an IP address, as `connection: ssh` needs it", found="nothing")
    elif sound.given(*address) and not remote:
        yield sound.problem(address, "only with `connection: ssh`")


def _one_machine(sound: Sound) -> bool:
    return all(sound.value(*worker, "ssh") == sound.value(*_TESTER, "ssh") for worker in _workers(sound))


def _all_here(sound: Sound) -> bool:
    """Whether all workers and the tester are on this machine, and the run makes their ports."""
    local = all(sound.value(*worker, "connection") == "local" for worker in _workers(sound))
    return local and sound.value("tester", "connection") != "ssh"


def _in_virtual_row(sound: Sound) -> bool:
    """Whether the run boots all workers, or all but one, which is this machine."""
    connections = [sound.value(*worker, "connection") for worker in _workers(sound)]
    return set(connections) <= {"local", "virtual"} and "virtual" in connections and connections.count("local") <= 1


def _in_counted_machine(sound: Sound) -> bool:
    """Whether one counted machine has all workers."""
    return all(sound.value(*worker, "connection") == "counted" for worker in _workers(sound))


def _any_worker_is(sound: Sound, connection: str) -> bool:
    return any(sound.value(*worker, "connection") == connection for worker in _workers(sound))


def _tester_machine_disagreements(sound: Sound) -> Iterator[Problem]:
    yield from _address_disagreements(sound, _TESTER)
    here = ("tester", "connection")
    if sound.value(*here) != "ssh":
        return
    if sound.tester is not None and sound.tester.runs_already:
        allowed = "local with a tester that runs already, which its settings reach"
        yield sound.problem(here, allowed)
    elif _any_worker_is(sound, "virtual"):
        yield sound.problem(here, "local with a virtual worker, as the run makes its cables on this machine")
    elif _any_worker_is(sound, "counted"):
        yield sound.problem(here, "local with a counted machine, which has the tester inside")
    elif _has_kernel_ports(sound) and not (_one_machine(sound) or sound.given("tester", "ports", "left", "interface")):
        allowed = "interfaces for left and right, as a run makes no cable from another machine"
        yield sound.problem(("tester", "ports"), allowed, found="nothing")


def _worker_disagreements(sound: Sound, worker: Pointer, *, of_several: bool) -> Iterator[Problem]:
    connection = sound.value(*worker, "connection")
    together = {"ssh": True, "virtual": _in_virtual_row(sound), "counted": _in_counted_machine(sound)}
    if of_several and not together.get(connection):
        there, made = (*worker, "connection"), _all_here(sound) or _in_virtual_row(sound)
        if sound.value(*worker) is not None and (connection is not None or not sound.given(*there)) and not made:
            allowed = "ssh for each of several workers, local or counted for all, or virtual for all but one local one"
            yield sound.problem(there, allowed)
        if made and sound.given(*worker, "ports"):
            yield sound.problem((*worker, "ports"), "nothing, as the run makes the cables of several workers here")
        return
    yield from _address_disagreements(sound, worker)
    if connection in {"virtual", "counted"}:
        yield from _virtual_disagreements(sound, worker)
        first = worker == _workers(sound)[0]
        if connection == "counted" and first and sound.value("tester", "type") not in {None, "software"}:
            yield sound.problem(("tester", "type"), "software with `connection: counted`")
        return
    existing = _existing_ports(sound, worker)
    for port, exists in existing.items():
        if of_several and not exists:
            yield sound.problem((*port, "interface"), "an interface of this worker", found="nothing")
        elif exists and not of_several and not all(existing.values()):
            yield _only_one(sound, port)
    yield from _worker_port_disagreements(sound, worker)
    if connection == "ssh" and not of_several and not any(existing.values()) and not _one_machine(sound):
        allowed = "interfaces for left and right, as a run makes no cable to another machine"
        yield sound.problem((*worker, "ports"), allowed, found="nothing")


def _counted_disagreements(sound: Sound, worker: Pointer) -> Iterator[Problem]:
    here = (*worker, "counted")
    if sound.given(*here) and sound.value(*worker, "connection") != "counted":
        yield sound.problem(here, "only with `connection: counted`", found="settings of a counted machine")
    elif sound.given(*here) and worker != _workers(sound)[0]:
        allowed = "only for the first worker, as one counted machine has all of them"
        yield sound.problem(here, allowed, found="settings of a counted machine")
    kernel = (*here, "kernel")
    if sound.given(*kernel, "image") and sound.given(*kernel, "package"):
        yield sound.problem((*kernel, "image"), "either `package` or `image`", found="both")
    if sound.given(*kernel, "modules") and not sound.given(*kernel, "image"):
        yield sound.problem((*kernel, "modules"), "only beside `image`; a package has its modules")
    for number in range(len(sound.value(*here, "hooks") or ())):
        hook = (*here, "hooks", number)
        if sound.given(*hook, "run") == sound.given(*hook, "program"):
            found = "both" if sound.given(*hook, "run") else "neither"
            yield sound.problem(hook, "either `run` or `program`", found=found)


def _existing_ports(sound: Sound, worker: Pointer) -> dict[Pointer, bool]:
    """The ports of a worker, and whether the topology names an interface for each."""
    ports: list[Pointer] = [(*worker, "ports", side) for side in _SIDES]
    return {port: sound.given(*port, "interface") for port in ports}


def _worker_port_disagreements(sound: Sound, worker: Pointer) -> Iterator[Problem]:
    existing = _existing_ports(sound, worker)
    for port, exists in existing.items():
        for key in ("pci", "driver"):
            if sound.given(*port, key) and not exists:
                yield sound.problem((*port, key), "only beside `interface`")
    for key in ("interface", "pci"):
        left, right = (sound.value(*port, key) for port in existing)
        if left is not None and left == right:
            yield sound.problem((*worker, "ports", "right", key), "another one than the left port's")


def _address_clashes(sound: Sound) -> Iterator[Problem]:
    """Each of several workers is a separate machine."""
    workers = _workers(sound)
    addresses = [(*worker, "ssh", "address") for worker in workers if len(workers) > 1]
    taken = [sound.value(*_TESTER, "ssh", "address")]
    for pointer in addresses:
        address = sound.value(*pointer)
        if address is not None and address in taken:
            yield sound.problem(pointer, "a machine that is neither the tester's nor another worker")
        taken.append(address)


def _virtual_disagreements(sound: Sound, worker: Pointer) -> Iterator[Problem]:
    """The run makes both ends of the cables of a virtual worker."""
    first = next(
        each for each in _workers(sound) if sound.value(*each, "connection") == sound.value(*worker, "connection")
    )
    machines = (_TESTER, worker) if worker == first else (worker,)
    for machine in machines:
        for side in _SIDES:
            for key in ("interface", "pci", "driver"):
                if sound.given(*machine, "ports", side, key):
                    allowed = "nothing, as the run makes the ports of a virtual worker"
                    yield sound.problem((*machine, "ports", side, key), allowed)
    if _TESTER in machines and _has_own_ports(sound):
        allowed = "with `connection: virtual` software, or a TRex that podperf starts on ports of the kernel"
        yield sound.problem(("tester", "type"), allowed)


def _cable_disagreements(sound: Sound) -> Iterator[Problem]:
    """Checks the tester's ends of the cables to the first worker's left port and to the last worker's right port."""
    workers = _workers(sound)
    if _any_worker_is(sound, "virtual") or not all(
        exists for each in workers for exists in _existing_ports(sound, each).values()
    ):
        return
    for side, worker in zip(_SIDES, (workers[0], workers[-1]), strict=True):
        port = ("tester", "ports", side)
        if _has_kernel_ports(sound) and not sound.given(*port, "interface"):
            allowed = f"the interface that is cabled to {sound.document.key((*worker, 'ports', side))}"
            yield sound.problem((*port, "interface"), allowed, found="nothing")
        for key in ("destination_mac", "destination_address", "gateway", "own_address"):
            if sound.given(*port, key):
                yield sound.problem((*port, key), "only for a black box, without ports of a worker")


def _is_address(text: str) -> bool:
    with suppress(ValueError):
        ipaddress.ip_address(text)
        return True
    return False


def _in_test_network(address: str) -> bool:
    with suppress(ValueError):
        return ipaddress.IPv4Address(address) in TEST_NETWORK
    return False


def _threshold_disagreements(sound: Sound, here: Pointer, data_planes: Collection[str] | None) -> Iterator[Problem]:
    metric, unit, minimum = (sound.value(*here, key) for key in ("metric", "unit", "minimum"))
    if metric is not None:
        quantity = METRICS[metric].quantity
        bound, kind = quantity.bound, f"a {quantity.noun}"
        unfit = "maximum" if quantity.more_is_better else "minimum"
        units = (RATIO, *(each.name for each in quantity.units))
        if sound.given(*here, unfit):
            yield sound.problem((*here, unfit), f"`{bound}` for {kind}", found=f"a {unfit} for {metric}")
        elif not sound.given(*here, bound):
            yield sound.problem((*here, bound), f"a number above 0, as {kind} needs it", found="nothing")
        if unit is not None and unit not in units:
            yield sound.problem((*here, "unit"), f"{', '.join(units)} for {metric}")
        elif unit == RATIO and quantity.more_is_better and minimum is not None and minimum > 1:
            yield sound.problem((*here, "minimum"), "a ratio above 0 and up to 1 (0.5 is half of the baseline)")
    frame = sound.value(*here, "frame")
    if isinstance(frame, str):
        try:
            FrameSize.parse(frame)
        except ValueError:
            yield sound.problem((*here, "frame"), "a frame size of 64 to 9022 bytes (with FCS), or a mix such as IMIX")
    yield from _unknown_name(sound, (*here, "data_plane"), data_planes)


def _unknown_name(sound: Sound, pointer: Pointer, known: Collection[str] | None) -> Iterator[Problem]:
    """The name of a part that podperf does not have."""
    name = sound.value(*pointer)
    if known is not None and name is not None and name not in known:
        yield sound.problem(pointer, ", ".join(sorted(known)) + suggestion(name, known))
