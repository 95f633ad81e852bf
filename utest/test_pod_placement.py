"""The CPUs that a pod has, read in its container, beside those that it asked for."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.cpu_lists import format_cpu_list
from podperf.kubernetes.running_pods import READ, PodPlacement

CPUS = st.sets(st.integers(0, 255), min_size=1).map(lambda found: tuple(sorted(found)))
ALONE = "group 3\nthread 3\nthread 3\nnode 0 0-1\nnode 1 2-3\nthrottled 0\n"


def test_what_a_container_says_is_read() -> None:
    devices = {"INTEL_COM_VF": "0000:01:10.0,0000:01:10.1"}
    cpus = "group 2,4-5\nthread 2,4-5\nnode 0 0-3\nnode 1 4-7\nthrottled 12\n"
    found = PodPlacement.of(f"{cpus}device INTEL_COM_VF {devices['INTEL_COM_VF']}\n")
    assert found == PodPlacement((2, 4, 5), ((2, 4, 5),), (0, 1), 12, devices)
    assert found.describe() == {
        "cpus": "2,4-5",
        "cpus_of_threads": ["2,4-5"],
        "numa_nodes": [0, 1],
        "throttled": 12,
        "devices": devices,
    }


def test_what_a_container_cannot_see_is_unknown() -> None:
    found = PodPlacement.of("thread 0-1\n")
    assert found == PodPlacement(None, ((0, 1),), (), None)
    assert found.describe()["cpus"] is None


@given(CPUS, st.integers(1, 4))
def test_a_pod_is_placed_as_asked_if_all_its_threads_have_these_cpus(cpus: tuple[int, ...], threads: int) -> None:
    text = format_cpu_list(cpus)
    found = PodPlacement.of(f"group {text}\n" + f"thread {text}\n" * threads)
    assert found.differs(len(cpus)) is None
    assert found.differs(0) is None
    assert f"{text}" in (found.differs(len(cpus) + 1) or "")


@pytest.mark.parametrize(
    ("said", "differs"),
    [
        (ALONE, None),
        (ALONE.replace("group 3", "group 2-3"), "it asked for 1 CPU alone, and its control group has the CPUs 2-3"),
        (
            ALONE.replace("thread 3", "thread 2", 1),
            "it asked for 1 CPU alone, and a thread of its program has the CPUs 2",
        ),
        (
            "thread 0-1\n",
            "it asked for 1 CPU alone, and a thread of its program has the CPUs 0-1",
        ),
        ("thread 3\nthread 3\n", None),
        ("thread 2\nthread 3\n", "it asked for 1 CPU alone, and a thread of its program has the CPUs 2"),
    ],
)
def test_another_placement_names_what_was_asked_and_what_it_is(said: str, differs: str | None) -> None:
    assert PodPlacement.of(said).differs(1) == differs


def test_the_script_says_what_this_machine_has() -> None:
    said = subprocess.run(["sh", "-c", READ], capture_output=True, text=True, check=True).stdout
    assert PodPlacement.of(said).threads
