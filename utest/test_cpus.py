from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.cpu_lists import HIGHEST_CPU, format_cpu_list, parse_cpu_list


@given(st.sets(st.integers(0, HIGHEST_CPU), max_size=60))
def test_a_cpu_list_survives_the_way_to_text_and_back(cpus: set[int]) -> None:
    assert parse_cpu_list(format_cpu_list(cpus)) == tuple(sorted(cpus))


@given(st.sets(st.integers(0, 40)))
def test_the_text_is_the_shortest(cpus: set[int]) -> None:
    parts = [part.split("-") for part in format_cpu_list(cpus).split(",") if part]
    assert all(int(later[0]) > int(earlier[-1]) + 1 for earlier, later in pairwise(parts))


@pytest.mark.parametrize(
    ("text", "cpus"), [("", ()), ("0", (0,)), ("0-1\n", (0, 1)), ("2-5,7", (2, 3, 4, 5, 7)), ("3, 1,1-2", (1, 2, 3))]
)
def test_lists_as_the_kernel_and_people_write_them(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cpus


@pytest.mark.parametrize("text", ["a", "1,", "-1", "1-", "5-2", "0-9999", "0x1", "1;2", "¹", "0-99999999999"])
def test_what_is_no_cpu_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither|backwards|above"):
        parse_cpu_list(text)
