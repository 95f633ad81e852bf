"""A history: the figures that are compared, and the verdict on the newest run."""

from __future__ import annotations

import copy
import json
import os
import random
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import made_up
from podperf.errors import PodperfError
from podperf.history.acknowledgements import acknowledge, read_acknowledgements
from podperf.history.changes import (
    LEAST,
    MOST_STEPS,
    NEW,
    WINDOW,
    groups,
    newest_change,
    newest_counted_change,
    quantile,
    within,
)
from podperf.history.fingerprint import difference, fingerprint
from podperf.history.judgement import Judgement, Verdict, judge, judge_all
from podperf.history.runs import PastRun, read_history
from podperf.history.trends import rows_of
from podperf.metrics import METRICS
from podperf.records import Record, read_record
from time_limit import at_most

MRR, P99 = METRICS["mrr"], METRICS["latency_p99"]
RATE = 281e3
FIGURES = st.floats(1e-2, 1e10)


def noisy(level: float, deviation: float, runs: int, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [level * chance.gauss(1, deviation) for _ in range(runs)]


# --- the arithmetic -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("confidence", "freedom", "t"),  # of the tables in any book
    [
        (0.95, 1, 12.706),
        (0.95, 4, 2.776),
        (0.99, 19, 2.861),
        (0.999, 20, 3.850),
        (0.999, 21, 3.819),
        (0.95, 120, 1.980),
    ],
)
def test_students_quantiles_are_those_of_the_tables(confidence: float, freedom: int, t: float) -> None:
    assert quantile(confidence, freedom) == pytest.approx(t, abs=0.0006)


@given(st.floats(0.5, 0.9999), st.integers(1, 300))
def test_a_quantile_is_where_the_probability_is_reached(confidence: float, freedom: int) -> None:
    assert within(quantile(confidence, freedom), freedom) == pytest.approx(confidence, abs=1e-9)


@given(st.lists(FIGURES, max_size=40))
def test_every_figure_is_in_one_group(figures: list[float]) -> None:
    found = groups(figures)
    assert [index for each in found for index in range(each.start, each.end)] == list(range(len(figures)))
    for each in found:
        assert each.mean == pytest.approx(statistics.fmean(figures[each.start : each.end]))


@given(st.lists(FIGURES, max_size=60))
def test_a_change_is_told_only_against_enough_runs(figures: list[float]) -> None:
    change = newest_change(figures)
    if change is None:
        return
    assert len(figures) > LEAST
    assert change.reference >= LEAST
    assert 1 <= change.recent <= NEW
    assert change.low <= change.share <= change.high
    assert change.confirmed or change.recent == 1


@given(st.lists(FIGURES, max_size=LEAST))
def test_too_few_runs_tell_nothing(figures: list[float]) -> None:
    assert newest_change(figures) is None


@given(st.lists(st.floats(90, 110), min_size=6, max_size=30), st.integers(-10, 10))
def test_the_unit_of_the_figures_does_not_matter(figures: list[float], power: int) -> None:
    before, after = newest_change(figures), newest_change([figure * 2.0**power for figure in figures])
    assert (before is None) == (after is None)
    if before and after:
        assert after.share == pytest.approx(before.share, abs=1e-9)
        assert (after.found, after.confirmed, after.recent) == (before.found, before.confirmed, before.recent)


@given(FIGURES, st.integers(LEAST + 1, 60))
def test_equal_figures_are_no_change(figure: float, runs: int) -> None:
    change = newest_change([figure] * runs)
    assert change is not None
    assert not change.found
    assert change.most < 0.001


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_one_run_that_differs_is_suspected_and_two_are_a_change(factor: float) -> None:
    before = noisy(RATE, 0.01, 20)
    one, two = newest_change([*before, RATE * factor]), newest_change([*before, RATE * factor, RATE * factor * 1.002])
    assert one and one.found and not one.confirmed
    assert two and two.found and two.confirmed
    assert two.low < factor - 1 < two.high


