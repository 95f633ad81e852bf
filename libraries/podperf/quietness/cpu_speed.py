"""The speeds of CPUs, as shares of their best ones.

On a virtual machine, or beside a busy SMT sibling, a CPU can lose half of its speed without any stolen time. Neighbours
that share its cache and memory slow its forwarding, but not its computing.

The best times of this machine's CPUs are kept from run to run, until the next boot. A whole run may fall into a slow
hour. Its own best times would then look normal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from podperf.hosts.local import LocalHost
from podperf.quietness import cpu_times
from podperf.quietness.cpu_times import Times, times_of

KEPT = Path(__file__).parents[3] / "build" / "cpu-speed.json"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class CpuSpeeds:
    """Speeds of some CPUs. Each is a share of that CPU's best speed.

    `best` has the shortest times of each CPU so far: those given at the start, or measured since then.
    """

    def __init__(
        self,
        cpus: Collection[int],
        measure: Callable[[int], Times] = times_of,
        best: Mapping[int, Times] | None = None,
    ) -> None:
        self._cpus, self._measure = tuple(cpus), measure
        self.best = dict(best or {})

    def sample(self) -> Mapping[int, tuple[float, float]]:
        """For each CPU the speed of its work and of its memory, 0 to 1. 1 means that the CPU was never faster."""
        shares = {}
        for cpu in self._cpus:
            taken = self._measure(cpu)
            self.best[cpu] = Times(*map(min, taken, self.best.get(cpu, taken)))
            shares[cpu] = _share(self.best[cpu].work, taken.work), _share(self.best[cpu].memory, taken.memory)
        return shares


def _share(best: float, taken: float) -> float:
    return best / taken if taken > 0 else 1.0


def remembered(path: Path = KEPT) -> dict[int, Times]:
    """The shortest times of each CPU (`cpu_times.times_of`). Empty if none are stored for this boot and this Python."""
    try:
        kept = json.loads(path.read_text())
        best = kept["best"] if kept["of"] == _of() else {}
        return {int(cpu): Times(*map(float, times)) for cpu, times in best.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def remember(best: Mapping[int, Times], path: Path = KEPT) -> None:
    """Store these times. A shorter stored time stays. If the folder is missing, nothing is stored."""
    known = remembered(path)
    shortest = {cpu: tuple(map(min, times, known.get(cpu, times))) for cpu, times in {**known, **best}.items()}
    with suppress(OSError):
        owner = path.parent.stat()
        LocalHost().put(json.dumps({"of": _of(), "best": shortest}).encode(), str(path))
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _of() -> list[str]:
    """The facts for which stored times are valid: this boot, this Python, and this version of `cpu_times`.

    After a boot, a virtual machine may be on another computer.
    """
    work = sha256(Path(cpu_times.__file__).read_bytes()).hexdigest()
    return [_BOOT.read_text().strip(), sys.version, work]
