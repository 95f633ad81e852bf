"""Tests of the Host seam, on four kinds of hosts: this machine, a namespace, another over SSH, a namespace there."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from killed import gone
from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Host, TooMuchOutput
from podperf.hosts.linux import read_attribute, write_attribute
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import add_namespace
from podperf.hosts.ssh import SshHost
from ssh_machine import ssh_machine

KINDS = ("this machine", "a namespace", "behind SSH", "a namespace behind SSH")


@pytest.fixture(scope="module", params=KINDS)
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with ExitStack() as undo:
        machine: Host = LocalHost()
        if "SSH" in request.param:
            there = undo.enter_context(ssh_machine(tmp_path_factory.mktemp("ssh")))
            ssh = SshHost(there.login)
            undo.callback(ssh.close)
            machine = ssh
        yield add_namespace(machine, "hosts-test", undo) if "namespace" in request.param else machine


def test_a_command_gives_its_output_errors_and_exit_code(host: Host) -> None:
    done = host.ask("sh", "-c", "echo out; echo err >&2; exit 3", check=False)
    assert (done.exit_code, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert done.command == ("sh", "-c", "echo out; echo err >&2; exit 3")


def test_a_command_that_fails_is_an_error_that_says_so(host: Host) -> None:
    with pytest.raises(CommandFailed, match="`sh -c echo no such thing >&2; exit 4` ended with exit code 4: no such"):
        host.do("sh", "-c", "echo no such thing >&2; exit 4")


def test_a_command_that_is_not_there_is_an_error_that_names_it(host: Host) -> None:
    with pytest.raises(PodperfError, match="no-such-command"):
        host.do("no-such-command", "-x")


@pytest.mark.parametrize("word", ["two words", "it's", '"', "a\nb", "$HOME", "*", "-n", "ü", "", "\\", "`id`", ";"])
def test_words_arrive_as_they_are(host: Host, word: str) -> None:
    assert host.ask("printf", "%s|", word, "end").stdout == f"{word}|end|"


def test_standard_input_arrives_whole_and_ends(host: Host) -> None:
    text = "0123456789abcde\n" * 200_000  # more than any buffer on the way
    assert host.ask("cat", stdin=text).stdout == text
    assert host.ask("cat").stdout == ""


def test_a_command_that_overruns_is_killed(host: Host) -> None:
    began = time.monotonic()
    with pytest.raises(CommandFailed, match="did not end in time: 2 s"):
        host.do("sh", "-c", "echo $$ >/tmp/podperf-overrun; exec sleep 1000", timeout=2.0)
    assert time.monotonic() - began < 15
    assert gone(int(host.ask("cat", "/tmp/podperf-overrun").stdout))
    host.do("rm", "/tmp/podperf-overrun")


def test_a_command_that_a_signal_breaks_off_is_killed(host: Host) -> None:
    """On Ctrl-C, Robot Framework raises its own exception. A command that still ran would disturb the teardown."""
    assert gone(broken_off(host))


def broken_off(host: Host) -> int:
    """The process number of a command that a signal has broken off."""

    class StoppedError(Exception):
        pass

    def stop(*_: object) -> None:
        raise StoppedError

    number = Path("/tmp/podperf-broken-off")  # of every host here: they share this machine's files
    number.unlink(missing_ok=True)
    before = signal.signal(signal.SIGALRM, stop)
    breaking_off = threading.Thread(target=_alarm_once_there, args=(number,))
    breaking_off.start()
    try:
        with pytest.raises(StoppedError):
            host.do("sh", "-c", f"echo $$ >{number}.new; mv {number}.new {number}; exec sleep 1000")
    finally:
        breaking_off.join()
        signal.signal(signal.SIGALRM, before)
    process = int(number.read_text())
    number.unlink()
    return process


def _alarm_once_there(file: Path) -> None:
    """Send the signal to the thread that waits for the command. Its waiting then ends."""
    deadline = time.monotonic() + 20
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGALRM)


def test_bytes_that_are_no_text_are_read_as_far_as_they_can_be(host: Host) -> None:
    """A serial console writes such bytes. An interface alias may hold them."""
    assert host.ask("printf", "a\\377b").stdout == "a\N{REPLACEMENT CHARACTER}b"
    process = host.spawn("sh", "-c", "printf 'a\\377b\\nnext\\n'; read -r _")
    assert [process.receive(30), process.receive(30)] == ["a\N{REPLACEMENT CHARACTER}b", "next"]
    process.stop()


@contextmanager
def within_memory(mib: int) -> Iterator[None]:
    """resets the highest value to the present one (proc(5))"""
    Path("/proc/self/clear_refs").write_text("5")  # the highest so far is the present (proc(5))
    before = highest_memory()
    yield
    assert highest_memory() - before < mib


def highest_memory() -> int:
    """The largest memory of this process so far, in MiB."""
    return next(int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith("VmHWM")) // 1024


@pytest.mark.parametrize("command", [("yes",), ("sh", "-c", "yes >&2"), ("cat", "/dev/zero")], ids=str)
def test_a_command_that_says_more_than_there_is_a_place_for_is_ended(host: Host, command: tuple[str, ...]) -> None:
    with within_memory(150), pytest.raises(TooMuchOutput) as caught:
        host.do("sh", "-c", 'echo $$ >/tmp/podperf-endless; exec "$@"', "sh", *command)
    assert str(caught.value).startswith(f"on {host.name}, `sh -c ")
    assert "said more than 16 MiB" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert gone(int(host.ask("cat", "/tmp/podperf-endless").stdout))
    host.do("rm", "/tmp/podperf-endless")


@pytest.mark.parametrize("command", ["yes", "yes ''", "cat /dev/zero"])
def test_a_process_that_nobody_listens_to_goes_on_and_is_drained(host: Host, command: str) -> None:
    with within_memory(150):
        process = host.spawn("sh", "-c", f"{command} | head -c 100000000; echo done >&2; read -r _")
        deadline = time.monotonic() + 60
        while "done" not in process.errors():
            assert process.alive() and time.monotonic() < deadline
            time.sleep(0.05)
        with pytest.raises(TooMuchOutput, match="said more than 16 MiB"):
            while True:
                process.receive(30)
    process.stop()


def test_a_file_without_an_end_is_not_read_to_it(host: Host) -> None:
    with within_memory(150), pytest.raises(TooMuchOutput, match="`cat /dev/zero` said more than 16 MiB"):
        host.get("/dev/zero")


def test_what_a_run_starts_writes_no_file_that_others_can_write(host: Host) -> None:
    before = os.umask(0)
    try:
        host.put(b"x", "/tmp/podperf-mine/file")
        host.do("sh", "-c", ">/tmp/podperf-mine/other")
        said = host.ask("stat", "-c", "%a", "/tmp/podperf-mine", "/tmp/podperf-mine/file", "/tmp/podperf-mine/other")
        assert said.stdout.split() == ["755", "644", "644"]
    finally:
        os.umask(before)
        host.do("rm", "-r", "/tmp/podperf-mine")


def test_a_process_is_spoken_to_by_lines(host: Host) -> None:
    process = host.spawn("sh", "-c", 'echo ready; while read -r x; do echo "e $x" >&2; echo "got $x"; done; echo bye')
    assert process.receive(30) == "ready"
    for word in ("one", "two  words"):
        process.send(word)
        assert process.receive(30) == f"got {word}"
    assert process.alive()
    assert "sh" in Path(f"/proc/{process.pid}/cmdline").read_text()
    process.stop()
    assert not process.alive()
    assert gone(process.pid)
    assert process.errors() == "e one\ne two  words\n"
    process.stop()


def test_line_ends_of_a_terminal_are_line_ends(host: Host) -> None:
    """testpmd ends its lines with CR LF."""
    assert host.ask("printf", "one\\r\\ntwo\\r\\n").stdout == "one\ntwo\n"
    process = host.spawn("sh", "-c", "printf 'three\\r\\nfour\\r\\n'; read -r _")
    assert [process.receive(30), process.receive(30)] == ["three", "four"]
    process.stop()


def test_a_process_that_does_not_mind_a_term_is_killed(host: Host) -> None:
    process = host.spawn("sh", "-c", "trap '' TERM; echo up; while :; do read -r x </dev/zero; done")
    assert process.receive(30) == "up"
    process.stop(timeout=0.3)
    assert gone(process.pid)


def test_a_process_that_has_ended_says_why(host: Host) -> None:
    process = host.spawn("sh", "-c", "echo last; echo broken >&2; exit 7")
    assert process.receive(30) == "last"
    with pytest.raises(CommandFailed, match="ended with exit code 7: broken"):
        process.receive(30)
    assert gone(process.pid)
    assert not process.alive()
    with pytest.raises(PodperfError):  # the pipe may still accept a first line
        for _ in range(100):
            process.send("x" * 1000)
            time.sleep(0.01)


def test_no_answer_is_an_error_in_time(host: Host) -> None:
    process = host.spawn("sleep", "1000")
    began = time.monotonic()
    with pytest.raises(PodperfError, match="gave no answer in 0 s"):
        process.receive(0.2)
    assert time.monotonic() - began < 10
    process.stop()


def test_a_process_is_held_to_its_cpus(host: Host) -> None:
    cpu = max(os.sched_getaffinity(0))
    process = host.spawn("sh", "-c", "echo up; read -r x", cpus=[cpu])
    assert process.receive(30) == "up"
    assert os.sched_getaffinity(process.pid) == {cpu}
    process.stop()


def test_more_processes_at_once_than_one_connection_permits(host: Host) -> None:
    processes = [host.spawn("sh", "-c", 'read -r x; echo "$x"') for _ in range(20)]
    for number, process in enumerate(processes):
        process.send(str(number))
    assert [process.receive(30) for process in processes] == [str(number) for number in range(20)]
    for process in processes:
        process.stop()


def test_files_are_written_with_their_folders_and_read_back(host: Host) -> None:
    content = bytes(range(256)) * 5000
    host.put(content, "/tmp/podperf-hosts/a/b")
    assert host.get("/tmp/podperf-hosts/a/b") == content
    host.put(b"short", "/tmp/podperf-hosts/a/b")
    assert host.get("/tmp/podperf-hosts/a/b") == b"short"
    host.do("rm", "-r", "/tmp/podperf-hosts")
    with pytest.raises(FileNotFoundError):
        host.get("/tmp/podperf-hosts/a/b")


def test_an_attribute_of_an_interface_is_written_and_read_back(host: Host) -> None:
    before = read_attribute(host, "lo", "gro_flush_timeout")
    write_attribute(host, "lo", "gro_flush_timeout", before + 1000)
    try:
        assert read_attribute(host, "lo", "gro_flush_timeout") == before + 1000
    finally:
        write_attribute(host, "lo", "gro_flush_timeout", before)
    assert read_attribute(host, "lo", "no_such_attribute") == 0


def test_files_of_the_kernel_are_read(host: Host) -> None:
    assert host.get("/proc/sys/kernel/ostype") == b"Linux\n"
    assert b"Cpus_allowed_list" in host.get("/proc/self/status")
    assert host.get("/sys/devices/system/cpu/online").strip()
