"""The conformance report as one HTML page without scripts and external files, for screens, telephones and paper.

The page has in this order: figures that became worse; the networks of clusters; charts and findings; failed and
doubtful tests; each section of the draft; the tester; the environment; the records; the list of all sections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import podperf
from podperf.figures import count, kpps, percent
from podperf.metrics import APPLICATION_WORDS, METRICS, RATE, by_quantity, headlines, rates
from podperf.records import Record
from podperf.report import cells, draft, successor_draft
from podperf.report.clusters import clusters_section
from podperf.report.conformance import Conformance, SectionReport, SectionStatus
from podperf.report.facts import environment_facts, flat
from podperf.report.html import (
    NOTHING,
    Content,
    Html,
    TableRow,
    element,
    facts,
    framed,
    moment,
    not_read,
    table,
    tiles,
    titled,
    together,
)
from podperf.report.method_tables import published_tables
from podperf.report.nodes import nodes_section, slowest_first
from podperf.report.noise_words import noise_words
from podperf.report.ranking import rank, ranking
from podperf.report.record_view import record_view
from podperf.report.results import (
    caveats,
    explanation,
    is_bare_path,
    late_share,
    late_words,
    noisy,
    not_comparable,
    preset,
    remarks,
    said_by,
    shown,
    tester_faults,
    verdict_word,
    with_applications,
)
from podperf.report.searches import bounds_cell, goals_of, searches_section
from podperf.report.section_pictures import section_pictures
from podperf.report.summary import figure_cell

_DOUBTFUL = ("failed", "refuted", "interrupted", "inconclusive", "not judged")  # the worst first


def page(conformance: Conformance) -> str:
    """The whole page."""
    return framed(f"Conformance report: {draft.NAME}", *_body(conformance))


def _body(conformance: Conformance) -> Iterator[Html]:
    measured = [section for section in conformance.sections if section.records]
    yield _head(conformance)
    yield _changes(conformance)
    yield clusters_section(conformance)
    yield _comparison(conformance)
    yield nodes_section(slowest_first(conformance.latest))
    yield titled("Findings", _findings(conformance.latest, conformance))
    yield _doubtful(conformance)
    yield _noisy(conformance)
    yield _special(conformance)
    yield _skipped(conformance.latest)
    yield element("h2", "Measured sections")
    yield _limits(conformance.latest)
    yield from (_section(each, conformance) for each in measured)
    yield _applications(conformance)
    yield searches_section(conformance.latest)
    yield _calibration(conformance)
    yield _environment(conformance)
    yield element(
        "section",
        element("h2", "Records"),
        element("p", "Everything that is known of each test; a click opens it.", class_="muted"),
        *(record_view(each, conformance) for each in conformance.latest),
        class_="records",
    )
    yield _overview("All sections of the draft", conformance.sections)
    yield _by_successor(conformance)
    yield element(
        "footer",
        f"podperf {podperf.__version__}. Rates are per direction; frame sizes include the FCS; "
        "kpps: thousand frames per second. Every figure comes from the records.",
    )


def _head(conformance: Conformance) -> Html:
    runs, records = conformance.runs, conformance.latest
    named = f"Testbed {', '.join(conformance.testbeds)}. " if conformance.testbeds else ""
    when = f"{count(len(runs), 'run')}: " if len(runs) > 1 else "Run of "
    when += ", ".join(moment(run.started) for run in runs if run.started)
    words = Counter(verdict_word(record) for record in records)
    judged = sum(1 for record in records if record.findings)
    numbers: dict[str, int | str] = {"tests": len(records), "passed": words["passed"], "failed": words["failed"]}
    numbers |= {each: words[each] for each in ("measured", "skipped", *_DOUBTFUL[2:]) if words[each]}
    numbers |= {"claims confirmed": f"{words['confirmed']} of {judged}"} if judged else {}
    reasons = dict.fromkeys(reason for record in records if (reason := not_comparable(record)))
    faults = dict.fromkeys(fault for record in records for fault in tester_faults(record))
    said = [f"{run.name}: {problem}" if len(runs) > 1 else problem for run in runs for problem in run.problems]
    return together(
        element("h1", "How fast this container networking forwards packets"),
        element(
            "p",
            f"{named}{when}. Sections of ",
            element("a", draft.NAME, href=draft.URL),
            ", ",
            element("i", draft.TITLE),
            "; the same tests by the sections of its successor ",
            element("a", successor_draft.NAME, href="#successor"),
            " are at the end.",
            class_="muted",
        ),
        tiles(numbers),
        element("p", _coverage(conformance)),
        *(element("p", f"Not to be believed without reserve: {each}.", class_="note") for each in faults),
        *(element("p", f"Not comparable: {reason}", class_="note") for reason in reasons),
        not_read(said),
    )


def _coverage(conformance: Conformance) -> str:
    """The number of measured sections of the draft, and the sections with a bad status."""
    innermost = [section for section in conformance.sections if not any(map(section.section.holds, draft.SECTIONS))]
    # Some tests belong to 4.1 or 4.2 itself: those of a cluster's network, and of further methods.
    outer = [
        section
        for section in conformance.sections
        if section not in innermost and any(_of_itself(section.section.number, each) for each in section.records)
    ]
    found: dict[SectionStatus, list[str]] = {}
    for each in (*innermost, *outer):
        found.setdefault(each.status, []).append(each.section.number)
    unmeasured = (SectionStatus.SKIPPED, SectionStatus.NOT_COVERED, SectionStatus.INFORMATIVE)
    measured = sum(len(numbers) for status, numbers in found.items() if status not in unmeasured)
    measurable = measured + sum(len(found.get(each, ())) for each in unmeasured[:2])
    parts = [f"{measured} of the draft's {count(measurable, 'section')} with something to measure were measured"]
    problems = {
        SectionStatus.FAILED: "with a test that failed",
        SectionStatus.REFUTED: "with a claim that was refuted",
        SectionStatus.INCONCLUSIVE: "with a result that is not decided",
    }
    parts += [f"{', '.join(found[each])} {words}" for each, words in problems.items() if each in found]
    if skipped := found.get(SectionStatus.SKIPPED):
        parts.append(f"{', '.join(skipped)} could not be measured on this testbed")
    if missing := found.get(SectionStatus.NOT_COVERED):
        parts.append(f"{len(missing)} had no tests in this run")
    return f"{'; '.join(parts)}."


def _of_itself(section: str, record: Record) -> bool:
    """Whether a test that ran is of a section itself, and not of a part of it. The bare path is for all sections."""
    return section in record.test.sections and record.outcome != "skipped" and not is_bare_path(record)


def _changes(conformance: Conformance) -> Html:
    """What became worse since earlier runs, and how much else was compared. NOTHING without earlier runs."""
    newest, compared = conformance.runs[-1].records, conformance.earlier.compared
    if not compared:
        return NOTHING
    rows, worse, better = [], 0, 0
    for record in newest:
        found = [each for metric in METRICS.values() if (each := conformance.earlier.of(record, metric))]
        bad = [each for each in found if each.worse]
        worse, better = worse + len(bad), better + len(found) - len(bad)
        if bad:
            words = ", ".join(f"{each.metric.label} {each.words}" for each in bad)
            certainty = "; ".join(dict.fromkeys(each.certainty for each in bad))
            rows.append(TableRow((cells.named(record, conformance), words, certainty)))
    said = f"Of {count(compared, 'figure')} with a comparable earlier one, {worse} became worse, {better} better"
    return together(
        element("h2", "What became worse" if worse else "Nothing became worse"),
        table(("Test", "Figures that became worse", "Beside earlier runs"), rows),
        element("p", f"{said}. The history tells how sure that is: podperf report --history.", class_="small muted"),
    )


def _comparison(conformance: Conformance) -> Html:
    """A ranking for each frame size. Each testbed, and each choice of directions, has charts of its own."""
    groups: dict[tuple[bool, tuple[int, ...], int, str], list[Record]] = {}
    for each in conformance.latest:
        if each.traffic and "5" not in each.test.sections:  # section 5 measures no data plane
            sizes, ways = tuple(each.traffic.frame.sequence), len(each.traffic.directions)
            groups.setdefault((len(sizes) > 1, sizes, ways, conformance.told_apart(each)), []).append(each)
    charts = [_chart(groups[key], conformance) for key in sorted(groups)]
    return titled("The data planes, the fastest first", together(*charts))


def _chart(records: Sequence[Record], conformance: Conformance) -> Html:
    # The bare path is many times faster than every chain of pods. A bar for it would make all other bars tiny.
    bare = rank([record for record in records if is_bare_path(record)])
    compared = rank([record for record in records if not is_bare_path(record)])
    drawn = compared or bare
    if not drawn:
        return NOTHING
    labels = Counter(map(cells.chain_label, drawn))
    rows: list[tuple[Record, Content, Content]] = []
    for each in drawn:
        label, word = cells.chain_label(each), verdict_word(each)
        alone = labels[label] == 1  # otherwise names of tests differ more, for example by forwarder or placement
        name = element("a", label if alone else each.test.name, href=f"#{conformance.anchor(each)}")
        doubt = () if word in ("passed", "measured") else (" ", cells.state(word))
        rows.append((each, name, together(*doubt, " noisy" if noisy(each) else "")))
    both = "both directions" if (traffic := drawn[0].traffic) and len(traffic.directions) > 1 else ""
    title = ", ".join(filter(None, (f"{cells.frame_label(drawn[0])} frames", both, conformance.told_apart(drawn[0]))))
    return together(ranking(title, rows), *(_bare_path(each, conformance) for each in bare if compared))


def _bare_path(record: Record, conformance: Conformance) -> Html:
    measured = (rate for rate in rates() if rate.name in record.figures)
    found = ", ".join(f"{each.label} {cells.figure(record, each)}" for each in measured)
    return element(
        "p",
        "Not drawn: ",
        element("a", f"the path without a pod ({cells.chain_label(record)})", href=f"#{conformance.anchor(record)}"),
        f", {found} {RATE.unit}. It is what the ",
        element("a", "tester by itself", href="#tester"),
        " can do.",
        class_="small muted",
    )


def _findings(records: Sequence[Record], conformance: Conformance) -> Html:
    rows = (
        TableRow(
            (
                cells.named(record, conformance),
                together(finding.claim, element("div", said_by(finding), class_="small muted")),
                finding.detail,
                together(cells.state(finding.verdict), " ", " ".join(caveats(record))),
            )
        )
        for record in records
        for finding in record.findings
    )
    return table(("Test", "Claim", "Measured here", "Finding"), rows)


def _doubtful(conformance: Conformance) -> Html:
    """Tests with a bad outcome, the worst first. Claims are left out, because the findings show them."""
    found = [
        each
        for each in conformance.latest
        if verdict_word(each) in _DOUBTFUL and not (each.findings and each.outcome == "passed")
    ]
    found.sort(key=lambda each: _DOUBTFUL.index(verdict_word(each)))
    rows = [
        TableRow((cells.named(each, conformance), cells.state(verdict_word(each)), explanation(each))) for each in found
    ]
    failed = any(verdict_word(each) in _DOUBTFUL[:3] for each in found)
    title = "What failed, or is not decided" if failed else "What is not decided"
    return titled(title, table(("Test", "Verdict", "Why"), rows))


def _noisy(conformance: Conformance) -> Html:
    found = [(conformance.name_of(each), reason) for each in conformance.latest if (reason := noisy(each))]
    words = (
        f"The machine was noisy during {len(found)} of {count(len(conformance.latest), 'test')}: their figures may say "
        "as much about its neighbours as about the system under test."
    )
    return _with_tests("What is noisy", "What else went on", noise_words(found), words)


def _special(conformance: Conformance) -> Html:
    """The special capabilities of the system under test. Section 5 of the draft says that there should be none."""
    found: dict[str, list[str]] = {}
    for each in conformance.latest:
        for sentence in each.special_capabilities:
            found.setdefault(sentence, []).append(conformance.name_of(each))
    words = (
        "Section 5 of the draft: special capabilities should not exist in the system under test for the sake of a "
        "benchmark. These do, because more threads polled than there were CPUs for them. A worker with a CPU for each "
        "of them needs none."
    )
    return _with_tests("Special capabilities in the system under test", "What ran there", found, words, id="special")


def _with_tests(title: str, head: str, found: Mapping[str, Sequence[str]], words: str, **attributes: str) -> Html:
    """A table of what was found, each with the names of its tests, below a note. NOTHING if nothing was found."""
    rows = [TableRow((each, "; ".join(names))) for each, names in found.items()]
    content = together(element("p", words, class_="note"), table((head, "During"), rows)) if rows else NOTHING
    return titled(title, content, **attributes)


def _skipped(records: Sequence[Record]) -> Html:
    by_reason: dict[str, list[str]] = {}
    for record in records:
        if record.outcome == "skipped":
            by_reason.setdefault(explanation(record), []).append(record.test.name)
    rows = (TableRow(("; ".join(names), reason)) for reason, names in by_reason.items())
    return titled("What this testbed does not offer", table(("Tests skipped", "Because"), rows), id="skipped")


def _limits(records: Sequence[Record]) -> Html:
    """The topology's thresholds by which the records were judged, in words."""
    limits = {}
    for each in (threshold for record in records if record.figures for threshold in record.thresholds):
        limits[cells.limit_words(each), cells.limit_scope(each)] = cells.only_forwards(each)
    if not limits:
        return element("p", "The topology sets no limits: frames had to cross, and their number is not judged.")
    told = "; ".join(f"{words} ({scope})" if scope else words for words, scope in limits)
    floors = any(limits.values())
    meaning = (
        " A floor that far below the bare path only tells a data plane that forwards from a broken one: a test that "
        "meets it forwards, and no more is said."
    )
    return element("p", f"Limits of the topology: {told}.{meaning if floors else ''}", class_="muted")


