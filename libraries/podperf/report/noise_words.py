"""Words for the causes of noise: one sentence for each cause, with all rows that have this cause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from podperf.noise import NAMED

# The parts of a sentence of podperf.noise: `NDR and PDR: CPU 0, 1: 7% of the time went to other processes: cc1 (42)
# and memory was at 60% of its best speed; latency: ...`.
_PLACE = re.compile(r"(?:(?P<phase>[^:;]*): )??(?P<place>(?:[^:;,]*, )?CPU [\d, ]+): (?P<causes>.*)")
_CAUSE = re.compile(r" and (?=the slowest ran|memory was|\d)")
_SHARE = re.compile(r"(?<![0-9.])([0-9]{1,6}(?:[.][0-9]{1,6})?)%")  # reads each digit of a long number once


@dataclass
class _Cause:
    shares: list[float] = field(default_factory=list)
    processes: Counter[str] = field(default_factory=Counter)
    rows: dict[str, list[str]] = field(default_factory=dict)  # by label: the noisy phases


def noise_words(noises: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """A sentence for each cause of noise, and its rows. `noises` has the label of each row and its reason.

    Rows whose reasons differ only in share, processes or phase have one sentence: `CPU 0, 1: memory was at 59 to 64% of
    its best speed`. If only some figures of a row are noisy, the label names them: `PTP, 64 B (latency)`. A reason of
    another form stays as it is.
    """
    causes: dict[tuple[str, str, str], _Cause] = {}
    for label, reason in noises:
        for phase, place, cause in _causes(reason):
            found = _SHARE.search(cause) if place else None
            before, behind = (cause[: found.start()], cause[found.end() :]) if found else (cause, "")
            after, _, processes = behind.partition(": ")
            kept = causes.setdefault((place, before, after), _Cause())
            phases = kept.rows.setdefault(label, [])
            phases += [phase] if phase and phase not in phases else []
            if found:
                kept.shares.append(float(found[1]))
                kept.processes.update(re.sub(r" \(\d+\)$", "", each) for each in _listed(processes))
    return {
        _sentence(*key, cause): [f"{label} ({', '.join(phases)})" if phases else label for label, phases in rows]
        for key, cause in causes.items()
        if (rows := cause.rows.items())
    }


def _causes(reason: str) -> Iterator[tuple[str, str, str]]:
    """The phase, the machine with its CPUs, and the words of each cause."""
    phase = ""
    for part in reason.split("; "):
        if found := _PLACE.fullmatch(part):
            phase = found["phase"] or phase  # the sentence names a phase only before its first machine
            yield from ((phase, found["place"], cause) for cause in _CAUSE.split(found["causes"]))
        else:
            yield phase, "", part


def _listed(processes: str) -> list[str]:
    return processes.split(", ") if processes else []


def _sentence(place: str, before: str, after: str, cause: _Cause) -> str:
    shares = ""
    if cause.shares:
        least, most = (f"{each:g}" for each in (min(cause.shares), max(cause.shares)))
        shares = f"{least}%" if least == most else f"{least} to {most}%"
    names = ", ".join(name for name, _ in cause.processes.most_common(NAMED))
    return f"{place}{': ' if place else ''}{before}{shares}{after}{': ' if names else ''}{names}"
