"""The conformance report as a reader sees it: on any screen, after any order of events, with any text in a record."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chromium
import made_up
from every_kind import every_kind
from every_place import places
from made_up_resources import resources_records
from podperf import report
from podperf.__main__ import main
from podperf.experiments.claim import Finding
from podperf.metrics import Measured
from podperf.noise import Noise
from podperf.records import Record, TestRecord
from podperf.records.schema import schema_errors
from podperf.report import command
from podperf.report.conformance import assess
from podperf.report.html import element, together
from podperf.report.page import page
from podperf.report.record_view import embed_html
from podperf.report.results import RunResults, read_run
from podperf.report.summary import summary_table


def eventful_run(folder: Path) -> Path:
    """A run with everything that a page can show: findings, failures, noise, a search cut short, very long names."""
    made_up.write_run(folder)
    for number, verdict in enumerate(("confirmed", "refuted", "inconclusive")):
        words = "pods on CPUs of their own lose fewer frames than pods on shared ones"
        claim = Finding(words, verdict, "1 % to 3 %", "draft, section 4.2.1")  # type: ignore[arg-type]
        made_up.write(
            folder, TestRecord(f"f{number}", f"Claim {number}", "s", ["sec-4.2.1"], 9, 10, "passed", findings=[claim])
        )
    record, trials = made_up.forwarding_record("tc-redirect-peer", 640e3, pods=12, started=1.7951e9 + 400)
    record.metrics = {**record.metrics, "pdr": Measured(640e3, 600e3, 655e3, unfinished=True)}
    record.methods = {"ndrpdr": {"incomplete": "not finished within 25 s, the limit of preset quick"}}
    record.noises = {
        "mrr": Noise((0, 1), 12.0, 0.0, {"a-process-with-a-name-of-some-length (4711)": 5.5}, 900, 4, 0.01)
    }
    record.name, record.log = "Averylongnamewithoutanyplacetobreakit" * 6, "log.html#s1-s2-t3"
    made_up.write(folder, record, trials)
    for resources in resources_records():
        made_up.write(folder, resources)
    (folder / "records" / "cut.json").write_text("{")
    return command.write_reports(folder)


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return eventful_run(tmp_path_factory.mktemp("run") / "2026-11-19_14-53")


@pytest.fixture(scope="module")
def screen(eventful: Path) -> Iterator[chromium.Page]:
    """The page in a browser, with all that is folded up opened."""
    with chromium.browser() as opened:
        opened.open(eventful)
        opened.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        yield opened


# Half of an axis' last number stands beside the axis, in its margin.
BEYOND_THE_EDGE = """[...document.querySelectorAll('body *')]
    .filter(each => !each.closest('.scroll > *') && each.getClientRects().length)
    .filter(each => each.getBoundingClientRect().right > innerWidth + .5 || each.getBoundingClientRect().left < -.5
        || (each.scrollWidth > each.clientWidth + 1 && each.clientWidth && !each.matches('.scroll, .axis')))
    .map(each => `${each.tagName}.${each.className}: ${each.textContent.slice(0, 40)}`)"""
SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll('.ranking *, .scroll text')]
    .filter(each => each.textContent.trim() && !each.children.length && each.closest('figure, svg'))
    .map(each => parseFloat(getComputedStyle(each).fontSize) * (each.getScreenCTM ? each.getScreenCTM().a : 1)))"""
OVERLAPS = """[...document.querySelectorAll('.ranking .row')].filter(row => {
    const [name, figures] = ['.name', '.figures'].map(part => row.querySelector(part).getBoundingClientRect());
    return figures.left < name.right && figures.top < name.bottom && name.top < figures.bottom;
}).map(row => row.textContent)"""


@pytest.mark.parametrize("width", chromium.WIDTHS)
def test_nothing_runs_over_the_edge_of_a_screen(screen: chromium.Page, width: int) -> None:
    screen.show(width)
    assert screen.run("innerWidth") == width
    assert screen.run("document.scrollingElement.scrollWidth") == width
    assert screen.run(BEYOND_THE_EDGE) == []
    assert screen.run(OVERLAPS) == []


@pytest.mark.parametrize("width", chromium.WIDTHS)
def test_the_text_of_charts_can_be_read(screen: chromium.Page, width: int) -> None:
    screen.show(width)
    assert screen.run(SMALLEST_TEXT) >= 10


