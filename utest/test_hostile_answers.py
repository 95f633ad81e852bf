"""A machine that answers nonsense makes a run fail, with a line that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import Testbed
from podperf.errors import PodperfError
from podperf.hosts.base import Completed
from podperf.hosts.linux import ip_json
from podperf.testers.answers import receive_answer


class Hostile:
    """A host whose every command says this."""

    name = "worker1"

    def __init__(self, said: str) -> None:
        self._said = said

    def ask(self, *command: str, check: bool = True) -> Completed:
        return Completed(command, 0, self._said, "")


@pytest.mark.parametrize("said", ["[" * 200_000, "{}", "7", "[7]", "\x1b[2J", "[{]", "9" * 5000])
def test_an_answer_that_is_none_is_one_line(said: str) -> None:
    host: Any = Hostile(said)
    with pytest.raises(PodperfError, match="on worker1, `ip -json link show` gave an answer that is none: ") as caught:
        ip_json(host, "link", "show")
    assert str(caught.value).isprintable() and len(str(caught.value)) < 300


class Answering:
    """A process that answers this."""

    def __init__(self, said: str) -> None:
        self._said = said

    def receive(self, timeout: float) -> str:
        return self._said


@pytest.mark.parametrize("said", ["[" * 200_000, "[]", '{"trial": ' + "9" * 5000 + "}", '{"other": 1}', "\x1b[2J"])
def test_a_tester_whose_answer_is_none_is_one_line(said: str) -> None:
    process: Any = Answering(said)
    with pytest.raises(PodperfError, match="the tester gave an answer that is none: ") as caught:
        receive_answer(process, 1.0, {"trial"}, "the tester")
    assert str(caught.value).isprintable() and len(str(caught.value)) < 300


def test_a_testbed_that_cannot_be_opened_for_an_unforeseen_reason_says_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Robot Framework's console is silent, and its exception would stand in the log alone."""

    def fail(*_: object, **__: object) -> None:
        raise KeyError("ifname\x1b[2J")

    monkeypatch.setattr(Testbed.BuiltIn, "get_variable_value", lambda *_: str(tmp_path))
    monkeypatch.setattr(Testbed, "Session", fail)
    monkeypatch.setattr("sys.__stderr__", None)  # otherwise the stream is not captured
    with pytest.raises(KeyError):
        Testbed.Testbed().open_testbed(tmp_path)
    assert capsys.readouterr().err == "podperf: KeyError: 'ifname\\x1b[2J'\n"
