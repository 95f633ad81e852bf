"""The conformance report as one HTML page: no script, nothing from elsewhere, good on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

import podperf
from podperf.figures import count, kpps, number, percent
from podperf.report import draft
from podperf.report.bars import comparison
from podperf.report.conformance import Conformance, SectionReport, SectionStatus
from podperf.report.facts import environment_facts, flat
from podperf.report.results import (
    Record,
    Run,
    caveats,
    explanation,
    noisy,
    not_comparable,
    preset,
    remarks,
    verdict_word,
)
from podperf.report.summary import latency_cell, pods_cell, rate_cell

_STYLE = Path(__file__).with_name("style.css")
_METRICS = (("mrr", "MRR"), ("ndr", "NDR"), ("pdr", "PDR"))
_LATENCIES = (("latency_p50", "p50"), ("latency_p99", "p99"))


def page(conformance: Conformance) -> str:
    """The whole page."""
    body = "\n".join(
        [
            _head(conformance),
            _overview(conformance),
            "<h2>Measured sections</h2>",
            *(_section(each, conformance) for each in conformance.sections if each.records),
            _skipped(conformance.latest),
            _calibration(conformance),
            _environment(conformance),
            _problems(conformance.runs),
            f"<footer>podperf {escape(podperf.__version__)}. Rates are per direction; frame sizes include the FCS; "
            "kpps: thousand frames per second. Every figure comes from the linked records.</footer>",
        ]
    )
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>Conformance report: {draft.NAME}</title>\n<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n"
        f"</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _head(conformance: Conformance) -> str:
    runs, records = conformance.runs, conformance.latest
    named = f"Testbed {escape(', '.join(conformance.testbeds))}. " if conformance.testbeds else ""
    when = f"{count(len(runs), 'run')}: " if len(runs) > 1 else "Run of "
    when += ", ".join(_moment(run.started) for run in runs if run.started)
    words = Counter(verdict_word(each) for each in records)
    judged = sum(1 for each in records if each["findings"])
    innermost = [each for each in conformance.sections if not any(map(each.section.holds, draft.SECTIONS))]
    sections = Counter(each.status for each in innermost if not each.section.informative)
    good = sections[SectionStatus.PASSED] + sections[SectionStatus.CONFIRMED]
    bad = sections[SectionStatus.FAILED] + sections[SectionStatus.REFUTED]
    tiles = [
        (len(records), "tests"),
        (words["passed"], "passed"),
        *([(words["measured"], "measured")] if words["measured"] else []),
        (words["failed"], "failed"),
        (words["skipped"], "skipped"),
        *([(f"{words['confirmed']} of {judged}", "claims confirmed")] if judged else []),
        (f"{good} of {sections.total()}", "sections good"),
        (bad, "sections bad"),
        (sections[SectionStatus.NOT_COVERED], "sections not covered"),
    ]
    noise = sum(1 for each in records if noisy(each))
    warning = (
        f"<p class='note'>The machine was noisy during {noise} of {count(len(records), 'test')}: "
        "their figures may say as much about its neighbours as about the system under test.</p>"
        if noise
        else ""
    )
    reasons = dict.fromkeys(reason for each in records if (reason := not_comparable(each)))
    warning += "".join(f"<p class='note'>Not comparable: {escape(reason)}</p>" for reason in reasons)
    return (
        "<h1>How fast this container networking forwards packets</h1>"
        f"<p class='muted'>{named}{when}. Sections of <a href='{draft.URL}'>{draft.NAME}</a>, "
        f"<i>{draft.TITLE}</i>.</p><div class='tiles'>"
        + "".join(f"<div class='tile'><b>{value}</b>{label}</div>" for value, label in tiles)
        + f"</div>{warning}"
    )


def _overview(conformance: Conformance) -> str:
    rows = []
    for report in conformance.sections:
        section = report.section
        title = escape(section.title)
        if report.records:
            title = f"<a href='#{_anchor(report)}'>{title}</a>"
        covered = f"<br><span class='muted small'>{escape(section.covered)}</span>" if section.covered else ""
        rows.append(
            f"<tr class='depth{section.depth}'><td>{section.number}</td><td class='title'>{title}</td>"
            f"<td>{escape(section.asks)}{covered}</td><td>{_state(report.status)}</td>"
            f"<td class='small'>{escape(report.reason)}</td></tr>"
        )
    return (
        "<h2>Sections of the draft</h2><table><thead><tr><th></th><th>Section</th><th>Asks for, and how it is covered"
        "</th><th>Result</th><th>Because</th></tr></thead><tbody>" + "".join(rows) + "</tbody></table>"
    )


def _section(report: SectionReport, conformance: Conformance) -> str:
    section = report.section
    parts = [
        f"<h3 id='{_anchor(report)}'>{section.number} {escape(section.title)} {_state(report.status)}</h3>",
        f"<p class='muted'>{escape(section.asks)}</p>",
    ]
    parts.append(_findings_table(report.records, conformance))
    plots: dict[str, list[Record]] = {}
    for each in report.records:
        if each["results"]:  # those of two testbeds do not compare, nor one direction with two
            way = "both directions" if len(each["traffic"]["directions"]) > 1 else ""
            title = ", ".join(filter(None, (f"{_frame(each)} frames", way, conformance.told_apart(each))))
            plots.setdefault(title, []).append(each)
    parts += [_plot(records, title) for title, records in plots.items()]
    measured = [each for each in report.records if each["results"] or not each["findings"]]
    if measured:
        parts.append(_results_table(measured, conformance))
    if len(conformance.runs) > 1:
        parts.append(_history_table(report.records, conformance))
    return "\n".join(parts)


def _findings_table(records: Sequence[Record], conformance: Conformance) -> str:
    rows = "".join(
        f"<tr><td class='test'>{_link(record, conformance)}</td>{_cell(each['claim'])}{_cell(each['detail'])}"
        f"<td class='nowrap'>{_state(each['verdict'])}{_limits(record)}</td></tr>"
        for record in records
        for each in record["findings"]
    )
    return (
        "<table><thead><tr><th>Test (record)</th><th>Claim</th><th>Measured here</th><th>Finding</th>"
        f"</tr></thead><tbody>{rows}</tbody></table>"
        if rows
        else ""
    )


def _plot(records: Sequence[Record], title: str) -> str:
    # The bare path is many times faster than anything with a pod in it: drawn to scale it would hide the rest.
    compared = [each for each in records if each["networking_model"] != "none"]
    bare = [each for each in records if each["networking_model"] == "none"] if compared else []
    drawing = comparison(compared or records, title)
    notes = [
        f"<p class='small muted'>Not drawn: the bare path ({escape(each['chain']['data_plane'])}), "
        f"MRR {escape(rate_cell(each, 'mrr'))} kpps, NDR {escape(rate_cell(each, 'ndr'))} kpps.</p>"
        for each in bare
        if each["chain"]
    ]
    return drawing + "".join(notes)


def _results_table(records: Sequence[Record], conformance: Conformance) -> str:
    if not any(each["results"] for each in records):
        return _checks_table(records, conformance)
    heads = [f"<th class='n'>{name}<br>kpps</th>" for _, name in _METRICS]
    heads += ["<th class='n'>MRR<br>spread</th>", "<th class='n'>MRR, L1<br>Gbit/s</th>"]
    heads += [f"<th class='n'>{name}<br>µs</th>" for _, name in _LATENCIES]
    rows = []
    for record in records:
        chain = record["chain"]
        cells = [
            f"<td class='test'>{_link(record, conformance)}</td>",
            _cell(chain["data_plane"] if chain else "-", "nowrap"),
            _cell(pods_cell(record), "n"),
            _cell(_frame(record), "nowrap"),
            *(_cell(rate_cell(record, metric), "n") for metric, _ in _METRICS),
            _cell(_spread(record), "n"),
            _cell(_l1(record), "n"),
            *(_cell(latency_cell(record, metric), "n") for metric, _ in _LATENCIES),
            _cell(_thresholds(record), "nowrap"),
            f"<td class='nowrap'>{_state(verdict_word(record))}{_limits(record)}</td>",
        ]
        why = escape("; ".join(remarks(record)))
        rows.append(f"<tr class='{'has-why' if why else ''}'>{''.join(cells)}</tr>")
        rows += [f"<tr class='why small'><td colspan='{len(cells)}'>{why}</td></tr>"] if why else []
    return (
        "<table><thead><tr><th>Test (record)</th><th>Data plane</th><th class='n'>Pods</th><th>Frame</th>"
        f"{''.join(heads)}<th>Limits met</th><th>Verdict</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _checks_table(records: Sequence[Record], conformance: Conformance) -> str:
    """Tests without figures."""
    rows = "".join(
        f"<tr><td>{_link(each, conformance)}</td>{_cell(explanation(each))}<td>{_state(verdict_word(each))}</td></tr>"
        for each in records
    )
    return (
        f"<table><thead><tr><th>Test (record)</th><th></th><th>Verdict</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _link(record: Record, conformance: Conformance) -> str:
    return f"<a href='{escape(quote(conformance.link(record)), quote=True)}'>{escape(conformance.name_of(record))}</a>"


def _history_table(records: Sequence[Record], conformance: Conformance) -> str:
    """Each test in each run: MRR and PDR, oldest run first."""
    heads = "".join(
        f"<th class='n'>{escape(run.name)}<br>{_moment(run.started)}<br>MRR · PDR kpps</th>" for run in conformance.runs
    )
    rows = []
    for record in records:
        past = {run.directory: each for run, each in conformance.history(record)}
        cells = "".join(_cell(_past(past.get(run.directory), preset(record)), "n") for run in conformance.runs)
        rows.append(f"<tr><td>{escape(conformance.name_of(record))}</td>{cells}</tr>")
    return (
        "<p class='small muted'>The table and the plots above show the latest run of each test; all of them:</p>"
        f"<table><thead><tr><th>Test</th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _past(record: Record | None, latest_preset: str) -> str:
    """With what keeps it from being compared with the latest."""
    if record is None:
        return "not run"
    if not record["results"]:
        return verdict_word(record)
    differs = ["noisy"] if noisy(record) else []
    if preset(record) != latest_preset:
        differs.append(f"preset {preset(record)}" if preset(record) else "no search")
    figures = f"{rate_cell(record, 'mrr')} · {rate_cell(record, 'pdr')}"
    return f"{figures} ({', '.join(differs)})" if differs else figures


def _skipped(records: Sequence[Record]) -> str:
    by_reason: dict[str, list[str]] = {}
    for record in records:
        if record["outcome"] == "skipped":
            by_reason.setdefault(explanation(record), []).append(record["test"]["name"])
    if not by_reason:
        return ""
    rows = "".join(
        f"<tr><td>{escape(', '.join(names))}</td><td>{escape(reason)}</td></tr>" for reason, names in by_reason.items()
    )
    return (
        "<h2>Skipped tests</h2><table><thead><tr><th>Tests</th><th>What the testbed does not offer</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _calibration(conformance: Conformance) -> str:
    """What the tester can do by itself: one row a kind of traffic, on each testbed."""
    rows: dict[tuple[str, str], str] = {}
    records = conformance.latest
    for record in records:
        limits, traffic = record["tester_limits"], record["traffic"]
        if limits and traffic:
            kind = f"{_frame(record)}, {' and '.join(traffic['directions'])}, {count(traffic['flows'], 'flow')}"
            kind = ": ".join(filter(None, (conformance.told_apart(record), kind)))
            engine = str((record["tester"] or {}).get("engine") or "?")
            loss = limits["own_loss_ratio"]
            rows[kind, engine] = (
                f"<tr><td>{escape(kind)}</td><td>{escape(engine)}</td><td class='n'>{kpps(limits['maximum_load'])}</td>"
                f"<td class='n'>{'?' if loss is None else percent(loss)}</td><td>{escape(limits['source'])}</td></tr>"
            )
    if not rows:
        return ""
    testers = {conformance.told_apart(each): each["tester"] for each in records if each["tester"]}
    heads = {name: f"<h3>{escape(name)}</h3>" if name else "" for name in testers}
    told = "".join(f"{heads[name]}{_facts(flat(each))}" for name, each in testers.items())
    return (
        f"<h2>The tester and its own limits</h2>{told}<table><thead><tr><th>Traffic</th><th>Engine</th>"
        "<th class='n'>Highest load it delivers, kpps</th><th class='n'>Own loss at half of that</th><th>Found by</th>"
        f"</tr></thead><tbody>{''.join(rows.values())}</tbody></table>"
        "<p class='small muted'>A result within 5 % of the tester's limit is a lower bound (≥): the system under test "
        "may do better.</p>"
    )


def _environment(conformance: Conformance) -> str:
    parts: list[str] = []
    for run in conformance.runs:
        known = [each for each in run.records if each["environment"]]
        if not known:
            continue
        record = next((each for each in reversed(known) if each["placement"]), known[-1])
        title = "<h2>Environment</h2>" if not parts else ""
        name = f"<h3>{escape(run.name)}</h3>" if len(conformance.runs) > 1 else ""
        parts.append(f"{title}{name}{_facts(environment_facts(record))}")
    return "".join(parts)


def _problems(runs: Sequence[Run]) -> str:
    found = [f"<li>{escape(run.name)}: {escape(problem)}</li>" for run in runs for problem in run.problems]
    return f"<h2>Files that could not be read</h2><ul>{''.join(found)}</ul>" if found else ""


def _facts(facts: Mapping[str, str]) -> str:
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f"<dl class='facts small'>{items}</dl>"


def _anchor(report: SectionReport) -> str:
    return f"section-{report.section.number}"


def _limits(record: Record) -> str:
    """What limits a record's figures, behind its verdict."""
    return "".join(f" {word}" for word in caveats(record))