def test_a_run_after_a_disturbed_one_is_compared_with_those_before_it() -> None:
    before = noisy(RATE, 0.01, 20)
    change = newest_change([*before, RATE * 0.8, RATE])
    assert change
    assert not change.found
    assert change.reference > 10


def test_a_run_that_is_worse_still_confirms_the_one_before() -> None:
    change = newest_change([*noisy(RATE, 0.005, 20), RATE * 0.9, RATE * 0.8])
    assert change and change.found and change.confirmed


def test_a_small_change_of_three_runs_is_found_without_a_change_point() -> None:
    chance = random.Random(4)
    figures = [RATE * (1 if run < 20 else 0.94) * chance.gauss(1, 0.02) for run in range(23)]
    assert len(groups(figures)) == 1
    change = newest_change(figures)
    assert change and change.found and change.confirmed and change.share < 0


def test_after_a_while_the_new_level_is_what_runs_are_compared_with() -> None:
    before, after = noisy(RATE, 0.01, 20), noisy(RATE * 0.8, 0.01, NEW + 1, seed=2)
    change = newest_change([*before, *after[:-1]])
    assert change and change.found and change.recent == NEW
    change = newest_change([*before, *after])
    assert change and not change.found


COUNTED = METRICS["cost"].quantity.resolution
assert COUNTED is not None


@given(st.floats(100, 25_000), st.lists(st.floats(-1, 1), min_size=2, max_size=40), st.integers(1, NEW))
def test_ten_instructions_more_are_found_by_one_run(cost: float, repeats: list[float], runs: int) -> None:
    """The figures of one chain differ by what two boots of the counted machine differ by."""
    repeats = (repeats * NEW)[: len(repeats) + runs - 1]
    before, after = repeats[: len(repeats) - runs + 1], repeats[len(repeats) - runs + 1 :]
    for more in (-10, 10):
        figures = [cost + each for each in before] + [cost + more + each for each in (*after, 0.0)]
        change = newest_counted_change(figures, COUNTED)
        assert change and change.found and change.confirmed
        assert (change.recent, change.reference) == (runs, len(before))
        assert change.low <= more / cost <= change.high


@given(st.floats(100, 50_000), st.integers(0, 2**32))
def test_no_change_of_a_count_is_reported_in_a_hundred_runs_without_one(cost: float, seed: int) -> None:
    chance = random.Random(seed)
    figures = [cost + chance.uniform(-1.5, 1.5) for _ in range(101)]
    for runs in range(2, 102):
        change = newest_counted_change(figures[:runs], COUNTED)
        assert change and not change.found
        assert change.most == pytest.approx(COUNTED.of(cost) / cost, rel=0.1)


def test_a_count_that_steps_up_and_down_does_not_repeat_and_is_judged_by_its_range() -> None:
    figures = [8000.0 + 40 * (run % 2) for run in range(2 * MOST_STEPS + 4)]
    within_range = newest_counted_change([*figures, 8020.0], COUNTED)
    assert within_range and not within_range.found and within_range.most == pytest.approx(40 / 8000)
    above = newest_counted_change([*figures, 8100.0], COUNTED)
    assert above and above.found and above.share == pytest.approx(60 / 8040)


REAL_CHANGES = [8000.0] * 4 + [8030.0] * 4 + [8010.0] * 4 + [8070.0] * 4 + [8160.0] * 3


@pytest.mark.parametrize("more", [5371, 10, -100, -200])
def test_real_changes_before_hide_none_of_the_newest(more: float) -> None:
    """Levels that last are no sign of a row that does not repeat."""
    change = newest_counted_change([*REAL_CHANGES, 8160.0 + more], COUNTED)
    assert change and change.found and change.confirmed
    assert change.share == pytest.approx((8160 + more) / 8000 - 1), "none of the steps was accepted"


