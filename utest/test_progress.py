"""What a person sees while a run works."""

from __future__ import annotations

import io
import re

import pytest

from made_up import trial
from podperf.model import FrameSize, Traffic
from podperf.noise import Speed
from podperf.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError


def test_a_pipe_that_is_gone_ends_no_run() -> None:
    progress = Progress(Gone())
    progress.note("the summary")
    progress.test_begins("one", 1)


def test_time_left_comes_from_the_tests_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("podperf.progress.time.monotonic", lambda: now[0])
    stream = Terminal()
    progress = Progress(stream, first_guess=30)
    progress.test_begins("one", 3)
    assert "[1/3] one | set-up | 1:30 left" in stream.getvalue()
    now[0] += 50
    progress.test_ends("passed", "MRR 1 kpps")
    assert "[1/3] one passed: MRR 1 kpps (50 s)" in stream.getvalue()
    progress.test_begins("two", 3)
    assert "[2/3] two | set-up | 1:40 left" in stream.getvalue()


def test_nobody_claims_to_know_how_long_a_long_test_still_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("podperf.progress.time.monotonic", lambda: now[0])
    stream = Terminal()
    progress = Progress(stream, first_guess=30)
    progress.test_begins("finding", 1)
    now[0] += 31
    progress.waiting(Speed(0.5))
    line = stream.getvalue().rpartition("\x1b[K")[2]
    assert line.startswith("[1/1] finding | waiting for a quiet machine")
    assert "left" not in line


def test_outside_a_terminal_lines_come_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("podperf.progress.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    progress = Progress(stream)
    progress.test_begins("one", 1)
    for _ in range(105):
        now[0] += 0.1
        progress.waiting(Speed(0.5))
    assert stream.getvalue().count("\n") == 1 + 2


def test_a_terminal_is_not_redrawn_at_each_look_at_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("podperf.progress.time.monotonic", lambda: now[0])
    stream = Terminal()
    progress = Progress(stream)
    for _ in range(300):
        now[0] += 0.003
        progress.waiting(Speed(0.5))
    assert 4 <= stream.getvalue().count("\r") <= 6


def test_a_narrow_terminal_shows_load_loss_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podperf.progress.time.monotonic", lambda: 100.0)
    lost = trial(Traffic(FrameSize.parse(64)), 4_685_000.0, 2_500_000.0)
    for columns in (80, 60):
        monkeypatch.setenv("COLUMNS", str(columns))
        stream = Terminal()
        progress = Progress(stream, first_guess=20)
        progress.test_begins("SR-IOV and OVS-DPDK, 1518 B, 2 pods", 24)
        progress.trial("ndrpdr", lost)
        line = stream.getvalue().rpartition("\x1b[K")[2]
        assert len(line) < columns
        assert line.startswith("[1/24] SR")
        assert line.endswith(" | 8:00 left")
        assert "ndrpdr, trial 1" in line
        if columns == 80:
            assert re.search(r"4 685 kpps, 1 s, loss 46.6 % \|", line), line
