"""podperf's own programs that speak to a TRex. They run on the tester's machine, with its interpreters."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from podperf.hosts.base import Host
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
