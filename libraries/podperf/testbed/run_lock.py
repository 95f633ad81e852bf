"""One run at a time on a machine: two would measure each other."""

from __future__ import annotations

import socket
import struct
from types import TracebackType

from podperf.errors import PodperfError

# In the abstract namespace: no file, and the kernel frees it however the process ends.
ADDRESS = "\0podperf-run"
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid: unix(7), SO_PEERCRED


class RunLock:
    """Held by the run that measures. PodperfError, naming the other process, when there is one already."""

    def __init__(self, address: str = ADDRESS) -> None:
        self._address = address
        self._socket: socket.socket | None = None

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
        self._socket = ours
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _holder(self) -> int | str:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
            visitor.setblocking(False)  # else one too many would wait for ever
            try:
                visitor.connect(self._address)
                credentials = visitor.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            except OSError:
                return "unknown"
            return int(_CREDENTIALS.unpack(credentials)[0])
