"""The entry script, `podperf`: its set-up, its messages about a failed set-up, and the commands that it runs.

A checkout is copied into a folder with a space in its name. Programs that would change the machine (apt-get, pip and
others) are stand-ins there. A stand-in notes how it was called.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import AS_OTHER_USER
from locked import locked_by_another

SOURCE = Path(__file__).resolve().parent.parent
NOTE = 'printf "%s\\n" "$(basename "$0") $*" >>"$CALLS"\n'
OFFLINE_APT = """E: Failed to fetch http://deb.debian.org/debian/pool/main/m/make/make.deb  \
Temporary failure resolving 'deb.debian.org'"""
OFFLINE_PIP = """WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('...: \
Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/jsonschema/
ERROR: Could not find a version that satisfies the requirement jsonschema (from versions: none)"""


class Machine:
    """A new machine, with root as the user, unless a test says otherwise."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a checkout"
        self.tools = folder / "tools"
        self.calls_file = folder / "calls"
        self.installed = folder / "installed"
        self.tools.mkdir()
        (self.root / "tester").mkdir(parents=True)
        for folder_of_sources in ("dataplanes/bpf", "counted_machine/plugin"):
            (self.root / "libraries/podperf" / folder_of_sources).mkdir(parents=True)
        (self.root / "tests").mkdir()
        shutil.copy(SOURCE / "podperf", self.root)
        (self.root / "requirements.lock").write_text("robotframework==7.5\n")
        for name in ("front.c", "marks.h"):
            (self.root / "tester" / name).write_text("int main;\n")
        self.calls_file.touch()
        self.installed.touch()
        self.environment = {"PATH": f"{self.tools}:{os.environ['PATH']}", "CALLS": str(self.calls_file), "LC_ALL": "C"}
        self.is_root(True)
        self.runs("debian", "12")
        self.python("3.11")
        self.tool("dpkg", "")
        self.tool("dpkg-query", f"sed 's/$/ installed/' '{self.installed}'", note=False)
        self.tool(
            "apt-get", f"""case "$*" in *install*) printf '%s\\n' "$@" | grep -v '^-' >>'{self.installed}' ;; esac"""
        )
        self.tool(
            "make",
            f"cd '{self.root}/build' && mkdir -p tester bpf plugin && install -m 755 /dev/null tester/podperf-tester",
        )

    def tool(self, name: str, script: str, *, note: bool = True) -> None:
        path = self.tools / name
        path.write_text(f"#!/bin/bash\n{NOTE if note else ''}{script}\n")
        path.chmod(0o755)

    def is_root(self, root: bool) -> None:
        self.tool("id", f"echo {0 if root else 1000}", note=False)

    def runs(self, distribution: str, version: str) -> None:
        release = self.tools / "os-release"
        release.write_text(f'ID={distribution}\nVERSION_ID="{version}"\n')
        self.environment["PODPERF_OS_RELEASE"] = str(release)

    def python(self, version: str) -> None:
        """A stand-in for Python. Its `-m venv` makes an environment with a stand-in for Python, whose `pip` does
        nothing."""
        self.tool(
            "python3",
            rf"""case "$*" in
*-c\ *) echo {version} ;;
*venv*) rm -rf "${{!#}}"; mkdir -p "${{!#}}"/{{bin,lib/python{version}/site-packages}}; cp "$0" "${{!#}}/bin/python" ;;
*" run"*) echo $$ ;;
esac""",
        )
        self.environment["PODPERF_PYTHON"] = str(self.tools / "python3")

    def podperf(self, *arguments: str, umask: int = -1) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.root / "podperf"), *arguments],
            umask=umask,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def calls(self) -> list[str]:
        """The calls of stand-ins since the previous question."""
        calls = self.calls_file.read_text().splitlines()
        self.calls_file.write_text("")
        calls = [re.sub(r"-I (-X pycache_prefix=.*/build/pycache|-B)", "-I", call) for call in calls]
        return [call for call in calls if "-c import sys" not in call]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def ready(machine: Machine) -> Machine:
    done = machine.podperf("set-up")
    assert done.returncode == 0, done.stderr
    machine.calls()
    return machine


