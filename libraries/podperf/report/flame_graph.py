"""Flame graphs: the instructions of a frame by stack of calls, and how two variants differ. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from podperf.figures import cut
from podperf.methods.functions import USER_SPACE, Functions, differences, instructions, signed
from podperf.report import svg

_WIDTH, _TOP, _STEP, _BOX = 1000, 30, 17, 16
_LETTER, _LEAST_NAME = 6.2, 3  # pixels, and letters of a name that is written into its box
_NARROWEST = 0.4  # pixels of a box that is drawn
_MORE, _LESS, _SAME = "#b42318", "#1b7a43", "#e4e7eb"
_DEEPEST = 100  # calls in one stack; a kernel's stack has room for fewer
_COLOURS = {"kernel": "#f2b36b", "module": "#9cc3e6", "bpf": "#b9d98a", "user space": "#cfd4da"}


@dataclass
class Call:
    """A function in a stack of calls: its own instructions before and after, and the functions that it calls."""

    name: str
    before: float = 0.0
    after: float = 0.0
    calls: dict[str, Call] = field(default_factory=dict)

    @property
    def together(self) -> tuple[float, float]:
        """Before and after, with all that it calls."""
        below = [each.together for each in self.calls.values()]
        return self.before + sum(one for one, _ in below), self.after + sum(other for _, other in below)

    @property
    def width(self) -> float:
        """The more of before and after, so that nothing that is gone or new is too narrow to be seen."""
        return max(self.before, self.after) + sum(each.width for each in self.calls.values())

    @property
    def largest_change(self) -> float:
        """Of own instructions, here and below."""
        return max(abs(self.after - self.before), *(each.largest_change for each in self.calls.values()), 0.0)


def call_tree(before: Functions, after: Functions) -> Call:
    """The stacks of two variants as one tree. A function with another name after has that name in both."""
    names = {
        change.name_before: change.name_after
        for change in differences(_by_function(before), _by_function(after))
        if change.name_before is not None and change.name_after is not None
    }
    root = Call("all")
    for stack, amount in before.items():
        _at(root, [names.get(each, each) for each in stack.split(";", _DEEPEST)]).before += amount
    for stack, amount in after.items():
        _at(root, stack.split(";", _DEEPEST)).after += amount
    return root


def _by_function(stacks: Functions) -> Functions:
    found: dict[str, float] = defaultdict(float)
    for stack, amount in stacks.items():
        found[stack.rpartition(";")[2]] += amount
    return found


def _at(call: Call, stack: Sequence[str]) -> Call:
    for name in stack:
        call = call.calls.setdefault(name, Call(name))
    return call


def flame_graph(title: str, stacks: Functions) -> str:
    """An SVG with the callers above the functions that they call. Empty without stacks."""
    return _drawing(title, call_tree(stacks, stacks), compared=False) if stacks else ""


def differential_flame_graph(title: str, before: Functions, after: Functions) -> str:
    """The same of two variants: red functions have more instructions of their own after, green ones less. Empty unless
    both have stacks."""
    return _drawing(title, call_tree(before, after), compared=True) if before and after else ""


def _drawing(title: str, root: Call, *, compared: bool) -> str:
    shapes, scale = list[str](), _WIDTH / (root.width or 1.0)
    deepest, most = 0, root.largest_change
    for call, x, depth in _placed(root, 0.0, 0):
        left, width = x * scale, call.width * scale
        if width < _NARROWEST:
            continue
        deepest = max(deepest, depth)
        shapes += _box(call, left, width, _TOP + depth * _STEP, most if compared else None)
    head = svg.text(0, 16, title, weight="bold")
    return svg.document(_WIDTH, _TOP + (deepest + 1) * _STEP + 4, title, head, *shapes)


def _placed(call: Call, x: float, depth: int) -> Iterator[tuple[Call, float, int]]:
    yield call, x, depth
    x += max(call.before, call.after)
    for name in sorted(call.calls):
        yield from _placed(call.calls[name], x, depth + 1)
        x += call.calls[name].width


def _box(call: Call, left: float, width: float, top: float, largest: float | None) -> Iterator[str]:
    (before, after), change = call.together, call.after - call.before
    words = f"{call.name}: {instructions(after)} instructions, {instructions(call.after)} of its own"
    if largest is None:
        colour = _COLOURS[_kind(call.name)]
    else:
        words = (
            f"{call.name}: {instructions(before)}, now {instructions(after)} ({signed(after - before)}); of its own "
        )
        words += f"{instructions(call.before)}, now {instructions(call.after)} ({signed(change)})"
        share = abs(change) / largest if largest else 0.0
        colour = svg.mixed(_MORE if change > 0 else _LESS, 0.25 + 0.6 * share) if change else _SAME
    yield svg.box(left, top, max(_NARROWEST, width - 0.4), _BOX, colour, title=words)
    letters = int((width - 4) / _LETTER)
    if letters >= _LEAST_NAME:
        yield svg.text(left + 3, top + _BOX - 4, cut(call.name, letters), size=11)


def _kind(name: str) -> str:
    if name == USER_SPACE:
        return "user space"
    return "bpf" if name.endswith("[bpf]") else "module" if name.endswith("]") else "kernel"
