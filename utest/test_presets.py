"""Presets are data. They have names, they are complete, and their values are those of their sources."""

from __future__ import annotations

import json

import pytest

from podperf.errors import PodperfError
from podperf.methods.presets import PRESETS, Preset, preset


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(PodperfError, match="'fast'; choose one of: quick, csit, tst009, rfc2544"):
        preset("fast")


@pytest.mark.parametrize("each", PRESETS.values(), ids=lambda each: each.name)
def test_goals_are_sound(each: Preset) -> None:
    assert each.goals[0].name == "NDR" and each.goals[0].loss_ratio == 0
    assert len({goal.name for goal in each.goals}) == len(each.goals)
    assert {"loss_ratio", "exceed_ratio"} <= set(each.sources)
    assert json.loads(json.dumps(each.as_record()))["name"] == each.name
    for goal in each.goals:
        # At the lowest load, a trial must have enough frames to tell this loss ratio from no loss.
        assert each.minimum_load * goal.initial_trial_duration * (goal.loss_ratio or 1) >= 1


def test_a_tester_that_needs_long_trials_gets_them_and_the_preset_says_so() -> None:
    quick = PRESETS["quick"].for_tester(0.5)
    assert (
        {goal.initial_trial_duration for goal in quick.goals}
        == {0.5}
        == {goal.final_trial_duration for goal in quick.goals}
    )
    assert [goal.duration_sum for goal in quick.goals] == [goal.duration_sum for goal in PRESETS["quick"].goals]
    assert quick.warmup_duration == 0.5
    assert quick.as_record()["adapted"].startswith("trials of 0.5 s, not 0.2 s")
    assert PRESETS["quick"].for_tester(0.0) is PRESETS["quick"]
    assert PRESETS["csit"].for_tester(0.5) is PRESETS["csit"]
