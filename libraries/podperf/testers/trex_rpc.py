"""Asks a TRex server for its versions, by JSON-RPC over ZeroMQ, before podperf chooses a client.

A client with another API version fails later, in the middle of its work. So podperf asks for the version first. A
separate program (`trex_ask.py`) asks, on the host that reaches the server. This host may be a network namespace.
The methods are those of the manual "TRex RPC server specification".
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import Host, json_answer
from podperf.hosts.programs import on_host

ASK, CLIENT = (Path(__file__).with_name(name) for name in ("trex_ask.py", "trex_client.py"))


@dataclass(frozen=True)
class Programs:
    """`ask` is the command of trex_ask.py without its arguments, `client` the path of trex_client.py.

    `libraries` is the folder of TRex's client, if the interpreter of `ask` lacks zmq.
    """

    ask: tuple[str, ...]
    client: str
    libraries: tuple[str, ...] = ()


HERE = Programs((sys.executable, "-I", str(ASK)), str(CLIENT))


def programs_on(host: Host, interpreter: str, libraries: str) -> Programs:
    """The programs on another machine, which has neither podperf nor its packages."""
    return Programs((interpreter, "-I", on_host(host, ASK)), on_host(host, CLIENT), (libraries,))


ANSWER_TIMEOUT = 5.0  # seconds
NOBODY_THERE = 3  # exit code of trex_ask.py without an answer
_ASSUMED = {
    "get_version": {"result": {"version": "as it runs there"}},
    "api_sync_v2": {"error": {"specific_err": "server: '5.1'"}},
}


@dataclass(frozen=True)
class Endpoint:
    """The address where a server listens for RPC."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


@dataclass(frozen=True)
class ServerVersion:
    """The version of a server, such as `v3.08`, and the version of its stateless API, such as (5, 1)."""

    version: str
    api: tuple[int, int]


def server_version(
    host: Host,
    endpoint: Endpoint,
    publisher_port: int = 0,
    timeout: float = ANSWER_TIMEOUT,
    programs: Programs = HERE,
) -> ServerVersion:
    """The version of the server at this endpoint. Raises PodperfError with a remedy if there is none to use.

    podperf also cannot use a server that publishes nothing on its `publisher_port`. With 0 this is not checked.
    """
    question = command(endpoint, timeout, programs, publisher_port)
    done = host.ask(*question, check=False, timeout=3 * timeout + 10, assumed=json.dumps(_ASSUMED))
    if done.exit_code == NOBODY_THERE:
        raise PodperfError(
            f"no TRex server answers at {endpoint} within {timeout:g} s, asked from {host.name}: "
            "is `t-rex-64 -i` running there, and do TCP ports 4500 and 4501 get through?"
        )
    if done.exit_code:
        raise PodperfError(f"the TRex server at {endpoint} cannot be asked: {_last_line(done.stderr)}")
    version, published = json_answer(
        host,
        f"get_version of TRex at {endpoint}",
        done.stdout,
        lambda answers: (read_version(endpoint, answers), answers.get("published", True)),
    )
    if publisher_port and not published:
        raise PodperfError(
            f"the TRex server {version.version} at {endpoint} publishes nothing at port {publisher_port} within "
            f"{timeout:g} s: set tester.settings.publisher_port to the zmq_pub_port of its configuration (4500 where "
            "that names none), and let this TCP port through"
        )
    return version


def command(endpoint: Endpoint, timeout: float, programs: Programs = HERE, publisher_port: int = 0) -> tuple[str, ...]:
    """The command that asks. It succeeds if the server answers within `timeout` seconds."""
    numbers = (str(endpoint.port), str(publisher_port), f"{timeout:g}")
    return (*programs.ask, endpoint.address, *numbers, *programs.libraries)


def read_version(endpoint: Endpoint, answers: Mapping[str, Any]) -> ServerVersion:
    """The versions in the answers to `get_version`, and to `api_sync_v2` with the version 0.0.

    Every server refuses a client of version 0.0. Only in this refusal it names its own API version.
    """
    version = answers["get_version"].get("result", {}).get("version", "of unknown version")
    refusal = answers["api_sync_v2"].get("error", {})
    text = f"{refusal.get('message', '')} {refusal.get('specific_err', '')}"
    if "RPC configuration mismatch" in text:
        raise PodperfError(
            f"the TRex server {version} at {endpoint} does not run in stateless mode: "
            "start it with -i and without --astf"
        )
    found = re.search(r"server: '(\d+)\.(\d+)'", text)
    if found is None:
        raise PodperfError(
            f"the TRex server {version} at {endpoint} does not tell the version of its API "
            f"({text.strip() or 'no answer'}): podperf needs TRex 2.31 or later"
        )
    return ServerVersion(version, (int(found[1]), int(found[2])))


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]
