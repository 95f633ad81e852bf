"""Short commands in a pod. None of them runs while a trial does.

The client's exec can hang, and can lose exit codes (kubernetes-client/python 602 and 2156). So each command has a
deadline, and prints its exit code behind an end marker.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress

from podperf.errors import PodperfError
from podperf.kubernetes.api import Api

END = "podperf-end"
# Run by `sh -c` with a command.
_MARKED = f'"$@"; echo "{END} $?"'
_ENDED = re.compile(rf"{END} \d+\n")
_LONGEST_END = 64  # characters; the end marker is the last part of an output
_LOOK_AGAIN = 0.2  # seconds; an answer is noticed at once
_CLOSING = 1.0  # seconds for the server to close its side
_MOST_TOLD = 2000  # characters of the output of a command that failed


class CommandInPodFailed(PodperfError):
    """A command in a pod failed."""

    def __init__(self, pod: str, command: Sequence[str], why: str) -> None:
        super().__init__(f"in pod {pod}, `{' '.join(command)[:200]}` {why}")


def execute(api: Api, pod: str, namespace: str, command: Sequence[str], timeout: float = 10.0) -> str:
    """The output of a command. CommandInPodFailed if it fails, or does not end in `timeout` seconds."""
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
        stream.sock.ends_at = time.monotonic() + _CLOSING
        with suppress(WebSocketException, OSError):
            stream.close(timeout=_CLOSING)
        stream.sock.shutdown()
    return checked(pod, command, said, errors)


def _read(stream: object, name: str) -> str:
    peek, read = getattr(stream, f"peek_{name}"), getattr(stream, f"read_{name}")
    return str(read(timeout=0)) if peek(timeout=0) else ""


def checked(pod: str, command: Sequence[str], said: str, errors: str) -> str:
    """The output before the end marker. CommandInPodFailed without the marker, or with an exit code other than 0."""
    output, marker, exit_code = said.rpartition(END)
    if not marker:
        raise CommandInPodFailed(pod, command, f"did not end: {' '.join((said + errors)[-_MOST_TOLD:].split()[-20:])}")
    if exit_code.strip() != "0":
        detail = " ".join((errors or output)[-_MOST_TOLD:].split())
        raise CommandInPodFailed(pod, command, f"ended with exit code {exit_code.strip()}: {detail}")
    return output
