"""Instructions by function: differences of two variants add up, and renamed functions are paired."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.methods.functions import Functions, differences, most_first, rest, without

NAMES = st.sampled_from(
    (
        *("memset", "memset_erms", "nft_do_chain [nf_tables]", "nft_do_chain", "ip_forward", "ip_forward.isra.0"),
        *("__list_add_valid", "__list_add_valid_or_report", "veth_poll [veth]", "veth_xmit [veth]", "(user space)"),
    )
)
AMOUNTS = st.integers(-(2**20), 2**20).map(lambda each: each / 128)  # means of two windows of 64 frames
FUNCTIONS = st.dictionaries(NAMES, AMOUNTS.filter(bool))


@given(FUNCTIONS, FUNCTIONS)
def test_the_changes_add_up_to_the_difference_of_the_sums(before: Functions, after: Functions) -> None:
    found = differences(before, after)
    assert sum(each.change for each in found) == sum(after.values()) - sum(before.values())
    assert [abs(each.change) for each in found] == sorted((abs(each.change) for each in found), reverse=True)


@given(FUNCTIONS, FUNCTIONS)
def test_no_function_is_in_two_rows(before: Functions, after: Functions) -> None:
    found = differences(before, after)
    for names in ([each.name_before for each in found], [each.name_after for each in found]):
        told = [each for each in names if each is not None]
        assert len(told) == len(set(told))
    assert all(each.before == before.get(each.name_before or "", 0.0) for each in found)
    assert all(each.after == after.get(each.name_after or "", 0.0) for each in found)


@given(FUNCTIONS)
def test_a_variant_does_not_differ_from_itself(functions: Functions) -> None:
    assert differences(functions, functions) == []


@given(FUNCTIONS, FUNCTIONS)
def test_what_is_taken_off_and_what_is_left_are_all(functions: Functions, taken_off: Functions) -> None:
    left = without(functions, taken_off)
    assert sum(left.values()) + sum(taken_off.values()) == sum(functions.values())
    assert 0.0 not in left.values()


@pytest.mark.parametrize(
    ("before", "after"),
    (
        ("memset_erms", "memset"),
        ("__list_add_valid", "__list_add_valid_or_report"),
        ("ip_rcv_core.isra.0", "ip_rcv_core"),
        ("skb_release_data", "skb_release_data.constprop.0"),
        ("nf_hook_slow [netfilter]", "nf_hook_slow"),
    ),
)
def test_a_function_with_another_name_is_one_row(before: str, after: str) -> None:
    (found,) = differences({before: 120.0, "ip_forward": 29.0}, {after: 126.0, "ip_forward": 29.0})
    assert (found.name_before, found.name_after, found.change) == (before, after, 6.0)
    assert found.name == f"{before}, now {after}"


@pytest.mark.parametrize(
    ("before", "after"),
    (
        ({"memset_erms": 120.0}, {"memcpy": 120.0}),
        ({"net_rx_action": 120.0}, {"net_rx": 12.0}),  # too cheap to be the same
        ({"xdp_do_redirect": 50.0}, {"xdp_do_redirect_frame": 50.0, "xdp_do_redirect_map": 50.0}),
        ({"ip_rcv_core": 50.0, "__ip_rcv_core": 50.0}, {"ip_rcv_core.isra.0": 50.0}),
    ),
)
def test_where_names_do_not_tell_a_function_is_gone_and_another_one_new(before: Functions, after: Functions) -> None:
    found = differences(before, after)
    assert len(found) == len(before) + len(after)
    assert {each.name for each in found} == {
        *(f"{each} (gone)" for each in before),
        *(f"{each} (new)" for each in after),
    }


def test_a_function_that_is_there_before_and_after_is_not_taken_for_a_renamed_one() -> None:
    found = differences({"memset": 10.0, "memset_erms": 100.0}, {"memset": 110.0})
    assert [(each.name, each.change) for each in found] == [("memset", 100.0), ("memset_erms (gone)", -100.0)]


def test_the_most_come_first_and_names_decide_among_equals() -> None:
    assert [name for name, _ in most_first({"b": 1.0, "a": 1.0, "c": 2.0})] == ["c", "a", "b"]


def test_what_no_function_has_is_told() -> None:
    assert rest(9936.375, [9000.0, 936.25]) == 0.125


def test_names_without_end_take_no_time_without_end() -> None:
    """A record of somebody else can have any number of functions."""
    began = time.monotonic()
    found = differences({f"old_{each}": 1.0 for each in range(20_000)}, {f"new_{each}": 1.0 for each in range(20_000)})
    assert len(found) == 40_000 and time.monotonic() - began < 20
