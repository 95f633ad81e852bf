"""What RFC 9971 wants to see of a search: goals with all attributes, bounds, effective durations, phases of a trial."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podperf.figures import kpps, number, percent, short
from podperf.methods.presets import EFFECTIVE_DURATION
from podperf.records import Data, Record
from podperf.report.html import NOTHING, Html, TableRow, element, table, together

# The attributes of a goal in RFC 9971, and those of the MLRsearch package.
_ATTRIBUTES: Mapping[str, tuple[str, str]] = {
    "loss_ratio": ("Goal Loss Ratio", "ratio"),
    "exceed_ratio": ("Goal Exceed Ratio", "ratio"),
    "initial_trial_duration": ("Goal Initial Trial Duration", "s"),
    "final_trial_duration": ("Goal Final Trial Duration", "s"),
    "duration_sum": ("Goal Duration Sum", "s"),
    "relative_width": ("Goal Width: (upper bound - lower bound) / upper bound", "ratio"),
    "preceding_targets": ("earlier phases, with a larger Goal Width", ""),
    "expansion_coefficient": ("factor of the Goal Width from phase to phase", ""),
}
_OF_THE_SEARCH: Mapping[str, tuple[str, str]] = {
    "minimum_load": ("Min Load, or a tenth of Max Load if that is lower", "frames/s"),
    "warmup_duration": ("warm-up: a trial at Max Load that does not count", "s"),
    "search_duration_max": ("time limit", "s"),
}
_LOADS = "Loads and rates are per direction. With traffic in both directions, the aggregate load is twice the load."
_LOSS = (
    "Trial Loss Ratio: that of the direction that lost more. (RFC 9971 takes the frames of both directions together. "
    "So no bound here is above the one by the RFC.) A corrupted frame is lost. A frame that arrives twice counts once. "
    "A frame that arrives out of order counts as well as any other."
)
# The phases of a trial in RFC 2544 section 23, and podperf's.
_PHASES = (
    ("a) routing", "routing update to a router, then 2 s", "none: routes and neighbours are part of the set-up"),
    (
        "b) learning",
        "learning frames, then 2 s",
        "a learning frame from each port, and no wait (software tester: 0.001 s); again while the trial runs. Before "
        "the first trial of a chain, frames also go until some have crossed in each direction of the traffic",
    ),
    ("c) trial", "60 s or more (section 24)", "the durations of the goals"),
    ("d) residual frames", "wait for 2 s", "until every frame has arrived, or no frame arrives for {settle}"),
    ("e) restabilizing", "wait for 5 s", "none: the next trial begins at once, or as soon as the machine is quiet"),
)


def bounds_cell(record: Record, goal: str) -> str:
    """The relevant bounds of a goal, kpps: `429 to 447`. `-` without any."""
    found = goals_of(record).get(goal) or {}
    low, high = found.get("relevant_lower_bound"), found.get("relevant_upper_bound")
    if low and high:
        return f"{_load(low)} to {_load(high)}"
    return f"{_load(low)}, no upper" if low else f"no lower, {_load(high)}" if high else "-"


def goals_of(record: Record) -> Mapping[str, Any]:
    """The goals of the record's own search with their results, by name. Empty without a search."""
    return record.method("ndrpdr").get("goals") or {}


def search_tables(record: Record) -> Iterator[Html]:
    """The goals of each search of a record: their results, bounds and losses."""
    for name, search in searches(record):
        if goals := search.get("goals"):
            yield _goals_table(name, search, goals)


def searches(record: Record) -> Iterator[tuple[str, Data]]:
    """Each search of a record, with the name of its chain if the record has several."""
    if found := record.method("ndrpdr"):
        yield "", found
    yield from (record.method("published").get("searches") or {}).items()


def searches_section(records: Sequence[Record]) -> Html:
    """How the records' searches were done: the attributes of each preset, and the rules for all of them."""
    presets: dict[str, Data] = {}
    for record in records:
        for _, search in searches(record):
            if (preset := search.get("preset")) and preset.get("goals"):
                presets.setdefault(json.dumps(preset, sort_keys=True), preset)
    if not presets:
        return NOTHING
    return together(
        element("h2", "How NDR and PDR were searched", id="searches"),
        element(
            "p", "By MLRsearch (RFC 9971). NDR and PDR are the conditional throughputs of these goals.", class_="muted"
        ),
        *(_attributes(each) for each in presets.values()),
        *(element("p", each, class_="small") for each in (EFFECTIVE_DURATION, _LOSS, _LOADS)),
        element("h3", "Phases of a trial: where they differ from RFC 2544 section 23"),
        table(("Phase", "RFC 2544", "here"), (TableRow(cells) for cells in trial_phases(records))),
    )