def test_a_step_is_accepted_by_those_who_know_it_and_by_a_cheaper_level() -> None:
    def newest(figures: list[float], accepted: float = 0) -> float:
        change = newest_counted_change(figures, COUNTED, lambda share: share <= accepted)
        assert change
        return round(8000 * change.share) if change.found else 0

    assert newest([8000.0, 8030.0, 8030.0]) == 30, "as long as nobody accepts it"
    assert newest([8000.0, 8030.0, 8030.0, 8060.0]) == 60
    assert newest([8000.0, 8030.0, 8030.0, 8060.0], accepted=0.004) == 30
    assert newest([8000.0, 8030.0, 8000.0]) == 0, "the step was taken back"
    assert newest([8000.0, 7900.0, 8000.0]) == pytest.approx(101, abs=1), "what was won is lost"


@given(st.lists(st.sampled_from([8000.0, 8000.5, 8030.0, 8090.0]), min_size=2, max_size=3 * NEW))
def test_the_place_of_the_accepted_count_has_the_figure_that_the_newest_is_compared_with(figures: list[float]) -> None:
    change = newest_counted_change(figures, COUNTED)
    assert change is not None and change.accepted is not None and -len(figures) <= change.accepted < -1
    if change.found:
        accepted, newest = figures[change.accepted], figures[-1]
        assert newest / accepted - 1 == pytest.approx(change.share, abs=2 * COUNTED.of(accepted) / accepted)


def test_after_a_while_a_new_count_is_what_runs_are_compared_with() -> None:
    figures = [8000.0] * 10 + [8010.0] * (NEW + 1)
    change = newest_counted_change(figures, COUNTED)
    assert change and not change.found and change.reference == NEW
    assert newest_counted_change(figures[:1], COUNTED) is None
    assert newest_counted_change([8000.0] * 2 * WINDOW, COUNTED)


# --- records --------------------------------------------------------------------------------------------------------


def record(rate: float = RATE, run: int = 0, **changes: Any) -> dict[str, Any]:
    """One record without trials, of a run on day `run`; `changes` by the path to the key, with `__` between keys."""
    found = copy.deepcopy(TEMPLATE)
    found["started"] = f"2026-10-{run + 1:02d}T12:00:00.000+00:00"
    for name in found["results"]:
        if name in {"mrr", "ndr", "pdr"}:
            found["results"][name] |= {"frames_per_second": rate, "lower_bound": False}
    for path, value in changes.items():
        *way, last = path.split("__")
        holder = found
        for step in way:
            holder = holder[step]
        holder[last] = value
    return found


def _template() -> dict[str, Any]:
    made, _ = made_up.forwarding_record("linux-bridge", RATE)
    document = dict(json.loads(json.dumps(made.to_json())))
    document["quietness"]["noisy"] = False
    return document


TEMPLATE = _template()


def write_history(folder: Path, runs: Sequence[Mapping[str, Any] | None]) -> Path:
    """One record for each run, in the order of the runs. No record for None."""
    for number, each in enumerate(runs):
        records = folder / f"run-{number:02d}" / "records"
        records.mkdir(parents=True)
        if each is not None:
            (records / f"{each['id']}.json").write_text(json.dumps(each, indent=2))
    return folder


def judged(folder: Path, runs: Sequence[Mapping[str, Any] | None], metric: str = "mrr", **options: Any) -> Judgement:
    """The verdict on one metric after these runs."""
    history = read_history(write_history(folder, runs))
    assert history.problems == ()
    (found,) = (each for each in judge_all(rows_of(history.runs, **options)) if each.metric.name == metric)
    return found


def steady(runs: int) -> list[dict[str, Any]]:
    return [record(rate, run) for run, rate in enumerate(noisy(RATE, 0.01, runs))]


def test_a_drop_in_one_run_is_suspected_and_in_two_a_regression(tmp_path: Path) -> None:
    one = judged(tmp_path / "1", [*steady(10), record(RATE * 0.8, 10)])
    assert (one.verdict, one.worse) == (Verdict.SUSPECTED, True)
    assert "repeat it" in one.sentence
    two = judged(tmp_path / "2", [*steady(10), record(RATE * 0.8, 10), record(RATE * 0.8, 11)])
    assert two.verdict is Verdict.REGRESSION
    assert two.sentence.startswith("-19.9 % (")