def _section(report: SectionReport, conformance: Conformance) -> Html:
    section = report.section
    measured = [record for record in report.records if record.figures]
    others = [record for record in report.records if not record.figures and not record.findings]
    checks = [other for other in others if other.outcome != "skipped"]
    without_figures = (
        TableRow((cells.named(check, conformance), explanation(check), cells.verdict(check))) for check in checks
    )
    skipped = len(others) - len(checks)
    why = element("a", "this testbed does not offer what they need", href="#skipped")
    return together(
        element("h3", f"{section.number} {section.title} ", cells.state(report.status), id=_anchor(report)),
        element("p", section.asks, class_="muted"),
        *section_pictures(report.records, conformance),
        _findings(report.records, conformance),
        published_tables(report.records, {record.id: conformance.name_of(record) for record in report.records}),
        _results_table(measured, conformance),
        table(("Test", "Why", "Verdict"), without_figures),
        element("p", f"{count(skipped, 'test')} skipped: ", why, ".", class_="small muted") if skipped else NOTHING,
        _history_table(report.records, conformance) if len(conformance.runs) > 1 else NOTHING,
    )


def _applications(conformance: Conformance) -> Html:
    """The rows of application traffic, which belong to no section of the draft. NOTHING without any."""
    found = with_applications(conformance.latest)
    if not found:
        return NOTHING
    words = element("p", APPLICATION_WORDS, class_="note")
    return titled("Application traffic", together(words, _results_table(found, conformance, application=True)))


