"""Commands that share a shell: each has its own input, output, standard error, exit code and time."""

from __future__ import annotations

import os
import signal as signals
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Process
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh import ShellHost, SshHost
from podperf.hosts.ssh_login import Login

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=30)


class Here(ShellHost):
    """The same shell on this machine, without an SSH server."""

    def __init__(self) -> None:
        super().__init__(Login("192.0.2.1"))
        self.shells: list[Process] = []

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        self.shells.append(LocalHost().spawn(*command))
        return self.shells[-1]

    def signal(self, signal: str, process: int) -> None:
        assert process == -self.shells[-1].pid, "all processes of the shell, which leads a session as under sshd"
        os.killpg(-process, getattr(signals, f"SIG{signal}"))


@pytest.fixture(scope="module")
def host() -> Iterator[Here]:
    here = Here()
    yield here
    for shell in here.shells:
        shell.stop()


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=50)
@given(texts, texts)
def test_words_input_and_output_are_what_they_were(host: Here, word: str, text: str) -> None:
    done = host.ask("sh", "-c", 'printf %s "$1"; cat; printf %s "$1" >&2', "sh", word, stdin=text)
    assert done.stdout == word + text
    assert done.stderr.removesuffix("\n") == word.removesuffix("\n")


def test_exit_codes_are_the_commands_own(host: Here) -> None:
    assert host.ask("sh", "-c", "exit 3", check=False).exit_code == 3
    with pytest.raises(CommandFailed, match="no such thing"):
        host.do("sh", "-c", "echo no such thing >&2; exit 1")
    with pytest.raises(PodperfError, match="`no-such-program` is not installed"):
        host.ask("no-such-program")
    assert host.ask("cat").stdout == "", "without input, a command reads none of the next commands"


def test_a_command_that_takes_too_long_is_killed_and_the_next_one_runs(host: Here) -> None:
    shell = int(host.ask("sh", "-c", "echo $PPID").stdout)
    with pytest.raises(CommandFailed, match="1 s"):
        host.ask("sh", "-c", "cat /dev/zero >/dev/null", timeout=1)
    host.shells[-1].stop()
    assert int(host.ask("sh", "-c", "echo $PPID").stdout) != shell


def test_files_of_any_bytes_are_read(host: Here, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(256)))
    assert host.get(str(tmp_path / "file")) == bytes(range(256))
    with pytest.raises(FileNotFoundError):
        host.get(str(tmp_path / "none"))


def test_a_command_of_another_thread_does_not_wait(host: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    def session(*command: str, **_: object) -> object:
        raise PodperfError("a session of its own")

    monkeypatch.setattr(SshHost, "_run", session)
    monkeypatch.setattr(host, "_in_shell", lambda *_: (0, host.ask("true").stdout, ""))  # while the shell is busy
    with pytest.raises(PodperfError, match="a session of its own"):
        host.ask("true")
