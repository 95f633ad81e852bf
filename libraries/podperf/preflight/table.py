"""What the preflight found, as a person reads it."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence

from podperf.preflight.finding import Finding, State

_COLOURS = {State.OK: 32, State.MISSING: 31, State.WARNING: 33, State.SKIPPED: 33, State.UNCHECKED: 33}


def render(findings: Sequence[Finding], *, width: int | None = None, colour: bool = False) -> str:
    """The findings as a table by area, and the conclusion. With a `width`, details are wrapped to that many columns."""
    subject_width = max((len(each.subject) for each in findings), default=0)
    lines = []
    for area in dict.fromkeys(each.area for each in findings):
        lines.append(area)
        for each in findings:
            if each.area == area:
                lines += _row(each, subject_width, width, colour)
    return "\n".join([*lines, "", conclusion(findings)])


def _row(finding: Finding, subject_width: int, width: int | None, colour: bool) -> Iterable[str]:
    indent = 2 + max(map(len, State)) + 2 + subject_width + 2
    detail = finding.detail + (f" (remedy: {finding.remedy})" if finding.remedy else "")
    wrapped = textwrap.wrap(detail, max(20, width - indent), break_on_hyphens=False) if width else [detail]
    state = f"{finding.state:<{max(map(len, State))}}"
    if colour:
        state = f"\033[{_COLOURS[finding.state]}m{state}\033[0m"
    first, *others = wrapped or [""]
    yield f"  {state}  {finding.subject:<{subject_width}}  {first}".rstrip()
    for other in others:
        yield " " * indent + other


def conclusion(findings: Collection[Finding]) -> str:
    """One sentence: whether the quick run can be measured here, and if not, because of what."""
    in_the_way = [each for each in findings if each.in_the_way]
    if not in_the_way:
        return "The quick run can be measured here."
    # What is known to be missing comes first; it often is the reason why the rest could not be checked.
    causes = [each for each in in_the_way if each.state is State.MISSING] or in_the_way
    obstacles = dict.fromkeys(each.subject for each in causes)
    return f"The quick run cannot be measured here. In the way: {', '.join(obstacles)}."
