"""Presets are data. They have names, they are complete, and their values are those of their sources."""

from __future__ import annotations

import json

import pytest

from podperf.errors import PodperfError
from podperf.methods import mrr_by, search_by
from podperf.methods.mrr import Mrr
from podperf.methods.ndrpdr import NdrPdr
from podperf.methods.presets import PRESETS, Preset, preset
from podperf.topology import MethodSettings


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(PodperfError, match="'fast'; choose one of: quick, csit, tst009, rfc2544"):
        preset("fast")


def test_methods_come_from_the_settings() -> None:
    settings = MethodSettings("rfc2544", 7, 0.5)
    assert mrr_by(settings) == Mrr(7, 0.5)
    assert search_by(settings) == NdrPdr(PRESETS["rfc2544"])


@pytest.mark.parametrize("each", PRESETS.values(), ids=lambda each: each.name)
def test_goals_are_sound(each: Preset) -> None:
    assert each.goals[0].name == "NDR" and each.goals[0].loss_ratio == 0
    assert len({goal.name for goal in each.goals}) == len(each.goals)
    assert {"loss_ratio", "exceed_ratio"} <= set(each.sources)
    assert json.loads(json.dumps(each.as_record()))["name"] == each.name
    for goal in each.goals:
        # At the lowest load, a trial must have enough frames to tell this loss ratio from no loss.
        assert each.minimum_load * goal.initial_trial_duration * (goal.loss_ratio or 1) >= 1


def test_the_standards_values() -> None:
    (throughput,) = PRESETS["rfc2544"].goals
    assert (throughput.final_trial_duration, throughput.duration_sum, throughput.exceed_ratio) == (60, 60, 0)
    verified = PRESETS["tst009"].goals[0]
    assert (verified.final_trial_duration, verified.duration_sum, verified.exceed_ratio) == (60, 120, 0.5)
    csit = PRESETS["csit"].goals[1]
    assert (csit.loss_ratio, csit.duration_sum, csit.relative_width) == (0.005, 21, 0.005)


def test_a_tester_that_needs_long_trials_gets_them_and_the_preset_says_so() -> None:
    quick = PRESETS["quick"].for_tester(0.5)
    assert (
        {each.initial_trial_duration for each in quick.goals}
        == {0.5}
        == {each.final_trial_duration for each in quick.goals}
    )
    assert [each.duration_sum for each in quick.goals] == [each.duration_sum for each in PRESETS["quick"].goals]
    assert quick.warmup_duration == 0.5
    assert quick.as_record()["adapted"].startswith("trials of 0.5 s, not 0.2 s")
    assert PRESETS["quick"].for_tester(0.0) is PRESETS["quick"]
    assert PRESETS["csit"].for_tester(0.5) is PRESETS["csit"]
