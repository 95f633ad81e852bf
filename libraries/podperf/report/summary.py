"""The table at the end of a run: rows with figures, tests without figures below, and notes about both."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from podperf.experiments.host_share import NAME as HOST_SHARE
from podperf.figures import count, number
from podperf.history.newest import NOTHING_EARLIER, BesideEarlier, DifferenceFromEarlier
from podperf.methods.cost import L1_BYTES
from podperf.methods.functions import MEMORY
from podperf.metrics import (
    APPLICATION_WORDS,
    CPU_TIME,
    IN_COLUMN,
    IN_TEXT,
    LATENCY,
    METRICS,
    RATE,
    Metric,
    Signs,
    by_quantity,
)
from podperf.model import CABLE
from podperf.records import Record
from podperf.report.cost_page import counted_costs
from podperf.report.draft import SECTIONS
from podperf.report.noise_words import noise_words
from podperf.report.results import (
    caveats,
    cpu_time_words,
    doubtful,
    figure_text,
    host_share_words,
    late_share,
    late_words,
    noisy,
    not_comparable,
    polls,
    remarks,
    shown,
    unfinished,
    verdict_word,
    with_applications,
)

_COLOURS = {  # of the words of verdicts, in the order of the closing line
    "passed": "32",
    "measured": "36",
    "confirmed": "32",
    "faster": "32",
    "no difference": "32",
    "failed": "31;1",
    "refuted": "31;1",
    "slower": "31;1",
    **dict.fromkeys(("inconclusive", "undecided", "not judged", "interrupted", "skipped"), "33"),
}
_NAME, _VERDICT = "Test", "Verdict"  # heads of the first and the last column
_LEAST_NAME = 16  # characters of a name in its first line, also on a terminal that is narrower than the table
_WIDEST_TEXT = 120  # columns of a note: longer lines are hard to read
_INDENT = "    "
_MEMORY = "Memory a frame"  # head of the first column of the second table
_POLLS = "polls"  # in place of a CPU time a frame
_MISSES = f"misses: of a model of a level 1 data cache with {L1_BYTES // 1024} KiB (docs/counted.md)"
_NO_BREAK = "\N{NO-BREAK SPACE}"
_HIGHER, _LOWER = "↑", "↓"  # behind a figure that differs from those of earlier runs
_WORSE, _BETTER = "31;1", "32"  # their colours


@dataclass(frozen=True)
class _Row:
    name: str
    figures: tuple[str, ...]
    verdict: str
    word: str
    colours: tuple[str, ...]  # of the figures; empty for those that do not differ from earlier ones


def summary_table(
    records: Sequence[Record], *, width: int = 80, colour: bool = False, earlier: BesideEarlier = NOTHING_EARLIER
) -> str:
    """All tests of a run in the order of the report, at most `width` characters wide if figures and words permit it.

    The table has a column for each metric that a test found or looked for. A second table has the use of memory of
    tests on a counted machine. `>=` marks a lower bound that the tester set, `<` an upper bound, `*` the result of an
    unfinished search, and `?` a figure in doubt. An arrow marks a figure that differs from those of `earlier` runs. A
    note for several rows is written once, below their names.
    """
    ordered = sorted(records, key=_place)
    with_figures = [each for each in ordered if each.figures]
    without = [each for each in ordered if not each.figures]
    parts = [
        _table(with_applications(with_figures, application=False), width, colour, earlier),
        _memory_table(with_figures, width),
        _application_table(with_applications(with_figures), width, colour, earlier),
        *_grouped(_notes(with_figures), width),
        *_apart(without, width, colour),
        "\n".join([closing_line(records), *_footer(records, width, earlier)]),
    ]
    return "\n\n".join(filter(None, parts))


def closing_line(records: Sequence[Record]) -> str:
    """`12 tests: 9 passed, 1 failed, 2 skipped`."""
    words = [verdict_word(record) for record in records]
    parts = [f"{words.count(word)} {word}" for word in sorted(set(words), key=list(_COLOURS).index)]
    return f"{count(len(records), 'test')}: {', '.join(parts)}" if parts else "no tests"


def figure_cell(record: Record, metric: Metric, signs: Signs = IN_TEXT) -> str:
    """A figure in its unit. Without a figure `-`, or `polls` if pollers do not tell their CPU time."""
    found = record.figures.get(metric.name)
    if found:
        return figure_text(found, metric.quantity, signs)
    return _POLLS if metric.quantity is CPU_TIME and polls(record) else "-"


def pods_cell(record: Record) -> str:
    """The number of pods between the ends. With several workers also their number, and ends that are in pods."""
    chain = record.chain
    if not chain:
        return "-"
    workers = chain.workers
    by = f" by {chain.join}" if chain.join != CABLE else ""
    where = f" on {count(workers, 'worker')}{by}" if workers > 1 else ""
    return f"{chain.pods}{where}{f' {chain.ends}' if chain.ends.in_pods else ''}"


def further_figures(record: Record) -> list[tuple[str, str]]:
    """Label and figure of each metric that is neither a rate nor a latency. Rates and latencies are shown elsewhere.

    A CPU time has its parts behind it, and these also if it has no figure.
    """
    found = {
        metric.label: f"{figure_cell(record, metric)} {metric.quantity.unit}"
        for metric in METRICS.values()
        if metric.name in record.figures and metric.quantity not in {RATE, LATENCY}
    }
    if parts := cpu_time_words(record):
        label = METRICS["cpu_time"].label
        found[label] = f"{found[label]} ({parts})" if label in found else parts
    return list(found.items())


def figures_line(record: Record) -> str:
    """The figures of a row in one line. Empty without figures."""
    metrics = (each for each in METRICS.values() if each.name in record.figures and each.method != HOST_SHARE)
    said = (
        ", ".join(f"{metric.head} {figure_cell(record, metric)}" for metric in alike) + f" {quantity.unit}"
        for quantity, alike in by_quantity(metrics).items()
    )
    return ", ".join(filter(None, (*said, host_share_words(record))))


def _place(record: Record) -> int:
    """The place of the test's first section in the draft."""
    numbers = [section.number for section in SECTIONS]
    return min((numbers.index(each) for each in record.test.sections if each in numbers), default=len(numbers))


