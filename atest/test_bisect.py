"""git bisect finds the commit of a BPF program with which a frame costs more, by the script that ships with podperf."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from counted_lab import ONLY_IF_ASKED, demand
from podperf.errors import ExitCode
from robot_run import ROOT

SCRIPT = ROOT / "docs/ci/bisect.sh"
COMMITS, PLANTED, BROKEN, REFUSED = 16, 11, 8, 9  # numbers of commits, from 1: with more work, unbuilt, not loaded
SOURCE = """
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
/* release {number} */
static const volatile __u32 release = {number};
SEC("tc") int filter(struct __sk_buff *frame)
{{
    __u32 sum = frame->len;
{work}
    return sum == release ? TC_ACT_SHOT : TC_ACT_OK;
}}
char _license[] SEC("license") = "Dual BSD/GPL";
"""
LOOP = """
    volatile __u32 part = 0;
    #pragma unroll
    for (int each = 0; each < 16; each++)
        part += each;
    sum += part;
"""
UNCHECKED = "    sum += *(__u8 *)(long)frame->data;"  # the verifier wants a comparison with data_end first
TOPOLOGY = """
version: 1
name: {name}
workers: [{{connection: counted}}]
data_planes: {{bpf-object: {{file: {file}, hook: tc}}}}
"""
COMPARISON = """
version: 1
name: filter
relevant_percent: 0.02
chain: {data_plane: bpf-object, pods: 1}
variants:
  - {name: good, topology: good.yaml}
  - {name: this, topology: this.yaml}
"""

pytestmark = ONLY_IF_ASKED


@pytest.fixture(autouse=True, scope="module")
def needs_qemu() -> None:
    demand()


def git(repository: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The history of a filter, with a program that builds it. The comparison stands beside it."""
    folder = tmp_path / "filter"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for key, value in (("user.name", "A developer"), ("user.email", "developer@example.com")):
        git(folder, "config", key, value)
    machine = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
    build = f"filter.o: filter.bpf.c\n\tclang -O2 -g -target bpf -I/usr/include/{machine} -c $< -o $@\n"
    (folder / "Makefile").write_text(build)
    (folder / ".gitignore").write_text("*.o\n")
    for number in range(1, COMMITS + 1):
        work = LOOP if number >= PLANTED else ""
        work = {BROKEN: "#error", REFUSED: UNCHECKED}.get(number, work)
        (folder / "filter.bpf.c").write_text(SOURCE.format(number=number, work=work))
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", f"Release {number}")
    git(folder, "checkout", "--quiet", f"HEAD~{COMMITS - 1}")
    subprocess.run(["make", "-s", "-C", str(folder)], check=True)
    (folder / "filter.o").rename(tmp_path / "good.o")
    git(folder, "checkout", "--quiet", "-")
    for name, file in (("good", "good.o"), ("this", "filter/filter.o")):
        (tmp_path / f"{name}.yaml").write_text(TOPOLOGY.format(name=name, file=file))
    (tmp_path / "comparison.yaml").write_text(COMPARISON)
    return folder


def test_bisect_finds_the_commit_among_16(repository: Path) -> None:
    """A commit that does not compile and one that the verifier refuses are neither good nor bad."""
    git(repository, "bisect", "start", "HEAD", f"HEAD~{COMMITS - 1}")
    command = ["git", "-C", str(repository), "bisect", "run", str(SCRIPT), "../comparison.yaml", "make"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "is the first bad commit" in done.stdout, done.stderr
    assert f"Release {PLANTED}\n" in done.stdout.partition("is the first bad commit")[2]
    assert done.returncode == 0


@pytest.mark.parametrize(("build", "code"), [("false", 125), ("true", 125)])
def test_what_cannot_be_built_or_measured_is_skipped(tmp_path: Path, build: str, code: int) -> None:
    (tmp_path / "good.yaml").write_text(TOPOLOGY.format(name="good", file="there-is-none.o"))
    (tmp_path / "comparison.yaml").write_text(COMPARISON.replace("this.yaml", "good.yaml"))
    done = subprocess.run([str(SCRIPT), str(tmp_path / "comparison.yaml"), build], check=False)
    assert done.returncode == code


def test_a_wrong_argument_ends_a_bisection(tmp_path: Path) -> None:
    done = subprocess.run([str(SCRIPT), str(tmp_path / "none.yaml"), "true"], check=False)
    assert done.returncode == ExitCode.REFUSED >= 128