def error(done: subprocess.CompletedProcess[str]) -> str:
    """The only line of the output, which says what is wrong."""
    assert done.returncode == 252
    line = done.stderr.splitlines()[-1]
    assert line.startswith("podperf: ")
    return line


def test_a_bare_machine_gets_packages_environment_and_tester(machine: Machine) -> None:
    done = machine.podperf("set-up")
    assert done.returncode == 0, done.stderr
    calls = machine.calls()
    assert [call.split()[0] for call in calls] == ["dpkg", "apt-get", "python3", "python", "python", "make", "make"]
    assert "clang" in calls[1]
    assert "--no-install-recommends" in calls[1]
    assert calls[2] == f"python3 -I -m venv --clear {machine.root}/.venv"
    assert calls[3].startswith("python -I -m pip install ")
    assert "--require-hashes" in calls[3]
    assert calls[4].endswith(
        f"--no-build-isolation --use-pep517 --require-hashes --requirement {machine.root}/requirements.lock"
    )
    assert re.search(r"installing \d+ Debian packages\.\.\.", done.stdout)


def test_the_environment_of_another_checkout_behind_a_link_stays_as_it_is(machine: Machine, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "lib").mkdir(parents=True)
    (machine.root / ".venv").symlink_to(other)
    assert machine.podperf("set-up").returncode == 0
    assert not (machine.root / ".venv").is_symlink() and list(other.iterdir()) == [other / "lib"]


LOCK = """robotframework==7.5 \\
    --hash=sha256:1
    # via -r requirements.txt
setuptools==84.2.1 \\
    --hash=sha256:2 \\
    --hash=sha256:3
    # via pbr
typing-extensions==4.16.0
"""


def test_packages_are_built_by_tools_that_have_hashes(machine: Machine) -> None:
    (machine.root / "requirements.lock").write_text(LOCK)
    python = (machine.tools / "python3").read_text()
    first = machine.tools / "first"
    (machine.tools / "python3").write_text(f"""{python}
case "$*" in *pip*/dev/fd/*) cat "${{!#}}" >'{first}' ;; esac""")
    assert machine.podperf("set-up").returncode == 0
    tools = ["setuptools==84.2.1", "--hash=sha256:2", "--hash=sha256:3"]
    assert first.read_text().replace("\\", "").split() == tools


def test_what_the_set_up_starts_does_not_get_the_password(machine: Machine) -> None:
    machine.environment |= {"PODPERF_SSH_PASSWORD": "swordfish", "PODPERF_RESULTS_TOKEN": "swordfish-2"}
    machine.tool("make", f"env; cd '{machine.root}/build' && mkdir -p tester bpf")
    machine.podperf("set-up")
    log = (machine.root / "build/set-up.log").read_text()
    assert "CALLS=" in log and "swordfish" not in log


def test_a_second_set_up_does_nothing(ready: Machine) -> None:
    assert ready.podperf("set-up").stdout == "podperf: everything is there\n"
    assert ready.calls() == []


def test_only_what_is_missing_is_installed(ready: Machine) -> None:
    ready.installed.write_text(ready.installed.read_text().replace("ethtool\n", ""))
    ready.podperf("set-up")
    assert next(call for call in ready.calls() if "apt-get" in call).endswith("install ethtool")


def test_package_lists_are_fetched_when_those_at_hand_do_not_serve(machine: Machine) -> None:
    lists = machine.tools / "lists"
    machine.tool(
        "apt-get",
        f"""case "$*" in
*update*) touch '{lists}' ;;
*) [ -e '{lists}' ] || {{ echo 'E: Unable to locate package clang'; exit 100; }} ;;
esac""",
    )
    assert machine.podperf("set-up").returncode == 0
    assert [call.split()[-1] for call in machine.calls() if call == "apt-get update"] == ["update"]


def changed_lock(machine: Machine) -> None:
    (machine.root / "requirements.lock").write_text("robotframework==7.6\n")


def another_python(machine: Machine) -> None:
    machine.python("3.13")


def moved(machine: Machine) -> None:
    machine.root = machine.root.rename(machine.root.parent / "elsewhere")


