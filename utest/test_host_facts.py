"""The facts of a host, read from its files and commands. A fact that the host does not show is null."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.hosts import host_facts
from podperf.hosts.local import LocalHost
from scripted_host import ScriptedHost

SERVER = ScriptedHost(
    files={
        "/proc/cpuinfo": "processor\t: 0\nmicrocode\t: 0x5003707\nflags\t\t: fpu vme\nbugs : x\n",
        "/proc/meminfo": "MemTotal:       263855736 kB\nHugePages_Total:      64\n",
        "/etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
        "/sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
        "/sys/devices/system/cpu/vulnerabilities/meltdown": "Not affected\n",
        "/sys/devices/system/node/node0/cpulist": "0-19,40-59\n",
        "/sys/devices/system/node/node1/cpulist": "20-39,60-79\n",
        "/sys/devices/system/node/node1/meminfo": "Node 1 MemTotal:       132111234 kB\n",
        "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "64\n",
        "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "60\n",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "/sys/class/dmi/id/bios_version": "2.10.2\n",
        "/sys/bus/pci/devices/0000:af:00.0/numa_node": "1\n",
    },
    answers={
        "env LC_ALL=C lscpu --json": """{"lscpu": [
            {"field": "Model name:", "data": "Intel(R) Xeon(R) Gold 6148", "children": [
                {"field": "Socket(s):", "data": "2"}, {"field": "Core(s) per socket:", "data": "20"}]},
            {"field": "L3 cache:", "data": "55 MiB"}]}""",
        "ls /sys/devices/system/node": "has_cpu node1 node0 online",
        "ls /sys/devices/system/cpu/vuln": "meltdown",
        "ls /sys/kernel/mm/hugepages": "hugepages-2048kB",
        "systemd-detect-virt": "none\n",
        "dmidecode -t 17": "Handle 1\nMemory Device\n\tSize: 16 GB\n\tLocator: A1\n\tSpeed: 2666 MT/s\n"
        "\tSerial Number: 123\n\nMemory Device\n\tSize: No Module Installed\n",
        "dpkg-query": "installed iproute2 6.1.0-3\nnot-installed vpp \nconfig-files dpdk 22.11\n",
        "ip -json": json.dumps([{"address": "3c:fd:fe:00:00:01", "mtu": 1500, "qdisc": "mq", "txqlen": 1000}]),
        "ethtool -i": "driver: i40e\nversion: 6.1.0\nfirmware-version: 6.80 0x80003d74\nbus-info: 0000:af:00.0\n",
        "ethtool -k": "Features:\nrx-checksumming: on\ntx-lockless: on [fixed]\nnetns-local: off [fixed]\nlro: off\n",
        "ethtool -g": "Pre-set maximums:\nRX: 4096\nCurrent hardware settings:\nRX: 512\nRX Mini: n/a\n",
        "ethtool -l": "Channel parameters:\nCurrent hardware settings:\nCombined:\t8\n",
        "ethtool p0": "Settings for p0:\n\tSpeed: 40000Mb/s\n",
    },
)


def test_a_server_is_described() -> None:
    found = host_facts.collect(SERVER)
    assert found["cpu"]["model"] == "Intel(R) Xeon(R) Gold 6148"
    assert (found["cpu"]["sockets"], found["cpu"]["microcode"]) == (2, "0x5003707")
    assert (found["cpu"]["governor"], found["cpu"]["turbo"]) == ("performance", False)
    assert found["cpu"]["caches"] == {"L3": "55 MiB"}
    assert found["distribution"] == "Debian GNU/Linux 12 (bookworm)"
    assert [(numa_node["node"], numa_node["cpus"]) for numa_node in found["numa_nodes"]] == [
        (0, "0-19,40-59"),
        (1, "20-39,60-79"),
    ]
    assert found["hugepages"] == [{"of_mib": 2.0, "total": 64, "free": 60}]
    assert found["memory"]["total_bytes"] == 263855736 * 1024
    assert found["memory"]["devices"] == [{"Size": "16 GB", "Locator": "A1", "Speed": "2666 MT/s"}]
    assert found["memory"]["transparent_hugepages"] == "madvise"
    assert found["mitigations"] == {"meltdown": "Not affected"}
    assert found["packages"] == {"iproute2": "6.1.0-3"}
    assert found["platform"]["bios"]["version"] == "2.10.2"
    assert (found["platform"]["hypervisor_flag"], found["platform"]["virtualisation"]) == (False, "none")


def test_an_interface_is_described() -> None:
    found = host_facts.interface_details(SERVER, "p0")
    assert (found["driver"], found["firmware"], found["numa_node"]) == ("i40e", "6.80 0x80003d74", 1)
    assert found["speed_bits_per_second"] == 40_000_000_000
    assert found["offloads"] == {"rx-checksumming": True, "tx-lockless": True, "lro": False}
    assert (found["rings"], found["channels"]) == ({"RX": 512}, {"Combined": 8})


def test_a_host_that_shows_nothing_gives_nulls() -> None:
    bare = ScriptedHost({}, {})
    found = host_facts.collect(bare)
    assert found["cpu"]["model"] is None
    assert found["platform"]["hypervisor_flag"] is None
    assert found["packages"] is None
    assert found["hugepages"] == []
    json.dumps(found, allow_nan=False)
    assert set(host_facts.interface_details(bare, "p0").values()) == {None}


@pytest.mark.parametrize("speed", ["Unknown!", "10000Mb/s"])
def test_a_virtual_interface_has_no_speed(speed: str) -> None:
    link = json.dumps([{"linkinfo": {"info_kind": "veth"}}])
    host = ScriptedHost({}, {"ip -json": link, "ethtool v0": f"Speed: {speed}"})
    assert host_facts.interface_details(host, "v0")["speed_bits_per_second"] is None


@given(st.text())
def test_parsers_take_any_text(text: str) -> None:
    host_facts.parse_os_release(text)
    host_facts.parse_ethtool(text)
    host_facts.parse_meminfo(text)
    host_facts.parse_lscpu(text)
    host_facts.parse_memory_devices(text)


def test_the_index_of_a_clone_is_not_written(tmp_path: Path) -> None:
    """With sudo, the file would belong to root, and its owner could no longer use it."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    (tracked := tmp_path / "tracked").touch()
    for words in (["init", "-q"], ["add", "tracked"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    os.utime(tracked, (1, 1))  # makes the index worth a refresh
    index = tmp_path / ".git" / "index"
    before = index.stat()
    found = host_facts.podperf_version(LocalHost(), tmp_path)
    assert found["commit"] and not found["modified"]
    after = index.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
