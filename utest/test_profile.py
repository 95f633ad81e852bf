"""Where instructions went: what the plug-in counted, the symbols of a guest, and both joined."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.counted_machine.boot import CountedMachine
from podperf.counted_machine.plugin import LIBRARY, Plugin, plugin_for
from podperf.counted_machine.profile import (
    UNKNOWN,
    Block,
    ChainProfiler,
    Profiler,
    Symbols,
    profile_of,
    read_executions,
    read_symbols,
)
from podperf.counted_machine.snapshot import Snapshot
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Completed
from podperf.methods.functions import USER_SPACE
from podperf.model import Loop
from podperf.topology import SshSettings
from scripted_host import ScriptedHost

KERNEL = """\
0000000000020400 A cpu_info
ffffffff81000000 T _text
ffffffff81000100 T __memset
ffffffff81000100 T memset
ffffffff81000100 t memset_orig
ffffffff81000200 t ip_forward
ffffffff81000280 r a_table
ffffffff82000000 T _etext
"""
OTHERS = """\
ffffffffc0000100 t nft_do_chain\t[nf_tables]
ffffffffc0000200 t bpf_prog_8926e1767a8d9225_send_frames\t[bpf]
ffffffffc0000300 t bpf_prog_8926e1767a8d9225\t[bpf]
"""
COUNTED = """\
window 0
ffffffff81000200 10 64 128 64 64 5
ffffffffc0000104 69 64 0 0 0 0
window 1
ffffffff81000200 10 64 128 64 64 0
ffffffff81000240 2 64 0 32 16 1
ffffffffc0000104 69 64 0 0 0 0
400000 5 64 64 0 64 64
"""


@pytest.fixture
def symbols() -> Symbols:
    return read_symbols(KERNEL, OTHERS)


@pytest.mark.parametrize(
    ("address", "function"),
    (
        (0x400000, USER_SPACE),
        (0xFFFFFFFF80000000, UNKNOWN),
        (0xFFFFFFFF81000104, "memset"),
        (0xFFFFFFFF810001FF, "memset"),
        (0xFFFFFFFF81000290, "ip_forward"),  # a table is no function
        (0xFFFFFFFF82000004, UNKNOWN),
        (0xFFFFFFFFC0000100, "nft_do_chain [nf_tables]"),
        (0xFFFFFFFFC00002FF, "send_frames [bpf]"),
        (0xFFFFFFFFC0000300, "bpf_prog_8926e1767a8d9225 [bpf]"),  # a program without a name
    ),
)
def test_an_address_is_of_the_last_function_that_begins_before_it(
    symbols: Symbols, address: int, function: str
) -> None:
    assert symbols.function(address) == function


def test_blocks_are_read_by_window() -> None:
    windows = read_executions(COUNTED)
    assert list(windows) == [0, 1]
    assert windows[1][1] == Block(0xFFFFFFFF81000240, 2, 64, loads=0, stores=32, lines=16, misses=1)
    assert read_executions("") == {}
    assert read_executions(COUNTED, [1]) == {0: [], 1: windows[1]}


@pytest.mark.parametrize(
    "text",
    ("window\n", "window x\n", "window 1 1\n", "ffff 1\n", "ffff 1 1\n", "xyz 1 1 0 0 0 0\n", "f 1 1 0 0 0 0 0\n"),
)
def test_a_damaged_file_is_told(text: str) -> None:
    with pytest.raises(PodperfError, match="wrote what is no count of executions"):
        read_executions(text)


def test_instructions_of_a_function_are_the_mean_of_the_windows(symbols: Symbols) -> None:
    windows = read_executions(COUNTED)
    assert profile_of(windows, [0], symbols).functions == {"ip_forward": 10, "nft_do_chain [nf_tables]": 69}
    both = profile_of(windows, [0, 1], symbols).functions
    assert both == {"ip_forward": 11, "nft_do_chain [nf_tables]": 69, USER_SPACE: 2.5}


def test_memory_of_a_function_is_that_of_the_windows_behind_the_first(symbols: Symbols) -> None:
    windows = read_executions(COUNTED)
    used = {
        "loads": {"ip_forward": 2, USER_SPACE: 1},
        "stores": {"ip_forward": 1.5},
        "lines": {"ip_forward": 1.25, USER_SPACE: 1},
        "misses": {"ip_forward": 1 / 64, USER_SPACE: 1},
    }
    assert profile_of(windows, [0, 1], symbols).memory == profile_of(windows, [1], symbols).memory == used
    assert profile_of(windows, [0], symbols).memory == {}, "the plug-in's cache was empty"


def test_a_window_that_was_not_counted_is_told(symbols: Symbols) -> None:
    with pytest.raises(PodperfError, match="counted 2 windows, and not number 2, 3"):
        profile_of(read_executions(COUNTED), [1, 2, 3], symbols)


BLOCKS = st.lists(
    st.builds(
        Block,
        st.one_of(st.integers(0, 2**40), st.integers(0xFFFFFFFF81000000, 0xFFFFFFFFC0001000)),
        st.integers(1, 200),
        st.integers(1, 100_000),
    )
)


@given(st.lists(BLOCKS, min_size=1, max_size=3))
def test_no_instruction_is_lost(windows: list[list[Block]]) -> None:
    found = profile_of(dict(enumerate(windows)), range(len(windows)), read_symbols(KERNEL, OTHERS)).functions
    everything = sum(block.instructions * block.executions for blocks in windows for block in blocks)
    assert sum(found.values()) * Loop.WINDOW * len(windows) == pytest.approx(everything, rel=1e-12)


class Guest(ScriptedHost):
    """A machine with these symbols. It counts how often it is asked for those of the kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.listed = 0

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        if "gzip" in command[-1]:
            self.listed += 1
            return Completed(command, 0, base64.b64encode(gzip.compress(KERNEL.encode())).decode(), "")
        return Completed(command, 0, OTHERS, "")