CONTRASTS = """[...document.querySelectorAll('p, td, b, a, .state, dt, figcaption span')].map(each => {
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = colour => numbers(colour).slice(0, 3).map(part => part / 255)
        .map(part => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4)
        .reduce((sum, part, index) => sum + part * [.2126, .7152, .0722][index], 0);
    let ground = each;
    while (ground && /, 0\\)$/.test(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
    const pair = [light(getComputedStyle(each).color), light(getComputedStyle(ground).backgroundColor)];
    return (Math.max(...pair) + .05) / (Math.min(...pair) + .05);
})"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_by_day_and_by_night(screen: chromium.Page, dark: bool) -> None:
    screen.show(1280, dark=dark)
    paper = screen.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 25, 31)" if dark else "rgb(255, 255, 255)")
    assert min(screen.run(CONTRASTS)) >= 4.5  # the contrast that WCAG (AA) asks for


def test_on_paper_nothing_is_folded_up_and_no_record_is_printed(screen: chromium.Page) -> None:
    assert screen.paper().startswith(b"%PDF")
    screen.print()
    assert screen.run("getComputedStyle(document.querySelector('.records')).display") == "none"
    assert screen.run("getComputedStyle(document.body).color") == "rgb(31, 41, 51)"


def test_a_name_opens_its_record(screen: chromium.Page) -> None:
    screen.run("document.querySelectorAll('details').forEach(each => each.open = false)")
    screen.run("document.querySelector('.ranking .name a').click()")
    opened = screen.run(
        "[...document.querySelectorAll('details')].filter(each => each.open).map(each => each.textContent)"
    )
    screen.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert len(opened) == 1 and opened[0].startswith("Macvlan, 64 B passed")


class Seen(HTMLParser):
    """A page's text, elements, links and ids. Fails where an element is closed that is not the open one."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(markup)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open += [tag] if tag not in {"meta", "br"} else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A shape of a plot."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, attribute: str) -> list[str]:
        return [value for _, attrs in self.elements if (value := attrs.get(attribute))]


def test_the_page_begins_with_what_its_reader_came_for(eventful: Path) -> None:
    text = Seen(eventful.read_text()).text
    order = (
        "How fast this container networking",
        "The data planes, the fastest first",
        "Findings",
        "What failed, or is not decided",
        "What is noisy",
        "What this testbed does not offer",
        "Measured sections",
        "The tester and its own limits",
        "Environment",
        "Records",
        "All sections of the draft",
    )
    found = [text.index(each) for each in order]
    assert found == sorted(found)


def ranked(path: Path) -> dict[str, list[str]]:
    """The rows of each chart, as they are drawn."""
    figures = re.findall(r"<figure class='ranking'.*?</figure>", path.read_text(), re.DOTALL)
    return {
        Seen(figure).text.split(" frames")[0]: [
            Seen(row).text for row in re.findall(r"<div class='name'>.*?</div>", figure, re.DOTALL)
        ]
        for figure in figures
    }


def test_each_frame_size_has_a_chart_with_the_highest_pdr_first(eventful: Path) -> None:
    charts = ranked(eventful)
    assert list(charts) == ["64 B", "1518 B", "IMIX"]
    assert charts["1518 B"] == [f"{each}, 1 pod" for each in ("macvlan", "ptp", "linux-bridge", "routed", "docker")]
    assert charts["64 B"][:3] == ["macvlan, 1 pod", "tc-redirect-peer, 12 pods", "ptp, 1 pod"]
    assert charts["64 B"][-2:] == ["linux-bridge, 2 pods", "linux-bridge, 4 pods"]


def test_chains_that_are_called_alike_have_the_names_of_their_tests(tmp_path: Path) -> None:
    for name in ("SR-IOV", "SR-IOV, kernel"):
        record, _ = made_up.forwarding_record("sriov", 281e3)
        made_up.write(tmp_path, replace(record, name=name, tags=[]))
    assert ranked(command.write_reports(tmp_path)) == {"64 B": ["SR-IOV", "SR-IOV, kernel"]}


def test_bars_are_as_long_as_their_rates_and_the_whisker_spans_the_interval(tmp_path: Path) -> None:
    slow, fast = (made_up.forwarding_record(name, rate) for name, rate in (("docker", 100e3), ("ptp", 400e3)))
    for record, _ in (slow, fast):
        pdr = record.metrics["mrr"].value / 2
        record.metrics = {**record.metrics, "pdr": Measured(pdr, pdr * 0.9, pdr * 1.1)}
        made_up.write(tmp_path, record)
    markup = command.write_reports(tmp_path).read_text()
    lengths = [float(each) for each in re.findall(r"class='first' style='width:([\d.]+)%'", markup)]
    assert lengths[0] / lengths[1] == pytest.approx(
        fast[0].metrics["mrr"].value / slow[0].metrics["mrr"].value, rel=0.01
    )
    left, width = map(float, re.findall(r"class='whisker' style='left:([\d.]+)%;width:([\d.]+)%'", markup)[0])
    assert (left, left + width) == pytest.approx((lengths[0] * 0.9, lengths[0] * 1.1), abs=0.02)