def interrupted(machine: Machine) -> None:
    """The state after Ctrl-C during pip."""
    (stamp,) = (machine.root / ".venv").rglob("podperf.pth")
    stamp.unlink()


def packages_gone(machine: Machine) -> None:
    shutil.rmtree(machine.root / ".venv" / "lib")


def interpreter_gone(machine: Machine) -> None:
    python = machine.root / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/usr/bin/python3.0")


@pytest.mark.parametrize("change", [changed_lock, another_python, moved, interrupted, packages_gone, interpreter_gone])
def test_an_environment_that_does_not_fit_is_made_anew(ready: Machine, change: Callable[[Machine], None]) -> None:
    change(ready)
    assert ready.podperf("set-up").returncode == 0
    assert [call.split()[0] for call in ready.calls()][:2] == ["python3", "python"]
    assert ready.podperf("set-up").returncode == 0
    assert ready.calls() == []


def test_a_changed_tester_is_built_again(ready: Machine) -> None:
    (ready.root / "tester" / "front.c").write_text("int other;\n")
    ready.podperf("set-up")
    assert [call.split()[0] for call in ready.calls()] == ["make"]


@pytest.mark.parametrize("command", ["run", "compare", "test", "clean"])
def test_not_root(machine: Machine, command: str) -> None:
    machine.is_root(False)
    done = machine.podperf(command)
    assert re.fullmatch(rf"podperf: {command} needs root: it .*; try: sudo ./podperf {command}\n", done.stderr)
    assert machine.calls() == []


def test_who_may_start_pods_may_measure_a_cluster(ready: Machine) -> None:
    """The pods send and count, and nothing of this machine does."""
    ready.is_root(False)
    for name, kind in {"cluster": "kubernetes", "lab": "software"}.items():
        (ready.root / f"{name}.yaml").write_text(f"version: 1\ntester:\n  type: {kind}\n")
    for command in ("run", "compare"):
        assert "needs root" not in ready.podperf(command, str(ready.root / "cluster.yaml")).stderr
        assert "needs root" in ready.podperf(command, str(ready.root / "lab.yaml")).stderr


def test_missing_packages_without_root(machine: Machine) -> None:
    machine.is_root(False)
    assert re.search(
        r"packages are missing \(.*\bclang\b.*\); once: sudo ./podperf set-up", error(machine.podperf("set-up"))
    )


@pytest.mark.parametrize(
    ("distribution", "said", "expected"),
    [
        ("debian 12", OFFLINE_APT, "apt cannot reach its package servers"),
        ("debian 12", "E: You don't have enough free space in /var/cache/apt/archives/.", "the disk is full"),
        ("debian 12", "E: Unable to locate package clang", "Unable to locate package clang; check that /etc/apt"),
        ("ubuntu 24.04", "E: Unable to locate package clang", "Unable to locate package clang; enable universe"),
        ("debian 12", "E: Could not get lock /var/lib/dpkg/lock-frontend.", "another program is installing packages"),
    ],
)
def test_apt_fails(machine: Machine, distribution: str, said: str, expected: str) -> None:
    machine.runs(*distribution.split())
    machine.tool("apt-get", f"cat <<'X'\n{said}\nX\nexit 100")
    done = machine.podperf("set-up")
    assert re.match(rf"podperf: installing \d+ Debian packages failed: .*{expected}", error(done))
    assert len(done.stderr.splitlines()) == 1


def test_an_unknown_failure_shows_its_last_lines(machine: Machine) -> None:
    machine.tool("make", "echo 'front.c:1: error: no good'; exit 2")
    done = machine.podperf("set-up")
    assert "building the software tester failed" in error(done)
    assert "front.c:1: error: no good" in done.stderr
    assert "front.c:1: error: no good" in (machine.root / "build" / "set-up.log").read_text()


def test_pip_offline_and_later_online(machine: Machine) -> None:
    working = (machine.tools / "python3").read_text()
    machine.tool("python3", working.replace('*" run"*)', f"*pip*) cat <<'X'\n{OFFLINE_PIP}\nX\nexit 1"))
    assert "pip cannot reach its package index" in error(machine.podperf("set-up"))
    machine.python("3.11")
    assert machine.podperf("set-up").returncode == 0


