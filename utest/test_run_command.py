"""`podperf run`: which options Robot Framework gets for the arguments of a user."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from robot.errors import DataError
from robot.run import USAGE
from robot.utils import ArgumentParser

import run_command.run as command_line
from podperf.__main__ import main
from run_command import arguments, own_tests
from run_command.arguments import OWN_OPTIONS, RESULTS, SUITES, TOPOLOGIES, Command
from run_command.listeners import measured

NOW = datetime(2026, 11, 23, 20, 21, 22, 7654)
KERNEL = str(SUITES / "4.1_networking_models" / "4.1.1_kernel_space.robot")


def options(*arguments: str) -> dict[str, Any]:
    return Command.parse(arguments).for_robot(NOW)


def test_by_default() -> None:
    found = options()
    assert found["variable"] == [f"TOPOLOGY:{TOPOLOGIES}/local.yaml"]
    assert found["include"] == ["quick"]
    assert found["outputdir"] == f"{RESULTS}/2026-11-23T20-21-22.007"
    assert (found["xunit"], found["console"]) == ("xunit.xml", "quiet")
    assert Command.parse([]).sources == (str(SUITES),)


def test_who_chooses_no_rows_of_a_cluster_gets_all_of_them() -> None:
    assert options("topologies/kubernetes.yaml")["include"] == ["kubernetes NOT many-pods NOT loss-free-share"]
    assert options("topologies/kubernetes.yaml", "--include", "mrr")["include"] == ["mrr"]


@pytest.mark.parametrize(
    "choice",
    [
        ["--include", "full"],
        ["-i", "full"],
        ["-ifull"],
        ["--inc", "full"],
        ["--test=A"],
        ["--suite", "S"],
        ["-R", "output.xml"],
        ["--re-run-failed-suites", "output.xml"],
    ],
)
def test_a_choice_of_tests_replaces_quick(choice: list[str]) -> None:
    assert "quick" not in options(*choice).get("include", [])


def test_arguments_come_from_a_file_and_the_environment_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "arguments"
    file.write_text("--include full\n-v TOPOLOGY:mine.yaml\n")
    monkeypatch.setenv("ROBOT_OPTIONS", "--loglevel TRACE")
    found = options("--argumentfile", str(file))
    assert found["include"] == ["full"] and found["loglevel"] == "TRACE"
    assert found["variable"][-1] == "TOPOLOGY:mine.yaml"


@pytest.mark.parametrize("given", [[], ["--dryrun"], ["-X"], ["--loglevel", "TRACE"], ["--exclude=full"]])
def test_suites_replace_all_suites(given: list[str], tmp_path: Path) -> None:
    suite = tmp_path / "one suite.robot"
    suite.touch()
    assert Command.parse([*given, str(suite)]).sources == (str(suite),)


@pytest.mark.parametrize("given", [[], ["--include", "full"]])
def test_own_suites_run_with_all_their_tests(given: list[str], tmp_path: Path) -> None:
    suite = tmp_path / "mine.robot"
    suite.touch()
    for own in (suite, tmp_path):
        assert options(*given, str(own)).get("include", []) == given[1:], "their tags are the user's"
    for podperfs in (KERNEL, str(SUITES)):
        assert options(*given, podperfs)["include"] == (given[1:] or ["quick"])
    (sentence,) = Command.parse([str(suite), KERNEL]).missing()
    assert sentence == f"{suite} is not one of podperf's suites, and others of this run are; run it alone"


def the_options() -> list[str]:
    """Each option of the command that has a value."""
    found = ArgumentParser(f"{USAGE}\n{OWN_OPTIONS}").parse_args([])[0]
    return [name for name in found if not _is_flag(name)]


def _is_flag(name: str) -> bool:
    return isinstance(Command.parse([f"--{name}", "x"]).options.get(name), bool)


@pytest.mark.parametrize("option", [*the_options(), "version-under-test"])
@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_value_is_as_if_the_option_was_not_given(option: str, empty: str) -> None:
    """CI servers pass on parameters that nobody filled in."""
    assert Command.parse([f"--{option}", empty]) == Command.parse([f"--{option}={empty}"]) == Command.parse([])


@pytest.mark.parametrize(
    "given",
    [
        ["-i", ""],
        ["", "--include", ""],
        ["--variable", "TOPOLOGY:", ""],
        ["-v", "topology: "],
        ["--outputdir", "", "--include", "", "--version-under-test", "", ""],
    ],
)
def test_empty_parameters_of_a_ci_server_leave_the_defaults(given: list[str]) -> None:
    assert options(*given) == options()
    assert Command.parse(given).sources == (str(SUITES),)


def test_an_empty_parameter_does_not_end_the_options() -> None:
    command = Command.parse(["", "--include", "full", "--exclude", "", "--exclude", "slow"])
    assert command.options == {"include": ["full"], "exclude": ["slow"]}


@pytest.mark.parametrize("given", [["--argumentfile", ""], ["-A", ""], ["--argumentfile="]])
def test_an_argument_file_without_a_name_is_refused(given: list[str]) -> None:
    with pytest.raises(DataError, match="--argumentfile has no value"):
        Command.parse(given)


@pytest.mark.parametrize("given", [[], ["--include", "full"]])
def test_suites_of_podperf_run_within_the_whole_which_opens_the_testbed(given: list[str]) -> None:
    command = Command.parse([*given, KERNEL, str(SUITES / "appendices")])
    assert command.sources == (str(SUITES),)
    assert command.for_robot(NOW)["parseinclude"] == [KERNEL, str(SUITES / "appendices")]
    whole = Command.parse([*given, str(SUITES)])
    assert whole.sources == (str(SUITES),) and "parseinclude" not in whole.for_robot(NOW)


def test_a_yaml_file_is_the_topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.yaml").touch()
    command = Command.parse(["--include", "full", "lab.yaml", KERNEL])
    assert command.for_robot(NOW)["variable"][-1] == f"TOPOLOGY:{tmp_path}/lab.yaml"
    assert command.missing() == [] and command.suites == (KERNEL,)
    command = Command.parse(["lab.yaml", "--variablefile", "some.yaml", "-V", "some.yml", "--include", "full"])
    assert (command.topology, command.suites) == ("lab.yaml", ())
    assert command.options == {"variablefile": ["some.yaml", "some.yml"], "include": ["full"]}
    with pytest.raises(DataError, match=r"a run has one topology, not lab.yaml and other.yml"):
        Command.parse(["lab.yaml", "other.yml"])


def test_a_dry_run_writes_nothing_unless_asked_to() -> None:
    found = options("--dryrun")
    assert (found["output"], found["log"], found["report"], found.get("xunit")) == ("NONE", "NONE", "NONE", None)
    assert "output" not in options("--dryrun", "--outputdir", "out")


SOMEBODY = 12345


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
@pytest.mark.parametrize("option", ["--outputdir", "--output", "--log", "--report", "--xunit"])
@pytest.mark.parametrize("planted", ["folder", "file"])
def test_root_does_not_write_where_somebody_else_can_have_put_a_link(
    planted: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Robot Framework follows links, as of `output.xml` to /etc/passwd."""
    monkeypatch.setattr(command_line, "run_robot", lambda *_: pytest.fail("it ran"))
    tmp_path.chmod(0o1777)
    theirs = tmp_path / "theirs"
    (theirs.mkdir if planted == "folder" else theirs.touch)()
    os.chown(theirs, SOMEBODY, SOMEBODY)
    value = theirs if planted == "file" or option == "--outputdir" else theirs / "x.xml"
    mine = [] if option == "--outputdir" else ["--outputdir", str(tmp_path / "mine")]
    assert main(["--no-install", "run", *mine, option, str(value)]) == 252
    assert f"could have root overwrite any file: choose another {option}\n" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