def _results_table(records: Sequence[Record], conformance: Conformance, *, application: bool = False) -> Html:
    metrics = shown(conformance.latest, application=application)
    details = {} if application else cells.details(conformance.latest)
    columns: dict[str, Callable[[Record], str]] = {}
    for quantity, group in by_quantity(metrics).items():
        columns |= {cells.heads([each]): partial(cells.figure, metric=each) for each in group}
        columns |= {**_bounds(conformance.latest), **details} if quantity is RATE else {}
    heads, rows = list(columns), []
    for record in records:
        row: tuple[Content, ...] = (
            cells.named(record, conformance),
            *(figure(record) for figure in columns.values()),
            cells.limits_met(record),
            cells.verdict(record),
        )
        rows.append(TableRow(row, _remark(record)))
    found = table(("Test", *heads, "Limits", "Verdict"), rows, kind="results", numeric=range(1, len(heads) + 1))
    return element("div", found, class_="scroll")


def _bounds(records: Sequence[Record]) -> dict[str, Callable[[Record], str]]:
    """A column for each goal of the searches: its relevant bounds, by which RFC 9971 wants a figure accompanied."""
    goals = dict.fromkeys(goal for record in records for goal in goals_of(record))
    return {f"{goal} bounds, {RATE.unit}": partial(bounds_cell, goal=goal) for goal in goals}


