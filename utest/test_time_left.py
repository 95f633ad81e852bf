"""The remaining time that `podperf test` shows, and the tests that it leaves out."""

from __future__ import annotations

import io
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import time_left
from time_left import Expected, estimate, written
from time_left_line import TimeLeft

pytest_plugins = ("pytester",)
STAGES = ("lint", "utest", "atest")


@given(st.dictionaries(st.text(), st.floats(0, 1e4)), st.dictionaries(st.text(), st.floats(0, 1e4)))
def test_figures_are_read_as_they_were_written(stages: dict[str, float], tests: dict[str, float]) -> None:
    file = Path(f"/tmp/podperf-utest-{id(stages)}.json")
    try:
        Expected().write(file, stages=stages, tests=tests)
        found = Expected.read(file)
    finally:
        file.unlink(missing_ok=True)
    assert found.stages == pytest.approx(stages, abs=0.06)
    assert found.tests == pytest.approx(tests, abs=0.06)


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "[" * 200_000, '{"stages": 1, "tests": {}}', '{"stages": {"lint": "x"}, "tests": {}}'),
        *(f'{{"stages": {{"lint": {number}}}, "tests": {{}}}}' for number in ("NaN", "Infinity", "1e999")),
    ],
)
def test_a_damaged_file_costs_only_the_estimate(tmp_path: Path, content: str) -> None:
    file = tmp_path / "seconds.json"
    file.write_text(content)
    assert Expected.read(file, tmp_path / "missing.json").stage("lint") == time_left.UNKNOWN_STAGE


def test_a_later_file_counts_more(tmp_path: Path) -> None:
    usual, learned = tmp_path / "usual.json", tmp_path / "learned.json"
    Expected().write(usual, stages={"lint": 20, "utest": 60}, tests={"a": 1})
    Expected().write(learned, stages={"utest": 90}, tests={"a": 2})
    found = Expected.read(usual, learned)
    assert (found.stage("lint"), found.stage("utest"), found.tests["a"]) == (20, 90, 2)
    assert found.later_stages("lint", STAGES) == 90 + time_left.UNKNOWN_STAGE
    assert found.later_stages("atest", STAGES) == 0
    assert found.later_stages("called by hand", STAGES) == 0


def test_tests_without_a_figure_share_what_the_others_leave_of_their_stage() -> None:
    expected = Expected({"utest": 60}, {"long": 50})
    assert expected.of(["long", "a", "b"], "utest", STAGES) == {"long": 50, "a": 5, "b": 5}
    assert expected.of(["a"], "utest", ()) == {"a": time_left.UNKNOWN_TEST}
    assert Expected({"utest": 10}, {"long": 50}).of(["long", "a"], "utest", STAGES) == {"long": 50, "a": 0}


def test_a_slow_machine_corrects_the_estimate_as_the_run_goes_on() -> None:
    assert estimate(100, 0, 0) == 100
    assert 150 < estimate(100, spent=120, expected=60) < 200
    assert estimate(100, spent=1200, expected=600) == pytest.approx(200, rel=0.05)


def test_the_line_names_stage_test_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time_left_line.time.monotonic", lambda: now)
    expected = Expected({"atest": 300}, {"utest/test_a.py::test_one_thing": 10, "utest/test_a.py::test_two": 20})
    out = io.StringIO()
    line = TimeLeft(out, "utest", expected, STAGES)
    line.plan(list(expected.tests))
    line.pytest_runtest_logstart("utest/test_a.py::test_one_thing")
    assert line.seconds_left == 330
    now = 4.0
    assert line.seconds_left == 326
    now = 10.0
    line.pytest_runtest_logfinish("utest/test_a.py::test_one_thing")
    line.pytest_runtest_logstart("utest/test_a.py::test_two")
    assert out.getvalue().splitlines()[-1] == "utest [2/2] 5:20 left | test_a.py: two"


def test_tests_that_run_beside_each_other_take_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time_left_line.time.monotonic", lambda: now)
    names = [f"utest/test_a.py::test_{number}" for number in range(4)]
    line = TimeLeft(io.StringIO(), "utest", Expected({"atest": 300}, dict.fromkeys(names, 10)), STAGES)
    line.plan(names, workers=2)
    assert line.seconds_left == 320
    for name in names[:2]:
        line.pytest_runtest_logstart(name)
    now = 4.0
    assert line.seconds_left == 316
    now = 10.0
    line.pytest_runtest_logfinish(names[1])
    line.pytest_runtest_logfinish(names[0])
    assert line.seconds_left == 310
    assert Expected({"utest": 30}, {names[0]: 10}).of(names, "utest", STAGES, workers=2)[names[1]] == 50 / 3