# --- rows with figures ------------------------------------------------------------------------------------------------


def _application_table(records: Sequence[Record], width: int, colour: bool, earlier: BesideEarlier) -> str:
    """The rows of application traffic, apart from all others. Empty without any."""
    words = "\n".join(_wrapped(APPLICATION_WORDS, min(width, _WIDEST_TEXT)))
    found = _table(records, width, colour, earlier, application=True)
    return found and f"{words}\n\n{found}"


def _table(
    records: Sequence[Record], width: int, colour: bool, earlier: BesideEarlier, *, application: bool = False
) -> str:
    if not records:
        return ""
    metrics = [metric for metric in shown(records, application=application) if not metric.only_on_pages]
    arrows = [
        any(earlier.of(record, metric) for record in records) for metric in metrics
    ]  # digits of a column stay aligned
    names = Counter(map(_name, records))
    rows = [_row(record, names, metrics, arrows, earlier) for record in records]
    heads = (
        ("", *(each.head for each in metrics), ""),
        (_NAME, *(each.quantity.unit for each in metrics), _VERDICT),
    )
    columns = list(zip(*heads, *((each.name, *each.figures, each.verdict) for each in rows), strict=True))
    widths = [max(map(len, column)) for column in columns]
    widths[0], widths[-1] = _shared(width - sum(widths[1:-1]) - 2 * (len(widths) - 1), rows, widths[0], widths[-1])
    lines = [_line(head, widths) for head in heads]
    lines.append("  ".join("-" * each for each in widths))
    for row in rows:
        lines += _lines(row, widths, colour)
    return "\n".join(lines)


def _memory_table(records: Sequence[Record], width: int) -> str:
    """A row for each test whose use of memory was counted. Empty without any."""
    names = Counter(map(_name, records))
    found = {
        _label(record, names): {cost.frames: cost for cost in costs}
        for record in records
        if (costs := [cost for cost in counted_costs(record) if cost.memory])
    }
    if not found:
        return ""
    bursts = sorted({frames for costs in found.values() for frames in costs})
    columns = [(what, frames) for what in MEMORY for frames in bursts]
    heads = (
        ["", *(what for what, _ in columns)],
        [_MEMORY, *("" if frames == 1 else f"in {frames}" for _, frames in columns)],
    )
    rows = [
        [name, *(number(costs[frames].used(what)) if frames in costs else "-" for what, frames in columns)]
        for name, costs in found.items()
    ]
    widths = [max(map(len, column)) for column in zip(*heads, *rows, strict=True)]
    widths[0] = max(_LEAST_NAME, min(widths[0], width - sum(widths[1:]) - 2 * len(columns)))
    lines = [_line([*head, ""], [*widths, 0]) for head in heads]
    lines.append("  ".join("-" * each for each in widths))
    for name, *cells in rows:
        first, *more = _wrapped(name, widths[0])
        lines += [_line([first, *cells, ""], [*widths, 0]), *more]
    return "\n".join(lines)