def test_every_link_within_the_page_has_an_end_and_the_log_is_linked_where_there_is_one(eventful: Path) -> None:
    seen = Seen(eventful.read_text())
    links = seen.values("href")
    ids = seen.values("id")
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert {link for link in links if "log.html" in link} == {"log.html#s1-s2-t3"}
    names = {Seen(each).text for each in re.findall(r"<a href='#record-[^>]*>[^<]*</a>", eventful.read_text())}
    assert {"Linux bridge, 64 B", "Claim 1", "No frame leaves the testbed's links"} <= names


def test_a_report_of_several_runs_leads_to_the_log_of_each(tmp_path: Path) -> None:
    for number, name in enumerate(("docker", "ptp")):
        record, _ = made_up.forwarding_record(name, 281e3, started=1.7951e9 + number * 9e4)
        made_up.write(tmp_path / f"run {number}", replace(record, log=f"log.html#s1-t{number + 1}"))
    folders = [str(tmp_path / f"run {number}") for number in (0, 1)]
    assert main(["report", *folders, "--output", str(tmp_path / "both")]) == 0
    links = Seen((tmp_path / "both" / "conformance.html").read_text()).values("href")
    assert {link for link in links if "log.html" in link} == {f"../run%20{n}/log.html#s1-t{n + 1}" for n in (0, 1)}
    report = json.loads((tmp_path / "both" / "conformance.json").read_text())
    logs = [test["log"] for section in report["sections"] for test in section["tests"]]
    assert logs == ["../run 0/log.html#s1-t1", "../run 1/log.html#s1-t2"]


def test_limits_are_named_and_a_low_floor_is_said_to_prove_little(tmp_path: Path) -> None:
    record, _ = made_up.forwarding_record("docker", 281e3)
    record.thresholds = [
        replace(threshold, minimum=0.002, pods=1) if threshold.minimum else threshold
        for threshold in made_up.THRESHOLDS
    ]
    made_up.write(tmp_path, record)
    text = Seen(command.write_reports(tmp_path).read_text()).text
    assert "MRR, p99 met" in text and "2 of 2" not in text
    assert "MRR at least 0.2 % of the bare path's (1 pod); p99 at most 2 000 µs." in text
    assert "a test that meets it forwards, and no more is said" in text


def test_sections_are_summed_up_in_words(eventful: Path) -> None:
    text = Seen(eventful.read_text()).text
    assert "of the draft's 17 sections with something to measure were measured" in text
    assert "4.1.1 with a test that failed; 4.2.1, 4.2 with a claim that was refuted" in text
    assert "sections good" not in text


@pytest.mark.parametrize(("data_plane", "told"), [("wire", True), ("external", False)])
def test_an_mrr_of_the_bare_path_above_the_testers_limit_is_explained(
    data_plane: str, told: bool, tmp_path: Path
) -> None:
    """A black box without pods is no bare path."""
    record, _ = made_up.forwarding_record(data_plane, 9e6, pods=0)
    assert record.limits is not None
    made_up.write(tmp_path, replace(record, limits=replace(record.limits, maximum_load=2.8e6)))
    text = Seen(command.write_reports(tmp_path).read_text()).text
    assert "with at most 1 % loss" in text
    words = r"So the MRR of the bare path \(Wire, 64 B\) lies with 4 \d{3} kpps above the limit of 2 800 kpps"
    assert bool(re.search(words, text)) is told


def test_the_network_of_a_cluster_stands_first_beside_that_of_its_nodes(tmp_path: Path) -> None:
    network = {"name": "flannel", "encapsulation": "VXLAN", "encapsulation_bytes": 50, "version": None}
    cluster = {"server": "https://a:6443", "uid": "u1", "version": "v1.34.4", "network": network}
    rates = {"Host network on two nodes, 64 B": 100e3, "Pod to pod on two nodes, 64 B": 31e3}
    for name, rate in rates.items():
        record, trials = made_up.forwarding_record("external", rate, pods=0)
        record.name, record.id = name, f"r{rate:.0f}"
        record.tester = {**record.tester, "cluster": cluster, "host_network": name.startswith("Host")}
        record.metrics = {"mrr": Measured(rate, lower_bound=True), "cpu_time": Measured(1e9 / rate)}
        record.metrics |= {"delay_variation": Measured(rate), "round_trip_variation": Measured(2 * rate)}
        made_up.write(tmp_path, record, trials)
    record.name, record.id, record.metrics = "Application traffic", "r0", {"tcp_stream": Measured(3e9)}
    made_up.write(tmp_path, record, trials)
    text = Seen(command.write_reports(tmp_path).read_text()).text
    shown = text[text.index("The network of a cluster") : text.index("Measured sections")]
    for said in ("v1.34.4", "flannel", "VXLAN", "≥ 31.0", "10 000", "32 258", "RTT PDV, us", "200"):
        assert said in shown, shown[:1500]
    assert "Application traffic" in text and "Application traffic" not in shown.partition("The data planes")[0]
    run = read_run(tmp_path)
    assert summary_table(run.records).count("\nnetwork of the pods: flannel; encapsulation: VXLAN (50 B)\n") == 1


