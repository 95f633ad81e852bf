"""Several changes with one command. The real `ip` fails here without a change, because no device has the name."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import pytest

from podperf.hosts.base import CommandFailed
from podperf.hosts.linux import configure, static_neighbour
from podperf.hosts.local import LocalHost

CHANGES = [("link", "set", "dev", f"pp{number}", "up") for number in range(1, 6)]


REFUSED = "on this machine, `ip link set dev pp1 up` ended with exit code 1: Cannot find device"
NO_WORDS = "-batch -` ended with exit code 1: Error: any valid prefix is expected"


@pytest.mark.skipif(shutil.which("ip") is None, reason="iproute2 is not installed")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        *(([("link", "show", "lo")] * before + CHANGES, REFUSED) for before in (0, 1, 3)),
        ([("route", "get", "no-address")], NO_WORDS),
    ],
)
def test_an_error_is_that_of_the_change_which_failed(changes: Sequence[Sequence[str]], said: str) -> None:
    with pytest.raises(CommandFailed) as error:
        configure(LocalHost(), *changes)
    assert said in str(error.value)


@pytest.mark.skipif(shutil.which("ip") is None, reason="iproute2 is not installed")
def test_parameters_are_set_before_the_changes_of_one_family() -> None:
    unknown = {"net__no_such_parameter": 1}  # the kernel does not have it, so it is left out
    configure(LocalHost(), ("route", "show"), ip_version=4, **unknown)
    with pytest.raises(CommandFailed, match="inet6 prefix is expected"):
        configure(LocalHost(), ("route", "get", "192.0.2.1"), ip_version=6, **unknown)


def test_a_static_neighbour_asks_nobody() -> None:
    assert " ".join(static_neighbour("net1", "198.18.0.1", "02:00:00:00:00:01")) == (
        "neigh replace 198.18.0.1 lladdr 02:00:00:00:00:01 dev net1 nud permanent"
    )