def _shared(room: int, rows: Sequence[_Row], name: int, verdict: int) -> tuple[int, int]:
    """The widths of names and of verdicts, in characters. Names and verdicts that are too long go on in a second line.

    The widths are chosen so that the table has the fewest lines. Figures, words and names are never cut.
    """

    def lines(widths: tuple[int, int]) -> int:
        return sum(max(len(_wrapped(row.name, widths[0])), len(_verdict(row, widths[1]))) for row in rows)

    least = max(len(_VERDICT), *(len(part) for row in rows for part in _parts(row.verdict)))
    offers = [(max(min(name, _LEAST_NAME), min(name, room - size)), size) for size in range(least, verdict + 1)]
    return min(offers or [(name, verdict)], key=lines)


def _row(
    record: Record, names: Counter[str], metrics: Sequence[Metric], arrows: Sequence[bool], earlier: BesideEarlier
) -> _Row:
    differences = [earlier.of(record, each) for each in metrics]
    figures = tuple(
        figure_cell(record, metric, IN_COLUMN) + (_arrow(difference) if has_arrows else "")
        for metric, difference, has_arrows in zip(metrics, differences, arrows, strict=True)
    )
    colours = tuple((_WORSE if each.worse else _BETTER) if each else "" for each in differences)
    word = verdict_word(record)
    return _Row(_label(record, names), figures, ", ".join([word, *caveats(record)]), word, colours)


def _arrow(difference: DifferenceFromEarlier | None) -> str:
    return " " if difference is None else _HIGHER if difference.share > 0 else _LOWER


def _label(record: Record, names: Counter[str]) -> str:
    """The test's name. If it lacks data plane, pods or frame, or another test has the same name, these are added."""
    name, chain, traffic = _name(record), record.chain, record.traffic
    sends_frames = traffic and not with_applications([record])
    frame = traffic.frame.name if traffic and sends_frames else ""
    alike = names[name] > 1
    if not alike and frame.removesuffix("B") in name:
        return name
    pods = count(chain.pods, "pod") if chain and (alike or chain.pods > 1) else ""
    suite = record.test.suite.rpartition(".")[2] if alike else ""
    facts = ", ".join(filter(None, (chain.data_plane if chain else "", pods, frame, suite)))
    return f"{name} ({facts})" if facts else name


def _name(record: Record) -> str:
    return " ".join(record.test.name.split())


def _parts(verdict: str) -> list[str]:
    """`passed,` and `noisy`."""
    return verdict.replace(", ", ",\n").split("\n")


def _verdict(row: _Row, size: int) -> list[str]:
    return [row.verdict] if len(row.verdict) <= size else _parts(row.verdict)


def _lines(row: _Row, widths: Sequence[int], colour: bool) -> Iterator[str]:
    names, verdicts = _wrapped(row.name, widths[0]), _verdict(row, widths[-1])
    for place in range(max(len(names), len(verdicts))):
        verdict = verdicts[place] if place < len(verdicts) else ""
        cells = (
            names[place] if place < len(names) else "",
            *(row.figures if place == 0 else [""] * len(row.figures)),
            verdict,
        )
        colours = (*row.colours, _COLOURS[row.word]) if colour else ()
        yield _line(cells, widths, colours)


def _line(cells: Sequence[str], widths: Sequence[int], colours: Sequence[str] = ()) -> str:
    """One line. `colours` are those of the cells behind the first one."""
    name, *figures, verdict = cells
    padded = [cell.rjust(size) for cell, size in zip(figures, widths[1:-1], strict=True)]
    while not verdict and padded and not padded[-1].strip():
        padded.pop()
    behind = [*padded, verdict] if verdict else padded
    shown = [_painted(cell, colour) for cell, colour in zip_longest(behind, colours[: len(behind)], fillvalue="")]
    return "  ".join([name.ljust(widths[0]), *shown]).rstrip()


def coloured(text: str, word: str) -> str:
    """The text in the colour of this word for a verdict."""
    return _painted(text, _COLOURS[word])


def _painted(text: str, colour: str) -> str:
    shown = text.lstrip()
    return f"{text.removesuffix(shown)}\033[{colour}m{shown}\033[0m" if colour and shown else text


# --- notes about rows -------------------------------------------------------------------------------------------------


