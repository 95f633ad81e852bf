"""The plug-in for QEMU: it counts between the marks of the tester's code, and nowhere else. Without a QEMU."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podperf.counted_machine.detail import Detail, listings_of, read_detail, stacks_of
from podperf.counted_machine.profile import Block, Windows, read_executions
from podperf.methods.cost import L1_DATA_CACHE

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
WINDOW, BURST = (mark(f"{what}_BEGINS", "48bf", 8) for what in ("WINDOW", "BURST"))  # movabs to rdi
TESTER_BEGINS, TESTER_ENDS, SENDER, KERNEL, MODULE, BURST_BEGINS = range(6)
BLOCKS = (
    f"block 401000 {NOP} {BEGIN} {NOP}",
    f"block 402000 {END} {NOP}",
    f"block ffffffffc0000000 {NOP} {WINDOW} {NOP} {NOP}",
    f"block ffffffff81000000 {NOP} {NOP}",
    f"block ffffffffc0001000 {NOP}",
    f"block ffffffffc0002000 {BURST}",
)
LINE, CACHE = (  # bytes, and lines
    int(re.findall(rf"^#define {name} (\d+)$", (PLUGIN / "executions.c").read_text(), re.MULTILINE)[0])
    for name in ("LINE_BYTES", "LINES_OF_CACHE")
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("plugin") / "plugin_code"
    source = Path(__file__).with_name("plugin_code.c")
    options = ("-Wall", "-Werror", "-fsanitize=undefined", f"-I{PLUGIN}", f"-I{MARKS.parent}", "-std=gnu11")
    subprocess.run(["gcc", *options, "-o", made, source], check=True)
    return made


def counted(program: Path, folder: Path, *runs: int | str, blocks: Sequence[str] = BLOCKS) -> Windows | None:
    """What the plug-in wrote after these blocks ran, or None without a file. A word is an access to memory."""
    text = written(program, folder, *runs, blocks=blocks)
    return None if text is None else read_executions(text)


def written(
    program: Path, folder: Path, *runs: int | str, blocks: Sequence[str] = BLOCKS, options: Sequence[str] = ()
) -> str | None:
    executions = folder / "executions"
    said = "\n".join([*blocks, *(run if isinstance(run, str) else f"run {run}" for run in runs)])
    subprocess.run([program, executions, *options], input=said + "\n", text=True, check=True)
    return executions.read_text() if executions.exists() else None


def test_blocks_count_in_the_window_in_which_they_ran(program: Path, tmp_path: Path) -> None:
    first, second = (KERNEL, KERNEL, MODULE), (KERNEL,)
    runs = (KERNEL, TESTER_BEGINS, KERNEL, SENDER, *first, SENDER, *second, SENDER, MODULE, TESTER_ENDS, KERNEL)
    found = counted(program, tmp_path, *runs)
    sender, kernel, module = (Block(int(block.split()[1], 16), 0, 0) for block in BLOCKS[SENDER : MODULE + 1])
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
    blocks = [block.replace(WINDOW, register + WINDOW[4:]) for block in BLOCKS]
    found = counted(program, tmp_path, 0, SENDER, KERNEL, SENDER, TESTER_ENDS, blocks=blocks)
    assert found is not None and len(found) == 1


@pytest.mark.parametrize("other", ("0f1f8031626670", "0f1f8400000000", "48bf0000000000000000", "e930626670"))
def test_other_instructions_are_no_marks(program: Path, tmp_path: Path, other: str) -> None:
    blocks = [block.replace(WINDOW, other) for block in BLOCKS]
    assert counted(program, tmp_path, 0, SENDER, KERNEL, SENDER, TESTER_ENDS, blocks=blocks) == {}


def test_a_guest_that_marks_windows_without_end_fills_no_memory(program: Path, tmp_path: Path) -> None:
    """A part of the counts would look like all of them, so that there is no file."""
    most = 2**21
    assert counted(program, tmp_path, TESTER_BEGINS, *[SENDER] * (most + 3), TESTER_ENDS) is None
    assert counted(program, tmp_path, TESTER_BEGINS, SENDER, KERNEL, SENDER, TESTER_ENDS) is not None


# --- memory -----------------------------------------------------------------------------------------------------------


def load(block: int, address: int, size: int = 8) -> str:
    return f"load {block} {address:x} {size}"


def blocks_of_windows(program: Path, folder: Path, *windows: Sequence[int | str]) -> list[list[Block]]:
    """The blocks of KERNEL and MODULE in each of these windows. A window begins with a burst."""
    runs = [run for window in windows for run in (BURST_BEGINS, SENDER, *window)]
    found = counted(program, folder, TESTER_BEGINS, *runs, BURST_BEGINS, SENDER, TESTER_ENDS)
    assert found is not None
    mine = (int(BLOCKS[number].split()[1], 16) for number in (KERNEL, MODULE))
    addresses = list(mine)
    return [[block for block in blocks if block.address in addresses] for blocks in found.values()]


def test_loads_and_stores_are_of_the_block_that_does_them(program: Path, tmp_path: Path) -> None:
    one = (KERNEL, load(KERNEL, 0x1000), f"store {KERNEL} 1000 8", MODULE, f"store {MODULE} 1008 1")
    other = (KERNEL, load(KERNEL, 0x1000))
    (kernel, module), (again,) = blocks_of_windows(program, tmp_path, one, other)
    assert (kernel.loads, kernel.stores, module.loads, module.stores) == (1, 1, 0, 1)
    assert (again.loads, again.stores) == (1, 0), "each window begins at nothing"


def test_memory_outside_of_windows_is_not_counted(program: Path, tmp_path: Path) -> None:
    before, within = load(KERNEL, 0x5000), load(KERNEL, 0x1000)
    runs = (before, TESTER_BEGINS, before, SENDER, KERNEL, within, SENDER, TESTER_ENDS, before)
    found = counted(program, tmp_path, *runs)
    assert found is not None and found[0][0].loads == 1 and found[0][0].misses == 1


def test_a_line_is_of_the_block_that_touches_it_first_in_a_burst(program: Path, tmp_path: Path) -> None:
    burst = (KERNEL, load(KERNEL, 0x1000), load(KERNEL, 0x1038), MODULE, load(MODULE, 0x1010), load(MODULE, 0x1040))
    ((kernel, module),) = blocks_of_windows(program, tmp_path, burst)
    assert (kernel.lines, module.lines) == (1, 1)
    ((kernel, module),) = blocks_of_windows(program, tmp_path, (*burst, BURST_BEGINS, *burst))
    assert (kernel.lines, module.lines) == (2, 2), "the next burst touches them anew"
    assert (kernel.misses, module.misses) == (1, 1), "and finds them in the cache"


def test_an_access_across_the_end_of_a_line_touches_two(program: Path, tmp_path: Path) -> None:
    ((kernel,),) = blocks_of_windows(program, tmp_path, (KERNEL, load(KERNEL, 0x103C, 8)))
    assert (kernel.loads, kernel.lines, kernel.misses) == (1, 2, 2)


def test_records_state_the_cache_of_the_plugin() -> None:
    assert (L1_DATA_CACHE["bytes"], L1_DATA_CACHE["line_bytes"], L1_DATA_CACHE["sets"]) == (CACHE * LINE, LINE, 1)


def misses_by_the_definition(touched: Sequence[int]) -> int:
    """A line is missed unless fewer than CACHE other ones were touched since its last use."""
    found = 0
    for place, line in enumerate(touched):
        earlier = touched[:place]
        last = max((at for at, each in enumerate(earlier) if each == line), default=None)
        found += last is None or len(set(earlier[last + 1 :])) >= CACHE
    return found


@settings(max_examples=10, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(CACHE - 2, CACHE + 40))
def test_the_cache_replaces_the_line_that_was_used_longest_ago(
    program: Path, tmp_path_factory: pytest.TempPathFactory, random: Random, lines: int
) -> None:
    touched = [number for _ in range(2) for number in random.sample(range(lines), lines)]
    accesses = [load(KERNEL, 0xFFFF888000000000 + number * LINE) for number in touched]
    ((kernel,),) = blocks_of_windows(program, tmp_path_factory.mktemp("cache"), (KERNEL, *accesses))
    assert kernel.lines == lines
    assert kernel.misses == misses_by_the_definition(touched)


def test_each_loop_begins_with_an_empty_cache(program: Path, tmp_path: Path) -> None:
    loop = (TESTER_BEGINS, BURST_BEGINS, SENDER, KERNEL, load(KERNEL, 0x1000), BURST_BEGINS, SENDER, TESTER_ENDS)
    assert counted(program, tmp_path, *loop) == counted(program, tmp_path, *loop, *loop)


def test_a_guest_that_touches_all_of_its_memory_leaves_no_counts(program: Path, tmp_path: Path) -> None:
    accesses = (load(KERNEL, number * LINE) for number in range(2**17 + 1))
    loop = (TESTER_BEGINS, SENDER, KERNEL, SENDER, TESTER_ENDS)
    assert counted(program, tmp_path, TESTER_BEGINS, SENDER, KERNEL, *accesses, SENDER, TESTER_ENDS) is None
    assert counted(program, tmp_path, *loop) is not None


# --- calls and code ---------------------------------------------------------------------------------------------------

TASKS, SCHEDULER, FUNCTIONS = 3, 3, 7  # the first functions are those that the tasks begin with
RUNS, CALLS, RETURNS = range(3)  # the blocks of a function
CODE = (f"{NOP} {NOP}", "e800000000", "c3")
TEXT = 0xFFFFFFFF81000000
FUNCTION_BLOCKS = [
    f"block {TEXT + number * 0x1000 + part * 0x10:x} {CODE[part]}"
    for number in range(FUNCTIONS)
    for part in (RUNS, CALLS, RETURNS)
]
STACK = 16384  # bytes


def part_of(function: int, part: int) -> int:
    return len(BLOCKS) + 3 * function + part


def function_at(address: int) -> str:
    number = (address - TEXT) // 0x1000
    return f"f{number}" if 0 <= number < FUNCTIONS else "sender"


def detail_of(program: Path, folder: Path, *runs: int | str, blocks: Sequence[str] = FUNCTION_BLOCKS) -> Detail:
    loop = (TESTER_BEGINS, SENDER, *runs, SENDER, TESTER_ENDS)
    text = written(program, folder, *loop, blocks=[*BLOCKS, *blocks], options=["detail=on"])
    assert text is not None
    return read_detail(text, {0})


class Guest:
    """Tasks that call and return, each on its own stack. The guest knows how often each stack of functions ran."""

    def __init__(self) -> None:
        self.runs = list[int | str]()
        self.instructions = Counter[str]()
        self._task = 0
        self._frames = [[(task, 0xFFFFC90000000000 + (task + 1) * STACK)] for task in range(TASKS)]

    @property
    def _stack(self) -> list[tuple[int, int]]:
        return self._frames[self._task]

    def _run(self, part: int, access: str = "", place: int = 0) -> None:
        number = part_of(self._stack[-1][0], part)
        self.runs += [number, f"{access} {number} {place:x} 8"] if access else [number]
        self.instructions[";".join(f"f{function}" for function, _ in self._stack)] += len(CODE[part].split())

    def call(self, function: int, bytes_of_frame: int = 0x20) -> None:
        place = self._stack[-1][1] - bytes_of_frame
        self._run(CALLS, "store", place)
        self._stack.append((function, place))
        self._run(RUNS)

    def end(self) -> None:
        if len(self._stack) > 1:
            self._run(RETURNS, "load", self._stack[-1][1])
            self._stack.pop()
            self._run(RUNS)

    def switch(self, task: int) -> None:
        """To a task that has begun, and has called the scheduler, or to a new one."""
        if task == self._task:
            return
        self.call(SCHEDULER)
        other = self._frames[task]
        self._run(RETURNS, "load", other[-1][1] if len(other) > 1 else other[0][1] - 8)
        self._task = task
        if len(self._stack) > 1:
            self._stack.pop()
        self._run(RUNS)


OPERATIONS = st.lists(
    st.one_of(
        st.builds(lambda number: ("call", number), st.integers(SCHEDULER + 1, FUNCTIONS - 1)),
        st.just(("end", None)),
        st.builds(lambda number: ("switch", number), st.integers(0, TASKS - 1)),
    ),
    max_size=60,
)


@settings(max_examples=40, deadline=None)
@given(OPERATIONS)
def test_each_block_is_in_the_stack_of_calls_that_it_ran_in(
    program: Path, tmp_path_factory: pytest.TempPathFactory, operations: Sequence[tuple[str, int | None]]
) -> None:
    guest = Guest()
    for what, number in operations:
        getattr(guest, what)(*(() if number is None else (number,)))
    detail = detail_of(program, tmp_path_factory.mktemp("calls"), *guest.runs)
    found = stacks_of(detail, 1, function_at)
    assert {stack: times for stack, times in found.items() if not stack.endswith("sender")} == guest.instructions


def test_frames_that_were_left_without_a_return_are_in_no_later_call(program: Path, tmp_path: Path) -> None:
    guest = Guest()
    guest.call(4)
    guest.call(5)
    place = 0xFFFFC90000000000 + STACK - 0x20
    again = [part_of(0, CALLS), f"store {part_of(0, CALLS)} {place:x} 8", part_of(6, RUNS)]
    found = stacks_of(detail_of(program, tmp_path, *guest.runs, *again), 1, function_at)
    assert found["f0;f6"] == 2


@pytest.mark.parametrize("code", ("ffd0", "41ffd0", "3effd0", "ff1500000000", "e800000000"))
def test_every_form_of_a_call_is_one(program: Path, tmp_path: Path, code: str) -> None:
    blocks = [each.replace("e800000000", code) for each in FUNCTION_BLOCKS]
    guest = Guest()
    guest.call(4)
    guest.end()
    found = stacks_of(detail_of(program, tmp_path, *guest.runs, blocks=blocks), 1, function_at)
    assert found["f0;f4"] == 3


def test_an_interrupt_with_a_stack_of_its_own_is_called_by_what_it_interrupts(program: Path, tmp_path: Path) -> None:
    guest = Guest()
    guest.call(4)
    elsewhere = 0xFFFFFE0000000000 + STACK - 0x40
    there = [part_of(4, CALLS), f"store {part_of(4, CALLS)} {elsewhere:x} 8", part_of(5, RUNS)]
    back = [part_of(5, RETURNS), f"load {part_of(5, RETURNS)} {elsewhere:x} 8", part_of(4, RUNS)]
    found = stacks_of(detail_of(program, tmp_path, *guest.runs, *there, *back), 1, function_at)
    assert found["f0;f4;f5"] == 3 and found["f0;f4"] == 2 + 1 + 2


def test_each_instruction_has_its_words_and_its_executions(program: Path, tmp_path: Path) -> None:
    guest = Guest()
    guest.call(4)
    listings = listings_of(detail_of(program, tmp_path, *guest.runs), 1, function_at)
    assert type(listings) is dict, "a record is made by dataclasses.asdict, which cannot copy a defaultdict"
    at = TEXT + 4 * 0x1000
    assert listings["f4"] == [(at, "1 bytes, 90", 1.0), (at + 1, "1 bytes, 90", 1.0)]
    assert [words for _, words, _ in listings["f0"]] == ["5 bytes, e8"]


def test_a_call_says_which_function_it_calls() -> None:
    to_f5, within = f"callq 0x{TEXT + 5 * 0x1000:x}", f"jne 0x{TEXT + 4 * 0x1000 + 9:x}"
    code = {(TEXT + 4 * 0x1000, 3): [(TEXT + 4 * 0x1000, to_f5), (TEXT + 4 * 0x1000 + 5, within)]}
    listings = listings_of(Detail({}, {(0, TEXT + 4 * 0x1000, 3): 1}, code), 1, function_at)
    assert [words for _, words, _ in listings["f4"]] == [f"{to_f5} <f5>", within]


def test_the_detail_changes_no_count(program: Path, tmp_path: Path) -> None:
    guest = Guest()
    guest.call(4)
    guest.switch(1)
    loop, blocks = (TESTER_BEGINS, SENDER, *guest.runs, SENDER, TESTER_ENDS), [*BLOCKS, *FUNCTION_BLOCKS]
    plain = counted(program, tmp_path, *loop, blocks=blocks)
    text = written(program, tmp_path, *loop, blocks=blocks, options=["detail=on"])
    assert text is not None and plain == read_executions(text)
    assert read_detail(text.partition("node")[0], {0}).executions == {}


def test_calls_that_are_deeper_than_the_plugin_follows_are_of_the_deepest_that_it_follows(
    program: Path, tmp_path: Path
) -> None:
    guest = Guest()
    for number in range(300):
        guest.call(4 + number % 3, 0x20)
    for _ in range(300):
        guest.end()
    found = stacks_of(detail_of(program, tmp_path, *guest.runs), 1, function_at)
    assert sum(each for stack, each in found.items() if "sender" not in stack) == sum(guest.instructions.values())
