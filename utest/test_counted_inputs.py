"""What users change about a counted machine: its kernel, files, parameters, rules, hook, and the BPF object."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from podperf.counted_machine import inputs, kernel
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Completed
from podperf.testbed.kernel_settings import apply, apply_to_chain
from podperf.topology import (
    BpfObjectSettings,
    CountedSettings,
    FileSettings,
    KernelSettings,
    TopologyError,
    load_topology,
)
from podperf.virtual_worker import image
from scripted_host import ScriptedHost
from test_counted_machine import entries

HEAD = "version: 1\nname: t\n"
CHANGED = """
workers:
  - connection: counted
    counted:
      seed: 7
      kernel: {package: linux-image-cloud-amd64/bookworm, words: init_on_alloc=1}
      packages: [tcpdump, openvswitch-switch-dpdk/bookworm-backports]
      files: [{from: tool, to: /usr/local/bin/tool}]
      sysctls: {machine: {net.core.netdev_budget: 010}, pods: {net.ipv4.tcp_rmem: 4096 131072 6291456}}
      nftables: {pods: [policy.nft]}
      hook: prepare.sh
bpf_object: {file: filter.bpf.o, hook: xdp, program: filter}
"""


def test_every_input_of_a_topology_arrives_with_paths_beside_the_file(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(HEAD + CHANGED)
    topology = load_topology(file, DATA_PLANES)
    assert topology.workers[0].counted == CountedSettings(
        7,
        KernelSettings("linux-image-cloud-amd64/bookworm", words="init_on_alloc=1"),
        ("tcpdump", "openvswitch-switch-dpdk/bookworm-backports"),
        (FileSettings(str(tmp_path / "tool"), "/usr/local/bin/tool"),),
        {"machine": {"net.core.netdev_budget": "010"}, "pods": {"net.ipv4.tcp_rmem": "4096 131072 6291456"}},
        {"pods": (str(tmp_path / "policy.nft"),)},
        str(tmp_path / "prepare.sh"),
    )
    assert topology.bpf_object == BpfObjectSettings(str(tmp_path / "filter.bpf.o"), "xdp", program="filter")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "workers: [{connection: local, counted: {seed: 2}}]",
            "3: workers[0].counted: found settings of a counted machine; allowed: only with `connection: counted`",
        ),
        (
            "workers: [{connection: counted, counted: {kernel: {package: linux-image-amd64, image: bzImage}}}]",
            "3: workers[0].counted.kernel.image: found both; allowed: either `package` or `image`",
        ),
        (
            "workers: [{connection: counted, counted: {kernel: {modules: lib}}}]",
            "3: workers[0].counted.kernel.modules: found 'lib'; allowed: only beside `image`; a package has its "
            "modules",
        ),
        (
            "workers: [{connection: counted, counted: {kernel: {package: firefox}}}]",
            "3: workers[0].counted.kernel.package: found 'firefox'; allowed: a Debian package, with a suite behind a "
            "slash if it is not bookworm",
        ),
        (
            "workers: [{connection: counted, counted: {files: [{from: a, to: /run/a}]}}]",
            "3: workers[0].counted.files[0].to: found '/run/a'; allowed: an absolute path in the machine, outside of "
            "/dev, /proc, /run and /sys",
        ),
        (
            "workers: [{connection: counted, counted: {files: [{from: a, to: /usr/../run/a}]}}]",
            "3: workers[0].counted.files[0].to: found '/usr/../run/a'; allowed: an absolute path in the machine, "
            "outside of /dev, /proc, /run and /sys",
        ),
        (
            "bpf_object: {file: a.o, hook: tc, section: a, program: b}",
            "3: bpf_object.section: found both; allowed: either `section` or `program`",
        ),
        ("bpf_object: {file: a.o}", "3: bpf_object.hook: found nothing; allowed: tc, xdp"),
    ],
)
def test_a_wrong_input_has_one_line_with_its_place_and_what_is_allowed(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(HEAD + text)
    with pytest.raises(TopologyError) as caught:
        load_topology(file, DATA_PLANES)
    assert list(caught.value.problems) == [f"{file}:{problem}"]


def test_files_and_folders_keep_their_modes_and_bring_their_folders_along(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("tool")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "data/inner").mkdir(parents=True)
    (tmp_path / "data/inner/table").write_text("table")
    (tmp_path / "link").symlink_to("tool")
    files = (("tool", "/bin/tool"), ("data", "/srv/data"), ("link", "/opt/tool"))
    settings = CountedSettings(files=tuple(FileSettings(str(tmp_path / one), two) for one, two in files))
    found = {name: (mode, content) for name, mode, content in entries(b"".join(inputs.overlay(settings)))}
    assert list(found) == [
        *("usr", "usr/bin", "usr/bin/tool", "srv", "srv/data", "srv/data/inner", "srv/data/inner/table"),
        *("opt", "opt/tool"),
    ]
    assert found["usr/bin/tool"] == (0o100755, b"tool") == found["opt/tool"], "a link that is named leads to its file"
    assert found["srv/data/inner/table"][1] == b"table"


def test_without_files_there_is_no_archive() -> None:
    assert b"".join(inputs.overlay(CountedSettings())) == b""


class Refusing(ScriptedHost):
    """A host on which this command fails."""

    def __init__(self, refused: str) -> None:
        super().__init__(patient=True)
        self.refused = refused

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        if command[0] == self.refused:
            raise CommandFailed("counted-machine", command, 1, "no\n such thing\n")
        return super()._run(*command, stdin=stdin, check=check, timeout=timeout)


def test_a_parameter_or_a_rule_that_the_kernel_refuses_is_named_in_one_line(tmp_path: Path) -> None:
    rules = tmp_path / "a.nft"
    rules.write_text("table ip t {}")
    settings = CountedSettings(sysctls={"machine": {"net.none": "1"}}, nftables={"machine": (str(rules),)})
    with pytest.raises(PodperfError, match=r"does not take the kernel parameter net\.none=1: no such thing$"):
        apply(Refusing("sysctl"), "machine", settings)
    with pytest.raises(PodperfError, match=rf"does not take the rules of {rules}: no such thing$"):
        apply(Refusing("nft"), "machine", settings)


def test_a_hook_that_fails_ends_the_run_with_its_words(tmp_path: Path) -> None:
    hook = tmp_path / "prepare.sh"
    hook.write_text("#!/bin/sh\nfalse\n")
    with pytest.raises(PodperfError, match=f"the hook {hook} failed: .*no"):
        inputs.change(Refusing(inputs.HOOK), CountedSettings(hook=str(hook)))


class WithNamespaces(ScriptedHost):
    """A machine with a chain of two pods, which notes the commands that change something."""

    def __init__(self) -> None:
        super().__init__(patient=True)
        self.done: list[tuple[str, ...]] = []

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        if command == ("ip", "netns", "list"):
            names = ("podperf-tester", "podperf-worker", "podperf-pod1", "podperf-pod2")
            return Completed(command, 0, "\n".join(names), "")
        self.done.append(command)
        return Completed(command, 0, "", "")


def test_parameters_of_pods_are_set_in_each_pod_and_those_of_the_worker_in_its_namespace() -> None:
    machine, worker = WithNamespaces(), WithNamespaces()
    settings = CountedSettings(sysctls={"pods": {"net.ipv4.ip_forward": "1"}, "worker": {"net.core.somaxconn": "9"}})
    apply_to_chain(machine, worker, settings)
    assert worker.done == [("sysctl", "-qw", "net.core.somaxconn=9")]
    entered = [f"--net=/run/netns/podperf-pod{number}" for number in (1, 2)]
    assert [command[1] for command in machine.done] == entered
    assert all(command[-1] == "net.ipv4.ip_forward=1" for command in machine.done)


def test_a_chain_without_such_settings_is_not_asked_for_its_pods() -> None:
    machine = WithNamespaces()
    apply_to_chain(machine, machine, CountedSettings(sysctls={"machine": {"a": "1"}}))
    assert not machine.done


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setattr(image, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


class Making(ScriptedHost):
    """A host that removes what is half-made, and makes lists of modules."""

    def __init__(self) -> None:
        super().__init__(patient=True)


def own_kernel(folder: Path, content: bytes = b"kernel") -> KernelSettings:
    modules = folder / "lib/modules/6.18.0"
    (modules / "kernel/drivers/net").mkdir(parents=True, exist_ok=True)
    (modules / "kernel/drivers/gpu/drm").mkdir(parents=True, exist_ok=True)
    (modules / "kernel/drivers/net/veth.ko").write_bytes(gzip.compress(b"veth", mtime=0))
    (modules / "kernel/drivers/gpu/drm/drm.ko").write_bytes(b"drm")
    (folder / "bzImage").write_bytes(content)
    return KernelSettings(image=str(folder / "bzImage"), modules=str(modules))


def test_an_own_kernel_is_kept_by_its_content_with_the_modules_that_the_machine_can_use(
    tmp_path: Path, cache: Path
) -> None:
    for name in ("one", "same", "other"):
        (tmp_path / name).mkdir()
    made = kernel.ready_kernel(Making(), print, own_kernel(tmp_path / "one"))
    assert made.image.read_bytes() == b"kernel"
    names = [name for name, _, _ in entries(made.modules.read_bytes())]
    assert names[:4] == ["usr", "usr/lib", "usr/lib/modules", "usr/lib/modules/6.18.0"]
    assert "usr/lib/modules/6.18.0/kernel/drivers/net/veth.ko" in names
    assert not [name for name in names if "drm" in name]
    assert kernel.ready_kernel(Making(), print, own_kernel(tmp_path / "same")) == made
    assert kernel.ready_kernel(Making(), print, own_kernel(tmp_path / "other", b"another")) != made
    assert made.folder.parent == cache
    assert made.folder.stat().st_mode & 0o777 == 0o700, "its owner may be the only one who can read the kernel"


def test_a_folder_that_is_none_of_modules_is_told(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "bzImage").write_bytes(b"kernel")
    settings = KernelSettings(image=str(tmp_path / "bzImage"), modules=str(tmp_path))
    with pytest.raises(PodperfError, match="is no folder of kernel modules, lib/modules/RELEASE"):
        kernel.ready_kernel(Making(), print, settings)


def test_a_kernels_package_is_extracted_from_its_suite(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def extract(host: object, command: list[str], say: object) -> None:
        asked.append(command)
        root = next(cache.glob("building-*")) / "root"
        own_kernel(root)
        (root / "boot").mkdir()
        (root / "bzImage").rename(root / "boot/vmlinuz-6.18.0")

    monkeypatch.setattr(image, "gather_packages", extract)
    made = kernel.ready_kernel(Making(), lambda _: None, KernelSettings("linux-image-cloud-amd64/trixie-backports"))
    assert made.image.read_bytes() == b"kernel"
    (command,) = asked
    assert "--variant=extract" in command and "--include=linux-image-cloud-amd64/trixie-backports" in command
    assert [each.split()[2] for each in command if each.startswith("deb ")] == ["trixie", "trixie-backports"]
    kernel.ready_kernel(Making(), lambda _: None, KernelSettings("linux-image-cloud-amd64/trixie-backports"))
    assert len(asked) == 1, "it is kept"
