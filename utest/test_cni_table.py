"""The table of networks of a cluster: shares of the nodes' own network, and what was not measured, with its reason."""

from __future__ import annotations

import json
import re
import signal
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from podperf.cluster import lifecycle
from podperf.errors import PodperfError
from podperf.experiments.host_share import ClusterWay, HostShare
from podperf.kubernetes.settings import pods_of_tester
from podperf.metrics import Measured
from podperf.model import Direction
from podperf.report.cni_page import AgentUse, NetworkRow, RowFigures, cni_markdown, cni_page, cni_text, shares_plot
from podperf.testbed.access import read_topology
from run_command import cni_table
from run_command.cni_table import PLACES, WAYS, add_arguments, chosen, refused, searched, topology
from test_host_share import compared

WAY = "pod to pod, two nodes"
SHARE = compared([200e3, 220e3, 210e3], [100e3, 110e3, 105e3], -0.5, -0.6, -0.4)
ROWS = [
    NetworkRow(
        "flannel:vxlan",
        *(21.4, 700_000_000, {WAY: SHARE}, {"one node": RowFigures({"ndr": Measured(90e3)})}),
        {"idle": AgentUse(63_400_000, 0.0123), "under load": AgentUse(64_000_000, 0.0456)},
        250.0,
        pod_start=1.44,
    ),
    NetworkRow(
        "plain", 23.0, 650_000_000, {WAY: HostShare(reason="no <Service>")}, {"one node": RowFigures(reason="late")}
    ),
    NetworkRow("bird:plain", 19.0, 640_000_000, {WAY: SHARE}, reason="interrupted"),
    NetworkRow("cilium:tunnel", reason="this kernel has no VXLAN"),
]


def test_policies_are_measured_where_the_network_enforces_them() -> None:
    measured = {each.title for each in chosen([]) if all(not refused(way, each) for way in WAYS)}
    assert {name.partition(":")[0] for name in measured} == {"cilium", "kube-router"}
    (policies,) = {way.title for way in WAYS for each in chosen(["plain"]) if refused(way, each)}
    assert policies == "pod to pod, 100 policies"


@pytest.mark.parametrize("made", [cni_markdown(ROWS), cni_text(ROWS, 200), cni_text(ROWS, 40)])
def test_each_form_has_the_figures_and_the_reason_for_each_one_that_is_missing(made: str) -> None:
    for words in ("0.50 (0.40 to 0.60)", "105", "210", "90", "21", "700"):
        assert words in made
    for words in ("63", "0.012", "64", "0.046"):
        assert words in made, "what the agent uses"
    assert "1.4" in made, "how long the start of a pod took"
    for reason in ("no <Service>", "late", "cilium:tunnel: this kernel has no VXLAN", "bird:plain: interrupted"):
        assert reason in made


def test_the_page_escapes_what_it_shows_and_has_a_plot() -> None:
    page = cni_page(ROWS)
    assert page.count("bird:plain") > 2, "what was measured before the interrupt stays"
    assert "no &lt;Service&gt;" in page and "<Service>" not in page
    assert page.count("<svg") == 1 and "flannel:vxlan: 0.50 (0.40 to 0.60)" in page
    assert cni_page([]).count("<svg") == 0


DOUBT = "the tester's clock is slow"
LIMITED = NetworkRow(
    "bird:plain",
    shares={WAY: replace(compared([200e3, 220e3], [100e3, 110e3], -0.5, None, None), doubt=DOUBT)},
    figures={
        "two nodes": RowFigures(
            {
                "ndr": Measured(207e3, 205e3, lower_bound=True),
                "pdr": Measured(208e3, unfinished=True),
                "cpu_time": Measured(9_458.0, upper_bound=True),
                "round_trip_p50": Measured(14_700.0, doubt="drifted: the last trial lost frames"),
            }
        )
    },
)


@pytest.mark.parametrize(
    ("made", "at_least"),
    [(cni_markdown([LIMITED]), ">="), (cni_text([LIMITED], 200), ">="), (cni_page([LIMITED]), "≥")],
)
def test_a_figure_is_marked_as_a_bound_as_unfinished_or_in_doubt(made: str, at_least: str) -> None:
    made = unescape(made)
    for words in (f"{at_least} 207", "208*", "< 9 458", "14.7?", "round trip p50: drifted: the last trial lost frames"):
        assert words in made
    for words in ("0.50? (open to open)", "105? / 210?", f"{WAY}: {DOUBT}"):
        assert words in made


def test_each_rate_stands_beside_the_base_line_of_the_same_frames() -> None:
    """Frames of 84 B and of 1000 flows have other base lines than those of 64 B and one flow."""
    ways = {"64 B": SHARE, "84 B": replace(SHARE, pods=80e3, host=150e3)}
    table = cni_text([NetworkRow("plain", shares=ways)], 200).partition("MRR, kpps")[2].splitlines()
    heads, cells = (re.split(" {2,}", line) for line in table[1:3])
    assert dict(zip(heads, cells, strict=True)) == {"Network": "plain", "64 B": "105 / 210", "84 B": "80.0 / 150"}


