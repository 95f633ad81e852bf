"""Restarts the agent of the network on a node of podperf's own cluster. On other clusters podperf restarts nothing.

The first process of such a cluster listens at a Unix socket of the machine, which only root can open. The nodes have an
annotation with a random word of this cluster. So podperf recognises a cluster that runs elsewhere, and restarts nothing
there.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from podperf.errors import PodperfError

WORD = "podperf/agents"  # the annotation
SOCKET = Path("/var/lib/podperf-cluster/agents")
READY = "ready"  # the answer
RESTART_TIMEOUT = 60.0  # seconds
ELSEWHERE = (
    "podperf restarts agents only on its own cluster, as root of its machine, and not every network has such an agent: "
    "sudo ./podperf cluster up --own --nodes 2 --network flannel"
)


def can_restart() -> bool:
    """Whether a cluster of podperf runs on this machine, and this program may ask it."""
    return os.access(SOCKET, os.W_OK)


def restart_agent(word: str, node: str) -> None:
    """End the agent on this node and start it again. Returns when pods of the node would reach all others again."""
    try:
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(RESTART_TIMEOUT)
            asked.connect(str(SOCKET))
            asked.sendall(f"{word} {node}\n".encode())
            answer = asked.makefile(encoding="utf-8").readline().strip()
    except OSError as error:
        answer = str(error)
    if answer != READY:
        reason = answer or "it did not become ready"
        raise PodperfError(f"the agent of the network on {node} was not restarted: {reason}")