def _state(word: str) -> str:
    return f"<span class='state {word.replace(' ', '-')}'>{word}</span>"


def _frame(record: Record) -> str:
    return str(record["traffic"]["frame"]["name"]) if record["traffic"] else "-"


def _moment(started: str) -> str:
    """`2026-11-20 23:39 UTC` of an ISO 8601 time."""
    return f"{started[:10]} {started[11:16]} UTC"


def _cell(content: str, kind: str = "") -> str:
    """A table cell with this text; `kind` n is a number, nowrap stays on one line."""
    return f"<td class='{kind}'>{escape(content.replace('>= ', '≥ '))}</td>"


def _spread(record: Record) -> str:
    rate: Record | None = record["results"].get("mrr")
    if not rate or rate["low_frames_per_second"] is None or not rate["frames_per_second"]:
        return "-"
    return percent((rate["high_frames_per_second"] - rate["low_frames_per_second"]) / rate["frames_per_second"])


def _thresholds(record: Record) -> str:
    """`2 of 3`; `none` where frames had to cross and no more."""
    outcomes = record["verdict"]["outcomes"] if record["verdict"] else ()
    met = sum(1 for each in outcomes if each["status"] == "passed")
    return f"{met} of {len(outcomes)}" if outcomes else "none"


def _l1(record: Record) -> str:
    rate = record["results"].get("mrr")
    return number(rate["l1_bits_per_second"] / 1e9) if rate else "-"
