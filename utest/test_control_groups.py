"""Control groups of both versions: what is missing is said before a group is made, and nothing of a group stays."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.allocation import PodAllocation, PodLimits
from podperf.errors import PodperfError
from podperf.hosts.way_back import changes
from podperf.kernel.control_groups import (
    PERIOD,
    cpu_of_version_1,
    cpu_of_version_2,
    group_of,
    make_group,
    memory_of_version_1,
    memory_of_version_2,
    missing,
)
from podperf.pods import POD_RUNTIMES
from scripted_host import ScriptedHost

BOTH = PodLimits(cpu=0.25, memory=256)
ROOT = "/sys/fs/cgroup"
VERSION_1 = "".join(f"cgroup {ROOT}/{name} cgroup rw,relatime,{name} 0 0\n" for name in ("cpu", "cpuset", "memory"))
VERSION_2 = f"cgroup2 {ROOT} cgroup2 rw,nosuid 0 0\n"


def host_with(mounts: str, controllers: str = "", switched_on: str = "") -> ScriptedHost:
    """A host with these control groups."""
    files = {"/proc/mounts": f"proc /proc proc rw 0 0\n{mounts}"}
    if controllers:
        files |= {f"{ROOT}/cgroup.controllers": controllers, f"{ROOT}/cgroup.subtree_control": switched_on}
    return ScriptedHost(files, patient=True)


def made(host: ScriptedHost, limits: PodLimits = BOTH) -> tuple[list[str], list[str]]:
    """The commands that make a group, and those that remove it. The group is in the journal before it is made."""
    with ExitStack() as undo:
        group = make_group(host, "podperf-pod1", limits, undo)
        making = [command for command in host.commands if command.startswith(("mkdir", "tee"))]
        assert len(changes(host)) == len(set(group.folders.values()))
        assert group.joining(["testpmd", "-i"])[-2:] == ["testpmd", "-i"]
        so_far = len(host.commands)
    assert changes(host) == []
    return making, [
        command.split()[-1] for command in host.commands[so_far:] if "rmdir" in command and "timeout" in command
    ]


def test_version_1_has_a_hierarchy_for_each_controller() -> None:
    host = host_with(VERSION_1)
    assert missing(host, BOTH) is None
    assert made(host) == (
        [
            f"mkdir {ROOT}/cpu/podperf-pod1",
            f"mkdir {ROOT}/memory/podperf-pod1",
            f"tee {ROOT}/cpu/podperf-pod1/cpu.cfs_period_us",
            f"tee {ROOT}/cpu/podperf-pod1/cpu.cfs_quota_us",
            f"tee {ROOT}/memory/podperf-pod1/memory.limit_in_bytes",
            f"tee {ROOT}/memory/podperf-pod1/memory.memsw.limit_in_bytes",
        ],
        [f"{ROOT}/memory/podperf-pod1", f"{ROOT}/cpu/podperf-pod1"],
    )


def test_version_2_has_one_hierarchy() -> None:
    host = host_with(VERSION_2, "cpuset cpu io memory", "cpu memory")
    assert missing(host, BOTH) is None
    making, removed = made(host)
    assert making == [
        f"mkdir {ROOT}/podperf-pod1",
        *(f"tee {ROOT}/podperf-pod1/{name}" for name in ("cpu.max", "memory.max", "memory.swap.max")),
    ]
    assert removed == [f"{ROOT}/podperf-pod1"]


@pytest.mark.parametrize(
    ("host", "told", "folders"),
    [
        (
            host_with(VERSION_1),
            "4:memory:/docker/17\n2:cpu,cpuacct:/docker/17\n0::/\n",
            {f"{ROOT}/cpu/docker/17", f"{ROOT}/memory/docker/17"},
        ),
        (host_with(VERSION_2, "cpu memory", "cpu memory"), "0::/system.slice/x\n", {f"{ROOT}/system.slice/x"}),
    ],
)
def test_the_group_that_an_engine_has_made_is_found(host: ScriptedHost, told: str, folders: set[str]) -> None:
    host.files["/proc/17/cgroup"] = told
    assert set(group_of(host, 17, BOTH).folders.values()) == folders
    host.files["/proc/17/cgroup"] = "1:name=systemd:/\n"
    with pytest.raises(PodperfError, match=r"process 17 is in no control group of /sys/fs/cgroup"):
        group_of(host, 17, BOTH)


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        (host_with(""), "scripted host has no cpu controller of control groups.*: mount cgroup2, or the cpu hierarchy"),
        (host_with(VERSION_2, "memory", "memory"), "has no cpu controller"),
        (
            host_with(VERSION_2, "cpu memory", "memory"),
            rf"cpu controller .* off .*: echo \+cpu > {ROOT}/cgroup",
        ),
        (host_with(VERSION_1.replace(",memory", ",blkio")), "has no memory controller"),
    ],
)
def test_what_is_missing_is_said_with_the_remedy(host: ScriptedHost, reason: str) -> None:
    with pytest.raises(PodperfError, match=reason), ExitStack() as undo:
        make_group(host, "podperf-pod1", BOTH, undo)
    assert missing(host, BOTH) is not None
    assert not [command for command in host.commands if command.startswith("mkdir")], "refused before anything was made"
    assert missing(host, PodLimits()) is None


def test_a_hierarchy_for_reading_only_is_refused() -> None:
    host = ScriptedHost({"/proc/mounts": VERSION_1}, patient=True, refused={"test -w": ""})
    assert missing(host, BOTH) == (
        f"podperf cannot make a control group in {ROOT}/cpu of scripted host, which is there for reading only"
    )


@given(st.floats(0.01, 64), st.integers(0, 10**6), st.integers(0, 10**9))
def test_both_versions_tell_the_same_of_cpu_time(cpu: float, throttled: int, microseconds: int) -> None:
    quota = round(cpu * PERIOD)
    first = cpu_of_version_1(
        {
            "cpu.cfs_quota_us": [str(quota)],
            "cpu.cfs_period_us": [str(PERIOD)],
            "cpu.stat": ["nr_periods 7", f"nr_throttled {throttled}", f"throttled_time {microseconds * 1000}"],
        }
    )
    stat = ["usage_usec 1", "nr_periods 7", f"nr_throttled {throttled}", f"throttled_usec {microseconds}"]
    second = cpu_of_version_2({"cpu.max": [f"{quota} {PERIOD}"], "cpu.stat": stat})
    assert first == pytest.approx(second)
    assert first["cpu"] == pytest.approx(cpu, abs=1e-5)
    assert (first["periods"], first["throttled_periods"]) == (7, throttled)


def test_memory_is_told_in_mib_and_what_a_kernel_lacks_is_none() -> None:
    names = ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.failcnt")
    known = {"memory_mib": 256.0, "memory_peak_mib": 60.5, "memory_refusals": 3}
    assert memory_of_version_1(dict(zip(names, (["268435456"], ["63438848"], ["3"]), strict=True))) == known
    events = ["low 0", "high 0", "max 3", "oom 1"]
    files = {"memory.max": ["268435456"], "memory.peak": ["63438848"], "memory.events": events}
    assert memory_of_version_2(files) == known
    assert memory_of_version_2(files | {"memory.peak": [], "memory.max": ["max"]}) == {
        "memory_mib": None,
        "memory_peak_mib": None,
        "memory_refusals": 3,
    }
    assert cpu_of_version_2({"cpu.max": ["max 100000"]})["cpu"] is None


@pytest.mark.parametrize("wrong", [{"cpu": 0.001}, {"cpu": 0}, {"memory": 0}])
def test_limits_that_the_kernel_refuses_are_refused_at_once(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a pod needs"):
        PodLimits(**wrong)  # type: ignore[arg-type]


def test_limits_in_words_and_in_the_record() -> None:
    assert [str(each) for each in (BOTH, PodLimits(memory=64), PodLimits())] == [
        "the time of 0.25 CPU and 256 MiB",
        "64 MiB",
        "no limit",
    ]
    assert bool(BOTH) and not PodLimits()
    assert PodAllocation(BOTH, 2, 64).as_record() == {
        "limits": {"cpu": 0.25, "memory_mib": 256},
        "cpus": 2,
        "descriptors": 64,
        "buffers": 8192,
    }


@pytest.mark.parametrize("name", ["namespaces", "runc", "docker", "podman"])
def test_the_runtimes_of_podperf_limit_pods_where_the_kernel_can(name: str) -> None:
    assert POD_RUNTIMES[name].cannot_limit(host_with(VERSION_1), BOTH) is None
    assert "no cpu controller" in str(POD_RUNTIMES[name].cannot_limit(host_with(""), BOTH))
