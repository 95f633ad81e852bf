"""All rows of a run as one figure: a change that no row shows alone, gaps, and rows that vary together."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.history.judgement import Verdict, judge
from podperf.history.together import LEAST_ROWS, rows_together, run_means
from podperf.history.trends import Point, Row
from podperf.metrics import METRICS, Measured

MRR = METRICS["mrr"]
RUNS = 20


def row(number: int, figures: Mapping[int, float], data_plane: str = "macvlan", outcome: str = "passed") -> Row:
    """A row with these figures by the number of the run."""
    points = [
        Point(f"run{run:02}", f"2026-10-{run + 1:02}", "", {"data plane": data_plane}, Measured(figure))
        for run, figure in sorted(figures.items())
    ]
    return Row("local", "4.1", f"row {number}", {MRR: points}, outcome, "", data_plane, "kernel-space")


def noisy_rows(amount: int, share: float, *, deviation: float = 0.03, common: float = 0.0, after: int = 3) -> list[Row]:
    """Rows whose figures change by this share in the newest runs; a fifth of the earlier figures is missing."""
    chance = random.Random(7)
    of_run = [chance.gauss(1, common) * (1 + share * (run >= RUNS)) for run in range(RUNS + after)]
    return [
        row(
            number,
            {
                run: 1e5 * (number + 1) * chance.gauss(1, deviation) * each
                for run, each in enumerate(of_run)
                if run >= RUNS or chance.random() > 0.2
            },
        )
        for number in range(amount)
    ]


def verdict_on(rows: list[Row], name: str = "all rows") -> Verdict:
    (found,) = (each for each in rows_together(rows) if each.name == name)
    return judge(found, MRR).verdict


def test_a_change_that_few_rows_show_alone_is_found_in_all_of_them() -> None:
    rows = noisy_rows(66, -0.05)
    assert sum(judge(each, MRR).verdict is Verdict.REGRESSION for each in rows) < 20
    assert verdict_on(rows) is Verdict.REGRESSION
    assert verdict_on(noisy_rows(66, 0.0)) is Verdict.NO_CHANGE


def test_rows_that_vary_together_make_the_verdict_less_sure() -> None:
    """Sixty-six rows of one slow run are not sixty-six witnesses."""
    assert verdict_on(noisy_rows(66, -0.03)) is Verdict.REGRESSION
    assert verdict_on(noisy_rows(66, -0.03, common=0.03)) is Verdict.NO_CHANGE


@given(st.lists(st.floats(1, 1e7), min_size=2, max_size=8), st.data())
def test_a_missing_row_makes_no_run_faster_or_slower(levels: list[float], data: st.DataObject) -> None:
    runs = [str(each) for each in range(6)]
    rows = [
        {run: math.log(level) for run in data.draw(st.sets(st.sampled_from(runs), min_size=1)) | {"0"}}
        for level in levels
    ]
    means = list(run_means(rows).values())
    assert max(means) - min(means) == pytest.approx(0, abs=1e-3)


def test_data_planes_and_models_are_judged_too_but_not_the_same_rows_twice() -> None:
    rows = [row(each, dict.fromkeys(range(8), 1e5)) for each in range(LEAST_ROWS)]
    assert [each.name for each in rows_together(rows)] == ["all rows"]
    more = [row(9 + each, dict.fromkeys(range(8), 2e5), "ptp") for each in range(LEAST_ROWS)]
    assert [each.name for each in rows_together([*rows, *more])] == [
        "all rows",
        "all rows of macvlan",
        "all rows of ptp",
    ]


def test_rows_that_the_newest_run_has_not_measured_are_left_out() -> None:
    there = [row(each, dict.fromkeys(range(8), 1e5)) for each in range(LEAST_ROWS)]
    gone = row(9, dict.fromkeys(range(7), 1e3), outcome="")
    (found,) = rows_together([*there, gone])
    assert found.trends[MRR][-1].judged == pytest.approx(1e5)
    assert rows_together([*there[:-1], gone]) == []
