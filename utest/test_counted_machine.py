"""The counted machine's pure parts: QEMU's arguments, the initramfs, and the topology with the machine in it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from podperf.counted_machine import boot
from podperf.counted_machine.archive import ArchiveEntry, archive, parents, place, tree
from podperf.counted_machine.kernel import Kernel
from podperf.counted_machine.plugin import Plugin
from podperf.counted_machine.snapshot import Snapshot
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.programs import copy_of
from podperf.topology import CountedSettings, FileSettings, Hook, KernelSettings, SshSettings, load_topology
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


@pytest.fixture(autouse=True)
def tester(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A tester that is built, as is QEMU's plug-in."""
    program = tmp_path / "podperf-tester"
    program.write_text("tester")
    program.chmod(0o755)
    for name in ("TESTER_BINARY", "LIBRARY"):
        monkeypatch.setattr(boot, name, program)
    return program


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
    """The folder of an image that is built already, with a kernel. The folder of a run is `machine` in it."""
    (tmp_path / "image").mkdir()
    for name, content in (
        ("ssh_host_ed25519_key.pub", "ssh-ed25519 AAAA podperf"),
        ("initrd", "packages"),
        ("modules", "modules"),
    ):
        (tmp_path / "image" / name).write_text(content)
    run = tmp_path / "machine"

    def new_folder(host: object, folder: Path, undo: ExitStack) -> Path:
        run.mkdir()
        undo.callback(shutil.rmtree, run)
        return run

    monkeypatch.setattr(boot, "counted_image", lambda host, say, further: Image(tmp_path / "image"))
    monkeypatch.setattr(boot, "ready_kernel", lambda host, say, settings: Kernel(tmp_path / "image"))
    monkeypatch.setattr(boot, "half_made", new_folder)
    return run


def test_nothing_of_the_host_leads_inside_but_the_serial_port() -> None:
    machine = boot.QemuMachine(Path("/cache/vmlinuz"), Path("/cache/run/initrd"), Path("/cache/run"), "10.0.8")
    words = " ".join(boot.qemu_command(machine))
    assert "-icount shift=0,sleep=off" in words and "thread=single" in words and "-smp 1" in words
    assert "-seed 1" in words and "clock=vm" in words
    assert "product=QEMU 10.0.8" in words, "the record tells the version, and only runs of one version are compared"
    assert not [each for each in ("-netdev", "-nic", "-drive", "virtio-rng", "kvm") if each in words]
    assert "socket,id=ssh,path=/cache/run/ssh,server=on" in words
    assert "virtserialport,chardev=ssh,name=podperf-ssh" in words
    assert "podperf-ssh" in boot.recipe().init, "the first process looks for that port"


def test_seed_and_words_of_a_topology_reach_qemu_behind_podperfs_own() -> None:
    places = (Path(each) for each in ("/k", "/i", "/s"))
    command = boot.qemu_command(boot.QemuMachine(*places, "10.0.8", seed=7, words="init_on_alloc=1"))
    assert command[command.index("-seed") + 1] == "7"
    words = command[command.index("-append") + 1].split()
    assert words.index("init_on_alloc=1") > words.index("init_on_alloc=0"), "the kernel takes the last one"


def test_a_machine_that_comes_up_is_reached_by_its_socket_and_known_by_its_key(kept: Path) -> None:
    host, said = Booting(Console("first words", boot.READY)), list[str]()
    with ExitStack() as undo:
        machine = boot.boot(host, CountedSettings(), said.append, undo)
        assert machine.ssh.socket == str(kept / "ssh")
        assert machine.ssh.key == str(kept.parent / "image/id_ed25519")
        assert Path(machine.ssh.known_hosts).read_text() == "counted-machine ssh-ed25519 AAAA\n"
        assert not (kept / "initrd").exists(), "the machine has read it"
    assert host.console.stopped and not kept.exists()
    assert said[0] == "counted machine: booting it" and said[1].startswith("counted machine: up after")


def test_the_initramfs_has_packages_modules_tester_and_users_files_in_this_order(
    kept: Path, tmp_path: Path, tester: Path
) -> None:
    (tmp_path / "tool").write_text("my tool")
    settings = CountedSettings(files=(FileSettings(str(tmp_path / "tool"), "/usr/local/bin/tool"),))
    joined = tmp_path / "initrd"
    boot.join(joined, Image(kept.parent / "image"), Kernel(kept.parent / "image"), settings)
    content = joined.read_bytes()
    assert content.startswith(b"packagesmodules070701")
    (at,) = re.finditer(copy_of(tester).lstrip("/").encode(), content)
    assert at.start() < content.index(b"my tool"), "the tester is there before anyone copies it"


