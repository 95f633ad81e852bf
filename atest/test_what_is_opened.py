"""While a chain is set up, another user of the machine can open none of its sockets. Nothing listens on a network."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from chains import local_testbed, need, send
from machine import left_as_before
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import namespaces_named
from podperf.hosts.run_directory import RUN_DIRECTORY, SHARED_MEMORY
from podperf.model import Chain, FrameSize
from test_other_users import AS_USER

# Prints the sockets that this user may write to. The kernel checks this right before it looks at the socket's type.
CONNECT = """
import socket, sys
for path in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect(path)
    except PermissionError:
        continue
    except OSError:
        pass
    print(path)
"""


@pytest.fixture(
    scope="module",
    params=[Chain("ovs-dpdk", 1), Chain("memif", 2), Chain("vpp-l2patch", 1)],
    ids=lambda chain: chain.data_plane,
)
def chain(request: pytest.FixtureRequest, last_at_rest: list[dict[str, object]]) -> Iterator[Chain]:
    """A chain that forwards, of a data plane that has sockets. Afterwards, the machine is as before."""
    chain: Chain = request.param
    need(chain.data_plane)
    with left_as_before(last_at_rest), local_testbed().build(chain, FrameSize.parse("64")) as sut:
        send(sut)
        yield chain


def said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.mark.usefixtures("chain")
def test_another_user_reaches_no_socket_and_no_file_of_a_run() -> None:
    sockets = [str(path) for path in RUN_DIRECTORY.rglob("*") if path.is_socket()]
    assert sockets
    assert said("/usr/bin/python3", "-I", "-c", CONNECT, *sockets).split() == sockets  # root is let in
    assert said(*AS_USER, "/usr/bin/python3", "-I", "-c", CONNECT, *sockets) == ""
    assert said(*AS_USER, "find", str(RUN_DIRECTORY), "-writable") == ""
    shared = ("find", "/dev/shm", "-mindepth", "1", "-name", f"{SHARED_MEMORY}*")
    assert said(*AS_USER, *shared, "(", "-readable", "-o", "-writable", ")") == ""
    for namespace in namespaces_named(LocalHost()):
        enter = [*AS_USER, "nsenter", f"--net=/run/netns/{namespace}", "true"]
        assert subprocess.run(enter, capture_output=True, check=False).returncode != 0


@pytest.mark.usefixtures("chain")
def test_nothing_of_a_run_listens_on_a_network() -> None:
    namespaces = namespaces_named(LocalHost())
    assert namespaces
    for namespace in namespaces:
        inside = ("nsenter", f"--net=/run/netns/{namespace}", "ss", "-H")
        assert said(*inside, "-tuln") == ""
        assert "@" not in said(*inside, "-xln"), "a socket without a file has no mode, and lets everybody in"
    processes = {pid for each in namespaces for pid in said("ip", "netns", "pids", each).split()}
    assert processes
    here = said("ss", "-H", "-tulnp")
    assert not [pid for pid in processes if f"pid={pid}," in here]
