"""What users change about a counted machine: its kernel, files, parameters, rules, hook, and the BPF object."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from podperf.counted_machine import boot, kernel
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Worker
from podperf.dataplanes.bpf_object import BpfObjectSettings
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.pods.base import Pod
from podperf.testbed.counted_inputs import InputsRefused, change_chain, change_machine
from podperf.testbed.system_under_test import WorkerSite
from podperf.topology import (
    CountedSettings,
    FileSettings,
    Hook,
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
      hooks: [{in: machine, program: prepare.sh}, {in: pod 2, run: ip link}]
data_planes: {bpf-object: {file: filter.bpf.o, hook: xdp, program: filter}}
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
        (Hook(place="machine", program=str(tmp_path / "prepare.sh")), Hook("ip link", place="pod 2")),
    )
    assert topology.data_planes["bpf-object"] == BpfObjectSettings(
        str(tmp_path / "filter.bpf.o"), "xdp", program="filter"
    )


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
            "workers: [{connection: counted, counted: {hooks: [{in: pods}]}}]",
            "3: workers[0].counted.hooks[0]: found neither; allowed: either `run` or `program`",
        ),
        (
            "workers: [{connection: counted, counted: {hooks: [{run: a, program: b}]}}]",
            "3: workers[0].counted.hooks[0]: found both; allowed: either `run` or `program`",
        ),
        (
            "workers: [{connection: counted, counted: {hook: a, hooks: []}}]",
            "3: workers[0].counted.hook: found beside `hooks` in line 3; allowed: one of the two",
        ),
        (
            "workers: [{connection: counted, counted: {hook: [a]}}]",
            "3: workers[0].counted.hook: unknown key; allowed: seed, kernel, packages, files, sysctls, nftables, "
            "hooks, detail; did you mean 'hooks'?",
        ),
        (
            "data_planes: {bpf-object: {file: a.o, hook: tc, section: a, program: b}}",
            "3: data_planes.bpf-object.section: found 'a'; allowed: either `section` or `program`",
        ),
        ("bpf_object: {file: a.o}", "3: bpf_object.hook: found nothing; allowed: tc, xdp"),
        (
            "data_planes: {bpf-objct: {}}",
            "3: data_planes.bpf-objct: unknown key; allowed: bpf-object; did you mean 'bpf-object'?",
        ),
        (
            "bpf_object: {}\ndata_planes: {bpf-object: {file: a.o, hook: tc}}",
            "3: bpf_object: found beside data_planes.bpf-object in line 4; allowed: one of the two",
        ),
    ],
)
def test_a_wrong_input_has_one_line_with_its_place_and_what_is_allowed(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(HEAD + text)
    with pytest.raises(TopologyError) as caught:
        load_topology(file, DATA_PLANES)
    assert list(caught.value.problems) == [f"{file}:{problem}"]


def test_the_old_key_of_a_program_is_a_hook_of_the_machine(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(f"{HEAD}workers: [{{connection: counted, counted: {{hook: prepare.sh}}}}]")
    topology = load_topology(file)
    assert topology.workers[0].counted.hooks == (Hook(place="machine", program=str(tmp_path / "prepare.sh")),)
    assert topology.outdated == (
        f"{file}:3: workers[0].counted.hook: an old key; write `hooks: [{{in: machine, program: prepare.sh}}]`",
    )


def test_files_and_folders_keep_their_modes_and_bring_their_folders_along(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("tool")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "data/inner").mkdir(parents=True)
    (tmp_path / "data/inner/table").write_text("table")
    (tmp_path / "link").symlink_to("tool")
    files = (("tool", "/bin/tool"), ("data", "/srv/data"), ("link", "/opt/tool"))
    settings = CountedSettings(files=tuple(FileSettings(str(tmp_path / one), two) for one, two in files))
    found = {name: (mode, content) for name, mode, content in entries(b"".join(boot.overlay(settings)))}
    assert list(found) == [
        *("usr", "usr/bin", "usr/bin/tool", "srv", "srv/data", "srv/data/inner", "srv/data/inner/table"),
        *("opt", "opt/tool"),
    ]
    assert found["usr/bin/tool"] == (0o100755, b"tool") == found["opt/tool"], "a link that is named leads to its file"
    assert found["srv/data/inner/table"][1] == b"table"


def test_without_files_there_is_no_archive() -> None:
    assert b"".join(boot.overlay(CountedSettings())) == b""


def refusing(command: str) -> ScriptedHost:
    return ScriptedHost(patient=True, refused={command: "no\n such thing\n"})


def problems(machine: ScriptedHost, settings: CountedSettings) -> tuple[str, ...]:
    with pytest.raises(InputsRefused) as caught:
        change_machine(machine, settings)
    return caught.value.problems


def test_each_parameter_rule_and_hook_that_the_machine_refuses_is_told_with_cause_and_remedy(tmp_path: Path) -> None:
    """Also behind the first one: nobody likes to run a check three times."""
    files = [tmp_path / name for name in ("rules.nft", "filter.bpf.o", "bytes", "absent")]
    for file, content in zip(files, (b"table ip t {}", b"\x7fELF\2\1\1\0", b"\xff"), strict=False):
        file.write_bytes(content)
    machine = ScriptedHost(
        patient=True,
        refused={
            "sysctl -qw net.none": "sysctl: cannot stat /proc/sys/net/none: No such file or directory",
            "sysctl -qw kernel.panic": 'sysctl: setting key "kernel.panic": Invalid argument',
            "nft": "/dev/stdin:1:1-5: Error: syntax error",
            "env": "no such\ndevice",
        },
    )
    settings = CountedSettings(
        sysctls={"machine": {"net.none": "1", "kernel.panic": "a"}},
        nftables={"machine": tuple(map(str, files))},
        hooks=(Hook("false", place="machine"), Hook("true", place="pods")),
    )
    assert problems(machine, settings) == (
        "the kernel does not take net.none=1 (`sysctls.machine` of the counted machine): sysctl: cannot stat "
        "/proc/sys/net/none: No such file or directory; there is no such parameter: correct the name, or load its "
        "module and set it by a hook",
        "the kernel does not take kernel.panic=a (`sysctls.machine` of the counted machine): sysctl: setting key "
        '"kernel.panic": Invalid argument; correct the value',
        f"the kernel does not take the rules of {files[0]} (`nftables.machine` of the counted machine): "
        "rules.nft:1:1-5: Error: syntax error; correct it, or its place",
        f"nft cannot read the rules of {files[1]} (`nftables.machine` of the counted machine): it is an ELF file; name "
        "a file for `nft -f`",
        f"nft cannot read the rules of {files[2]} (`nftables.machine` of the counted machine): it is not text; name a "
        "file for `nft -f`",
        f"cannot read the rules of {files[3]} (`nftables.machine` of the counted machine): No such file or directory",
        "the hook (`hooks[0]` of the counted machine, in machine) ended with exit code 1: no such\ndevice",
    )


def test_a_program_of_a_hook_runs_in_the_machine_and_is_named_if_it_fails(tmp_path: Path) -> None:
    program = tmp_path / "prepare.sh"
    program.write_text("#!/bin/sh\nfalse\n")
    settings = CountedSettings(hooks=(Hook(place="machine", program=str(program)),))
    machine = ScriptedHost(patient=True)
    change_machine(machine, settings)
    assert machine.files["/run/podperf-hook"] == "#!/bin/sh\nfalse\n"
    assert machine.commands[-2:] == [
        "chmod 755 /run/podperf-hook",
        "env PODPERF_PORTS= sh -e -c /run/podperf-hook",
    ]
    (problem,) = problems(refusing("env"), settings)
    assert problem.startswith(f"the hook {program} (`hooks[0]` of the counted machine, in machine) ended with exit")


def chain_of(pods: int) -> tuple[ScriptedHost, WorkerSite]:
    """A chain that stands on a machine, whose commands tell the network in which they run."""
    machine = ScriptedHost(patient=True)
    started = [
        cast(
            Pod,
            SimpleNamespace(
                name=f"pod{number}",
                host=NetworkNamespace(f"podperf-pod{number}", machine),
                interfaces={"left": 0, "right": 0},
            ),
        )
        for number in range(1, pods + 1)
    ]
    ports = {side: SimpleNamespace(interface=f"w-{side}") for side in ("left", "right")}
    worker = SimpleNamespace(host=NetworkNamespace("podperf-worker", machine), started=started, **ports)
    return machine, WorkerSite(machine, cast(Worker, worker))


def test_parameters_and_hooks_reach_the_networks_of_worker_and_pods() -> None:
    machine, site = chain_of(2)
    hooks = (Hook("a", place="pods"), Hook("b"), Hook("c", place="pod 2"), Hook("d", place="pod 3"))
    sysctls = {"pods": {"net.ipv4.ip_forward": "1"}, "worker": {"net.core.somaxconn": "9"}, "machine": {"x": "1"}}
    change_chain([site], CountedSettings(sysctls=sysctls, hooks=(*hooks, Hook("e", place="machine"))))
    found = [each.split("podperf-")[1].split(" ", 1) for each in machine.commands]
    assert [(where, what.split()[-1]) for where, what in found] == [
        ("worker", "net.core.somaxconn=9"),
        ("pod1", "net.ipv4.ip_forward=1"),
        ("pod2", "net.ipv4.ip_forward=1"),
        ("pod1", "a"),
        ("pod2", "a"),
        ("worker", "b"),
        ("pod2", "c"),
    ], "a chain of two pods has no pod 3, and the machine was changed after its boot"
    told = ["left right", "left right", "w-left w-right", "left right"]
    assert [each.split("PODPERF_PORTS=")[1].split("'")[0].split(" sh")[0] for each in machine.commands[3:]] == told


def test_pods_are_counted_along_all_workers_of_the_machine() -> None:
    machines, sites = zip(*(chain_of(1) for _ in range(2)), strict=True)
    change_chain(sites, CountedSettings(hooks=(Hook("a", place="pod 2"), Hook("b", place="worker"))))
    assert [[each.split()[-1] for each in machine.commands] for machine in machines] == [["b"], ["a", "b"]]


def test_what_all_pods_refuse_is_told_once() -> None:
    machine, site = chain_of(2)
    machine._refused = {"nsenter": "sysctl: cannot stat /proc/sys/x: No such file or directory"}
    with pytest.raises(InputsRefused) as caught:
        change_chain([site], CountedSettings(sysctls={"pods": {"x": "1"}}))
    (problem,) = caught.value.problems
    assert problem.endswith(
        "correct the name, or write it under `sysctls.machine`, if it is none of a network namespace"
    )


def test_a_chain_without_inputs_costs_no_command() -> None:
    machine, site = chain_of(1)
    change_chain([site], CountedSettings(sysctls={"machine": {"a": "1"}}, hooks=(Hook("a", place="machine"),)))
    assert not machine.commands


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setattr(image, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def bz_image(release: str = "6.18.0", code: bytes = b"code") -> bytes:
    """What is read of a bzImage: its magic, and where its version is (Documentation/arch/x86/boot.rst)."""
    head = bytearray(0x300)
    head[0x202:0x206] = b"HdrS"
    head[0x20E:0x210] = (0x80).to_bytes(2, "little")
    version = f"{release} (me@here) #1 SMP".encode() + b"\0"
    head[0x280 : 0x280 + len(version)] = version
    return bytes(head) + code


PVH_NOTE = b"\4\0\0\0\4\0\0\0\x12\0\0\0Xen\0\0\0\0\1"


def vmlinux(release: str = "6.18.0", note: bytes = PVH_NOTE) -> bytes:
    return b"\x7fELF" + bytes(0x300) + note + f"Linux version {release} (me@here) (gcc) #1\n\0".encode()


def own_kernel(folder: Path, content: bytes = bz_image(), release: str = "6.18.0") -> KernelSettings:
    modules = folder / "lib/modules" / release
    (modules / "kernel/drivers/net").mkdir(parents=True, exist_ok=True)
    (modules / "kernel/drivers/gpu/drm").mkdir(parents=True, exist_ok=True)
    (modules / "kernel/drivers/net/veth.ko").write_bytes(gzip.compress(b"veth", mtime=0))
    (modules / "kernel/drivers/gpu/drm/drm.ko").write_bytes(b"drm")
    (modules / "modules.order").touch()
    (folder / "image").write_bytes(content)
    return KernelSettings(image=str(folder / "image"), modules=str(modules))


def test_an_own_kernel_is_kept_by_its_content_with_the_modules_that_the_machine_can_use(
    tmp_path: Path, cache: Path
) -> None:
    for name in ("one", "same", "other"):
        (tmp_path / name).mkdir()
    made = kernel.ready_kernel(ScriptedHost(patient=True), print, own_kernel(tmp_path / "one"))
    assert made.image.read_bytes() == bz_image()
    names = [name for name, _, _ in entries(made.modules.read_bytes())]
    assert names[:4] == ["usr", "usr/lib", "usr/lib/modules", "usr/lib/modules/6.18.0"]
    assert "usr/lib/modules/6.18.0/kernel/drivers/net/veth.ko" in names
    assert not [name for name in names if "drm" in name]
    assert kernel.ready_kernel(ScriptedHost(patient=True), print, own_kernel(tmp_path / "same")) == made
    other = own_kernel(tmp_path / "other", bz_image(code=b"another"))
    assert kernel.ready_kernel(ScriptedHost(patient=True), print, other) != made
    assert made.folder.parent == cache
    assert made.folder.stat().st_mode & 0o777 == 0o700, "its owner may be the only one who can read the kernel"


@pytest.mark.parametrize("image", [bz_image(), vmlinux()], ids=["bzImage", "vmlinux"])
@pytest.mark.parametrize("named", [".", "lib/modules/6.18.0"])
def test_the_folder_of_modules_install_is_taken_as_it_is(tmp_path: Path, cache: Path, image: bytes, named: str) -> None:
    """A build of several trees installs beside each other, so the kernel's release chooses."""
    own_kernel(tmp_path, release="6.17.0")
    own_kernel(tmp_path, image)
    settings = KernelSettings(image=str(tmp_path / "image"), modules=str(tmp_path / named))
    made = kernel.ready_kernel(ScriptedHost(patient=True), print, settings)
    assert made.image.read_bytes() == image
    names = [name for name, _, _ in entries(made.modules.read_bytes())]
    assert "usr/lib/modules/6.18.0/modules.order" in names and not [name for name in names if "6.17" in name]


