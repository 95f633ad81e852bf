"""Tables of the kernel that were full: their counters, and what users hear of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from podperf.hosts.local import LocalHost
from podperf.kernel.full_tables import NEIGHBOURS, FullTable, Place, read_tables, since, sums
from podperf.observation import State
from podperf.preflight.mistakes import tracked_connections

CONNECTIONS_OF_TWO_CPUS = """\
entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error
00000005  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 0000000a 000000ff 00000000
00000005  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000002 00000006 00000001 00000000
""".splitlines()


def full(dropped: int, evicted: int, place: str = "worker") -> FullTable:
    return FullTable(place, "tracked connections", "net.netfilter.nf_conntrack_max", 4096, dropped, evicted)


def test_the_counters_of_all_cpus_are_added() -> None:
    found = sums(CONNECTIONS_OF_TWO_CPUS)
    assert (found["insert_failed"], found["drop"], found["early_drop"]) == (3, 16, 256)


@given(some.dictionaries(some.sampled_from("abcdef"), some.lists(some.integers(0, 2**32 - 1), min_size=2, max_size=2)))
def test_sums_are_those_of_the_columns(columns: dict[str, list[int]]) -> None:
    rows = [" ".join(f"{values[cpu]:08x}" for values in columns.values()) for cpu in (0, 1)]
    assert sums([" ".join(columns), *rows]) == {name: sum(values) for name, values in columns.items()}


@pytest.mark.parametrize("lines", [[], ["entries drop"], ["entries drop", "0 0 0"], ["entries drop", "0 none"]])
def test_a_file_of_another_form_has_no_counts(lines: Sequence[str]) -> None:
    assert sums(lines) == {}


@pytest.mark.skipif(
    not Path(NEIGHBOURS.file).exists(), reason="the kernel shows neighbour tables in the first network namespace alone"
)
def test_this_kernel_has_counters_and_a_limit_of_neighbours() -> None:
    (found,) = read_tables([Place("here", LocalHost(), [NEIGHBOURS])])
    assert found.setting == "net.ipv4.neigh.default.gc_thresh3"
    assert found.limit


def test_only_what_happened_in_the_test_counts() -> None:
    assert since([full(7, 100)], [full(7, 100)]) == []
    assert since([full(7, 100)], [full(9, 100)]) == [full(2, 0)]
    assert since([full(7, 100, "pod1")], [full(0, 3)]) == [full(0, 3)]


def test_a_check_compares_the_flows_with_the_limit_of_connections() -> None:
    assert tracked_connections(1000, None).state is State.OK
    assert tracked_connections(1000, 2000).state is State.OK
    warned = tracked_connections(1000, 1999)
    assert warned.state is State.WARNING
    assert "1000 flows are 2000 connections" in warned.detail
    assert "nf_conntrack_max=4000" in warned.remedy
