"""The parts of the counted machine that users change are in force: kernel, files, parameters, rules, hook."""

from __future__ import annotations

from pathlib import Path

import pytest

from counted_lab import ONLY_IF_ASKED, booted, demand
from podperf.counted_machine.kernel import Kernel, ready_kernel
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import PREFIX
from podperf.hosts.network_namespace import NetworkNamespace
from podperf.methods.cost import LEAST_WARM_UP
from podperf.model import Chain, FrameSize, Loop, TrafficProfile, Trial
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
      hook: hook.sh
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
            assert "chain f" in pod.ask("nft", "list", "table", "ip", "gate").stdout
            traffic = addressed(TRAFFIC, sut)
            sut.probe(traffic)
            result = sut.tester.measure(Trial(traffic, UNPACED, 10.0, Loop(1, 32, LEAST_WARM_UP)))
            assert result.invalid is None, "the loop is closed on an older kernel, too"


def test_an_own_image_with_its_modules_boots(topology: Path, tmp_path: Path) -> None:
    kept = ready_kernel(LocalHost(), print, KernelSettings())
    folder = unpacked(kept, tmp_path / "staging")
    own = KernelSettings(image=str(kept.image), modules=str(folder))
    with booted(topology, own) as lab:
        assert lab.inside.ask("uname", "-r").stdout.strip() == folder.name
        with lab.testbed.build(Chain("linux-bridge", 1), TRAFFIC.frame) as sut:
            sut.probe(addressed(TRAFFIC, sut))


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