def of_plugin(plugin: Plugin, folder: Path) -> CountedMachine:
    """A machine that is up, with this plug-in."""
    return CountedMachine(SshSettings(), plugin, Snapshot(folder), "booted")


def test_a_profile_joins_the_counts_of_the_last_loop_with_the_symbols_of_now(tmp_path: Path) -> None:
    guest, executions = Guest(), tmp_path / "executions"
    executions.write_text(COUNTED)
    for _ in range(2):
        profiler = Profiler(of_plugin(Plugin(executions), tmp_path), guest)
        assert ChainProfiler(profiler).profile([0]).functions == {"ip_forward": 10, "nft_do_chain [nf_tables]": 69}
    assert guest.listed == 1, "the kernel's own symbols stay where they are, and are kept beside the snapshot"


def test_without_counts_the_reason_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"QEMU 7\.2\.22 is too old"):
        ChainProfiler(Profiler(of_plugin(Plugin(missing="QEMU 7.2.22 is too old"), tmp_path), Guest())).profile([0])
    with pytest.raises(Unavailable, match=r"wrote no counts to .*executions: No such file"):
        ChainProfiler(Profiler(of_plugin(Plugin(tmp_path / "executions"), tmp_path), Guest())).profile([0])


class Qemu(ScriptedHost):
    """A host with this QEMU, and with the plug-in or without."""

    def __init__(self, *, built: bool = True, complaint: str = "") -> None:
        super().__init__()
        self.built, self.complaint = built, complaint

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        if command[0] == "test":
            return Completed(command, int(not self.built), "", "")
        if command[-1] == "--version":
            return Completed(command, 0, "QEMU emulator version 7.2.22\nCopyright", "")
        return Completed(command, int(bool(self.complaint)), "", self.complaint)


def test_a_qemu_that_takes_the_plugin_gets_it(tmp_path: Path) -> None:
    found = plugin_for(Qemu(), "qemu", tmp_path)
    assert found.missing is None and found.executions == tmp_path / "executions"
    assert found.words == ["-plugin", f"{LIBRARY},out={tmp_path}/executions"]


def test_a_comma_in_a_path_does_not_end_the_option() -> None:
    assert Plugin(Path("/a,b/executions")).words[1].endswith("out=/a,,b/executions")


def test_an_old_qemu_gets_none_and_the_reason_names_it(tmp_path: Path) -> None:
    found = plugin_for(Qemu(complaint="ignored\nundefined symbol: qemu_plugin_scoreboard_new"), "qemu", tmp_path)
    assert found.executions is None and not found.words
    assert found.missing == (
        "QEMU emulator version 7.2.22 does not take podperf's plug-in, so QEMU 9.1 or newer with plug-ins is needed "
        "(undefined symbol: qemu_plugin_scoreboard_new)"
    )


def test_a_plugin_that_is_not_built_is_told_with_the_remedy(tmp_path: Path) -> None:
    found = plugin_for(Qemu(built=False), "qemu", tmp_path)
    assert found.missing == "QEMU's plug-in is not built; once: sudo ./podperf set-up virtual-worker"


class LyingGuest(ScriptedHost):
    """A machine whose kernel is somebody else's."""

    def __init__(self, packed: str, others: str) -> None:
        super().__init__()
        self.packed, self.others = packed, others

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        return Completed(command, 0, self.packed if "gzip" in command[-1] else self.others, "")


PACKED = gzip.compress(KERNEL.encode())
LIES = {
    "no base64": ("?", OTHERS),
    "nothing": ("", OTHERS),
    "no gzip": (base64.b64encode(b"text").decode(), OTHERS),
    "cut": (base64.b64encode(PACKED[:-10]).decode(), OTHERS),
    "gigabytes": (base64.b64encode(gzip.compress(bytes(2**26))).decode(), OTHERS),
    "no text": (base64.b64encode(gzip.compress(b"\xff")).decode(), OTHERS),
    "no list": (base64.b64encode(PACKED).decode(), "a line\n"),
    "no address": (base64.b64encode(PACKED).decode(), "x t name\n"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_guest_that_lists_no_functions_costs_only_the_functions(lie: str, tmp_path: Path) -> None:
    profiler = Profiler(of_plugin(Plugin(tmp_path / "executions"), tmp_path), LyingGuest(*LIES[lie]))
    with pytest.raises(Unavailable, match="has no list of functions"):
        profiler.symbols()