def test_more_of_a_rate_is_a_progression(tmp_path: Path) -> None:
    runs = [*steady(10), record(RATE * 1.2, 10), record(RATE * 1.2, 11)]
    assert judged(tmp_path, runs).verdict is Verdict.PROGRESSION


def test_more_latency_is_a_regression(tmp_path: Path) -> None:
    more = [record(RATE, run, results__latency_p99__nanoseconds=120_000.0) for run in (10, 11)]
    assert judged(tmp_path, [*steady(10), *more], "latency_p99").verdict is Verdict.REGRESSION


def test_no_change_says_how_large_one_could_be(tmp_path: Path) -> None:
    found = judged(tmp_path, steady(20))
    assert found.verdict is Verdict.NO_CHANGE
    assert found.sentence.startswith("no change larger than ")
    assert found.change and 0.01 < found.change.most < 0.1


def counted(cost: float, run: int) -> dict[str, Any]:
    """The record of a counted machine beside a busy host."""
    results = {"cost": {"instructions_per_frame": cost, "lower_bound": False}}
    return record(run=run, results=results, quietness__noisy=True, quietness__reason="CPU 1: 90% went to cc1")


def test_one_run_with_ten_instructions_more_is_a_regression_at_once(tmp_path: Path) -> None:
    found = judged(tmp_path / "1", [*(counted(7984.375, run) for run in range(3)), counted(7994.375, 3)], "cost")
    assert found.verdict is Verdict.REGRESSION
    assert found.sentence == "+0.125 % (+0.0626 % to +0.188 %; 1 run beside 3 before)"
    found = judged(tmp_path / "2", [counted(7984.375, 0), counted(7986.0, 1)], "cost")
    assert (found.verdict, found.sentence) == (
        Verdict.NO_CHANGE,
        "no change larger than 0.0626 % (1 run beside 1 before)",
    )
    found = judged(tmp_path / "3", [counted(7984.375, 0)], "cost")
    assert (found.verdict, found.sentence) == (Verdict.TOO_FEW, "1 run to compare; 2 are needed")


def test_few_runs_are_not_judged(tmp_path: Path) -> None:
    found = judged(tmp_path, steady(LEAST))
    assert found.verdict is Verdict.TOO_FEW
    assert found.sentence == "5 runs to compare; 6 are needed"


CHANGED = {
    "kernel": ("environment__kernel__release", "6.12"),
    "CPU": ("environment__cpu__model", "another"),
    "machine": ("environment__platform__product", "another"),
    "data plane": ("chain__data_plane", "macvlan"),
    "chain": ("chain__pods", 2),
    "frame": ("traffic__frame__name", "128B"),
    "traffic": ("traffic__flows", 10),
    "link": ("link_bits_per_second", 1e10),
    "placement": ("placement__sut", [3]),
    "tester": ("tester__engine", "tpacket"),
    "method": ("methods__mrr", {"method": "mrr", "trial_count": 3}),
    "mitigations": ("environment__mitigations", {"meltdown": "Vulnerable"}),
}


@pytest.mark.parametrize("part", CHANGED)
def test_another_fingerprint_begins_a_new_series_and_is_told(part: str, tmp_path: Path) -> None:
    path, value = CHANGED[part]
    found = judged(tmp_path / "1", [*steady(10), record(RATE * 0.5, 10, **{path: value})])
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert found.beginning.startswith(f"new series since run-10: {part}: ")
    after = [record(rate * 0.5, run + 10, **{path: value}) for run, rate in enumerate(noisy(RATE, 0.01, 8))]
    found = judged(tmp_path / "2", [*steady(10), *after])
    assert found.verdict is Verdict.NO_CHANGE
    assert found.beginning.startswith("new series since run-10")


def test_a_part_that_is_under_test_may_change(tmp_path: Path) -> None:
    path, value = CHANGED["kernel"]
    after = [record(RATE * 0.8, run, **{path: value}) for run in (10, 11)]
    assert judged(tmp_path, [*steady(10), *after], ignored={"kernel"}).verdict is Verdict.REGRESSION