@pytest.mark.parametrize(
    ("content", "modules", "problem"),
    [
        (bz_image("6.18.0-dirty"), "staging", "is Linux 6.18.0-dirty, and {0}/staging has modules of 6.18.0: name"),
        (bz_image("6.1.0"), "staging/lib/modules/6.18.0", "is Linux 6.1.0, and .* has modules of 6.18.0: name"),
        (
            bz_image(),
            ".",
            "is Linux 6.18.0, and {0} has modules of no kernel: name the folder",
        ),
        (vmlinux(note=b""), "staging", "QEMU cannot start the vmlinux .*: switch CONFIG_PVH on, or name arch/x86/boot"),
        (b"\x7fELF" + bytes(0x300), "staging", "is no kernel for x86-64: name vmlinux or arch/x86/boot/bzImage"),
        (b"no kernel", "staging", "is no kernel for x86-64"),
        (b"", "staging", "is no kernel for x86-64"),
    ],
)
def test_a_kernel_that_cannot_start_or_has_other_modules_is_told_before_it_is_booted(
    tmp_path: Path, cache: Path, content: bytes, modules: str, problem: str
) -> None:
    (tmp_path / "staging").mkdir()
    own_kernel(tmp_path / "staging")
    (tmp_path / "image").write_bytes(content)
    settings = KernelSettings(image=str(tmp_path / "image"), modules=str(tmp_path / modules))
    with pytest.raises(PodperfError, match=problem.format(tmp_path)):
        kernel.ready_kernel(ScriptedHost(patient=True), print, settings)
    assert not cache.exists()