def test_an_unsupported_distribution(machine: Machine) -> None:
    machine.runs("fedora", "43")
    line = error(machine.podperf("set-up"))
    assert "fedora 43" in line
    assert "Debian 12, Debian 13 and Ubuntu 24.04" in line
    assert machine.calls() == []
    assert machine.podperf("--no-install", "set-up").returncode == 0
    assert "apt-get" not in " ".join(machine.calls())


def test_an_unsupported_distribution_with_all_there_goes_on(ready: Machine) -> None:
    ready.runs("debian", "14")
    assert ready.podperf("run").returncode == 0


def test_an_old_python(machine: Machine) -> None:
    machine.python("3.9")
    assert "is Python 3.9, and podperf needs 3.11 or newer" in error(machine.podperf("set-up"))


@pytest.mark.parametrize("named", ["by the file", "by nothing"])
def test_a_second_set_up_at_the_same_time_waits_and_says_for_whom(machine: Machine, named: str) -> None:
    (lock := machine.root / "build" / "set-up.lock").parent.mkdir()
    with locked_by_another(lock, "\x1b[2J") as first:
        lock.write_text(f"{first.pid}\n" if named == "by the file" else "")
        command = [str(machine.root / "podperf"), "set-up"]
        with subprocess.Popen(command, env=machine.environment, stdout=subprocess.PIPE, text=True) as second:
            assert second.stdout is not None and first.stdin is not None
            said = second.stdout.readline().rstrip("\n")
            first.stdin.close()
            assert said.startswith(f"podperf: another set-up is at work here (process {first.pid}: {sys.executable} ")
            assert said.endswith("); waiting for it...") and "[2J" in said and said.isprintable()
            assert "installing" in second.stdout.read()
        assert second.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is another user than the attacker")
@pytest.mark.parametrize("mode", [None, 0o644])
def test_another_user_cannot_hold_the_lock_of_the_set_up(reachable: Path, mode: int | None) -> None:
    """The attack with its real rights. All users can open a lock file of an earlier version, until the next set-up."""
    machine = Machine(reachable)
    lock = machine.root / "build" / "set-up.lock"
    if mode is not None:
        lock.parent.mkdir()
        lock.touch()
        lock.chmod(mode)
    done = machine.podperf("set-up")
    assert done.returncode == 0, done.stdout + done.stderr
    holds = subprocess.run([*AS_OTHER_USER, "flock", "--nonblock", lock, "true"], check=False, capture_output=True)
    assert b"Permission denied" in holds.stderr
    assert machine.podperf("set-up").stdout == "podperf: everything is there\n"


def test_a_closed_standard_output_is_one_line(ready: Machine) -> None:
    for closed, line in (
        (">&-", "podperf: standard output is closed: name a file for it, or /dev/null\n"),
        ("2>&-", ""),
    ):
        script = f'"$0" --help {closed}'
        command = ["bash", "-c", script, str(ready.root / "podperf")]
        done = subprocess.run(command, env=ready.environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (252 if line else 0, line)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nonsense"], 252),
        ([], 252),
        (["--help"], 0),
        (["run", "--include", "full", "--help"], 0),
        (["check", "-?"], 0),
        (["set-up", "-h"], 0),
    ],
)
def test_usage_needs_no_set_up_and_no_root(machine: Machine, arguments: list[str], code: int) -> None:
    machine.is_root(False)
    done = machine.podperf(*arguments)
    assert done.returncode == code
    assert "run" in done.stdout + done.stderr
    assert machine.calls() == []


@pytest.mark.parametrize("arguments", [["run", "--version"], ["--version"]])
def test_the_version(machine: Machine, arguments: list[str]) -> None:
    (machine.root / "libraries/podperf/__init__.py").write_text('__version__ = "1.2"\n')
    assert machine.podperf(*arguments).stdout == "podperf 1.2\n"
    assert machine.calls() == []