@pytest.mark.parametrize(
    "path", ["version_under_test", "environment__distribution", "testbed__sha256", "environment__host", "id"]
)
def test_what_is_no_part_of_the_fingerprint_changes_nothing(path: str) -> None:
    assert fingerprint(Record.of(record(**{path: "other"})), MRR) == fingerprint(Record.of(record()), MRR)


def test_another_loss_ratio_begins_a_new_series_of_the_goal_rate_alone() -> None:
    def searched(loss_ratio: float) -> Record:
        goals = [{"name": "NDR", "loss_ratio": 0.0}, {"name": "goal rate", "loss_ratio": loss_ratio}]
        preset = {"name": "quick", "goals": goals}
        return Record.of(record(methods__ndrpdr={"method": "ndrpdr", "preset": preset}))

    one, other = searched(0.001), searched(0.01)
    assert fingerprint(one, METRICS["goal_rate"]) != fingerprint(other, METRICS["goal_rate"])
    assert fingerprint(one, METRICS["ndr"]) == fingerprint(other, METRICS["ndr"])


def test_the_fingerprint_of_one_metric_is_not_that_of_anothers_method() -> None:
    other = record(methods__mrr={"method": "mrr", "trial_count": 3})
    assert difference(fingerprint(Record.of(record()), MRR), fingerprint(Record.of(other), MRR)) == (
        "method: trial count 3 instead of not known"
    )
    assert fingerprint(Record.of(record()), P99) == fingerprint(Record.of(other), P99)


def of_cluster(uid: str = "u1", cni: str = "1.20", node: str = "node1", **changes: Any) -> Record:
    """A record whose tester is in two pods of a cluster."""
    network = {"name": "Cilium", "version": cni, "mode": "", "unread": ["a right"]}
    pods = {"left": {"node": node, "kernel": "6.1", "cpu_model": "A"}, "right": {"node": node, "kernel": "6.1"}}
    cluster = {"server": "https://a:6443", "uid": uid, "version": "v1.34", "network": network}
    return Record.of(record(tester={"name": "pods", "cluster": cluster, "pods": pods}, **changes))


def test_a_cluster_is_one_series_from_whichever_machine_and_another_cluster_is_another() -> None:
    known = fingerprint(of_cluster(), MRR)
    assert known == fingerprint(of_cluster(node="node2", placement__tester=[3], placement__sut=[2]), MRR)
    assert (known["cluster"], known["pod network"], known["CPU"]) == ("u1", "name Cilium, version 1.20", "A")
    assert difference(known, fingerprint(of_cluster(uid="u2"), MRR)) == "cluster: u2 instead of u1"
    assert difference(known, fingerprint(of_cluster(uid=""), MRR)).startswith("cluster: https://a:6443 ")
    newer = of_cluster(cni="1.21")
    assert "version 1.21 instead of" in difference(known, fingerprint(newer, MRR))
    ignored = {"pod network"}
    assert fingerprint(of_cluster(), MRR, ignored) == fingerprint(newer, MRR, ignored)


def test_the_kernel_of_a_further_worker_is_part_of_it() -> None:
    far = [record(environment__further_workers={"w2": {"kernel": {"release": each}}}) for each in ("6.1", "6.12")]
    assert difference(*(fingerprint(Record.of(each), MRR) for each in far)).startswith("kernel: ")


