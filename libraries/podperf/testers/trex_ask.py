"""`trex_ask.py ADDRESS PORT PUBLISHER SECONDS [CLIENT]`: asks a TRex server for the versions of itself and of its API.

Prints the server's two answers as JSON, and whether the server published anything on its port PUBLISHER (0: not
checked). Exit code 3 if the server does not answer within SECONDS. Imports nothing of podperf. An interpreter without
zmq uses the zmq of TRex's client in the folder CLIENT.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

try:
    import zmq
except ImportError:
    if len(sys.argv) < 6:
        raise
    sys.path.insert(0, sys.argv[5])
    importlib.import_module("trex.stl.api")  # adds the libraries of the client to Python's path
    import zmq

NOBODY_THERE = 3


def ask(address: str, port: int, publisher: int, seconds: float) -> dict[str, Any]:
    """The answers by method, and `published`. Raises zmq.Again if an answer does not come in time."""
    host = f"[{address}]" if ":" in address else address
    requests: dict[str, dict[str, Any]] = {
        "get_version": {},
        "api_sync_v2": {"name": "STL", "major": 0, "minor": 0},
    }
    # The zmq that TRex's client brings has neither context managers nor JSON.
    context = zmq.Context()
    asking, hearing = context.socket(zmq.REQ), context.socket(zmq.SUB)
    try:
        for socket in (asking, hearing):
            for option, value in ((zmq.LINGER, 0), (zmq.RCVTIMEO, int(seconds * 1000)), (zmq.IPV6, 1)):
                socket.setsockopt(option, value)
        if publisher:
            hearing.setsockopt(zmq.SUBSCRIBE, b"")
            hearing.connect(f"tcp://{host}:{publisher}")
        asking.connect(f"tcp://{host}:{port}")
        answers = {}
        for method, parameters in requests.items():
            request = {"jsonrpc": "2.0", "id": method, "method": method, "params": parameters}
            asking.send(json.dumps(request).encode())
            answers[method] = json.loads(asking.recv())
        if publisher:  # a server publishes its counters twice a second, also without a listener
            answers["published"] = bool(hearing.poll(int(seconds * 1000)))
    finally:
        asking.close()
        hearing.close()
        context.term()
    return answers


if __name__ == "__main__":
    try:
        print(json.dumps(ask(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))))
    except zmq.Again:
        sys.exit(NOBODY_THERE)