def test_no_python(machine: Machine) -> None:
    del machine.environment["PODPERF_PYTHON"]
    script = machine.root / "podperf"
    script.write_text(script.read_text().replace("/usr/bin/python3", "/nowhere/python3"))
    line = error(machine.podperf("set-up"))
    assert "there is no /nowhere/python3; " in line
    assert "python3-minimal python3-venv" in line and "set-up" not in line


def test_a_python_that_is_named_and_is_not_there(machine: Machine) -> None:
    machine.environment["PODPERF_PYTHON"] = "/nowhere/python3"
    assert error(machine.podperf("set-up")) == "podperf: there is no /nowhere/python3, which PODPERF_PYTHON names"


def test_run_becomes_robot_so_that_signals_reach_it(ready: Machine) -> None:
    command = [str(ready.root / "podperf"), "run"]
    with subprocess.Popen(command, env=ready.environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == f"{run.pid}\n"
        run.stdout.read()


@pytest.mark.parametrize(
    ("given", "root"),
    [
        (["--no-install", "run", "--include", "full", "a suite"], True),
        (["check", "topologies/local.yaml"], False),
        (["run", "--help"], False),
    ],
)
def test_a_command_gets_its_arguments_as_they_are(ready: Machine, given: list[str], root: bool) -> None:
    ready.is_root(root)
    assert ready.podperf(*given).returncode == 0
    assert ready.calls() == [" ".join(["python -I -m podperf --script", f"{ready.root}/podperf", *given])]


def test_the_environment_of_the_caller_does_not_steer_python(ready: Machine) -> None:
    ready.environment |= {"PYTHONPATH": "/elsewhere", "PYTHONSTARTUP": "/elsewhere/a.py"}
    python = ready.root / ".venv" / "bin" / "python"
    python.write_text("#!/bin/bash\ncompgen -e PYTHON\n")
    assert ready.podperf("check").stdout == ""


def run_real_robot(machine: Machine) -> None:
    """From now on `podperf run` runs a suite with the real Robot."""
    libraries = machine.root / "libraries"
    shutil.copytree(SOURCE / "libraries", libraries, dirs_exist_ok=True, ignore=shutil.ignore_patterns("bpf"))
    program = f"import runpy, sys; sys.path.insert(0, '{libraries}'); del sys.argv[0]; {RUN_MODULE}"
    (machine.root / ".venv" / "bin" / "python").write_text(
        f"""#!/bin/bash
while [ "$1" != -m ]; do shift; done
exec "{sys.executable}" -c "{program}" "${{@:2}}"
"""
    )
    shutil.copytree(SOURCE / "topologies", machine.root / "topologies")
    (machine.root / "tests" / "suite.robot").write_text(SUITE)


RUN_MODULE = "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
SUITE = """*** Settings ***
Library    OperatingSystem

*** Test Cases ***
Quick
    [Tags]    quick
    Create File    ${OUTPUT DIR}/records/quick.json    {"trials": [{}]}
    Log    ${TOPOLOGY}
Another
    Log    no record
Skipped
    Create File    ${OUTPUT DIR}/records/skipped.json    {"trials": []}
    Create File    ${OUTPUT DIR}/records/interrupted.trials.jsonl    {"trials": []}\\n
    Skip    for a reason
Long
    Fail    not asked for
"""


@pytest.fixture
def with_robot(ready: Machine) -> Machine:
    run_real_robot(ready)
    return ready


@pytest.mark.parametrize(("umask", "mode"), [(0, 0o755), (0o002, 0o755), (0o022, 0o755), (0o077, 0o700)])
def test_nobody_else_can_write_what_root_makes(with_robot: Machine, umask: int, mode: int) -> None:
    shutil.rmtree(with_robot.root / "build")
    assert with_robot.podperf("run", umask=umask).returncode == 0
    made = [with_robot.root / "build", *with_robot.root.glob("results"), *with_robot.root.glob("results/2*")]
    assert [stat.S_IMODE(each.stat().st_mode) for each in made] == [mode] * 3


def test_results_have_a_folder_of_their_own_and_latest_points_at_it(with_robot: Machine) -> None:
    for _ in range(2):
        done = with_robot.podperf("run")
        assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    results = with_robot.root / "results"
    latest = results / "latest"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}", latest.readlink().name)
    assert {file.name for file in latest.iterdir()} >= {"output.xml", "log.html", "report.html", "xunit.xml"}
    assert latest.resolve() == max(folder for folder in results.iterdir() if not folder.is_symlink())