DOUBTS: Mapping[str, Mapping[str, Any]] = {
    "noisy": {"quietness__noisy": True, "quietness__reason": "CPU 0: cc1"},
    "limit": {"results__mrr__lower_bound": True},
    "bound": {"results__mrr__unfinished": True},
    "drifted": {"results__mrr__doubt": "drifted: the upper bound is 447 kpps"},
    "faulty": {"tester_limits__faults": [{"kind": "loses", "ratio": 0.1, "sentence": "it loses frames"}]},
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_doubtful_figures_are_kept_and_not_judged(doubt: str, tmp_path: Path) -> None:
    found = judged(tmp_path / "newest", [*steady(10), record(RATE / 2, 10, **DOUBTS[doubt])])
    assert found.verdict is Verdict.NOT_JUDGED
    assert doubt in found.sentence
    within_history = [record(RATE / 2, run, **DOUBTS[doubt]) for run in (10, 11)]
    found = judged(tmp_path / "before", [*steady(10), *within_history, record(RATE, 12)])
    assert found.verdict is Verdict.NO_CHANGE
    assert len(found.series) == 13


def test_a_rate_that_the_sender_limits_is_judged_where_its_cpu_does_the_network_s_work(tmp_path: Path) -> None:
    bounds = [*steady(8), record(RATE / 2, 8), record(RATE / 2, 9)]
    for each in bounds:
        each["results"]["mrr"]["lower_bound"] = True
        each["tester"] |= {"cluster": {"uid": "u1"}, "receive_threads": False}
    assert judged(tmp_path / "sender", bounds).verdict is Verdict.REGRESSION
    for each in bounds:
        each["tester"]["receive_threads"] = True
    assert judged(tmp_path / "threads", bounds).verdict is Verdict.NOT_JUDGED


def test_the_noise_of_another_method_spoils_no_figure(tmp_path: Path) -> None:
    quiet = record(RATE, 10, quietness__noisy=True, methods__mrr={"method": "mrr", "noise": {"noisy": False}})
    assert judged(tmp_path, [*steady(10), quiet]).verdict is Verdict.NO_CHANGE


@pytest.mark.parametrize(("noisy", "verdict"), [("NDR", Verdict.NOT_JUDGED), ("PDR", Verdict.NO_CHANGE)])
def test_the_noise_of_one_goal_spoils_no_figure_of_another(noisy: str, verdict: Verdict) -> None:
    goals = {each: {"noise": {"noisy": each == noisy, "reason": "CPU 0: cc1"}} for each in ("NDR", "PDR")}
    search = {"method": "ndrpdr", "noise": {"noisy": True}, "goals": goals}
    records = [*steady(10), record(RATE, 10, methods__ndrpdr=search)]
    for each in records:
        each["results"]["ndr"] = each["results"]["mrr"]
        each["methods"]["ndrpdr"] = each["methods"].get("ndrpdr", {})
    runs = [PastRun(str(number), (Record.of(each),)) for number, each in enumerate(records)]
    (row,) = rows_of(runs)
    assert judge(row, METRICS["ndr"]).verdict is verdict


@pytest.mark.parametrize("results", [{}, None])
def test_a_failed_test_is_a_failure_and_no_rate_of_zero(results: Any, tmp_path: Path) -> None:
    failed: dict[str, Any] = {"outcome": "failed", "reason": "no frame crossed"}
    if results is None:
        failed["results__mrr__frames_per_second"] = 0
    else:
        failed["results"] = results
    found = judged(tmp_path / "newest", [*steady(10), record(RATE, 10, **failed)])
    assert (found.verdict, found.sentence) == (Verdict.FAILED, "no frame crossed")
    found = judged(tmp_path / "before", [*steady(10), record(RATE, 10, **failed), record(RATE, 11)])
    assert found.verdict is Verdict.NO_CHANGE


def test_a_test_that_the_newest_run_has_not_is_missing_and_later_not_measured(tmp_path: Path) -> None:
    others = [record(RATE, run) for run in (10, 11)]
    for other in others:
        other["test"]["name"] = "Another"
    found = judged_rows(tmp_path / "1", [*steady(10), others[0]])
    missing = found["Linux bridge, 64 B"]
    assert missing.verdict is Verdict.MISSING
    assert missing.sentence == "the newest run has no such test, and run-09 has"
    assert found["Another"].verdict is Verdict.TOO_FEW
    found = judged_rows(tmp_path / "2", [*steady(10), *others])
    assert found["Linux bridge, 64 B"].verdict is Verdict.NOT_MEASURED


def test_two_testbeds_have_rows_and_a_newest_run_of_their_own(tmp_path: Path) -> None:
    runs = [*steady(10), record(RATE, 10, testbed={**TEMPLATE["testbed"], "name": "lab"})]
    found = [
        each for each in judge_all(rows_of(read_history(write_history(tmp_path, runs)).runs)) if each.metric is MRR
    ]
    assert [(each.row.testbed, each.verdict) for each in found] == [
        ("local", Verdict.NO_CHANGE),
        ("lab", Verdict.TOO_FEW),
    ]


def judged_rows(folder: Path, runs: Sequence[Mapping[str, Any]]) -> dict[str, Judgement]:
    found = judge_all(rows_of(read_history(write_history(folder, runs)).runs))
    return {each.row.name: each for each in found if each.metric is MRR}


# --- acknowledgements -------------------------------------------------------------------------------------------------

KNOWN = """\
acknowledged:
  - test: "Linux bridge*"
    metric: mrr
    at_most_percent: 25
    reason: bug 4711
    until: 2026-12-31
"""


def known(folder: Path, text: str = KNOWN, today: str = "2026-11-24") -> tuple[list[Judgement], list[str]]:
    folder.mkdir(exist_ok=True)
    (folder / "known.yaml").write_text(text)
    history = read_history(write_history(folder / "h", [*steady(10), *(record(RATE * 0.8, run) for run in (10, 11))]))
    judgements = judge_all(rows_of(history.runs))
    return acknowledge(judgements, read_acknowledgements(folder / "known.yaml"), date.fromisoformat(today))


def test_a_known_regression_is_acknowledged_with_its_reason(tmp_path: Path) -> None:
    found, remarks = known(tmp_path)
    verdicts = {each.metric.name: each for each in found}
    assert verdicts["mrr"].verdict is Verdict.ACKNOWLEDGED
    assert verdicts["mrr"].known == "known until 2026-12-31: bug 4711"
    assert verdicts["pdr"].verdict is Verdict.REGRESSION
    assert remarks == []


@pytest.mark.parametrize(
    ("text", "today", "said"),
    [
        (KNOWN, "2027-01-01", "ended on 2026-12-31: bug 4711"),
        (KNOWN.replace("25", "15"), "2026-11-24", "is about no regression"),
        (KNOWN.replace("Linux", "Windows"), "2026-11-24", "is about no regression"),
        (KNOWN.replace("    metric", "    testbed: lab\n    metric"), "2026-11-24", "is about no regression"),
    ],
)
def test_an_acknowledgement_covers_no_more_than_it_says(text: str, today: str, said: str, tmp_path: Path) -> None:
    found, remarks = known(tmp_path, text, today)
    assert [each.verdict for each in found if each.metric is MRR] == [Verdict.REGRESSION]
    assert [said in remark for remark in remarks] == [True]


STEP = """\
acknowledged:
  - {test: "Linux bridge*", metric: cost, at_most_percent: 0.5, reason: "two more checks", until: 2026-12-31}
"""


def test_an_acknowledged_step_of_a_count_is_what_later_runs_are_compared_with(tmp_path: Path) -> None:
    costs = [8000.0, 8000.0, 8030.0, 8030.0, 8100.0]
    history = read_history(write_history(tmp_path / "h", [counted(each, run) for run, each in enumerate(costs)]))
    judgements = judge_all(rows_of(history.runs))
    (tmp_path / "known.yaml").write_text(STEP)
    found, remarks = acknowledge(judgements, read_acknowledgements(tmp_path / "known.yaml"), date(2026, 11, 24))
    (cost,) = (each for each in found if each.metric.name == "cost")
    assert cost.verdict is Verdict.REGRESSION
    assert cost.change and cost.change.share == pytest.approx(70 / 8030)
    assert remarks == [], "the acknowledgement has a use"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (KNOWN.replace("reason: bug 4711", "note: x"), "acknowledged[0].reason: found nothing"),
        (KNOWN.replace("2026-12-31", "soon"), "a date such as 2026-12-31"),
        (KNOWN.replace("2026-12-31", "2026-02-31"), "there is no day 2026-02-31"),
        (KNOWN.replace("mrr", "mr"), "did you mean 'mrr'?"),
        ("known: []\n", "unknown key"),
        (KNOWN.replace("Linux bridge*", "[" * 90_000), "at most 1000 characters"),
        (KNOWN.replace("25", "9" * 400), "at_most_percent: found '99999"),
    ],
)
def test_a_wrong_file_of_acknowledgements_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "known.yaml").write_text(text)
    with pytest.raises(PodperfError) as refused:
        read_acknowledgements(tmp_path / "known.yaml")
    assert said in str(refused.value)


