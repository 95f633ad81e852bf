"""Where the instructions of a closed loop went, by function: the counts of QEMU's plug-in and the guest's symbols."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Collection

from podperf.counted_machine.executions import Windows, by_function, read_executions
from podperf.counted_machine.plugin import Plugin
from podperf.counted_machine.symbols import Symbols, read_symbols
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.methods.functions import Functions

_MOST = 32 * 2**20  # bytes of a kernel's symbols; 155 000 of them take 7 million
_SECONDS = 120.0  # most, for a guest that lists its 155 000 symbols on a busy host
# Symbols of the kernel itself stay where they are. Those of modules and BPF programs come and go.
_OF_KERNEL = "grep -v '\\[' /proc/kallsyms | grep ' [tTwW] ' | gzip -1 | base64"
_OF_OTHERS = "grep '\\[' /proc/kallsyms || true"


class Profiler:
    """The functions of one boot of the machine `inside`, in which QEMU has this plug-in."""

    def __init__(self, plugin: Plugin, inside: Host) -> None:
        self._plugin, self._inside = plugin, inside
        self._kernel: str | None = None

    def counts(self) -> Windows:
        """The counts of the plug-in in the last closed loop. Unavailable with the reason where it counted nothing."""
        path = self._plugin.executions
        if path is None:
            raise Unavailable(self._plugin.missing or "QEMU has no plug-in")
        try:
            return read_executions(path.read_text(encoding="ascii"))
        except OSError as error:
            raise Unavailable(f"QEMU's plug-in wrote no counts to {path}: {error.strerror}") from error

    def symbols(self) -> Symbols:
        """The functions that the machine has now. Unavailable with the reason where it tells none: its kernel may be
        anybody's."""
        others = self._inside.ask("sh", "-c", _OF_OTHERS, timeout=_SECONDS).stdout
        try:
            if self._kernel is None:
                self._kernel = _unpacked(self._inside.ask("sh", "-c", _OF_KERNEL, timeout=_SECONDS).stdout)
            return read_symbols(self._kernel, others)
        except (ValueError, zlib.error) as error:
            raise Unavailable(f"the counted machine's /proc/kallsyms has no list of functions ({error})") from error


def _unpacked(packed: str) -> str:
    """The text of a packed list. ValueError or zlib.error if there is none: a few bytes could unpack to gigabytes."""
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)  # with gzip's header
    text = unpacker.decompress(base64.b64decode(packed), _MOST)
    if not unpacker.eof:
        raise ValueError(f"it is cut, or has more than {_MOST} bytes")
    return text.decode()


class ChainProfiler:
    """The functions of a chain that stands. Its programs, and those of its tester, keep their addresses."""

    def __init__(self, machine: Profiler) -> None:
        self._machine = machine
        self._symbols: Symbols | None = None

    def functions(self, windows: Collection[int]) -> Functions:
        """Instructions a frame by function in these windows of the last closed loop, their mean.

        Unavailable with the reason where nothing was counted.
        """
        counts = self._machine.counts()
        if self._symbols is None:
            self._symbols = self._machine.symbols()
        return by_function(counts, windows, self._symbols)
