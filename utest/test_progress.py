"""The progress that a person sees during a run."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from made_up import trial
from podperf.noise import Speed
from podperf.progress import Progress
from traffic import TRAFFIC

LOSSY = trial(TRAFFIC, 4_685_000.0, 2_500_000.0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def line(self) -> str:
        """The one that stands there now."""
        return self.getvalue().rpartition("\x1b[K")[2]


class Gone(io.StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, which only a test changes."""
    moment = [100.0]
    monkeypatch.setattr("podperf.progress.time.monotonic", lambda: moment[0])
    return moment


def test_a_pipe_that_is_gone_ends_no_run() -> None:
    progress = Progress(Gone())
    progress.note("the summary")
    progress.test_begins("one")


ESCAPES = "\x1b]0;title\x07\x1b[2J\r"


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_names_of_others_do_not_steer_the_terminal(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason for an invalid trial names processes, which any user can call as he likes; a worker says errors."""
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.setattr("podperf.progress.LINE_INTERVAL", 0.0)
    progress = Progress(stream)
    progress.note(f"removed what an earlier run left on w1: {ESCAPES}")
    progress.test_begins(f"a test {ESCAPES}")
    progress.trial("ndrpdr", replace(LOSSY, invalid=f"the machine was noisy: {ESCAPES}"))
    progress.test_ends("failed", reason=f"KeyError: {ESCAPES}")
    said = stream.getvalue().replace("\r\x1b[K", "")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said)
    assert said.count(r"\x1b]0;title\x07\x1b[2J\r") >= 5


def test_time_left_comes_from_what_is_expected_and_the_tests_so_far(now: list[float]) -> None:
    stream = Terminal()
    progress = Progress(stream)
    progress.run_begins([60, 30, 60])
    progress.test_begins("one")
    assert stream.line == "[1/3] one | set-up | 2:30 left"
    now[0] += 120
    progress.test_ends("measured", "MRR 1 kpps")
    assert "[1/3] one measured: MRR 1 kpps (120 s)\n" in stream.getvalue()
    progress.test_begins("two")
    assert stream.line == "[2/3] two | set-up | 2:15 left", "half as long again as was expected: 90 s instead of 60"


def test_nobody_claims_to_know_how_long_a_long_test_still_takes(now: list[float]) -> None:
    stream = Terminal()
    progress = Progress(stream)
    progress.run_begins([30])
    progress.test_begins("finding")
    now[0] += 31
    progress.waiting(Speed(0.5))
    assert stream.line.startswith("[1/1] finding | waiting for a quiet machine")
    assert "left" not in stream.line


def test_outside_a_terminal_lines_come_now_and_then(now: list[float]) -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress.test_begins("one")
    for _ in range(105):
        now[0] += 0.1
        progress.waiting(Speed(0.5))
    assert stream.getvalue().count("\n") == 1 + 2


def test_a_terminal_is_not_redrawn_at_each_look_at_the_cpus(now: list[float]) -> None:
    stream = Terminal()
    progress = Progress(stream)
    for _ in range(300):
        now[0] += 0.003
        progress.waiting(Speed(0.5))
    assert 4 <= stream.getvalue().count("\r") <= 6


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 90, 120])
@pytest.mark.parametrize("name", ["Linux bridge, 64 B", "SR-IOV and OVS-DPDK, 1518 B, 2 pods"])
def test_a_narrow_terminal_clips_the_note_and_not_the_name(
    name: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    progress = Progress(stream)
    progress.run_begins([20] * 24)
    progress.test_begins(name)
    progress.trial("ndrpdr", LOSSY)
    assert len(stream.line) < columns
    assert stream.line.startswith(f"[1/24] {name}" if columns >= 60 else "[1/24] ")
    if columns > 20:
        assert stream.line.endswith(" | 8:00 left")
    if columns == 80 and "bridge" in name:
        assert " | offered load 4 685 kpps, loss 46.6 % |" in stream.line
    if columns == 60 and "bridge" in name:
        assert " | offered load 4 685…" in stream.line
    progress.trial("ndrpdr", trial(TRAFFIC, 281_000.0, 500_000.0))
    if columns == 90 and "bridge" in name:
        assert " | offered load 281 kpps, loss 0 %, trial 2 |" in stream.line
    if columns == 120:
        assert " | offered load 281 kpps, loss 0 %, NDR and PDR, trial 2 |" in stream.line


def test_what_has_no_figure_has_no_dangling_colon() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress.run_begins([1, 1, 1])
    progress.test_begins("Default Route")
    progress.test_ends("passed")
    progress.test_begins("Forwards")
    progress.test_ends("failed", "", "no frame crossed")
    progress.test_begins("Claim")
    progress.test_ends("confirmed", "", "confirmed: it is faster")
    ends = re.findall(r"^.*\(0 s\)$", stream.getvalue(), re.M)
    assert ends == [
        "[1/3] Default Route passed (0 s)",
        "[2/3] Forwards failed: no frame crossed (0 s)",
        "[3/3] Claim confirmed: it is faster (0 s)",
    ]


def test_why_a_test_was_skipped_takes_one_line_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has the whole reason, once for all tests that were skipped for it."""
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    progress = Progress(stream)
    progress.run_begins([1])
    progress.test_begins("SR-IOV, 64 B")
    progress.test_ends("skipped", "", "no NIC of this machine offers SR-IOV virtual functions: use another worker")
    line = stream.line.rstrip("\n")
    assert len(line) < 80 and line.startswith("[1/1] SR-IOV, 64 B skipped: no NIC of") and line.endswith("… (0 s)")