def test_a_pipe_that_becomes_the_file_of_acknowledgements_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "known.yaml")
    monkeypatch.setattr(Path, "is_file", lambda _: True)  # it was a file a moment ago
    with at_most(10), pytest.raises(PodperfError, match="no regular file"):
        read_acknowledgements(tmp_path / "known.yaml")


# --- the folder -------------------------------------------------------------------------------------------------------


def test_a_history_is_read_from_any_depth_and_each_run_once(tmp_path: Path) -> None:
    write_history(tmp_path / "2026" / "nightly", steady(3))
    (tmp_path / "latest").symlink_to(tmp_path / "2026" / "nightly" / "run-02")
    assert [run.name for run in read_history(tmp_path).runs] == [f"2026/nightly/run-0{each}" for each in range(3)]


def test_a_folder_without_a_bottom_keeps_no_history_from_being_read(tmp_path: Path) -> None:
    write_history(tmp_path, steady(2))
    before = Path.cwd()
    os.chdir(tmp_path)
    for _ in range(1500):
        Path("a").mkdir()
        os.chdir("a")
    os.chdir(before)
    assert len(read_history(tmp_path).runs) == 2
    subprocess.run(["rm", "-r", tmp_path / "a"], check=True)  # too deep for pytest


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    write_history(tmp_path, steady(2))
    (tmp_path / "run-01" / "records" / "bad.json").write_text("{")
    history = read_history(tmp_path)
    assert len(history.runs) == 2
    assert [problem.startswith("run-01/records/bad.json: ") for problem in history.problems] == [True]


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(PodperfError):
            read_history(folder)


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_a_record_is_read_without_its_trials_in_every_form_of_json(indent: int | None, tmp_path: Path) -> None:
    whole = made_up.write(tmp_path, *made_up.forwarding_record("linux-bridge", RATE))
    document = json.loads(whole.read_text())
    assert read_record(whole).trials
    assert read_record(whole, trials=False).document == {**document, "trials": []}
    other = tmp_path / "records" / "other.json"
    other.write_text(json.dumps(document, indent=indent))
    assert read_record(other, trials=False).document == {**document, "trials": []}