@pytest.mark.parametrize("of", ["the caller", "root, in a folder like /tmp", "nobody yet"])
def test_root_writes_where_only_root_and_the_caller_can(
    of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    monkeypatch.setattr(command_line, "run_robot", lambda _, given: called.append(given["outputdir"]) or 0)
    monkeypatch.setenv("SUDO_UID", str(SOMEBODY))
    monkeypatch.setenv("SUDO_GID", str(SOMEBODY))
    results = tmp_path / "results"
    if of != "nobody yet":
        results.mkdir()
    if of == "the caller":
        os.chown(results, SOMEBODY, SOMEBODY)
    else:
        tmp_path.chmod(0o1777)
    assert main(["--no-install", "run", "--outputdir", str(results)]) == 0
    assert called == [str(results)]


@pytest.mark.parametrize("results", ["no such folder", ".", "killed"])
def test_a_run_that_has_no_records_is_not_resumed(
    results: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "killed" / "records").mkdir(parents=True)
    (tmp_path / "killed" / "records" / ".a.trials.jsonl.0.half").touch()  # killed while its first record began
    (sentence,) = Command.parse(["--resume", results]).missing()
    assert re.search("wants the results folder of an interrupted run; .* has no records", sentence)


def test_an_interrupted_run_is_resumed_with_its_options_and_results_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.chdir(RESULTS.parent)
    command = Command.parse(["-ifull", "--test", "PTP, 64 B", "-X", "--outputdir", "out", "my lab.yaml", KERNEL])
    line = command.resumed(["/opt/pod perf/podperf", "--no-install"], RESULTS / "first")
    assert line == (
        "'/opt/pod perf/podperf' --no-install run --resume results/first "
        f"--test 'PTP, 64 B' --include full --exitonfailure 'my lab.yaml' {shlex.quote(KERNEL)}"
    )
    monkeypatch.setenv("SUDO_UID", "1000")
    again = Command.parse(["--resume", "results/first", "--include", "full"]).resumed(["./podperf"], RESULTS / "second")
    assert again == "sudo ./podperf run --resume results/first --resume results/second --include full"


SUITE = """*** Test Cases ***
Quick
    [Tags]    quick
    No Operation
Another
    Log    no record
Long
    Fail    not asked for
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another one, with a suite of a few tests and a space in its path. Robot Framework runs in this process."""
    root = tmp_path / "a checkout"
    shutil.copytree(TOPOLOGIES, root / "topologies")
    (root / "tests").mkdir()
    (root / "tests" / "suite.robot").write_text(SUITE)
    monkeypatch.setattr(arguments, "SUITES", root / "tests")
    monkeypatch.setattr(arguments, "TOPOLOGIES", root / "topologies")
    monkeypatch.setattr(arguments, "RESULTS", root / "results")
    monkeypatch.setattr(command_line, "RESULTS", root / "results")
    monkeypatch.setattr(sys, "path", [*sys.path])  # Robot Framework adds folders to it
    return root


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--include", "quik"], "podperf: no test has the tag quik; near: quick\n"),
        (["--include", "zzz"], "podperf: no test has the tag zzz; there are:\nquick\n"),
        (["--exclude", "quik", "--dryrun"], "podperf: no test has the tag quik; near: quick\n"),
        (["--test", "Anohter"], 'podperf: no test is called "Anohter"; near: Another\n'),
        (["--suite", "Siute"], 'podperf: no suite is called "Siute"; near: Suite\n'),
        (["siute.robot"], 'podperf: there is no suite siute.robot; near: "{root}/tests/suite.robot"\n'),
        (["tests/zzz.robot"], "podperf: there is no suite tests/zzz.robot; the suites are in {root}/tests\n"),
        (["quick"], "podperf: there is no suite quick; tests with a tag of this name: --include quick\n"),
        (["locl.yaml"], 'podperf: there is no topology locl.yaml; near: "{root}/topologies/local.yaml"\n'),
        (["tests", "--include", "quick"], "podperf: --include stands behind a suite: options come first\n"),
        (["--nonsense"], "podperf: option --nonsense not recognized; try: {root}/podperf run --help\n"),
        (["--loglevel", "LOUD"], "Invalid value for option '--loglevel'"),
        (["--variablefile", "none.py", "--test", "Another"], "Variable file 'none.py' does not exist."),
        (["--listener", "None.Such", "--test", "Another"], "Taking listener 'None.Such' into use failed"),
        (["--test", "Long"], "podperf: 1 test failed: not asked for\npodperf: no test was measured: 1 failed; see "),
        (["--test", "Long", "--log", "NONE"], "podperf: no test was measured: 1 failed\n"),
        (["--test", "Long", "--log", "other.html"], "no test was measured: 1 failed; see {root}/results/"),
        (["--dryrun"], "podperf: a dry run, which measures nothing: a run would have 1 test\n  Suite\n    Quick\n"),
    ],
)
def test_nothing_ends_in_silence(
    checkout: Path, capfd: pytest.CaptureFixture[str], given: list[str], words: str
) -> None:
    main(["--script", f"{checkout}/podperf", "--no-install", "run", *given])
    assert words.format(root=checkout) in capfd.readouterr().err


