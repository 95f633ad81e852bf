"""A BPF object of a user as a data plane: programs that redirect and programs that pass frames on, at both hooks."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from chains import forward, local_testbed, need
from podperf.dataplanes.bpf_object import BpfObjectSettings
from podperf.dataplanes.bpf_programs import OBJECTS
from podperf.errors import PodperfError, Unavailable
from podperf.model import Chain
from podperf.testbed import system_under_test
from podperf.testbed.testbed import Testbed

PASSING = """
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
SEC("tc") int pass_tc(struct __sk_buff *frame) { return TC_ACT_OK; }
SEC("tc") int drop_tc(struct __sk_buff *frame) { return TC_ACT_SHOT; }
SEC("xdp") int pass_xdp(struct xdp_md *frame) { return XDP_PASS; }
char _license[] SEC("license") = "Dual BSD/GPL";
"""

pytestmark = [pytest.mark.distribution, pytest.mark.usefixtures("nothing_left")]


@pytest.fixture(autouse=True)
def needed() -> None:
    need("bpf-object")


@pytest.fixture
def passing(tmp_path: Path) -> Path:
    """An object whose programs pass frames on, and one that drops them."""
    source, made = tmp_path / "passing.bpf.c", tmp_path / "passing.bpf.o"
    source.write_text(PASSING)
    machine = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
    words = ("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}")
    subprocess.run([*words, "-c", str(source), "-o", str(made)], check=True)
    return made


def local_testbed_with(settings: BpfObjectSettings | None) -> Testbed:
    """The local testbed, whose topology names this object."""
    testbed = local_testbed()
    testbed.topology = replace(testbed.topology, data_planes={"bpf-object": settings})
    return testbed


@pytest.mark.parametrize(("name", "hook"), [("tc_redirect", "tc"), ("xdp_redirect", "xdp")])
def test_a_program_with_a_map_of_the_target_redirects(name: str, hook: str) -> None:
    settings = BpfObjectSettings(str(OBJECTS / f"{name}.bpf.o"), hook)  # type: ignore[arg-type]
    programs = forward(Chain("bpf-object", 1), testbed=local_testbed_with(settings))["programs"]
    targets = {source: each["target"] for source, each in programs.items()}
    assert targets == {"w-left": "pod1a", "pod1a": "w-left", "pod1b": "w-right", "w-right": "pod1b"}


@pytest.mark.parametrize(("program", "hook"), [("pass_tc", "tc"), ("pass_xdp", "xdp")])
def test_a_program_without_one_passes_frames_on_to_a_bridge(program: str, hook: str, passing: Path) -> None:
    settings = BpfObjectSettings(str(passing), hook, program=program)  # type: ignore[arg-type]
    programs = forward(Chain("bpf-object", 1), testbed=local_testbed_with(settings))["programs"]
    assert {each["program"] for each in programs.values()} == {program}
    assert {each["target"] for each in programs.values()} == {None}


def test_the_program_decides_about_each_frame(passing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_under_test, "PROBE_PATIENCE", 0.5)
    settings = BpfObjectSettings(str(passing), "tc", program="drop_tc")
    with pytest.raises(PodperfError, match="no test frame crossed bpf-object"):
        forward(Chain("bpf-object", 0), testbed=local_testbed_with(settings))


def test_an_object_or_a_program_that_there_is_not_is_told(passing: Path) -> None:
    with pytest.raises(
        PodperfError, match=r"there is no BPF object /nowhere\.o \(the key `data_planes\.bpf-object\.file`\)"
    ):
        forward(Chain("bpf-object", 0), testbed=local_testbed_with(BpfObjectSettings("/nowhere.o", "tc")))
    for settings in (
        BpfObjectSettings(str(passing), "xdp", program="none"),
        BpfObjectSettings(str(passing), "tc", program="none"),
        BpfObjectSettings(str(passing), "tc", section="none"),
    ):
        with pytest.raises(PodperfError, match=r"passing.* doesn't contain .* none.*: drop_tc, pass_tc, pass_xdp$"):
            forward(Chain("bpf-object", 0), testbed=local_testbed_with(settings))
    source = BpfObjectSettings(str(passing.with_suffix(".c")), "tc")
    with pytest.raises(PodperfError, match="it is no BPF object: make one by `clang"):
        forward(Chain("bpf-object", 0), testbed=local_testbed_with(source))
    with pytest.raises(Unavailable, match="the topology names no BPF object"):
        forward(Chain("bpf-object", 0), testbed=local_testbed_with(None))