def test_a_tester_with_a_fault_is_named_at_the_top_and_in_each_row(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "r.json").write_text(json.dumps(every_kind()["a measured chain"]))
    text = Seen(command.write_reports(tmp_path).read_text()).text
    assert text.index("Not to be believed without reserve: it loses 0.1 %") < text.index(
        "The data planes, the fastest first"
    )
    assert "passed faulty tester" in text
    assert "0.1 % of the frames are the tester's own loss" in text


def test_the_testers_part_stands_beside_a_latency(tmp_path: Path) -> None:
    document = every_kind()["every method"]
    load = document["methods"]["latency"]["load"]
    near, far = {"load": load * 2, "p50_ns": 470}, {"load": load / 20, "p50_ns": 340}
    document["tester_limits"]["own_latencies"] = [far, near]
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "r.json").write_text(json.dumps(document))
    text = Seen(command.write_reports(tmp_path).read_text()).text
    assert re.search(r"The tester's own part of p50: at [\d ]+ kpps it was 0\.47 in the calibration", text)


def test_a_record_is_shown_readably(eventful: Path) -> None:
    """Figures with their interval, each limit's sentence, configuration, and a curve."""
    found = re.findall(r"<details class='record'>.*?</details>", eventful.read_text(), re.DOTALL)
    text = re.sub("<[^>]*>", "", next(each for each in found if "Docker, IMIX" in each))
    page = Seen(eventful.read_text()).text
    assert "MRR at least 1 % of the bare path's" in page and "no more is said" not in page, "high limits are no floors"
    assert "MRR missed; p99 met" in page
    for words in (
        "at least 1 % of the baseline was asked for: failed",
        "latency p99 96 us",
        "read back from what was set upKind",
        "loss ratio",
    ):
        assert words in text
    assert "hdr_histogram" not in text and "{" not in text


PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</style><script>",
)


def shape(markup: str) -> list[tuple[str, tuple[str, ...]]]:
    """The elements of a page and the names of their attributes, in order."""
    return [(tag, tuple(attrs)) for tag, attrs in Seen(markup).elements]


def poisoned(document: dict[str, Any], payload: str) -> dict[str, Any]:
    """The record with the payload in every text and name that its schema leaves open."""
    worse = copy.deepcopy(document)
    for place in places(document):
        holder = functools.reduce(lambda found, step: found[step], place[:-1], worse)
        sound = holder[place[-1]]
        if isinstance(sound, str):
            holder[place[-1]] = sound + payload
            if schema_errors(worse):
                holder[place[-1]] = sound
    for name in ("data_plane", "environment", "interfaces", "tester"):
        if isinstance(document[name], dict):
            worse[name][payload] = {payload: payload} if name == "interfaces" else payload
    worse["testbed"] = worse["testbed"] and {**worse["testbed"], "labels": {payload: payload}}
    return worse


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_of_a_record_becomes_markup(payload: str, tmp_path: Path) -> None:
    """The page of a poisoned record has the elements and attributes of the sound one's, and no others."""
    for kind, document in every_kind().items():
        worse = poisoned(document, payload)
        assert schema_errors(worse) == []
        harmless = poisoned(document, "x")
        kinds = []
        for poison, found in ((payload, worse), ("x", harmless)):
            each = Record.of(found)
            run = RunResults(tmp_path, (each,), (f"cut.json: {poison}",))
            kinds.append((shape(page(assess([run], tmp_path))), shape(embed_html(each))))
        assert kinds[0] == kinds[1], kind


def test_only_the_element_builder_makes_markup() -> None:
    """It escapes every text, and so do the shapes of plots. No other module has markup to escape."""
    modules = {each.name: each.read_text() for each in Path(report.__path__[0]).glob("*.py") if each.name != "html.py"}
    assert "page.py" in modules
    assert not [name for name, text in modules.items() if re.search(r"\bHtml\(", text)]
    assert [name for name, text in modules.items() if re.search(r"\bescape\(|</\w", text)] == ["svg.py"]


@given(st.text(), st.text())
@settings(max_examples=50)
def test_elements_say_what_they_were_given(text: str, attribute: str) -> None:
    markup = together(element("p", text, title=attribute), text).markup
    (found,) = Seen(markup).elements
    assert found == ("p", {"title": attribute})
    assert Seen(markup.replace("\r", "\n")).text.replace("\r", "\n") == (text * 2).replace("\r", "\n")


def test_a_browser_is_told_to_run_nothing(eventful: Path) -> None:
    policies = [attrs["content"] for tag, attrs in Seen(eventful.read_text()).elements if "http-equiv" in attrs]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
