"""Figures and names for people: three significant digits or whole numbers, with spaces between thousands. Pure."""

from __future__ import annotations

_PHASES = {
    "mrr": "MRR",
    "ndrpdr": "NDR and PDR",
    "bare-path": "bare path",
    "cpu_time": "CPU time",
    "back_to_back": "back-to-back",
}


def phase_words(phase: str) -> str:
    """A phase of a test in words: `loss curve`. Phases have the names of methods."""
    return _PHASES.get(phase, phase.replace("_", " "))


def milliseconds(seconds: float | None) -> str:
    """Seconds as milliseconds."""
    return "not known" if seconds is None else f"{number(seconds * 1e3)} ms"


def number(value: float) -> str:
    """`4 310`, `281`, `28.1`, `0.852`: a whole number from 100 up, and otherwise three significant digits."""
    if abs(value) >= 99.95:
        return f"{value:,.0f}".replace(",", " ")
    if abs(value) >= 9.995:
        return f"{value:.1f}"
    if abs(value) >= 0.9995:
        return f"{value:.2f}"
    return "0" if value == 0 else f"{value:.3g}"


def short(value: float) -> str:
    """`number` without trailing zeros, for sentences: `5` instead of `5.00`."""
    text = number(value)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def kpps(frames_per_second: float) -> str:
    """Frames per second, in thousands."""
    return number(frames_per_second / 1e3)


def microseconds(nanoseconds: float) -> str:
    """Nanoseconds as microseconds."""
    return number(nanoseconds / 1e3)


def percent(ratio: float) -> str:
    """A ratio between 0 and 1 as per cent, with as many digits as a loss ratio needs."""
    return f"{short(ratio * 100)} %"


def signed(share: float) -> str:
    """A change as per cent: `-5.1 %`, `+0.3 %`."""
    return f"{'+' if share > 0 else ''}{short(share * 100)} %"


def count(amount: int, noun: str) -> str:
    """`1 test`, `2 tests`."""
    return f"{amount} {noun}{'' if amount == 1 else 's'}"


def cut(text: str, size: int) -> str:
    """At most `size` characters of a name. Its middle is left out, because names that begin alike differ at the end."""
    tail = (size - 1) // 2
    return text if len(text) <= size else f"{text[: size - 1 - tail]}…{text[len(text) - tail :]}"