def test_latest_stays_where_nothing_is_measured(with_robot: Machine) -> None:
    assert with_robot.podperf("run").returncode == 0
    latest = (with_robot.root / "results" / "latest").readlink()
    for test, outcome, code in (("Another", "1 passed", 0), ("Skipped", "1 skipped", 254)):
        done = with_robot.podperf("run", "--test", test)
        assert done.returncode == code
        assert f"podperf: no test was measured: {outcome}; see " in done.stderr
    assert with_robot.podperf("run", "--dryrun").returncode == 0
    assert (with_robot.root / "results" / "latest").readlink() == latest
    assert len(list((with_robot.root / "results").iterdir())) == 4, "a dry run has no results"


@pytest.mark.parametrize("given", [["--dryrun"], ["--dryrun", "--include", "no-such-tag"]])
def test_a_reader_who_has_seen_enough_does_not_change_the_exit_code(with_robot: Machine, given: list[str]) -> None:
    """As `podperf run --dryrun 2>&1 | head -1` does."""
    code = with_robot.podperf("run", *given).returncode
    command = [with_robot.root / "podperf", "run", *given]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(command, env=with_robot.environment, stdout=writing, stderr=writing, check=False)
    finally:
        os.close(writing)
    assert done.returncode == code


FULL_SUITE = """*** Test Cases ***
Full
    [Tags]    quick
    Evaluate    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))    modules=resource
    FOR    ${_}    IN RANGE    100
        Log    ${{ 'x' * 1000 }}
    END
"""


def test_output_that_does_not_fit_on_the_disk_costs_a_line(with_robot: Machine) -> None:
    """The file system here is one that takes no file of more than 5000 bytes."""
    (with_robot.root / "tests" / "suite.robot").write_text(FULL_SUITE)
    done = with_robot.podperf("run")
    assert done.returncode == 255
    assert "Traceback" not in done.stderr
    assert re.search(
        r"^podperf: Robot Framework could not write its output to .* \(File too large\)", done.stderr, re.M
    )


SLOW_SUITE = """*** Settings ***
Library    OperatingSystem

*** Test Cases ***
Slow
    [Tags]    quick
    Create File    ${OUTPUT DIR}/records/slow.trials.jsonl    {"trials": []}\\n{}\\n
    Sleep    60
Not Begun
    [Tags]    quick
    No Operation
"""


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_has_an_exit_code_of_its_own_and_shows_how_to_resume_it(
    with_robot: Machine, way: signal.Signals
) -> None:
    (with_robot.root / "tests" / "suite.robot").write_text(SLOW_SUITE)
    command = [str(with_robot.root / "podperf"), "run", "--exclude", "full"]
    with subprocess.Popen(
        command, env=with_robot.environment, stderr=subprocess.PIPE, text=True, process_group=0
    ) as run:
        while not list(with_robot.root.glob("results/*/records/slow.trials.jsonl")):
            assert run.poll() is None
            time.sleep(0.05)
        os.killpg(run.pid, way)  # as the terminal does
        _, said = run.communicate(timeout=120)
    assert run.returncode == 253
    (results,) = (path.parents[1] for path in with_robot.root.glob("results/2*/records/slow.trials.jsonl"))
    line = f"'{with_robot.root}/podperf' run --resume '{results}' --exclude full"
    assert said.splitlines()[-1] == f"podperf: to measure the rest: {line}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_with_sudo_what_is_made_belongs_to_the_owner_of_the_checkout_and_results_to_the_caller(
    machine: Machine,
) -> None:
    os.chown(machine.root, 1234, 1234)
    machine.podperf("set-up")
    made = [*(machine.root / ".venv").rglob("*"), *(machine.root / "build").rglob("*")]
    assert made
    assert {path.stat().st_uid for path in made} == {1234}

    run_real_robot(machine)
    machine.environment |= {"SUDO_UID": "2345", "SUDO_GID": "2345"}
    assert machine.podperf("run").returncode == 0
    folder = machine.root / "results"
    run = (folder / "latest").resolve()
    assert folder.stat().st_uid == 1234
    assert {path.lstat().st_uid for path in (folder / "latest", run, *run.rglob("*"))} == {2345}

    machine.environment |= {"SUDO_UID": "3456", "SUDO_GID": "3456"}
    assert machine.podperf("run").returncode == 0
    assert folder.stat().st_uid == 1234
    assert run.stat().st_uid == (run / "log.html").stat().st_uid == 2345
    assert (folder / "latest").resolve().stat().st_uid == 3456


