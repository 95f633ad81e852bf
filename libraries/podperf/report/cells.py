"""What several parts of the page show of a record, in a cell or a word. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import quote

from podperf.figures import count, kpps, number, percent, short
from podperf.metrics import METRICS, ON_PAGE, RATIO, Metric, by_quantity
from podperf.model import Chain
from podperf.report.conformance import Conformance
from podperf.report.html import Content, Html, element, together
from podperf.report.results import Record, caveats, shown, verdict_word
from podperf.report.summary import figure_cell

_OVERLOAD = METRICS["mrr"]  # the metric of several trials, whose spread a table shows
_FORWARDS = 0.01  # of the bare path: a floor below it tells a data plane that works from a broken one, and no more


def state(word: str) -> Html:
    """A verdict as a coloured word."""
    return element("span", word, class_=f"state {word.replace(' ', '-')}")


def verdict(record: Record) -> Html:
    """How a test ended, and in a word each what limits its figures."""
    return together(state(verdict_word(record)), *(f" {word}" for word in caveats(record)))


def named(record: Record, conformance: Conformance) -> Html:
    """A test's name, which leads to its record on this page, and a way to its place in Robot's log."""
    name = element("a", conformance.name_of(record), href=f"#{conformance.anchor(record)}")
    log = in_log(record, conformance, "log")
    return together(name, " ", log) if log else name


def in_log(record: Record, conformance: Conformance, words: str) -> Content:
    """A link to the test in Robot's log; empty where there is none."""
    place = conformance.log_of(record)
    if place is None:
        return ""
    path, _, test = place.rpartition("#")
    return element("a", words, href=f"{quote(path)}#{test}", class_="log")


def chain_label(record: Record) -> str:
    """The chain as it calls itself; the test's name where it has none."""
    chain = record["chain"]
    return (
        str(Chain(chain["data_plane"], chain["pods"], None, chain.get("workers", 1)))
        if chain
        else record["test"]["name"]
    )


def frame_label(record: Record) -> str:
    """`64 B`, `IMIX`."""
    if not record["traffic"]:
        return "-"
    frame = record["traffic"]["frame"]
    return f"{frame['sequence'][0]} B" if len(frame["sequence"]) == 1 else str(frame["name"])


def figure(record: Record, metric: Metric) -> str:
    """A figure in the unit of its column."""
    return figure_cell(record, metric, ON_PAGE)


def typeset(unit: str) -> str:
    """A unit, with the letters that a page has and a terminal may lack."""
    return "µs" if unit == "us" else unit


def heads(metrics: Iterable[Metric]) -> str:
    """`MRR · PDR, kpps`."""
    found = by_quantity(metrics).items()
    return "; ".join(
        f"{' · '.join(each.head for each in group)}, {typeset(quantity.unit)}" for quantity, group in found
    )


def details(records: Sequence[Record]) -> Mapping[str, Callable[[Record], str]]:
    """Further columns of a table of these records, by their heads."""
    if _OVERLOAD not in shown(records):
        return {}
    return {f"{_OVERLOAD.head} spread": _spread, f"{_OVERLOAD.head}, L1 Gbit/s": _l1_rate}


def _spread(record: Record) -> str:
    """How far the MRR's trials lie apart, as a share of it."""
    found: Record | None = record["results"].get(_OVERLOAD.name)
    if not found or not found["frames_per_second"]:
        return "-"
    low, high = found["low_frames_per_second"], found["high_frames_per_second"]
    return "-" if low is None or high is None else percent((high - low) / found["frames_per_second"])


def _l1_rate(record: Record) -> str:
    """The MRR on the wire, Gbit/s."""
    found = record["results"].get(_OVERLOAD.name)
    return number(found["l1_bits_per_second"] / 1e9) if found else "-"


def limits_met(record: Record) -> str:
    """`MRR, PDR met; p50 open`: the limits by what became of each; `none` where frames had to cross and no more."""
    words = {"passed": "met", "failed": "missed", "inconclusive": "open", "not judged": "not judged"}
    found: dict[str, list[str]] = {}
    for each in record["verdict"]["outcomes"] if record["verdict"] else ():
        found.setdefault(words[each["status"]], []).append(_head(each["metric"]))
    return "; ".join(f"{', '.join(metrics)} {word}" for word, metrics in found.items()) or "none"


def limit_words(threshold: Record) -> str:
    """`MRR at least 0.2 % of the bare path's`."""
    floor = threshold["minimum"] is not None
    amount = threshold["minimum"] if floor else threshold["maximum"]
    if amount is None:
        return "no limit"
    of_baseline = threshold["unit"] == RATIO
    text = f"{percent(amount)} of the bare path's" if of_baseline else f"{short(amount)} {typeset(threshold['unit'])}"
    return f"{_head(threshold['metric'])} {'at least' if floor else 'at most'} {text}"


def _head(name: str) -> str:
    return METRICS[name].head if name in METRICS else name  # as in a record of another version


def limit_scope(threshold: Record) -> str:
    """For which tests a limit is: `1 pod, 64B`; empty where it is for all."""
    pods = threshold["pods"]
    words = (threshold["data_plane"], None if pods is None else count(pods, "pod"), threshold["frame"])
    return ", ".join(word for word in words if word)


def only_forwards(threshold: Record) -> bool:
    """True of a floor so far below the bare path that a data plane which meets it forwards, and no more is said."""
    floor = threshold["minimum"]
    return threshold["unit"] == RATIO and floor is not None and floor < _FORWARDS


def between(found: Record) -> str:
    """The interval of a rate, kpps."""
    low, high = found["low_frames_per_second"], found["high_frames_per_second"]
    return "-" if low is None or high is None else f"{kpps(low)} to {kpps(high)}"
