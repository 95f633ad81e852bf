"""One run at a time on a machine: two would measure each other."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from types import TracebackType

from podperf.errors import PodperfError

# In the abstract namespace: no file, and the kernel frees it however the process ends.
ADDRESS = "\0podperf-run"
# What a run from another machine locks here, as flock(1) cannot bind a socket: no file of ours either, and like the
# socket's name another one in each network namespace.
NETWORK = "/proc/self/ns/net"
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid: unix(7), SO_PEERCRED


class RunLock:
    """Held by the run that measures. PodperfError, naming the other process, when there is one already."""

    def __init__(self, address: str = ADDRESS) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._network: int | None = None

    def __enter__(self) -> RunLock:
        ours = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            ours.bind(self._address)
        except OSError as error:
            ours.close()
            raise PodperfError(
                f"another podperf run is measuring on this machine (process {self._holder()}); "
                "wait until it has ended, or stop it with Ctrl-C"
            ) from error
        ours.listen(128)  # for those who ask whose it is: nobody accepts them
        self._socket, self._network = ours, os.open(NETWORK, os.O_RDONLY)
        try:
            fcntl.flock(self._network, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._release()
            raise PodperfError(
                "another podperf run is measuring on this machine, from another machine; wait until it has ended"
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        if self._network is not None:
            os.close(self._network)
        if self._socket is not None:
            self._socket.close()
        self._network = self._socket = None

    def _holder(self) -> int | str:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
            visitor.setblocking(False)  # else one too many would wait for ever
            try:
                visitor.connect(self._address)
                credentials = visitor.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            except OSError:
                return "unknown"
            return int(_CREDENTIALS.unpack(credentials)[0])
