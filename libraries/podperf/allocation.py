"""The share of a worker that every pod of a chain gets: CPU time, memory, polling CPUs, queues and buffers. No I/O.

The limits are the values that a cluster's scheduler is asked for (in Kubernetes `resources.limits` of a container). A
pod runtime enforces them in its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LEAST_CPU = 0.01  # of a CPU: the kernel refuses less than 1 ms of time in a period of 100 ms
LEAST_MEMORY = 1  # MiB
USUAL_BUFFERS = 8192  # with the 2048 descriptors of an AF_XDP queue, the queues of two ports keep half of them


@dataclass(frozen=True)
class PodLimits:
    """The most that the applications of a pod may take together. None: as much as there is.

    `cpu` is a number of CPUs: 0.5 is half of the time of one CPU, on whatever CPU the pod runs. `memory` is in MiB.
    """

    cpu: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        if self.cpu is not None and self.cpu < LEAST_CPU:
            raise ValueError(f"a pod needs the time of {LEAST_CPU} CPU or more, not {self.cpu}")
        if self.memory is not None and self.memory < LEAST_MEMORY:
            raise ValueError(f"a pod needs {LEAST_MEMORY} MiB of memory or more, not {self.memory}")

    def __bool__(self) -> bool:
        return self.cpu is not None or self.memory is not None

    def __str__(self) -> str:
        """`the time of 0.5 CPU and 256 MiB`, or `no limit`."""
        cpu = [] if self.cpu is None else [f"the time of {self.cpu:g} CPU"]
        memory = [] if self.memory is None else [f"{self.memory} MiB"]
        return " and ".join([*cpu, *memory]) or "no limit"

    def as_record(self) -> dict[str, Any]:
        """The limits, in the form of records."""
        return {"cpu": self.cpu, "memory_mib": self.memory}


UNLIMITED = PodLimits()


@dataclass(frozen=True)
class PodAllocation:
    """The allocation of each pod of a chain.

    An application polls on `cpus` CPUs. `descriptors` are those of each queue of a port (None: as many as the driver
    has by itself). `buffers` are the frames that the application can hold, for each of its CPUs.
    """

    limits: PodLimits = UNLIMITED
    cpus: int = 1
    descriptors: int | None = None
    buffers: int = USUAL_BUFFERS

    def as_record(self) -> dict[str, Any]:
        """The allocation, in the form of records."""
        return {
            "limits": self.limits.as_record(),
            "cpus": self.cpus,
            "descriptors": self.descriptors,
            "buffers": self.buffers,
        }


USUAL_ALLOCATION = PodAllocation()
