"""The exported histogram holds what was measured."""

from __future__ import annotations

from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from podperf.model import Latency, bucket_lower_ns, bucket_upper_ns
from podperf.records.histogram import HIGHEST_NS, to_hdr

highest_index = next(index for index in range(10_000) if bucket_upper_ns(index) >= HIGHEST_NS)


@given(st.dictionaries(st.integers(1, highest_index - 1), st.integers(1, 2**31), min_size=1, max_size=20))
def test_every_bucket_comes_back_from_the_export(counts: dict[int, int]) -> None:
    latency = Latency(bucket_lower_ns(min(counts)), 0.0, bucket_upper_ns(max(counts)), counts)
    histogram = HdrHistogram.decode(to_hdr(latency))
    assert histogram.get_total_count() == sum(counts.values())
    for index, count in counts.items():
        assert histogram.get_count_at_value(bucket_lower_ns(index)) == count
        assert histogram.get_count_at_value(bucket_upper_ns(index)) == count
