"""Tables of the kernel that were full: their counters, and what users hear of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

import made_up
from podperf.hosts.local import LocalHost
from podperf.kernel.full_tables import (
    CONNECTIONS,
    CONNECTIONS_LIMIT,
    NEIGHBOURS,
    FullTable,
    Place,
    read_tables,
    since,
    sums,
)
from podperf.observation import State
from podperf.preflight.mistakes import tracked_connections
from podperf.records.recorded import Record
from podperf.report.results import full_tables
from scripted_host import ScriptedHost

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


def test_a_table_that_a_test_is_about_is_there_in_any_case() -> None:
    """The counts of a node are those of the test, and its entries those at the end."""
    before, now = (replace(full(0, evicted, "node n1"), entries=entries) for evicted, entries in ((5, 7), (5, 4000)))
    assert since([before], [now]) == []
    assert since([before], [now], ["node n1"]) == [replace(now, evicted=0)]


def test_the_report_says_how_far_a_table_filled_and_what_was_lost(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("external", 1e5, pods=0)
    record.full_tables = [replace(full(0, 746_790, "node n1"), limit=262_144, entries=262_144)]
    (said,) = full_tables(Record.of(made_up.document(record, trials, tmp_path)))
    assert said == (
        "the table of tracked connections of node n1 filled to 262 144 of 262 144 (net.netfilter.nf_conntrack_max); "
        "746 790 entries evicted, 0 frames dropped"
    )
    record.full_tables = [full(12, 0)]  # a record of an older version has no number of entries
    (said,) = full_tables(Record.of(made_up.document(record, trials, tmp_path)))
    assert "was full" in said and "12 frames dropped" in said


def test_counters_and_entries_are_read_with_one_command() -> None:
    lines = [f"{CONNECTIONS.file}:{line}" for line in CONNECTIONS_OF_TWO_CPUS]
    lines += [f"{CONNECTIONS_LIMIT}:4096", f"{CONNECTIONS.entries}:4000"]
    host: Any = ScriptedHost(answers={"grep -H": "\n".join(lines)})
    assert read_tables([Place("node n1", host, [CONNECTIONS])]) == [
        FullTable("node n1", CONNECTIONS.name, CONNECTIONS.setting, 4096, 19, 256, 4000)
    ]


def test_a_check_compares_the_flows_with_the_limit_of_connections() -> None:
    assert tracked_connections(1000, None).state is State.OK
    assert tracked_connections(1000, 2000).state is State.OK
    warned = tracked_connections(1000, 1999)
    assert warned.state is State.WARNING
    assert "1000 flows are 2000 connections" in warned.detail
    assert "nf_conntrack_max=4000" in warned.remedy