def test_half_a_record_is_none_without_its_trials_either(tmp_path: Path) -> None:
    whole = made_up.write(tmp_path, *made_up.forwarding_record("linux-bridge", RATE))
    text = whole.read_text()
    for size in (len(text) - 1, len(text) - 3, text.index('"trials": [') + 12):
        whole.write_text(text[:size] if size != len(text) - 1 else text[: size - 1])
        with pytest.raises(PodperfError):
            read_record(whole, trials=False)


def test_the_example_of_acknowledgements_in_the_documentation_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "history.md").read_text()
    (example,) = (each for each in page.split("```") if each.startswith("\nacknowledged:"))
    (tmp_path / "known.yaml").write_text(example)
    (found,) = read_acknowledgements(tmp_path / "known.yaml")
    assert (found.metric, found.at_most, found.until) == ("mrr", 0.08, date(2026, 12, 31))


def test_a_cpu_of_a_switch_that_there_is_not_is_no_part_of_it() -> None:
    """Older records name a CPU of a switch also for linux-bridge."""
    older, newer = record(roles=[{"switch": [1]}]), record(roles=[{"pod 1": [1]}])
    assert fingerprint(Record.of(older), MRR) == fingerprint(Record.of(newer), MRR)
    ovs = [record(chain__data_plane="ovs-dpdk", roles=[{"switch": [each]}]) for each in (1, 2)]
    assert difference(*(fingerprint(Record.of(ov), MRR) for ov in ovs)).startswith("placement: ")
