"""Latency histograms in the form that HdrHistogram's tools read. Pure."""

from __future__ import annotations

from hdrh.histogram import HdrHistogram

from podperf.model import Latency, bucket_lower_ns

HIGHEST_NS = 3_600_000_000_000  # one hour, far above every latency that can be measured


def to_hdr(latency: Latency) -> str:
    """The distribution as a base64 HdrHistogram (V2, compressed): 1 ns to one hour, two significant digits."""
    histogram = HdrHistogram(1, HIGHEST_NS, 2)
    for index, count in sorted(latency.counts.items()):
        histogram.record_value(min(bucket_lower_ns(index), HIGHEST_NS), count)
    return str(histogram.encode().decode("ascii"))
