"""The virtual worker's pure parts: QEMU's arguments, the image's recipe, and the topology with the worker in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from podperf.errors import PodperfError
from podperf.hosts.base import Completed, Host, Process
from podperf.hosts.local import LocalHost
from podperf.methods.trials import ValidTrials
from podperf.model import Trial, TrialResult
from podperf.testers.base import UNPACED, TesterLimits
from podperf.topology import PortSettings, SshSettings, WorkerPortSettings, load_topology
from podperf.virtual_worker import boot, image
from podperf.virtual_worker.boot import (
    LEFT,
    RIGHT,
    Accelerator,
    Machine,
    ThisMachine,
    VirtualLab,
    VirtualWorker,
    WorkerRow,
    qemu_command,
)
from podperf.virtual_worker.image import Image, Recipe, usual_recipe
from traffic import TRAFFIC

TOPOLOGIES = Path(__file__).parents[1] / "topologies"
IMAGE = Image(Path("/cache/1234"))


def command(accelerator: Accelerator = "tcg") -> str:
    return " ".join(qemu_command(Machine(IMAGE, accelerator, 40022)))


def test_the_worker_reaches_nothing_and_is_reached_on_the_loopback_only() -> None:
    (management,) = re.findall(r"-netdev (user\S+)", command())
    assert "restrict=on" in management
    assert re.findall(r"hostfwd=\S+", management) == ["hostfwd=tcp:127.0.0.1:40022-:22"]


def test_the_image_is_never_written_to() -> None:
    assert "file=/cache/1234/disk.raw,format=raw,if=none,id=disk,snapshot=on" in command()


def test_kvm_leaves_interrupt_remapping_to_the_emulated_iommu() -> None:
    assert "-accel kvm,kernel-irqchip=split" in command("kvm")
    assert "kvm" not in command("tcg")


@pytest.mark.parametrize(
    "other",
    [
        Recipe(packages=("linux-image-amd64",)),
        Recipe(suite="trixie"),
        Recipe(init="#!/bin/sh\n"),
        Recipe(sshd="UsePAM yes\n"),
        Recipe(left_out=("/usr/share/doc/*",)),
        Recipe(disk_mib=4096),
    ],
)
def test_whatever_changes_the_image_changes_its_digest(other: Recipe) -> None:
    assert other.digest != Recipe().digest


def test_the_digest_stays_while_nothing_changes() -> None:
    assert Recipe().digest == replace(Recipe(init="x"), init="").digest
    assert re.fullmatch("[0-9a-f]{16}", usual_recipe().digest)


class Machinery:
    """A host that has these commands, whose QEMU knows these devices."""

    name = "a machine"

    def __init__(self, commands: set[str], devices: str = 'name "igb", bus PCI') -> None:
        self._commands, self._devices = commands, devices

    def ask(self, *words: str, check: bool = True, **_: object) -> Completed:
        if words[0] == "which":
            return Completed(words, int(words[1] not in self._commands), "", "")
        return Completed(words, 0, self._devices, "")


ALL = {command for command, _ in boot.COMMANDS}


def test_what_is_missing_is_named_with_the_remedy() -> None:
    assert boot.unavailable(Machinery(ALL)) is None  # type: ignore[arg-type]
    reason = boot.unavailable(Machinery(ALL - {"mmdebstrap", "qemu-system-x86_64"}))  # type: ignore[arg-type]
    assert reason is not None
    assert "mmdebstrap, qemu-system-x86;" in reason and "sudo ./podperf set-up virtual-worker" in reason


def test_a_qemu_without_virtual_functions_is_named() -> None:
    reason = boot.unavailable(Machinery(ALL, devices='name "igbvf", bus PCI'))  # type: ignore[arg-type]
    assert reason is not None and "no igb" in reason


def test_a_booted_worker_is_a_lab_to_all_that_follows() -> None:
    topology = load_topology(TOPOLOGIES / "virtual.yaml")
    assert not topology.external
    ssh = SshSettings("127.0.0.1", 40022, "root", "/cache/id", "/cache/known_hosts")
    ports = (WorkerPortSettings(LEFT.interface, LEFT.pci), WorkerPortSettings(RIGHT.interface, RIGHT.pci))
    worker = VirtualWorker(ssh, ports, None)  # type: ignore[arg-type]
    ends = (PortSettings("left", "podperf-ports"), PortSettings("right", "podperf-ports"))
    booted = VirtualLab((worker,), ends)
    lab = booted.as_lab(topology)
    assert (lab.workers[0].connection, lab.workers[0].ssh) == ("ssh", ssh)
    assert (lab.tester.left.interface, lab.tester.right.namespace) == ("left", "podperf-ports")
    assert lab.workers[0].right is not None and lab.workers[0].right.pci == RIGHT.pci
    assert not lab.external, "every data plane is measured, as in a lab"
    assert lab.tester.maximum_load == 5000, "more the emulated cards lose by themselves"
    assert "emulated" in lab.not_comparable
    own = replace(topology, not_comparable="mine", tester=replace(topology.tester, maximum_load=800.0))
    assert (booted.as_lab(own).not_comparable, booted.as_lab(own).tester.maximum_load) == ("mine", 800)
    second = replace(worker, ssh=replace(ssh, port=40023))
    pair = VirtualLab((worker, second), ends).as_lab(load_topology(TOPOLOGIES / "two_virtual_workers.yaml"))
    assert [each.ssh.port for each in pair.workers] == [40022, 40023]
    assert not pair.external and not pair.one_machine


def test_two_workers_have_a_cable_that_nobody_else_reaches_and_different_addresses() -> None:
    first, second = (
        qemu_command(Machine(IMAGE, "tcg", 40022 + number, number, WorkerRow((True, True)))) for number in range(2)
    )
    one, other = "/cache/1234/cable-0-right", "/cache/1234/cable-1-left"
    assert [word for word in first if word.startswith(("tap,", "dgram,"))] == [
        "tap,id=left,ifname=podperf-0-left,script=no,downscript=no",
        f"dgram,id=right,local.type=unix,local.path={one},remote.type=unix,remote.path={other}",
    ]
    assert [word for word in second if word.startswith(("tap,", "dgram,"))] == [
        f"dgram,id=left,local.type=unix,local.path={other},remote.type=unix,remote.path={one}",
        "tap,id=right,ifname=podperf-1-right,script=no,downscript=no",
    ]
    macs = re.findall(r"mac=([0-9a-f:]+)", " ".join([*first, *second]))
    assert len(set(macs)) == 4


def test_a_worker_of_this_machine_has_the_taps_of_the_virtual_ones_beside_it() -> None:
    row = WorkerRow((True, False, True))
    taps = [
        word for number in (0, 2) for word in qemu_command(Machine(IMAGE, "tcg", 40022, number, row)) if "tap" in word
    ]
    assert [re.findall("ifname=([^,]+)", word) for word in taps] == [
        ["podperf-0-left"],
        ["podperf-0-right"],
        ["podperf-2-left"],
        ["podperf-2-right"],
    ]
    assert (row.interface(1, "left"), row.interface(1, "right")) == ("podperf-0-right", "podperf-2-left")
    assert WorkerRow((False, True)).interface(0, "left") == "podperf-0-left", "cabled to the tester's port"


def test_a_worker_of_this_machine_beside_a_virtual_one_keeps_its_connection() -> None:
    topology = load_topology(TOPOLOGIES / "host_and_virtual_worker.yaml")
    inside = (WorkerPortSettings(LEFT.interface, LEFT.pci), WorkerPortSettings(RIGHT.interface, RIGHT.pci))
    virtual = VirtualWorker(SshSettings("127.0.0.1", 40022), inside, None)  # type: ignore[arg-type]
    here = (WorkerPortSettings("podperf-0-left"), WorkerPortSettings("podperf-1-left"))
    ends = (PortSettings("left", "podperf-ports"), PortSettings("right", "podperf-ports"))
    lab = VirtualLab((ThisMachine(here), virtual), ends).as_lab(topology)
    assert [each.connection for each in lab.workers] == ["local", "ssh"]
    assert lab.workers[0].left == here[0] and lab.workers[1].left == inside[0]
    assert not lab.one_machine and lab.uses_this_machine and lab.existing_ports and not lab.external


def test_only_root_reaches_the_keys_of_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []

    def adapt(_host: Host, _recipe: Recipe, half: Path) -> None:
        modes.append(half.stat().st_mode & 0o777)
        raise PodperfError("that will do")

    monkeypatch.setattr(image, "gather_packages", lambda *_: None)
    monkeypatch.setattr(image, "_adapt", adapt)
    with pytest.raises(PodperfError, match="that will do"):
        image.build(LocalHost(), Recipe(), tmp_path / "abcd", lambda _: None, image.disk_and_initramfs)
    assert modes == [0o700]


def test_a_build_that_fails_leaves_nothing_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "CACHE", tmp_path)

    class Ended:
        def __init__(self) -> None:
            self.lines = iter(["I: downloading packages with apt...", "E: the mirror does not answer"])

        def receive(self, timeout: float, assumed: str | None = None) -> str:
            line = next(self.lines, None)
            if line is None:
                raise PodperfError("it ended with exit code 1")
            return line

        def stop(self, timeout: float = 5.0) -> None:
            pass

    class Builder(LocalHost):
        def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
            return Ended()  # type: ignore[return-value]

    said: list[str] = []
    with pytest.raises(PodperfError, match="the mirror does not answer"):
        image.build(Builder(), Recipe(), tmp_path / "abcd", said.append, image.disk_and_initramfs)
    assert [each.name for each in tmp_path.iterdir()] == [image.LOG]
    assert "virtual machine: downloading packages with apt..." in said


def test_a_topology_holds_the_tester_to_a_load() -> None:
    limits = TesterLimits(4e6, 0.0, "calibration on the bare path")
    assert limits.held_to(None) is limits
    weaker = limits.held_to(5e6)
    assert weaker.source == limits.source, "a tester that can do less has its own limit"
    assert weaker.held and weaker.maximum_load == 4e6, "and does not send as fast as it can: that may be more"
    held = limits.held_to(5000)
    assert held.maximum_load == 5000 and held.held

    class Counting:
        loads: ClassVar[list[float]] = []
        shortest_trial: ClassVar[float] = 0.0
        broken = False

        def measure(self, trial: Trial) -> TrialResult:
            self.loads.append(trial.load)
            return TrialResult(trial, 0.0, ())

    trials = ValidTrials(Counting(), TRAFFIC, held)  # type: ignore[arg-type]
    trials.measure(UNPACED, 1.0)
    trials.measure(1000, 1.0)
    assert Counting.loads == [5000, 1000], "as fast as it can is no faster than it may"


class Console:
    """A process that says these lines, with these errors, and ends."""

    pid = 1

    def __init__(self, *lines: str, errors: str = "", stays: bool = False) -> None:
        self._lines, self._errors, self._stays = list(lines), errors, stays

    def receive(self, timeout: float, assumed: str | None = None) -> str:
        if not self._lines:
            raise PodperfError("silence")
        return self._lines.pop(0)

    def alive(self, assumed: bool = True) -> bool:
        return self._stays

    def errors(self, assumed: str = "") -> str:
        return self._errors

    def stop(self, timeout: float = 5.0) -> None:
        pass


SwitchOn = Callable[..., tuple[list[str], list[str]]]


class Switch:
    """A host that starts one of these consoles after the other."""

    def __init__(self, *consoles: Console, boot: str = "first") -> None:
        self.left, self.accelerators, self.boot = list(consoles), list[str](), boot

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        assert path == "/proc/sys/kernel/random/boot_id"
        return self.boot.encode()

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Console:
        self.accelerators.append(command[command.index("-accel") + 1].split(",")[0])
        return self.left.pop(0)


@pytest.fixture
def switch_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SwitchOn:
    """Boot with these console outputs, one after the other. Returns the accelerators that were tried, and the notes."""

    def switch_on(*consoles: Console, kvm: bool = False, boot_id: str = "first") -> tuple[list[str], list[str]]:
        monkeypatch.setattr(boot, "KVM", tmp_path if kvm else tmp_path / "none")
        said: list[str] = []
        host = Switch(*consoles, boot=boot_id)
        with ExitStack() as undo:
            boot._switch_on(host, Machine(Image(tmp_path), "tcg", 40022), said.append, undo)  # type: ignore[arg-type]
        return host.accelerators, said

    return switch_on


def test_kvm_that_gives_up_is_followed_by_emulation_and_not_tried_again(switch_on: SwitchOn) -> None:
    gave_up = Console(errors="warning: too many CPUs\nKVM internal error. Suberror: 1\nRAX=0", stays=True)
    up = Console("podperf virtual worker: started", boot.READY)
    tried, said = switch_on(gave_up, up, kvm=True)
    assert tried == ["kvm", "tcg"]
    assert any("KVM cannot boot it here" in each and "Suberror: 1" in each and "RAX" not in each for each in said)
    assert switch_on(Console(boot.READY), kvm=True)[0] == ["tcg"]
    assert switch_on(Console(boot.READY), kvm=True, boot_id="second")[0] == ["kvm"], "its kernel may be another one now"


def test_a_machine_that_breaks_off_is_booted_again_and_not_for_ever(switch_on: SwitchOn) -> None:
    assert switch_on(Console("first words"), Console(boot.READY))[0] == ["tcg", "tcg"]
    with pytest.raises(PodperfError, match="QEMU has ended; it said: out of memory / last words"):
        switch_on(*(Console("last words", errors="out of memory\n") for _ in range(boot.ATTEMPTS)))