def test_nobody_else_can_read_the_users_files_in_a_machine(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The initramfs also has the private key of the machine's SSH server."""
    modes = []

    def join(initramfs: Path, *_: object) -> None:
        modes.append(initramfs.parent.stat().st_mode & 0o777)
        initramfs.touch()

    monkeypatch.setattr(boot, "join", join)
    with ExitStack() as undo:
        boot.boot(Booting(Console(boot.READY)), CountedSettings(), lambda _: None, undo)
    assert modes == [0o700]


def test_a_file_that_does_not_exist_is_told_before_anything_is_built(tmp_path: Path) -> None:
    settings = CountedSettings(
        kernel=KernelSettings(image="/nowhere/bzImage"),
        nftables={"pods": ("/nowhere/a.nft",)},
        hooks=(Hook(program="/nowhere/hook"), Hook("true")),
    )
    with ExitStack() as undo, pytest.raises(PodperfError) as caught:
        boot.boot(Booting(Console()), settings, lambda _: None, undo)
    assert str(caught.value).splitlines() == [
        "there is no file or folder /nowhere/bzImage (the key `kernel.image` of the counted machine)",
        "there is no file or folder /nowhere/a.nft (the key `nftables` of the counted machine)",
        "there is no file or folder /nowhere/hook (the key `hooks` of the counted machine)",
    ]


def test_the_plugin_counts_in_a_machine_whose_qemu_takes_it(kept: Path) -> None:
    host = Booting(Console(boot.READY))
    with ExitStack() as undo:
        machine = boot.boot(host, CountedSettings(), lambda _: None, undo)
    assert machine.plugin.executions == kept / "executions"
    assert list(host.started[-2:]) == machine.plugin.words
    assert any("probe=on" in command for command in host.commands), "QEMU itself says if it takes the plug-in"


def test_a_machine_whose_qemu_does_not_take_the_plugin_comes_up_without_and_says_why(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boot, "plugin_for", lambda host, qemu, folder, **_: Plugin(missing="QEMU is too old"))
    host, said = Booting(Console(boot.READY)), list[str]()
    with ExitStack() as undo:
        machine = boot.boot(host, CountedSettings(), said.append, undo)
    assert machine.plugin.missing == "QEMU is too old" and "-plugin" not in host.started
    assert "counted machine: figures without their functions: QEMU is too old" in said


def test_a_machine_that_does_not_come_up_says_its_last_words(kept: Path) -> None:
    host = Booting(Console("Kernel panic - not syncing", errors="qemu: no memory\n"))
    with (
        ExitStack() as undo,
        pytest.raises(PodperfError, match="did not come up: it has ended; it said: qemu: no memory / Kernel panic"),
    ):
        boot.boot(host, CountedSettings(), lambda _: None, undo)
    assert host.console.stopped


def test_without_a_built_tester_one_line_says_what_to_do(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "TESTER_BINARY", kept / "podperf-tester")
    with ExitStack() as undo, pytest.raises(PodperfError, match=r"is not built yet; once: sudo \./podperf set-up"):
        boot.boot(Booting(Console()), CountedSettings(), lambda _: None, undo)


def test_without_qemu_one_line_says_what_to_install() -> None:
    host = ScriptedHost(patient=True, refused={f"which {boot.QEMU}": ""})
    with ExitStack() as undo, pytest.raises(Unavailable) as caught:
        boot.boot(host, CountedSettings(), lambda _: None, undo)
    assert str(caught.value) == (
        "a virtual machine needs the Debian packages qemu-system-x86; once: sudo ./podperf set-up virtual-worker"
    )


def test_tester_and_worker_are_inside(tmp_path: Path) -> None:
    topology = boot.CountedMachine(WHERE, Plugin(), Snapshot(tmp_path), "booted").as_lab(
        load_topology(TOPOLOGY, DATA_PLANES)
    )
    assert topology.counts_instructions and topology.one_machine
    assert [each.ssh for each in (topology.tester, *topology.workers)] == [WHERE, WHERE]
    assert topology.not_comparable == boot.NOT_COMPARABLE


def test_the_image_is_another_one_than_the_virtual_workers() -> None:
    recipe = boot.recipe()
    assert boot.recipe(["tcpdump"]).digest != recipe.digest
    assert boot.recipe(["a", "b"]) == boot.recipe(["b", "a"]), "the order of packages makes no other image"
    assert boot.recipe(["x/bookworm-backports"]).further_suites == ("bookworm-backports",)
    assert recipe.digest != usual_recipe().digest
    assert "LoginGraceTime 0" in recipe.sshd, "a guest that waits skips that time"
    assert not [package for package in recipe.packages if "openvswitch" in package or "dpdk" in package]


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
    root, half = tmp_path / "root", tmp_path
    for folder in ("bin", "boot", "var/cache/apt", "usr/lib/modules/6.1/kernel"):
        (root / folder).mkdir(parents=True)
    (root / "bin/sh").write_bytes(b"#!")
    (root / "bin/sh").chmod(0o755)
    (root / "bin/bash").symlink_to("sh")
    (root / "boot/vmlinuz-6").write_bytes(b"kernel")
    boot.one_initramfs(ScriptedHost(), boot.recipe(), half)
    found = {name: (mode, content) for name, mode, content in entries((half / "initrd").read_bytes())}
    assert list(found) == ["bin", "usr", "var", "bin/bash", "bin/sh", "usr/lib"]
    assert found["bin/sh"] == (0o100755, b"#!") and found["bin/bash"] == (0o120777, b"sh")


def test_the_same_files_give_the_same_initramfs_whenever_they_were_made(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("content")
    (tmp_path / "one/file").touch()
    one, other = (b"".join(archive(tree(tmp_path / name))) for name in ("one", "other"))
    assert one == other


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("/lib/modules/x", "usr/lib/modules/x"),
        ("/sbin/tool", "usr/sbin/tool"),
        ("/usr/local/bin/tool", "usr/local/bin/tool"),
        ("/root//tool/", "root/tool"),
    ],
)
def test_a_file_never_takes_the_place_of_a_link_to_usr(target: str, name: str) -> None:
    assert place(target) == name


def test_folders_above_a_file_keep_the_modes_that_the_machine_needs() -> None:
    found = {name: mode for name, mode, _ in entries(b"".join(archive(parents("root/.config/tool"))))}
    assert found == {"root": 0o40700, "root/.config": 0o40755}


def test_a_file_of_a_user_belongs_to_root_and_a_file_of_a_package_to_its_owner(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    owner = (tmp_path / "file").stat().st_uid
    for keeps, wanted in ((False, 0), (True, owner)):
        header = b"".join(archive([ArchiveEntry("file", tmp_path / "file", keep_owner=keeps)]))
        assert int(header[6 + 8 * 2 : 14 + 8 * 2], 16) == wanted
