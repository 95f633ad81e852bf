"""Another user of the machine can neither steer a run, which has root's rights, nor prevent its start."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from podperf.hosts.base import Host
from podperf.hosts.linux import add_veth
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import add_namespace
from podperf.hosts.run_directory import free_shared_memory
from podperf.hosts.ssh import SshHost
from podperf.kernel.threads import dedicate_receive_processing, threads_named
from robot_run import podperf
from ssh_machine import SshMachine

pytestmark = pytest.mark.usefixtures("machine_as_before")
USER = 12345
AS_USER = ("setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--")


@pytest.fixture(params=["this machine", "behind SSH"])
def host(request: pytest.FixtureRequest, there: SshMachine) -> Iterator[Host]:
    """A machine that the other user is on, too."""
    if request.param == "this machine":
        yield LocalHost()
        return
    machine = SshHost(there.login)
    yield machine
    machine.close()


def test_a_process_with_the_name_of_a_receive_thread_is_left_as_it_is(host: Host) -> None:
    named = "printf napi/w-left-x >/proc/self/comm; echo named; read -r _"
    impostor = host.spawn(*AS_USER, "sh", "-c", named)
    with ExitStack() as undo:
        undo.callback(impostor.stop)
        assert impostor.receive(30) == "named"
        assert host.ask("cat", f"/proc/{impostor.pid}/comm").stdout == "napi/w-left-x\n"
        namespace = add_namespace(host, "other-users", undo)
        add_veth(namespace, near="w-left", far="w-right", mtu=1500)
        cpu = max(os.sched_getaffinity(0))
        dedicate_receive_processing(namespace, "w-left", cpu)
        (thread,) = threads_named(host, "napi/w-left-")
        assert thread != impostor.pid
        assert os.sched_getscheduler(thread) == os.SCHED_RR
        assert os.sched_getscheduler(impostor.pid) == os.SCHED_OTHER
        assert os.sched_getaffinity(impostor.pid) == os.sched_getaffinity(0)


PLANTED = (
    "cd /dev/shm && mkdir podperf-folder && echo x >podperf-folder/x && echo x >podperf-file && ln -s /etc podperf-link"
)


@pytest.fixture
def planted() -> Iterator[list[Path]]:
    """Files and folders of another user, in the folder where programs of a run have their shared memory."""
    subprocess.run([*AS_USER, "sh", "-c", PLANTED], check=True)
    paths = [Path("/dev/shm/podperf-folder/x"), Path("/dev/shm/podperf-file"), Path("/dev/shm/podperf-link")]
    yield paths
    subprocess.run([*AS_USER, "sh", "-c", "rm -r /dev/shm/podperf-*"], check=True)


def test_shared_memory_of_others_stays_and_is_in_nobodys_way(planted: list[Path]) -> None:
    ours = Path("/dev/shm/podperf-0123abcd-global_vm")
    ours.write_bytes(b"x")
    free_shared_memory(LocalHost())
    assert not ours.exists()
    assert all(path.exists() for path in planted)
    assert podperf("clean").stdout == "nothing was left behind\n"
    assert all(path.exists() for path in planted)
