"""The observations of the preflight as a table for people."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence

from podperf.preflight.observation import Observation, State
from podperf.printable import printable

_LONGEST_SUBJECT = 120  # characters
_COLOURS = {State.OK: 32, State.MISSING: 31, State.WRONG: 31, State.WARNING: 33, State.SKIPPED: 33, State.UNCHECKED: 33}


def render(observations: Sequence[Observation], *, width: int | None = None, colour: bool = False) -> str:
    """The observations as a table by area, and the conclusion. With `width`, details are wrapped to so many columns."""
    subject_width = max((len(_subject(each)) for each in observations), default=0)
    lines = []
    for area in dict.fromkeys(each.area for each in observations):
        lines.append(area)
        for each in observations:
            if each.area == area:
                lines += _row(each, subject_width, width, colour)
    return "\n".join([*lines, "", conclusion(observations)])


def _row(observation: Observation, subject_width: int, width: int | None, colour: bool) -> Iterable[str]:
    indent = 2 + max(map(len, State)) + 2 + subject_width + 2
    detail = printable(observation.detail + (f" (remedy: {observation.remedy})" if observation.remedy else ""))
    wrapped = textwrap.wrap(detail, max(20, width - indent), break_on_hyphens=False) if width else [detail]
    state = f"{observation.state:<{max(map(len, State))}}"
    if colour:
        state = f"\033[{_COLOURS[observation.state]}m{state}\033[0m"
    first, *others = wrapped or [""]
    yield f"  {state}  {_subject(observation):<{subject_width}}  {first}".rstrip()
    for other in others:
        yield " " * indent + other


def _subject(observation: Observation) -> str:
    """The subject in one line. It can be a name that a machine or a cluster tells."""
    return printable(textwrap.shorten(observation.subject, _LONGEST_SUBJECT, placeholder=" …"))


def conclusion(observations: Collection[Observation]) -> str:
    """One sentence that says whether the quick run can be measured here. If not, it names the obstacles."""
    in_the_way = [each for each in observations if each.in_the_way]
    if not in_the_way:
        return "The quick run can be measured here."
    # If something is known to be wrong, only that is named. It often is the reason why other things are not checked.
    causes = [each for each in in_the_way if each.state is not State.UNCHECKED] or in_the_way
    obstacles = dict.fromkeys(map(_subject, causes))
    return f"The quick run cannot be measured here. In the way: {', '.join(obstacles)}."