SKIPPED = "*** Test Cases ***\nOne\n    Skip    no NIC\nTwo\n    Skip    no NIC\n"
CLOSED = "*** Settings ***\nSuite Setup    Fail    no login\n\n*** Test Cases ***\nOne\n    No Operation\n"


@pytest.mark.parametrize(
    ("suite", "given", "code"),
    [
        (SUITE, ["--include", "quick"], 0),
        (SUITE, ["--test", "*"], 1),
        (SKIPPED, ["--test", "*"], 254),
        (CLOSED, ["--test", "*"], 254),
        (SKIPPED, ["--test", "*", "--nostatusrc"], 0),
        (SKIPPED, ["--test", "*", "--dryrun"], 0),
        (SUITE, ["--test", "none"], 252),
    ],
)
def test_the_exit_code_tells_a_failed_test_from_a_run_that_could_not_measure(
    suite: str, given: list[str], code: int, checkout: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (checkout / "tests" / "suite.robot").write_text(suite)
    assert main(["--script", f"{checkout}/podperf", "--no-install", "run", *given]) == code
    assert code != 254 or "podperf: no test was measured: " in capfd.readouterr().err


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"trials": [], "results": {}}, False),
        ({"trials": [{"load": 1000.0}], "results": {}}, True),
        ({"trials": [], "results": {"pairs_rate": {"value": 168e3}}}, True),
        ({"unreadable": True}, False),
    ],
)
def test_a_test_has_measured_if_it_has_trials_or_figures(tmp_path: Path, document: object, expected: bool) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "many-pairs.json").write_text(json.dumps(document))
    assert measured(tmp_path) is expected