def test_written() -> None:
    assert [written(seconds) for seconds in (0, 59.9, 60, 605)] == ["0:00", "0:59", "1:00", "10:05"]


def test_a_stage_says_how_long_the_rest_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(time_left.STAGES_VARIABLE, "lint utest")
    monkeypatch.setattr(time_left, "LEARNED", Path("/nowhere"))
    monkeypatch.setattr(time_left, "USUAL", Path("/nowhere"))
    time_left.main("lint")
    time_left.main("make-keywords")
    assert capsys.readouterr().out == "lint: 0:40 left\n"


TESTS = """
import pytest

def test_quick(): pass

@pytest.mark.slow
def test_slow(): pass

def test_wrong(): assert 0
"""
CONFTEST = Path(__file__).parents[1] / "atest/conftest.py"


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of tests with the plugin and the rule of atest about slow tests."""
    monkeypatch.delenv(time_left.STAGES_VARIABLE, raising=False)
    monkeypatch.delenv("PODPERF_TESTS", raising=False)
    monkeypatch.delenv("TOX_ENV_NAME", raising=False)
    source = CONFTEST.read_text()
    rule = source[source.index("def pytest_collection_modifyitems") : source.index("@pytest.hookimpl(tryfirst=True)")]
    pytester.makeconftest(
        "import os\nfrom pathlib import Path\nimport pytest\npytest_plugins = ('time_left_line',)\n"
        f"EVERYTHING = os.environ.get('PODPERF_TESTS') == 'all'\n{rule}"
    )
    pytester.makeini("[pytest]\nmarkers = slow\naddopts = -q\ntestpaths = .\n")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    pytester.makepyfile(test_some=TESTS)
    return pytester


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [((), 1), (("test_some.py",), 2), (("-m", "slow"), 1), (("-k", "quick or slow"), 2)],
    ids=str,
)
def test_slow_tests_run_when_they_are_chosen(tests: pytest.Pytester, arguments: tuple[str, ...], passed: int) -> None:
    outcome = tests.runpytest_subprocess(*arguments)
    assert outcome.parseoutcomes()["passed"] == passed


def test_slow_tests_run_when_all_are_asked_for(tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODPERF_TESTS", "all")
    assert tests.runpytest_subprocess().parseoutcomes() == {"passed": 2, "failed": 1}


def test_tests_that_are_skipped_on_this_machine_take_no_time(tests: pytest.Pytester) -> None:
    tests.makepyfile(test_other="import pytest\n\n@pytest.mark.skipif(True, reason='no')\ndef test_other(): pass\n")
    lines = tests.runpytest_subprocess("-k", "quick or other").outlines
    assert any(line.startswith("tests [1/1] ") for line in lines), lines


def test_a_failure_is_named_when_it_happens_and_there_are_no_dots(tests: pytest.Pytester) -> None:
    lines = tests.runpytest_subprocess().outlines
    first = next(number for number, line in enumerate(lines) if line.startswith("tests [1/2] "))
    assert lines[first].endswith(" left | test_some.py: quick")
    assert "FAILED test_some.py::test_wrong (call)" in lines[first:]
    assert not any(set(line) <= set(".sF%[] 0123456789") and line.strip() for line in lines)


@pytest.mark.skipif(find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_the_line_is_shown_once_where_several_processes_run_the_tests(tests: pytest.Pytester) -> None:
    lines = tests.runpytest_subprocess("-n", "2").outlines
    assert [line[:12] for line in lines if "[1/" in line] == ["tests [1/2] "], lines
    assert lines.count("FAILED test_some.py::test_wrong (call)") == 1


def test_the_times_of_this_project_are_for_tests_that_exist() -> None:
    usual = json.loads(time_left.USUAL.read_text())
    assert set(usual["stages"]) == {"lint", "types", "keywords", "utest", "atest"}
    sources = "".join(
        path.read_text() for folder in ("utest", "atest") for path in (time_left.ROOT / folder).rglob("*.py")
    )
    for name in usual["tests"]:
        test = name.partition("::")[2].partition("[")[0]
        assert f"def {test}(" in sources, f"{name} is gone: take it out of {time_left.USUAL.name}"
