"""The parts of the counted machine that users change are in force: kernel, files, parameters, rules, hooks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from counted_lab import ONLY_IF_ASKED, booted, demand
from podperf.counted_machine.kernel import Kernel, ready_kernel
from podperf.dataplanes.bpf_programs import OBJECTS
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import PREFIX, NetworkNamespace
from podperf.methods.cost import LEAST_WARM_UP
from podperf.model import Chain, FrameSize, Loop, TrafficProfile, Trial
from podperf.observation import State
from podperf.preflight.checks import check
from podperf.testbed.system_under_test import addressed
from podperf.testers.base import UNPACED
from podperf.topology import KernelSettings

TOPOLOGY = """
version: 1
name: changed
workers:
  - connection: counted
    counted:
      seed: 4
      kernel: {package: linux-image-cloud-amd64, words: podperf.test=1}
      files: [{from: tool, to: /bin/my-tool}]
      sysctls: {machine: {net.core.netdev_budget: 601}, pods: {net.ipv4.ip_default_ttl: 65}}
      nftables: {pods: [policy.nft]}
      hooks:
        - {in: machine, program: hook.sh}
        - {run: "ip -br link show w-left && echo $PODPERF_PORTS >/run/hook-of-worker"}
        - {in: pod 1, run: "nft add rule ip gate f ip saddr 203.0.113.1 drop && echo $PODPERF_PORTS >/run/hook-of-pod"}
"""
POLICY = "table ip gate {\nchain f {\ntype filter hook forward priority 0; policy accept;\n}\n}\n"
HOOK = "#!/bin/sh -e\n{ my-tool; sysctl -n net.core.netdev_budget; } >/run/hook-was-here\n"
TRAFFIC = TrafficProfile(FrameSize.parse("64"))

pytestmark = ONLY_IF_ASKED


@pytest.fixture(autouse=True, scope="module")
def needs_qemu() -> None:
    demand()


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    """A topology that changes every part, with its files."""
    for name, text in (("t.yaml", TOPOLOGY), ("policy.nft", POLICY), ("hook.sh", HOOK)):
        (tmp_path / name).write_text(text)
    (tmp_path / "tool").write_text("#!/bin/sh\necho my tool\n")
    (tmp_path / "tool").chmod(0o755)
    return tmp_path / "t.yaml"


def test_every_change_is_in_force(topology: Path) -> None:
    with booted(topology) as lab:
        assert lab.inside.ask("uname", "-r").stdout.startswith("6.1."), "Debian 12's kernel"
        assert "podperf.test=1" in lab.inside.get("/proc/cmdline").decode()
        assert lab.inside.get("/run/hook-was-here").decode().split("\n")[:2] == ["my tool", "601"]
        with lab.testbed.build(Chain("linux-bridge", 1), TRAFFIC.frame) as sut:
            pod = NetworkNamespace(f"{PREFIX}pod1", lab.inside)
            assert pod.ask("sysctl", "-n", "net.ipv4.ip_default_ttl").stdout.strip() == "65"
            rules = pod.ask("nft", "list", "table", "ip", "gate").stdout
            assert "chain f" in rules and "203.0.113.1" in rules, "the rules come before the hooks"
            told = {each: lab.inside.get(f"/run/hook-of-{each}").decode().split() for each in ("worker", "pod")}
            assert told["worker"] == ["w-left", "w-right"]
            assert [pod.ask("ip", "link", "show", each).exit_code for each in told["pod"]] == [0, 0]
            traffic = addressed(TRAFFIC, sut)
            sut.probe(traffic)
            result = sut.tester.measure(Trial(traffic, UNPACED, 10.0, Loop(1, 32, LEAST_WARM_UP)))
            assert result.invalid is None, "the loop is closed on an older kernel, too"


REFUSED = """
version: 1
name: refused
workers:
  - connection: counted
    counted:
      sysctls: {machine: {net.there.is.none: 1}}
      nftables: {pods: [filter.bpf.o]}
      hooks: [{in: pods, run: "echo no such thing; exit 3"}]
