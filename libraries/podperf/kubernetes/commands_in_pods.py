"""Runs commands in pods by exec: a short command with its output, or a command that answers lines until it ends."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import Completed
from podperf.kubernetes.api import Api

LONGEST_SILENCE = 15.0  # seconds; proxies and load balancers forget a connection that is silent for longer
_MOST_TOLD = 2000  # characters of the output of a command that failed
END = "podperf-end"
# Run by `sh -c` with a command.
_MARKED = f'"$@"; echo "{END} $?"'
_ENDED = re.compile(rf"{END} \d+\n")
_LONGEST_END = 64  # characters; the end marker is the last part of an output
_LOOK_AGAIN = 0.2  # seconds; an answer is noticed at once
_CLOSING = 1.0  # seconds for the server to close its side


class CommandInPodFailed(PodperfError):
    def __init__(self, pod: str, command: Sequence[str], why: str) -> None:
        super().__init__(f"in pod {pod}, `{' '.join(command)[:200]}` {why}")


def execute(api: Api, pod: str, namespace: str, command: Sequence[str], timeout: float = 10.0) -> str:
    """The output of a short command in a pod, while no trial runs. CommandInPodFailed if it fails, or does not end."""
    return succeeded(pod, complete(api, pod, namespace, command, timeout))


def complete(api: Api, pod: str, namespace: str, command: Sequence[str], timeout: float) -> Completed:
    """A command in a pod, to its end.

    CommandInPodFailed if it does not end in `timeout` seconds. The client's exec can hang, and can lose exit codes
    (kubernetes-client/python 602 and 2156). So the command has a deadline, and prints its exit code at its end.
    """
    from websocket import WebSocketException  # noqa: PLC0415 — its import takes a second, with that of kubernetes

    stream = api.open_stream(pod, namespace, ["sh", "-c", _MARKED, "sh", *command])
    said, errors = "", ""
    deadline = time.monotonic() + timeout
    stream.sock.ends_at = deadline + _LOOK_AGAIN
    try:
        while not _ENDED.search(said[-_LONGEST_END:]) and stream.is_open() and time.monotonic() < deadline:
            stream.update(timeout=_LOOK_AGAIN)
            said += _read(stream, "stdout")
            errors += _read(stream, "stderr")
    except (WebSocketException, OSError) as error:
        errors += f" (connection lost: {error})"
    finally:
        _close(stream)
    return ended(pod, command, said, errors)


def _close(stream: Any) -> None:
    from websocket import WebSocketException  # noqa: PLC0415

    stream.sock.ends_at = time.monotonic() + _CLOSING
    with suppress(WebSocketException, OSError):
        stream.close(timeout=_CLOSING)
    stream.sock.shutdown()


def _read(stream: object, name: str) -> str:
    peek, read = getattr(stream, f"peek_{name}"), getattr(stream, f"read_{name}")
    return str(read(timeout=0)) if peek(timeout=0) else ""


def ended(pod: str, command: Sequence[str], said: str, errors: str) -> Completed:
    """The output before the end marker, and the exit code behind it. CommandInPodFailed without them."""
    output, marker, exit_code = said.rpartition(END)
    if not marker or not exit_code.strip().isdecimal():
        raise CommandInPodFailed(pod, command, f"did not end: {' '.join((said + errors)[-_MOST_TOLD:].split()[-20:])}")
    return Completed(tuple(command), int(exit_code), output, errors)


def succeeded(pod: str, done: Completed) -> str:
    """The output of a command. CommandInPodFailed if its exit code is not 0."""
    if done.exit_code:
        detail = " ".join((done.stderr or done.stdout)[-_MOST_TOLD:].split())
        raise CommandInPodFailed(pod, done.command, f"ended with exit code {done.exit_code}: {detail}")
    return done.stdout


_STDOUT, _STDERR = b"\1", b"\2"  # channels of an exec: the first byte of each message
_TEXT, _BINARY, _CLOSE = 1, 2, 8  # kinds of messages (RFC 6455, section 5.2); others are pings and their answers


class Conversation:
    """A script in a pod that answers each line of its input with one line.

    All lines go through one connection, as each exec is work for the API server, the kubelet and the container runtime.
    A connection that was silent for LONGEST_SILENCE is replaced by a new one, with a new process of the script.
    """

    def __init__(self, api: Api, pod: str, namespace: str, script: str) -> None:
        """`script` is one of sh. It ends with its input."""
        self._api, self._pod, self._namespace, self._script = api, pod, namespace, script
        self._stream: Any = None
        self._used = 0.0  # time.monotonic
        self._said = ""  # what came after the last answer

    def ask(self, line: str, timeout: float) -> str:
        """The answer to a line. CommandInPodFailed if the script has ended. ApiError if there is no answer in `timeout`
        seconds, or if the connection is lost. Then it is not known whether the script has read the line."""
        from websocket import WebSocketException  # noqa: PLC0415 — its import takes a second, with that of kubernetes

        if self._stream is not None and time.monotonic() - self._used > LONGEST_SILENCE:
            self.close()
        if self._stream is None:
            command = ["sh", "-c", self._script]
            self._stream = self._api.open_stream(self._pod, self._namespace, command, stdin=True)
        try:
            self._stream.sock.received, self._stream.sock.ends_at = 0, time.monotonic() + timeout
            self._stream.write_stdin(f"{line}\n")
            answer = self._next_line()
        except BaseException as error:  # also Ctrl-C: the next answer would be that to this line
            self.close()
            if isinstance(error, (WebSocketException, OSError)):
                raise self._api.lost(self._pod, self._namespace, error) from error
            raise
        self._used = time.monotonic()
        return answer

    def keep(self) -> None:
        """Keep a connection from being silent for too long, without work for the script (a ping of RFC 6455)."""
        from websocket import WebSocketException  # noqa: PLC0415

        if self._stream is None or time.monotonic() - self._used < LONGEST_SILENCE / 3:
            return
        try:
            self._stream.sock.ping()
        except (WebSocketException, OSError):
            self.close()  # the next question makes a new one
        self._used = time.monotonic()

    def _next_line(self) -> str:
        errors = ""
        while "\n" not in self._said:
            kind, frame = self._stream.sock.recv_data_frame(True)
            if kind == _CLOSE:
                told = " ".join(errors[-_MOST_TOLD:].split())
                raise CommandInPodFailed(self._pod, [self._script], f"has ended: {told}")
            if kind not in {_TEXT, _BINARY}:
                continue
            channel, text = frame.data[:1], frame.data[1:].decode(errors="replace")
            if channel == _STDOUT:
                self._said += text
            elif channel == _STDERR:
                errors += text
        answer, _, self._said = self._said.partition("\n")
        return answer

    def close(self) -> None:
        """End the script. A further question starts it again."""
        if self._stream is not None:
            _close(self._stream)
        self._stream, self._said = None, ""