@pytest.mark.parametrize("given", [["--version-under-test", "OVS 3.6"], ["--versionundertest=OVS 3.6"]])
def test_the_version_under_test_is_a_variable_and_no_option_of_robot(given: list[str]) -> None:
    assert "VERSION_UNDER_TEST:OVS 3.6" in options(*given)["variable"]
    assert "versionundertest" not in options(*given)
    resumed = Command.parse(given).resumed(["./podperf"], RESULTS / "first")
    assert resumed.endswith("./podperf run --resume results/first --version-under-test 'OVS 3.6'")


def test_help_of_run_says_where_that_of_robot_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--include", "full", "--help"]) == 0
    assert ".venv/bin/robot --help" in capsys.readouterr().out


def test_a_suite_without_the_whole_names_the_command_that_opens_its_testbed(tmp_path: Path) -> None:
    chosen = ["--test", "PTP, 64 B", "--outputdir", str(tmp_path), "--log", "NONE", "--report", "NONE"]
    done = subprocess.run(
        [sys.executable, "-m", "robot", *chosen, KERNEL], capture_output=True, text=True, check=False, timeout=100
    )
    command = f"{RESULTS.parent}/podperf run {KERNEL}"
    assert done.returncode == 1 and done.stdout.count(f"no testbed is open; the command that opens one: {command}") == 1


def test_tox_gets_all_arguments_but_podperfs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    done = subprocess.CompletedProcess([], 3)
    monkeypatch.setattr(own_tests.subprocess, "run", lambda *words, **how: called.append((words, how)) or done)
    monkeypatch.setattr(Path, "write_text", lambda *_, **__: None)
    assert main(["test", "--all", "-e", "utest", "--", "utest/test_x.py", "-k", "a b"]) == 3
    ((command,), how) = called[0]
    assert command[-6:] == ["-e", "utest", "--", "utest/test_x.py", "-k", "a b"]
    assert how["env"]["PODPERF_TESTS"] == "all"
