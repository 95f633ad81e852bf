"""Tables of the methods beside MRR and the search, from a record. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from podperf.figures import kpps, microseconds, number, percent
from podperf.report.html import NOTHING, Html, TableRow, element, facts, table, together
from podperf.report.results import Record

_PERCENTILES = ("minimum", "p50", "p90", "p99", "p99.9", "maximum")


def method_tables(record: Record) -> Iterator[Html]:
    """A table for each such method of the record."""
    for name, made in _TABLES.items():
        if found := record["methods"].get(name):
            yield made(found)


def _loss_curve(found: Record) -> Html:
    rows = (
        TableRow((kpps(each["load"]), percent(each["share"]), kpps(each["achieved_load"]), percent(each["loss_ratio"])))
        for each in found["points"]
    )
    heads = ("Load, kpps", "of the tester's maximum", "sent, kpps", "loss")
    left_out = ", ".join(map(kpps, found["not_delivered"]))
    return together(
        _title(f"Loss curve ({found['source']}), trials of {found['trial_duration']:g} s"),
        table(heads, rows, numeric=range(4)),
        *([element("p", f"The tester could not send {left_out} kpps.", class_="small")] if left_out else ()),
    )


def _latency_by_load(found: Record) -> Html:
    rows = (
        TableRow(
            (
                f"{percent(each['share'])} of the {each['of']}",
                kpps(each["load"]),
                percent(each["loss_ratio"]),
                *(microseconds(each["latency"][name]) if each["latency"] else "-" for name in _PERCENTILES),
            )
        )
        for each in found["steps"]
    )
    heads = ("Load", "kpps", "loss", *(f"{name}, µs" for name in _PERCENTILES))
    return together(_title("Latency by load"), table(heads, rows, numeric=range(1, len(heads))))


def _system_recovery(found: Record) -> Html:
    rows = (
        TableRow(
            (str(number_of), _milliseconds(each["seconds"]) if each["overloaded"] else "no loss", str(each["lost"]))
        )
        for number_of, each in enumerate(found["recoveries"], 1)
    )
    words = (
        f"{found['overload_duration']:g} s at {kpps(found['overload'])} kpps ({percent(found['overload_share'])} of "
        f"the NDR), then {found['duration']:g} s at {kpps(found['load'])} kpps"
    )
    return together(
        _title(f"System recovery ({found['source']}): {words}"),
        table(("Trial", "Until the last lost frame", "Lost frames"), rows, numeric=range(1, 3)),
    )


def _repeated_instantiation(found: Record) -> Html:
    rows = (
        TableRow((str(place), _milliseconds(each["set_up_seconds"]), ", ".join(map(kpps, each["rates"]))))
        for place, each in enumerate(found["instances"], 1)
    )
    within, between = found["variation_within"], found["variation_between"]
    words = "" if within is None else f"{percent(within)} from trial to trial, {percent(between)} added by the set-ups"
    return together(
        _title(f"Repeated instantiation ({found['source']}): {len(found['instances'])} set-ups"),
        element("p", f"Standard deviation of the rate, of its mean: {words}.") if words else NOTHING,
        table(("Set-up", "took", "MRR, kpps"), rows, numeric=range(1, 3)),
    )


def _soak(found: Record) -> Html:
    clumps = f"; loss in {found['intervals_with_loss']} of {len(found['moments'])} intervals" if found["lost"] else ""
    words = (
        f"{found['lost']} of {number(found['sent'])} frames lost{clumps}: at most {percent(found['loss_bound'])} with "
        f"{percent(found['confidence'])} confidence"
    )
    rows = [
        TableRow((name, *map(_mebibytes, (each["bytes"][0], max(each["bytes"]), each["bytes"][-1])), flat))
        for series in ("memory", "kernel_memory")
        for name, each in ((_named(series, name), each) for name, each in found[series].items())
        for flat in ["flat" if each["flat"] else "grows"]
    ]
    heads = ("Memory of", "first, MiB", "most, MiB", "last, MiB", "")
    return together(
        _title(f"Soak ({found['source']}): {number(found['seconds'])} s at {kpps(found['load'])} kpps"),
        element("p", words),
        table(heads, rows, numeric=range(1, 4)),
    )


def _named(series: str, name: str) -> str:
    return name if series == "memory" else f"the kernel of {name}"


def _mebibytes(amount: float) -> str:
    return number(amount / 2**20)


def _back_to_back(found: Record) -> Html:
    implied, corrected = (_milliseconds(found[each]) for each in ("implied_buffer_time", "corrected_buffer_time"))
    rows = (
        ("Bursts without loss, frames", ", ".join(map(str, found["bursts"]))),
        ("Mean, standard deviation", f"{number(found['mean'])}, {number(found['deviation'])}"),
        ("Rate of the bursts", "" if found["burst_rate"] is None else f"{kpps(found['burst_rate'])} kpps"),
        ("Throughput (NDR)", "not found" if found["throughput"] is None else f"{kpps(found['throughput'])} kpps"),
        ("Buffer time, implied and corrected", f"{implied}, {corrected}"),
        ("Longest burst that was tried", f"{found['longest_tried']} frames"),
    )
    return together(_title(f"Back-to-back frames ({found['source']})"), facts(rows))


def _milliseconds(seconds: float | None) -> str:
    return "not known" if seconds is None else f"{number(seconds * 1e3)} ms"


def _title(words: str) -> Html:
    return element("p", element("b", words))


_TABLES: Mapping[str, Callable[[Record], Html]] = {
    "loss_curve": _loss_curve,
    "back_to_back": _back_to_back,
    "latency_by_load": _latency_by_load,
    "system_recovery": _system_recovery,
    "repeated_instantiation": _repeated_instantiation,
    "soak": _soak,
}
