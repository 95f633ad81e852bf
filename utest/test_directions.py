"""Traffic in both directions: the slower one counts, and both are shown where they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import made_up
from podperf.history.fingerprint import fingerprint
from podperf.methods.mrr import Mrr
from podperf.methods.ndrpdr import NdrPdr
from podperf.methods.presets import PRESETS
from podperf.metrics import METRICS
from podperf.records import Record
from podperf.report.conformance import assess
from podperf.report.page import page
from podperf.report.results import RunResults, directions_that_differ
from podperf.report.summary import summary_table
from simulated_dut import SimulatedDut


def record(folder: Path, weaker: float, directions: int = 2) -> dict[str, Any]:
    """A chain that forwards 300 kpps to the right, and the share `weaker` of that to the left."""
    dut = SimulatedDut(3e5, 1e6, directions=directions, weaker=weaker, drift=0.01)
    mrr, search = Mrr(3, 1.0).run(dut), NdrPdr(PRESETS["quick"], clock=dut.clock).run(dut)
    found, _ = made_up.forwarding_record("linux-bridge", 3e5)
    found.traffic = dut.trials[0].trial.traffic
    found.methods = {"mrr": mrr.as_record(), "ndrpdr": search.as_record()}
    found.metrics = {**mrr.metrics, **search.metrics}
    return made_up.document(found, [(dut.trials[0], "mrr")], folder)


def test_both_directions_are_shown_where_they_differ(tmp_path: Path) -> None:
    found = record(tmp_path, 0.01)
    assert found["results"]["mrr"]["frames_per_second"] < 3200
    assert found["results"]["mrr"]["aggregate_frames_per_second"] > 290_000
    mrr, *searches = directions_that_differ(Record.of(found))
    assert mrr.startswith("MRR by direction, kpps: left-to-right 29") and ", right-to-left 2.9" in mrr
    assert [search.partition(":")[0] for search in searches] == [
        "NDR is that of right-to-left",
        "PDR is that of right-to-left",
    ]
    table = " ".join(summary_table([Record.of(found)]).split())
    shown = page(assess([RunResults(tmp_path, (Record.of(found),))], tmp_path))
    for each in (mrr, *searches):
        assert each in table and each in shown


@pytest.mark.parametrize(("weaker", "directions"), [(0.98, 2), (0.01, 1)])
def test_equal_directions_are_not_mentioned(tmp_path: Path, weaker: float, directions: int) -> None:
    assert not [
        each
        for each in directions_that_differ(Record.of(record(tmp_path, weaker, directions)))
        if each.startswith("MRR")
    ]


def test_an_older_record_whose_figure_is_the_mean_of_the_directions_is_another_series(tmp_path: Path) -> None:
    new, old, one = (record(tmp_path / name, 0.5, ways) for name, ways in (("new", 2), ("old", 2), ("one", 1)))
    for name in ("mrr", "ndr"):
        method = METRICS[name].method
        assert "judged by" in fingerprint(Record.of(new), METRICS[name])["method"]
        del old["methods"][method]["judged_by"]
        assert fingerprint(Record.of(old), METRICS[name]) != fingerprint(Record.of(new), METRICS[name])
        assert "judged by" not in fingerprint(Record.of(one), METRICS[name])["method"]