def test_the_json_has_the_interval_and_the_kind_of_each_figure() -> None:
    found = json.loads(json.dumps(LIMITED.to_json()))["figures"]["two nodes"]["values"]["ndr"]
    assert (found["value"], found["low"], found["high"], found["lower_bound"]) == (207e3, 205e3, None, True)


def test_the_plot_marks_an_open_end_of_an_interval() -> None:
    across = re.compile(r"x1='([\d.]+)' y1='[\d.]+' x2='\1' y2='[\d.]+' stroke='#1f2933' stroke-width='1.4'")
    assert across.search(shares_plot(WAY, ROWS))
    assert not across.search(shares_plot(WAY, [LIMITED]))


def test_a_network_that_is_named_twice_is_measured_once() -> None:
    names = ["flannel", "bird", "flannel:vxlan", "bird:plain", "flannel:host-gw"]
    assert [each.title for each in chosen(names)] == ["flannel:vxlan", "bird:plain", "flannel:host-gw"]
    assert len(chosen([])) > 5


def test_the_bytes_of_the_encapsulation_have_a_column() -> None:
    rows = [replace(LIMITED, title=str(size), encapsulation_bytes=size) for size in (50, 0, None)]
    shown = cni_text(rows, 200).partition("The networks")[2].splitlines()[2:5]
    assert [line.split()[2] for line in shown] == ["50", "0", "-"]
    assert "encapsulation, B" in cni_page(rows)


def test_the_help_tells_what_the_command_needs_and_how_long_it_takes() -> None:
    add_arguments(parser := ArgumentParser())
    assert "needs root" in parser.format_help() and "minutes" in parser.format_help()


def test_the_words_of_a_network_may_take_several_lines_of_the_page() -> None:
    page = cni_page([replace(LIMITED, network="flannel; mode: vxlan", mtu=1450)])
    kinds = dict(re.findall(r"<td(?: class=.(\w+).)?[^>]*>(flannel; mode: vxlan|1450)</td>", page))
    assert {said: kind for kind, said in kinds.items()} == {"flannel; mode: vxlan": "", "1450": "n"}


def test_the_topology_of_the_command_is_its_own_and_has_each_way(tmp_path: Path) -> None:
    (path := tmp_path / "topology.yaml").write_text(json.dumps(topology(tmp_path / "login")))
    settings = pods_of_tester(found := read_topology(path))
    assert settings is not None
    assert (settings.kubeconfig, settings.nodes, settings.given["cpus"]) == (str(tmp_path / "login"), 2, 0)
    assert (found.method.search, found.traffic.directions) == ("quick", (Direction.LEFT_TO_RIGHT,))
    for way in (*WAYS, *(ClusterWay(place, pods) for place, pods in PLACES.items())):
        settings.varied(way.pods)


def test_a_trial_that_fails_costs_no_figure_that_was_found_before_it() -> None:
    run = MagicMock()
    run.measurement.metrics = {"ndr": Measured(90e3, 88e3, lower_bound=True)}
    run.measurement.latency.side_effect = PodperfError("the sender is late")
    assert searched("two nodes", {}, run) == RowFigures(
        {"ndr": Measured(90e3, 88e3, lower_bound=True)}, "the sender is late"
    )
    assert run.measurement.cpu_time.called
    run.begin_test.side_effect = PodperfError("no pods")
    assert searched("two nodes", {}, run) == RowFigures(reason="no pods")


def test_a_cluster_that_another_command_started_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ready_programs", "ready_image"):
        monkeypatch.setattr(cni_table, name, MagicMock())
    monkeypatch.setattr(lifecycle, "up", MagicMock(side_effect=PodperfError(lifecycle.RUNS_ALREADY)))
    monkeypatch.setattr(lifecycle, "down", down := MagicMock())
    (plain,), row = chosen(["plain"]), NetworkRow("plain")
    cni_table._measure(plain, tmp_path / "plain", row)
    assert row.reason == lifecycle.RUNS_ALREADY
    assert not down.called


@pytest.mark.parametrize("nohup", [False, True])
def test_a_terminal_that_is_gone_ends_the_command_as_ctrl_c_does_unless_nohup_was_asked_for(
    nohup: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: dict[int, Callable[..., None]] = {}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN if nohup else signal.SIG_DFL)
    monkeypatch.setattr(cni_table.hierarchies, "of_this_machine", MagicMock(side_effect=PodperfError("no cluster")))
    with pytest.raises(PodperfError, match="no cluster"):
        cni_table.main(Namespace(networks=[], output=None))
    assert handlers.keys() == {signal.SIGINT, signal.SIGTERM} | ({signal.SIGHUP} if not nohup else set())
    for number, handler in tuple(handlers.items()):
        with pytest.raises(KeyboardInterrupt):
            handler(number, None)
    assert nohup or handlers[signal.SIGHUP] is signal.SIG_IGN, "it comes more than once"


def test_the_files_are_written_also_if_nobody_reads_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", MagicMock(write=MagicMock(side_effect=OSError("the terminal is gone"))))
    with pytest.raises(OSError, match="the terminal is gone"):
        cni_table._write(ROWS, tmp_path, 1.0)
    assert {each.suffix for each in tmp_path.iterdir()} == {".md", ".json", ".html"}