def _remark(record: Record) -> str:
    """Why a row did not pass, and what limits its figures. Noise is shown elsewhere."""
    noise, late = noisy(record), late_share(record)
    said = [remark for remark in remarks(record) if remark != f"noisy: {noise}"]
    return "; ".join([*said, late_words([late])] if late else said)


def _history_table(records: Sequence[Record], conformance: Conformance) -> Html:
    """The most important figures of each test in each run, oldest run first."""
    heads = [f"{run.name}, {moment(run.started)}: {cells.heads(headlines())}" for run in conformance.runs]
    rows = []
    for record in records:
        past = {run.directory: each for run, each in conformance.history(record)}
        figures = [_past(past.get(run.directory), preset(record)) for run in conformance.runs]
        rows.append(TableRow((conformance.name_of(record), *figures)))
    words = "The tables and charts above show the latest run of each test; all of them:"
    return together(
        element("p", words, class_="small muted"),
        table(("Test", *heads), rows, numeric=range(1, len(heads) + 1)),
    )


def _past(record: Record | None, latest_preset: str) -> str:
    """The figures of an earlier record, with the reason why they cannot be compared with the latest ones, if any."""
    if record is None:
        return "not run"
    if not record.figures:
        return verdict_word(record)
    differs = ["noisy"] if noisy(record) else []
    if preset(record) != latest_preset:
        differs.append(f"preset {preset(record)}" if preset(record) else "no search")
    figures = " · ".join(figure_cell(record, headline) for headline in headlines())
    return f"{figures} ({', '.join(differs)})" if differs else figures