data_planes: {bpf-object: {file: filter.bpf.o, hook: tc, program: absent}}
"""


def test_check_names_each_input_that_the_machine_refuses(tmp_path: Path) -> None:
    shutil.copy(OBJECTS / "tc_redirect.bpf.o", tmp_path / "filter.bpf.o")
    (tmp_path / "t.yaml").write_text(REFUSED)
    told = [each.detail.replace(f"{tmp_path}/", "") for each in check(str(tmp_path / "t.yaml")) if each.in_the_way]
    of_bpf = "filter.bpf.o: the tc hook of w-left does not take filter.bpf.o: "
    assert len(told) == 4
    assert told[0].startswith("t.yaml: the kernel does not take net.there.is.none=1 (`sysctls.machine` of the counted")
    assert told[1].startswith(of_bpf) and "absent" in told[1]
    assert told[1].endswith("name one of its programs (`data_planes.bpf-object.program`): tc_redirect")
    assert told[2] == (
        "t.yaml: nft cannot read the rules of filter.bpf.o (`nftables.pods` of the counted machine): it is an ELF "
        "file; name a file for `nft -f`"
    )
    assert told[3].startswith(
        "t.yaml: the hook (`hooks[0]` of the counted machine, in pods) ended with exit code 3: no"
    )


def test_check_takes_what_a_run_takes(topology: Path) -> None:
    observations = check(str(topology))
    assert [each for each in observations if each.in_the_way] == []
    taken = {each.subject: each.state for each in observations if each.area == "inputs"}
    assert taken["machine"] is State.OK and len(taken) == 2, "a chain took those of pods and worker"
    measurable = {each.subject for each in observations if each.area == "data planes" and each.state is State.OK}
    assert {"linux-bridge", "macvlan", "tc-redirect"} <= measurable


@pytest.mark.parametrize("form", ["bzImage", "vmlinux"])
def test_a_kernel_with_the_folder_of_modules_install_boots(topology: Path, tmp_path: Path, form: str) -> None:
    kept = ready_kernel(LocalHost(), print, KernelSettings())
    folder = unpacked(kept, tmp_path / "staging")
    image = kept.image if form == "bzImage" else vmlinux(kept.image, tmp_path / form)
    own = KernelSettings(image=str(image), modules=str(tmp_path / "staging"))
    with booted(topology, own) as lab:
        assert lab.inside.ask("uname", "-r").stdout.strip() == folder.name
        with lab.testbed.build(Chain("linux-bridge", 1), TRAFFIC.frame) as sut:
            sut.probe(addressed(TRAFFIC, sut))


def vmlinux(image: Path, target: Path) -> Path:
    """The vmlinux in a bzImage of Debian, which is compressed by zstd."""
    if shutil.which("zstd") is None:
        pytest.skip("needs the package zstd")
    content = image.read_bytes()
    packed = content[content.index(b"\x28\xb5\x2f\xfd") :]
    # The file goes on behind it with other data, so zstd ends with an error.
    target.write_bytes(subprocess.run(["zstd", "-dcq"], input=packed, stdout=subprocess.PIPE, check=False).stdout)
    return target


def unpacked(kernel: Kernel, below: Path) -> Path:
    """The folder lib/modules/RELEASE of a kernel that is kept: its archive in the format newc (cpio(5)), unpacked."""
    content, at = kernel.modules.read_bytes(), 0
    while True:
        fields = [int(content[at + 6 + 8 * each : at + 14 + 8 * each], 16) for each in range(13)]
        size, length = fields[6], fields[11]
        name = content[at + 110 : at + 110 + length - 1].decode()
        at += 110 + length + -(110 + length) % 4
        if name == "TRAILER!!!":
            (folder,) = (below / "usr/lib/modules").iterdir()
            return folder
        if fields[1] & 0o170000 == 0o040000:
            (below / name).mkdir(parents=True, exist_ok=True)
        else:
            (below / name).parent.mkdir(parents=True, exist_ok=True)
            (below / name).write_bytes(content[at : at + size])
        at += size + -size % 4