def trial_phases(records: Sequence[Record]) -> Iterator[tuple[str, str, str]]:
    """Each phase of a trial: its name, RFC 2544's words for it, and what the testers of these records do."""
    waits = {settle for record in records if (settle := record.tester.get("settle_seconds")) is not None}
    settle = " or ".join(f"{wait:g} s" for wait in sorted(waits)) or "a moment that the tester does not tell"
    yield from ((name, rfc, here.format(settle=settle)) for name, rfc, here in _PHASES)


def _load(bound: Data | None) -> str:
    """The load of a bound. A `*` marks a bound with fewer or shorter trials than its goal wants."""
    return "-" if bound is None else f"{kpps(bound['load'])}{'*' if bound.get('coarse') else ''}"


def _goals_table(name: str, search: Data, goals: Mapping[str, Any]) -> Html:
    heads = (
        "Goal",
        "conditional throughput, kpps",
        "relevant lower bound, kpps",
        "loss there",
        "relevant upper bound, kpps",
        "loss there ",
        "result",
    )
    rows = []
    for goal, found in goals.items():
        low, high = found["relevant_lower_bound"], found["relevant_upper_bound"]
        rate = "-" if found["rate"] is None else kpps(found["rate"])
        rows.append(TableRow((goal, rate, _load(low), _losses(low), _load(high), _losses(high), _regular(found))))
    where, preset = f"{name}: " if name else "", (search.get("preset") or {}).get("name", "?")
    link = element("a", f"the goals of preset {preset}", href="#searches")
    loads = [kpps(search[key]) for key in ("minimum_load", "maximum_load") if key in search]
    return together(
        element("h4", f"{where}Search for {', '.join(goals)}"),
        table(heads, rows, numeric=range(1, 6)),
        element("p", f"Loads of {' to '.join(loads)} kpps; " if loads else "", link, ".", class_="small"),
    )


def _losses(bound: Data | None) -> str:
    losses = (bound or {}).get("loss_ratios") or {}
    return ", ".join(f"{way} {percent(loss)}" if len(losses) > 1 else percent(loss) for way, loss in losses.items())


def _regular(goal: Data) -> str:
    """`regular`, or the reason why a result is irregular by RFC 9971."""
    low, high = goal["relevant_lower_bound"], goal["relevant_upper_bound"]
    reasons = (
        (low is None, "no lower bound"),
        (high is None, "no upper bound"),
        (any(each and each.get("coarse") for each in (low, high)), "*: too few or too short trials"),
        (not goal["complete"], "bounds further apart than the Goal Width"),
    )
    found = [words for holds, words in reasons if holds]
    result = f"irregular: {', '.join(found)}" if found else "regular"
    return f"{result}, but {goal['doubt']}" if goal.get("doubt") else result


def _attributes(preset: Data) -> Html:
    goals, sources = preset["goals"], preset.get("sources") or {}
    every = sources.get("everything else") or ""
    rows = [
        TableRow((label, *(_value(goal.get(key), unit) for goal in goals), sources.get(key) or every))
        for key, (label, unit) in _ATTRIBUTES.items()
    ]
    rows += [
        TableRow((label, *[_value(preset.get(key), unit)] * len(goals), sources.get(key) or every))
        for key, (label, unit) in _OF_THE_SEARCH.items()
    ]
    adapted = f" with {preset['adapted']}" if preset.get("adapted") else ""
    heads = ("Attribute", *(str(goal.get("name", "?")) for goal in goals), "From")
    return together(
        element("h3", f"Preset {preset['name']}{adapted}"),
        table(heads, rows, numeric=range(1, 1 + len(goals))),
    )


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return percent(value) if unit == "ratio" else f"{short(value) if value >= 1 else number(value)} {unit}".strip()
