"""Several changes with one command. The real `ip` fails here without a change, because no device has the name."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis.strategies import integers

from podperf.hosts.base import CommandFailed, Completed
from podperf.hosts.linux import configure, static_neighbour
from podperf.hosts.local import LocalHost
from podperf.hosts.network_namespace import NetworkNamespace

CHANGES = [("link", "set", "dev", f"pp{number}", "up") for number in range(1, 6)]


class Failing(LocalHost):
    """A machine whose `ip -batch` fails at a line, as that of iproute2 does. It keeps what it was given."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line, self.given = line, list[str]()

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        self.given.append(stdin or "")
        raise CommandFailed(self.name, command, 1, f"Cannot find device\nCommand failed -:{self.line}\n")


@given(integers(1, len(CHANGES)))
def test_an_error_is_that_of_the_change_which_failed(line: int) -> None:
    host = Failing(line)
    with pytest.raises(CommandFailed) as error:
        configure(NetworkNamespace("podperf-pod1", host), *CHANGES)
    said = f"on namespace podperf-pod1, `ip link set dev pp{line} up` ended with exit code 1: Cannot find device"
    assert str(error.value) == said
    assert host.given == ["".join(f"link set dev pp{number} up\n" for number in range(1, 6))]


@pytest.mark.skipif(shutil.which("ip") is None, reason="iproute2 is not installed")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([("link", "show", "lo"), *CHANGES], "`ip link set dev pp1 up` ended with exit code 1: Cannot find device"),
        ([("route", "get", "no-address")], "-batch -` ended with exit code 1: Error: any valid prefix is expected"),
    ],
    ids=["a change that the kernel refuses", "words that ip does not understand"],
)
def test_the_error_of_the_real_ip(changes: Sequence[Sequence[str]], said: str) -> None:
    with pytest.raises(CommandFailed) as error:
        configure(LocalHost(), *changes)
    assert said in str(error.value)


def test_a_static_neighbour_asks_nobody() -> None:
    assert " ".join(static_neighbour("net1", "198.18.0.1", "02:00:00:00:00:01")) == (
        "neigh replace 198.18.0.1 lladdr 02:00:00:00:00:01 dev net1 nud permanent"
    )
