"""The memory that processes and the kernel of a host hold now (proc(5))."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from podperf.hosts.base import Host

_LINE = re.compile(r"^/proc/(\d+)/status:(Name|Tgid|VmRSS):\s*(.*?)\s*$", re.MULTILINE)
_KIB = 1024


def resident_memory(host: Host, threads: Sequence[int]) -> Mapping[str, int]:
    """The resident bytes of each process to which these threads belong, as `testpmd (4711)`.

    Threads of the kernel have no memory of their own. They are left out, as are threads that have ended.
    """
    files = [f"/proc/{each}/status" for each in threads]
    if not files:
        return {}
    said = host.ask("grep", "-HE", "^(Name|Tgid|VmRSS):", "/dev/null", *files, check=False).stdout
    found: dict[str, dict[str, str]] = {}
    for thread, field, value in _LINE.findall(said):
        found.setdefault(thread, {})[field] = value
    named: dict[str, str] = {}  # by process; the thread with the number of the process has its name
    memory: dict[str, int] = {}
    for thread, fields in found.items():
        if "VmRSS" in fields and "Tgid" in fields:
            process = fields["Tgid"]
            memory[process] = int(fields["VmRSS"].split()[0]) * _KIB
            if thread == process or process not in named:
                named[process] = fields.get("Name", "?")
    return {f"{named[process]} ({process})": amount for process, amount in memory.items()}


def kernel_memory(host: Host) -> int | None:
    """The bytes of the kernel's own objects that it cannot give up now (SUnreclaim). None if it does not tell."""
    said = host.ask("grep", "^SUnreclaim:", "/proc/meminfo", check=False).stdout.split()
    return int(said[1]) * _KIB if len(said) > 1 else None