def _calibration(conformance: Conformance) -> Html:
    """The tester's own limits: one row for each kind of traffic on each testbed."""
    rows: dict[tuple[str, str], TableRow] = {}
    records = conformance.latest
    for record in records:
        limits, traffic = record.tester_limits, record.traffic
        if limits and traffic:
            kind = f"{traffic.frame.name}, {' and '.join(traffic.directions)}, {count(traffic.flows, 'flow')}"
            kind += f", {traffic.headers.words}" if traffic.headers.words else ""
            kind = ": ".join(filter(None, (conformance.told_apart(record), kind)))
            engine = str(record.tester.get("engine") or "?")
            loss = limits.own_loss_ratio
            own = "?" if loss is None else percent(loss)
            rows[kind, engine] = TableRow((kind, engine, kpps(limits.maximum_load), own, limits.source))
    if not rows:
        return NOTHING
    testers = {conformance.told_apart(each): each.tester for each in records if each.tester}
    heads = ("Traffic", "Engine", "Highest load it delivers, kpps", "Own loss at half of that and below", "Found by")
    return together(
        element("h2", "The tester and its own limits", id="tester"),
        *(
            together(element("h3", name) if name else NOTHING, facts(flat(each).items()))
            for name, each in testers.items()
        ),
        table(heads, rows.values(), numeric=(2, 3)),
        element("p", _what_the_limits_mean(records), class_="small muted"),
    )


def _what_the_limits_mean(records: Sequence[Record]) -> str:
    """An explanation of the limits. If the bare path has an MRR above the limit, it also explains this."""
    words = (
        "The highest load is one that the tester sends at an even pace and gets back with at most 1 % loss. Searches "
        "for NDR and PDR go no higher, and a result within 5 % of it is a lower bound (≥): the system under test may "
        "do better. An MRR has no such end: the tester sends all it can, without a pace, and what comes back is "
        "counted, whatever is lost."
    )
    for record in records:
        mrr, limits = record.figures.get("mrr"), record.tester_limits
        if is_bare_path(record) and mrr and limits:
            most = limits.maximum_load
            if mrr.value > most:
                found = f"{kpps(mrr.value)} kpps above the limit of {kpps(most)} kpps"
                return f"{words} So the MRR of the bare path ({record.test.name}) lies with {found}."
    return words


def _environment(conformance: Conformance) -> Html:
    parts: list[Html] = []
    for run in conformance.runs:
        known = [each for each in run.records if each.environment]
        if known:
            record = next((each for each in reversed(known) if each.placement), known[-1])
            name = element("h3", run.name) if len(conformance.runs) > 1 else NOTHING
            parts.append(together(name, facts(environment_facts(record).items())))
    return titled("Environment", together(*parts))


def _by_successor(conformance: Conformance) -> Html:
    """The same tests by the sections of the draft's successor."""
    name = element("a", successor_draft.NAME, href=successor_draft.URL)
    return together(
        _overview("The same tests by the sections of the draft's successor", conformance.by_successor, id="successor"),
        element("p", name, f". {successor_draft.NOTE}", class_="small muted"),
    )


def _overview(heading: str, reports: Sequence[SectionReport], **attributes: str) -> Html:
    """All sections of a draft. A section that has a part of the page is a link to it."""
    rows = []
    for report in reports:
        section = report.section
        title: Content = f"{section.number} {section.title}"
        if report.records and section in draft.SECTIONS:
            title = element("a", title, href=f"#{_anchor(report)}")
        covered = element("p", section.covered, class_="muted small") if section.covered else NOTHING
        rows.append(TableRow((title, together(section.asks, covered), cells.state(report.status), report.reason)))
    heads = ("Section", "Asks for, and how it is covered", "Result", "Because")
    return together(element("h2", heading, **attributes), table(heads, rows, kind="sections"))


def _anchor(report: SectionReport) -> str:
    return f"section-{report.section.number}"
