"""`trex_ask.py ADDRESS PORT SECONDS [CLIENT]`: asks a TRex server for its version and for that of its stateless API.

Prints the server's two answers as JSON; exit code 3 when there is none within SECONDS. Imports nothing of podperf. An
interpreter without zmq finds that of TRex's client, by the folder CLIENT.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

try:
    import zmq
except ImportError:
    if len(sys.argv) < 5:
        raise
    sys.path.insert(0, sys.argv[4])
    importlib.import_module("trex.stl.api")  # makes the libraries that it brings along known
    import zmq

NOBODY_THERE = 3


def ask(address: str, port: int, seconds: float) -> dict[str, Any]:
    """The answers by method. zmq.Again when time is up."""
    host = f"[{address}]" if ":" in address else address
    requests: dict[str, dict[str, Any]] = {
        "get_version": {},
        "api_sync_v2": {"name": "STL", "major": 0, "minor": 0},
    }
    # The zmq that TRex's client brings has neither context managers nor JSON.
    context = zmq.Context()
    socket = context.socket(zmq.REQ)
    try:
        for option, value in ((zmq.LINGER, 0), (zmq.RCVTIMEO, int(seconds * 1000)), (zmq.IPV6, 1)):
            socket.setsockopt(option, value)
        socket.connect(f"tcp://{host}:{port}")
        answers = {}
        for method, parameters in requests.items():
            request = {"jsonrpc": "2.0", "id": method, "method": method, "params": parameters}
            socket.send(json.dumps(request).encode())
            answers[method] = json.loads(socket.recv())
    finally:
        socket.close()
        context.term()
    return answers


if __name__ == "__main__":
    try:
        print(json.dumps(ask(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
    except zmq.Again:
        sys.exit(NOBODY_THERE)
