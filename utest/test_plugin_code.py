"""The plug-in for QEMU: it counts between the marks of the tester's code, and nowhere else. Without a QEMU."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from podperf.counted_machine.executions import Block, Windows, read_executions

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "libraries" / "podperf" / "counted_machine" / "plugin"
MARKS = ROOT / "tester" / "marks.h"
NOP = "90"

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def mark(name: str, head: str, length: int) -> str:
    """The instruction of a mark, in hexadecimal, as a CPU of this architecture has its bytes."""
    (value,) = re.findall(rf"^#define {name} 0x([0-9a-f]+)$", MARKS.read_text(), re.MULTILINE)
    return head + int(value, 16).to_bytes(length, "little").hex()


BEGIN, END = mark("LOOP_BEGINS", "0f1f80", 4), mark("LOOP_ENDS", "0f1f80", 4)
WINDOW = mark("WINDOW_BEGINS", "48bf", 8)  # movabs to rdi
TESTER_BEGINS, TESTER_ENDS, SENDER, KERNEL, MODULE = range(5)
BLOCKS = (
    f"block 401000 {NOP} {BEGIN} {NOP}",
    f"block 402000 {END} {NOP}",
    f"block ffffffffc0000000 {NOP} {WINDOW} {NOP} {NOP}",
    f"block ffffffff81000000 {NOP} {NOP}",
    f"block ffffffffc0001000 {NOP}",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("plugin") / "plugin_code"
    source = Path(__file__).with_name("plugin_code.c")
    options = ("-Wall", "-Werror", "-fsanitize=undefined", f"-I{PLUGIN}", f"-I{MARKS.parent}", "-std=gnu11")
    subprocess.run(["gcc", *options, "-o", made, source], check=True)
    return made


def counted(program: Path, folder: Path, *runs: int, blocks: Sequence[str] = BLOCKS) -> Windows | None:
    """What the plug-in wrote after these blocks ran, or None without a file."""
    executions = folder / "executions"
    said = "\n".join([*blocks, *(f"run {each}" for each in runs)])
    subprocess.run([program, executions], input=said + "\n", text=True, check=True)
    return read_executions(executions.read_text()) if executions.exists() else None


def test_blocks_count_in_the_window_in_which_they_ran(program: Path, tmp_path: Path) -> None:
    first, second = (KERNEL, KERNEL, MODULE), (KERNEL,)
    runs = (KERNEL, TESTER_BEGINS, KERNEL, SENDER, *first, SENDER, *second, SENDER, MODULE, TESTER_ENDS, KERNEL)
    found = counted(program, tmp_path, *runs)
    sender, kernel, module = (Block(int(each.split()[1], 16), 0, 0) for each in BLOCKS[SENDER:])
    # The sender's block is counted in the window that it ends, so that each window has it once.
    assert found == {
        0: [Block(kernel.address, 2, 2), Block(module.address, 1, 1), Block(sender.address, 4, 1)],
        1: [Block(kernel.address, 2, 1), Block(sender.address, 4, 1)],
    }, "the frames after the last window, and what is around the loop, are in no window"


def test_outside_of_a_loop_a_window_is_none(program: Path, tmp_path: Path) -> None:
    assert counted(program, tmp_path, SENDER, KERNEL, SENDER, TESTER_ENDS) is None


def test_each_loop_begins_at_nothing(program: Path, tmp_path: Path) -> None:
    loop = (TESTER_BEGINS, SENDER, KERNEL, SENDER, TESTER_ENDS)
    once, twice = counted(program, tmp_path, *loop), counted(program, tmp_path, *loop, *loop)
    assert once == twice and once is not None and list(once) == [0]


def test_a_loop_that_has_no_end_leaves_no_counts_of_an_earlier_one(program: Path, tmp_path: Path) -> None:
    assert counted(program, tmp_path, TESTER_BEGINS, SENDER, KERNEL, SENDER, TESTER_ENDS, TESTER_BEGINS) is None


def test_a_block_that_is_translated_again_is_the_same_block(program: Path, tmp_path: Path) -> None:
    again = (*BLOCKS, BLOCKS[KERNEL])
    found = counted(program, tmp_path, 0, SENDER, KERNEL, len(BLOCKS), SENDER, TESTER_ENDS, blocks=again)
    assert found is not None and found[0][0].executions == 2


@pytest.mark.parametrize("register", [f"{rex}{0xB8 + number:x}" for rex in ("48", "49") for number in range(8)])
def test_the_kernel_may_put_the_mark_into_any_register(program: Path, tmp_path: Path, register: str) -> None:
    blocks = [each.replace(WINDOW, register + WINDOW[4:]) for each in BLOCKS]
    found = counted(program, tmp_path, 0, SENDER, KERNEL, SENDER, TESTER_ENDS, blocks=blocks)
    assert found is not None and len(found) == 1


@pytest.mark.parametrize("other", ("0f1f8031626670", "0f1f8400000000", "48bf0000000000000000", "e930626670"))
def test_other_instructions_are_no_marks(program: Path, tmp_path: Path, other: str) -> None:
    blocks = [each.replace(WINDOW, other) for each in BLOCKS]
    assert counted(program, tmp_path, 0, SENDER, KERNEL, SENDER, TESTER_ENDS, blocks=blocks) == {}


def test_a_guest_that_marks_windows_without_end_fills_no_memory(program: Path, tmp_path: Path) -> None:
    """A part of the counts would look like all of them, so that there is no file."""
    most = 2**21
    assert counted(program, tmp_path, TESTER_BEGINS, *[SENDER] * (most + 3), TESTER_ENDS) is None
    assert counted(program, tmp_path, TESTER_BEGINS, SENDER, KERNEL, SENDER, TESTER_ENDS) is not None