def test_the_cache_keeps_the_kernels_that_were_used_last(tmp_path: Path, cache: Path) -> None:
    """A bisection makes one kernel after another."""
    host = LocalHost()
    first = settings = own_kernel(tmp_path)
    made = []
    for number in range(kernel.MOST + 1):
        (tmp_path / str(number)).mkdir()
        settings = own_kernel(tmp_path / str(number), bz_image(code=bytes([number])))
        settings = replace(settings, modules=None)
        made.append(kernel.ready_kernel(host, print, settings))
        os.utime(made[-1].folder, (number, number))
        if number == kernel.MOST - 1:
            kernel.ready_kernel(host, print, replace(first, image=str(tmp_path / "0/image"), modules=None))
    assert [each.folder.exists() for each in made] == [True, False, *[True] * (kernel.MOST - 1)]


def test_a_kernels_package_is_extracted_from_its_suite(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def extract(host: object, command: list[str], say: object) -> None:
        asked.append(command)
        root = next(cache.glob("building-*")) / "root"
        own_kernel(root)
        (root / "boot").mkdir()
        (root / "image").rename(root / "boot/vmlinuz-6.18.0")

    monkeypatch.setattr(image, "gather_packages", extract)
    made = kernel.ready_kernel(
        ScriptedHost(patient=True), lambda _: None, KernelSettings("linux-image-cloud-amd64/trixie-backports")
    )
    assert made.image.read_bytes() == bz_image()
    (command,) = asked
    assert "--variant=extract" in command and "--include=linux-image-cloud-amd64/trixie-backports" in command
    assert [each.split()[2] for each in command if each.startswith("deb ")] == ["trixie", "trixie-backports"]
    kernel.ready_kernel(
        ScriptedHost(patient=True), lambda _: None, KernelSettings("linux-image-cloud-amd64/trixie-backports")
    )
    assert len(asked) == 1, "it is kept"
