"""The detail of a counted run: flame graphs, and the listing of a function."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import made_up
from podperf.__main__ import main
from podperf.errors import ExitCode
from podperf.methods.functions import Functions
from podperf.report.flame_graph import call_tree, differential_flame_graph, flame_graph

BEFORE: Functions = {
    "(user space)": 2.0,
    "entry;send [bpf]": 40.0,
    "entry;forward;memset_erms": 80.0,
    "entry;forward": 24.0,
}
AFTER: Functions = {
    "(user space)": 2.0,
    "entry;send [bpf]": 40.0,
    "entry;forward;memset": 90.0,
    "entry;forward;rule": 64.0,
}
LISTING = [[0xFFFFFFFF81000000, "push rbp", 1.0], [0xFFFFFFFF81000001, "call 0xffffffff81002000", 0.5]]
NAMES = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(";".join)
STACKS = st.dictionaries(NAMES, st.integers(1, 2**20).map(lambda each: each / 128), min_size=1, max_size=30)


def with_detail(folder: Path, stacks: Functions, listing: list[list[Any]] = LISTING) -> Path:
    record = made_up.counted_record("macvlan", {"nft_do_chain [nf_tables]": 96.0})
    for burst in record.methods["cost"]["bursts"]:
        burst |= {"stacks": stacks, "listings": {"nft_do_chain [nf_tables]": listing}}
    made_up.write(folder, record)
    return folder


def boxes(drawing: str) -> dict[str, tuple[float, float, float]]:
    """Left end, width and top of the box of each function, by its title's first word."""
    found = re.findall(r"<rect x='([\d.]+)' y='([\d.]+)' width='([\d.]+)'[^>]*><title>(.*?): ", drawing)
    return {title: (float(x), float(width), float(y)) for x, y, width, title in found}


def test_a_box_is_below_its_caller_and_as_wide_as_its_share() -> None:
    drawing = flame_graph("a title", BEFORE)
    ElementTree.fromstring(drawing)
    found = boxes(drawing)
    assert found["all"][1] == pytest.approx(1000, abs=1)
    assert found["forward"][1] == pytest.approx(1000 * 104 / 146, abs=1)
    (left, width, top), (inner_left, inner_width, inner_top) = found["forward"], found["memset_erms"]
    assert inner_top > top and left <= inner_left and inner_left + inner_width <= left + width + 0.5


def test_a_difference_shows_what_is_gone_what_is_new_and_what_has_another_name() -> None:
    drawing = differential_flame_graph("a title", BEFORE, AFTER)
    ElementTree.fromstring(drawing)
    assert "memset: 80.000, now 90.000 (+10.000)" in drawing and "memset_erms" not in drawing
    assert "rule: 0.000, now 64.000 (+64.000)" in drawing
    assert "forward: 104.000, now 154.000 (+50.000); of its own 24.000, now 0.000 (-24.000)" in drawing
    assert flame_graph("", {}) == differential_flame_graph("", {}, AFTER) == ""


@given(STACKS, STACKS)
def test_nothing_is_lost_in_the_tree(before: Functions, after: Functions) -> None:
    assert call_tree(before, after).together == (sum(before.values()), sum(after.values()))
    for drawing in (flame_graph("", before), differential_flame_graph("", before, after)):
        ElementTree.fromstring(drawing)
        assert all(x + width <= 1000.5 for x, width, _ in boxes(drawing).values())


def test_the_reports_of_runs_with_the_detail_have_flame_graphs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = with_detail(tmp_path / "a", BEFORE), with_detail(tmp_path / "b", AFTER)
    assert main(["report", str(one)]) == 0
    assert (one / "conformance.html").read_text().count("Who calls whom, one frame in flight, with the bare path") > 0
    assert main(["report", "--costs", str(one), str(other)]) == 0
    assert "red functions have more" in (other / "costs.html").read_text()
    record = json.loads(next((one / "records").glob("*.json")).read_text())
    assert record["methods"]["cost"]["bursts"][0]["stacks"] == BEFORE


def test_a_function_is_listed_with_the_executions_of_each_instruction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = with_detail(tmp_path / "run", BEFORE)
    for name in ("nft_do_chain", "nft_do_chain [nf_tables]"):
        assert main(["report", str(run), "--listing", name]) == 0
        lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        assert lines[0] == "Macvlan, 64 B, one frame in flight: nft_do_chain [nf_tables]"
        assert "1.000 ffffffff81000000 push rbp" in lines and "0.500 ffffffff81000001 call 0xffffffff81002000" in lines
    assert main(["report", str(run), "--listing", "nft_do_chian"]) == ExitCode.NOT_DONE
    assert 'no function nft_do_chian that ran; near: "nft_do_chain [nf_tables]"' in capsys.readouterr().err
    assert main(["report", "--listing", "f"]) == ExitCode.REFUSED


def test_what_a_listing_lacks_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.write(tmp_path / "plain", made_up.counted_record("macvlan", {"f": 1.0}))
    assert main(["report", str(tmp_path / "plain"), "--listing", "f"]) == ExitCode.NOT_DONE
    assert "no listing of functions; measure it with `counted: {detail: true}`" in capsys.readouterr().err
    run = with_detail(tmp_path / "no-words", BEFORE, [[0xFFFFFFFF81000000, "", 1.0]])
    assert main(["report", str(run), "--listing", "nft_do_chain"]) == 0
    assert "QEMU has no disassembler: its package was built without capstone" in capsys.readouterr().out
