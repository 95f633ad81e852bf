"""The output of processes is kept up to a limit, and shown so that it cannot control a terminal."""

from __future__ import annotations

import queue
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.errors import PodperfError
from podperf.hosts import output
from podperf.hosts.base import CommandFailed, TooMuchOutput
from podperf.hosts.local import LocalHost
from podperf.hosts.output import MOST, MOST_ERRORS, Latest, Lines, Overflow, Whole
from podperf.observation import Observation, State
from podperf.preflight.command import render
from podperf.printable import printable

CHUNK = 65536


@given(st.binary(), st.lists(st.integers(0, 50)))
def test_lines_are_the_same_however_they_arrive(said: bytes, cuts: list[int]) -> None:
    lines = Lines()
    places = sorted({0, len(said), *(cut for cut in cuts if cut < len(said))})
    for begin, end in pairwise(places):
        lines.add(said[begin:end])
    lines.end()
    found = []
    while (line := lines.next(0)) is not None:
        found.append(line)
    whole = Whole()
    whole.add(said)
    assert found == whole.text().removesuffix("\n").split("\n") if said else found == []
    assert lines.next(0) is None, "the end stays the end"


@pytest.mark.parametrize(
    "said", [b"x\n" * (CHUNK // 2), b"\n" * CHUNK, b"x" * CHUNK], ids=["short", "empty", "endless"]
)
def test_lines_that_nobody_reads_are_lost_and_said_to_be(said: bytes) -> None:
    lines = Lines()
    for _ in range(2 * MOST // CHUNK):
        lines.add(said)
    kept = 0
    with pytest.raises(Overflow):
        while True:
            lines.next(0)
            kept += 1
    assert kept * 65 <= 2 * MOST
    lines.end()
    with pytest.raises(Overflow):
        lines.next(0)


def test_lines_that_are_read_may_be_as_many_as_one_likes() -> None:
    lines = Lines()
    for number in range(3 * MOST // CHUNK):
        lines.add(b"x" * (CHUNK - 1) + b"\n")
        assert len(lines.next(0) or "") == CHUNK - 1, number
    with pytest.raises(queue.Empty):
        lines.next(0)


def test_of_errors_the_last_are_kept() -> None:
    errors = Latest()
    for _ in range(5 * MOST_ERRORS // CHUNK):
        errors.add(b"x" * CHUNK)
    errors.add(b"the reason")
    assert errors.text().endswith("x" * 100 + "the reason")
    assert len(errors.text()) == MOST_ERRORS


@pytest.mark.parametrize("command", [("yes",), ("sh", "-c", "yes >&2"), ("cat", "/dev/zero")])
def test_a_command_without_an_end_is_ended_and_named(command: tuple[str, ...]) -> None:
    host = LocalHost()
    with pytest.raises(TooMuchOutput, match=rf"^on this machine, `{' '.join(command)}` said more than 16 MiB"):
        host.do(*command)
    with pytest.raises(TooMuchOutput, match="`cat /dev/zero` said more"):
        host.get("/dev/zero")


def test_a_command_may_say_much() -> None:
    assert len(LocalHost().ask("head", "-c", str(MOST), "/dev/zero").stdout) == MOST


ESCAPES = "\x1b[2J\x1b]0;title\x07 red\r over\x9b31m \u202egnp.exe \ud800"


def test_an_error_quotes_nothing_that_a_terminal_would_obey() -> None:
    plain = "\\x1b[2J\\x1b]0;title\\x07 red\\r over\\x9b31m \\u202egnp.exe \\ud800"
    assert str(PodperfError(f"two\nlines\t{ESCAPES}")) == f"two\nlines\t{plain}"
    assert str(CommandFailed("there", ["x"], 1, ESCAPES)) == f"on there, `x` ended with exit code 1: {plain}"
    found = render([Observation("area", "subject", State.OK, ESCAPES, ESCAPES)])
    assert plain in found and "\x1b" not in found


@given(st.text())
def test_text_of_others_can_be_printed_and_stays_readable(text: str) -> None:
    shown = printable(text)
    shown.encode()
    assert not any(each < " " and each not in "\n\t" for each in shown)
    assert printable(shown) == shown


def test_letters_of_all_scripts_stay_as_they_are() -> None:
    text = "größer, 日本語, العربية, naïve, „quoted“\n\tnext"
    assert printable(text) == text


def test_an_error_tells_the_end_of_a_long_story() -> None:
    said = str(CommandFailed("there", ["x"], 1, "begin " + "x" * 100_000 + " the reason"))
    assert len(said) < 5000
    assert said.endswith("the reason")
    assert "begin" not in said


class StoodStill:
    """A queue without a line for 20 s, although a wait is only to take `part` seconds. The line is there afterwards."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.waits = 0.0, list[float]()
        monkeypatch.setattr(output.time, "monotonic", lambda: self.now)

    def get(self, timeout: float) -> bytes:
        self.waits.append(timeout)
        self.now += 20.0
        if len(self.waits) == 1:
            raise queue.Empty
        return b"the answer"


def test_a_program_that_a_signal_stopped_still_gets_the_answer_that_came_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread that gathers the lines was stopped as well, and the time of the wait is over when both go on."""
    lines = Lines()
    lines._lines = StoodStill(monkeypatch)  # type: ignore[assignment]
    assert lines.next(1.0) == "the answer"


def test_a_wait_for_a_line_ends_at_its_timeout() -> None:
    began = time.monotonic()
    with pytest.raises(queue.Empty):
        Lines().next(0.2)
    assert time.monotonic() - began >= 0.2
