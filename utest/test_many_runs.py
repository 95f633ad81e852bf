"""The report of more runs in a cluster than a page can show beside each other."""

from __future__ import annotations

import json
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

import made_up
from podperf.__main__ import main
from podperf.errors import ExitCode
from podperf.report.nodes_page import MOST_RUNS, are_many, node_map, read_many
from test_report_page import Seen

NODES = [f"n{number}" for number in range(1, 10)]  # 36 pairs
SLOW, SLOW_PATH = "n4", ("n2", "n8")


def write_pair(place: Path, pair: tuple[str, str], rate: float, **further: Any) -> Path:
    """The results folder of a pair, whose record has a rate, and one more record that was skipped."""
    folder = place / f"cluster.{'.'.join(pair)}"
    made_up.write(folder, made_up.skipped_record("ipvlan", "needs one node"))
    path = made_up.write(folder, *made_up.forwarding_record("linux-bridge", rate))
    document = json.loads(path.read_text())
    pods = {side: {"node": node} for side, node in zip(("left", "right"), pair, strict=True)}
    path.write_text(json.dumps(document | {"tester": {**document["tester"], "pods": pods}} | further))
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    def rate(pair: tuple[str, str]) -> float:
        return 1e5 if SLOW in pair else 1.5e5 if pair == SLOW_PATH else 2e5

    return [write_pair(tmp_path / "all", pair, rate(pair)) for pair in combinations(NODES, 2)]


def report(folders: list[Path], output: Path, *further: str) -> tuple[int, str, dict[str, Any]]:
    """The exit code, the text of the page, and the data."""
    code = main(["report", *map(str, folders), "--output", str(output), *further])
    page = Seen((output / "nodes.html").read_text())
    return code, page.text, json.loads((output / "nodes.json").read_text())


def test_many_pairs_have_a_report_of_nodes_and_pairs(
    folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folders[0] / "conformance.html").write_text("its own report")
    before = {folder: sorted(folder.iterdir()) for folder in folders}
    code, page, data = report(folders, tmp_path / "report", "--openmetrics", str(tmp_path / "metrics"))
    assert code == 0
    said = capsys.readouterr().out
    assert "36 runs, tests: 36 passed, 36 skipped\nslowest of 9 nodes: n4 (0." in said
    assert data["nodes"][0]["name"] == SLOW
    first = data["pairs"][0]
    assert tuple(first["nodes"]) == SLOW_PATH and first["beside_nodes"] < 0.9
    assert [pair["share_of_median"] < 0.6 for pair in data["pairs"]] == [
        SLOW in pair["nodes"] for pair in data["pairs"]
    ]
    assert (tmp_path / "report" / first["results"]).resolve() in folders
    assert "Pairs that are slower than their nodes" in page and "n2 and n8" in page
    assert "needs one node" in page and "What failed" not in page
    assert "href='../all/cluster.n1.n2/conformance.html'" in (tmp_path / "report/nodes.html").read_text()
    assert (tmp_path / "metrics").read_text()
    assert {folder: sorted(folder.iterdir()) for folder in folders} == before, "a run has made its own report"