@pytest.fixture
def virtual(with_robot: Machine) -> str:
    """A topology with a virtual worker."""
    topology = with_robot.root / "virtual.yaml"
    topology.write_text("version: 1\nname: a\nworkers: [{connection: virtual}]\n")
    with_robot.tool("qemu-system-x86_64", "echo 'name \"igb\", bus PCI'", note=False)
    with_robot.runs("debian", "13")
    return str(topology)


@pytest.mark.parametrize(
    "option", [["--variable", "TOPOLOGY:%s"], ["-v", "TOPOLOGY:%s"], ["--variable=TOPOLOGY:%s"], ["%s"]]
)
def test_a_run_with_a_virtual_worker_installs_what_that_needs(
    with_robot: Machine, virtual: str, option: list[str]
) -> None:
    done = with_robot.podperf("run", *(word.replace("%s", virtual) for word in option))
    assert done.returncode == 0, done.stderr
    (call,) = (call for call in with_robot.calls() if call.startswith("apt-get"))
    assert call.endswith("install debian-archive-keyring e2fsprogs mmdebstrap qemu-system-x86")
    assert (with_robot.root / "build/plugin/stamp").exists(), "the counted machine's plug-in is built, too"


def test_packages_that_cannot_be_had_end_a_run_with_a_virtual_worker(with_robot: Machine, virtual: str) -> None:
    with_robot.tool("apt-get", "echo 'E: Unable to locate package mmdebstrap'; exit 100")
    assert "Unable to locate package mmdebstrap" in error(with_robot.podperf("run", virtual))


def test_other_runs_install_nothing_for_a_virtual_worker(with_robot: Machine, virtual: str) -> None:
    topology = with_robot.root / "local.yaml"
    topology.write_text("version: 1\nname: not virtual\n")
    assert with_robot.podperf("run", "--variable", f"TOPOLOGY:{topology}").returncode == 0
    assert with_robot.podperf("--no-install", "run", virtual).returncode == 0
    assert not any(call.startswith("apt-get") for call in with_robot.calls())


def test_only_debian_12_takes_its_qemu_from_backports(ready: Machine) -> None:
    ready.tool("qemu-system-x86_64", "echo 'name \"e1000\", bus PCI'", note=False)
    ready.tool(
        "apt-get",
        f"""case "$*" in
*indextargets*) echo 'http://mirror/debian bookworm-backports' ;;
*install*) printf '%s\\n' "$@" | grep -v '^-' >>'{ready.installed}' ;;
esac""",
    )
    assert ready.podperf("set-up", "virtual-worker").returncode == 0
    installed = [call for call in ready.calls() if "install" in call]
    assert installed[0].endswith("install --target-release bookworm-backports qemu-system-x86")
    assert "mmdebstrap" in installed[1] and "backports" not in installed[1]


def test_the_documentation_names_every_package_that_is_installed() -> None:
    script, page = (SOURCE / "podperf").read_text(), (SOURCE / "docs" / "installation.md").read_text()
    lists = re.findall(r"^\w*packages\+?=\(([^)$]*)\)", script, re.MULTILINE)
    packages = [word for text in lists for line in text.splitlines() for word in line.split("#")[0].split()]
    assert {"iproute2", "debootstrap", "qemu-system-x86"} <= set(packages)
    assert [package for package in packages if not re.search(rf"\b{re.escape(package)}\b", page)] == []
