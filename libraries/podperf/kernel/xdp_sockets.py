"""AF_XDP sockets of a process, as the kernel reports them: mode, busy polling, and dropped frames."""

from __future__ import annotations

from typing import Any

from podperf.hosts.base import Host, json_answer

# Asks the sockets themselves, because some kernels lack the module for `ss --xdp`. Runs with Python 3.6, too. The
# numbers are from linux/if_xdp.h, asm-generic/socket.h and asm-generic/unistd.h.
_READ_SOCKETS = """
import ctypes, json, os, socket, struct, sys
AF_XDP, SOL_XDP, XDP_STATISTICS, XDP_OPTIONS, XDP_OPTIONS_ZEROCOPY = 44, 283, 7, 8, 1
SO_BUSY_POLL, SO_INCOMING_NAPI_ID, SO_PREFER_BUSY_POLL, PIDFD_OPEN, PIDFD_GETFD = 46, 56, 69, 434, 438
process, found = ctypes.CDLL(None).syscall(PIDFD_OPEN, int(sys.argv[1]), 0), []
for number in sorted(map(int, os.listdir(f"/proc/{sys.argv[1]}/fd"))):
    try:
        kind = os.readlink(f"/proc/{sys.argv[1]}/fd/{number}")
    except FileNotFoundError:  # closed since it was listed
        continue
    copy = ctypes.CDLL(None).syscall(PIDFD_GETFD, process, number, 0) if kind.startswith("socket:") else -1
    if copy < 0:
        continue
    each = socket.socket(AF_XDP, socket.SOCK_RAW, 0, copy)
    if each.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) != AF_XDP:
        continue
    option = struct.unpack("=I", each.getsockopt(SOL_XDP, XDP_OPTIONS, 4))[0]
    dropped, _, _, full, empty, _ = struct.unpack("=6Q", each.getsockopt(SOL_XDP, XDP_STATISTICS, 48))
    found.append({
        "mode": "zero-copy" if option & XDP_OPTIONS_ZEROCOPY else "copy",
        "prefers_busy_polling": bool(each.getsockopt(socket.SOL_SOCKET, SO_PREFER_BUSY_POLL)),
        "busy_poll_us": each.getsockopt(socket.SOL_SOCKET, SO_BUSY_POLL),
        "has_napi": each.getsockopt(socket.SOL_SOCKET, SO_INCOMING_NAPI_ID) > 0,
        "dropped": dropped, "receive_ring_full": full, "fill_ring_empty": empty,
    })
print(json.dumps(found))
"""


def describe_sockets(host: Host, process: int) -> list[dict[str, Any]]:
    """Each AF_XDP socket of a process: mode, busy polling, and frames that the socket could not take.

    Busy polling works if the socket prefers it and knows the NAPI context to poll.
    """
    said = host.ask("python3", "-I", "-", str(process), stdin=_READ_SOCKETS).stdout
    return json_answer(host, "python3 (sockets of AF_XDP)", said, lambda answer: [dict(each) for each in answer])