def _notes(records: Sequence[Record]) -> dict[str, list[str]]:
    """Each note about rows with figures, and the labels of its rows."""
    notes: dict[str, list[str]] = {}
    noises: list[tuple[str, str]] = []
    late: dict[str, float] = {}
    names = Counter(map(_name, records))
    for record in records:
        label, noise = _label(record, names), noisy(record)
        for remark in remarks(record):
            if remark == f"noisy: {noise}":
                noises.append((label, str(noise)))
            else:
                notes.setdefault(remark, []).append(label)
        if share := late_share(record):
            late[label] = share
    notes |= {late_words(list(late.values())): list(late)} if late else {}
    return notes | {f"noisy: {words}": labels for words, labels in noise_words(noises).items()}


def _grouped(notes: dict[str, list[str]], width: int) -> Iterator[str]:
    """The names of rows, and below them their notes."""
    by_rows: dict[tuple[str, ...], list[str]] = {}
    for note, labels in notes.items():
        by_rows.setdefault(tuple(labels), []).append(note)
    if by_rows:
        yield "\n".join(
            line for labels, said in by_rows.items() for line in (*_listed(labels, width), *_indented(said, width))
        )


def _apart(records: Sequence[Record], width: int, colour: bool) -> Iterator[str]:
    """Tests without figures, one line each. A reason stands once, below the tests that share it."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        word = verdict_word(record)
        reason = "; ".join(remarks(record)).removeprefix(f"{word}: ")  # the reason of a finding begins with its verdict
        groups.setdefault((", ".join([word, *caveats(record)]), reason), []).append(record)
    if not groups:
        return
    size = max(len(verdict) for verdict, _ in groups)
    lines = []
    for (verdict, reason), members in groups.items():
        word = verdict_word(members[0])
        shown = coloured(verdict, word) + " " * (size - len(verdict)) if colour else verdict.ljust(size)
        for member in members:
            first, *more = _wrapped(_name(member), max(_LEAST_NAME, width - size - 2))
            lines += [f"{shown}  {first}", *(" " * (size + 2) + line for line in more)]
        lines += _indented([reason], width)
    yield "\n".join(lines)


def _footer(records: Sequence[Record], width: int, earlier: BesideEarlier) -> Iterator[str]:
    for network in dict.fromkeys(record.pod_network for record in records if record.pod_network):
        yield from _wrapped(f"network of the pods: {network}", min(width, _WIDEST_TEXT))
    for reason in dict.fromkeys(
        f"not comparable: {reason}" for record in records if (reason := not_comparable(record))
    ):
        yield from _wrapped(reason, min(width, _WIDEST_TEXT))
    if any(record.figures for record in records):
        found = [record for record in records if record.figures]
        quantities = by_quantity([*shown(found), *shown(found, application=True)])
        words = [f"{quantity.unit}: {quantity.unit_words}" for quantity in quantities if quantity.unit_words]
        limits = dict.fromkeys(record.limit for record in found)
        words += [f"{IN_COLUMN.at_least}: at least, {' or '.join(limits)}", f"{IN_COLUMN.below}: less than"]
        words += ["*: search cut short"] if any(map(unfinished, records)) else []
        words += ["?: in doubt, and judged by nothing"] if any(map(doubtful, records)) else []
        words += [_MISSES] if any(cost.memory for record in records for cost in counted_costs(record)) else []
        words += [f"{_POLLS}: takes its whole CPU, with frames or without"] if any(map(polls, records)) else []
        yield from _wrapped("; ".join(words), min(width, _WIDEST_TEXT))
    if any(earlier.of(record, metric) for record in records for metric in METRICS.values()):
        legend = f"{_HIGHER}, {_LOWER}: higher, lower than in earlier runs; ./podperf report --history tells how sure"
        yield from _wrapped(legend, min(width, _WIDEST_TEXT))


def _listed(labels: Sequence[str], width: int) -> list[str]:
    """Names in lines. A line ends between two names, except if a name is longer than a line."""
    width = min(width, _WIDEST_TEXT)
    whole = (label if len(label) >= width else label.replace(" ", _NO_BREAK) for label in labels)
    return _wrapped("; ".join(whole), width)


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of text; a number stays with its unit."""
    together = re.sub(r"(?<=\d) (?=(?:B|pods?)\b)", _NO_BREAK, text)
    lines = textwrap.wrap(
        together, max(1, width), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return [line.replace(_NO_BREAK, " ") for line in lines] or [""]


def _indented(texts: Sequence[str], width: int) -> list[str]:
    return [line for text in texts if text for line in _wrapped(text, min(width, _WIDEST_TEXT), _INDENT)]
