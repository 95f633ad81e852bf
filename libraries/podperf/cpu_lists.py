"""CPU lists in the kernel's notation ("0-3,8"), as in sysfs, taskset and topology files. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

HIGHEST_CPU = 8191  # the largest NR_CPUS that the kernel can be built with is 8192

_MASK = re.compile(r"0x0*[1-9a-f][0-9a-f]{0,2047}", re.IGNORECASE)
_PART = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """The CPU numbers of `"1"`, `"2-5,7"` or `""`, in ascending order, each once. ValueError gives the mistake."""
    numbers: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        match = _PART.fullmatch(part.strip())
        if _MASK.fullmatch(part.strip()):
            raise ValueError(f"the mask {part.strip()} is {format_cpu_list(_of_mask(part))} as a list")
        if match is None:
            raise ValueError(f"{part.strip()!r} is neither a CPU number nor a range such as 2-5")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise ValueError(f"the range {part.strip()} runs backwards")
        if last > HIGHEST_CPU:
            raise ValueError(f"CPU {last} is above {HIGHEST_CPU}, the highest that Linux knows")
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def _of_mask(text: str) -> list[int]:
    """The CPUs whose bits are set."""
    mask = int(text, 16)
    return [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1]


def format_cpu_list(cpus: Iterable[int]) -> str:
    """CPU numbers as the shortest list: (0, 1, 2, 7) is `"0-2,7"`."""
    numbers = sorted(set(cpus))
    if not numbers:
        return ""
    starts = [numbers[0], *(later for earlier, later in pairwise(numbers) if later != earlier + 1)]
    ends = [*(earlier for earlier, later in pairwise(numbers) if later != earlier + 1), numbers[-1]]
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in zip(starts, ends, strict=True)
    )
