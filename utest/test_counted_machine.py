"""The counted machine's pure parts: QEMU's arguments, the initramfs, and the topology with the machine in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from podperf.counted_machine import boot, image
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Completed
from podperf.topology import SshSettings, load_topology
from podperf.virtual_worker.image import Image, usual_recipe
from scripted_host import ScriptedHost

TOPOLOGY = Path(__file__).parents[1] / "topologies" / "counted.yaml"
WHERE = SshSettings("counted-machine", key="/cache/key", known_hosts="/cache/known_hosts", socket="/cache/ssh")


class Console:
    """A process that says these lines, and ends."""

    pid = 1

    def __init__(self, *lines: str, errors: str = "") -> None:
        self._lines, self._errors, self.stopped = list(lines), errors, False

    def receive(self, timeout: float) -> str:
        if not self._lines:
            raise PodperfError("it has ended")
        return self._lines.pop(0)

    def errors(self) -> str:
        return self._errors

    def stop(self, timeout: float = 5.0) -> None:
        self.stopped = True


class Booting(ScriptedHost):
    """A host that has all packages, and starts QEMU with this console."""

    def __init__(self, console: Console) -> None:
        super().__init__(patient=True)
        self.console = console
        self.started: Sequence[str] = ()

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Console:  # type: ignore[override]
        self.started = command
        return self.console


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an image that is built already."""
    (tmp_path / "ssh_host_ed25519_key.pub").write_text("ssh-ed25519 AAAA podperf")
    monkeypatch.setattr(boot, "counted_image", lambda host, say: Image(tmp_path))
    return tmp_path


def test_nothing_of_the_host_leads_inside_but_the_serial_port() -> None:
    words = " ".join(boot.qemu_command(Image(Path("/cache/1234")), Path("/cache/1234/ssh")))
    assert "-icount shift=0,sleep=off" in words and "thread=single" in words and "-smp 1" in words
    assert "-seed 1" in words and "clock=vm" in words
    assert not [each for each in ("-netdev", "-nic", "-drive", "virtio-rng", "kvm") if each in words]
    assert "socket,id=ssh,path=/cache/1234/ssh,server=on" in words
    assert "virtserialport,chardev=ssh,name=podperf-ssh" in words
    assert "podperf-ssh" in image.recipe().init, "the first process looks for that port"


def test_the_kernel_does_nothing_at_random_that_shows_in_a_figure() -> None:
    words = " ".join(boot.KERNEL_WORDS).split()
    assert {"nokaslr", "norandmaps", "randomize_kstack_offset=off", "init_on_alloc=0"} <= set(words)
    assert {"slab_min_order=3", "slab_min_objects=256"} <= set(words)


def test_a_machine_that_comes_up_is_reached_by_its_socket_and_known_by_its_key(kept: Path) -> None:
    host, said = Booting(Console("first words", boot.READY)), list[str]()
    with ExitStack() as undo:
        machine = boot.boot(host, said.append, undo)
        assert machine.ssh.socket == str(kept / "ssh") and machine.ssh.key == str(kept / "id_ed25519")
        assert host.files[str(machine.ssh.known_hosts)] == "counted-machine ssh-ed25519 AAAA\n"
        (kept / "ssh").touch()
    assert host.console.stopped and not (kept / "ssh").exists()
    assert said[0] == "counted machine: booting it" and said[1].startswith("counted machine: up after")


def test_a_machine_that_does_not_come_up_says_its_last_words(kept: Path) -> None:
    host = Booting(Console("Kernel panic - not syncing", errors="qemu: no memory\n"))
    with (
        ExitStack() as undo,
        pytest.raises(PodperfError, match="did not come up: it has ended; it said: qemu: no memory / Kernel panic"),
    ):
        boot.boot(host, lambda _: None, undo)
    assert host.console.stopped


def test_without_qemu_one_line_says_what_to_install() -> None:
    class Without(ScriptedHost):
        def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
            return Completed(command, int(command[-1] == boot.QEMU), "", "")

    with ExitStack() as undo, pytest.raises(Unavailable) as caught:
        boot.boot(Without(), lambda _: None, undo)
    assert str(caught.value) == (
        "a virtual machine needs the Debian packages qemu-system-x86; once: sudo ./podperf set-up virtual-worker"
    )


def test_tester_and_worker_are_inside() -> None:
    topology = boot.CountedMachine(WHERE).as_lab(load_topology(TOPOLOGY, DATA_PLANES))
    assert topology.counts_instructions and topology.one_machine
    assert [each.ssh for each in (topology.tester, *topology.workers)] == [WHERE, WHERE]
    assert topology.not_comparable == boot.NOT_COMPARABLE


def test_the_image_is_another_one_than_the_virtual_workers() -> None:
    recipe = image.recipe()
    assert recipe.digest != usual_recipe().digest
    assert "LoginGraceTime 0" in recipe.sshd, "a guest that waits skips that time"
    assert not [each for each in recipe.packages if "openvswitch" in each or "dpdk" in each]


def entries(archive: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Name, mode and content of each file of a cpio archive in the format newc (cpio(5))."""
    at = 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * each : at + 14 + 8 * each], 16) for each in range(13)]
        mode, size, length = fields[1], fields[6], fields[11]
        name = archive[at + 110 : at + 110 + length - 1].decode()
        at += 110 + length
        at += -at % 4
        if name == "TRAILER!!!":
            return
        yield name, mode, archive[at : at + size]
        at += size
        at += -size % 4


def test_the_initramfs_has_all_but_what_a_run_does_not_need(tmp_path: Path) -> None:
    for folder in ("bin", "boot", "var/cache/apt"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "bin/sh").write_bytes(b"#!")
    (tmp_path / "bin/sh").chmod(0o755)
    (tmp_path / "bin/bash").symlink_to("sh")
    (tmp_path / "boot/vmlinuz-6").write_bytes(b"kernel")
    found = {name: (mode, content) for name, mode, content in entries(b"".join(image.archive(tmp_path)))}
    assert list(found) == ["bin", "var", "bin/bash", "bin/sh"]
    assert found["bin/sh"] == (0o100755, b"#!") and found["bin/bash"] == (0o120777, b"sh")


def test_the_same_files_give_the_same_initramfs_whenever_they_were_made(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("content")
    (tmp_path / "one/file").touch()
    assert b"".join(image.archive(tmp_path / "one")) == b"".join(image.archive(tmp_path / "other"))