def test_what_failed_and_what_cannot_be_read_is_told(
    folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pair(tmp_path / "all", ("n1", "n9"), 2e5, outcome="failed", reason="pod ended: <OOMKilled>", results={})
    (folders[1] / "records" / "bad.json").write_text("{")
    (tmp_path / "all" / "nothing").mkdir()
    code, page, data = report([*folders, tmp_path / "all/nothing"], tmp_path / "report")
    captured = capsys.readouterr()
    assert code == ExitCode.NOT_DONE
    assert "    pod ended: <OOMKilled>\n" in captured.out
    assert "bad.json" in captured.err and "nothing: no records in it" in captured.err
    assert "What failed" in page and "pod ended: <OOMKilled>" in page and "bad.json" in page
    assert [each["results"] for each in data["not_well"]] == [["../all/cluster.n1.n9"]]
    assert len(data["problems"]) == 2


def test_few_runs_and_runs_outside_of_a_cluster_have_the_report_of_each_record(tmp_path: Path) -> None:
    pairs = [write_pair(tmp_path, (f"a{number}", "b"), 1e5) for number in range(MOST_RUNS + 1)]
    assert are_many(pairs) and not are_many(pairs[1:])
    alone = [tmp_path / str(number) for number in range(MOST_RUNS + 1)]
    for each in alone:
        made_up.write(each, *made_up.forwarding_record("linux-bridge", 1e5))
    assert not are_many(alone)


def test_the_latest_run_of_a_pair_counts(tmp_path: Path) -> None:
    early, late = (write_pair(tmp_path / name, ("a", "b"), rate) for name, rate in (("1", 1e5), ("2", 2e5)))
    for folder, started in ((early, "2026-11-24T10:00:00+00:00"), (late, "2026-11-25T10:00:00+00:00")):
        for path in (folder / "records").iterdir():
            path.write_text(json.dumps(json.loads(path.read_text()) | {"started": started}))
    other = write_pair(tmp_path, ("a", "c"), 2e5, started="2026-11-23T10:00:00+00:00")
    found = read_many([late, early, other, late])
    assert [run.folder for run in found.runs] == [other, early, late]
    (rates,) = found.rates.values()
    assert rates[("a", "b")] > 1.5e5
    assert {pair.run.folder for pair in found.pairs} == {late, other}


def test_a_map_has_a_cell_for_each_pair_and_names_only_where_there_is_room() -> None:
    few = node_map(["a<", "b", "c"], {("b", "a<"): 0.5, ("b", "c"): 1.1})
    assert "a&lt; and b: 0.50" in few and "a&lt; and c: not measured" in few
    assert few.count("<rect") == 4 and few.count("#b42318") == 1 and few.count("fill='#ffffff'") == 2
    assert ">b</text>" in few
    many = node_map([f"n{number}" for number in range(200)], {("n0", "n1"): 1.0})
    assert many.count("<rect") == 1 + 19_900 and ">n3</text>" not in many
    assert node_map(["a", "b"], {("a",): 1.0, ("b",): 0.5}) == ""


def test_names_without_end_make_no_page_without_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each cell of the map names two nodes, and the number of cells grows with the square of the nodes."""
    names = [f"{number}-" + "n" * 10_000 for number in range(MOST_RUNS + 2)]
    many = {f"pod{number}": {"node": f"{number}"} for number in range(1000)}
    folders = [write_pair(tmp_path / "all", (f"a{number}", "b"), 1e5) for number in range(MOST_RUNS + 1)]
    for folder, pair in zip(folders, pairwise(names), strict=True):
        (path,) = (folder / "records").glob("*linux-bridge*")
        document = json.loads(path.read_text())
        document["tester"]["pods"] = {"left": {"node": pair[0]}, "right": {"node": pair[1]}, **many}
        path.write_text(json.dumps(document))
    assert report(folders, tmp_path / "report")[0] == 0
    assert len(read_many(folders).nodes) == len(names)
    assert (tmp_path / "report" / "nodes.html").stat().st_size < 1_000_000
    wide = node_map([f"n{number}" for number in range(900)], {("n0", "n1"): 0.5, ("n0", "n899"): 1.0})
    assert "; 600 faster nodes are not drawn" in wide and wide.count("<rect") < 50_000


@pytest.mark.parametrize("several", [1, 2, MOST_RUNS + 1])
def test_a_folder_of_any_name_has_a_report(several: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The author of results chooses the name of their folder: bytes that are no UTF-8, and escapes."""
    for number in range(several):
        folder = write_pair(tmp_path / "all", (f"a{number}", "b"), 1e5)
        (folder / "records" / "damaged.json").write_text("[")
        folder.rename(folder.with_name(f"\udcff\x1b[2J{number}"))  # the byte 0xff, which is no UTF-8
    assert main(["report", *map(str, sorted((tmp_path / "all").iterdir()))]) == ExitCode.NOT_DONE
    said = capsys.readouterr()
    assert (said.out + said.err).replace("\n", "").replace("\t", "").isprintable()
